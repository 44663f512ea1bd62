"""Reading events and drafts: what is refused, in which order, and that nothing crashes."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import serialise_event
from ethogram.envelope import EventDraft, parse_draft, parse_event, parse_event_text, stamp
from ethogram.json_text import Json, ParseError
from ethogram.vocabulary import EVENT_TYPES, MAX_PAYLOAD_DEPTH, Field, FieldKind
from tests.ethogram.event_strategies import drafts, json_values


def envelope(**changes: object) -> dict[str, object]:
    base: dict[str, object] = {"v": 1, "type": "x.open", "runId": "r", "seq": 1, "ts": "t", "payload": 1}
    return {key: value for key, value in (base | changes).items() if value is not Ellipsis}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "must be an object"),
        ([], "must be an object"),
        (envelope(extra=1, stage=2), "unknown fields: 'extra', 'stage'"),
        (envelope(V=1, v=2), "unknown field: 'V'"),
        (envelope(v=...), "missing required field: v"),
        (envelope(v=..., payload=...), "missing required field: v"),
        (envelope(payload=...), "missing required field: payload"),
        (envelope(v=True), "Event.v"),
        (envelope(v="1"), "Event.v"),
        (envelope(type=None), "Event.type"),
        (envelope(runId=3), "Event.runId"),
        (envelope(runId="\ud800"), "lone surrogate"),
        (envelope(seq=0), "Event.seq"),
        (envelope(seq=True), "Event.seq"),
        (envelope(seq=1.5), "Event.seq"),
        (envelope(seq=2**53), "Event.seq"),
        (envelope(seq=math.nan), "Event.seq"),
        (envelope(ts=None), "Event.ts"),
        (envelope(capturedAt=None), "Event.capturedAt"),
        (envelope(payload=2**53), "payload is a whole number beyond"),
        (envelope(payload={"a": [1e300]}), r"payload.a\[0\] is a whole number"),
        (envelope(payload=[math.inf]), r"payload\[0\] is not a finite number"),
        (envelope(payload={"a": "\ud800"}), "payload.a holds a lone surrogate"),
        (envelope(payload={"\ud800": 1}), "key that holds a lone surrogate"),
        (envelope(payload={1: 1}), "key that is not a string"),
        (envelope(payload={"a": {1}}), "a type that JSON does not have"),
        (envelope(payload=2**53, capturedAt=None), "payload"),
        (envelope(type="agent.text", payload={}), "payload.text is required"),
        (envelope(type="agent.text", payload={"text": None}), "payload.text must be a string"),
        (envelope(type="agent.text", payload=[]), "payload must be an object"),
    ],
)
def test_the_first_fault_of_an_event_is_named(value: object, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_event(value)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"\xef\xbb\xbf{}",
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":"\xff"}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":"\\ud800"}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":NaN}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":-Infinity}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":1e400}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":9007199254740992}',
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":1' + b"0" * 5_000 + b"}",
        b'{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":' + b"[" * 500 + b"]" * 500 + b"}",
        b"[" * 1_000_000,
        '{"v":1,"type":"a","runId":"\ud800","seq":1,"ts":"t","payload":1}',
    ],
)
def test_text_that_no_sdk_could_carry_is_refused(text: bytes | str) -> None:
    with pytest.raises(ParseError):
        parse_event_text(text)


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_no_text_crashes_the_parser(text: bytes | str) -> None:
    with pytest.raises(ParseError):
        parse_event_text(text)


@pytest.mark.parametrize("parse", [parse_event, parse_draft])
@given(value=json_values)
def test_no_value_crashes_a_parser(parse: Callable[[object], object], value: Json) -> None:
    with pytest.raises(ParseError):
        parse(value)


def test_a_message_repeats_no_value() -> None:
    secret = "xyzzy"  # noqa: S105  a stand-in
    for value in (
        envelope(v=secret),
        envelope(seq=secret),
        envelope(type="agent.text", payload=secret),
        envelope(type="agent.text", payload={"text": {secret: secret}}),
        envelope(type="agent.text", payload={"text": "", "truncated": secret}),
    ):
        with pytest.raises(ParseError) as raised:
            parse_event(value)
        assert secret not in str(raised.value)
    with pytest.raises(ParseError) as raised:
        parse_event_text(f'{{"{secret}')
    assert secret not in str(raised.value)


def test_integers_may_be_spelt_with_a_fraction_or_an_exponent() -> None:
    text = '{"v":1.0,"type":"run.finished","runId":"r","seq":1e1,"ts":"t","payload":%s}'
    event = parse_event_text(text % '{"outcome":"failed","durationMs":1e2}')
    assert serialise_event(event) == (
        b'{"v":1,"type":"run.finished","runId":"r","seq":10,"ts":"t",'
        b'"payload":{"durationMs":100,"outcome":"failed"}}'
    )


def test_the_last_of_a_repeated_key_counts_at_every_level() -> None:
    event = parse_event_text(
        '{"v":9,"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":{"a":{"b":1,"b":2},"a":{"c":1,"c":3}}}'
    )
    assert event.payload == {"a": {"c": 3}}


@pytest.mark.parametrize("depth", [MAX_PAYLOAD_DEPTH, MAX_PAYLOAD_DEPTH + 1])
def test_nesting_is_carried_up_to_its_stated_depth(depth: int) -> None:
    text = '{"v":1,"type":"a","runId":"r","seq":1,"ts":"t","payload":%s}' % ("[" * depth + "]" * depth)
    if depth <= MAX_PAYLOAD_DEPTH:
        assert serialise_event(parse_event_text(text)).decode() == text
    else:
        with pytest.raises(ParseError, match="deeper than 126 levels"):
            parse_event_text(text)


def test_unknown_keys_are_kept_at_every_level_of_a_known_payload() -> None:
    payload: Json = {"usage": {"__proto__": None, "unit": "u"}, "__proto__": 5, "": {"x": [None]}}
    event = parse_event(envelope(type="agent.completed", payload=payload))
    assert event.payload == payload
    assert parse_event_text(serialise_event(event)) == event


@given(drafts())
def test_a_draft_reads_back_as_it_was(draft: EventDraft) -> None:
    value: dict[str, object] = {"type": draft.type, "payload": draft.payload}
    if draft.captured_at is not None:
        value["capturedAt"] = draft.captured_at
    assert parse_draft(value) == draft


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"type": "a"}, "missing required field: payload"),
        ({"payload": 1}, "missing required field: type"),
        ({"type": "a", "payload": 1, "runId": "r"}, "unknown field: 'runId'"),
        ({"type": "a", "payload": 1, "capturedAt": None}, "EventDraft.capturedAt must be a string"),
        ({"type": 1, "payload": 1}, "EventDraft.type must be a string"),
        ({"type": "a", "payload": 2**60}, "whole number"),
        ({"type": "agent.text", "payload": {}}, "payload.text is required"),
    ],
)
def test_a_draft_holds_three_fields_and_nothing_else(value: object, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        parse_draft(value)


def test_stamping_checks_nothing_and_adds_the_sinks_fields() -> None:
    event = stamp(EventDraft("a", {"n": 2**60}, "c"), run_id="r", seq=3, ts="t")
    assert (event.v, event.type, event.run_id, event.seq, event.ts) == (1, "a", "r", 3, "t")
    assert (event.payload, event.captured_at) == ({"n": 2**60}, "c")


def _wrong_values(kind: FieldKind) -> list[object]:
    values: list[object] = [None, "text", True, 1.5, -1, [], {}]
    fitting = {
        FieldKind.STRING: (1,),
        FieldKind.UNION: (1,),
        FieldKind.BOOLEAN: (2,),
        FieldKind.NUMBER: (3, 4),
        FieldKind.COUNT: (),
        FieldKind.OBJECT: (6,),
        FieldKind.LIST: (5,),
    }[kind]
    return [value for index, value in enumerate(values) if index not in fitting]


def _fields() -> list[tuple[str, Field]]:
    return [(name, field) for name, known in EVENT_TYPES.items() for field in known.payload.fields]


@pytest.mark.parametrize(("name", "field"), _fields(), ids=lambda item: getattr(item, "name", item))
def test_each_known_field_refuses_values_of_other_types_and_absence_where_it_is_required(
    name: str, field: Field
) -> None:
    payload = _least(EVENT_TYPES[name].payload)
    for wrong in _wrong_values(field.kind):
        with pytest.raises(ParseError) as raised:
            parse_event(envelope(type=name, payload=payload | {field.name: wrong}))
        assert raised.value.path.startswith(f"payload.{field.name}")
        assert not raised.value.missing or field.kind is FieldKind.OBJECT
    without = {key: value for key, value in payload.items() if key != field.name}
    if field.required:
        with pytest.raises(ParseError) as raised:
            parse_event(envelope(type=name, payload=without))
        assert raised.value.path == f"payload.{field.name}"
        assert raised.value.missing
    else:
        assert parse_event(envelope(type=name, payload=without)).payload == without


def _least(field: Field) -> dict[str, Json]:
    """The smallest object that an object field takes."""
    return {inner.name: _least_value(inner) for inner in field.fields if inner.required}


def _least_value(field: Field) -> Json:
    match field.kind:
        case FieldKind.UNION:
            return field.members[0]
        case FieldKind.BOOLEAN:
            return False
        case FieldKind.COUNT | FieldKind.NUMBER:
            return 0
        case FieldKind.OBJECT:
            return {**_least(field)}
        case FieldKind.LIST:
            return []
        case _:
            return ""
