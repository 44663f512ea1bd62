"""Convert: a closed set of log files into runs, kept lines and a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import BinaryIO, Literal

from attrs import frozen

from ethogram.clock import Clock, utc_now
from ethogram.rundir import RunDirectory
from vinaya_bridge.entry import Place
from vinaya_bridge.errors import InputError
from vinaya_bridge.extents import whole_files
from vinaya_bridge.files import Discovery, Notice, discover
from vinaya_bridge.gather import ExtentRow, Gatherer, Tally
from vinaya_bridge.index import OutputIndex
from vinaya_bridge.kept import ORIGIN, KeptStore
from vinaya_bridge.ledger import JsonValue, Term
from vinaya_bridge.lines import read_slice
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import Output
from vinaya_bridge.places import check_output_not_inside_inputs, spool_stdin
from vinaya_bridge.placing import Placed, Placer, decide
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest, relay_drafts
from vinaya_bridge.report import Report, RunCounts, build_report, keeps_lines_whole, total_before
from vinaya_bridge.scan import Aside, Scanner, ScanOptions
from vinaya_bridge.spill import Partition, Spill, partition_count
from vinaya_bridge.stamp import Stamp, timestamp

_MEMORY_BUDGET_BYTES = 64 << 20

Progress = Callable[[int, int], None]
"""Told how many bytes were read, and of how many."""


@frozen
class ConvertOptions:
    """
    How to convert.

    Args:
        mapping: Name of a shipped mapping, or the path of a file.

        overlays: Mapping files whose rules replace those of the mapping.

        clock: Gives the sink's ``ts``; not asked with ``stamp="source"``.

        stamp: ``wall``: ``ts`` is the clock's; ``source``: it is the time of the line.

        origin: ``ids``: events name their line; ``full``: the first event of a line carries it whole, and lines
            without events are kept, so that `restore` can give the log back.

        include_selftest: Whether the producer's self-test lines are events like any other.

        memory_budget_bytes: About how much may be held before it goes to ``OUT/state``.

        command: What was typed, for the report.
    """

    mapping: str | Path = "core"
    overlays: Sequence[Path] = ()
    clock: Clock = utc_now
    stamp: Literal["wall", "source"] = "wall"
    origin: Literal["ids", "full"] = "ids"
    include_selftest: bool = False
    memory_budget_bytes: int = _MEMORY_BUDGET_BYTES
    command: Sequence[str] = ()

    def made_by(self) -> dict[str, JsonValue]:
        """Return what the report says of the options, so that the output can be verified later."""
        return {
            "command": list(self.command),
            "overlays": [str(overlay) for overlay in self.overlays],
            "origin": self.origin,
            "include_selftest": self.include_selftest,
        }


def convert(
    inputs: Sequence[str | Path],
    out: str | Path,
    options: ConvertOptions | None = None,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
) -> Report:
    """
    Convert log files into *out*; what is there already is added to, never repeated.

    Args:
        inputs: Directories and files; ``-`` is *stdin*.

        out: The output directory; made where it does not exist.

        options: How.

        progress: Told how far reading has come.

        stdin: What ``-`` stands for; it is copied to ``OUT/state`` while it is read.

    Returns:
        The call's report, as it was also written to ``OUT/report.json``.

    Raises:
        ConfigurationError: A mapping, an option or an argument is wrong; nothing was read.

        SinkError: The output cannot be written; the same call, made again, goes on from there.
    """
    options = options or ConvertOptions()
    output = Output(Path(out))
    check_output_not_inside_inputs(output.root, [each for each in inputs if each != "-"])
    mapping = load_mapping(options.mapping, overlays=options.overlays)
    with output.locked():
        previous = output.read_report()
        stdin_copy = spool_stdin(stdin, output.state) if stdin is not None and "-" in inputs else None
        paths = [stdin_copy if each == "-" and stdin_copy is not None else each for each in inputs]
        conversion = Conversion(output, discover(paths, exclude=output.root), mapping, options)
        try:
            conversion.scan(progress)
            conversion.place()
            conversion.finish()
        finally:
            conversion.close()
            if stdin_copy is not None:
                stdin_copy.unlink()
        report = conversion.report(previous)
        output.write_report(report.data)
    return report


class Conversion:
    """
    One call's work on one output, in three steps: `scan`, `place`, `finish`.

    Args:
        output: Where to; locked by the caller.

        discovery: The files to read.

        mapping: What to make of their lines.

        options: How.
    """

    def __init__(
        self, output: Output, discovery: Discovery, mapping: CompiledMapping, options: ConvertOptions
    ) -> None:
        self._options = options
        self._whole_lines = options.origin == "full"
        self._mapping = mapping
        self._files = discovery.files
        self._notices = list(discovery.notices)
        self._started_at = options.clock()
        self._extents = whole_files(self._files)
        self._first_lines: list[int] = []
        self._tally = Tally()
        self._partitions: list[Partition] = []
        self._pending: list[Place] = []
        self._conflicts: list[tuple[str, Place | None, Place]] = []
        self._file_rows: list[dict[str, JsonValue]] = []
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self._stamp = Stamp(source=options.stamp == "source")
        self._sink = RunDirectory(output.runs, clock=self._stamp, durability="batch", repair_torn_tail=True)
        self._kept = KeptStore(output.kept)
        self._index = _index_of(output)
        self._held = {
            Term.CONVERTED.value: 0 if self._index is None else self._index.lines(),
            **self._kept.counts(),
        }
        self._open_before = 0 if self._index is None else self._index.open_runs()
        self._work = output.clear("work")
        self._placer = Placer(
            self._sink,
            self._stamp,
            index=self._index,
            whole_lines=self._whole_lines,
            fills_in=self._whole_lines and not keeps_lines_whole(output.read_report()),
        )

    # ------------------------------------------------------------------------------------ reading

    def scan(self, progress: Progress | None) -> None:
        """Read every line once: keep what gives no events, collect the rest by main run."""
        total_bytes = sum(extent.size_bytes for extent in self._extents)
        partitions = partition_count(total_bytes)
        spill = Spill(
            self._work / "entries", partitions=partitions, budget_bytes=self._options.memory_budget_bytes
        )
        reader = Reader()
        options = ScanOptions(include_selftest=self._options.include_selftest, whole_lines=self._whole_lines)
        gatherer = Gatherer(
            reader,
            Scanner(reader, self._mapping, options),
            spill,
            partitions=partitions,
            take_aside=self._set_aside,
            whole_lines=self._whole_lines,
        )
        done_bytes = 0

        def advance(bytes_read: int) -> None:
            if progress is not None:
                progress(done_bytes + bytes_read, total_bytes)

        rows: list[ExtentRow] = []
        for source, extent in enumerate(self._extents):
            self._first_lines.append(0)
            rows.append(gatherer.read(extent, source, advance))
            done_bytes += rows[-1].bytes_read
        self._partitions = spill.partitions()
        spill.close()
        self._tally.merge(gatherer.tally)
        self._note_files(rows)

    def _note_files(self, rows: Sequence[ExtentRow]) -> None:
        for extent, row in zip(self._extents, rows, strict=True):
            if row.fault is not None:
                self._notices.append(row.fault)
            self._file_rows.append(
                {
                    "path": extent.file.name,
                    "bytes": row.bytes_read,
                    "lines": row.lines,
                    "sha256": row.sha256,
                }
            )

    def _set_aside(self, aside: Aside) -> None:
        if aside.term is Term.CONVERTED:
            self._keep(aside.raw, aside.place, ORIGIN)
            return
        if aside.term is Term.PENDING:
            self._pending.append(aside.place)
        if aside.refusal is not None or (self._whole_lines and aside.term is Term.PENDING):
            self._keep(aside.raw, aside.place, aside.term, aside.code, aside.path, aside.reason)
        if aside.refusal is not None:
            self._tell(aside.refusal)

    def _keep(
        self,
        raw: bytes,
        place: Place,
        why: str,
        code: str | None = None,
        path: str | None = None,
        reason: str | None = None,
    ) -> None:
        name, line = self._named(place)
        self._kept.add(
            raw,
            file=name,
            line=line,
            offset=place.offset,
            why=str(why),
            code=code,
            path=path,
            reason=reason,
        )

    def _tell(self, refusal: Refusal) -> None:
        self._refusals.setdefault(refusal.key(), refusal)

    def _named(self, place: Place) -> tuple[str, int]:
        """The name of the file in which a line lies, and the line's number in it."""
        return self._extents[place.file].file.name, self._first_lines[place.file] + place.line

    # ------------------------------------------------------------------------------------ placing

    def place(self) -> None:
        """Settle identities, order each main run's lines, and append their events."""
        decided = decide(self._partitions, self._tally.spread.suspects())
        for partition in self._partitions:
            if not partition.is_empty:
                self._stamp.now = self._options.clock()
                self._take(self._placer.place(partition, decided))
                partition.held.clear()

    def _take(self, placed: Placed) -> None:
        ledger = self._tally.ledger
        ledger.terms.update(placed.terms)
        ledger.unmapped.update(placed.unmapped)
        ledger.events.update(placed.events)
        for left in placed.left_out:
            if left.why == Term.CONFLICT:
                self._conflicts.append((left.identity, left.stays, left.place))
            raw = self._again(left.place)
            if raw is None:
                continue
            self._keep(raw, left.place, left.why)
            if left.cause is not None:
                self._tell(
                    Refusal(
                        REFUSED_TYPE,
                        left.cause,
                        line_digest(raw),
                        left.run,
                        source_type=left.name,
                        seq=left.seq,
                    )
                )

    def _again(self, place: Place) -> bytes | None:
        """The bytes of a line that was read before; None, and a notice, where the file has changed meanwhile."""
        file = self._extents[place.file].file
        try:
            return read_slice(file, place.offset, place.length)
        except InputError as error:
            self._notices.append(Notice(file.name, error.code, error.message))
            return None

    # ------------------------------------------------------------------------------------ finishing

    def finish(self) -> None:
        """Tell what was refused, and make everything durable."""
        told = frozenset[tuple[str, str]]() if self._index is None else self._index.told(self._refusals)
        opened = self._sink.last_seq(RELAY_RUN) > 0
        drafts = relay_drafts(self._refusals.values(), already=told, opened=opened)
        events = self._tally.ledger.events
        self._counts = RunCounts(self._open_before, events["run.started"], events["run.finished"])
        events.update(draft.type for draft in drafts)
        self._stamp.now = self._options.clock()
        if self._options.stamp == "source":
            self._stamp.now = timestamp(self._tally.latest_us or 0)
        self._stamp.append(self._sink, RELAY_RUN, drafts)
        self._kept.sync()
        self._sink.sync()

    def report(self, previous: Mapping[str, JsonValue] | None) -> Report:
        """Return the call's report."""
        return build_report(
            ledger=self._tally.ledger,
            before=total_before(previous, self._held),
            files=self._file_rows,
            pending=[self._named(place) for place in self._pending],
            conflicts=[
                {
                    "identity": identity,
                    "stays": None if stays is None else list(self._named(stays)),
                    "kept": list(self._named(kept)),
                }
                for identity, stays, kept in self._conflicts
            ],
            runs=self._counts,
            notices=self._notices,
            mapping=self._mapping,
            made_by=self._options.made_by(),
            started_at=self._started_at,
            ended_at=self._options.clock(),
        )

    def close(self) -> None:
        """Give back what is held; what was appended stays."""
        if self._work.is_dir():
            rmtree(self._work)
        self._kept.close()
        self._sink.close()
        if self._index is not None:
            self._index.close()


def _index_of(output: Output) -> OutputIndex | None:
    """What the output holds already; None for an empty one, which needs no looking up."""
    if not output.runs.is_dir() or not any(output.runs.iterdir()):
        return None
    output.cut_torn_logs()
    index = OutputIndex(output.state / "identities.sqlite", output.runs)
    index.refresh()
    return index
