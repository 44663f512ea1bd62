"""The mapping checker: each kind of fault gives one finding, at its line and column, with a code that has a page."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import frozen

from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.mapping import codes, load_mapping
from vinaya_bridge.mapping.findings import Finding, Severity
from vinaya_bridge.mapping.lint import lint
from vinaya_bridge.mapping.load import SHIPPED, read_mapping, shipped_mapping
from vinaya_bridge.mapping.reading import read_table
from vinaya_bridge.mapping.render import render


@frozen
class Fault:
    """
    A fault to put into core.toml.

    Args:
        code: What the checker must call it.

        rule: The heading after which it goes in; empty: the start of the file.

        changes: What stands there and what stands there instead, one after the other; ``^`` in the latter is where
            the finding must point.
    """

    code: str
    rule: str
    changes: tuple[tuple[str, str], ...]

    def put_into(self, text: str) -> str:
        at = text.index(f"[rule.{self.rule}]" if self.rule else "format")
        for old, new in self.changes:
            at = text.index(old, at)
            text = text[:at] + new + text[at + len(old) :]
            at += len(new)
        return text


def fault(code: str, rule: str, *changes: str) -> Fault:
    return Fault(code, rule, tuple(zip(changes[::2], changes[1::2], strict=True)))


LOOP = "dev_review_loop"
ID = "payload.loopId"

UNMAPPED_RULE = """[rule.effect.attempted]
generic = []
unmapped = "the Log's reference maps only the verified outcome; nothing writes this event"
"""

FAULTS = (
    # The words of the language.
    fault("VB204", f"{LOOP}.round_started", 'run = "main"', 'run = "main"\n^wen = { "$.round" = 1 }'),
    fault("VB205", f"{LOOP}.gate_result_read", 'scope = "loop"', "scope = ^2026-01-01"),
    fault("VB206", "effect.observed", "observed]", "^observed]", "unmapped", "# unmapped"),
    fault(
        "VB207", "", "[rule.gate.summary]", "[rule.gate.^sumary]", "[[rule.gate.summary", "[[rule.gate.sumary"
    ),
    fault("VB208", f"{LOOP}.findings_compared", '"main"', '^"mian"'),
    fault("VB209", "dispatch.dispatched", '"@run.parent"', '^"@run.parrent"'),
    fault("VB210", f"{LOOP}.paused", '"run.paused"', '^"run.pauses"'),
    # Paths.
    fault("VB212", f"{LOOP}.round_ended", '"$.base_head"', '^"$.base_haed"'),
    fault("VB213", f"{LOOP}.loop_started", "payload.task", 'payload.x = ^"$.meta.runtime"\npayload.task'),
    fault("VB214", "dispatch.dispatch_failed", '"$.usage_limit"', '^"$.usage_limit.agent"'),
    # What a field of the protocol takes.
    fault("VB215", "dispatch.outcome_received", 'stage = "$.target_role"', 'stage = ^"$.subject.issue"'),
    fault("VB216", f"{LOOP}.journal_finalized", '[{ round = "$.total_wall_ms" }', '[^"$.total_wall_ms"'),
    fault("VB217", f"{LOOP}.resumed", ID, f'payload.x = {{ lookup = "$.by", in = ^{{ driver = 1 }} }}\n{ID}'),
    fault("VB218", "", "stopped = ", '^stoped = "blocked"\nstopped = '),
    fault("VB219", f"{LOOP}.driver_heartbeat", ID, f'payload.x = {{ lookup = ^"$.task", in = {{}} }}\n{ID}'),
    fault("VB220", "", 'signal = "interrupted"', 'signal = ^"interupted"'),
    fault("VB221", f"{LOOP}.loop_started", '["$.meta.actor_id", "$.subject.role"]', '^["$.meta.actor_id"]'),
    fault(
        "VB222", f"{LOOP}.driver_exited", '"run.finished"', '^"run.finished"', ', "@line.ends_run" = true', ""
    ),
    fault(
        "VB223", f"{LOOP}.infrastructure_retry", "payload.message = {", 'payload.message = ^"$.loop_id" # {'
    ),
    fault(
        "VB224",
        f"{LOOP}.cancelled",
        '{ template = "cancelled by {$.by}" }',
        '^{ template = "by {$.loop_id}" }',
    ),
    # Types.
    fault("VB225", "role_attempt.attempted", '"role_attempt.recorded"', '^"RoleAttempt"'),
    fault("VB226", "operation.completed", 'type = "operation.completed"', 'type = ^"agent.operated"'),
    fault("VB227", "custom.recorded", '"vinaya.{$.name}"', '^"{$.name}"'),
    # The table as a whole.
    fault("VB228", "", "[rule.dispatch.dispatched]", "[^rule.dispatch.dispatched]", UNMAPPED_RULE, ""),
    fault("VB229", "usage.observed", "observed]", "^observed]", 'payload.source = "$.source"\n', ""),
    fault(
        "VB230",
        "effect.verified",
        'type = "effect.committed"\nwhen = { "$.outcome" = "success" }',
        'type = "effect.committed"\nwhen = { "$.outcome" = ^"succes" }',
    ),
    fault("VB231", "handoff.raised", '"stated"', '^"inferred"'),
    fault("VB232", f"{LOOP}.stop_condition_met", "payload", 'when = { "@agent.started" = ^"yes" }\npayload'),
    fault("VB233", "handoff.resolved", "[[", 'drop.^"$.class" = "x"\n[['),
    fault("VB234", "gate.checked", "payload.scope", 'payload.^vinaya = "x"\npayload.scope'),
)
"""Faults of different kinds, each in a rule of its own where another would hide it."""


def core_text() -> str:
    return shipped_mapping("core").read_text(encoding="utf-8")


def found_in(text: str) -> list[Finding]:
    read = read_table(text, file="core.toml", name="core")
    return [*read.findings, *lint(read.table, read.findings)]


def without_marks(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and where they stood."""
    places = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if "^" in line and not line.startswith("#"):
            places.append((number + 1, line.index("^") + 1))
            lines[number] = line.replace("^", "", 1)
    return "\n".join(lines), places


