"""Which loops run. Source: Vinaya Log reference, Reading rules: Liveness (ten-minute rule)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, TypeAlias, TypeVar, cast

from attrs import evolve, frozen

from vinaya_bridge.log import EventLine
from vinaya_bridge.log.header import Subject
from vinaya_bridge.log.loop import LoopRecord
from vinaya_bridge.order import in_order
from vinaya_bridge.readings.survivors import Survivors

STALE_AFTER_MS: Final = 600_000
"""Ten minutes: twice the interval of the driver's heartbeat."""

State: TypeAlias = Literal["running", "finished", "paused", "exited", "stale", "unknown"]
"""
What a loop does. ``stale`` is presumed dead; ``exited`` is a driver that ended with reexec, error or signal;
``unknown``: no time of the newest line can be read.
"""

_EXITS: Final[dict[str, State]] = {"finished": "finished", "paused": "paused"}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class LoopStatus:
    """
    What the log says about the loop of one Issue.

    Args:
        repo: ``owner/name``; None where no line of the loop knows it.

        issue: The Issue; None where no line of the loop knows it.

        loop_id: The loop that the newest line is of.

        state: What the loop does.

        exit_reason: Why the driver exited; None where the newest line is no exit.

        event: The newest line's event.

        ts: The newest line's time, as it was written.

        age_ms: How old the newest line is, in milliseconds; negative where its clock is ahead; None where no
            time can be read.

        machine: Where the newest line was written: a digest of the host's name.

        round: The newest round that a line names.

        phase: What the newest heartbeat says the driver does; None where there is no heartbeat.

        pr: The newest pull request that a line names.

        low_trust: Whether the newest line is of low trust.

        notes: What the log cannot tell, in plain sentences.
    """

    repo: str | None
    issue: int | None
    loop_id: str
    state: State
    exit_reason: str | None
    event: str
    ts: str
    age_ms: int | None
    machine: str
    round: int | None
    phase: str | None
    pr: int | None
    low_trust: bool
    notes: tuple[str, ...]


@frozen
class _LoopLine:
    """What one dev_review_loop line says of its loop."""

    identity: str
    process: str
    seq: int
    instant_us: int | None
    ts: str
    repo: str | None
    issue: int | None
    loop_id: str
    event: str
    exit_reason: str | None
    machine: str
    round: int | None
    phase: str | None
    pr: int | None
    low_trust: bool


def liveness(lines: Iterable[EventLine], *, now: datetime) -> list[LoopStatus]:
    """
    Tell for each Issue's loop what the log says it does.

    In time order over all processes: running where the newest line is under ten minutes old and no exit; what
    the exit says where the newest line is a driver's exit; else stale, presumed dead. The rule reads a log, not
    a process table: clocks of machines differ, and lines can arrive late or never. Notes say where that shows.

    A line without an Issue or a repository belongs with the others of its loop.

    Source: Vinaya Log reference, Reading rules: Liveness, Identity, Order, Low trust.

    Args:
        lines: Event lines in any order, copies among them.

        now: The time to judge by, with its zone.

    Returns:
        One status for each Issue, by repository and Issue; what is not known comes last.
    """
    kept: Survivors[_LoopLine] = Survivors(_take)
    for line in lines:
        kept.add(line)
    found = _attributed(kept.items())
    now_us = (now - _EPOCH) // timedelta(microseconds=1)
    groups: dict[tuple[str | None, int | None, str | None], list[_LoopLine]] = {}
    for each in found:
        key = (each.repo, each.issue, each.loop_id if each.issue is None else None)
        groups.setdefault(key, []).append(each)
    statuses = [_status(in_order(members), now_us) for members in groups.values()]
    return sorted(
        statuses,
        key=lambda each: (
            each.repo is None,
            each.repo or "",
            each.issue is None,
            each.issue or 0,
            each.loop_id,
        ),
    )


