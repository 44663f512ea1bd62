"""What changes between two mappings: by rule, and over a log by event."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import orjson
from attrs import define, field, frozen

from vinaya_bridge.log.line import EventLine
from vinaya_bridge.mapping.emit import Emit, OverBound
from vinaya_bridge.mapping.load import CompiledMapping
from vinaya_bridge.mapping.render import render_rule
from vinaya_bridge.mapping.table import EventName, Rule, Table
from vinaya_bridge.mapping.visible import differing_fields


@frozen
class RuleChange:
    """
    A rule that is not the same in two tables.

    Args:
        name: ``kind.event``.

        change: ``added``, ``removed`` or ``changed``.

        lines: The rule's normalised text as a unified difference, without its heading.
    """

    name: str
    change: str
    lines: tuple[str, ...]


@define
class EventChange:
    """
    The lines of one event whose events are not the same under two mappings.

    Args:
        name: ``kind.event``.

        lines: How many lines were seen.

        changed: How many of them give other events.

        example: The identity of the first of them.

        differences: How its events differ, for a person.
    """

    name: str
    lines: int = 0
    changed: int = 0
    example: str = ""
    differences: list[str] = field(factory=list)


def diff_tables(old: Table, new: Table) -> list[RuleChange]:
    """
    Compare two tables rule by rule.

    Args:
        old: One table.

        new: The other.

    Returns:
        The rules that are not the same, by name; comments and the order of keys do not matter.
    """
    found: list[RuleChange] = []
    for kind, event in sorted({*old.rules, *new.rules}):
        before, after = _text(old, (kind, event)), _text(new, (kind, event))
        if before == after:
            continue
        change = "added" if not before else "changed" if after else "removed"
        lines = list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:]
        found.append(RuleChange(f"{kind}.{event}", change, tuple(line for line in lines if line[:2] != "@@")))
    return found


def diff_events(old: CompiledMapping, new: CompiledMapping, lines: Iterable[EventLine]) -> list[EventChange]:
    """
    Compare what two mappings make of a log.

    Args:
        old: One mapping.

        new: The other.

        lines: The event lines.

    Returns:
        A row for each event of which some line gives other events, by name.
    """
    found: dict[str, EventChange] = {}
    for line in lines:
        name = f"{line.kind}.{line.event}"
        row = found.setdefault(name, EventChange(name))
        row.lines += 1
        before, after = old.drafts(line), new.drafts(line)
        if before == after:
            continue
        row.changed += 1
        if row.changed == 1:
            row.example = line.identity
            row.differences = _differences(before, after)
    return [row for _, row in sorted(found.items()) if row.changed]


def _text(table: Table, name: EventName) -> list[str]:
    rule: Rule | None = table.rules.get(name)
    return [] if rule is None else render_rule(rule)[1:]


def _differences(before: list[Emit] | OverBound, after: list[Emit] | OverBound) -> list[str]:
    if isinstance(before, OverBound) or isinstance(after, OverBound):
        return [f"{_verdict(before)} -> {_verdict(after)}"]
    found: list[str] = []
    for index in range(max(len(before), len(after))):
        one = before[index] if index < len(before) else None
        other = after[index] if index < len(after) else None
        if one is None or other is None or one.type != other.type:
            found.append(
                f"event {index}: {one.type if one else '(none)'} -> {other.type if other else '(none)'}"
            )
            continue
        if (one.run, one.only) != (other.run, other.only):
            found.append(f"event {index}, {one.type}: another run or condition")
        payloads = orjson.loads(one.payload), orjson.loads(other.payload)
        found += [
            f"event {index}, {one.type}: {path}: {old} -> {new}"
            for path, old, new in differing_fields(*payloads, "payload")
        ]
    return found


def _verdict(emits: list[Emit] | OverBound) -> str:
    return f"over a bound at {emits.path}" if isinstance(emits, OverBound) else f"{len(emits)} events"
