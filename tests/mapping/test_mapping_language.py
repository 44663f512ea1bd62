"""What each word of the mapping language does to a line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import canonical_payload
from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.log import EventLine, Reader, paths
from vinaya_bridge.mapping import Emit, Fill, Only, OverBound, fill_payload, load_mapping
from vinaya_bridge.mapping.values import count, figure_text, number, rounded

HEAD = """
format = 1
[rule.{kind}.{event}]
generic = [{families}]
"""
STATED = {
    "gate.checked": '{ family = "gate.evaluated", basis = "stated" }',
    "usage.observed": '{ family = "execution.usage", basis = "stated" }',
    "custom.recorded": '{ family = "process.event", basis = "stated" }',
    "dispatch.outcome_received": '{ family = "execution.completed", basis = "stated" }',
}


def drafts(tmp_path: Path, line: Line, rule: str) -> list[Emit]:
    """What core.toml gives for a line when the line's rule is replaced by another."""
    kind, event = str(line["kind"]), str(line["event"])
    overlay = tmp_path / "overlay.toml"
    families = STATED.get(f"{kind}.{event}", "")
    # What the rule leaves out is dropped: these tests care about what it carries.
    used = set(re.findall(r"\$[.a-z_]+", rule))
    leaves = [path for path, info in paths(kind, event, 3).items() if info.type != "object"]
    lost = [path for path in leaves if not any(path == one or path.startswith(f"{one}.") for one in used)]
    own = [
        path
        for path in lost
        if path.split(".")[1] not in ("meta", "subject", "kind", "event", "payload", "duration_ms")
    ]
    drop = "".join(f'drop."{path}" = "not of this test"\n' for path in own)
    head = HEAD.format(kind=kind, event=event, families=families)
    overlay.write_text(head + drop + rule, encoding="utf-8")
    verdict = Reader().read(dump(line))
    assert isinstance(verdict, EventLine), verdict
    emits = load_mapping("core", [overlay]).drafts(verdict)
    assert not isinstance(emits, OverBound)
    return emits


def payload(tmp_path: Path, line: Line, fields: str, *, with_block: bool = False) -> dict[str, Any]:
    """The payload of the one event that a rule with some payload fields gives."""
    kind, event = line["kind"], line["event"]
    rule = f'[[rule.{kind}.{event}.emit]]\nrun = "main"\ntype = "thing.happened"\n{fields}'
    (emit,) = drafts(tmp_path, line, rule)
    found: dict[str, Any] = orjson.loads(emit.payload)
    return found if with_block else {key: value for key, value in found.items() if key != "vinaya"}


def gate(**own: Any) -> Line:
    return sample("gate", "checked", **own)


def test_a_literal_is_the_same_on_every_line(tmp_path: Path) -> None:
    fields = 'payload.a = "x"\npayload.b = 1\npayload.c = true\npayload.d = 1.5\n'
    fields += 'payload.e = { literal = ["$.x", 1e-6] }'
    assert payload(tmp_path, gate(), fields) == {"a": "x", "b": 1, "c": True, "d": 1.5, "e": ["$.x", 1e-6]}


def test_a_path_carries_the_value_and_leaves_a_null_or_absent_one_out(tmp_path: Path) -> None:
    fields = 'payload.check = "$.check"\npayload.version = "$.check_version"\npayload.reason = "$.reason"'
    assert payload(tmp_path, gate(check="lint", check_version=None), fields) == {"check": "lint"}
    full = gate(check="lint", check_version="2", reason="errors:1")
    assert payload(tmp_path, full, fields) == {"check": "lint", "version": "2", "reason": "errors:1"}


def test_a_list_takes_the_first_that_is_present(tmp_path: Path) -> None:
    fields = 'payload.a = ["$.reason", "$.check_version", "none"]'
    assert payload(tmp_path, gate(check_version=None), fields) == {"a": "none"}
    assert payload(tmp_path, gate(check_version="2"), fields) == {"a": "2"}
    assert payload(tmp_path, gate(check_version="2", reason="r"), fields) == {"a": "r"}


def test_an_empty_text_is_present(tmp_path: Path) -> None:
    assert payload(tmp_path, gate(reason=""), 'payload.a = ["$.reason", "none"]') == {"a": ""}


def test_a_lookup_translates_members_and_truths(tmp_path: Path) -> None:
    members = (
        'pass = "a", fail = "b", wait = "c", skip = 4, invalid_input = true, unavailable_dependency = "f", '
    )
    fields = f'payload.a = {{ lookup = "$.outcome", in = {{ {members} timeout = "g", cancelled = "h" }} }}'
    assert payload(tmp_path, gate(outcome="fail"), fields) == {"a": "b"}
    assert payload(tmp_path, gate(outcome="skip"), fields) == {"a": 4}
    line = sample("dev_review_loop", "gate_result_read", green=False)
    fields = 'payload.a = { lookup = "$.green", in = { true = "green", false = "red" } }'
    assert payload(tmp_path, line, fields) == {"a": "red"}


