"""
The protocol as data: every known type, its payload fields, closed unions and bounds, stated once.

The parser, the validator and whoever checks a mapping read these tables; none has a second list of fields.
Source: the ethogram specification, version 1, and the order of checks its SDKs share.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from attrs import frozen

SCHEMA_VERSION: Final = 1
"""The only value of an envelope's ``v``."""

MAX_TEXT_SCALARS: Final = 16_384
"""The longest string anywhere in a payload, in Unicode scalar values."""

MAX_EXCERPT_SCALARS: Final = 4_096
"""The longest excerpt (tool input, result, reason, message, dossier narration), in Unicode scalar values."""

MAX_PAYLOAD_BYTES: Final = 131_072
"""The largest payload, in bytes of its canonical UTF-8 form; the envelope does not count."""

MAX_SAFE_INTEGER: Final = 2**53 - 1
"""The largest magnitude of an integer that every reader holds exactly."""

MAX_PAYLOAD_DEPTH: Final = 126
"""How deep arrays and objects of a payload may nest: what the Rust SDK can read inside an envelope."""


class FieldKind(Enum):
    """What a payload field holds. The value is the requirement as a message words it."""

    STRING = "a string"
    UNION = "a string of a closed set"
    BOOLEAN = "true or false"
    NUMBER = "a finite number"
    COUNT = "a whole number from 0 to 9007199254740991"
    OBJECT = "an object"
    LIST = "an array"


@frozen
class Field:
    """
    One field of a payload or of an object inside it.

    Args:
        name: The key on the wire; empty for the items of a list.

        kind: What it holds.

        required: Whether its absence makes the payload malformed.

        members: The closed set of a ``UNION``, in the order of the specification.

        max_scalars: Its own bound in Unicode scalar values, beneath the universal one; None without one.

        truncated_by: The flag that says its text was cut, beside it; empty where the protocol has none.

        fields: The fields of an ``OBJECT``, in the order they are checked.

        item: What each item of a ``LIST`` is.

        unit: ``ms``, ``tokens``, ``usd``, ``turns``, ``events`` or ``scalars or bytes``; empty without one.
    """

    name: str
    kind: FieldKind
    required: bool = False
    members: tuple[str, ...] = ()
    max_scalars: int | None = None
    truncated_by: str = ""
    fields: tuple[Field, ...] = ()
    item: Field | None = None
    unit: str = ""

    def field(self, name: str) -> Field | None:
        """The field called *name* of this object, or None where the protocol knows none."""
        return next((field for field in self.fields if field.name == name), None)


@frozen
class EventType:
    """
    A type that the protocol knows.

    Args:
        name: The wire's ``type``.

        payload: Its payload, an ``OBJECT`` whose fields are in the order they are checked.

        meaning: What the event records, in one sentence.
    """

    name: str
    payload: Field
    meaning: str

    @property
    def domain(self) -> str:
        """What comes before the first dot: ``run``, ``agent``, ``control``, ``capture`` or ``decision``."""
        return self.name.partition(".")[0]


def _string(name: str, *, required: bool = False, excerpt: bool = False, flag: str = "") -> Field:
    bound = MAX_EXCERPT_SCALARS if excerpt else None
    return Field(name, FieldKind.STRING, required=required, max_scalars=bound, truncated_by=flag)


def _union(name: str, *members: str) -> Field:
    return Field(name, FieldKind.UNION, required=True, members=members)


def _boolean(name: str, *, required: bool = False) -> Field:
    return Field(name, FieldKind.BOOLEAN, required=required)


def _count(name: str, unit: str, *, required: bool = False) -> Field:
    return Field(name, FieldKind.COUNT, required=required, unit=unit)


def _number(name: str, unit: str) -> Field:
    return Field(name, FieldKind.NUMBER, unit=unit)


def _object(name: str, *fields: Field, required: bool = False) -> Field:
    return Field(name, FieldKind.OBJECT, required=required, fields=fields)


def _list(name: str, item: Field, *, required: bool = False) -> Field:
    return Field(name, FieldKind.LIST, required=required, item=item)


def _type(name: str, meaning: str, *fields: Field) -> EventType:
    return EventType(name, _object("payload", *fields), meaning)


RUN_STARTED: Final = "run.started"
RUN_FINISHED: Final = "run.finished"
CONTROL_REQUESTED: Final = "control.requested"
CAPTURE_REFUSED: Final = "capture.refused"
DECISION_REQUESTED: Final = "decision.requested"
DECISION_ANSWERED: Final = "decision.answered"

RUN_KINDS: Final = ("loop", "handoff", "subagent", "session", "judgment", "relay")
RUN_OUTCOMES: Final = (
    "completed",
    "failed",
    "no-op",
    "timed-out",
    "interrupted",
    "permission-denied",
    "canceled",
    "capped",
    "blocked",
    "unstarted",
)
CONTROL_KINDS: Final = ("interrupt", "steer")
REFUSAL_CAUSES: Final = ("over_bound", "gap", "duplicate", "finished", "malformed")
DECISION_KINDS: Final = ("permission", "tripwire", "gate_inconclusive", "human_decides", "budget")

