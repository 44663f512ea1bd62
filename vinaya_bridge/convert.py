"""Convert: a closed set of log files into runs, kept lines and a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import BinaryIO, Literal

from attrs import frozen

from ethogram.clock import Clock, utc_now
from ethogram.rundir import RunDirectory
from vinaya_bridge.asides import Aside
from vinaya_bridge.collecting import Collector, Progress
from vinaya_bridge.entry import Place
from vinaya_bridge.errors import InputError
from vinaya_bridge.files import Discovery, Notice, discover, paths_of, too_long
from vinaya_bridge.index import OutputIndex
from vinaya_bridge.jobs import WORTH_IT_BYTES, default_jobs, in_order, processes
from vinaya_bridge.kept import ORIGIN, SETTLED, KeptStore
from vinaya_bridge.ledger import JsonValue, Term
from vinaya_bridge.leftovers import Again, read_again
from vinaya_bridge.lines import MAX_LINE_BYTES
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import Output, writing
from vinaya_bridge.places import check_output_not_inside_inputs, spool_stdin
from vinaya_bridge.placing import Decided, LeftOut, Placed, Placer, decide
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest, note, relay_drafts
from vinaya_bridge.report import (
    Report,
    RunCounts,
    build_report,
    check_same_mapping,
    keeps_lines_whole,
    total_before,
)
from vinaya_bridge.scan import ScanOptions
from vinaya_bridge.sinks.base import sink_faults
from vinaya_bridge.spill import Partition
from vinaya_bridge.stamp import Stamp, timestamp
from vinaya_bridge.workers import PlaceTask, Workplace, place, uncollected

__all__ = ["Conversion", "ConvertOptions", "Progress", "convert"]

_MEMORY_BUDGET_BYTES = 16 << 20


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

        jobs: How many processes work; None: as many as the machine has cores. The output does not depend on it.

        memory_budget_bytes: About how much may be held before it goes to ``OUT/state``.

        max_line_bytes: How long a line may be, without its newline; a longer one is pending, and named.

        command: What was typed, for the report.
    """

    mapping: str | Path = "core"
    overlays: Sequence[Path] = ()
    clock: Clock = utc_now
    stamp: Literal["wall", "source"] = "wall"
    origin: Literal["ids", "full"] = "ids"
    include_selftest: bool = False
    jobs: int | None = None
    memory_budget_bytes: int = _MEMORY_BUDGET_BYTES
    max_line_bytes: int = MAX_LINE_BYTES
    command: Sequence[str] = ()

    def made_by(self) -> dict[str, JsonValue]:
        """Return what the report says of the options, so that the output can be verified later."""
        return {
            "command": list(self.command),
            "overlays": [str(overlay) for overlay in self.overlays],
            "origin": self.origin,
            "include_selftest": self.include_selftest,
            "max_line_bytes": self.max_line_bytes,
        }


