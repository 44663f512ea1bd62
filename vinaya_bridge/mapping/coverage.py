"""
What a mapping makes of each event of the Log, as a table: families, types, fields carried, fields dropped and why.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from vinaya_bridge.log.families import FAMILIES as LOG_EVENTS
from vinaya_bridge.log.shapes import paths, schemas_of
from vinaya_bridge.mapping.table import Rule, Table
from vinaya_bridge.mapping.terms import Condition, sources_of

_QUESTIONS = {
    ("@line.starts_run", True): "it starts the run",
    ("@line.starts_run", False): "the run has started",
    ("@line.ends_run", True): "it ends the run",
    ("@line.ends_run", False): "it does not end the run",
    ("@agent.started", True): "the agent had started",
    ("@agent.started", False): "the agent had not started",
}


@frozen
class Coverage:
    """
    One event's row.

    Args:
        kind: The family of the Log.

        event: The event in it.

        schemas: The header schemas under which it occurs.

        generic: Its generic families: name, basis, and when, where it depends on the line.

        types: The types emitted, each with its run and its conditions.

        carried: The paths of the line that a payload, a type or a condition reads.

        dropped: The paths that are not carried, with the reason.

        unmapped: Why it gives nothing; empty where it does.

        place: ``file:line:column`` of its rule; empty without one.
    """

    kind: str
    event: str
    schemas: tuple[int, ...]
    generic: tuple[tuple[str, str, str], ...]
    types: tuple[tuple[str, str, str], ...]
    carried: tuple[str, ...]
    dropped: tuple[tuple[str, str], ...]
    unmapped: str
    place: str

    @property
    def name(self) -> str:
        """``kind.event``."""
        return f"{self.kind}.{self.event}"

    def to_json(self) -> dict[str, object]:
        """The row as a JSON object."""
        return {
            "kind": self.kind,
            "event": self.event,
            "schemas": list(self.schemas),
            "generic": [
                {"family": name, "basis": basis} | ({"when": when} if when else {})
                for name, basis, when in self.generic
            ],
            "types": [
                {"type": name, "run": run} | ({"when": when} if when else {})
                for name, run, when in self.types
            ],
            "carried": list(self.carried),
            "dropped": dict(self.dropped),
            "unmapped": self.unmapped or None,
            "place": self.place or None,
        }


def coverage(table: Table) -> list[Coverage]:
    """
    Work out what a mapping makes of every event.

    Args:
        table: The mapping.

    Returns:
        One row an event, in the order of the Log's reference.
    """
    return [_row(table, kind, event) for kind, event in LOG_EVENTS]


def markdown(rows: Sequence[Coverage]) -> str:
    """
    Write rows as a Markdown table.

    Args:
        rows: Of `coverage`.

    Returns:
        The table, one line an event.
    """
    lines = ["| Vinaya | generic families | ethogram |", "|---|---|---|"]
    for row in rows:
        families = ", ".join(
            f"`{name}`" + (" *" if basis == "inferred" else "") for name, basis, _ in row.generic
        )
        types = "<br>".join(f"`{name}`" + _aside(run, when) for name, run, when in row.types)
        lines.append(
            f"| {row.kind} · {row.event} | {families or '—'} | {types or 'unmapped: ' + row.unmapped} |"
        )
    return "\n".join(lines) + "\n"


def _aside(run: str, when: str) -> str:
    notes = ([f"on the {run} run"] if run != "main" else []) + ([f"when {when}"] if when else [])
    return f" ({', '.join(notes)})" if notes else ""


def _row(table: Table, kind: str, event: str) -> Coverage:
    rule = table.rules.get((kind, event))
    schemas = schemas_of(kind, event)
    if rule is None:
        return Coverage(kind, event, schemas, (), (), (), (), "no rule maps it", "")
    carried = _paths_of(rule)
    dropped = {drop.path: drop.why for drop, _ in table.drop} | {drop.path: drop.why for drop in rule.drop}
    known = {path for schema in schemas for path in paths(kind, event, schema)}
    left_out = {path: why for path, why in dropped.items() if path in known and path not in carried}
    return Coverage(
        kind,
        event,
        schemas,
        tuple((family.name, family.basis, words_of(family.when)) for family in rule.generic),
        tuple((emit.type_name, emit.run, words_of(emit.when)) for emit in rule.emits),
        tuple(sorted(carried)),
        tuple(sorted(left_out.items())) if rule.emits else (),
        rule.unmapped or "",
        str(rule.place),
    )


def _paths_of(rule: Rule) -> set[str]:
    conditions = [*(family.when for family in rule.generic), *(emit.when for emit in rule.emits)]
    found = {one.subject for when in conditions for one in when if not one.is_dynamic}
    for emit in rule.emits:
        found |= {source.path for source in (*sources_of(emit.payload), *sources_of(emit.type))}
    return found


def words_of(conditions: Sequence[Condition]) -> str:
    """
    Say conditions in words.

    Args:
        conditions: All of them hold.

    Returns:
        The words; empty without conditions.
    """
    return " and ".join(_condition(one) for one in conditions)


def _condition(condition: Condition) -> str:
    if condition.is_dynamic:
        return _QUESTIONS[condition.subject, condition.values[0] is True]
    name = condition.subject.removeprefix("$.")
    values = [str(value).lower() if isinstance(value, bool) else str(value) for value in condition.values]
    return f"{name} is {'not ' if condition.is_negated else ''}{' or '.join(values)}"