@pytest.mark.parametrize("seeded", FAULTS, ids=lambda seeded: f"{seeded.code}-{seeded.rule}")
def test_a_fault_gives_one_finding_at_its_place(seeded: Fault) -> None:
    text, places = without_marks(seeded.put_into(core_text()))
    found = found_in(text)
    assert [(one.code.id, one.place.line, one.place.column) for one in found] == [(seeded.code, *places[0])]
    assert found[0].remedy


def test_many_faults_give_as_many_findings() -> None:
    text = core_text()
    for seeded in FAULTS:
        text = seeded.put_into(text)
    text, places = without_marks(text)
    found = found_in(text)
    assert len(FAULTS) >= 20
    assert sorted((one.place.line, one.place.column) for one in found) == places
    assert sorted(one.code.id for one in found) == sorted(seeded.code for seeded in FAULTS)


def test_every_code_has_a_page_and_a_name_of_its_own() -> None:
    assert len({code.id for code in codes.CODES}) == len(codes.CODES)
    for code in codes.CODES:
        assert code.id.startswith("VB2")
        assert len(code.page.split()) > 10


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_table_has_no_finding(name: str) -> None:
    table, faults = read_mapping(name)
    assert (*faults, *lint(table, faults)) == ()


def test_a_lookup_that_nobody_uses_is_a_warning() -> None:
    text, places = without_marks(core_text().replace("[rule.dis", '[lookup.^spare]\na = "b"\n\n[rule.dis', 1))
    (found,) = found_in(text)
    assert (found.code.id, found.severity, found.place.line) == ("VB235", Severity.WARNING, places[0][0])


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("format = 1\n[rule.a.b]\n[rule.a.b]\n", "VB211", (3, 9)),
        ("format = 1\nx = \n", "VB202", (2, 5)),
        ('drop = "a', "VB202", (1, 10)),
        ("format = 2\n", "VB203", (1, 1)),
        ("format = true\n", "VB203", (1, 1)),
        ("[rule]\n", "VB203", (1, 1)),
    ],
)
def test_a_text_that_is_no_table_is_one_fault_of_reading(
    text: str, code: str, place: tuple[int, int]
) -> None:
    read = read_table(text, file="x.toml", name="x")
    assert [(one.code.id, (one.place.line, one.place.column)) for one in read.findings] == [(code, place)]


def test_a_mapping_with_an_error_is_not_loaded(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(core_text().replace('signal = "interrupted"', 'signal = "stopped"'), encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_mapping(file)
    assert raised.value.code.id == "VB220"
    assert raised.value.place.startswith(f"{file}:")


def test_a_finding_is_said_as_an_editor_reads_it() -> None:
    text, _ = without_marks(FAULTS[0].put_into(core_text()))
    (found,) = found_in(text)
    assert str(found).startswith(f"core.toml:{found.place.line}:1: error VB204 [{FAULTS[0].rule}] ")
    assert found.to_json() == {
        "file": "core.toml",
        "line": found.place.line,
        "column": 1,
        "severity": "error",
        "code": "VB204",
        "rule": FAULTS[0].rule,
        "message": found.message,
        "remedy": "did you mean `when`?",
    }


def test_an_overlay_s_lookup_replaces_the_one_that_the_base_s_rules_use(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.toml"
    lookup = 'format = 1\n[lookup.journal_outcome]\nmerged_ready = "completed"\nstopped = "{}"\n'
    overlay.write_text(lookup.format("failed"), encoding="utf-8")
    shown = render(load_mapping("core", [overlay]).table)
    assert (
        'payload.outcome = { lookup = "$.result", in = { merged_ready = "completed", stopped = "failed" } }'
        in shown
    )
    overlay.write_text(lookup.format("halted"), encoding="utf-8")
    with pytest.raises(ConfigurationError) as raised:
        load_mapping("core", [overlay])
    assert (raised.value.code.id, raised.value.place) == ("VB220", f"{overlay}:4:11")
