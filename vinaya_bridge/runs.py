"""Runs: where the events of a main run's lines go, and when each run starts and ends (design, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import orjson

from ethogram import CanonicalDraft
from vinaya_bridge.entry import END_ACTS, Act, Entry
from vinaya_bridge.known import Known, RunFacts, missing_emits
from vinaya_bridge.mapping.emit import Emit, Fill, Only, Run, fill_payload
from vinaya_bridge.naming import dispatch_run_id, sitting_run_id, split_run_id
from vinaya_bridge.siblings import PlacedRun, Siblings

__all__ = ["Append", "Held", "Known", "MainRun", "RunFacts", "missing_emits"]

_OF_ITS_LINE = frozenset({"part", "line", "redacted", "unknown"})
_LAST_PLAIN_ACT = int(Act.LOOP)
_AGENT_STARTED = "agent.started"
_NO_TIME = "the time of the run's first line or of this one cannot be read"


class Append(msgspec.Struct, frozen=True, gc=False):
    """
    One event to append.

    Args:
        run_id: Where.

        type: Of the event.

        payload: Canonical JSON.

        captured_at: ``meta.ts`` of the line, untouched.

        identity: Of the line; None for a start that no line states.

        part: Number of the event among those of its line; None likewise.

        digest: Of the line's content.
    """

    run_id: str
    type: str
    payload: bytes
    captured_at: str
    identity: str | None
    part: int | None
    digest: str


class Held(msgspec.Struct, frozen=True, array_like=True):
    """
    An end that was logged and is held until its run has been quiet.

    Args:
        run_id: The run.

        ends: The end lines, the one whose outcome counts first.

        waiting: Lines that wait behind them.

        last_activity: The clock's time in seconds when the run's last line came.
    """

    run_id: str
    ends: list[Entry]
    waiting: list[Entry]
    last_activity: float


class MainRun:
    """
    One main run with its sittings and dispatches: takes its lines in order and says what to append where.

    A terminal event is held until `finish` or `finish_quiet`: nothing may follow it in a run.

    Args:
        main_run: Run id of the first sitting.

        past: What the output already holds: each of this main run's run ids and its facts.

        reopens: Whether a line for a run that has its terminal event opens the next one, and is not late.
    """

    def __init__(
        self, main_run: str, past: Mapping[str, RunFacts] | None = None, *, reopens: bool = False
    ) -> None:
        self.main_run = main_run
        self._reopens = reopens
        self._sittings = Siblings()
        self._dispatches: dict[str, Siblings] = {}
        for run_id, facts in sorted((past or {}).items(), key=lambda item: split_run_id(item[0])[2]):
            self._remember(run_id, facts)

    def _remember(self, run_id: str, facts: RunFacts) -> None:
        _, effect, number = split_run_id(run_id)
        siblings = self._sittings if effect is None else self._dispatches.setdefault(effect, Siblings())
        while len(siblings) < number - 1:  # a run that went missing from the output keeps its number
            missing = self._name(effect, len(siblings) + 1)
            if effect is None:  # a sitting cannot be gone back to; a dispatch is named by its line
                siblings.append(PlacedRun(missing, started=True, finished=True))
            else:
                siblings.lose(PlacedRun(missing))
        siblings.append(
            PlacedRun(
                run_id,
                started=True,
                finished=facts.finished,
                first_instant_us=facts.first_instant_us,
                agent_started=facts.agent_started,
            )
        )

    def _name(self, effect: str | None, number: int) -> str:
        if effect is None:
            return sitting_run_id(self.main_run, number)
        return dispatch_run_id(self.main_run, effect, number)

    # ---------------------------------------------------------------------------------------- taking a line

    def take(self, entry: Entry, known: Known | None = None, *, now: float = 0.0) -> list[Append] | None:
        """
        Take the next line in order.

        Args:
            entry: The line.

            known: What the output already holds of it, where a crash left it half written.

            now: The clock's time in seconds, for `finish_quiet`.

        Returns:
            What to append, in order; None when the line is late: a run it belongs to has its terminal event.
        """
        if known is None:
            plain = self._plain(entry, now)
            if plain is not None:
                return plain
        emits = entry.emits if known is None else missing_emits(entry, known)
        held = self._holder_of(entry) if known is None else None  # what is half written is completed at once
        if held is not None:
            held.waiting.append(entry)
            held.last_activity = now
            return []
        appends: list[Append] = []
        runs: dict[int, PlacedRun] = {}
        for target in {emit.run for emit in emits}:
            run = self._holding(entry, target, known) or self._run_for(entry, target, appends)
            if run.finished:
                return None
            run.last_activity = now
            runs[target] = run
        self._write(entry, emits, runs, appends)
        return appends

    def plain_run(self) -> str | None:
        """Return the sitting that `take_plain` takes lines for; None where the next line may have to start one."""
        run = self._sittings[-1] if self._sittings else None
        return None if run is None or not run.started or run.finished or run.ends else run.run_id

    def take_plain(self, entries: Sequence[Entry], first: int, drafts: list[CanonicalDraft]) -> int:
        """
        Take lines that can neither start nor end anything, as most do, many at once: the way of a batch.

        Args:
            entries: Lines in order, of none of which the output holds anything.

            first: Index of the next.

            drafts: Gets their events, all of them for the `plain_run`.

        Returns:
            The index of the first line that is another, and has to be taken by `take`.
        """
        for index in range(first, len(entries)):
            entry = entries[index]
            if entry.act > _LAST_PLAIN_ACT:
                return index
            ts, before = entry.ts, len(drafts)
            for emit in entry.emits:
                if emit.run or emit.only or emit.fill or emit.type == _AGENT_STARTED:
                    del drafts[before:]
                    return index
                drafts.append(CanonicalDraft(emit.type, emit.payload, ts))
        return len(entries)

    def _plain(self, entry: Entry, now: float) -> list[Append] | None:
        """The same for one line, or None; what a tail has to know of an event goes with it."""
        run_id = self.plain_run()
        if entry.act > _LAST_PLAIN_ACT or run_id is None:
            return None
        ts, identity, digest = entry.ts, entry.identity, entry.digest
        appends = []
        for emit in entry.emits:
            if emit.run or emit.only or emit.fill or emit.type == _AGENT_STARTED:
                return None
            appends.append(Append(run_id, emit.type, emit.payload, ts, identity, emit.part, digest))
        if appends:
            self._sittings[-1].last_activity = now
        return appends

    def _run_for(self, entry: Entry, target: int, appends: list[Append]) -> PlacedRun:
        run = self._sitting_for(entry, appends) if target == Run.MAIN else self._dispatch_for(entry)
        if not (run.finished and self._reopens):
            return run
        return self._open_sitting() if target == Run.MAIN else self._open_dispatch(entry)

    def _holding(self, entry: Entry, target: int, known: Known | None) -> PlacedRun | None:
        """The run in which earlier parts of a half-written line already lie, if any."""
        if known is None:
            return None
        siblings = self._sittings if target == Run.MAIN else self._dispatches.get(entry.effect, Siblings())
        held_by = set(known.parts.values())
        return next((run for run in siblings if run.run_id in held_by), None)

    def _sitting_for(self, entry: Entry, appends: list[Append]) -> PlacedRun:
        if not self._sittings:
            return self._open_sitting()
        current = self._sittings[-1]
        if not current.ended or entry.act in {Act.OTHER, Act.DISPATCHED, Act.DISPATCH_ENDED}:
            return current
        if entry.act in END_ACTS and current.ends and current.ends[0].process == entry.process:
            return current
        appends.extend(self._finish(current))  # nothing can follow in it: what comes goes to the next sitting
        return self._open_sitting()

    def _open_sitting(self) -> PlacedRun:
        parent = self._sittings[-1].run_id if self._sittings else None
        self._sittings.append(PlacedRun(self._name(None, len(self._sittings) + 1), parent=parent))
        return self._sittings[-1]

    def _dispatch_for(self, entry: Entry) -> PlacedRun:
        siblings = self._dispatches.get(entry.effect)
        if not siblings:
            return self._open_dispatch(entry)
        if entry.act != Act.DISPATCHED:
            return siblings.latest_going()
        lost = siblings.first_lost()
        if lost is None:
            return self._open_dispatch(entry)
        lost.parent = self._current_run_id()
        return lost

    def _open_dispatch_for(self, entry: Entry) -> PlacedRun:
        run = self._dispatch_for(entry)
        return self._open_dispatch(entry) if run.finished else run

    def _open_dispatch(self, entry: Entry) -> PlacedRun:
        siblings = self._dispatches.setdefault(entry.effect, Siblings())
        run = PlacedRun(self._name(entry.effect, len(siblings) + 1), parent=self._current_run_id())
        siblings.append(run)
        return run

    def _current_run_id(self) -> str:
        return self._sittings[-1].run_id if self._sittings else self.main_run

    def _holder_of(self, entry: Entry) -> PlacedRun | None:
        """
        The sitting whose held end this line must wait behind, if any.

        Only a `driver_exited` can still lose its place as the end, to a `cancelled` of its process; then it is an
        open event, and must stand before the later lines of that process.
        """
        if not self._sittings or entry.act not in {Act.OTHER, Act.DISPATCHED, Act.DISPATCH_ENDED}:
            return None
        current = self._sittings[-1]
        if any(end.act == Act.DRIVER_EXITED and end.process == entry.process for end in current.ends):
            return current
        return None

    # ---------------------------------------------------------------------------------------- writing its events

    def _write(
        self, entry: Entry, emits: Iterable[Emit], runs: Mapping[int, PlacedRun], appends: list[Append]
    ) -> None:
        ends = {target for target, run in runs.items() if self._hold_end(entry, target, run, appends)}
        starting = {target for target, run in runs.items() if not run.started}
        stating = {emit.run for emit in emits if emit.only == Only.STARTS_RUN}
        for target in sorted(starting):
            run = runs[target]
            run.started = True
            run.first_instant_us = entry.instant_us
            if target not in stating:
                appends.append(self._implied_start(entry, run, target))
        for emit in emits:
            run = runs[emit.run]
            only = emit.only
            if only != Only.ALWAYS and (
                (only == Only.STARTS_RUN and emit.run not in starting)
                or (only == Only.NOT_STARTS_RUN and emit.run in starting)
                or (only == Only.ENDS_RUN)
                or (only == Only.NOT_ENDS_RUN and emit.run in ends)
                or (only == Only.AGENT_STARTED and not run.agent_started)
                or (only == Only.NOT_AGENT_STARTED and run.agent_started)
            ):
                continue
            if emit.type == _AGENT_STARTED:
                run.agent_started = True
            appends.append(self._event(entry, emit, run))

    def _hold_end(self, entry: Entry, target: int, run: PlacedRun, appends: list[Append]) -> bool:
        """Hold the line as its run's end, or as a part of it; False when it is none."""
        if target == Run.DISPATCH:
            if entry.act != Act.DISPATCH_ENDED or run.ends:
                return False
            run.ends.append(entry)
            return True
        if entry.act not in END_ACTS:
            return False
        rank = END_ACTS.index(Act(entry.act))
        if run.ends and END_ACTS.index(Act(run.ends[0].act)) <= rank:
            return False
        displaced, run.ends = run.ends, [entry]
        for other in displaced:
            appends.extend(self._open_form(other, run))
        appends.extend(self._release(run))
        return True

    def _release(self, run: PlacedRun) -> list[Append]:
        """Write the lines that waited behind the run's held end: it is now certain what that line is."""
        waiting, run.waiting = run.waiting, []
        appends: list[Append] = []
        for entry in waiting:
            runs = {
                target: run if target == Run.MAIN else self._open_dispatch_for(entry)
                for target in {emit.run for emit in entry.emits}
            }
            for later in runs.values():
                later.last_activity = run.last_activity
            self._write(entry, entry.emits, runs, appends)
        return appends

    def _open_form(self, entry: Entry, run: PlacedRun) -> Iterator[Append]:
        """The events of an end line that has turned out not to be the end."""
        return (
            self._event(entry, emit, run)
            for emit in entry.emits
            if emit.run == Run.MAIN and emit.only == Only.NOT_ENDS_RUN
        )

    def _event(self, entry: Entry, emit: Emit, run: PlacedRun) -> Append:
        payload = emit.payload
        if emit.fill:
            payload = self._filled(entry, emit, run)
        return Append(run.run_id, emit.type, payload, entry.ts, entry.identity, emit.part, entry.digest)

    def _filled(self, entry: Entry, emit: Emit, run: PlacedRun) -> bytes:
        elapsed_ms: int | None = None
        unknown_reason: str | None = None
        if emit.fill & Fill.ELAPSED:
            if entry.instant_us is None or run.first_instant_us is None:
                unknown_reason = _NO_TIME
            else:
                elapsed_ms = max(0, (entry.instant_us - run.first_instant_us) // 1000)
        parent = run.parent if emit.fill & Fill.PARENT else None
        return fill_payload(emit.payload, elapsed_ms=elapsed_ms, unknown_reason=unknown_reason, parent=parent)

    def _implied_start(self, entry: Entry, run: PlacedRun, target: int) -> Append:
        opening = entry.opening
        block = orjson.loads(entry.emits[0].payload)["vinaya"]
        kept = {key: value for key, value in block.items() if key not in _OF_ITS_LINE}
        fields = {
            "kind": "subagent" if target == Run.DISPATCH else opening.kind,
            "actor": opening.actor,
            "harness": opening.harness,
            "model": opening.model if target == Run.DISPATCH else None,
            "repository": opening.repository,
            "workOrder": opening.work_order,
            "parentRunId": run.parent,
        }
        payload: dict[str, object] = {key: value for key, value in fields.items() if value is not None}
        payload["vinaya"] = {**kept, "generic": [], "implied": True}
        text = orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)
        return Append(run.run_id, "run.started", text, entry.ts, None, None, entry.digest)

    # ---------------------------------------------------------------------------------------- ending runs

    def finish(self) -> list[Append]:
        """Return the terminal events of all runs whose end was logged: no further line of them will come."""
        return self._finish_all(lambda _: True)

    def finish_quiet(self, now: float, settle_seconds: float) -> list[Append]:
        """
        Return the terminal events of the runs that have been quiet for long enough.

        Args:
            now: The clock's time in seconds.

            settle_seconds: How long a run must have been quiet.
        """
        return self._finish_all(lambda run: now - run.last_activity >= settle_seconds)

    def _finish_all(self, is_due: Callable[[PlacedRun], bool]) -> list[Append]:
        appends: list[Append] = []
        while due := [
            run for run in self._held() if is_due(run)
        ]:  # what waited behind an end may hold another
            for run in due:
                appends.extend(self._finish(run))
        return appends

    def held(self) -> list[Held]:
        """Return the ends that are held, and what waits behind them, so that a restart can go on with them."""
        return [Held(run.run_id, run.ends, run.waiting, run.last_activity) for run in self._held()]

    def hold(self, held: Held) -> None:
        """
        Hold an end again that `held` returned before a restart.

        Args:
            held: Of this main run.
        """
        _, effect, number = split_run_id(held.run_id)
        siblings = self._sittings if effect is None else self._dispatches.setdefault(effect, Siblings())
        while len(siblings) < number:
            self._remember(self._name(effect, len(siblings) + 1), RunFacts(False, None, False))
        run = siblings[number - 1]
        run.ends, run.waiting, run.last_activity = list(held.ends), list(held.waiting), held.last_activity

    def _held(self) -> list[PlacedRun]:
        runs = [*self._sittings, *(run for siblings in self._dispatches.values() for run in siblings)]
        return [run for run in runs if run.ends]

    def _finish(self, run: PlacedRun) -> list[Append]:
        appends = self._release(run)
        if not run.ends:
            return appends
        chosen, run.ends = run.ends[0], []
        target = Run.DISPATCH if chosen.act == Act.DISPATCH_ENDED else Run.MAIN
        for emit in chosen.emits:
            if emit.run == target and emit.only == Only.ENDS_RUN:
                appends.append(self._event(chosen, emit, run))
                run.finished = True
        return appends
