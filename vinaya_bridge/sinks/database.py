"""The sink in one SQLite file: events and position in one transaction (`ethogram.sqlite` states the schema)."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ethogram import CanonicalDraft, SqliteSink
from ethogram.clock import Clock
from vinaya_bridge.errors import SinkError
from vinaya_bridge.index import unwritable
from vinaya_bridge.index_tables import OF_MAIN_RUN, Row, facts_of, in_pieces, known_of
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import OUTPUT_BUSY, writing
from vinaya_bridge.runs import Known, RunFacts
from vinaya_bridge.sinks.base import Index, sink_faults

_IDENTITY_PATH = "$.vinaya.eventId"
_PART = "json_extract(payload, '$.vinaya.part')"
_DIGEST = "json_extract(payload, '$.vinaya.digest')"
# What the bridge's run has told is asked for each line that it refuses.
_TOLD_INDEX = f"CREATE INDEX IF NOT EXISTS told_by_bridge ON events ({_DIGEST}) WHERE run_id = '{RELAY_RUN}'"


class DatabaseSink:
    """
    Events and position in one SQLite file. Other programs may read it while it grows.

    Args:
        file: The file; beside it are those that SQLite makes, and ``FILE-lock``.

        clock: Gives ``ts``.

    Raises:
        SinkError: It cannot be opened, or another process writes to it.
    """

    def __init__(self, file: Path, *, clock: Clock) -> None:
        self._file = file
        with ExitStack() as opened:
            opened.callback(os.close, _locked(file.with_name(file.name + "-lock")))
            with sink_faults(file):
                self._sink = SqliteSink(file, clock=clock, identity_path=_IDENTITY_PATH)
            opened.callback(self._sink.close)
            self._index = DatabaseIndex(file)
            opened.callback(self._index.close)
            self._closing = opened.pop_all()

    @property
    def index(self) -> Index:
        """What it holds."""
        return self._index

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none."""
        with sink_faults(self._file):
            return self._sink.checkpoint()

    def recovered(self) -> list[str]:
        """Return nothing: a transaction is there wholly or not at all."""
        return []

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """Make events and position durable."""
        with sink_faults(self._file):
            self._sink.commit(batch, checkpoint)

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""
        with sink_faults(self._file):
            return self._sink.last_seq(run_id)

    def close(self) -> None:
        """Give back what is held."""
        self._closing.close()


class DatabaseIndex:
    """
    Answers from the file itself what it holds.

    Args:
        file: The file, with its tables.

    Raises:
        SinkError: It cannot be read; also from every method.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._database = sqlite3.connect(file, isolation_level=None)
        try:
            self._database.execute(_TOLD_INDEX)
            self._database.execute("PRAGMA query_only = ON")
        except sqlite3.DatabaseError as fault:
            self._database.close()
            raise unwritable(file, fault) from fault

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def _all(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as fault:
            raise unwritable(self._file, fault) from fault

    def lines(self) -> int:
        """Return how many lines have an event here."""
        named = self._all("SELECT count(DISTINCT identity) FROM events WHERE identity IS NOT NULL")[0][0]
        implied = self._all(
            "SELECT count(DISTINCT identity) FROM events AS start"  # noqa: S608
            " WHERE type = 'run.started' AND identity IS NOT NULL AND NOT EXISTS"
            f" (SELECT 1 FROM events WHERE identity = start.identity AND {_PART} IS NOT NULL)"
        )[0][0]
        return int(named) - int(implied)

    def open_runs(self) -> int:
        """Return how many runs have no terminal event, the bridge's own left out."""
        return int(
            self._all("SELECT count(*) FROM runs WHERE NOT finished AND run_id <> ?", (RELAY_RUN,))[0][0]
        )

    def known(self, identities: Iterable[str]) -> dict[str, Known]:
        """
        Return what is stored of these lines; a line of which nothing is has no entry.

        Args:
            identities: As they leave.
        """
        query = (
            f"SELECT identity, {_PART}, run_id, {_DIGEST}, finished FROM events JOIN runs USING (run_id)"  # noqa: S608
            " WHERE identity IN ({marks}) AND " + f"{_PART} IS NOT NULL"
        )
        return known_of(
            row for marks, some in in_pieces(identities) for row in self._all(query.format(marks=marks), some)
        )

    def facts(self, main_run: str) -> dict[str, RunFacts]:
        """
        Return the facts of a main run's sittings and dispatches that are stored.

        Args:
            main_run: Run id of the first sitting.
        """
        first = "(SELECT captured_at FROM events WHERE events.run_id = runs.run_id AND seq = 1)"
        # The plus keeps SQLite from going through every agent.started there is, for each run.
        agent = "EXISTS (SELECT 1 FROM events WHERE events.run_id = runs.run_id AND +type = 'agent.started')"
        query = f"SELECT run_id, finished, {first}, {agent} FROM runs WHERE {OF_MAIN_RUN}"  # noqa: S608
        return facts_of(self._all(query, {"main": main_run}))

    def told(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """
        Return which of these keys the bridge's own run has told already.

        Args:
            keys: See `vinaya_bridge.relay.Refusal.key`.
        """
        query = (
            f"SELECT 1 FROM events WHERE run_id = '{RELAY_RUN}' AND {_DIGEST} = ?"  # noqa: S608
            " AND coalesce(json_extract(payload, '$.cause'), type) = ?"
        )
        return frozenset((cause, digest) for cause, digest in keys if self._all(query, (digest, cause)))


def saved_in_database(file: Path) -> bytes | None:
    """
    Return the position in a file, without changing or trusting it.

    Args:
        file: The file; it need not exist.
    """
    if not file.exists():
        return None
    try:
        database = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.DatabaseError:
        return None
    try:
        row = database.execute("SELECT checkpoint FROM position").fetchone()
    except sqlite3.DatabaseError:
        return None
    finally:
        database.close()
    return None if row is None else bytes(row[0])


def _locked(path: Path) -> int:
    """Keep other tails out: each relies on the position being its own."""
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise SinkError(
            OUTPUT_BUSY,
            f"process {holder} is writing to it",
            place=str(path),
            remedy="wait for that process or stop it, or give another file with --sink",
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor
