"""core.toml, event by event: what it emits is snapshotted, and nothing in it can be removed unnoticed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from types import MappingProxyType
from typing import TypeVar

import orjson
import pytest
from attrs import evolve
from syrupy.assertion import SnapshotAssertion

from tests.mapping.coverage_lines import story_lines
from tests.support.strategies import dump
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.mapping import CompiledMapping, Only, OverBound, load_mapping
from vinaya_bridge.mapping.lint import lint
from vinaya_bridge.mapping.load import SHIPPED
from vinaya_bridge.mapping.table import EmitRule, Rule, Table
from vinaya_bridge.mapping.terms import FirstOf, Group, Lookup, Term

EventName = tuple[str, str]
T = TypeVar("T")


@cache
def events_by_name() -> dict[EventName, list[EventLine]]:
    """The lines of the snapshots, read, by event."""
    reader = Reader()
    found: dict[EventName, list[EventLine]] = defaultdict(list)
    for line in story_lines():
        verdict = reader.read(dump(line))
        assert isinstance(verdict, EventLine)
        found[verdict.kind, verdict.event].append(verdict)
    return found


def emitted(mapping: CompiledMapping, name: EventName) -> bytes:
    """What a mapping makes of the lines of one event, one JSON object an event."""
    lines: list[bytes] = []
    for event in events_by_name()[name]:
        emits = mapping.drafts(event)
        assert not isinstance(emits, OverBound)
        for emit in emits:
            said = {"only": Only(emit.only).name, "run": emit.run, "fill": emit.fill, "type": emit.type}
            lines.append(orjson.dumps({**said, "payload": orjson.Fragment(emit.payload)}))
    return b"\n".join(lines)


@pytest.mark.parametrize("name", FAMILIES, ids=".".join)
@pytest.mark.parametrize("table", SHIPPED)
def test_the_events_are_what_the_snapshot_says(
    table: str, name: EventName, raw_snapshot: SnapshotAssertion
) -> None:
    assert emitted(load_mapping(table), name) == raw_snapshot


def test_the_snapshots_cover_every_event_under_every_schema_that_has_it() -> None:
    for (kind, event), lines in events_by_name().items():
        assert {line.schema for line in lines} == ({3} if kind == "custom" else {1, 2, 3}), (kind, event)
    assert set(events_by_name()) == set(FAMILIES)


# Removals: each a table with one thing gone, and the event whose lines can show it.

Removal = tuple[str, Table, EventName | None]


def removals(table: Table) -> Iterator[Removal]:
    for name, rule in table.rules.items():
        others = {key: other for key, other in table.rules.items() if key != name}
        yield f"rule {rule.name}", evolve(table, rules=MappingProxyType(others)), name
        for what, changed in rule_removals(rule):
            rules = MappingProxyType({**table.rules, name: changed})
            yield f"{rule.name}: {what}", evolve(table, rules=rules), name
    for index, (drop, _) in enumerate(table.drop):
        left = (*table.drop[:index], *table.drop[index + 1 :])
        yield f"drop {drop.path}", evolve(table, drop=left), None


def rule_removals(rule: Rule) -> Iterator[tuple[str, Rule]]:
    for index, family in enumerate(rule.generic):
        yield f"family {family.name}", evolve(rule, generic=without(rule.generic, index))
        for number in range(len(family.when)):
            changed = evolve(family, when=without(family.when, number))
            yield f"condition of {family.name}", evolve(rule, generic=replaced(rule.generic, index, changed))
    for index, unknown in enumerate(rule.unknown):
        yield f"unknown {unknown.name}", evolve(rule, unknown=without(rule.unknown, index))
        for number in range(len(unknown.reason)):
            less = evolve(unknown, reason=without(unknown.reason, number))
            yield (
                f"reason {number} of {unknown.name}",
                evolve(rule, unknown=replaced(rule.unknown, index, less)),
            )
    for index, emit in enumerate(rule.emits):
        yield f"emit {index}", evolve(rule, emits=without(rule.emits, index))
        for what, smaller in emit_removals(emit):
            yield f"emit {index}, {what}", evolve(rule, emits=replaced(rule.emits, index, smaller))


def emit_removals(emit: EmitRule) -> Iterator[tuple[str, EmitRule]]:
    for index, condition in enumerate(emit.when):
        yield f"condition {condition.subject}", evolve(emit, when=without(emit.when, index))
    for what, payload in group_removals(emit.payload, ""):
        yield what, evolve(emit, payload=payload)


def group_removals(group: Group, prefix: str) -> Iterator[tuple[str, Group]]:
    for index, (name, term) in enumerate(group.fields):
        yield f"field {prefix}{name}", evolve(group, fields=without(group.fields, index))
        for what, changed in term_removals(term, f"{prefix}{name}"):
            yield what, evolve(group, fields=replaced(group.fields, index, (name, changed)))


def term_removals(term: Term, name: str) -> Iterator[tuple[str, Term]]:
    if isinstance(term, Group):
        yield from group_removals(term, f"{name}.")
    elif isinstance(term, FirstOf) and len(term.alternatives) > 1:
        for index in range(len(term.alternatives)):
            yield (
                f"alternative {index} of {name}",
                evolve(term, alternatives=without(term.alternatives, index)),
            )
    elif isinstance(term, Lookup):
        for index, entry in enumerate(term.entries):
            yield f"entry {entry.member} of {name}", evolve(term, entries=without(term.entries, index))


def without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])


def replaced(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])


def test_nothing_can_be_removed_from_core_without_a_finding_or_a_change_of_a_snapshot() -> None:
    core = load_mapping("core")
    snapshots = {name: emitted(core, name) for name in FAMILIES}
    unnoticed = []
    tried = 0
    for what, table, name in removals(core.table):
        tried += 1
        if lint(table):
            continue
        changed = name is not None and emitted(CompiledMapping(table), name) != snapshots[name]
        if not changed:
            unnoticed.append(what)
    assert unnoticed == []
    assert tried > 400
