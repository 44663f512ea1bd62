"""The quick path and the precise path give one verdict, one identity and one digest, whatever the line."""

from __future__ import annotations

import json
from typing import Any

import attrs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.log.log_lines import line_of
from tests.support.mutations import Mutation, mutations
from tests.support.strategies import SHAPES, Line, dump, lines, raw_lines
from vinaya_bridge.log import EventLine, Reader, Refused
from vinaya_bridge.log.precise import unstructure
from vinaya_bridge.log.rules import json_name

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
READER = Reader()


def plain(record: Any) -> Any:
    """A record of either kind as decoded JSON."""
    return (
        json.loads(msgspec.json.encode(record)) if isinstance(record, msgspec.Struct) else unstructure(record)
    )


def assert_agree(raw: bytes) -> None:
    one, other = READER.read(raw), READER.read_precisely(raw)
    if not isinstance(one, EventLine) or not isinstance(other, EventLine):
        assert one == other
        return
    seen = [
        (
            each.identity,
            each.digest,
            each.kind,
            each.event,
            each.schema,
            each.main_run,
            each.process,
            each.instant_us,
            each.trust,
            each.trust_unknown,
            each.is_redacted,
            plain(each.record),
        )
        for each in (one, other)
    ]
    assert seen[0] == seen[1]


@SLOW
@given(raw_lines())
def test_both_agree_on_valid_lines(raw: bytes) -> None:
    assert_agree(raw)


@settings(SLOW, max_examples=300)
@given(mutations())
def test_both_agree_on_lines_with_a_fault(mutation: Mutation) -> None:
    assert_agree(mutation.raw)


@settings(SLOW, max_examples=300)
@given(lines(plain=True), st.data())
def test_both_agree_on_lines_with_bytes_cut_or_put_in(line: Line, data: st.DataObject) -> None:
    raw = dump(line)
    at = data.draw(st.integers(0, len(raw) - 1))
    junk = data.draw(
        st.sampled_from(
            [b"", b"0", b"-", b".5", b'"', b"\\", b"\\ud83d", b"\xff", b"\xf0\x9f\x98\x80", b"null", b"1e400"]
        )
    )
    assert_agree(raw[:at] + junk + raw[at + data.draw(st.integers(0, 3)) :])


NUMBERS = (
    "5",
    "5.0",
    "1e2",
    "-0",
    "-0.0",
    "0.5",
    "1.5e-6",
    "1e-7",
    "1e16",
    "123456789012345678",
    "9007199254740992",
    "9007199254740993",
    "9007199254740993.0",
    "18446744073709551617",
    "1e21",
    "1e400",
    "-1e400",
    "1" * 5000,
    "-1",
    "-1e-999",
    "1.0000000000000000001",
    "true",
    '"5"',
    "null",
    "[5]",
)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda text: text[:24])
@pytest.mark.parametrize("field", ["seq", "issue", "duration_ms", "input", "custom"])
def test_both_agree_on_every_spelling_of_a_number(number: str, field: str) -> None:
    meta = (
        '{"schema":3,"ts":"2026-01-01T00:00:00.000Z","run_id":"r","seq":SEQ,"repo":null,"vinaya":"0.41.0","doctrine":"d",'
        '"host":"cli","machine":"m","event_id":"e","process_id":"p","actor_id":null,'
        '"lineage":{"run":null,"attempt":null,"parent":null},"input_versions":{"objectives_version":null},'
        '"provenance":"unavailable","work":{"ref":null,"repo":null,"change":null,"revision":null},'
        '"flow":{"id":null,"version":null},"runtime":null,"source":null}'
    ).replace("SEQ", number if field == "seq" else "0")
    subject = f'{{"issue":{number if field == "issue" else "null"},"role":"developer"}}'
    body = {
        "input": f'"kind":"usage","event":"observed","payload":{{}},"model":null,"source":"s","semantics":"delta",'
        f'"units":{{"input":{number},"output":null,"cache":null}},"unknown_reason":null',
        "custom": f'"kind":"custom","event":"recorded","payload":{{}},"name":"a.b","fields":{{"x":{number}}}',
    }.get(
        field,
        '"kind":"gate","event":"summary","payload":{},"ran":0,"passed":0,"failed":0,"skipped":0,"failed_checks":[]',
    )
    duration = f',"duration_ms":{number}' if field == "duration_ms" else ""
    assert_agree(f'{{"meta":{meta},"subject":{subject},{body}{duration}}}'.encode())


def test_a_number_equal_in_value_has_one_digest_however_it_is_spelled(line: Line) -> None:
    digests = set()
    for spelling in (b"10", b"10.0", b"1e1", b"100e-1"):
        verdict = READER.read(
            dump(line | {"duration_ms": 10}).replace(b'"duration_ms":10', b'"duration_ms":' + spelling)
        )
        assert isinstance(verdict, EventLine)
        digests.add(verdict.digest)
    assert len(digests) == 1


def test_the_last_of_repeated_keys_counts_on_both_paths(line: Line) -> None:
    raw = dump(line)
    for repeat in (
        b'"kind":"gate",',
        b'"kind":1,',
        b'"meta":{"schema":9},',
        b'"duration_ms":1e400,',
        b'"extra":"\\ud800",',
    ):
        assert_agree(b"{" + repeat + raw[1:])
        assert_agree(raw[:-1] + b"," + repeat[:-1] + b"}")


def test_words_that_look_like_the_kind_and_event_cost_only_time(line: Line) -> None:
    custom = line | {
        "kind": "custom",
        "event": "recorded",
        "name": "a.b",
        "fields": {"kind": "gate", "event": "summary", "schema": 1},
    }
    for key in ("operation", "target", "result", "error_class"):
        del custom[key]
    for raw in (dump(custom), dump(dict(reversed(custom.items())))):
        verdict = READER.read(raw)
        assert isinstance(verdict, EventLine)
        assert (verdict.kind, verdict.event, verdict.schema) == ("custom", "recorded", 3)
        assert_agree(raw)


def test_no_prefix_of_a_line_is_a_line(line: Line) -> None:
    raw = dump(line)
    for end in range(1, len(raw)):
        assert isinstance(READER.read(raw[:end]), Refused)


def test_a_struct_has_the_attributes_of_its_record_class_under_every_schema() -> None:
    for kind, event, schema in SHAPES:
        raw = dump(line_of(kind, event, schema))
        one, other = READER.read(raw), READER.read_precisely(raw)
        assert isinstance(one, EventLine)
        assert isinstance(other, EventLine)
        assert isinstance(one.record, msgspec.Struct)
        _assert_same_attributes(one.record, other.record)


def _assert_same_attributes(struct: Any, record: Any) -> None:
    for field in attrs.fields(type(record)):
        one, other = getattr(struct, field.name), getattr(record, field.name)
        if attrs.has(type(other)):
            _assert_same_attributes(one, other)
        else:
            assert one == other, json_name(field.name)
