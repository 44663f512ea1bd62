"""Gather: read extents of an input, map their lines, and collect entries by main run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from attrs import Factory, define, frozen

from vinaya_bridge.asides import Aside, passed_over
from vinaya_bridge.entry import Entry, Place
from vinaya_bridge.extents import Extent
from vinaya_bridge.files import Notice
from vinaya_bridge.ledger import Ledger, Term
from vinaya_bridge.lines import MAX_LINE_BYTES, LineBatch, LineReader, LongLine, PhysicalLine
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.headers import HeaderFacts
from vinaya_bridge.scan import Scanned, Scanner
from vinaya_bridge.settle import Spread, run_fingerprint
from vinaya_bridge.spill import Spill, partition_of

_REMEMBERED_RUNS = 10_000

_Version: TypeAlias = tuple[int, str, str | None]
_Found: TypeAlias = defaultdict[HeaderFacts, list[Entry]]
"""The entries of a batch, by what their lines' headers say: all those of one header have one main run."""

TakeAside = Callable[[Aside], None]
"""Told of each line that gives no events, and as ``converted`` of each that has to be kept beside its events."""

Advance = Callable[[int], None]
"""Told how many bytes of an extent were read."""


@frozen
class ExtentRow:
    """
    What was read of one extent.

    Args:
        lines: How many physical lines.

        bytes_read: How many bytes, as they are stored.

        sha256: Of these bytes, hex; empty where the extent is a part of a file.

        fault: What ended the reading early, or None.
    """

    lines: int
    bytes_read: int
    sha256: str
    fault: Notice | None


@define
class Tally:
    """
    What a part of the lines of a call says, beside the entries.

    Args:
        ledger: What was read, and what became of the lines that gave no entry.

        spread: Under which main runs identities occur.

        latest_us: The latest time of a line in microseconds since 1970, or None where none can be read.
    """

    ledger: Ledger = Factory(Ledger)
    spread: Spread = Factory(Spread)
    latest_us: int | None = None

    def merge(self, other: Tally) -> None:
        """Add what another part of the same call says."""
        self.ledger.merge(other.ledger)
        self.spread.merge(other.spread)
        if other.latest_us is not None and (self.latest_us is None or other.latest_us > self.latest_us):
            self.latest_us = other.latest_us


class Gatherer:
    """
    Reads extents one after another.

    Args:
        reader: Reads a line.

        scanner: Maps it; made of the same reader.

        spill: Collects the entries.

        partitions: How many partitions the spill has.

        take_aside: Told of what gives no entry, in order.

        whole_lines: Whether lines have to be carried whole.

        max_line_bytes: How long a line may be; a longer one is pending.
    """

    def __init__(
        self,
        reader: Reader,
        scanner: Scanner,
        spill: Spill,
        *,
        partitions: int,
        take_aside: TakeAside,
        whole_lines: bool,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._reader = reader
        self._scanner = scanner
        self._spill = spill
        self._partitions = partitions
        self._take_aside = take_aside
        self._whole_lines = whole_lines
        self._max_line_bytes = max_line_bytes
        self._runs: dict[str, tuple[int, int]] = {}
        self.tally = Tally()

    def read(self, extent: Extent, source: int, advance: Advance | None = None) -> ExtentRow:
        """
        Read one extent to its end.

        Args:
            extent: The extent.

            source: What its lines' places name as their file.

            advance: Told how far reading has come.

        Returns:
            What was read.
        """

        def take_long(line: LongLine) -> None:
            self._set_aside(passed_over(Place(source, line.number, line.offset, line.length)))

        lines = LineReader(
            extent.file,
            digest=extent.is_whole,
            start=extent.start,
            end=extent.end,
            max_line_bytes=self._max_line_bytes,
            take_long=take_long,
        )
        for batch in lines.read_batches():
            if self._whole_lines:
                self._read_whole(batch, source)
            else:
                self._read_batch(batch, source)
            if advance is not None:
                advance(lines.bytes_read)
        return ExtentRow(lines.lines, lines.bytes_read, lines.sha256, lines.fault)

    def _read_batch(self, batch: LineBatch, source: int) -> None:
        """Read the lines of a batch: the hot loop, for lines that need not be carried whole."""
        verdicts = self._reader.read_all(batch.records)
        lines = list(zip(verdicts, _places(batch, source), batch.raws, batch.records, strict=True))
        pieces = [
            (verdict, place, raw, record)
            for verdict, place, raw, record in lines
            if isinstance(verdict, EventLine)
        ]
        events = iter(self._scanner.events(pieces))
        last = batch.number + len(lines) - 1
        found: _Found = defaultdict(list)
        for verdict, place, raw, record in lines:  # once more in order: so is what is kept
            if type(verdict) is EventLine:
                entry = next(events)
                if isinstance(entry, Entry):
                    found[verdict.header].append(entry)
                else:
                    self._set_aside(entry)
            else:
                ended = place.line != last or batch.ended
                line = PhysicalLine(place.line, place.offset, raw, ended, record)
                self._take_pieces(self._scanner.pieces(verdict, line, source), found)
        self._collect(found)

    def _read_whole(self, batch: LineBatch, source: int) -> None:
        found: _Found = defaultdict(list)
        for line in batch.lines():
            self._take_pieces(self._scanner.scan(line, source), found)
        self._collect(found)

    def _take_pieces(self, pieces: Iterable[Scanned | Aside], found: _Found) -> None:
        for piece in pieces:
            if isinstance(piece, Scanned):
                if not piece.is_whole:
                    self._take_aside(Aside(Term.CONVERTED, piece.entry.place, piece.raw))
                found[piece.line.header].append(piece.entry)
            else:
                self._set_aside(piece)

    def _collect(self, found: _Found) -> None:
        """Count entries and hand them on, a header's together: what is done for each of them alone is dear."""
        tally = self.tally
        seqs: defaultdict[tuple[str, _Version], list[int]] = defaultdict(list)
        for header, entries in found.items():
            tally.ledger.read += len(entries)
            main_run = entries[0].main_run
            seqs[header.process, header.version].extend([entry.seq for entry in entries])
            times = [entry.instant_us for entry in entries if entry.instant_us is not None]
            tally.latest_us = max(
                times if tally.latest_us is None else (*times, tally.latest_us), default=None
            )
            partition, mark = self._runs.get(main_run) or self._learn(main_run)
            tally.spread.add([entry.identity for entry in entries], mark)
            self._spill.add(entries, partition)
        for (process, version), seen in seqs.items():
            tally.ledger.saw(process, sorted(seen), version)

    def _learn(self, main_run: str) -> tuple[int, int]:
        if len(self._runs) >= _REMEMBERED_RUNS:
            self._runs.clear()
        found = (partition_of(main_run, self._partitions), run_fingerprint(main_run))
        self._runs[main_run] = found
        return found

    def _set_aside(self, aside: Aside) -> None:
        self.tally.ledger.read += 1
        self.tally.ledger.settle(aside.term)
        self._take_aside(aside)


def _places(batch: LineBatch, source: int) -> Iterator[Place]:
    """Where each line of a batch lies."""
    offset = batch.offset
    for number, raw in enumerate(batch.raws, batch.number):
        length = len(raw)
        yield Place(source, number, offset, length)
        offset += length + 1
