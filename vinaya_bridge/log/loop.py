"""The fifteen events of the family ``dev_review_loop``: one task's developer and reviewer loop."""

from __future__ import annotations

from typing import Annotated, Literal

from attrs import frozen

from vinaya_bridge.log.parts import Finding, Policy, Record, Reviewer
from vinaya_bridge.log.rules import ABSENT, Absent, Amount, Count, Id, Integer, Rule, Text, Token


@frozen(kw_only=True)
class LoopRecord(Record):
    """
    What all lines of a loop share.

    Args:
        kind: The family.

        loop_id: The loop.
    """

    kind: Literal["dev_review_loop"]
    loop_id: Id


@frozen(kw_only=True)
class LoopStarted(LoopRecord):
    """A loop begins: the task and the policy it runs under."""

    event: Literal["loop_started"]
    task: Integer
    policy: Policy


@frozen(kw_only=True)
class RoundStarted(LoopRecord):
    """A round begins, on a base commit."""

    event: Literal["round_started"]
    round: Integer
    base_head: Text


@frozen(kw_only=True)
class GateResultRead(LoopRecord):
    """
    The loop reads the gate's result.

    Args:
        event: The event.

        round: The round.

        head: The commit that was checked.

        green: Whether all checks passed.

        confidence_value: How sure the developer is, 0 to 100; only from round 2 on a green gate.

        confidence_reason: Why: at most 280 UTF-16 units.

        confidence_unavailable: True where no statement was made; the value is then absent, never 0.

        extra_turn_spent: Whether the statement cost a turn of its own.
    """

    event: Literal["gate_result_read"]
    round: Integer
    head: Text
    green: bool
    confidence_value: Annotated[int, Rule(minimum=0, maximum=100)] | Absent = ABSENT
    confidence_reason: Annotated[str, Rule(max_units=280)] | Absent = ABSENT
    confidence_unavailable: bool | Absent = ABSENT
    extra_turn_spent: bool | Absent = ABSENT


@frozen(kw_only=True)
class VerdictsRead(LoopRecord):
    """The reviewers' verdicts on a commit are in; older lines have neither findings nor reviewers."""

    event: Literal["verdicts_read"]
    round: Integer
    head: Text
    all_approve: bool
    blockers: Count
    findings: tuple[Finding, ...] | Absent = ABSENT
    reviewers: tuple[Reviewer, ...] | Absent = ABSENT


@frozen(kw_only=True)
class FindingsCompared(LoopRecord):
    """The findings' ids are compared with the round before; recurrence is read from here alone."""

    event: Literal["findings_compared"]
    round: Integer
    open: tuple[Text, ...]
    resolved: tuple[Text, ...]
    new: tuple[Text, ...]
    recurring: tuple[Text, ...]


@frozen(kw_only=True)
class StopConditionMet(LoopRecord):
    """A rule that stops the loop has fired."""

    event: Literal["stop_condition_met"]
    round: Integer
    condition: Literal[
        "green",
        "max_rounds",
        "no_progress",
        "escalated",
        "principal_stop",
        "confidence",
        "reappearance",
        "repeat_finding",
        "repeat_failure",
        "time_budget",
    ]


@frozen(kw_only=True)
class Paused(LoopRecord):
    """The loop pauses; the list of reason codes is open."""

    event: Literal["paused"]
    round: Integer
    reason: Literal["escalation", "principal_item", "refreeze_needed"]
    reason_code: Token | Absent = ABSENT


@frozen(kw_only=True)
class Resumed(LoopRecord):
    """A pause was resolved."""

    event: Literal["resumed"]
    round: Integer
    by: Literal["principal", "driver"]


@frozen(kw_only=True)
class Cancelled(LoopRecord):
    """A paused loop was cancelled."""

    event: Literal["cancelled"]
    round: Integer
    by: Literal["principal"]


@frozen(kw_only=True)
class UnpushedWorkResume(LoopRecord):
    """The driver resumes a developer who stopped before the push."""

    event: Literal["unpushed_work_resume"]
    round: Integer
    branch: Text
    detail: Text


@frozen(kw_only=True)
class RoundEnded(LoopRecord):
    """A round ends: what it changed, how long it took (``wall_ms``, milliseconds), how it came out."""

    event: Literal["round_ended"]
    round: Integer
    base_head: Text
    head: Text
    files_changed: Count
    insertions: Count
    deletions: Count
    wall_ms: Amount
    outcome: Literal["green", "changes_requested", "escalated"]


@frozen(kw_only=True)
class JournalFinalized(LoopRecord):
    """The loop's books close; ``time_to_green_ms`` is null where it never was green."""

    event: Literal["journal_finalized"]
    rounds: Count
    total_wall_ms: Amount
    time_to_green_ms: Amount | None
    files_changed_total: Count
    final_head: Text
    result: Literal["merged_ready", "stopped"]


@frozen(kw_only=True)
class InfrastructureRetry(LoopRecord):
    """What became of one episode of retries."""

    event: Literal["infrastructure_retry"]
    round: Integer
    failure_kind: Literal["pause_comment_post", "developer_connection"]
    attempts: Annotated[int, Rule(minimum=1)]
    outcome: Literal["recovered", "exhausted"]


@frozen(kw_only=True)
class DriverHeartbeat(LoopRecord):
    """The driver lives: at most once in five minutes."""

    event: Literal["driver_heartbeat"]
    task: Integer
    pr: Annotated[int, Rule(minimum=1)] | Absent = ABSENT
    round: Integer
    phase: Text


@frozen(kw_only=True)
class DriverExited(LoopRecord):
    """The driver's process has ended; the loop may go on in another."""

    event: Literal["driver_exited"]
    task: Integer
    reason: Literal["finished", "paused", "reexec", "error", "signal"]
    last_decision: Text
    exit_code: Integer | Absent = ABSENT
    error_class: Token | Absent = ABSENT
