"""What an output already holds, by identity: a cache beside the events that can always be made again from them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import orjson
from attrs import frozen

from vinaya_bridge.errors import SinkError
from vinaya_bridge.index_tables import SCHEMA, Row, Summary, TableIndex, forget
from vinaya_bridge.output import OUTPUT_FOREIGN, OUTPUT_UNWRITABLE, writing

_VERSION = 3
_TAIL_BYTES = 512
_LOGS = "CREATE TABLE logs (log TEXT PRIMARY KEY, size INTEGER NOT NULL, tail BLOB NOT NULL) WITHOUT ROWID;"
_REFUSED = (
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_NOMEM",
)

T = TypeVar("T")


class Logs(Protocol):
    """The logs that hold an output's events."""

    def names(self) -> list[str]:
        """Return what each is called, those that exist."""

    def path(self, name: str) -> Path:
        """Return where a log is."""


@frozen
class RunLogs:
    """
    A log for each run, named as its directory.

    Args:
        root: ``OUT/runs``.
    """

    root: Path

    def names(self) -> list[str]:
        """Return the names of the directories."""
        if not self.root.is_dir():
            return []
        return sorted(entry.name for entry in self.root.iterdir() if entry.is_dir())

    def path(self, name: str) -> Path:
        """Return where a log is."""
        return self.root / name / "events.jsonl"


@frozen
class OneLog:
    """
    One log for all runs.

    Args:
        file: The log.
    """

    file: Path

    def names(self) -> list[str]:
        """Return the one name."""
        return [""]

    def path(self, name: str) -> Path:  # noqa: ARG002 - there is but one
        """Return where the log is."""
        return self.file


class LogIndex(TableIndex):
    """
    Answers what logs of events hold, without keeping it in memory.

    It is a cache: a file that is torn, foreign or of another version is made anew, and what it says of a log counts
    only while that log has the size and the last bytes that it had.

    Args:
        path: The cache; made where it does not exist.

        logs: The logs.

    Raises:
        SinkError: It cannot be read or written; also from every method.
    """

    def __init__(self, path: Path, logs: Logs) -> None:
        self._path = path
        self._logs = logs
        with writing(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = self._open()

    def close(self) -> None:
        """Close the cache."""
        self._database.close()

    def refresh(self, names: Collection[str] | None = None) -> None:
        """
        Catch up with the logs: read what was appended since, and anew what is no longer what it was.

        Args:
            names: The names of those that changed; None looks at all.

        Raises:
            SinkError: A log is not what this tool writes.
        """
        self._ask(lambda database: self._catch_up(database, names))

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
            # A process can be killed at any moment; a cache may be behind the logs, but must not contradict itself.
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
            database.executescript(f"BEGIN; {SCHEMA} {_LOGS} PRAGMA user_version = {_VERSION}; COMMIT;")
        except sqlite3.DatabaseError as fault:
            raise unwritable(self._path, fault) from fault
        return database

    def _check_writable(self, fault: sqlite3.DatabaseError) -> None:
        """Leave the cache as it is where the system refused: it is not the file that is at fault."""
        if getattr(fault, "sqlite_errorname", "").startswith(_REFUSED):
            raise unwritable(self._path, fault) from fault

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
            raise unwritable(self._path, fault) from fault

    def _all(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        return self._ask(lambda database: database.execute(query, values).fetchall())

    def _catch_up(self, database: sqlite3.Connection, names: Collection[str] | None) -> None:
        query = "SELECT log, size, tail FROM logs"
        if names is None:
            rows = database.execute(query).fetchall()
        else:
            rows = [
                row
                for name in names
                for row in database.execute(f"{query} WHERE log = ?", (name,)).fetchall()
            ]
        recorded: dict[str, tuple[int, bytes]] = {name: (size, tail) for name, size, tail in rows}
        with database:  # commits, or rolls back
            database.execute("BEGIN")
            grown = [
                (name, self._logs.path(name), _unchanged_bytes(self._logs.path(name), recorded.get(name)))
                for name in (self._logs.names() if names is None else sorted(names))
            ]
            kept = {name for name, _, known_bytes in grown if known_bytes}
            _forget(database, [name for name in recorded if name not in kept])
            for name, path, known_bytes in grown:
                _catch_up_with(database, name, path, known_bytes)


class OutputIndex(LogIndex):
    """
    Answers what the runs of an output hold: see `LogIndex`.

    Args:
        path: ``OUT/state/identities.sqlite``.

        runs: ``OUT/runs``.
    """

    def __init__(self, path: Path, runs: Path) -> None:
        super().__init__(path, RunLogs(runs))


def _forget(database: sqlite3.Connection, names: Collection[str]) -> None:
    forget(database, names)
    database.executemany("DELETE FROM logs WHERE log = ?", [(name,) for name in names])


def _unchanged_bytes(path: Path, recorded: tuple[int, bytes] | None) -> int:
    """How much of a log, from its start, is what was read of it before."""
    if recorded is None:
        return 0
    known_bytes, tail = recorded
    return known_bytes if _size(path) >= known_bytes and _tail(path, known_bytes) == tail else 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _catch_up_with(database: sqlite3.Connection, name: str, path: Path, start: int) -> None:
    """Read what a log holds from a byte on."""
    if _size(path) == start:
        return
    summary = Summary()
    end = start
    with path.open("rb") as stream:
        stream.seek(start)
        for raw in stream:
            if not raw.endswith(b"\n"):
                break
            try:
                summary.add(raw)
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as fault:
                raise SinkError(
                    OUTPUT_FOREIGN,
                    f"the line at byte {end:,} is no event of this tool",
                    place=str(path),
                    remedy="move the output away, or give another directory with -o",
                ) from fault
            end += len(raw)
    summary.write(database, name)
    database.execute("INSERT OR REPLACE INTO logs VALUES (?, ?, ?)", (name, end, _tail(path, end)))


def _tail(path: Path, end: int) -> bytes:
    """A fingerprint of the bytes just before *end*."""
    if not end:
        return b""
    with path.open("rb") as stream:
        stream.seek(max(0, end - _TAIL_BYTES))
        return hashlib.sha256(stream.read(min(end, _TAIL_BYTES))).digest()


def unwritable(path: Path, fault: sqlite3.DatabaseError) -> SinkError:
    """
    Say what to do where SQLite could not read or write.

    Args:
        path: The file.

        fault: What it raised.
    """
    return SinkError(
        OUTPUT_UNWRITABLE,
        f"SQLite: {fault}",
        place=str(path),
        remedy="make room or mend the rights, then run the same command again: it goes on where this one stopped",
    )
