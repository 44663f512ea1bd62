"""The ten families of events, and the catalogue of all 32: what each line is, stated once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, Literal

from attrs import frozen

from vinaya_bridge.log import loop
from vinaya_bridge.log.header import HeaderV3
from vinaya_bridge.log.parts import (
    EffectTarget,
    ForgeTarget,
    HandoffClass,
    Outcome,
    Record,
    Tokens,
    Units,
    UsageLimit,
)
from vinaya_bridge.log.rules import ABSENT, NO_RULE, Absent, Count, Holds, Id, Integer, Role, Rule, Text


@frozen(kw_only=True)
class DispatchRecord(Record):
    """
    What all lines of a dispatch share: a role's turn, seen from the parent.

    Args:
        kind: The family.

        target_role: The role that is dispatched.

        model: The model.

        round: The round of the loop.

        effect_id: The turn; a role attempt with the same id is the same turn.
    """

    kind: Literal["dispatch"]
    target_role: Role
    model: Text
    round: Integer | Absent = ABSENT
    effect_id: Id


@frozen(kw_only=True)
class Dispatched(DispatchRecord):
    """A role is about to be launched."""

    event: Literal["dispatched"]
    prompt_hash: Text


@frozen(kw_only=True)
class OutcomeReceived(DispatchRecord):
    """The child exited cleanly; a null usage is unknown."""

    event: Literal["outcome_received"]
    outcome: Outcome
    usage: Tokens | None


@frozen(kw_only=True)
class DispatchFailed(DispatchRecord):
    """The launch was refused or failed, or the child crashed or ran out of time or of quota."""

    event: Literal["dispatch_failed"]
    reason: Literal["timeout", "crash", "refused", "unattributed_write", "usage_limit"]
    usage_limit: UsageLimit | Absent = ABSENT
    usage: Tokens | None


@frozen(kw_only=True)
class ForgeWriteRecord(Record):
    """
    What all lines about writes to the forge share; read from old logs, written no longer.

    Args:
        kind: The family.

        op: The operation.

        target: What it was aimed at.
    """

    kind: Literal["forge_write"]
    op: Literal[
        "pr.create",
        "pr.comment",
        "pr.body.replace",
        "pr.refreeze",
        "issue.create",
        "issue.edit",
        "issue.comment",
        "milestone.create",
        "milestone.edit",
        "milestone.close",
        "label.add",
        "label.remove",
    ]
    target: ForgeTarget


@frozen(kw_only=True)
class ForgeWriteValidated(ForgeWriteRecord):
    """The write's payload passed its check."""

    event: Literal["validated"]


@frozen(kw_only=True)
class ForgeWriteRefused(ForgeWriteRecord):
    """The write failed or was refused."""

    event: Literal["refused"]
    reason: Text


@frozen(kw_only=True)
class ForgeWriteWritten(ForgeWriteRecord):
    """The forge accepted the write and gave these comment ids."""

    event: Literal["written"]
    comment_ids: tuple[Text, ...]


@frozen(kw_only=True)
class GateChecked(Record):
    """One check of a gate's run; passing and skipped checks are written no longer, only counted."""

    kind: Literal["gate"]
    event: Literal["checked"]
    check: Text
    check_version: Text | None
    policy_version: Text | None
    input_fingerprint: Text | None
    outcome: Literal[
        "pass", "fail", "wait", "skip", "invalid_input", "unavailable_dependency", "timeout", "cancelled"
    ]
    reason: Text | Absent = ABSENT


@frozen(kw_only=True)
class GateSummary(Record):
    """One run of all checks, counted; its time is ``duration_ms``."""

    kind: Literal["gate"]
    event: Literal["summary"]
    ran: Count
    passed: Count
    failed: Count
    skipped: Count
    failed_checks: tuple[Text, ...]


@frozen(kw_only=True)
class OperationCompleted(Record):
    """An operation or a tool call ended; ``log.selftest`` marks test traffic."""

    kind: Literal["operation"]
    event: Literal["completed"]
    operation: Text
    target: Text | None
    result: Literal["ok", "error", "refused", "timeout", "cancelled", "unavailable"]
    error_class: Text | None
    field_names: Annotated[tuple[Annotated[str, Rule(max_units=64)], ...], Rule(max_items=20)] | Absent = (
        ABSENT
    )


@frozen(kw_only=True)
class UsageObserved(Record):
    """What a turn used; null units are unknown, with ``unknown_reason``."""

    kind: Literal["usage"]
    event: Literal["observed"]
    model: Text | None
    source: Text
    semantics: Literal["cumulative", "delta"]
    units: Units
    unknown_reason: Text | None


@frozen(kw_only=True)
class RoleAttempted(Record):
    """How one attempt of a role came out: a second view of the dispatch with the same ``effect_id``."""

    kind: Literal["role_attempt"]
    event: Literal["attempted"]
    actor: Text | None
    attempt: Integer | None
    effect_id: Id
    model: Text | None
    outcome: Literal[
        "completed", "incomplete", "infrastructure_failed", "cancelled", "timed_out", "capability_refused"
    ]
    usage: Tokens | None


