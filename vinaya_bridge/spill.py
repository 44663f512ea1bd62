"""Entries by main run, in memory while they are few, on disk when they are many."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
from attrs import Factory, frozen

from vinaya_bridge.content import read_at
from vinaya_bridge.entry import Entry
from vinaya_bridge.output import writing

BLOCK_LINES = 128
"""How many entries a block holds at most; only the last block of a segment may hold fewer than half as many."""

_LENGTH = 4
_ARRAY_16 = 0xDC
"""What a msgpack array of 16 to 65,535 items begins with; the number follows in two bytes."""

_LEAST_PARTITIONS = 16
_MOST_PARTITIONS = 1024
_PARTITION_BYTES = 4 << 20


def partition_count(input_bytes: int) -> int:
    """
    Return into how many partitions an input is spilled: so many that one of them fits in memory.

    Args:
        input_bytes: The size of the input.

    Returns:
        A power of two.
    """
    wanted = min(_MOST_PARTITIONS, max(_LEAST_PARTITIONS, input_bytes // _PARTITION_BYTES))
    return 1 << (wanted - 1).bit_length()


def partition_of(main_run: str, partitions: int) -> int:
    """
    Return the partition of a main run, the same in every process.

    Args:
        main_run: Its run id.

        partitions: How many there are.
    """
    return zlib.crc32(main_run.encode()) % partitions


class Segment(NamedTuple):
    """
    Entries of one partition that were written together.

    Args:
        offset: Where they start in their file, in bytes.

        length: How many bytes they take.
    """

    offset: int
    length: int


@frozen
class Spilled:
    """
    What a `Spill` wrote.

    Args:
        path: The file.

        segments: Of each partition, in the order in which they were added.
    """

    path: Path
    segments: Sequence[Sequence[Segment]]


@frozen
class Partition:
    """
    The entries of some main runs, each main run whole.

    Args:
        pieces: Those on disk: of each file its segments, in order.

        held: Those in memory, after all others: encoded blocks.
    """

    pieces: Sequence[tuple[Path, Sequence[Segment]]] = ()
    held: list[bytes] = Factory(list)

    @property
    def spilled_bytes(self) -> int:
        """How much of it is on disk, in bytes."""
        return sum(segment.length for _, segments in self.pieces for segment in segments)

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing."""
        return not self.held and not self.spilled_bytes

    def entries(self) -> list[Entry]:
        """Return all entries, in the order in which they were added."""
        found: list[Entry] = []
        decode = msgspec.msgpack.Decoder(list[Entry]).decode
        for _, _, data in self._read_segments():
            for start, end in _blocks(data):
                found += decode(data[start:end])
        for block in self.held:
            found += decode(block)
        return found

    def places(self) -> Iterator[Block]:
        """Yield where the blocks of the spilled entries lie, in order."""
        for path, segment, data in self._read_segments():
            for start, end in _blocks(data):
                yield Block(path, segment.offset + start, end - start)

    def _read_segments(self) -> Iterator[tuple[Path, Segment, bytes]]:
        for path, segments in self.pieces:
            with path.open("rb", buffering=0) as stream:
                for segment in segments:
                    yield path, segment, _read(stream, segment.offset, segment.length)


class Block(NamedTuple):
    """
    Entries that were encoded together.

    Args:
        path: The file.

        offset: Where they start in it, in bytes.

        length: How many bytes they take.
    """

    path: Path
    offset: int
    length: int

    def read(self) -> bytes:
        """Return the encoded entries."""
        with self.path.open("rb", buffering=0) as stream:
            return _read(stream, self.offset, self.length)


def _read(stream: FileIO, offset: int, length: int) -> bytes:
    data = read_at(stream.fileno(), offset, length)
    assert len(data) == length  # noqa: S101 - the file is ours alone
    return data


def _blocks(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each block of a segment starts and ends."""
    end = 0
    while end < len(data):
        start = end + _LENGTH
        end = start + int.from_bytes(data[end:start], "big")
        yield start, end


class Spill:
    """
    Collects entries and gives them back by partition; every main run lies in one partition.

    Args:
        path: Where entries go when they no longer fit; must not exist.

        partitions: How many partitions there are.

        budget_bytes: How much may be held in memory.
    """

    def __init__(self, path: Path, *, partitions: int, budget_bytes: int) -> None:
        self._path = path
        self._budget_bytes = budget_bytes
        self._held_bytes = 0
        self._held: list[list[bytes]] = [[] for _ in range(partitions)]
        self._segments: list[list[Segment]] = [[] for _ in range(partitions)]
        self._stream: BinaryIO | None = None
        self._encoder = msgspec.msgpack.Encoder()

    def add(self, entries: Sequence[Entry], partition: int) -> None:
        """
        Take some entries of a partition; they are encoded at once, while they are still near.

        Args:
            entries: The entries.

            partition: The `partition_of` their main run.
        """
        for first in range(0, len(entries), BLOCK_LINES):
            block = self._encoder.encode(entries[first : first + BLOCK_LINES])
            self._held[partition].append(block)
            self._held_bytes += len(block)
        if self._held_bytes > self._budget_bytes:
            self._write_out()

    def partitions(self) -> list[Partition]:
        """Return what was collected, each partition from its file and from memory; nothing may be added after this."""
        if self._stream is not None:
            self._write_out()
        return [
            Partition([(self._path, segments)] if segments else [], held)
            for segments, held in zip(self._segments, self._held, strict=True)
        ]

    def spilled(self) -> Spilled:
        """Write out all that was collected and return where it is; nothing may be added after this."""
        self._write_out()
        self.close()
        return Spilled(self._path, self._segments)

    def close(self) -> None:
        """Let go of the file; what was written stays."""
        if self._stream is not None:
            self._stream.close()

    def _write_out(self) -> None:
        with writing(self._path):
            if self._stream is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                self._stream = os.fdopen(descriptor, "wb", buffering=1 << 20)
            for held, segments in zip(self._held, self._segments, strict=True):
                if held:
                    segments.append(self._write(self._stream, held))
                    held.clear()
            self._stream.flush()
        self._held_bytes = 0

    def _write(self, stream: BinaryIO, blocks: Sequence[bytes]) -> Segment:
        start = stream.tell()
        for block in _merged(blocks):
            stream.write(len(block).to_bytes(_LENGTH, "big"))
            stream.write(block)
        return Segment(start, stream.tell() - start)


def _merged(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same entries in fewer blocks: what one batch of lines adds to a partition can be a single entry."""
    pieces: list[bytes] = []
    lines = 0
    for block in blocks:
        count, head = _array_of(block)
        if lines + count > BLOCK_LINES:
            yield _array_head(lines) + b"".join(pieces)
            pieces, lines = [], 0
        pieces.append(block[head:])
        lines += count
    if pieces:
        yield _array_head(lines) + b"".join(pieces)


def _array_of(block: bytes) -> tuple[int, int]:
    """How many items a msgpack array of at most 65,535 has, and in how many bytes that is said."""
    if block[0] == _ARRAY_16:
        return int.from_bytes(block[1:3], "big"), 3
    return block[0] & 0x0F, 1


def _array_head(items: int) -> bytes:
    return bytes((_ARRAY_16,)) + items.to_bytes(2, "big")
