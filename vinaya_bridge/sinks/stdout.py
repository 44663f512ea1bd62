"""Standard output as a sink: events only; what was written, and the position, live in ``OUT/state``."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Protocol

from ethogram import CanonicalDraft
from ethogram.clock import Clock
from ethogram.rundir import lines_after
from ethogram.sink import RunState
from vinaya_bridge.errors import SinkError
from vinaya_bridge.index import unwritable
from vinaya_bridge.index_tables import SCHEMA, Row, Summary, TableIndex
from vinaya_bridge.output import OUTPUT_UNWRITABLE, writing
from vinaya_bridge.sinks.base import Index
from vinaya_bridge.terminal import escape_in_json

_VERSION = 1
_POSITION = "CREATE TABLE position (id INTEGER PRIMARY KEY CHECK (id = 1), checkpoint BLOB NOT NULL);"


class ByteStream(Protocol):
    """An unbuffered binary stream; one that blocks."""

    def write(self, data: memoryview, /) -> int | None:
        """Take some of the bytes, and return how many."""

    def flush(self) -> None:
        """Pass on what was taken."""


class TerminalStream:
    """
    Passes JSON lines on to a terminal, with what could act on it escaped: the values are the same, the bytes are not.

    Args:
        stream: The terminal.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def write(self, data: memoryview, /) -> int:
        """Write all of some whole lines, and return how long they were."""
        rest = memoryview(escape_in_json(bytes(data).decode()).encode())
        while rest:
            rest = rest[self._stream.write(rest) or 0 :]
        return len(data)

    def flush(self) -> None:
        """Pass on what was taken."""
        self._stream.flush()


class StreamSink:
    """
    Writes events as lines to a stream, and remembers in a file what it wrote.

    The position is saved after the stream took the events. A stream cannot be read back: a process that is killed
    between the two writes these events again when it is started again, with the seq that they had. Whoever reads
    drops what it has: the same run and seq.

    Args:
        stream: Where to write.

        file: Where to remember; a file that is torn or foreign is made anew, and all is written again.

        clock: Gives ``ts``.

    Raises:
        SinkError: The file cannot be opened.
    """

    def __init__(self, stream: ByteStream, file: Path, *, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._memory = StreamMemory(file)

    @property
    def index(self) -> Index:
        """What was written."""
        return self._memory

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none."""
        return self._memory.checkpoint()

    def recovered(self) -> list[str]:
        """Return nothing: opening writes nothing."""
        return []

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """
        Write events, then save the position.

        Raises:
            BrokenPipeError: Whoever read is gone.
            SinkError: The stream or the file refused.
        """
        ts = self._clock() if batch else ""
        texts: list[bytes] = []
        states: dict[str, RunState] = {}
        for run_id, group in groupby(batch, key=lambda each: each[0]):
            state = states.get(run_id) or self._memory.state(run_id)
            text, states[run_id] = lines_after(run_id, [draft for _, draft in group], state, lambda: ts)
            texts.append(text)
        text = b"".join(texts)
        if text:
            self._write(text)
        self._memory.remember(text, checkpoint)

    def _write(self, text: bytes) -> None:
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self._stream.write(rest) or 0 :]
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as fault:
            raise SinkError(
                OUTPUT_UNWRITABLE,
                f"standard output took no more: {os.strerror(fault.errno or 0)}",
                place="-",
                remedy="make room, then run the same command again: it goes on where this one stopped",
            ) from fault

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""
        return self._memory.state(run_id).last_seq

    def close(self) -> None:
        """Close the file; the stream stays open."""
        self._memory.close()


class StreamMemory(TableIndex):
    """
    What was written to a stream, and the position, in one SQLite file.

    Args:
        file: The file; made where it does not exist.

    Raises:
        SinkError: It cannot be opened.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._database = self._connect()
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.DatabaseError:
            version = None
        if version == _VERSION:
            return
        with writing(file):
            for suffix in ("", "-wal", "-shm"):
                file.with_name(file.name + suffix).unlink(missing_ok=True)
            file.touch(mode=0o600)
        try:
            self._database = self._connect()
            script = f"BEGIN; {SCHEMA} {_POSITION} PRAGMA user_version = {_VERSION}; COMMIT;"
            self._database.executescript(script)
        except sqlite3.DatabaseError as fault:
            raise unwritable(file, fault) from fault

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._file, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError:
            database.close()
            raise
        return database

    def _all(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        try:
            return self._database.execute(query, values).fetchall()
        except sqlite3.DatabaseError as fault:
            raise unwritable(self._file, fault) from fault

    def state(self, run_id: str) -> RunState:
        """
        Return where a run stands; its size is not known.

        Args:
            run_id: The run.
        """
        rows = self._all("SELECT last_seq, finished FROM runs WHERE run_id = ?", (run_id,))
        return RunState(rows[0][0], bool(rows[0][1])) if rows else RunState()

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none."""
        rows = self._all("SELECT checkpoint FROM position")
        return bytes(rows[0][0]) if rows else None

    def remember(self, text: bytes, checkpoint: bytes) -> None:
        """
        Store what was written and the position after it, both or neither.

        Args:
            text: The lines.

            checkpoint: The position.

        Raises:
            SinkError: It cannot be stored.
        """
        summary = Summary()
        for line in text.split(b"\n")[:-1]:
            summary.add(line)
        try:
            with self._database as database:
                database.execute("BEGIN")
                summary.write(database, "-")
                database.execute("INSERT OR REPLACE INTO position VALUES (1, ?)", (checkpoint,))
        except sqlite3.DatabaseError as fault:
            raise unwritable(self._file, fault) from fault

    def close(self) -> None:
        """Close the file."""
        self._database.close()