def convert(
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    options: ConvertOptions | None = None,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    executor: Executor | None = None,
) -> Report:
    """
    Convert log files into *out*; what is there already is added to, never repeated.

    Args:
        inputs: Directories and files, or one of them; ``-`` is *stdin*.

        out: The output directory; made where it does not exist.

        options: How.

        progress: Told how far reading has come.

        stdin: What ``-`` stands for; it is copied to ``OUT/state`` while it is read.

        executor: Does the work in place of processes of this machine, be the input large or small. Its workers have
            to find inputs and *out* under the paths that they have here.

    Returns:
        The call's report, as it was also written to ``OUT/report.json``.

    Raises:
        ConfigurationError: A mapping, an option or an argument is wrong; nothing was read.

        SinkError: The output cannot be written, or a worker was lost; the same call, made again, goes on from there.
    """
    options = options or ConvertOptions()
    output = Output(Path(out))
    inputs = paths_of(inputs)
    check_output_not_inside_inputs(output.root, [each for each in inputs if each != "-"])
    mapping = load_mapping(options.mapping, overlays=options.overlays)
    with output.locked() as lock, uncollected():
        previous = output.read_report()
        check_same_mapping(previous, mapping, place=str(output.root))
        stdin_copy = spool_stdin(stdin, output.state) if stdin is not None and "-" in inputs else None
        paths = [stdin_copy if each == "-" and stdin_copy is not None else each for each in inputs]
        with sink_faults(output.root):
            discovery = discover(paths, exclude=output.root)
            conversion = Conversion(
                output, discovery, mapping, options, lock=lock, executor=executor, progress=progress
            )
            try:
                conversion.scan()
                conversion.place()
                conversion.keep_left_out()
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
        output: Where to.

        discovery: The files to read.

        mapping: What to make of their lines.

        options: How.

        lock: The descriptor with which the caller holds the output.

        executor: Does the work, where it is not for this process or for others of this machine.

        progress: Told how far reading has come.
    """

    def __init__(
        self,
        output: Output,
        discovery: Discovery,
        mapping: CompiledMapping,
        options: ConvertOptions,
        *,
        lock: int,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._options = options
        self._whole_lines = options.origin == "full"
        self._mapping = mapping
        self._notices = list(discovery.notices)
        self._started_at = options.clock()
        self._pending: list[Place] = []
        self._conflicts: list[tuple[str, Place | None, Place]] = []
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self._left_out: list[LeftOut] = []
        self._stamp = Stamp(source=options.stamp == "source")
        self._sink = RunDirectory(output.runs, clock=self._stamp, durability="batch", repair_torn_tail=True)
        self._kept = KeptStore(output.kept)
        self._index = _index_of(output)
        self._held = {
            Term.CONVERTED.value: 0 if self._index is None else self._index.lines(),
            **self._kept.counts(),
        }
        self._open_before = 0 if self._index is None else self._index.open_runs()
        self._work = _cleared(output.state / "work").absolute()
        self._lock = lock
        self._collector = Collector(
            discovery.files,
            mapping,
            ScanOptions(
                include_selftest=options.include_selftest,
                whole_lines=self._whole_lines,
                max_line_bytes=options.max_line_bytes,
            ),
            budget_bytes=options.memory_budget_bytes,
            take_aside=self._set_aside,
            progress=progress,
        )
        self._partitions: list[Partition] = []
        self._executor = executor
        self._pool: ProcessPoolExecutor | None = None
        self._workplace: Workplace | None = None
        self._placer = Placer(
            self._sink,
            self._stamp,
            self._work,
            index=self._index,
            whole_lines=self._whole_lines,
            fills_in=self._whole_lines and not keeps_lines_whole(output.read_report()),
            late=self._kept.late,
        )

    # ------------------------------------------------------------------------------------ reading

    def scan(self) -> None:
        """Read every line once: keep what gives no events, collect the rest by main run."""
        jobs = self._options.jobs or default_jobs()
        if self._executor is None and jobs > 1 and self._collector.total_bytes >= WORTH_IT_BYTES:
            self._executor = self._pool = processes(jobs, lock=self._lock)
        if self._executor is None:
            self._partitions = self._collector.here(self._work / "entries")
            return
        workplace = Workplace(self._work, token_hex(16), is_elsewhere=self._pool is None)
        workplace.make()
        self._workplace = workplace
        self._partitions = self._collector.elsewhere(self._executor, workplace, jobs)

    def _set_aside(self, aside: Aside) -> None:
        if aside.term is Term.CONVERTED:
            self._keep(aside.raw, aside.place, ORIGIN)
            return
        if aside.term is Term.PENDING:
            self._pending.append(aside.place)
        if aside.is_passed_over:
            file, line = self._collector.named(aside.place)
            self._notices.append(too_long(file, line, aside.place.length, self._options.max_line_bytes))
            return
        if aside.refusal is not None or (self._whole_lines and aside.term is Term.PENDING):
            self._keep(aside.raw, aside.place, aside.term, aside.code, aside.path, aside.reason)
        if aside.refusal is not None:
            note(self._refusals, aside.refusal)

    def _keep(
        self,
        raw: bytes,
        place: Place,
        why: str,
        code: str | None = None,
        path: str | None = None,
        reason: str | None = None,
        identity: str | None = None,
    ) -> None:
        name, line = self._collector.named(place)
        self._kept.add(
            raw,
            file=name,
            line=line,
            offset=place.offset,
            why=str(why),
            code=code,
            path=path,
            reason=reason,
            identity=identity,
        )

    # ------------------------------------------------------------------------------------ placing

    def place(self) -> None:
        """Settle identities, order each main run's lines, and append their events."""
        decided = decide(self._partitions, self._collector.tally.spread.suspects())
        partitions = [partition for partition in self._partitions if not partition.is_empty]
        if self._executor is not None and self._workplace is not None and self._index is None:
            self._place_elsewhere(self._executor, self._workplace, partitions, decided)
            return
        for partition in partitions:
            self._stamp.now = self._options.clock()
            self._take(self._placer.place(partition, decided))
            partition.held.clear()

    def _place_elsewhere(
        self, executor: Executor, workplace: Workplace, partitions: Sequence[Partition], decided: Decided
    ) -> None:
        """Place partitions in folders of their own and take over the runs: no run is ever written twice."""
        tasks = [
            PlaceTask(
                workplace,
                partition,
                decided,
                self._options.clock(),
                self._options.stamp == "source",
                self._whole_lines,
            )
            for partition in partitions
        ]
        for result in in_order(executor, place, tasks):
            self._sink.adopt(result.runs)
            self._take(result.placed)

    def _take(self, placed: Placed) -> None:
        ledger = self._collector.tally.ledger
        ledger.terms.update(placed.terms)
        ledger.unmapped.update(placed.unmapped)
        ledger.events.update(placed.events)
        self._left_out.extend(placed.left_out)

    def keep_left_out(self) -> None:
        """Read the lines again that gave no events for what others said, to keep and to tell them."""
        by_file: dict[Path, list[LeftOut]] = {}
        self._left_out.sort(key=lambda left: (left.place.file, left.place.offset))
        for left in self._left_out:
            by_file.setdefault(self._collector.file_of(left.place).path, []).append(left)
            if left.why == Term.CONFLICT:
                self._conflicts.append((left.identity, left.stays, left.place))
        reader = Reader()
        for path in sorted(by_file):
            file = self._collector.file_of(by_file[path][0].place)
            for again in read_again(file, by_file[path], reader):
                if isinstance(again, InputError):
                    self._notices.append(Notice(file.name, again.code, again.message))
                else:
                    self._keep_again(again)

    def _keep_again(self, again: Again) -> None:
        left = again.left
        code, reason = SETTLED.get(left.why, (None, None))
        identity = left.identity if left.why == Term.LATE else None
        self._keep(again.raw, left.place, left.why, code, None, reason, identity)
        if left.cause is not None:
            digest = line_digest(again.record)
            refusal = Refusal(
                REFUSED_TYPE, left.cause, digest, left.run, source_type=left.name, code=code, seq=left.seq
            )
            note(self._refusals, refusal)

    # ------------------------------------------------------------------------------------ finishing

    def finish(self) -> None:
        """Tell what was refused, and make everything durable."""
        told = frozenset[tuple[str, str]]() if self._index is None else self._index.told(self._refusals)
        opened = self._sink.last_seq(RELAY_RUN) > 0
        drafts = relay_drafts(self._refusals.values(), already=told, opened=opened)
        events = self._collector.tally.ledger.events
        self._counts = RunCounts(self._open_before, events["run.started"], events["run.finished"])
        events.update(draft.type for draft in drafts)
        self._stamp.now = self._options.clock()
        if self._options.stamp == "source":
            self._stamp.now = timestamp(self._collector.tally.latest_us or 0)
        self._stamp.append(self._sink, RELAY_RUN, drafts)
        self._kept.sync()
        self._sink.sync()

    def report(self, previous: Mapping[str, JsonValue] | None) -> Report:
        """Return the call's report."""
        return build_report(
            ledger=self._collector.tally.ledger,
            before=total_before(previous, self._held),
            files=self._collector.file_rows(),
            pending=[self._collector.named(place) for place in self._pending],
            conflicts=[
                {
                    "identity": identity,
                    "stays": None if stays is None else list(self._collector.named(stays)),
                    "kept": list(self._collector.named(kept)),
                }
                for identity, stays, kept in self._conflicts
            ],
            runs=self._counts,
            notices=[*self._notices, *self._collector.faults()],
            mapping=self._mapping,
            made_by=self._options.made_by(),
            started_at=self._started_at,
            ended_at=self._options.clock(),
        )

    def close(self) -> None:
        """Give back what is held; what was appended stays."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
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


def _cleared(folder: Path) -> Path:
    """The path of a working folder, where nothing stands any more of what a killed call left."""
    with writing(folder):
        if folder.exists():
            # A worker of that call may be about to end, and still write: into a folder that nobody reads.
            folder.rename(folder.with_name(f"{folder.name}-{token_hex(8)}"))
        for left in folder.parent.glob(f"{folder.name}-*"):
            rmtree(left, ignore_errors=True)
    return folder
