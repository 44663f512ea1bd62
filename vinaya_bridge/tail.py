"""Tail: an open set of log files into the same runs, exactly once (design, section 7)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec
from msgspec.structs import replace

from ethogram import CanonicalDraft
from vinaya_bridge.accounts import Accounts
from vinaya_bridge.asides import Aside
from vinaya_bridge.checkpoint import CHECKPOINT_VERSION, Checkpoint, decode_checkpoint
from vinaya_bridge.entry import Act
from vinaya_bridge.errors import SinkError
from vinaya_bridge.files import TOO_LONG, paths_of
from vinaya_bridge.follow import Follower, Poll
from vinaya_bridge.gaps import Gap
from vinaya_bridge.growing import FollowedLine
from vinaya_bridge.holes import Arrival, Holes
from vinaya_bridge.kept import ORIGIN, KeptStore
from vinaya_bridge.ledger import JsonValue, Term
from vinaya_bridge.lines import MAX_LINE_BYTES, PhysicalLine
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import load_mapping
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.order import in_order
from vinaya_bridge.output import OUTPUT_UNWRITABLE, Output
from vinaya_bridge.places import check_output_not_inside_inputs
from vinaya_bridge.relay import Lost, opening_draft, relay_drafts
from vinaya_bridge.report import check_same_mapping, keeps_lines_whole, total_before
from vinaya_bridge.runs import missing_emits
from vinaya_bridge.scan import Scanner, ScanOptions
from vinaya_bridge.settle import settle
from vinaya_bridge.sinks import TailSink, open_sink, parse_sink
from vinaya_bridge.stamp import timestamp
from vinaya_bridge.steady import Now, SteadyClock
from vinaya_bridge.tail_aside import AsideKeeper
from vinaya_bridge.tail_poll import Batch, Status, TailPoll, joined
from vinaya_bridge.tail_runs import MainRuns

_REPORT_EVERY_SECONDS = 5.0
_POLL_BYTES = 4 << 20
"""A signal is looked at between polls, so this bounds how long stopping takes."""

_NOTHING_READ = Poll([], [], [], more=False)


class Tail:
    """
    Follows log files and appends what they say, exactly once, whatever is killed when.

    One look is a `poll`. What it reads becomes durable together with the position after it; lines in a half-filled
    hole and ends of runs that are not quiet yet are part of the position. Memory does not grow with uptime: what is
    durable is looked up where it is stored.

    Args:
        paths: Directories and files, or one of them; they need not exist yet.

        out: The output directory; it must not lie inside a path.

        mapping: Name of a shipped mapping, or the path of a file.

        overlays: Mapping files whose rules replace those of the mapping.

        sink: ``None`` or ``runs`` for ``OUT/runs``, ``sqlite:FILE``, ``jsonl:FILE``, ``-`` for standard output.

        now: The only clock it reads, in seconds since 1970.

        settle_seconds: How long a hole is waited for, and how long a run must be quiet before it is closed.

        start: ``start`` reads what is there already; ``now`` passes over it on a first start.

        origin: ``ids``: events name their line; ``full``: one of them carries it whole, for `restore`.

        include_selftest: Whether the producer's self-test lines are events like any other.

        max_line_bytes: How long a line may be, without its newline; a longer one is passed over, and is a gap.

        command: What was typed, for the report.

    Raises:
        ConfigurationError: A mapping, an option or an argument is wrong.

        SinkError: Another process writes to this output, or it cannot be written.
    """

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        out: str | Path,
        *,
        mapping: str | Path = "core",
        overlays: Sequence[Path] = (),
        sink: str | None = None,
        now: Now = time.time,
        settle_seconds: float = 5.0,
        start: Literal["start", "now"] = "start",
        origin: Literal["ids", "full"] = "ids",
        include_selftest: bool = False,
        max_line_bytes: int = MAX_LINE_BYTES,
        command: Sequence[str] = (),
    ) -> None:
        self._output = output = Output(Path(out))
        paths = paths_of(paths)
        check_output_not_inside_inputs(output.root, paths)
        sink_spec = parse_sink(sink)
        if sink_spec.file is not None:
            check_output_not_inside_inputs(sink_spec.file, paths)
        self._wall = now
        self._clock = SteadyClock(now)
        self._settle_seconds = settle_seconds
        compiled = load_mapping(mapping, overlays=overlays)
        self._whole_lines = origin == "full"
        scan_options = ScanOptions(include_selftest=include_selftest, whole_lines=self._whole_lines)
        self._scanner = Scanner(Reader(), compiled, scan_options)
        made_by: dict[str, JsonValue] = {
            "command": list(command),
            "overlays": [str(overlay) for overlay in overlays],
            "origin": origin,
            "include_selftest": include_selftest,
            "max_line_bytes": max_line_bytes,
            "sink": str(sink_spec),
        }
        with ExitStack() as opened:
            opened.enter_context(output.locked())
            self._sink: TailSink = open_sink(sink_spec, output, clock=self._timestamp)
            opened.callback(self._sink.close)
            self._kept = opened.enter_context(closing(KeptStore(output.kept)))
            index, report, position = self._sink.index, output.read_report(), self._sink.checkpoint()
            check_same_mapping(report, compiled, place=str(output.root))
            saved = decode_checkpoint(position)
            if saved is not None and self._kept.index_bytes < saved.kept_bytes:
                position = saved = None  # lines that were kept are gone: they have to be read again
            lines = index.lines()
            self._fills_in = self._whole_lines and not keeps_lines_whole(report)
            self._accounts = Accounts(
                output,
                compiled,
                made_by,
                before=total_before(
                    report,
                    {Term.CONVERTED: lines, **self._kept.counts()},
                    None if saved is None else saved.total,
                ),
                open_before=index.open_runs(),
                started_at=self._timestamp(),
            )
            self._aside = AsideKeeper(self._kept, self._accounts, whole_lines=self._whole_lines)
            self._restore(saved)
            self._follower = Follower(
                paths,
                settle_seconds=settle_seconds,
                state=position if saved is None else saved.follower,
                from_now=start == "now" and report is None and position is None and not lines,
                exclude=output.root,
                poll_bytes=_POLL_BYTES,
                max_line_bytes=max_line_bytes,
            )
            opened.callback(self._follower.close)
            self._closing = opened.pop_all()

    def _restore(self, saved: Checkpoint | None) -> None:
        """Take up what was read and not written when the tail before this one stopped."""
        now = self._clock()
        self._main_runs = MainRuns(self._sink.index)
        self._holes = Holes(self._settle_seconds)
        if saved is not None:
            waiting = [replace(each, since=min(each.since, now)) for each in saved.waiting]
            self._holes = Holes(self._settle_seconds, waiting, saved.seen)
            for held in saved.held:
                last_activity = min(held.last_activity, now)
                self._main_runs.hold(replace(held, last_activity=last_activity))
        self._recovered = self._sink.recovered()
        self._committed: bytes | None = None
        self._reported_at = now
        self._is_broken = self._is_closed = False

    def _timestamp(self) -> str:
        return timestamp(int(self._wall() * 1_000_000))

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
        return self._look(self._follower.poll)

    def _look(self, read: Callable[[float], Poll]) -> TailPoll:
        if self._is_broken:
            raise SinkError(
                OUTPUT_UNWRITABLE,
                "an earlier poll could not write what it had read",
                place=str(self._output.root),
                remedy="close this tail and open it again: it goes on from the last position",
            )
        self._is_broken = True  # until what is read now is durable
        now = self._clock()
        poll = self._advance(read(now), now)
        self._is_broken = False
        return poll

    def settle(self) -> TailPoll:
        """
        Do what waiting for the settle time would do: read to the end, wait for no hole, close the runs that ended.

        Returns:
            What was done.

        Raises:
            SinkError: As `poll`.
        """
        self._clock.skip(self._settle_seconds)
        polls = [self.poll()]
        while polls[-1].more:
            polls.append(self.poll())
        # What was read just now has not waited yet.
        self._clock.skip(self._settle_seconds)
        polls.append(self._look(lambda _: _NOTHING_READ))
        return joined(polls)

    def _advance(self, poll: Poll, now: float) -> TailPoll:
        batch = Batch()
        arrivals = list(self._arrivals(poll.lines, batch, now))
        lossy = frozenset(gap.stream for gap in poll.gaps)
        admitted = self._holes.admit(self._settled(arrivals, batch), now, lossy)
        self._place(admitted, batch, now)
        batch.appends.extend(self._main_runs.finish_quiet(now, self._settle_seconds))
        self._accounts.count(Term.PENDING, sum(gap.code is TOO_LONG for gap in poll.gaps))
        new = self._new_identities(batch)
        self._accounts.count(Term.CONVERTED, len(new))
        self._commit(batch, poll.gaps)
        recovered, self._recovered = self._recovered, []
        self._main_runs.forget_idle()
        if now - self._reported_at >= _REPORT_EVERY_SECONDS and not self._accounts.is_reported:
            self._report()
        return TailPoll(
            new=[*recovered, *new],
            gaps=list(poll.gaps),
            notices=list(poll.notices),
            refused=batch.refused,
            opened=[append.run_id for append in batch.appends if append.type == "run.started"],
            finished=[append.run_id for append in batch.appends if append.type == "run.finished"],
            more=poll.more,
        )

    def _arrivals(self, lines: Iterable[FollowedLine], batch: Batch, now: float) -> Iterator[Arrival]:
        """Read the lines; set aside what gives no events."""
        for line in lines:
            physical = PhysicalLine(line.number or 0, line.offset, line.raw, line.ended, line.record)
            for outcome in self._scanner.scan(physical, 0):
                if isinstance(outcome, Aside):
                    self._aside.set_aside(outcome, line, batch)
                    continue
                entry, event, raw, is_whole = outcome
                header = (event.schema, event.record.meta.vinaya, event.trust)
                self._accounts.ledger.saw(entry.process, [entry.seq], header)
                arrival = Arrival(entry, raw, line.name, line.number, line.stream, now)
                if not is_whole:
                    self._aside.keep(arrival, ORIGIN)
                yield arrival

    def _settled(self, arrivals: Sequence[Arrival], batch: Batch) -> list[Arrival]:
        """Drop repeats of what is durable, of what waits and of each other; keep what conflicts."""
        known = self._sink.index.known(arrival.identity for arrival in arrivals)
        pending = {
            entry.identity: entry.digest
            for held in self._main_runs.held()
            for entry in (*held.ends, *held.waiting)
        }
        pending.update((arrival.identity, arrival.digest) for arrival in self._holes.waiting())
        staying = pending | {identity: line.digest for identity, line in known.items()}
        settled = settle(arrivals, staying)
        self._accounts.count(Term.DUPLICATE, len(settled.duplicates))
        for arrival in settled.conflicts:
            self._aside.refuse(arrival, Term.CONFLICT, batch)
        fresh: list[Arrival] = []
        for arrival in settled.stay:
            identity = arrival.identity
            held = known.get(identity)
            if self._fills_in and held is not None:
                self._aside.keep(arrival, ORIGIN)
            if identity in pending or (held is not None and not missing_emits(arrival.entry, held)):
                self._accounts.count(Term.DUPLICATE)
            else:
                fresh.append(arrival)
        return fresh

    def _place(self, admitted: Sequence[Arrival], batch: Batch, now: float) -> None:
        """Order the lines whose turn has come, and let each main run say where their events go."""
        groups: dict[str, list[Arrival]] = {}
        for arrival in admitted:
            groups.setdefault(arrival.entry.main_run, []).append(arrival)
        known = self._sink.index.known(arrival.identity for arrival in admitted)
        for main_run, arrivals in groups.items():
            run = self._main_runs.get(main_run)
            for arrival in in_order(arrivals):
                entry = arrival.entry
                if entry.act >= Act.UNMAPPED:
                    self._aside.leave_out(arrival)
                    continue
                before = known.get(entry.identity)
                is_late = before is None and self._aside.was_late(arrival)
                appends = None if is_late else run.take(entry, before, now=now)
                if appends is None:
                    self._aside.refuse(arrival, Term.LATE, batch)
                    continue
                if entry.identity in known:
                    self._accounts.count(Term.DUPLICATE)  # half of it was written; the rest is now
                batch.appends.extend(appends)
        self._main_runs.used(groups)

    # ------------------------------------------------------------------------------------ durable

    def _new_identities(self, batch: Batch) -> list[str]:
        """The lines of which the batch holds the first event, in order."""
        named = dict.fromkeys(append.identity for append in batch.appends if append.identity is not None)
        known = self._sink.index.known(named)
        return [identity for identity in named if identity not in known]

    def _commit(self, batch: Batch, gaps: Sequence[Gap]) -> None:
        """Make kept lines durable, then events and position as one."""
        told = self._told(batch, gaps) if batch.refusals or gaps else []
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
        self._accounts.appended(batch.appends)
        for _, draft in events[len(batch.appends) :]:
            self._accounts.ledger.events[draft.type] += 1

    def _told(self, batch: Batch, gaps: Sequence[Gap]) -> list[CanonicalDraft]:
        """What the bridge's own run has to tell; looked at only then, since its log is read for it."""
        already = self._sink.index.told(batch.refusals)
        opened = self._sink.last_seq(RELAY_RUN) > 0
        told = relay_drafts(batch.refusals.values(), already=already, opened=opened)
        for gap in gaps:
            lost = Lost(gap.stream, gap.code.id, gap.offset, gap.line)
            told += [lost.draft()] if told or opened else [opening_draft(), lost.draft()]
        return told

    def _checkpoint(self) -> bytes:
        saved = Checkpoint(
            CHECKPOINT_VERSION,
            self._follower.state(),
            self._holes.waiting(),
            self._main_runs.held(),
            self._holes.seen(),
            self._accounts.total(),
            self._kept.index_bytes,
        )
        return msgspec.msgpack.encode(saved)

    # ------------------------------------------------------------------------------------ telling

    def status(self) -> Status:
        """Return where it stands, as of the last poll."""
        return Status(
            self._follower.lag(),
            self._accounts.ledger.lines(),
            self._accounts.ledger.events.total(),
            self._accounts.last_event,
            len(self._holes.waiting()),
        )

    def _report(self) -> None:
        held = [entry.identity for each in self._main_runs.held() for entry in (*each.ends, *each.waiting)]
        waiting = {*held, *(arrival.identity for arrival in self._holes.waiting())}
        waiting.difference_update(self._sink.index.known(waiting))
        self._accounts.report(waiting=waiting, ended_at=self._timestamp())
        self._reported_at = self._clock()

    def close(self) -> None:
        """Write the report and let go of the output. What was read is durable; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        with self._closing:
            if not self._is_broken:
                self._report()
