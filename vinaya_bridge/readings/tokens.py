"""What single lines say about the use of tokens."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from attrs import frozen

from vinaya_bridge.log import EventLine
from vinaya_bridge.log.families import DispatchRecord, OutcomeReceived, RoleAttempted, UsageObserved
from vinaya_bridge.readings.figures import Number, Term

Semantics: TypeAlias = Literal["cumulative", "delta"]


@frozen
class Observation:
    """
    One usage line.

    Args:
        identity: The line's identity.

        process: What counts `seq`.

        seq: The process's counter.

        instant_us: The line's time in microseconds since 1970; None where it cannot be read.

        ts: The time as it was written.

        run: ``meta.run_id``.

        model: The model; None where the line does not know it.

        semantics: ``cumulative``: a running total; ``delta``: what was added.

        source: Where the figures come from.

        role: ``subject.role``.

        issue: ``subject.issue``.

        low_trust: Whether the line is of low trust.

        input: Input tokens.

        output: Output tokens.

        cache: Cache tokens: one figure, never split and never added to input.
    """

    identity: str
    process: str
    seq: int
    instant_us: int | None
    ts: str
    run: str
    model: str | None
    semantics: Semantics
    source: str
    role: str
    issue: int | None
    low_trust: bool
    input: Term
    output: Term
    cache: Term


@frozen
class Statement:
    """
    One dispatch or role_attempt line.

    Args:
        identity: The line's identity.

        process: What counts `seq`.

        seq: The process's counter.

        instant_us: The line's time in microseconds since 1970; None where it cannot be read.

        effect_id: The attempt that it speaks of.

        run: ``meta.run_id``.

        model: The model; None where the line does not know it.

        target_role: The role that was dispatched; None on a role_attempt line.

        role: ``subject.role``.

        issue: ``subject.issue``.

        low_trust: Whether the line is of low trust.

        is_launch: Whether it is a ``dispatched`` line.

        tokens: Input and output tokens; None where it states none.
    """

    identity: str
    process: str
    seq: int
    instant_us: int | None
    effect_id: str
    run: str
    model: str | None
    target_role: str | None
    role: str
    issue: int | None
    low_trust: bool
    is_launch: bool
    tokens: tuple[Number, Number] | None


def usage_part(line: EventLine) -> Observation | Statement | None:
    """
    Read what a line says about the use of tokens.

    Args:
        line: An event line.

    Returns:
        Its observation or its statement; None for lines of other kinds, the self-test's among them.
    """
    kind = line.kind
    if kind == "usage":
        return _observation(line)
    if kind == "dispatch":
        dispatch = cast(DispatchRecord, line.record)
        tokens = None if line.event == "dispatched" else _tokens(cast(OutcomeReceived, dispatch))
        return _statement(line, dispatch, tokens, dispatch.target_role)
    if kind == "role_attempt":
        attempt = cast(RoleAttempted, line.record)
        return _statement(line, attempt, _tokens(attempt), None)
    return None


def _observation(line: EventLine) -> Observation:
    record = cast(UsageObserved, line.record)
    units, why = record.units, record.unknown_reason
    return Observation(
        identity=line.identity,
        process=line.process,
        seq=record.meta.seq,
        instant_us=line.instant_us,
        ts=record.meta.ts,
        run=record.meta.run_id,
        model=record.model,
        semantics=record.semantics,
        source=record.source,
        role=record.subject.role,
        issue=record.subject.issue,
        low_trust=line.trust == "low",
        input=_unit(units.input, why),
        output=_unit(units.output, why),
        cache=_unit(units.cache, why),
    )


def _unit(value: Number | None, why: str | None) -> Term:
    return Term(None, why) if value is None else Term(value)


def _statement(
    line: EventLine,
    record: DispatchRecord | RoleAttempted,
    tokens: tuple[Number, Number] | None,
    target_role: str | None,
) -> Statement:
    return Statement(
        identity=line.identity,
        process=line.process,
        seq=record.meta.seq,
        instant_us=line.instant_us,
        effect_id=record.effect_id,
        run=record.meta.run_id,
        model=record.model,
        target_role=target_role,
        role=record.subject.role,
        issue=record.subject.issue,
        low_trust=line.trust == "low",
        is_launch=line.event == "dispatched",
        tokens=tokens,
    )


def _tokens(record: OutcomeReceived | RoleAttempted) -> tuple[Number, Number] | None:
    return None if record.usage is None else (record.usage.input, record.usage.output)
