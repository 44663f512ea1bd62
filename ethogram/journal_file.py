"""
The journal of `ethogram.journal`: commits, each framed by its length and digest, one after another in one
file.

A commit is in the journal from the moment its last byte is on the disk. What follows the first frame that
is not whole does not count: it was never finished, or is not ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import orjson
from attrs import frozen

from ethogram.runfiles import write_all

_NAME = "runs.journal"
_NAME_BEING_WRITTEN = "runs.journal.new"
_MAGIC = b"ethogram-journal 1 "
_HEADER = re.compile(re.escape(_MAGIC) + rb"([0-9]{1,18}) ([0-9a-f]{64})\n")


@frozen
class Chunk:
    """
    The lines that a commit appends to one run.

    Args:
        run_id: The run.

        base_bytes: The length of the run's log before them.

        text: The lines, each with its newline.
    """

    run_id: str
    base_bytes: int
    text: bytes


@frozen
class Record:
    """
    A commit.

    Args:
        chunks: What it appends, at most one for each run.

        checkpoint: The caller's position with it; None where there is none.

        run_count: How many runs have events once it is applied.

        total_bytes: How long all logs are together then.
    """

    chunks: tuple[Chunk, ...]
    checkpoint: bytes | None
    run_count: int
    total_bytes: int


class JournalFile:
    """
    The journal in a directory. Not for several threads or processes: its owner holds locks.

    Args:
        directory: The directory; it must be there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._fd = -1
        self._length_bytes = 0

    @property
    def length_bytes(self) -> int:
        """How long the journal is; 0 while nothing can be added to it."""
        return self._length_bytes

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd, self._length_bytes = -1, 0

    def read(self) -> Record | None:
        """
        What the journal holds, as one commit.

        Returns:
            Its commits put together; None where the first frame is not whole: the file is absent, empty,
            torn, of another version or of another program, or where the commits do not follow upon each
            other.

        Raises:
            OSError: The file could not be read.
        """
        try:
            text = (self._directory / _NAME).read_bytes()
        except FileNotFoundError:
            return None
        last: Record | None = None
        chunks: dict[str, list[Chunk]] = {}
        for last in _records(text):
            for chunk in last.chunks:
                earlier = chunks.setdefault(chunk.run_id, [])
                if earlier and chunk.base_bytes != earlier[-1].base_bytes + len(earlier[-1].text):
                    return None
                earlier.append(chunk)
        if last is None:
            return None
        joined = tuple(
            Chunk(run_id, parts[0].base_bytes, b"".join(part.text for part in parts))
            for run_id, parts in chunks.items()
        )
        return Record(joined, last.checkpoint, last.run_count, last.total_bytes)

    def add(self, record: Record) -> None:
        """
        Add a commit; it is on the disk when this returns.

        Args:
            record: The commit.

        Raises:
            OSError: The system refused. The journal is as before, or must be replaced: its length is then 0.
        """
        text = _frame(record)
        try:
            write_all(self._fd, text)
            os.fdatasync(self._fd)
        except OSError:
            try:
                os.ftruncate(self._fd, self._length_bytes)
                os.fdatasync(self._fd)
            except OSError:
                self.close()
            raise
        self._length_bytes += len(text)

    def replace(self, record: Record) -> None:
        """
        Put a journal of one commit in the place of this one, at once.

        Args:
            record: The commit.

        Raises:
            OSError: The system refused. The old journal or the new one is there, whole.
        """
        self.close()
        text = _frame(record)
        being_written = self._directory / _NAME_BEING_WRITTEN
        # Appending, so that what follows a refused and cut commit joins on to the last whole one.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        fd = os.open(being_written, flags, 0o600)
        try:
            write_all(fd, text)
            os.fsync(fd)
            being_written.replace(self._directory / _NAME)
            _sync_directory(self._directory)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                being_written.unlink(missing_ok=True)
            raise
        self._fd, self._length_bytes = fd, len(text)


def kept_bytes(fd: int, chunk: Chunk) -> int | None:
    """
    How much of a chunk a file holds.

    Args:
        fd: The file that the chunk belongs to.

        chunk: What a commit appends to it.

    Returns:
        How many of its bytes stand behind its base; None where the file is shorter, or holds something else there.

    Raises:
        OSError: The system refused.
    """
    size = os.fstat(fd).st_size
    if size < chunk.base_bytes or size > chunk.base_bytes + len(chunk.text):
        return None
    if size == chunk.base_bytes:
        return 0
    there = os.pread(fd, size - chunk.base_bytes, chunk.base_bytes)
    if chunk.text.startswith(there):
        return len(there)
    kept = next(index for index, (old, new) in enumerate(zip(there, chunk.text, strict=False)) if old != new)
    # A crash of the machine may keep a file's length and lose pages of it: they read as zeros, which no line holds.
    return kept if there[kept] == 0 else None


def whole_bytes(fd: int, size: int) -> int:
    """
    The length of a log up to its last newline.

    Args:
        fd: The log.

        size: Its length in bytes.

    Raises:
        OSError: The system refused.
    """
    step = 65_536
    end = size
    while end:
        start = max(0, end - step)
        newline = os.pread(fd, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _frame(record: Record) -> bytes:
    description = {
        "chunks": [[chunk.run_id, chunk.base_bytes, len(chunk.text)] for chunk in record.chunks],
        "checkpoint": None if record.checkpoint is None else len(record.checkpoint),
        "run_count": record.run_count,
        "total_bytes": record.total_bytes,
    }
    texts = [chunk.text for chunk in record.chunks]
    body = b"".join((orjson.dumps(description), b"\n", *texts, record.checkpoint or b""))
    return b"%b%d %b\n%b" % (_MAGIC, len(body), sha256(body).hexdigest().encode(), body)


def _records(text: bytes) -> Iterator[Record]:
    position = 0
    while header := _HEADER.match(text, position):
        start = header.end()
        position = start + int(header[1])
        if position > len(text):
            return
        body = text[start:position]
        if sha256(body).hexdigest().encode() != header[2]:
            return
        yield _record(body)


def _record(body: bytes) -> Record:
    """Read a body whose digest holds: it is what this module wrote."""
    end = body.index(b"\n")
    description = orjson.loads(body[:end])
    position = end + 1
    chunks: list[Chunk] = []
    for run_id, base_bytes, length in description["chunks"]:
        chunks.append(Chunk(run_id, base_bytes, body[position : position + length]))
        position += length
    checkpoint = None if description["checkpoint"] is None else body[position:]
    return Record(tuple(chunks), checkpoint, description["run_count"], description["total_bytes"])


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
