"""
Reading runs out of a SQLite file: what `ethogram.sqlite` does when it is asked, and a view that cannot write.

The tables are a contract; `ethogram.sqlite` states it.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self
from urllib.parse import quote

from ethogram.envelope import Event
from ethogram.faults import MalformedLog, SinkUnavailable, WrongStore
from ethogram.json_text import ParseError, decode, is_unicode
from ethogram.sink import RunState

SCHEMA_VERSION = 1
"""The version of the tables, in ``PRAGMA user_version``."""

APPLICATION_ID = 0x6574686F
"""``PRAGMA application_id``, "etho": what `file` and other tools can tell the file by."""

_PAGE_ROWS = 1_000
_BUSY_SECONDS = 10.0
_NEW = RunState()
_ERRNO = (
    ("SQLITE_FULL", errno.ENOSPC),
    ("SQLITE_BUSY", errno.EBUSY),
    ("SQLITE_READONLY", errno.EROFS),
    ("SQLITE_CANTOPEN", errno.EACCES),
)


class SqliteRuns:
    """
    The runs in a SQLite file, as a source. It is closed as a context manager, or by `close`.

    Args:
        path: The file, for faults.

        database: What SQLite is to open: a path, or a URI.

        uri: Whether `database` is a URI.

    Raises:
        SinkUnavailable: It could not be opened.
    """

    def __init__(self, path: Path, database: str, *, uri: bool = False) -> None:
        self.path = path
        self._lock = RLock()
        with self._faults():
            self._connection = sqlite3.connect(
                database, uri=uri, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )

    def __enter__(self) -> Self:
        """Use as a context manager: it is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, as `close` does."""
        self.close()

    def close(self) -> None:
        """Close the file. What was stored is on the disk already."""
        with self._lock:
            self._connection.close()

    def last_seq(self, run_id: str) -> int:
        """How far a run has come: see `Sink.last_seq`."""
        return self.state(run_id).last_seq

    def state(self, run_id: str) -> RunState:
        """What is stored of a run: see `CheckpointedSink.state`."""
        with self._lock, self._faults(run_id):
            return self._state(self._connection, run_id)

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """Replay a run: see `Source.read_from`. A missing row is a gap, before the cursor or after it."""
        if not is_unicode(run_id):
            return
        expected = after + 1
        with self._lock, self._faults(run_id):
            before = self._connection.execute(
                "SELECT count(*) FROM events WHERE run_id = ? AND seq <= ?", (run_id, after)
            ).fetchone()[0]
            last_seq = self._state(self._connection, run_id).last_seq
        if before != min(after, last_seq):
            raise MalformedLog(run_id, before + 1, "gap", "an event before the cursor is missing")
        while True:
            with self._lock, self._faults(run_id):
                rows: list[tuple[int, str, str, str | None, str]] = self._connection.execute(
                    "SELECT seq, type, ts, captured_at, payload FROM events"
                    " WHERE run_id = ? AND seq >= ? ORDER BY seq LIMIT ?",
                    (run_id, expected, _PAGE_ROWS),
                ).fetchall()
            for seq, type_name, ts, captured_at, payload in rows:
                if seq != expected:
                    message = f"event {seq} came where {expected} is next"
                    raise MalformedLog(run_id, expected, "gap", message)
                expected += 1
                try:
                    value = decode(payload)
                except ParseError as fault:
                    raise MalformedLog(run_id, seq, "text", f"payload: {fault.message}") from None
                yield Event(type_name, run_id, seq, ts, value, captured_at)
            if len(rows) < _PAGE_ROWS:
                break
        if expected <= last_seq:
            raise MalformedLog(run_id, expected, "gap", "the last events are missing")

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their UTF-8 bytes.
        """
        with self._lock, self._faults():
            rows = self._connection.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()
        for (run_id,) in rows:
            yield run_id

    def _state(self, connection: sqlite3.Connection, run_id: str) -> RunState:
        if not is_unicode(run_id):
            return _NEW
        row = connection.execute(
            "SELECT last_seq, finished, size_bytes FROM runs WHERE run_id = ?", (run_id,)
        ).fetchone()
        return _NEW if row is None else RunState(row[0], bool(row[1]), row[2])

    @contextmanager
    def _faults(self, run_id: str = "") -> Iterator[None]:
        """Name what SQLite refuses as a fault of the sink: its messages hold no stored values."""
        try:
            yield
        except sqlite3.Error as fault:
            name = getattr(fault, "sqlite_errorname", "")
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                raise WrongStore(str(self.path), "the file is no sound SQLite database") from fault
            number = next((number for prefix, number in _ERRNO if name.startswith(prefix)), errno.EIO)
            raise SinkUnavailable(str(self.path), number, f"SQLite: {fault}", run_id) from fault


class SqliteSource(SqliteRuns):
    """
    A source over a SQLite file that it opens for reading alone, whoever made it and with whatever identity path.

    Args:
        path: The file.

    Raises:
        WrongStore: The file is no such database, or is of another schema version.
        SinkUnavailable: It could not be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, f"file:{quote(str(path))}?mode=ro", uri=True)
        try:
            self._check_kind()
        except BaseException:
            self._connection.close()
            raise

    def _check_kind(self) -> None:
        with self._faults():
            version = self._connection.execute("PRAGMA user_version").fetchone()[0]
            application = self._connection.execute("PRAGMA application_id").fetchone()[0]
        if (application, version) != (APPLICATION_ID, SCHEMA_VERSION):
            raise WrongStore(str(self.path), "the file is a database of another kind or schema version")
