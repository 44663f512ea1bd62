"""The twelve reading rules of the Log: each lives where the table says, and the test that it names holds it."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import orjson
import pytest

from tests.support.logs import write_files
from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.mapping import load_mapping

RULES = (
    "Order",
    "Identity",
    "Liveness (ten-minute rule)",
    "Unknown, never zero",
    "Low trust",
    "Passing checks",
    "Usage",
    "Finding ids",
    "Effects",
    "Self-test",
    "Unknown versions",
    "Not control state",
)
"""As the Log's reference names them, in its order."""

CODE = re.compile(r"`(vinaya_bridge(?:\.\w+)+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def table(repository: Path) -> list[list[str]]:
    """The rows of the table, without its head."""
    text = (repository / "docs" / "reading-rules.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_the_table_has_the_twelve_rules_in_their_order(repository: Path) -> None:
    assert [row[0] for row in table(repository)] == list(RULES)


def test_every_rule_has_code_or_a_reason_and_a_test(repository: Path) -> None:
    for rule, place, tests in table(repository):
        assert CODE.search(place) or place.startswith("No code: "), rule
        assert TEST.search(tests), rule


def test_all_code_that_the_table_names_exists(repository: Path) -> None:
    names = [name for row in table(repository) for name in CODE.findall(row[1])]
    assert len(names) >= len(RULES)
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert callable(getattr(import_module(module), attribute)), name


def test_all_tests_that_the_table_names_exist(repository: Path) -> None:
    named = [each for row in table(repository) for each in TEST.findall(row[2])]
    assert len(named) >= len(RULES)
    for path, test in named:
        tree = ast.parse((repository / path).read_text("utf-8"))
        assert test in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, test


def converted(
    folder: Path, *lines: Line, include_selftest: bool = False
) -> list[tuple[str, dict[str, Json]]]:
    """Type and payload of each event that lines give."""
    source = write_files(folder / "in", {"7.ndjson": b"".join(dump(line) + b"\n" for line in lines)})
    convert([source], folder / "out", ConvertOptions(include_selftest=include_selftest))
    return [
        (event["type"], event["payload"])
        for path in sorted((folder / "out" / "runs").glob("*/events.jsonl"))
        for event in map(orjson.loads, path.read_bytes().splitlines())
        if not event["payload"]["vinaya"].get("implied")
    ]


def test_a_passing_check_is_only_counted_in_its_summary(tmp_path: Path) -> None:
    summary: dict[str, Json] = {"ran": 5, "passed": 3, "failed": 1, "skipped": 1, "failed_checks": ["lint"]}
    events = converted(tmp_path, sample("gate", "summary") | summary)
    assert [(kind, payload["passed"], payload["skipped"]) for kind, payload in events] == [
        ("gate.evaluated", 3, 1)
    ]


def test_recurrence_is_what_findings_compared_says_and_nothing_else(tmp_path: Path) -> None:
    def compared(seq: int, **own: Json) -> Line:
        lists: dict[str, Json] = {"open": [], "resolved": [], "new": [], "recurring": []}
        return sample("dev_review_loop", "findings_compared", seq=seq) | lists | own

    # The id F1 comes again in the second round's list, and recurs in neither.
    events = converted(tmp_path, compared(0, new=["F1"]), compared(1, new=["F1"], recurring=["F2"]))
    found = [payload for kind, payload in events if kind == "findings.compared"]
    assert [payload.get("recurring") for payload in found] == [[], ["F2"]]


def test_each_verified_line_is_one_event_also_under_one_effect_id(tmp_path: Path) -> None:
    lines = [
        sample("effect", "verified", seq=seq) | {"effect_id": "e", "outcome": "success"} for seq in (0, 1)
    ]
    events = converted(tmp_path, *lines, lines[0])
    assert [(kind, payload["effectId"]) for kind, payload in events] == [("effect.committed", "e")] * 2


@pytest.mark.parametrize("included", [False, True])
def test_the_self_test_is_left_out_and_counted_unless_it_is_asked_for(
    tmp_path: Path, *, included: bool
) -> None:
    line = sample("operation", "completed") | {"operation": "log.selftest"}
    events = converted(tmp_path, line, include_selftest=included)
    assert [kind for kind, _ in events] == (["operation.completed"] if included else [])
    lines = orjson.loads((tmp_path / "out" / "report.json").read_bytes())["lines"]
    assert (lines["converted"], lines["self_test"]) == ((1, 0) if included else (0, 1))


@pytest.mark.parametrize("name", ["core", "generic"])
def test_no_shipped_mapping_makes_a_control_event(name: str) -> None:
    types = [emit.type_name for rule in load_mapping(name).table.rules.values() for emit in rule.emits]
    assert types
    assert not [each for each in types if each.startswith("control.")]
