"""The objects that stand inside a line's own fields, and the top level that all lines share."""

from __future__ import annotations

from typing import Annotated, Literal

from attrs import frozen

from vinaya_bridge.log.header import Header, Subject
from vinaya_bridge.log.rules import ABSENT, Absent, Amount, Count, Integer, Role, Rule, Text


@frozen(kw_only=True)
class Payload:
    """The ``payload`` of a line: always an object without a key."""


@frozen(kw_only=True)
class Record:
    """
    The top level of every line; each event adds its ``kind``, its ``event`` and its own fields.

    Args:
        meta: The header.

        subject: What the line is about.

        payload: Always empty.

        duration_ms: How long the act took, in milliseconds.
    """

    meta: Header
    subject: Subject
    payload: Payload
    duration_ms: Amount | Absent = ABSENT


@frozen(kw_only=True)
class Tokens:
    """
    What a turn used.

    Args:
        input: Input tokens.

        output: Output tokens.
    """

    input: Amount
    output: Amount


@frozen(kw_only=True)
class Units:
    """
    What a usage line observed; null is unknown, never 0.

    Args:
        input: Input tokens.

        output: Output tokens.

        cache: Cache tokens, one figure whatever the vendor counts in it.
    """

    input: Amount | None
    output: Amount | None
    cache: Amount | None


@frozen(kw_only=True)
class UsageLimit:
    """
    The vendor's limit that a turn ran into.

    Args:
        agent: The vendor's agent.

        reset_at: When the limit ends, ISO 8601.
    """

    agent: Text
    reset_at: Text | None


@frozen(kw_only=True)
class Objective:
    """
    One objective as a reviewer judged it.

    Args:
        id: Its id.

        met: Whether it is met.
    """

    id: Text
    met: bool


@frozen(kw_only=True)
class Finding:
    """
    One finding of a reviewer.

    Args:
        id: Its id, stable only within one round's comment.

        severity: How severe, in the reviewer's own words.

        location: Where.

        deferral_reason: Why it does not count in this change.

        description: What was found: at most 1,000 UTF-16 units.

        state: What has become of it.

        severity_scale: The scale of ``severity``.

        policy_treatment: What the policy makes of it.

        confidence: How sure the reviewer is, from 0 to 1.

        confidence_scale: The scale of ``confidence``.

        confidence_source: Where ``confidence`` comes from.
    """

    id: Text
    severity: Text
    location: Text | Absent = ABSENT
    deferral_reason: Literal["outside-surface", "unchanged-line"] | Absent = ABSENT
    description: Annotated[str, Rule(max_units=1000)] | Absent = ABSENT
    state: Text | Absent = ABSENT
    severity_scale: Text | Absent = ABSENT
    policy_treatment: Literal["blocking", "non_blocking", "unavailable"] | Absent = ABSENT
    confidence: Annotated[float, Rule(minimum=0, maximum=1)] | Absent = ABSENT
    confidence_scale: Text | Absent = ABSENT
    confidence_source: Text | Absent = ABSENT


@frozen(kw_only=True)
class Reviewer:
    """
    What one reviewer decided.

    Args:
        role: The reviewer's role.

        outcome: The decision.

        blockers: How many findings block.
    """

    role: Role
    outcome: Literal["approve", "changes_requested", "not_reviewed"]
    blockers: Count


@frozen(kw_only=True)
class Policy:
    """
    What a loop may do.

    Args:
        max_rounds: The greatest number of rounds.

        reviewers: The roles that review.

        models: The model of each role that has one of its own.
    """

    max_rounds: Count
    reviewers: tuple[Role, ...]
    models: dict[Role, Text]


@frozen(kw_only=True)
class ForgeTarget:
    """
    What a write to the forge was aimed at; it may name neither.

    Args:
        issue: The Issue's number.

        pr: The pull request's number.
    """

    issue: Integer | Absent = ABSENT
    pr: Integer | Absent = ABSENT


@frozen(kw_only=True)
class EffectTarget:
    """
    What a governed write was aimed at.

    Args:
        kind: The operation.

        ref: Its target.
    """

    kind: Text
    ref: Text


HandoffClass = Literal["authority", "strategy", "product"]
"""The kinds of question that go to a human."""


@frozen(kw_only=True)
class PrOpened:
    """A turn that opened a pull request: its number and its head commit."""

    type: Literal["pr_opened"]
    pr: Integer
    head: Text


@frozen(kw_only=True)
class RoundPushed:
    """A turn that pushed a round: the pull request, the head commit and the comment."""

    type: Literal["round_pushed"]
    pr: Integer
    head: Text
    comment_id: Integer


@frozen(kw_only=True)
class Verdict:
    """A review: its verdict on a head commit, the comment, the objectives and the findings."""

    type: Literal["verdict"]
    verdict: Literal["APPROVE", "REQUEST CHANGES", "PASS", "FAIL"]
    head: Text
    comment_id: Integer
    objectives: tuple[Objective, ...]
    findings: tuple[Finding, ...]


@frozen(kw_only=True)
class Escalation:
    """A turn that asked a human: what kind of question, and the comment."""

    type: Literal["escalation"]
    class_: HandoffClass
    comment_id: Integer


@frozen(kw_only=True)
class Brief:
    """A brief that was written: the comment and its digest."""

    type: Literal["brief"]
    comment_id: Integer
    hash: Text


@frozen(kw_only=True)
class Plan:
    """A plan that was made: the Issues it has."""

    type: Literal["plan"]
    issues: tuple[Integer, ...]


@frozen(kw_only=True)
class Archive:
    """A turn that archived its work: the provenance comment."""

    type: Literal["archive"]
    provenance_comment_id: Integer


@frozen(kw_only=True)
class Completed:
    """A turn that completed; the only outcome that is written today."""

    type: Literal["completed"]


Outcome = PrOpened | RoundPushed | Verdict | Escalation | Brief | Plan | Archive | Completed
"""What a dispatched turn came to; ``type`` tells which."""
