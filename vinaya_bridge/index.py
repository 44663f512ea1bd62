"""What an output already holds, by identity: a cache beside the runs that can always be made again from them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import orjson
from attrs import Factory, define

from vinaya_bridge.errors import SinkError
from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import OUTPUT_FOREIGN, OUTPUT_UNWRITABLE, writing
from vinaya_bridge.relay import told_key
from vinaya_bridge.runs import Known, RunFacts

_VERSION = 2
_TAIL_BYTES = 512
_AT_ONCE = 400
_SCHEMA = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  directory TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  tail BLOB NOT NULL,
  finished INTEGER NOT NULL,
  first_captured_at TEXT,
  agent_started INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE parts (
  identity TEXT NOT NULL,
  part INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (identity, part)
) WITHOUT ROWID;
CREATE TABLE told (
  cause TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (cause, digest)
) WITHOUT ROWID;
"""

_REFUSED = (
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_NOMEM",
)

T = TypeVar("T")


class OutputIndex:
    """
    Answers what the runs of an output hold, without keeping it in memory.

    It is a cache: a file that is torn, foreign or of another version is made anew, and what it says of a run counts
    only while that run's log has the size and the last bytes that it had.

    Args:
        path: ``OUT/state/identities.sqlite``; made where it does not exist.

        runs: ``OUT/runs``.

    Raises:
        SinkError: It cannot be read or written; also from every method.
    """

    def __init__(self, path: Path, runs: Path) -> None:
        self._path = path
        self._runs = runs
        with writing(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            database = self._connect()
            if database.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                return database
            database.close()
        except sqlite3.DatabaseError as fault:
            self._check_writable(fault)
        return self._make_anew()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        try:
            # A process can be killed at any moment; a cache may be behind the runs, but must not contradict itself.
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.DatabaseError:
            database.close()
            raise
        return database

    def _make_anew(self) -> sqlite3.Connection:
        try:
            with writing(self._path):
                for suffix in ("", "-wal", "-shm", "-journal"):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
                self._path.touch(mode=0o600)
            database = self._connect()
            database.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        except sqlite3.DatabaseError as fault:
            raise _unwritable(self._path, fault) from fault
        return database

    def _check_writable(self, fault: sqlite3.DatabaseError) -> None:
        """Leave the cache as it is where the system refused: it is not the file that is at fault."""
        if getattr(fault, "sqlite_errorname", "").startswith(_REFUSED):
            raise _unwritable(self._path, fault) from fault

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Put a question; where the cache turns out to be broken, make it anew and ask again."""
        try:
            return question(self._database)
        except sqlite3.DatabaseError as fault:
            self._check_writable(fault)
            self._database.close()
            self._database = self._make_anew()
        try:
            self._catch_up(self._database, None)
            return question(self._database)
        except sqlite3.DatabaseError as fault:
            raise _unwritable(self._path, fault) from fault

    def _all(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[tuple[Any, ...]]:
        return self._ask(lambda database: database.execute(query, values).fetchall())

    # ------------------------------------------------------------------------------------ catching up

    def refresh(self, directories: Collection[str] | None = None) -> None:
        """
        Catch up with the runs: read what was appended since, and anew what is no longer what it was.

        Args:
            directories: The names of those that changed; None looks at all.

        Raises:
            SinkError: A run's log is not what this tool writes.
        """
        self._ask(lambda database: self._catch_up(database, directories))

    def _catch_up(self, database: sqlite3.Connection, directories: Collection[str] | None) -> None:
        query = "SELECT run_id, directory, size, tail FROM runs"
        if directories is None:
            rows = database.execute(query).fetchall()
        else:
            rows = [
                row
                for name in directories
                for row in database.execute(f"{query} WHERE directory = ?", (name,)).fetchall()
            ]
        recorded = {directory: (run_id, size, tail) for run_id, directory, size, tail in rows}
        with database:  # commits, or rolls back
            database.execute("BEGIN")
            for directory in _directories(self._runs) if directories is None else sorted(directories):
                before = recorded.pop(directory, None)
                path = self._runs / directory / "events.jsonl"
                try:
                    size = path.stat().st_size
                except FileNotFoundError:
                    size = 0
                if before is not None and size == before[1] and _tail(path, size) == before[2]:
                    continue
                start = 0
                if before is not None:
                    if size > before[1] and _tail(path, before[1]) == before[2]:
                        start = before[1]
                    else:
                        _forget(database, [before[0]])
                if size:
                    _read(database, directory, path, start)
            _forget(database, [run_id for run_id, _, _ in recorded.values()])

    # ------------------------------------------------------------------------------------ asking

    def open_runs(self) -> int:
        """Return how many runs have no terminal event, the bridge's own left out."""
        query = "SELECT count(*) FROM runs WHERE NOT finished AND run_id <> ?"
        return int(self._all(query, (RELAY_RUN,))[0][0])

    def lines(self) -> int:
        """Return how many lines have an event here."""
        return int(self._all("SELECT count(DISTINCT identity) FROM parts")[0][0])

    def known(self, identities: Iterable[str]) -> dict[str, Known]:
        """
        Return what the output holds of these lines; a line it does not hold has no entry.

        Args:
            identities: As they leave.
        """
        wanted = list(dict.fromkeys(identities))
        found: dict[str, dict[int, str]] = defaultdict(dict)
        digests: dict[str, str] = {}
        closed: dict[str, set[str]] = defaultdict(set)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = (
                "SELECT identity, part, run_id, digest, finished FROM parts JOIN runs USING (run_id)"  # noqa: S608
                f" WHERE identity IN ({marks})"
            )
            for identity, part, run_id, digest, finished in self._all(query, some):
                found[identity][part] = run_id
                digests[identity] = digest
                if finished:
                    closed[identity].add(run_id)
        return {
            identity: Known(digests[identity], parts, frozenset(closed[identity]))
            for identity, parts in found.items()
        }

    def facts(self, main_run: str) -> dict[str, RunFacts]:
        """
        Return the facts of a main run's sittings and dispatches that the output holds.

        Args:
            main_run: Run id of the first sitting.
        """
        query = (
            "SELECT run_id, finished, first_captured_at, agent_started FROM runs WHERE run_id = :main"
            " OR (run_id >= :main || '/' AND run_id < :main || '0')"
            " OR (run_id >= :main || '~' AND run_id < :main || char(127))"
        )
        rows = self._all(query, {"main": main_run})
        return {
            run_id: RunFacts(
                finished=bool(finished),
                first_instant_us=None if captured_at is None else instant_us(captured_at),
                agent_started=bool(agent_started),
            )
            for run_id, finished, captured_at, agent_started in rows
        }

    def told(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """
        Return which of these keys the bridge's own run has told already.

        Args:
            keys: See `Refusal.key`.
        """
        query = "SELECT 1 FROM told WHERE cause = ? AND digest = ?"
        return frozenset(key for key in keys if self._all(query, key))

    def close(self) -> None:
        """Close the cache."""
        self._database.close()


def _forget(database: sqlite3.Connection, run_ids: Iterable[str]) -> None:
    for run_id in run_ids:
        database.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
        database.execute("DELETE FROM parts WHERE run_id = ?", (run_id,))
        if run_id == RELAY_RUN:
            database.execute("DELETE FROM told")


def _read(database: sqlite3.Connection, directory: str, path: Path, start: int) -> None:
    held = HeldOfRun()
    end = start
    with path.open("rb") as stream:
        stream.seek(start)
        for raw in stream:
            if not raw.endswith(b"\n"):
                break
            try:
                held.add(raw)
            except (orjson.JSONDecodeError, KeyError, TypeError) as fault:
                raise SinkError(
                    OUTPUT_FOREIGN,
                    f"the line at byte {end:,} is no event of this tool",
                    place=str(path),
                    remedy="move the output away, or give another directory with -o",
                ) from fault
            end += len(raw)
    if held.run_id is None:
        return
    database.executemany("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", held.parts)
    database.executemany("INSERT OR REPLACE INTO told VALUES (?, ?)", held.told)
    database.execute(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
        " size = excluded.size, tail = excluded.tail, finished = excluded.finished,"
        " agent_started = agent_started OR excluded.agent_started",
        (
            held.run_id,
            directory,
            end,
            _tail(path, end),
            held.finished,
            held.first_captured_at,
            held.agent_started,
        ),
    )


@define
class HeldOfRun:
    """
    What the events of one run say of the lines that they come from.

    Args:
        run_id: The run; None before the first event.

        finished: Whether the last event is its terminal one.

        agent_started: Whether an agent started.

        first_captured_at: Of the first event.

        parts: Identity, part, run and digest of each event of a line.

        told: Of the bridge's own run: what it has told (see `Refusal.key`).
    """

    run_id: str | None = None
    finished: bool = False
    agent_started: bool = False
    first_captured_at: str | None = None
    parts: list[tuple[str, int, str, str]] = Factory(list)
    told: list[tuple[str, str]] = Factory(list)

    def add(self, raw: bytes) -> None:
        """
        Take the next event.

        Args:
            raw: Canonical text.

        Raises:
            ValueError, KeyError, TypeError: It is no event of this tool.
        """
        event = orjson.loads(raw)
        run_id: str = event["runId"]
        if self.run_id is None:
            self.run_id = run_id
            self.first_captured_at = event.get("capturedAt")
        self.finished = event["type"] == "run.finished"
        self.agent_started = self.agent_started or event["type"] == "agent.started"
        payload = event["payload"]
        block = payload.get("vinaya") if isinstance(payload, dict) else None
        if not isinstance(block, dict):
            return
        if run_id == RELAY_RUN:
            if "digest" in block:
                self.told.append(told_key(event["type"], payload))
        elif "part" in block:
            self.parts.append((block["eventId"], block["part"], run_id, block["digest"]))


def _unwritable(path: Path, fault: sqlite3.DatabaseError) -> SinkError:
    return SinkError(
        OUTPUT_UNWRITABLE,
        f"SQLite: {fault}",
        place=str(path),
        remedy="make room or mend the rights, then run the same command again: it goes on where this one stopped",
    )


def _directories(runs: Path) -> Iterator[str]:
    if runs.is_dir():
        yield from sorted(entry.name for entry in runs.iterdir() if entry.is_dir())


def _tail(path: Path, end: int) -> bytes:
    """A fingerprint of the bytes just before *end*."""
    if not end:
        return b""
    with path.open("rb") as stream:
        stream.seek(max(0, end - _TAIL_BYTES))
        return hashlib.sha256(stream.read(min(end, _TAIL_BYTES))).digest()