def _take(line: EventLine) -> _LoopLine | None:
    if line.kind != "dev_review_loop":
        return None
    record = cast(LoopRecord, line.record)
    meta, subject = record.meta, record.subject
    task, pr, turn = _number(record, "task"), _number(record, "pr"), _number(record, "round")
    return _LoopLine(
        identity=line.identity,
        process=line.process,
        seq=meta.seq,
        instant_us=line.instant_us,
        ts=meta.ts,
        repo=meta.repo,
        issue=subject.issue if subject.issue is not None else task,
        loop_id=record.loop_id,
        event=line.event,
        exit_reason=_word(record, "reason") if line.event == "driver_exited" else None,
        machine=meta.machine,
        round=turn if turn is not None else _number(subject, "round"),
        phase=_word(record, "phase"),
        pr=pr if pr is not None else _number(subject, "pr"),
        low_trust=line.trust == "low",
    )


def _number(holder: LoopRecord | Subject, name: str) -> int | None:
    """A number that only some events have, or that may be absent."""
    value = getattr(holder, name, None)
    return value if isinstance(value, int) else None


def _word(record: LoopRecord, name: str) -> str | None:
    """A string that only some events have."""
    value = getattr(record, name, None)
    return value if isinstance(value, str) else None


def _attributed(lines: list[_LoopLine]) -> list[_LoopLine]:
    """Give lines that know no Issue or repository that of their loop, where its other lines agree on one."""
    issues: dict[str, set[int]] = {}
    repos: dict[str, set[str]] = {}
    for line in lines:
        if line.issue is not None:
            issues.setdefault(line.loop_id, set()).add(line.issue)
        if line.repo is not None:
            repos.setdefault(line.loop_id, set()).add(line.repo)
    return [
        evolve(
            line,
            issue=_only(issues.get(line.loop_id)) if line.issue is None else line.issue,
            repo=_only(repos.get(line.loop_id)) if line.repo is None else line.repo,
        )
        for line in lines
    ]


_Value = TypeVar("_Value")


def _only(values: set[_Value] | None) -> _Value | None:
    return next(iter(values)) if values is not None and len(values) == 1 else None


def _status(ordered: list[_LoopLine], now_us: int) -> LoopStatus:
    newest = ordered[-1]
    # The time of a line that cannot be read counts as the latest seen in its process.
    instants = [each.instant_us for each in ordered if each.process == newest.process]
    latest_us = max((each for each in instants if each is not None), default=None)
    age_ms = None if latest_us is None else (now_us - latest_us) // 1000
    state = _state(newest, age_ms)
    return LoopStatus(
        repo=newest.repo,
        issue=newest.issue,
        loop_id=newest.loop_id,
        state=state,
        exit_reason=newest.exit_reason,
        event=newest.event,
        ts=newest.ts,
        age_ms=age_ms,
        machine=newest.machine,
        round=_newest(ordered, lambda each: each.round),
        phase=_newest(ordered, lambda each: each.phase),
        pr=_newest(ordered, lambda each: each.pr),
        low_trust=newest.low_trust,
        notes=tuple(_notes(ordered, state, age_ms, now_us)),
    )


def _state(newest: _LoopLine, age_ms: int | None) -> State:
    if newest.exit_reason is not None:
        return _EXITS.get(newest.exit_reason, "exited")
    if age_ms is None:
        return "unknown"
    return "running" if age_ms < STALE_AFTER_MS else "stale"


def _newest(ordered: list[_LoopLine], get: Callable[[_LoopLine], _Value | None]) -> _Value | None:
    """The value of the newest line that has one."""
    return next((value for value in map(get, reversed(ordered)) if value is not None), None)


def _notes(ordered: list[_LoopLine], state: State, age_ms: int | None, now_us: int) -> Iterable[str]:
    newest = ordered[-1]
    if newest.instant_us is None:
        yield "the newest line's time cannot be read, so its age is that of the lines before it, if any"
    if age_ms is not None and age_ms < 0:
        yield "the newest line is from the future: the clock of its machine is ahead, or --now is in the past"
    if state == "stale":
        yield "presumed dead: a live driver writes every five minutes; lines can still be on their way"
    if newest.event in {"cancelled", "journal_finalized"}:
        yield f"the rule looks at exits alone: after {newest.event} no driver need be running"
    recent = {
        each.process
        for each in ordered
        if each.instant_us is not None and 0 <= now_us - each.instant_us < STALE_AFTER_MS * 1000
    }
    if state == "running" and len(recent) > 1:
        yield f"{len(recent)} processes wrote in the last ten minutes"
    if newest.low_trust:
        yield "the newest line is of low trust: written by a CLI older than 0.33.0 or of an unreadable version"
