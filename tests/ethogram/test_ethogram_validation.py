"""What a producer should not have sent: the six kinds, their order and their fields."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given

from ethogram.canonical import canonical_payload
from ethogram.envelope import EventDraft
from ethogram.json_text import Json
from ethogram.validation import (
    ValidationError,
    serialise_validation_error,
    validate,
    validated_payload,
)
from ethogram.vocabulary import EVENT_TYPES, MAX_EXCERPT_SCALARS, MAX_PAYLOAD_BYTES, MAX_TEXT_SCALARS
from tests.ethogram.event_strategies import drafts

LONG = "😀" * (MAX_EXCERPT_SCALARS + 1)
TOO_LONG = "😀" * (MAX_TEXT_SCALARS + 1)


def details(type_name: str, payload: Json) -> dict[str, Json]:
    with pytest.raises(ValidationError) as raised:
        validate(type_name, payload)
    found: dict[str, Json] = orjson.loads(serialise_validation_error(raised.value))
    assert found["kind"] == raised.value.kind
    assert found.get("path", "payload") == raised.value.path
    return found


DOSSIER: dict[str, Json] = {
    "question": "q",
    "optionsRuledOut": [],
    "recommendedAction": "r",
    "blastRadius": "b",
}


def decision(**changes: Json) -> dict[str, Json]:
    base: dict[str, Json] = {
        "decisionId": "d",
        "kind": "permission",
        "dossier": {**DOSSIER},
        "options": [{"id": "allow", "label": "A"}, {"id": "deny", "label": "D"}],
    }
    return base | changes


@given(drafts())
def test_a_payload_made_from_the_vocabulary_is_valid_and_comes_back_canonical(draft: EventDraft) -> None:
    assert validated_payload(draft.type, draft.payload) == canonical_payload(draft.payload)


def test_the_order_of_checks_is_the_protocols() -> None:
    # Each payload breaks every later rule too.
    shape: dict[str, Json] = {"outcome": "nope", "durationMs": -1, "reason": LONG}
    assert details("run.finished", shape | {"z": TOO_LONG, "n": 2**60})["kind"] == "OverBound"
    assert details("run.finished", shape | {"z": [0] * 70_000, "n": 2**60})["kind"] == "PayloadTooLarge"
    assert details("run.finished", shape | {"n": 2**60})["path"] == "payload.n"
    assert details("run.finished", shape)["path"] == "payload.durationMs"
    assert details("run.finished", shape | {"durationMs": 1})["kind"] == "UnknownMember"
    assert details("run.finished", shape | {"durationMs": 1, "outcome": "failed"})["kind"] == "OverBound"


def test_each_kind_has_exactly_its_fields() -> None:
    assert details("x.open", [TOO_LONG]) == {
        "kind": "OverBound",
        "path": "payload[0]",
        "count": 16_385,
        "max": 16_384,
    }
    assert details("x.open", [0] * 65_536) == {
        "kind": "PayloadTooLarge",
        "bytes": 131_073,
        "max": 131_072,
    }
    assert details("run.finished", {"outcome": "nope", "durationMs": 1}) == {
        "kind": "UnknownMember",
        "path": "payload.outcome",
        "value": "nope",
    }
    missing = decision(options=[{"id": "a"}])
    assert details("decision.requested", missing) == {
        "kind": "MissingField",
        "path": "payload.options[0].label",
    }
    steer: dict[str, Json] = {"controlId": "c", "kind": "steer", "by": "b", "text": ""}
    assert details("control.requested", {**steer}).keys() == {"kind", "path", "message"}
    assert details("agent.text", None) == {
        "kind": "Malformed",
        "path": "payload",
        "message": "payload must be an object",
    }


def test_no_message_repeats_the_unknown_member() -> None:
    with pytest.raises(ValidationError) as raised:
        validate("run.finished", {"outcome": "xyzzy", "durationMs": 1})
    assert "xyzzy" not in str(raised.value)


def test_an_unknown_type_has_only_the_two_universal_bounds() -> None:
    validate("x.open", {"n": 2**60, "kind": 3, "text": "x" * MAX_TEXT_SCALARS})
    validate("Run.finished", {})
    text = "x" * 16_374
    edge: dict[str, Json] = {str(index): text for index in range(8)}
    room = MAX_PAYLOAD_BYTES - len(canonical_payload(edge))
    assert 0 < room < MAX_TEXT_SCALARS - len(text) + 1_000
    validate("x.open", {**edge, "8": "x" * (room - 7)})
    assert details("x.open", {**edge, "8": "x" * (room - 4)})["kind"] == "PayloadTooLarge"


def test_a_steer_must_say_something_and_white_space_is_something() -> None:
    steer: dict[str, Json] = {"controlId": "c", "kind": "steer", "by": "b"}
    assert details("control.requested", {**steer})["path"] == "payload.text"
    validate("control.requested", steer | {"text": " "})
    validate("control.requested", steer | {"kind": "interrupt"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "tripwire", "onTimeout": "deny"}, "kind permission"),
        ({"onTimeout": "allow"}, "can only be deny"),
        ({"onTimeout": ""}, "can only be deny"),
        ({"onTimeout": "deny", "options": []}, "one of the options"),
    ],
)
def test_only_a_permission_may_time_out_and_only_into_an_offered_deny(
    changes: dict[str, Json], message: str
) -> None:
    validate("decision.requested", decision(onTimeout="deny"))
    found = details("decision.requested", decision(**changes))
    assert found["kind"] == "Policy"
    assert message in str(found["message"])


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"question": LONG}, "payload.dossier.question"),
        ({"optionsRuledOut": ["", LONG]}, "payload.dossier.optionsRuledOut[1]"),
        ({"blastRadius": LONG}, "payload.dossier.blastRadius"),
    ],
)
def test_narration_of_a_dossier_is_bounded(changes: dict[str, Json], path: str) -> None:
    found = details("decision.requested", decision(dossier={**DOSSIER, **changes}))
    assert found == {"kind": "OverBound", "path": path, "count": 4_097, "max": 4_096}


def test_every_excerpt_of_the_vocabulary_is_bounded_where_it_stands() -> None:
    bounded = [
        (name, field)
        for name, known in EVENT_TYPES.items()
        for field in known.payload.fields
        if field.max_scalars == MAX_EXCERPT_SCALARS
    ]
    assert {f"{name} {field.name}" for name, field in bounded} == {
        "run.finished reason",
        "agent.tool_use inputExcerpt",
        "agent.tool_result resultExcerpt",
        "agent.warning message",
        "control.requested text",
        "control.applied reason",
        "capture.refused detail",
    }
    for name, field in bounded:
        special: dict[str, Json] = {"kind": "interrupt", "ok": True, "durationMs": 1}
        payload: dict[str, Json] = {field.name: "x" * 4_097}
        for other in EVENT_TYPES[name].payload.fields:
            if other.required and other is not field:
                payload[other.name] = special.get(other.name, other.members[0] if other.members else "s")
        assert details(name, payload)["path"] == f"payload.{field.name}"
        validate(name, payload | {field.name: "x" * 4_096})


def test_what_cannot_be_written_is_malformed_and_never_a_crash() -> None:
    deep: Json = []
    for _ in range(5_000):
        deep = [deep]
    validate("x.open", deep)
    unwritable: object = {"a": {1, 2}}
    with pytest.raises(ValidationError) as raised:
        validate("x.open", unwritable)
    assert raised.value.kind == "Malformed"
    assert details("agent.completed", {"costUsd": float("nan")})["path"] == "payload.costUsd"