def test_a_template_is_text_and_is_left_out_when_a_part_is_absent(tmp_path: Path) -> None:
    fields = 'payload.a = { template = "{$.check}: {$.outcome} {$.reason}" }'
    assert payload(tmp_path, gate(check="lint", outcome="fail"), fields) == {}
    assert payload(tmp_path, gate(check="lint", outcome="fail", reason="r"), fields) == {"a": "lint: fail r"}


def test_numbers_and_truths_in_a_template_are_written_as_the_protocol_writes_them(tmp_path: Path) -> None:
    line = sample("dev_review_loop", "gate_result_read", round=3, green=True)
    assert payload(tmp_path, line, 'payload.a = { template = "{$.round} {$.green}" }') == {"a": "3 true"}
    line = sample("dev_review_loop", "round_ended", wall_ms=1.5e-6)
    assert payload(tmp_path, line, 'payload.a = { template = "{$.wall_ms} ms" }') == {"a": "0.0000015 ms"}


def test_an_excerpt_keeps_the_beginning_and_says_that_it_was_cut(tmp_path: Path) -> None:
    fields = 'payload.a = { excerpt = "$.check", max = 3 }\n'
    fields += 'payload.b = { excerpt = "$.reason", max = 3, flag = "bCut" }'
    assert payload(tmp_path, gate(check="abc", reason="abc"), fields) == {"a": "abc", "b": "abc"}
    cut = payload(tmp_path, gate(check="ab\U0001f9efd", reason="abcd"), fields)
    assert cut == {"a": "ab\U0001f9ef", "truncated": True, "b": "abc", "bCut": True}


def test_a_duration_is_rounded_half_to_even_and_left_out_when_nobody_could_hold_it(tmp_path: Path) -> None:
    fields = 'payload.a = { round = "$.duration_ms" }'
    for value, expected in ((0.5, 0), (1.5, 2), (2.5, 2), (12, 12), (2**53 - 1, 2**53 - 1)):
        assert payload(tmp_path, {**gate(), "duration_ms": value}, fields) == {"a": expected}
    assert payload(tmp_path, {**gate(), "duration_ms": 1e300}, fields) == {}
    assert payload(tmp_path, gate(), fields) == {}


def test_a_count_that_is_none_goes_out_as_text_under_its_own_name(tmp_path: Path) -> None:
    fields = (
        'payload.a = { count = "$.units.input", text = "aText" }\npayload.b = { count = "$.units.output" }'
    )

    def counted(given: float | None, output: float | None = None) -> dict[str, Any]:
        units: dict[str, Json] = {"input": given, "output": output, "cache": None}
        return payload(tmp_path, sample("usage", "observed", units=units), fields)

    assert counted(0, 7) == {"a": 0, "b": 7}
    assert counted(5.0) == {"a": 5}
    assert counted(None) == {}
    assert counted(1.5, 1.5) == {"aText": "1.5"}
    assert counted(2**53 + 1) == {"aText": "9007199254740993"}
    assert counted(1e21) == {"aText": "1e+21"}


def test_an_integer_that_nobody_could_hold_is_carried_as_text_in_a_field_of_ours(tmp_path: Path) -> None:
    line = sample("dev_review_loop", "driver_heartbeat", task=2**60, round=-(2**60))
    fields = 'payload.task = "$.task"\npayload.round = "$.round"'
    assert payload(tmp_path, line, fields) == {"task": str(2**60), "round": str(-(2**60))}
    custom = sample("custom", "recorded", name="a.b", fields={"b": 2**60, "a": 1e22, "c": 5.0, "d": True})
    found = payload(tmp_path, custom, 'payload.fields = "$.fields"\npayload.name = "$.name"')
    assert found["fields"] == {"a": "1e+22", "b": str(2**60), "c": 5, "d": True}
    assert [type(value) for value in found["fields"].values()] == [str, str, int, bool]


def test_an_object_is_left_out_when_nothing_in_it_is_present(tmp_path: Path) -> None:
    fields = 'payload.a.b.c = ["$.reason"]\npayload.a.d = "$.check_version"'
    assert payload(tmp_path, gate(check_version=None), fields) == {}
    assert payload(tmp_path, gate(check_version=None, reason="r"), fields) == {"a": {"b": {"c": "r"}}}


def test_a_copied_object_loses_its_nulls_and_absences(tmp_path: Path) -> None:
    finding: Json = {"id": "F1", "severity": "high", "confidence": 1.0}
    line = sample(
        "dispatch",
        "outcome_received",
        usage={"input": 1, "output": 2},
        outcome={
            "type": "verdict",
            "verdict": "PASS",
            "head": "abc",
            "comment_id": 4,
            "objectives": [{"id": "O1", "met": True}],
            "findings": [finding],
        },
    )
    found = payload(tmp_path, line, 'payload.outcome = "$.outcome"\npayload.usage = "$.usage"')
    assert found["outcome"]["findings"] == [{"confidence": 1, "id": "F1", "severity": "high"}]
    assert found["outcome"]["objectives"] == [{"id": "O1", "met": True}]
    assert found["usage"] == {"input": 1, "output": 2}


