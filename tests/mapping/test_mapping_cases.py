"""The folders of cases that come with the project: each event under each schema, and each word that a lookup reads."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.support.samples import sample
from tests.support.strategies import SHAPES
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.mapping import load_mapping
from vinaya_bridge.mapping.cases import Case, find_cases, run_case
from vinaya_bridge.mapping.sources import resolve
from vinaya_bridge.mapping.terms import Group, Lookup, Term
from vinaya_bridge.testing import ConvertLines

CASES = Path(__file__).parent / "cases"


@pytest.mark.parametrize("case", find_cases([CASES]), ids=lambda case: str(case.name))
def test_a_case_gives_what_it_must(case: Case) -> None:
    assert run_case(case, "core").differences == ()


def case_lines() -> list[EventLine]:
    reader = Reader()
    raws = [
        raw for case in find_cases([CASES]) for file in case.inputs for raw in file.read_bytes().splitlines()
    ]
    return [verdict for raw in raws if isinstance(verdict := reader.read(raw), EventLine)]


def test_the_cases_hold_every_event_under_every_schema_that_has_it() -> None:
    assert {(line.kind, line.event, line.schema) for line in case_lines()} == set(SHAPES)


def test_the_cases_hold_every_member_that_a_lookup_reads() -> None:
    wanted: set[tuple[str, str, str]] = set()
    for (kind, event), rule in load_mapping("core").table.rules.items():
        for lookup in [one for emit in rule.emits for one in lookups_in(emit.payload)]:
            shape = resolve(kind, event, 3, lookup.path)
            assert shape is not None
            wanted |= {(kind, event, f"{lookup.path}={member}") for member in shape.shape.members}
    held = {
        (line.kind, line.event, f"$.{name}={value}")
        for line in case_lines()
        for name in ("reason", "result", "outcome")
        if isinstance(value := getattr(line.record, name, None), str)
    }
    assert wanted
    assert wanted <= held


def lookups_in(term: Term) -> list[Lookup]:
    if isinstance(term, Group):
        return [found for _, inner in term.fields for found in lookups_in(inner)]
    return [term] if isinstance(term, Lookup) else []


def test_lines_can_be_converted_and_looked_at_in_python(convert_lines: ConvertLines) -> None:
    converted = convert_lines([sample("gate", "summary", run="run-a"), b"no JSON"])
    types = [orjson.loads(event)["type"] for event in converted.runs["run-a"].splitlines()]
    assert types == ["run.started", "gate.evaluated"]
    assert converted.counts["lines"]["refused"] == 1
    assert orjson.loads(converted.kept)["why"] == "refused"


def test_what_comes_out_does_not_depend_on_when_it_is_made(convert_lines: ConvertLines) -> None:
    lines = [sample("gate", "summary", seq=seq) for seq in range(3)]
    assert convert_lines(lines) == convert_lines(list(reversed(lines)))
