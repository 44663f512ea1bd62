"""Convert: a closed set of log files into runs, kept lines and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from attrs import frozen

from ethogram import CanonicalDraft
from ethogram.clock import Clock, utc_now
from ethogram.rundir import RunDirectory
from vinaya_bridge.entry import Act, Entry, Place
from vinaya_bridge.errors import InputError
from vinaya_bridge.files import Discovery, LogFile, Notice, discover
from vinaya_bridge.index import OutputIndex
from vinaya_bridge.kept import ORIGIN, KeptStore
from vinaya_bridge.ledger import JsonValue, Ledger, Term
from vinaya_bridge.lines import read_lines, read_slice
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.naming import RELAY_RUN, dispatch_run_id
from vinaya_bridge.order import in_order, precedence
from vinaya_bridge.output import Output
from vinaya_bridge.places import check_output_not_inside_inputs, spool_stdin
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest, relay_drafts
from vinaya_bridge.report import Report, RunCounts, build_report, keeps_lines_whole, total_before
from vinaya_bridge.runs import Append, Known, MainRun, missing_emits
from vinaya_bridge.scan import Aside, Scanned, Scanner, ScanOptions
from vinaya_bridge.settle import Spread, settle
from vinaya_bridge.spill import Key, Partition, Spill
from vinaya_bridge.stamp import Stamp

_MEMORY_BUDGET_BYTES = 64 << 20
_BUFFER_BYTES = 4 << 20

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
        self._fills_in = self._whole_lines and not keeps_lines_whole(output.read_report())
        self._mapping = mapping
        self._files = discovery.files
        self._notices = list(discovery.notices)
        self._started_at = options.clock()
        self._reader = Reader()
        scan_options = ScanOptions(include_selftest=options.include_selftest, whole_lines=self._whole_lines)
        self._scanner = Scanner(self._reader, mapping, scan_options)
        self._ledger = Ledger()
        self._file_rows: list[dict[str, JsonValue]] = []
        self._pending: list[tuple[str, int]] = []
        self._conflicts: list[dict[str, JsonValue]] = []
        self._refusals: dict[tuple[str, str], Refusal] = {}
        self._latest_us: int | None = None
        self._stamp = Stamp(options.clock, source=options.stamp == "source")
        self._sink = RunDirectory(output.runs, clock=self._stamp, durability="batch", repair_torn_tail=True)
        self._kept = KeptStore(output.kept)
        self._index = _index_of(output)
        self._held = {
            Term.CONVERTED.value: 0 if self._index is None else self._index.lines(),
            **self._kept.counts(),
        }
        self._counts = RunCounts(open_before=0 if self._index is None else self._index.open_runs())
        self._spill = Spill(output.clear("spill"), budget_bytes=options.memory_budget_bytes)
        self._spread = Spread()
        self._buffer: dict[str, list[CanonicalDraft]] = {}
        self._buffered_bytes = 0

    # ------------------------------------------------------------------------------------ reading

    def scan(self, progress: Progress | None) -> None:
        """Read every line once: keep what gives no events, collect the rest by main run."""
        total = sum(_size(file) for file in self._files)
        done = 0
        for index, file in enumerate(self._files):
            reader = read_lines(file)
            for batch in reader.read_batches():
                for line in batch.lines():
                    for outcome in self._scanner.scan(line, index):
                        if isinstance(outcome, Scanned):
                            self._collect(outcome, len(line.raw))
                        else:
                            self._set_aside(outcome)
                if progress is not None:
                    progress(done + reader.bytes_read, total)
            done += reader.bytes_read
            if reader.fault is not None:
                self._notices.append(reader.fault)
            self._file_rows.append(
                {
                    "path": file.name,
                    "bytes": reader.bytes_read,
                    "lines": reader.lines,
                    "sha256": reader.sha256,
                }
            )

    def _collect(self, scanned: Scanned, size_bytes: int) -> None:
        entry, line, raw, is_whole = scanned
        if not is_whole:
            self._keep(raw, entry.place, ORIGIN)
        ledger = self._ledger
        ledger.read += 1
        ledger.saw(entry.process, entry.seq, (line.schema, line.record.meta.vinaya, line.trust))
        instant = entry.instant_us
        if instant is not None and (self._latest_us is None or instant > self._latest_us):
            self._latest_us = instant
        self._spread.add(entry.identity, entry.main_run)
        self._spill.add(entry, 2 * size_bytes + 1024)

    def _set_aside(self, aside: Aside) -> None:
        self._ledger.read += 1
        self._ledger.settle(aside.term)
        if aside.term is Term.PENDING:
            self._pending.append((self._files[aside.place.file].name, aside.place.line))
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
        self._kept.add(
            raw,
            file=self._files[place.file].name,
            line=place.line,
            offset=place.offset,
            why=str(why),
            code=code,
            path=path,
            reason=reason,
        )

    def _tell(self, refusal: Refusal) -> None:
        self._refusals.setdefault(refusal.key(), refusal)

    # ------------------------------------------------------------------------------------ placing

    def place(self) -> None:
        """Settle identities, order each main run's lines, and append their events."""
        partitions = list(self._spill.partitions())
        decided, places = self._decide_spread(partitions)
        for partition in partitions:
            groups: dict[str, list[Key]] = {}
            for key in partition.keys():  # noqa: SIM118 - a partition is no mapping
                groups.setdefault(key.main_run, []).append(key)
            for main_run, keys in groups.items():
                self._place_main_run(main_run, keys, partition, decided, places)
            partition.close()
        self._flush()

    def _decide_spread(
        self, partitions: Iterable[Partition]
    ) -> tuple[Mapping[str, str], Mapping[str, Place]]:
        """Settle the identities that occur under several main runs, before any of these is settled."""
        suspects = self._spread.suspects()
        least: dict[str, Key] = {}
        places: dict[str, Place] = {}
        for partition in partitions if suspects else ():
            for key in partition.keys():  # noqa: SIM118 - a partition is no mapping
                if hash(key.identity) not in suspects:
                    continue
                best = least.get(key.identity)
                if best is None or precedence(key, key.digest) < precedence(best, best.digest):
                    least[key.identity] = key
                    places[key.identity] = partition.entry(key).place
        return {identity: key.digest for identity, key in least.items()}, places

    def _place_main_run(
        self,
        main_run: str,
        keys: Sequence[Key],
        partition: Partition,
        decided: Mapping[str, str],
        places: Mapping[str, Place],
    ) -> None:
        known: Mapping[str, Known] = {}
        past = None
        if self._index is not None:
            known = self._index.known(key.identity for key in keys)
            past = self._index.facts(main_run)
        staying = {key.identity: decided[key.identity] for key in keys if key.identity in decided}
        staying.update((identity, line.digest) for identity, line in known.items())
        settled = settle(keys, staying)
        self._ledger.settle(Term.DUPLICATE, len(settled.duplicates))
        if settled.conflicts:
            stay = {key.identity: key for key in settled.stay}
            for key in settled.conflicts:
                winner = stay.get(key.identity)
                place = places.get(key.identity) if winner is None else partition.entry(winner).place
                self._conflict(partition.entry(key), None if key.identity in known else place)
        run = MainRun(main_run, past)
        for key in in_order(settled.stay):
            self._place_line(run, partition.entry(key), known.get(key.identity))
        self._append(run.finish())

    def _place_line(self, run: MainRun, entry: Entry, known: Known | None) -> None:
        ledger = self._ledger
        if entry.act >= Act.UNMAPPED:
            self._leave_out(entry)
            return
        if self._fills_in and known is not None:
            self._keep_again(entry, ORIGIN)
        if known is not None and not missing_emits(entry, known):
            ledger.settle(Term.DUPLICATE)
            return
        appends = run.take(entry, known)
        if appends is None:
            ledger.settle(Term.LATE)
            self._refuse(entry, Term.LATE, "finished")
            return
        ledger.settle(Term.CONVERTED if known is None else Term.DUPLICATE)
        self._append(appends)

    def _leave_out(self, entry: Entry) -> None:
        term = Term.SELF_TEST if entry.act == Act.SELF_TEST else Term.UNMAPPED
        self._ledger.settle(term)
        if term is Term.UNMAPPED:
            self._ledger.unmapped[entry.name] += 1
        if self._whole_lines:
            self._keep_again(entry, term)

    def _keep_again(self, entry: Entry, why: str) -> None:
        if (raw := self._again(entry)) is not None:
            self._keep(raw, entry.place, why)

    def _conflict(self, entry: Entry, stays: Place | None) -> None:
        self._ledger.settle(Term.CONFLICT)
        self._conflicts.append(
            {
                "identity": entry.identity,
                "stays": None if stays is None else [self._files[stays.file].name, stays.line],
                "kept": [self._files[entry.place.file].name, entry.place.line],
            }
        )
        self._refuse(entry, Term.CONFLICT, "duplicate")

    def _refuse(self, entry: Entry, term: Term, cause: str) -> None:
        """Keep an event line that came too late, or under an identity that is taken; tell it once."""
        if (raw := self._again(entry)) is None:
            return
        self._keep(raw, entry.place, term)
        run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
        self._tell(Refusal(REFUSED_TYPE, cause, line_digest(raw), run, source_type=entry.name, seq=entry.seq))

    def _again(self, entry: Entry) -> bytes | None:
        """The bytes of a line that was read before; None, and a notice, where the file has changed meanwhile."""
        place = entry.place
        file = self._files[place.file]
        try:
            return read_slice(file, place.offset, place.length)
        except InputError as error:
            self._notices.append(Notice(file.name, error.code, error.message))
            return None

    # ------------------------------------------------------------------------------------ appending

    def _append(self, appends: Iterable[Append]) -> None:
        for append in appends:
            self._counts.count(append.type)
            self._ledger.events[append.type] += 1
            self._buffer.setdefault(append.run_id, []).append(
                CanonicalDraft(append.type, append.payload, append.captured_at)
            )
            self._buffered_bytes += len(append.payload)
        if self._buffered_bytes > _BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        for run_id, drafts in self._buffer.items():
            self._stamp.append(self._sink, run_id, drafts)
        self._buffer.clear()
        self._buffered_bytes = 0

    def finish(self) -> None:
        """Tell what was refused, and make everything durable."""
        told = frozenset[tuple[str, str]]() if self._index is None else self._index.told(self._refusals)
        opened = self._sink.last_seq(RELAY_RUN) > 0
        drafts = relay_drafts(self._refusals.values(), already=told, opened=opened)
        for draft in drafts:
            self._ledger.events[draft.type] += 1
        self._stamp.latest_us = self._latest_us
        self._stamp.append(self._sink, RELAY_RUN, drafts)
        self._kept.sync()
        self._sink.sync()

    def report(self, previous: Mapping[str, JsonValue] | None) -> Report:
        """Return the call's report."""
        return build_report(
            ledger=self._ledger,
            before=total_before(previous, self._held),
            files=self._file_rows,
            pending=self._pending,
            conflicts=self._conflicts,
            runs=self._counts,
            notices=self._notices,
            mapping=self._mapping,
            made_by=self._options.made_by(),
            started_at=self._started_at,
            ended_at=self._options.clock(),
        )

    def close(self) -> None:
        """Give back what is held; what was appended stays."""
        self._spill.close()
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


def _size(file: LogFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0
