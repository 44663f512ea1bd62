"""The canonical form: a fixed point, sorted, in ECMAScript's notation of numbers."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ethogram import canonical
from ethogram.canonical import (
    CanonicalError,
    canonical_payload,
    compose_line,
    compose_lines,
    format_number,
    serialise_event,
)
from ethogram.envelope import CanonicalDraft, EventDraft, parse_event_text, stamp
from ethogram.json_text import Json
from tests.ethogram.event_strategies import drafts, json_values, texts

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(json_values)
def test_canonical_form_is_a_fixed_point(value: Json) -> None:
    text = canonical_payload(value)
    assert canonical_payload(orjson.loads(text)) == text
    assert orjson.loads(text) == value


@given(json_values)
def test_the_quick_encoder_and_the_exact_one_write_the_same_bytes(value: Json) -> None:
    assert canonical_payload(value) == canonical._encode_exactly(value)


@given(finite)
@example(1.0)
@example(-0.0)
@example(1e16)
@example(1e20)
@example(1e21)
@example(1e22)
@example(1e-6)
@example(9.999e-6)
@example(1e-7)
@example(1e-5)
@example(123456789012345680000.0)
def test_a_double_reads_back_and_both_encoders_agree_on_it(number: float) -> None:
    text = format_number(number)
    assert float(text) == number
    assert canonical_payload({"n": [number]}) == b'{"n":[%b]}' % text.encode()
    assert canonical_payload(number) == text.encode()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (100.0, "100"),
        (0.000001, "0.000001"),
        (1.5e-6, "0.0000015"),
        (1e-7, "1e-7"),
        (1.5e-7, "1.5e-7"),
        (5e-324, "5e-324"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740993, "9007199254740992"),
        (2**64, "18446744073709552000"),
        (10**400, "null"),
        (math.inf, "null"),
        (math.nan, "null"),
        (0.09765190000000001, "0.09765190000000001"),
    ],
)
def test_numbers_are_written_as_ecmascript_writes_them(number: float, text: str) -> None:
    assert format_number(number) == text
    assert canonical_payload([number]) == f"[{text}]".encode()


def test_keys_are_sorted_by_their_utf8_bytes_at_every_level() -> None:
    value: Json = {"é": 1, "z": {"b": 1, "a": 2}, "10": 1, "9": 1, "\uffff": 1, "😀": 1, "": 1, "Z": 1}
    keys = list(json.loads(canonical_payload(value)))
    assert keys == sorted(keys, key=str.encode)
    assert canonical_payload({"z": {"b": 1, "a": 2}}) == b'{"z":{"a":2,"b":1}}'


def test_only_what_json_must_escape_is_escaped() -> None:
    text = '"\\\b\t\n\f\r\x00\x1f/\x7f\x80\u2028\ufeff😀'
    expected = '"\\"\\\\\\b\\t\\n\\f\\r\\u0000\\u001f/\x7f\x80\u2028\ufeff😀"'.encode()
    assert canonical_payload(text) == expected
    assert canonical._encode_exactly(text) == expected


def test_a_lone_surrogate_is_written_as_its_escape_and_sorts_as_the_replacement_character() -> None:
    assert canonical_payload({"\ud800": '\udc00"', "m": 1}) == b'{"m":1,"\\ud800":"\\udc00\\""}'


def test_text_that_looks_like_an_odd_number_is_left_alone() -> None:
    for text in ("1.0", "the-1e5", ":1e+5,", "[1.0]"):
        assert canonical_payload([text]) == orjson.dumps([text])


def test_nesting_of_any_depth_is_written() -> None:
    value: Json = []
    for _ in range(5_000):
        value = [value]
    assert canonical_payload(value) == b"[" * 5_001 + b"]" * 5_001


@pytest.mark.parametrize(
    "value", [{1: 2}, {"a": {3}}, datetime(2026, 1, 1, tzinfo=UTC), b"bytes", object(), (1, "\ud800")]
)
def test_what_is_not_json_is_refused_by_name_of_its_fault(value: object) -> None:
    with pytest.raises(CanonicalError, match=r"JSON does not have|not a string"):
        canonical_payload(value)


@given(drafts(), st.integers(1, 2**53 - 1), texts, texts)
def test_an_event_reads_back_as_it_was(draft: EventDraft, seq: int, run_id: str, ts: str) -> None:
    event = stamp(draft, run_id=run_id, seq=seq, ts=ts)
    line = serialise_event(event)
    assert parse_event_text(line) == event
    assert serialise_event(parse_event_text(line)) == line


@given(st.lists(drafts(), max_size=5), texts, texts)
def test_bulk_lines_equal_the_lines_of_single_events(batch: list[EventDraft], run_id: str, ts: str) -> None:
    written = [CanonicalDraft(d.type, canonical_payload(d.payload), d.captured_at) for d in batch]
    singly = [
        serialise_event(stamp(draft, run_id=run_id, seq=seq, ts=ts)) + b"\n"
        for seq, draft in enumerate(batch, 7)
    ]
    assert compose_lines(run_id, 7, ts, written) == b"".join(singly)


def test_the_envelope_keeps_its_order_whatever_its_strings_hold() -> None:
    line = compose_line('t"', "\ud800", 1, "ts", b"{}", captured_at="c")
    assert line == b'{"v":1,"type":"t\\"","runId":"\\ud800","seq":1,"ts":"ts","payload":{},"capturedAt":"c"}'
