"""
Events and their caller's position in one SQLite file.

The schema is a contract that other programs may query, as version 1 of ``PRAGMA user_version``:

- ``events``: ``run_id``, ``seq``, ``type``, ``ts``, ``captured_at`` (null where it is absent), ``payload``
  (canonical JSON text) and ``identity``, the value at the path that the sink was made with (null where a payload has
  none). The key is ``(run_id, seq)``; there are indexes by ``type`` and by ``identity``.
- ``runs``: ``run_id``, ``last_seq``, ``finished`` (0 or 1), ``size_bytes`` of the canonical lines.
- ``position``: at most one row, ``checkpoint``: the caller's position, as a blob.

The file is in write-ahead mode: a reader never waits for the writer, nor the writer for a reader.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from ethogram.canonical import compose_line
from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, stamp
from ethogram.faults import Invalid, WrongStore, system_faults
from ethogram.json_text import ParseError, is_unicode
from ethogram.sink import RunState, check_batch, check_next, check_open, storable_payload
from ethogram.sqlite_source import APPLICATION_ID, SCHEMA_VERSION, SqliteRuns
from ethogram.vocabulary import RUN_FINISHED

_TABLES = (
    "CREATE TABLE events (run_id TEXT NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL, ts TEXT NOT NULL,"
    " captured_at TEXT, payload TEXT NOT NULL, {identity}, PRIMARY KEY (run_id, seq))",
    "CREATE INDEX events_by_type ON events (type)",
    "CREATE INDEX events_by_identity ON events (identity) WHERE identity IS NOT NULL",
    "CREATE TABLE runs (run_id TEXT PRIMARY KEY, last_seq INTEGER NOT NULL, finished INTEGER NOT NULL,"
    " size_bytes INTEGER NOT NULL)",
    "CREATE TABLE position (id INTEGER PRIMARY KEY CHECK (id = 1), checkpoint BLOB NOT NULL)",
)
_INSERT = "INSERT INTO events (run_id, seq, type, ts, captured_at, payload) VALUES (?, ?, ?, ?, ?, ?)"
_UPSERT_RUN = "INSERT OR REPLACE INTO runs (run_id, last_seq, finished, size_bytes) VALUES (?, ?, ?, ?)"

_Row = tuple[str, int, str, str, str | None, str]


class SqliteSink(SqliteRuns):
    """
    A checkpointed sink and a source in one SQLite file.

    Several processes may write to one file: each call is one transaction, and the next seq is read inside it.
    It needs SQLite 3.38 or newer, with its JSON functions.

    Args:
        path: The file; it is made, 0600, where it is not there. Its directory must be.

        clock: Gives the ``ts`` of what is stored, one for each call.

        validate: Whether `append` and `forward` refuse payloads that break a rule.

        identity_path: Where a payload names its source, as a SQLite JSON path such as ``$.vinaya.eventId``,
            for the column ``identity``. It is fixed when the file is made; empty leaves the column null.

    Raises:
        WrongStore: The file is no such database, is of another schema version, or was made with another
            ``identity_path``.
        SinkUnavailable: It could not be opened.
    """

    def __init__(self, path: Path, *, clock: Clock, validate: bool = True, identity_path: str = "") -> None:
        self._clock = clock
        self._validate = validate
        with system_faults(path):
            # SQLite would give the file, and those beside it, the rights that the umask leaves.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        super().__init__(path, str(path))
        try:
            with self._faults():
                self._prepare(identity_path)
        except BaseException:
            self._connection.close()
            raise

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """
        Stamp and store drafts, and the position that goes with them: see `CheckpointedSink.commit`.

        Args:
            batch: Run ids and their drafts, in order; their payloads are not validated. It may be empty.

            checkpoint: Whatever the caller needs to go on after exactly these drafts.

        Raises:
            Finished: A run is finished, or a draft would follow ``run.finished``. Nothing is stored.
            SinkUnavailable: The system refused. Nothing is stored.
        """
        drafts_by_run: dict[str, list[CanonicalDraft]] = {}
        for run_id, draft in batch:
            drafts_by_run.setdefault(run_id, []).append(draft)
        with self._transaction() as connection:
            ts = self._clock() if batch else ""
            for run_id, drafts in drafts_by_run.items():
                self._store_drafts(connection, run_id, drafts, ts)
            connection.execute(
                "INSERT OR REPLACE INTO position (id, checkpoint) VALUES (1, ?)", (checkpoint,)
            )

    def checkpoint(self) -> bytes | None:
        """
        The caller's position as of the last commit.

        Returns:
            What was given to `commit`, or None. It is in the same file as the events, so that it cannot
            speak of others.
        """
        with self._lock, self._faults():
            row = self._connection.execute("SELECT checkpoint FROM position").fetchone()
            return None if row is None else bytes(row[0])

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store one draft: see `Sink.append`. The position stays as it is."""
        with self._transaction() as connection:
            state = self._state(connection, run_id)
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            self._store_event(connection, event, payload_json, state)
            return event

    def forward(self, event: Event) -> None:
        """Store a stamped event: see `Sink.forward`. The position stays as it is."""
        with self._transaction() as connection:
            state = self._state(connection, event.run_id)
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            self._store_event(connection, event, payload_json, state)

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """Stamp and store drafts together: see `BulkSink.append_canonical`. The position stays as it is."""
        with self._transaction() as connection:
            return self._store_drafts(connection, run_id, drafts, self._clock() if drafts else "")

    def _prepare(self, identity_path: str) -> None:
        connection = self._connection
        identity = _identity_column(identity_path)
        try:
            connection.execute("SELECT json_extract('{}', ?)", (identity_path or "$",))
        except sqlite3.OperationalError:
            raise WrongStore(str(self.path), "the identity path is no JSON path of SQLite") from None
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if not empty and (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
            raise WrongStore(str(self.path), "the file is a database of another kind or schema version")
        connection.execute("PRAGMA journal_mode = WAL")
        # A commit must outlive a power cut: the caller's input may be gone by then.
        connection.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            # Another process may have made the tables since.
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in _TABLES:
                    connection.execute(statement.format(identity=identity))
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        declared = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'events'").fetchone()[0]
        if f" {identity}, PRIMARY" not in declared:
            raise WrongStore(str(self.path), "the file was made with another identity path")

    def _store_drafts(
        self, connection: sqlite3.Connection, run_id: str, drafts: Sequence[CanonicalDraft], ts: str
    ) -> RunState:
        if not is_unicode(run_id):
            raise Invalid(run_id, ParseError("the run id holds a lone surrogate", path="runId"))
        state = self._state(connection, run_id)
        finished = check_batch(run_id, state, drafts)
        if not drafts:
            return state
        rows: list[_Row] = []
        size_bytes = state.size_bytes
        for seq, draft in enumerate(drafts, state.last_seq + 1):
            rows.append((run_id, seq, draft.type, ts, draft.captured_at, draft.payload_json.decode()))
            line = compose_line(
                draft.type, run_id, seq, ts, draft.payload_json, captured_at=draft.captured_at
            )
            size_bytes += len(line) + 1
        connection.executemany(_INSERT, rows)
        after = RunState(state.last_seq + len(rows), finished, size_bytes)
        connection.execute(_UPSERT_RUN, (run_id, *after))
        return after

    def _store_event(
        self, connection: sqlite3.Connection, event: Event, payload_json: bytes, state: RunState
    ) -> None:
        payload = payload_json.decode()
        row: _Row = (event.run_id, event.seq, event.type, event.ts, event.captured_at, payload)
        connection.execute(_INSERT, row)
        line = compose_line(
            event.type, event.run_id, event.seq, event.ts, payload_json, captured_at=event.captured_at
        )
        finished = event.type == RUN_FINISHED
        connection.execute(_UPSERT_RUN, (event.run_id, event.seq, finished, state.size_bytes + len(line) + 1))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One transaction that is stored whole, or not at all where anything is raised inside."""
        with self._lock, self._faults():
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                # After some faults SQLite has rolled back by itself.
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise


def _identity_column(identity_path: str) -> str:
    if not identity_path:
        return "identity TEXT"
    quoted = identity_path.replace("'", "''")
    return f"identity TEXT GENERATED ALWAYS AS (json_extract(payload, '{quoted}')) VIRTUAL"
