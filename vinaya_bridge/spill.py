"""Entries by main run, in memory while they are few, on disk when they are many."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from vinaya_bridge.entry import Entry
from vinaya_bridge.output import writing

_PARTITIONS = 64
_FRAME = 4


class Key(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    What dedupe and order need of an entry, and where the entry itself lies in its partition.

    Args:
        identity: See `Entry`.

        digest: See `Entry`.

        main_run: See `Entry`.

        process: See `Entry`.

        seq: See `Entry`.

        instant_us: See `Entry`.

        at: Position of the entry in its partition: an index in memory, an offset in bytes on disk.

        size: Of the encoded entry in bytes; 0 in memory.
    """

    identity: str
    digest: str
    main_run: str
    process: str
    seq: int
    instant_us: int | None
    at: int
    size: int


class Partition:
    """
    The entries of some main runs, each main run whole.

    Args:
        entries: Those in memory, where nothing was spilled.

        path: Stem of the partition's files, where it was.
    """

    def __init__(self, entries: list[Entry] | None, path: Path | None) -> None:
        self._entries = entries
        self._path = path
        self._bodies: BinaryIO | None = None
        self._decoder = msgspec.msgpack.Decoder(Entry)

    def keys(self) -> Iterator[Key]:
        """Yield the key of each entry, in the order in which they were added."""
        if self._entries is not None:
            for at, entry in enumerate(self._entries):
                yield Key(
                    entry.identity,
                    entry.digest,
                    entry.main_run,
                    entry.process,
                    entry.seq,
                    entry.instant_us,
                    at,
                    0,
                )
        elif self._path is not None:
            decode = msgspec.msgpack.Decoder(Key).decode
            with self._path.with_suffix(".keys").open("rb") as stream:
                while head := stream.read(_FRAME):
                    yield decode(stream.read(int.from_bytes(head, "big")))

    def entry(self, key: Key) -> Entry:
        """Return an entry by its key."""
        if self._entries is not None:
            return self._entries[key.at]
        if self._bodies is None:
            assert self._path is not None  # noqa: S101 - a partition has entries or a path
            self._bodies = self._path.with_suffix(".entries").open("rb", buffering=1 << 16)
        self._bodies.seek(key.at)
        return self._decoder.decode(self._bodies.read(key.size))

    def close(self) -> None:
        """Close and forget what was read."""
        if self._bodies is not None:
            self._bodies.close()


class Spill:
    """
    Collects entries and gives them back by partition; every main run lies in one partition.

    Args:
        folder: Where partitions go when they no longer fit; must not exist. Removed by `close`.

        budget_bytes: How much may be held in memory, roughly.
    """

    def __init__(self, folder: Path, *, budget_bytes: int) -> None:
        self._folder = folder
        self._budget_bytes = budget_bytes
        self._held_bytes = 0
        self._held: list[list[Entry]] = [[] for _ in range(_PARTITIONS)]
        self._sizes = [0] * _PARTITIONS
        self._spilled = False
        self._partition_of: dict[str, int] = {}

    def add(self, entry: Entry, size_bytes: int) -> None:
        """
        Take one entry.

        Args:
            entry: The entry.

            size_bytes: About how much memory it takes.
        """
        main_run = entry.main_run
        partition = self._partition_of.get(main_run)
        if partition is None:
            partition = zlib.crc32(main_run.encode("utf-8")) % _PARTITIONS
            if len(self._partition_of) < 10_000:
                self._partition_of[main_run] = partition
        self._held[partition].append(entry)
        self._held_bytes += size_bytes
        if self._held_bytes > self._budget_bytes:
            self._write_out()

    def _write_out(self) -> None:
        encoder = msgspec.msgpack.Encoder()
        with writing(self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for partition, entries in enumerate(self._held):
                if not entries:
                    continue
                keys, bodies, at = bytearray(), bytearray(), self._sizes[partition]
                for entry in entries:
                    body = encoder.encode(entry)
                    key = encoder.encode(
                        (
                            entry.identity,
                            entry.digest,
                            entry.main_run,
                            entry.process,
                            entry.seq,
                            entry.instant_us,
                            at,
                            len(body),
                        )
                    )
                    keys += len(key).to_bytes(_FRAME, "big") + key
                    bodies += body
                    at += len(body)
                self._sizes[partition] = at
                _append(self._path(partition).with_suffix(".entries"), bodies)
                _append(self._path(partition).with_suffix(".keys"), keys)
                entries.clear()
        self._held_bytes = 0
        self._spilled = True

    def _path(self, partition: int) -> Path:
        return self._folder / f"{partition:03d}"

    def partitions(self) -> Iterator[Partition]:
        """Yield the partitions that hold anything; nothing may be added after this."""
        if self._spilled:
            self._write_out()
        for partition in range(_PARTITIONS):
            if self._spilled and self._sizes[partition]:
                yield Partition(None, self._path(partition))
            elif self._held[partition]:
                yield Partition(self._held[partition], None)

    def close(self) -> None:
        """Remove what was spilled."""
        for partition in range(_PARTITIONS):
            self._held[partition].clear()
            for suffix in (".entries", ".keys"):
                self._path(partition).with_suffix(suffix).unlink(missing_ok=True)
        if self._folder.is_dir():
            self._folder.rmdir()


def _append(path: Path, data: bytearray) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "ab", buffering=0) as stream:
        view = memoryview(data)
        while view:
            view = view[stream.write(view) :]