def test_a_condition_chooses_and_parts_are_numbered_without_gaps(tmp_path: Path) -> None:
    rule = "".join(
        f'[[rule.gate.checked.emit]]\nrun = "main"\ntype = "{name}.happened"\n{when}\npayload.n = "$.check"\n'
        for name, when in (
            ("a", 'when = { "$.outcome" = "pass" }'),
            ("b", 'when = { "$.outcome" = ["fail", "pass"] }'),
            ("c", 'when = { "@line.ends_run" = true }'),
            ("d", 'when = { "@line.ends_run" = false, "$.outcome" = "fail" }'),
            ("e", ""),
        )
    )
    emits = drafts(tmp_path, gate(outcome="fail"), rule)
    assert [(emit.part, emit.type[0], emit.only) for emit in emits] == [
        (0, "b", Only.ALWAYS),
        (1, "c", Only.ENDS_RUN),
        (2, "d", Only.NOT_ENDS_RUN),
        (3, "e", Only.ALWAYS),
    ]
    assert [orjson.loads(emit.payload)["vinaya"]["part"] for emit in emits] == [0, 1, 2, 3]
    assert [emit.type[0] for emit in drafts(tmp_path, gate(outcome="pass"), rule)] == ["a", "b", "c", "e"]


def test_the_engine_adds_the_elapsed_time_as_an_estimate() -> None:
    before = b'{"outcome":"completed","vinaya":{"part":0}}'
    assert fill_payload(before, elapsed_ms=12) == (
        b'{"durationMs":12,"estimated":true,"outcome":"completed","vinaya":{"part":0}}'
    )
    assert fill_payload(before, unknown_reason="no time") == (
        b'{"durationMs":0,"estimated":true,"outcome":"completed",'
        b'"vinaya":{"part":0,"unknown":{"durationMs":"no time"}}}'
    )
    assert fill_payload(before, parent="loop-1") == (
        b'{"outcome":"completed","parentRunId":"loop-1","vinaya":{"part":0}}'
    )
    assert fill_payload(before) == before


def test_the_line_s_own_duration_is_taken_before_the_elapsed_time() -> None:
    for duration, fill in ((1_000, Fill.NOTHING), (None, Fill.ELAPSED)):
        line = sample("dispatch", "outcome_received", effect_id="e")
        if duration is not None:
            line["duration_ms"] = duration
        verdict = Reader().read(dump(line))
        assert isinstance(verdict, EventLine)
        emits = load_mapping("core").drafts(verdict)
        assert not isinstance(emits, OverBound)
        (end,) = [emit for emit in emits if emit.type == "run.finished"]
        assert end.fill == fill
        assert orjson.loads(end.payload).get("durationMs") == duration


def test_what_is_not_known_is_said_with_its_reason() -> None:
    def block(line: Line) -> dict[str, Any]:
        verdict = Reader().read(dump(line))
        assert isinstance(verdict, EventLine)
        emits = load_mapping("core").drafts(verdict)
        assert not isinstance(emits, OverBound)
        found: dict[str, Any] = orjson.loads(emits[0].payload)["vinaya"]
        return found

    units: dict[str, Json] = {"input": None, "output": 0, "cache": None}
    unknown = block(sample("usage", "observed", units=units, unknown_reason="no figures"))["unknown"]
    assert unknown == {"inputTokens": "no figures", "cacheTokens": "no figures"}
    unknown = block(sample("usage", "observed", units=units, unknown_reason=None, schema=2))["unknown"]
    assert unknown["inputTokens"] == "the line gives no reason"
    assert unknown["workRef"] == "a schema 2 header has no workRef"
    assert "unknown" not in block(sample("gate", "summary"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_made_fit_is_written_as_the_protocol_writes_it(value: float) -> None:
    fit = number(value)
    expected = canonical_payload(value)
    assert orjson.dumps(fit) == (b'"%b"' % expected if isinstance(fit, str) else expected)
    assert isinstance(fit, str) == (value.is_integer() and abs(value) > 2**53 - 1)


@given(st.floats(min_value=0, allow_nan=False, allow_infinity=False) | st.integers(0, 2**70))
def test_a_count_or_its_text_holds_the_figure_exactly(value: float) -> None:
    whole = count(value)
    assert float(figure_text(value)) == float(value)
    assert (whole is None) == (value != int(value) or value > 2**53 - 1)
    assert whole is None or whole == value


@given(st.floats(min_value=0, max_value=2**53 - 1))
def test_a_duration_is_rounded_by_at_most_half_a_millisecond(value: float) -> None:
    whole = rounded(value)
    assert whole is not None
    assert abs(whole - value) <= 0.5
