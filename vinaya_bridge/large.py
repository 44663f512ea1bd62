"""Main runs that do not fit in memory: settled and ordered with the help of a database that is thrown away."""

from __future__ import annotations

import sqlite3
from array import array
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from vinaya_bridge.entry import Entry, EntryKey
from vinaya_bridge.order import BEFORE_ALL
from vinaya_bridge.settle import fingerprints, settle
from vinaya_bridge.spill import BLOCK_LINES, Partition

LARGE_BYTES = 16 << 20
"""The size on disk from which on a partition is not taken into memory."""

_CACHE_KIB = 8 << 10
_BLOCKS_IN_MEMORY = 64
_BUCKETS = 64
_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE lines (
  run INTEGER, process TEXT, seq INTEGER, identity TEXT, at INTEGER, instant_us INTEGER,
  PRIMARY KEY (run, process, seq, identity, at)
) WITHOUT ROWID;
CREATE TABLE unsure (
  run INTEGER, identity TEXT, at INTEGER, digest TEXT, process TEXT, seq INTEGER, instant_us INTEGER, staying TEXT,
  PRIMARY KEY (run, identity, at)
) WITHOUT ROWID;
CREATE TABLE turns (
  seen_us INTEGER, rank INTEGER, at INTEGER,
  PRIMARY KEY (seen_us, rank)
) WITHOUT ROWID;
"""

StayingOf = Callable[[Sequence[EntryKey]], Mapping[str, str]]
"""Given some lines, the digest of what is known to stay under the identity of each; others are left out."""


class _Unsure(NamedTuple):
    """A line whose identity may occur twice: what settling it depends on."""

    identity: str
    at: int
    digest: str
    process: str
    seq: int
    instant_us: int | None


class Conflict(NamedTuple):
    """
    A line whose identity stays with another content.

    Args:
        entry: The line.

        stays: The line that stays; None where it is not among these.
    """

    entry: Entry
    stays: Entry | None


class LargePartition:
    """
    The entries of a partition, on disk; its memory does not grow with them but for 8 bytes a line.

    Args:
        partition: All of it spilled.

        folder: Where the database may lie.

        staying_of: What is known to stay.
    """

    def __init__(self, partition: Partition, folder: Path, staying_of: StayingOf) -> None:
        self._blocks = list(partition.places())
        self._folder = Path(mkdtemp(prefix="order-", dir=folder))
        self._database = sqlite3.connect(self._folder / "lines.sqlite", isolation_level=None)
        self._database.executescript(f"PRAGMA cache_size = -{_CACHE_KIB}; {_SCHEMA}")
        self._in_memory: OrderedDict[int, list[Entry]] = OrderedDict()
        self._decode = msgspec.msgpack.Decoder(list[Entry]).decode
        self._decode_keys = msgspec.msgpack.Decoder(list[EntryKey]).decode
        self._runs: dict[str, int] = {}
        self._duplicates: Counter[int] = Counter()
        self._conflicts: dict[int, list[tuple[int, int, int | None]]] = {}
        self._settle(self._load(), staying_of)

    def __enter__(self) -> Self:
        """Use as a context manager: what lies on the disk is removed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the database."""
        self._database.close()
        rmtree(self._folder, ignore_errors=True)

    def main_runs(self) -> list[str]:
        """Return the main runs, in the order in which they were first met."""
        return list(self._runs)

    def duplicates(self, main_run: str) -> int:
        """Return how many lines of a main run repeat another one."""
        return self._duplicates[self._runs[main_run]]

    def conflicts(self, main_run: str) -> Iterator[Conflict]:
        """Yield the lines of a main run whose identity stays with another content."""
        for _, at, stays in sorted(self._conflicts.get(self._runs[main_run], ()), key=lambda row: row[:2]):
            yield Conflict(self._entry(at), None if stays is None else self._entry(stays))

    def in_order(self, main_run: str) -> Iterator[Entry]:
        """
        Yield the lines of a main run that stay, as `vinaya_bridge.order.in_order` orders them.

        Args:
            main_run: One of `main_runs`.
        """
        self._database.execute("DELETE FROM turns")
        self._database.executemany("INSERT INTO turns VALUES (?, ?, ?)", self._turns(self._runs[main_run]))
        for (at,) in self._database.execute("SELECT at FROM turns ORDER BY seen_us, rank"):
            yield self._entry(at)

    def _turns(self, run: int) -> Iterator[tuple[int, int, int]]:
        rows = self._database.execute(
            "SELECT process, instant_us, at FROM lines WHERE run = ? ORDER BY process, seq, identity", (run,)
        )
        rank = 0
        for _, lines in groupby(rows, key=lambda row: row[0]):
            seen_us = BEFORE_ALL
            for _, instant_us, at in lines:
                if instant_us is not None and instant_us > seen_us:
                    seen_us = instant_us
                yield seen_us, rank, at
                rank += 1

    # ------------------------------------------------------------------------------------ settling

    def _keys(self) -> Iterator[tuple[int, list[EntryKey]]]:
        """The keys of each block, with the place of the first."""
        for number, block in enumerate(self._blocks):
            yield number * BLOCK_LINES, self._decode_keys(block.read())

    def _load(self) -> frozenset[int]:
        """Take in the keys of all lines; return the fingerprints of the identities that occur twice."""
        marks = [array("Q") for _ in range(_BUCKETS)]
        self._database.execute("BEGIN")
        for first, keys in self._keys():
            for mark in fingerprints(key.identity for key in keys):
                marks[(mark >> 32) % _BUCKETS].append(mark)
            self._database.executemany(
                "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (self._number(key.main_run), key.process, key.seq, key.identity, at, key.instant_us)
                    for at, key in enumerate(keys, first)
                ),
            )
        self._database.execute("COMMIT")
        return frozenset(mark for bucket in marks for mark in _repeated(bucket))

    def _number(self, main_run: str) -> int:
        return self._runs.setdefault(main_run, len(self._runs))

    def _settle(self, repeated: frozenset[int], staying_of: StayingOf) -> None:
        self._database.execute("BEGIN")
        for first, keys in self._keys():
            staying = staying_of(keys)
            if not staying and not repeated:
                continue
            marks = fingerprints(key.identity for key in keys)
            self._database.executemany(
                "INSERT INTO unsure VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    (
                        self._number(key.main_run),
                        key.identity,
                        at,
                        key.digest,
                        key.process,
                        key.seq,
                        key.instant_us,
                        staying.get(key.identity),
                    )
                    for at, (key, mark) in enumerate(zip(keys, marks, strict=True), first)
                    if mark in repeated or key.identity in staying
                ),
            )
        rows = self._database.execute(
            "SELECT run, identity, at, digest, process, seq, instant_us, staying FROM unsure ORDER BY run, identity, at"
        )
        for (run, identity), group in groupby(rows, key=lambda row: row[:2]):
            self._settle_one(run, identity, list(group))
        self._database.execute("COMMIT")

    def _settle_one(self, run: int, identity: str, rows: Sequence[tuple[object, ...]]) -> None:
        lines = [_Unsure._make(row[1:7]) for row in rows]
        staying = rows[0][7]
        settled = settle(lines, {identity: staying} if isinstance(staying, str) else {})
        self._duplicates[run] += len(settled.duplicates)
        stays = settled.stay[0].at if settled.stay else None
        for line in settled.conflicts:
            self._conflicts.setdefault(run, []).append((lines[0].at, line.at, stays))
        self._database.executemany(
            "DELETE FROM lines WHERE run = ? AND process = ? AND seq = ? AND identity = ? AND at = ?",
            (
                (run, line.process, line.seq, line.identity, line.at)
                for line in (*settled.duplicates, *settled.conflicts)
            ),
        )

    def _entry(self, at: int) -> Entry:
        number, index = divmod(at, BLOCK_LINES)
        entries = self._in_memory.get(number)
        if entries is None:
            entries = self._in_memory[number] = self._decode(self._blocks[number].read())
            if len(self._in_memory) > _BLOCKS_IN_MEMORY:
                self._in_memory.popitem(last=False)
        else:
            self._in_memory.move_to_end(number)
        return entries[index]


def _repeated(marks: Iterable[int]) -> set[int]:
    seen: set[int] = set()
    repeated: set[int] = set()
    for mark in marks:
        (repeated if mark in seen else seen).add(mark)
    return repeated