@frozen(kw_only=True)
class HandoffRaised(Record):
    """A question goes to a human."""

    kind: Literal["handoff"]
    event: Literal["raised"]
    class_: HandoffClass
    reason: Text
    requested_decision: Text | None


@frozen(kw_only=True)
class HandoffResolved(Record):
    """A human's decision was taken up."""

    kind: Literal["handoff"]
    event: Literal["resolved"]
    class_: HandoffClass
    reason: Text
    resolution: Text | None
    resolved_by: Text | None


@frozen(kw_only=True)
class EffectRecord(Record):
    """
    What all lines about governed writes share.

    Args:
        kind: The family.

        effect_id: The write, the same across crash, retry and replay.

        target: What it was aimed at.
    """

    kind: Literal["effect"]
    effect_id: Id
    target: EffectTarget


EffectOutcome = Literal["success", "failure", "uncertain"]
"""How a governed write came out."""


@frozen(kw_only=True)
class EffectAttempted(EffectRecord):
    """A governed write is tried; nothing writes this line."""

    event: Literal["attempted"]


@frozen(kw_only=True)
class EffectObserved(EffectRecord):
    """A governed write is seen; nothing writes this line."""

    event: Literal["observed"]
    outcome: EffectOutcome


@frozen(kw_only=True)
class EffectVerified(EffectRecord):
    """A governed write's final outcome, once per call."""

    event: Literal["verified"]
    outcome: EffectOutcome


@frozen(kw_only=True)
class CustomRecorded(Record):
    """
    An event that a team declared; only under schema 3. Source: Vinaya Log reference, custom.

    Args:
        meta: The header, of schema 3.

        kind: The family.

        event: The event.

        name: The declared name: at most 64 UTF-16 units, lower case, with a dot.

        fields: At most 20 values: text of at most 500 UTF-16 units, a finite number or a boolean.
    """

    meta: HeaderV3
    kind: Literal["custom"]
    event: Literal["recorded"]
    name: Annotated[str, Rule(pattern=r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_.]*", max_units=64, holds=Holds.ID)]
    fields: Annotated[
        dict[
            Annotated[str, Rule(pattern="[a-z][a-z0-9_]*", max_units=64)],
            Annotated[str, Rule(max_units=500)] | Annotated[float, NO_RULE] | bool,
        ],
        Rule(max_items=20),
    ]


FAMILIES: Final[Mapping[tuple[str, str], type[Record]]] = MappingProxyType(
    {
        ("dispatch", "dispatched"): Dispatched,
        ("dispatch", "outcome_received"): OutcomeReceived,
        ("dispatch", "dispatch_failed"): DispatchFailed,
        ("dev_review_loop", "loop_started"): loop.LoopStarted,
        ("dev_review_loop", "round_started"): loop.RoundStarted,
        ("dev_review_loop", "gate_result_read"): loop.GateResultRead,
        ("dev_review_loop", "verdicts_read"): loop.VerdictsRead,
        ("dev_review_loop", "findings_compared"): loop.FindingsCompared,
        ("dev_review_loop", "stop_condition_met"): loop.StopConditionMet,
        ("dev_review_loop", "paused"): loop.Paused,
        ("dev_review_loop", "resumed"): loop.Resumed,
        ("dev_review_loop", "cancelled"): loop.Cancelled,
        ("dev_review_loop", "unpushed_work_resume"): loop.UnpushedWorkResume,
        ("dev_review_loop", "round_ended"): loop.RoundEnded,
        ("dev_review_loop", "journal_finalized"): loop.JournalFinalized,
        ("dev_review_loop", "infrastructure_retry"): loop.InfrastructureRetry,
        ("dev_review_loop", "driver_heartbeat"): loop.DriverHeartbeat,
        ("dev_review_loop", "driver_exited"): loop.DriverExited,
        ("forge_write", "validated"): ForgeWriteValidated,
        ("forge_write", "refused"): ForgeWriteRefused,
        ("forge_write", "written"): ForgeWriteWritten,
        ("gate", "checked"): GateChecked,
        ("gate", "summary"): GateSummary,
        ("operation", "completed"): OperationCompleted,
        ("usage", "observed"): UsageObserved,
        ("role_attempt", "attempted"): RoleAttempted,
        ("handoff", "raised"): HandoffRaised,
        ("handoff", "resolved"): HandoffResolved,
        ("effect", "attempted"): EffectAttempted,
        ("effect", "observed"): EffectObserved,
        ("effect", "verified"): EffectVerified,
        ("custom", "recorded"): CustomRecorded,
    }
)
"""The record class of each (kind, event): the whole vocabulary, 32 shapes."""

KINDS: Final = frozenset(kind for kind, _ in FAMILIES)
"""The ten families."""

SCHEMAS: Final = (1, 2, 3)
"""The header schemas that are read; a line with another number is an unknown version."""
