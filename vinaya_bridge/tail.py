"""Tail: an open set of log files into the same runs, exactly once (design, section 7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

import msgspec
from attrs import Factory, define, frozen

from ethogram import CanonicalDraft
from vinaya_bridge.checkpoint import CHECKPOINT_VERSION, Checkpoint, decode_checkpoint
from vinaya_bridge.entry import Act
from vinaya_bridge.files import Notice
from vinaya_bridge.follow import Follower, Lag, Poll
from vinaya_bridge.gaps import Gap
from vinaya_bridge.growing import FollowedLine
from vinaya_bridge.holes import Arrival, Holes
from vinaya_bridge.kept import KeptStore
from vinaya_bridge.ledger import JsonValue, Ledger, Term
from vinaya_bridge.lines import PhysicalLine
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import load_mapping
from vinaya_bridge.naming import RELAY_RUN, dispatch_run_id
from vinaya_bridge.order import in_order
from vinaya_bridge.output import Output
from vinaya_bridge.places import check_output_not_inside_inputs
from vinaya_bridge.relay import REFUSED_TYPE, Lost, Refusal, line_digest, opening_draft, relay_drafts
from vinaya_bridge.report import RunCounts, build_report
from vinaya_bridge.runs import Append, MainRun, missing_emits
from vinaya_bridge.scan import Aside, Scanner, ScanOptions
from vinaya_bridge.settle import settle
from vinaya_bridge.sinks import TailSink, open_sink
from vinaya_bridge.stamp import timestamp

_IDLE_MAIN_RUNS = 256
_REPORT_EVERY_SECONDS = 5.0

Now = Callable[[], float]
"""The time in seconds since 1970."""


@frozen
class TailPoll:
    """
    What one poll did.

    Args:
        new: Identities of the lines of which the first event became durable in this poll, in order.

        gaps: What the log once held, or may have held, and can no longer be read.

        notices: What is wrong with an input.

        refused: Lines that were kept in this poll, with file, line and reason.

        opened: Runs that started.

        finished: Runs that ended, with their outcome's event.

        more: Whether there is more to read at once.
    """

    new: list[str]
    gaps: list[Gap]
    notices: list[Notice]
    refused: list[tuple[str, int | None, str]]
    opened: list[str]
    finished: list[str]
    more: bool


class Status(NamedTuple):
    """
    Where a tail stands.

    Args:
        lag: Of its follower.

        lines: The equation's terms of this call.

        events: How many events were appended in this call.

        last_event: Type of the last event and its ``capturedAt``, or None.

        waiting: Lines that wait for a hole to be filled.
    """

    lag: Lag
    lines: dict[str, int]
    events: int
    last_event: tuple[str, str] | None
    waiting: int


@define
class _Batch:
    """What one poll is about to make durable."""

    appends: list[Append] = Factory(list)
    refusals: dict[tuple[str, str], Refusal] = Factory(dict)
    refused: list[tuple[str, int | None, str]] = Factory(list)


class Tail:
    """
    Follows log files and appends what they say, exactly once, whatever is killed when.

    One look is a `poll`. What it reads becomes durable together with the position after it; lines in a half-filled
    hole and ends of runs that are not quiet yet are part of the position. Memory does not grow with uptime: what is
    durable is looked up where it is stored.

    Args:
        paths: Directories and files; they need not exist yet.

        out: The output directory; it must not lie inside a path.

        mapping: Name of a shipped mapping, or the path of a file.

        overlays: Mapping files whose rules replace those of the mapping.

        sink: ``None`` or ``runs`` for ``OUT/runs``, ``sqlite:FILE``, ``jsonl:FILE``, ``-`` for standard output.

        now: The only clock it reads, in seconds since 1970.

        settle_seconds: How long a hole is waited for, and how long a run must be quiet before it is closed.

        start: ``start`` reads what is there already; ``now`` passes over it on a first start.

        include_selftest: Whether the producer's self-test lines are events like any other.

        command: What was typed, for the report.

    Raises:
        ConfigurationError: A mapping, an option or an argument is wrong.

        SinkError: Another process writes to this output, or it cannot be written.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        out: str | Path,
        *,
        mapping: str | Path = "core",
        overlays: Sequence[Path] = (),
        sink: str | None = None,
        now: Now = time.time,
        settle_seconds: float = 5.0,
        start: Literal["start", "now"] = "start",
        include_selftest: bool = False,
        command: Sequence[str] = (),
    ) -> None:
        output = Output(Path(out))
        check_output_not_inside_inputs(output.root, paths)
        self._now = now
        self._settle_seconds = settle_seconds
        self._mapping = load_mapping(mapping, overlays=overlays)
        self._made_by: dict[str, JsonValue] = {
            "command": list(command),
            "overlays": [str(overlay) for overlay in overlays],
            "origin": "ids",
            "include_selftest": include_selftest,
        }
        self._scanner = Scanner(Reader(), self._mapping, ScanOptions(include_selftest=include_selftest))
        self._lock = output.locked()
        self._lock.__enter__()
        try:
            self._open(output, paths, sink, from_now=start == "now")
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise

    def _open(self, output: Output, paths: Sequence[str | Path], sink: str | None, *, from_now: bool) -> None:
        self._output = output
        self._previous = output.read_report()
        self._started_at = self._timestamp()
        self._sink: TailSink = open_sink(sink, output, clock=self._timestamp)
        self._recovered = self._sink.recovered()
        saved = decode_checkpoint(self._sink.checkpoint())
        self._follower = Follower(
            paths,
            settle_seconds=self._settle_seconds,
            state=None if saved is None else saved.follower,
            from_now=from_now,
            exclude=output.root,
        )
        self._holes = Holes(self._settle_seconds, () if saved is None else saved.waiting)
        self._main_runs: dict[str, MainRun] = {}
        for held in () if saved is None else saved.held:
            self._main_run(held.ends[0].main_run).hold(held)
        self._kept = KeptStore(output.kept)
        self._ledger = Ledger()
        self._counts = RunCounts(open_before=self._sink.index.open_runs())
        self._last_event: tuple[str, str] | None = None
        self._reported_at = self._now()
        self._reported_lines = 0
        self._committed: bytes | None = None
        self._closed = False

    def _timestamp(self) -> str:
        return timestamp(int(self._now() * 1_000_000))

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    # ------------------------------------------------------------------------------------ one look

    def poll(self) -> TailPoll:
        """
        Read what came since the last poll, and make what it says durable.

        Returns:
            What was done.

        Raises:
            SinkError: The output cannot be written. The position has not moved: open a new `Tail` and go on.
        """
        now = self._now()
        return self._advance(self._follower.poll(now), now)

    def settle(self) -> TailPoll:
        """
        Do what waiting for the settle time would do: fill no hole any more, and close the runs that ended.

        Returns:
            What was done.

        Raises:
            SinkError: As `poll`.
        """
        now = self._now() + self._settle_seconds
        return self._advance(self._follower.poll(now), now)

    def _advance(self, poll: Poll, now: float) -> TailPoll:
        batch = _Batch()
        arrivals = list(self._arrivals(poll.lines, batch, now))
        lossy = frozenset(gap.stream for gap in poll.gaps)
        admitted = self._holes.admit(self._settled(arrivals, batch), now, lossy)
        self._place(admitted, batch, now)
        for main_run in self._main_runs.values():
            batch.appends.extend(main_run.finish_quiet(now, self._settle_seconds))
        new = [*self._recovered, *self._new_identities(batch)]
        self._commit(batch, poll.gaps)
        self._recovered = []
        self._forget_idle()
        if now - self._reported_at >= _REPORT_EVERY_SECONDS and self._ledger.read != self._reported_lines:
            self._report()
        return TailPoll(
            new=new,
            gaps=list(poll.gaps),
            notices=list(poll.notices),
            refused=batch.refused,
            opened=[append.run_id for append in batch.appends if append.type == "run.started"],
            finished=[append.run_id for append in batch.appends if append.type == "run.finished"],
            more=poll.more,
        )

    def _arrivals(self, lines: Iterable[FollowedLine], batch: _Batch, now: float) -> Iterator[Arrival]:
        """Read the lines; set aside what gives no events."""
        for line in lines:
            physical = PhysicalLine(line.number or 0, line.offset, line.raw, True, line.record)
            for outcome in self._scanner.scan(physical, 0):
                if isinstance(outcome, Aside):
                    self._set_aside(outcome, line, batch)
                    continue
                entry, event, raw = outcome
                header = (event.schema, event.record.meta.vinaya, event.trust)
                self._ledger.saw(entry.process, entry.seq, header)
                yield Arrival(entry, raw, line.name, line.number, line.stream, now)

    def _set_aside(self, aside: Aside, line: FollowedLine, batch: _Batch) -> None:
        self._count(aside.term)
        if aside.refusal is not None:
            batch.refusals.setdefault(aside.refusal.key(), aside.refusal)
            batch.refused.append((line.name, line.number, f"{aside.code or aside.term}: {aside.reason}"))
            self._kept.add(
                aside.raw,
                file=line.name,
                line=line.number,
                offset=aside.place.offset,
                why=aside.term,
                code=aside.code,
                path=aside.path,
                reason=aside.reason,
            )

    def _count(self, term: Term) -> None:
        self._ledger.read += 1
        self._ledger.settle(term)

    def _settled(self, arrivals: Sequence[Arrival], batch: _Batch) -> list[Arrival]:
        """Drop repeats of what is durable, of what waits and of each other; keep what conflicts."""
        known = self._sink.index.known(arrival.identity for arrival in arrivals)
        pending = {
            entry.identity: entry.digest
            for main_run in self._main_runs.values()
            for held in main_run.held()
            for entry in (*held.ends, *held.waiting)
        }
        pending.update((arrival.identity, arrival.digest) for arrival in self._holes.waiting())
        staying = pending | {identity: line.digest for identity, line in known.items()}
        settled = settle(arrivals, staying)
        for _ in settled.duplicates:
            self._count(Term.DUPLICATE)
        for arrival in settled.conflicts:
            self._refuse(arrival, Term.CONFLICT, "duplicate", batch)
        fresh: list[Arrival] = []
        for arrival in settled.stay:
            identity = arrival.identity
            held = known.get(identity)
            if identity in pending or (held is not None and not missing_emits(arrival.entry, held)):
                self._count(Term.DUPLICATE)
            else:
                fresh.append(arrival)
        return fresh

    def _place(self, admitted: Sequence[Arrival], batch: _Batch, now: float) -> None:
        """Order the lines whose turn has come, and let each main run say where their events go."""
        groups: dict[str, list[Arrival]] = {}
        for arrival in admitted:
            groups.setdefault(arrival.entry.main_run, []).append(arrival)
        known = self._sink.index.known(arrival.identity for arrival in admitted)
        for main_run, arrivals in groups.items():
            run = self._main_run(main_run)
            for arrival in in_order(arrivals):
                entry = arrival.entry
                if entry.act >= Act.UNMAPPED:
                    self._leave_out(arrival)
                    continue
                appends = run.take(entry, known.get(entry.identity), now=now)
                if appends is None:
                    self._refuse(arrival, Term.LATE, "finished", batch)
                    continue
                self._count(Term.CONVERTED)
                batch.appends.extend(appends)

    def _leave_out(self, arrival: Arrival) -> None:
        term = Term.SELF_TEST if arrival.entry.act == Act.SELF_TEST else Term.UNMAPPED
        self._count(term)
        if term is Term.UNMAPPED:
            self._ledger.unmapped[arrival.entry.name] += 1

    def _refuse(self, arrival: Arrival, term: Term, cause: str, batch: _Batch) -> None:
        """Keep an event line that came too late, or under an identity that is taken; tell it once."""
        entry = arrival.entry
        self._count(term)
        self._kept.add(arrival.raw, file=arrival.file, line=arrival.line, offset=entry.place.offset, why=term)
        run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
        digest = line_digest(arrival.raw)
        refusal = Refusal(REFUSED_TYPE, cause, digest, run, source_type=entry.name, seq=entry.seq)
        batch.refusals.setdefault(refusal.key(), refusal)
        batch.refused.append((arrival.file, arrival.line, f"{term}: {entry.name}"))

    # ------------------------------------------------------------------------------------ durable

    def _new_identities(self, batch: _Batch) -> list[str]:
        """The lines of which the batch holds the first event, in order."""
        named = dict.fromkeys(append.identity for append in batch.appends if append.identity is not None)
        known = self._sink.index.known(named)
        return [identity for identity in named if identity not in known]

    def _commit(self, batch: _Batch, gaps: Sequence[Gap]) -> None:
        """Make kept lines durable, then events and position as one."""
        already = self._sink.index.told(batch.refusals)
        opened = self._sink.last_seq(RELAY_RUN) > 0
        told = relay_drafts(batch.refusals.values(), already=already, opened=opened)
        for gap in gaps:
            lost = Lost(gap.stream, gap.code.id, gap.offset, gap.line)
            told += [lost.draft()] if told or opened else [opening_draft(), lost.draft()]
        events = [
            (append.run_id, CanonicalDraft(append.type, append.payload, append.captured_at))
            for append in batch.appends
        ]
        events += [(RELAY_RUN, draft) for draft in told]
        checkpoint = self._checkpoint()
        if not events and checkpoint == self._committed:
            return
        self._kept.sync()
        self._sink.commit(events, checkpoint)
        self._committed = checkpoint
        for append in batch.appends:
            self._counts.count(append.type)
            self._last_event = (append.type, append.captured_at)
        for _, draft in events:
            self._ledger.events[draft.type] += 1

    def _checkpoint(self) -> bytes:
        saved = Checkpoint(
            CHECKPOINT_VERSION,
            self._follower.state(),
            self._holes.waiting(),
            [held for main_run in self._main_runs.values() for held in main_run.held()],
        )
        return msgspec.msgpack.encode(saved)

    def _main_run(self, main_run: str) -> MainRun:
        known = self._main_runs.pop(main_run, None)
        if known is None:
            known = MainRun(main_run, self._sink.index.facts(main_run))
        self._main_runs[main_run] = known  # the one used last stands last
        return known

    def _forget_idle(self) -> None:
        """Let go of the main runs used longest ago: they are made again from the output."""
        idle = [name for name, main_run in self._main_runs.items() if not main_run.held()]
        for name in idle[: max(0, len(idle) - _IDLE_MAIN_RUNS)]:
            del self._main_runs[name]

    # ------------------------------------------------------------------------------------ telling

    def status(self) -> Status:
        """Return where it stands, as of the last poll."""
        return Status(
            self._follower.lag(),
            self._ledger.lines(),
            self._ledger.events.total(),
            self._last_event,
            len(self._holes.waiting()),
        )

    def _report(self) -> None:
        report = build_report(
            ledger=self._ledger,
            previous=self._previous,
            files=[],
            pending=[],
            conflicts=[],
            runs=self._counts,
            notices=[],
            mapping=self._mapping,
            made_by=self._made_by,
            started_at=self._started_at,
            ended_at=self._timestamp(),
        )
        self._output.write_report(report.data)
        self._reported_at, self._reported_lines = self._now(), self._ledger.read

    def close(self) -> None:
        """Write the report and let go of the output. What was read is durable; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._report()
        finally:
            self._follower.close()
            self._kept.close()
            self._sink.close()
            self._lock.__exit__(None, None, None)
