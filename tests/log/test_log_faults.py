"""A refusal names the first fault: its code, its path, and a reason that holds no value of the line."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from tests.log.log_lines import line_of
from tests.support.mutations import Mutation, mutations
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.errors import Code
from vinaya_bridge.log import Blank, Reader, Refused, UnknownVersion
from vinaya_bridge.log import codes as c

Change = Callable[[dict[str, Json]], object]


def put(path: str, value: Json) -> Change:
    """A change that puts a value at a path of keys."""

    def change(line: dict[str, Json]) -> None:
        *parents, last = path.split(".")
        holder: Json = line
        for key in parents:
            assert isinstance(holder, dict)
            holder = holder[key]
        assert isinstance(holder, dict)
        holder[last] = value

    return change


def drop(path: str) -> Change:
    """A change that takes a key out."""

    def change(line: dict[str, Json]) -> None:
        *parents, last = path.split(".")
        holder: Json = line
        for key in parents:
            assert isinstance(holder, dict)
            holder = holder[key]
        assert isinstance(holder, dict)
        del holder[last]

    return change


OPERATION, LOOP, USAGE = (
    ("operation", "completed"),
    ("dev_review_loop", "loop_started"),
    ("usage", "observed"),
)
OUTCOME, VERDICTS, CUSTOM = (
    ("dispatch", "outcome_received"),
    ("dev_review_loop", "verdicts_read"),
    ("custom", "recorded"),
)
GATE_READ, SUMMARY = ("dev_review_loop", "gate_result_read"), ("gate", "summary")
FINDING: Json = {"id": "F1", "severity": "high"}

FAULTS: list[tuple[tuple[str, str], Change, Code, str, str]] = [
    (OPERATION, drop("kind"), c.MISSING_FIELD, "$.kind", "this field is required"),
    (OPERATION, put("kind", 7), c.WRONG_TYPE, "$.kind", "expected a string, found a number"),
    (OPERATION, put("kind", "tokens"), c.NOT_A_MEMBER, "$.kind", "not one of the 10 allowed values"),
    (OPERATION, put("event", "toString"), c.NOT_A_MEMBER, "$.event", "not one of the 1 allowed values"),
    (OPERATION, put("event", None), c.WRONG_TYPE, "$.event", "expected a string, found null"),
    (OPERATION, drop("meta.ts"), c.MISSING_FIELD, "$.meta.ts", "this field is required"),
    (OPERATION, put("meta.seq", True), c.WRONG_TYPE, "$.meta.seq", "expected an integer, found a boolean"),
    (
        OPERATION,
        put("meta.seq", 1.5),
        c.WRONG_TYPE,
        "$.meta.seq",
        "expected an integer, found a number with a fraction",
    ),
    (OPERATION, put("meta.seq", -1), c.OUT_OF_RANGE, "$.meta.seq", "less than 0"),
    (OPERATION, put("meta.event_id", ""), c.LENGTH, "$.meta.event_id", "fewer than 1 UTF-16 units"),
    (
        OPERATION,
        put("meta.run_id", "a\n"),
        c.PATTERN,
        "$.meta.run_id",
        "does not match [A-Za-z0-9_.-]{1,128}",
    ),
    (OPERATION, put("meta.host", "CLI"), c.NOT_A_MEMBER, "$.meta.host", "not one of the 4 allowed values"),
    (OPERATION, put("meta.test", True), c.UNKNOWN_KEY, "$.meta", "1 unknown key: test"),
    (
        OPERATION,
        put("meta.lineage.attempt", True),
        c.WRONG_TYPE,
        "$.meta.lineage.attempt",
        "expected an integer, found a boolean",
    ),
    (OPERATION, put("meta.lineage", []), c.WRONG_TYPE, "$.meta.lineage", "expected an object, found a list"),
    (
        OPERATION,
        put("meta.input_versions.manifest_version", 3),
        c.NOT_A_MEMBER,
        "$.meta.input_versions.manifest_version",
        "not 2",
    ),
    (
        OPERATION,
        put("meta.input_versions.manifest_version", True),
        c.WRONG_TYPE,
        "$.meta.input_versions.manifest_version",
        "expected a number, found a boolean",
    ),
    (OPERATION, put("subject.pr", None), c.WRONG_TYPE, "$.subject.pr", "expected an integer, found null"),
    (OPERATION, put("subject", "x"), c.WRONG_TYPE, "$.subject", "expected an object, found a string"),
    (OPERATION, put("payload", []), c.WRONG_TYPE, "$.payload", "expected an object, found a list"),
    (OPERATION, put("payload.a", 1), c.UNKNOWN_KEY, "$.payload", "1 unknown key: a"),
    (OPERATION, put("duration_ms", "5"), c.WRONG_TYPE, "$.duration_ms", "expected a number, found a string"),
    (OPERATION, put("duration_ms", None), c.WRONG_TYPE, "$.duration_ms", "expected a number, found null"),
    (OPERATION, put("field_names", ["x"] * 21), c.LENGTH, "$.field_names", "more than 20 entries"),
    (
        OPERATION,
        put("field_names", ["x", "\U0001f9ef" * 33]),
        c.LENGTH,
        "$.field_names[1]",
        "more than 64 UTF-16 units",
    ),
    (
        LOOP,
        put("policy.models", {"principal": 1}),
        c.WRONG_TYPE,
        "$.policy.models.principal",
        "expected a string, found a number",
    ),
    (
        LOOP,
        put("policy.models", {"unattributed": "m"}),
        c.NOT_A_MEMBER,
        "$.policy.models.unattributed",
        "not one of the 7 allowed values",
    ),
    (
        LOOP,
        put("policy.reviewers", ["security", "x"]),
        c.NOT_A_MEMBER,
        "$.policy.reviewers[1]",
        "not one of the 7 allowed values",
    ),
    (USAGE, put("units.cache", "0"), c.WRONG_TYPE, "$.units.cache", "expected a number, found a string"),
    (USAGE, drop("units.cache"), c.MISSING_FIELD, "$.units.cache", "this field is required"),
    (OUTCOME, put("outcome", {}), c.MISSING_FIELD, "$.outcome.type", "this field is required"),
    (OUTCOME, put("outcome", None), c.WRONG_TYPE, "$.outcome", "expected an object, found null"),
    (
        OUTCOME,
        put("outcome", {"type": "merged"}),
        c.NOT_A_MEMBER,
        "$.outcome.type",
        "not one of the 8 allowed values",
    ),
    (
        OUTCOME,
        put("outcome", {"type": []}),
        c.WRONG_TYPE,
        "$.outcome.type",
        "expected a string, found a list",
    ),
    (
        OUTCOME,
        put("outcome", {"type": "completed", "pr": 1}),
        c.UNKNOWN_KEY,
        "$.outcome",
        "1 unknown key: pr",
    ),
    (
        OUTCOME,
        put("outcome", {"type": "plan", "issues": [1, "2"]}),
        c.WRONG_TYPE,
        "$.outcome.issues[1]",
        "expected an integer, found a string",
    ),
    (
        VERDICTS,
        put("findings", [FINDING, {"id": "F2"}]),
        c.MISSING_FIELD,
        "$.findings[1].severity",
        "this field is required",
    ),
    (
        VERDICTS,
        put("findings", [{"id": "F", "severity": "s", "confidence": 1.5}]),
        c.OUT_OF_RANGE,
        "$.findings[0].confidence",
        "more than 1",
    ),
    (VERDICTS, put("all_approve", 1), c.WRONG_TYPE, "$.all_approve", "expected a boolean, found a number"),
    (GATE_READ, put("confidence_value", 101), c.OUT_OF_RANGE, "$.confidence_value", "more than 100"),
    (
        GATE_READ,
        put("confidence_reason", "x" * 281),
        c.LENGTH,
        "$.confidence_reason",
        "more than 280 UTF-16 units",
    ),
    (SUMMARY, put("check", "x"), c.UNKNOWN_KEY, "$", "1 unknown key: check"),
    (
        CUSTOM,
        put("fields", {"a": None}),
        c.WRONG_TYPE,
        "$.fields.a",
        "expected a string, a number or a boolean, found null",
    ),
    (CUSTOM, put("fields", {"A-1": 1}), c.PATTERN, "$.fields.*", "does not match [a-z][a-z0-9_]*"),
    (CUSTOM, put("name", "deploy"), c.PATTERN, "$.name", r"does not match [a-z][a-z0-9_]*\.[a-z][a-z0-9_.]*"),
]


@pytest.mark.parametrize(
    ("which", "change", "code", "path", "reason"),
    FAULTS,
    ids=[f"{code.id} {path}" for _, _, code, path, _ in FAULTS],
)
def test_a_fault_has_its_code_path_and_reason(
    reader: Reader, which: tuple[str, str], change: Change, code: Code, path: str, reason: str
) -> None:
    line = line_of(*which)
    change(line)
    verdict = reader.read(dump(line))
    assert isinstance(verdict, Refused)
    assert (verdict.code, verdict.path, verdict.reason) == (code, path, reason)


@pytest.mark.parametrize(
    ("raw", "code", "path", "reason"),
    [
        (b"nope", c.NOT_JSON, "$", "not JSON at character 0"),
        (b'{"meta":{"schema":3', c.NOT_JSON, "$", "it ends before its JSON value does"),
        (b'{"meta":{"schema":NaN}}', c.NOT_JSON, "$", "NaN and Infinity are not JSON"),
        (b'{"meta":"\xff"}', c.NOT_UTF8, "$", "byte 9 is not UTF-8"),
        (b"\xef\xbb\xbf{}", c.NOT_JSON, "$", "not JSON at character 0"),
        (b"\0\0\0", c.NOT_JSON, "$", "not JSON at character 0"),
        (b"[]", c.NO_SCHEMA, "$", "expected an object"),
        (b"{}", c.NO_SCHEMA, "$.meta", "expected an object"),
        (b'{"meta":{}}', c.NO_SCHEMA, "$.meta.schema", "expected a number"),
        (b'{"meta":{"schema":true}}', c.NO_SCHEMA, "$.meta.schema", "expected a number"),
        (b'{"meta":{"schema":"3"}}', c.NO_SCHEMA, "$.meta.schema", "expected a number"),
        (
            b'{"meta":{"schema":4,"x":["\\ud800"]}}',
            c.LONE_SURROGATE,
            "$.meta.x[0]",
            "half of a surrogate pair",
        ),
        (b'{"meta":{"schema":4},"a":{"\\udd6f":1}}', c.LONE_SURROGATE, "$.a", "half of a surrogate pair"),
        (
            b'{"meta":{"schema":3,"seq":1e400},"kind":"gate","event":"summary"}',
            c.MISSING_FIELD,
            "$.meta.ts",
            "this field is required",
        ),
    ],
    ids=lambda value: value.id if isinstance(value, Code) else None,
)
def test_a_line_that_is_no_record_is_refused(
    reader: Reader, raw: bytes, code: Code, path: str, reason: str
) -> None:
    verdict = reader.read(raw)
    assert isinstance(verdict, Refused)
    assert (verdict.code, verdict.path, verdict.reason) == (code, path, reason)


def test_a_number_beyond_double_range_is_refused_wherever_it_stands(reader: Reader, line: Line) -> None:
    for key, path in (("duration_ms", "$.duration_ms"), ("seq", "$.meta.seq")):
        whole = line | {"duration_ms": 0}
        raw = dump(whole).replace(f'"{key}":0'.encode(), f'"{key}":1e400'.encode())
        verdict = reader.read(raw)
        assert isinstance(verdict, Refused)
        assert (verdict.code, verdict.path) == (c.BEYOND_DOUBLE, path)


def test_a_refusal_tells_what_can_be_read_all_the_same(reader: Reader) -> None:
    line = line_of("gate", "summary", ran="many")
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta |= {
        "event_id": "e-1",
        "run_id": "r-1",
        "lineage": {"run": "loop-1", "attempt": None, "parent": None},
    }
    verdict = reader.read(dump(line))
    assert isinstance(verdict, Refused)
    assert (verdict.identity, verdict.schema, verdict.kind, verdict.event, verdict.run) == (
        "e-1",
        3,
        "gate",
        "summary",
        "loop-1",
    )


def test_a_refusal_names_a_kind_or_event_only_where_it_is_a_known_one(reader: Reader) -> None:
    for kind, event, seen in (
        ("gate", "leak", ("gate", None)),
        ("leak", "summary", (None, None)),
        (7, [], (None, None)),
    ):
        verdict = reader.read(dump(line_of("gate", "summary") | {"kind": kind, "event": event}))
        assert isinstance(verdict, Refused)
        assert (verdict.kind, verdict.event) == seen


def test_a_damaged_name_of_a_line_that_is_not_utf8_is_left_out(reader: Reader) -> None:
    raw = b'{"meta":{"schema":3,"event_id":"e\xff","run_id":"r","seq":3}}'
    verdict = reader.read(raw)
    assert isinstance(verdict, Refused)
    assert (verdict.code, verdict.identity, verdict.run) == (c.NOT_UTF8, "r:3", "r")


def test_a_text_nested_too_deep_is_refused_and_still_named(reader: Reader, line: Line) -> None:
    for depth in (1_000, 5_000, 200_000):
        raw = dump(line)[:-1] + b',"extra":' + b"[" * depth + b"]" * depth + b"}"
        verdict = reader.read(raw)
        assert isinstance(verdict, Refused)
        assert verdict.code in (c.TOO_DEEP, c.UNKNOWN_KEY)
        assert (verdict.identity, verdict.schema) == ("x", 3)


@pytest.mark.parametrize(
    "raw", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 99_999, b'["' * 50_000]
)
def test_deep_nesting_that_is_no_json_is_refused(reader: Reader, raw: bytes) -> None:
    assert isinstance(reader.read(raw), Refused)


@pytest.mark.parametrize("raw", [b"", b" ", b"\r", b"\t \r"])
def test_white_space_is_blank(reader: Reader, raw: bytes) -> None:
    assert reader.read(raw) == Blank()


@pytest.mark.parametrize(
    ("number", "schema"),
    [("0", 0), ("-1", -1), ("2.5", 2.5), ("4", 4), ("1e400", float("inf")), ("9" * 400, float("inf"))],
)
def test_another_schema_number_is_an_unknown_version_whatever_else_the_line_holds(
    reader: Reader, number: str, schema: float
) -> None:
    raw = f'{{"meta":{{"schema":{number},"run_id":"a b","seq":1e21}},"kind":[],"x":1e400}}'.encode()
    assert reader.read(raw) == UnknownVersion(schema, "a b:1e+21")


def test_3_0_is_schema_3(reader: Reader, line: Line) -> None:
    assert type(reader.read(dump(line).replace(b'"schema":3', b'"schema":30e-1'))).__name__ == "EventLine"


CANARY = "hunter2-canary"


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(mutations())
def test_no_refusal_holds_a_value_of_the_line(mutation: Mutation) -> None:
    raw = mutation.raw.replace(b'"7"', json.dumps(CANARY).encode()).replace(
        b'"x"', json.dumps(CANARY).encode()
    )
    verdict = Reader().read(raw)
    if isinstance(verdict, Refused):
        assert CANARY not in verdict.path + verdict.reason


def test_an_unknown_key_is_named_only_where_it_looks_like_a_fields_name(reader: Reader, line: Line) -> None:
    for key in (
        "ghp_abcdefghij0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "a\nb",
        "\u001b[31m",
        "x" * 40,
        "p4ssw0rd",
    ):
        verdict = reader.read(dump(line | {key: 1, "subject": line["subject"]}))
        assert isinstance(verdict, Refused)
        assert (verdict.code, verdict.path, verdict.reason) == (c.UNKNOWN_KEY, "$", "1 unknown key: *")


def test_every_code_has_an_id_of_its_own_in_the_area_of_lines_and_a_page() -> None:
    assert len({code.id for code in c.CODES}) == len(c.CODES)
    for code in c.CODES:
        assert code.id.startswith("VB1")
        assert not code.title.endswith(".")
        assert code.page.endswith(".")