_STAGE: Final = _string("stage")
_TRUNCATED: Final = _boolean("truncated")
_PARENT_TOOL_USE: Final = _string("parentToolUseId")
_USAGE: Final = _object(
    "usage",
    _count("inputTokens", "tokens"),
    _count("outputTokens", "tokens"),
    _count("cacheReadTokens", "tokens"),
    _count("cacheCreationTokens", "tokens"),
    _string("unit"),
)
_CEILINGS: Final = _object(
    "ceilings",
    _number("costUsd", "usd"),
    _count("tokens", "tokens"),
    _count("wallMs", "ms"),
    _count("idleMs", "ms"),
    _count("turns", "turns"),
)
_DOSSIER: Final = _object(
    "dossier",
    _string("question", required=True, excerpt=True, flag="truncated"),
    _list("optionsRuledOut", _string("", required=True, excerpt=True, flag="truncated"), required=True),
    _string("recommendedAction", required=True, excerpt=True, flag="truncated"),
    _string("blastRadius", required=True, excerpt=True, flag="truncated"),
    _TRUNCATED,
    required=True,
)
_OPTION: Final = _object(
    "", _string("id", required=True), _string("label", required=True, excerpt=True), required=True
)

_TYPES: Final = (
    _type(
        RUN_STARTED,
        "Opens one run and records the harness identity and any declared parent or bounds.",
        _union("kind", *RUN_KINDS),
        _string("actor", required=True),
        _string("harness", required=True),
        _string("model"),
        _string("parentRunId"),
        _PARENT_TOOL_USE,
        _string("schedule"),
        _string("repository"),
        _string("workOrder"),
        _CEILINGS,
    ),
    _type(
        RUN_FINISHED,
        "Closes one run; nothing of that run follows it.",
        _union("outcome", *RUN_OUTCOMES),
        _string("reason", excerpt=True, flag="truncated"),
        _TRUNCATED,
        _number("costUsd", "usd"),
        _USAGE,
        _count("durationMs", "ms", required=True),
        _boolean("estimated"),
    ),
    _type(
        "agent.started",
        "Records that an agent began, with the harness's own session identifier.",
        _STAGE,
        _string("model"),
        _string("sessionId"),
        _count("pid", ""),
    ),
    _type(
        "agent.text",
        "Carries bounded assistant narration.",
        _STAGE,
        Field(
            "text",
            FieldKind.STRING,
            required=True,
            max_scalars=MAX_TEXT_SCALARS,
            truncated_by="truncated",
        ),
        _TRUNCATED,
        _PARENT_TOOL_USE,
    ),
    _type(
        "agent.tool_use",
        "Records a tool invocation with bounded input.",
        _STAGE,
        _string("tool", required=True),
        _string("inputExcerpt", excerpt=True, flag="truncated"),
        _TRUNCATED,
        _string("toolUseId"),
        _PARENT_TOOL_USE,
    ),
    _type(
        "agent.tool_result",
        "Records a bounded tool response and associates it with its invocation.",
        _STAGE,
        _string("tool", required=True),
        _boolean("isError"),
        _string("resultExcerpt", excerpt=True, flag="truncated"),
        _TRUNCATED,
        _string("toolUseId"),
        _PARENT_TOOL_USE,
    ),
    _type(
        "agent.completed",
        "Records completion and any totals that the harness reported.",
        _STAGE,
        _count("turns", "turns"),
        _string("sessionId"),
        _number("costUsd", "usd"),
        _string("model"),
        _USAGE,
        _count("durationMs", "ms"),
        _boolean("estimated"),
    ),
    _type(
        "agent.warning",
        "Carries a harness warning that does not end the run.",
        _STAGE,
        _string("message", required=True, excerpt=True),
    ),
    _type(
        CONTROL_REQUESTED,
        "Records a request to interrupt or steer the run, naming who asked.",
        _string("controlId", required=True),
        _union("kind", *CONTROL_KINDS),
        _string("text", excerpt=True, flag="truncated"),
        _TRUNCATED,
        _string("by", required=True),
    ),
    _type(
        "control.applied",
        "Records whether the runtime honoured a request, and where a hard kill landed.",
        _string("controlId", required=True),
        _boolean("ok", required=True),
        _string("reason", excerpt=True, flag="truncated"),
        _TRUNCATED,
        _string("landedIn"),
    ),
    _type(
        CAPTURE_REFUSED,
        "Records an event that a relay or runtime refused, on that runtime's own run.",
        _union("cause", *REFUSAL_CAUSES),
        _string("sourceRunId", required=True),
        _count("sourceSeq", "events"),
        _string("sourceType"),
        _string("field"),
        _count("count", "scalars or bytes"),
        _count("max", "scalars or bytes"),
        _string("detail", excerpt=True, flag="truncated"),
        _TRUNCATED,
    ),
    _type(
        DECISION_REQUESTED,
        "Opens a decision with its bounded dossier and the options a human may choose.",
        _string("decisionId", required=True),
        _union("kind", *DECISION_KINDS),
        _DOSSIER,
        _list("options", _OPTION, required=True),
        _string("subject"),
        _string("expiresAt"),
        _string("onTimeout"),
    ),
    _type(
        DECISION_ANSWERED,
        "Records the answer to a decision, on the run of the invocation that applies it.",
        _string("decisionId", required=True),
        _string("optionId", required=True),
        _string("by", required=True),
        _boolean("byTimeout"),
        _string("reversal"),
        _string("requestedRunId"),
    ),
)

EVENT_TYPES: Final[Mapping[str, EventType]] = MappingProxyType({known.name: known for known in _TYPES})
"""Every known type by its wire name, in the order of the specification."""

KNOWN_TYPES: Final = frozenset(EVENT_TYPES)
"""The wire names of the known types. Any other type is open: carried, and bounded only universally."""

DOMAINS: Final = frozenset(known.domain for known in _TYPES)
"""The first parts of known type names; a producer's own type should start with none of them."""
