"""Collecting: every line of an input read once, by this process or by others, and its entries by partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path

from attrs import evolve

from vinaya_bridge.entry import Place
from vinaya_bridge.extents import cut, extent_bytes_for, tasks_of, whole_files
from vinaya_bridge.files import LogFile, Notice
from vinaya_bridge.gather import ExtentRow, Gatherer, TakeAside, Tally
from vinaya_bridge.jobs import in_order
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.lines import digest_of_file
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import CompiledMapping
from vinaya_bridge.mapping.render import render
from vinaya_bridge.scan import Scanner, ScanOptions
from vinaya_bridge.spill import Partition, Segment, Spill, partition_count
from vinaya_bridge.workers import GatherTask, Workplace, gather, read_asides

Progress = Callable[[int, int], None]
"""Told how many bytes were read, and of how many."""


class Collector:
    """
    Reads the files of one call: with `here` or with `elsewhere`, once.

    Args:
        files: What to read, in order.

        mapping: What to make of their lines.

        options: What to make of lines that not everyone wants.

        budget_bytes: How much may be held in memory before it goes to the disk, roughly.

        take_aside: Told of each line that gives no entry, in the order of the files.

        progress: Told how far reading has come, or None.
    """

    def __init__(
        self,
        files: Iterable[LogFile],
        mapping: CompiledMapping,
        options: ScanOptions,
        *,
        budget_bytes: int,
        take_aside: TakeAside,
        progress: Progress | None,
    ) -> None:
        self._extents = whole_files(files)
        self._mapping = mapping
        self._options = options
        self._budget_bytes = budget_bytes
        self._take_aside = take_aside
        self._progress = progress
        self._done_bytes = 0
        self._rows: list[ExtentRow] = []
        self._lines_before: list[int] = []
        self._hashes: dict[int, str] = {}
        self.total_bytes = sum(extent.size_bytes for extent in self._extents)
        self._partitions = partition_count(self.total_bytes)
        self.tally = Tally()

    # ------------------------------------------------------------------------------------ reading

    def here(self, spill_file: Path) -> list[Partition]:
        """
        Read all in this process.

        Args:
            spill_file: Where entries go that do not fit in memory.

        Returns:
            The entries.
        """
        spill = Spill(spill_file, partitions=self._partitions, budget_bytes=self._budget_bytes)
        reader = Reader()
        gatherer = Gatherer(
            reader,
            Scanner(reader, self._mapping, self._options),
            spill,
            partitions=self._partitions,
            take_aside=self._take_aside,
            whole_lines=self._options.whole_lines,
            max_line_bytes=self._options.max_line_bytes,
        )
        for source, extent in enumerate(self._extents):
            self._lines_before.append(0)
            self._note(gatherer.read(extent, source, self._advance))
        partitions = spill.partitions()
        spill.close()
        self.tally = gatherer.tally
        return partitions

    def elsewhere(self, executor: Executor, workplace: Workplace, jobs: int) -> list[Partition]:
        """
        Read in other processes, large files in parts.

        Args:
            executor: Where.

            workplace: Where they leave what they make.

            jobs: How many there are.

        Returns:
            The entries.
        """
        extent_bytes = extent_bytes_for(self.total_bytes, jobs)
        whole = (evolve(extent, file=_absolute(extent.file)) for extent in self._extents)
        self._extents = cut(whole, extent_bytes)
        results = in_order(executor, gather, list(self._tasks(workplace, extent_bytes)))
        pieces: list[list[tuple[Path, Sequence[Segment]]]] = [[] for _ in range(self._partitions)]
        for gathered in results:
            if not self._rows:  # the work goes on meanwhile
                self._hashes = {
                    extent.number: digest_of_file(extent.file) for extent in self._extents if extent.start
                }
            for row in gathered.rows:
                self._lines_before.append(self._lines_up_to(len(self._rows)))
                self._note(row)
            for aside in read_asides(gathered.asides):
                self._take_aside(aside)
            self.tally.merge(gathered.tally)
            for piece, segments in zip(pieces, gathered.spilled.segments, strict=True):
                if segments:
                    piece.append((gathered.spilled.path, segments))
        return [Partition(piece) for piece in pieces]

    def _tasks(self, workplace: Workplace, extent_bytes: int) -> Iterator[GatherTask]:
        mapping = (self._mapping.name, render(self._mapping.table))
        for sources in tasks_of(self._extents, extent_bytes):
            extents = [(source, self._extents[source]) for source in sources]
            yield GatherTask(workplace, extents, mapping, self._options, self._partitions, self._budget_bytes)

    def _lines_up_to(self, source: int) -> int:
        """How many lines of its file lie before an extent."""
        if not self._extents[source].start:
            return 0
        return self._lines_before[source - 1] + self._rows[source - 1].lines

    def _note(self, row: ExtentRow) -> None:
        self._rows.append(row)
        self._advance(row.bytes_read)
        self._done_bytes += row.bytes_read

    def _advance(self, bytes_read: int) -> None:
        if self._progress is not None:
            self._progress(self._done_bytes + bytes_read, self.total_bytes)

    # ------------------------------------------------------------------------------------ afterwards

    def file_of(self, place: Place) -> LogFile:
        """Return the file in which a line lies."""
        return self._extents[place.file].file

    def named(self, place: Place) -> tuple[str, int]:
        """Return the name of the file in which a line lies, and the line's number in it."""
        return self._extents[place.file].file.name, self._lines_before[place.file] + place.line

    def faults(self) -> list[Notice]:
        """Return what ended the reading of a file early."""
        return [row.fault for row in self._rows if row.fault is not None]

    def file_rows(self) -> list[dict[str, JsonValue]]:
        """Return what the report says of each file."""
        rows: list[dict[str, JsonValue]] = []
        bytes_read = lines = 0
        for extent, row in zip(self._extents, self._rows, strict=True):
            if not extent.start:
                bytes_read = lines = 0
                rows.append({"path": extent.file.name})
            bytes_read += row.bytes_read
            lines += row.lines
            sha256 = self._hashes.get(extent.number, row.sha256)
            rows[-1].update({"bytes": bytes_read, "lines": lines, "sha256": sha256})
        return rows


def _absolute(file: LogFile) -> LogFile:
    """The file under a path that a process of another working directory finds too."""
    return evolve(file, path=file.path.absolute())
