"""
Checks a mapping against both vocabularies before a line is read.

Each vocabulary has one definition: the Log's record classes (`vinaya_bridge.log`) and the protocol's tables
(`ethogram.vocabulary`). A mapping without errors can only emit events that the protocol takes, bounds of long text
apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product
from math import prod

from vinaya_bridge.log.families import FAMILIES as LOG_EVENTS
from vinaya_bridge.log.shapes import paths
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.checks import RuleChecks, did_you_mean, listed
from vinaya_bridge.mapping.compile import only_of
from vinaya_bridge.mapping.emit import COMPLEMENTS, Only
from vinaya_bridge.mapping.families import FAMILIES, STATED, STATED_AS_NOT_MAPPED
from vinaya_bridge.mapping.findings import Finding, Severity
from vinaya_bridge.mapping.lint_emit import check_conditions, check_emit
from vinaya_bridge.mapping.provenance import READ_BY_THE_ENGINE
from vinaya_bridge.mapping.table import Document, Drop, EmitRule, EventName, Rule, Table
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Group,
    Lookup,
    Scalar,
    Source,
    Template,
    Term,
    sources_of,
)

MOST_COMBINATIONS = 2_000
"""How many combinations of members the conditions of a rule are tried with."""


def lint(table: Table, faults: Iterable[Finding] = ()) -> list[Finding]:
    """
    Find what is wrong with a table.

    Args:
        table: The table, its overlays applied.

        faults: What was found when its files were read; they are not repeated, but nothing is said that only
            follows from them.

    Returns:
        The findings, in the order of the files.
    """
    broken = {fault.rule for fault in faults}
    found: list[Finding] = []
    used_lookups: set[str] = set()
    misspelt: list[EventName] = []
    for name, rule in table.rules.items():
        if name not in LOG_EVENTS:
            found.append(_unknown_event(rule))
            misspelt.append(name)
            continue
        found.extend(_check_rule(table, rule, is_whole=rule.name not in broken))
        used_lookups |= _lookups_of(rule)
    found.extend(_not_covered(table, misspelt, broken))
    found.extend(_table_drops(table))
    for lookup in table.lookups.values():
        if lookup.name not in used_lookups and not broken:
            place = lookup.document.place_of_key(lookup.at)
            message = f"no rule uses the lookup `{lookup.name}`"
            found.append(Finding(codes.UNUSED_LOOKUP, place, message, "remove it", severity=Severity.WARNING))
    return sorted(dict.fromkeys(found), key=lambda finding: finding.place)


def is_partial(table: Table) -> bool:
    """
    Tell whether a table has rules for less than half of the events, as an overlay has.

    Args:
        table: The table, its overlays applied.
    """
    known = sum(name in LOG_EVENTS for name in table.rules)
    return 0 < known < len(LOG_EVENTS) - len(LOG_EVENTS) // 2


def _unknown_event(rule: Rule) -> Finding:
    known = [f"{kind}.{event}" for kind, event in LOG_EVENTS]
    remedy = did_you_mean(rule.name, known, f"the events of `{rule.kind}` are in the Log's reference")
    return Finding(codes.UNKNOWN_EVENT, rule.place, f"the Log has no event `{rule.name}`", remedy, rule.name)


def _not_covered(table: Table, misspelt: Sequence[EventName], broken: Collection[str]) -> Iterable[Finding]:
    document = table.documents[0]
    if not table.rules and broken:
        return
    meant = {
        did_you_mean(f"{kind}.{event}", [f"{k}.{e}" for k, e in LOG_EVENTS], "") for kind, event in misspelt
    }
    names = [f"{kind}.{event}" for kind, event in LOG_EVENTS if (kind, event) not in table.rules]
    missing = [name for name in names if f"did you mean `{name}`?" not in meant]
    if not missing:
        return
    place = document.place_of_key(("rule",))
    if len(missing) > len(LOG_EVENTS) // 2:
        message = f"{len(missing)} of the {len(LOG_EVENTS)} events have no rule"
        remedy = "if it is an overlay, check it on its base: vinaya-bridge mapping lint core --mapping-overlay FILE"
        yield Finding(codes.NOT_COVERED, place, message, remedy)
        return
    for name in missing:
        remedy = f"add [rule.{name}], with `unmapped` and the reason if it should give nothing"
        yield Finding(codes.NOT_COVERED, place, f"no rule maps {name}", remedy, name)


def _table_drops(table: Table) -> Iterable[Finding]:
    known = {
        path for kind, event in LOG_EVENTS for schema in (1, 2, 3) for path in paths(kind, event, schema)
    }
    for drop, document in table.drop:
        if drop.path not in known:
            yield _no_such_drop(drop, document, known)


def _no_such_drop(drop: Drop, document: Document, known: Collection[str]) -> Finding:
    place = document.place_of_key(drop.at)
    remedy = did_you_mean(drop.path, known, "remove it")
    return Finding(codes.NO_SUCH_PATH, place, f"no event has `{drop.path}`", remedy)


def _check_rule(table: Table, rule: Rule, *, is_whole: bool) -> list[Finding]:
    checks = RuleChecks(rule, table.lookups)
    _check_families(checks)
    _check_unknown(checks)
    for drop in rule.drop:
        checks.path_exists(drop.path, drop.at, key=True)
    for emit in rule.emits:
        check_emit(checks, emit)
    # What follows from a path that is misspelt, or a part that could not be read, is not said again.
    if is_whole and not any(one.severity is Severity.ERROR for one in checks.findings):
        _check_every_line_emits(checks)
        _check_every_field_read(checks, table)
    return checks.findings


def _check_families(checks: RuleChecks) -> None:
    rule = checks.rule
    stated = STATED.get((rule.kind, rule.event), ())
    named = {family.name for family in rule.generic}
    for family in rule.generic:
        check_conditions(checks, family.when, may_ask=False)
        at = (*family.at, "family")
        if family.name not in FAMILIES:
            remedy = did_you_mean(family.name, FAMILIES, "name a family of the process contract")
            checks.fault(codes.UNKNOWN_FAMILY, at, f"no generic family is called `{family.name}`", remedy)
        elif (rule.kind, rule.event) in STATED_AS_NOT_MAPPED:
            message = f"the Log's reference says that {rule.name} maps to no family"
            checks.fault(codes.FAMILY_MISMATCH, at, message, "write `generic = []`")
        elif family.is_stated != (family.name in stated):
            basis = "stated" if family.name in stated else "inferred"
            message = f"`{family.name}` is {basis} for {rule.name}"
            checks.fault(codes.FAMILY_MISMATCH, (*family.at, "basis"), message, f'write basis = "{basis}"')
    missing = [name for name in stated if name not in named]
    if missing and named <= FAMILIES:
        message = f"the Log's reference states {listed(missing)} for {rule.name}"
        checks.fault(
            codes.FAMILY_MISMATCH, (*rule.at, "generic"), message, 'add it, with basis = "stated"', key=True
        )


def _check_unknown(checks: RuleChecks) -> None:
    fields = {name for emit in checks.rule.emits for name, _ in emit.payload.fields}
    for unknown in checks.rule.unknown:
        if not checks.path_exists(unknown.path, (*unknown.at, "of")):
            continue
        if unknown.name not in fields:
            message = f"no emit of the rule has a payload field `{unknown.name}`"
            checks.fault(
                codes.UNKNOWN_KEY,
                unknown.at,
                message,
                did_you_mean(unknown.name, fields, "remove it"),
                key=True,
            )
        if not any(checks.may_be_absent(unknown.path, schema) for schema in checks.schemas):
            message = f"`{unknown.path}` is on every line"
            checks.fault(codes.NEVER_APPLIES, (*unknown.at, "of"), message, "remove the entry")
        for part in unknown.reason:
            if isinstance(part, Source) and checks.path_exists(part.path, part.at):
                shape = checks.shape(part.path)
                if shape is not None and shape.kind != "string" and not shape.members:
                    checks.fault(
                        codes.WRONG_TYPE, part.at, f"`{part.path}` is not text", "give the reason as text"
                    )
        last = unknown.reason[-1] if unknown.reason else None
        if not isinstance(last, Constant):
            message = "no reason is given where the sources have none"
            checks.fault(codes.MAY_BE_ABSENT, (*unknown.at, "reason"), message, "end the list with a text")


def _check_every_line_emits(checks: RuleChecks) -> None:
    """No line of a rule that emits may slip through all its conditions."""
    rule = checks.rule
    if not rule.emits:
        return
    subjects = list(
        dict.fromkeys(one.subject for emit in rule.emits for one in emit.when if not one.is_dynamic)
    )
    choices = [_choices(checks, subject) for subject in subjects]
    if prod(map(len, choices)) > MOST_COMBINATIONS:
        return
    lost: list[str] = []
    for combination in product(*choices):
        values = dict(zip(subjects, combination, strict=True))
        asked = {only_of(emit.when) for emit in rule.emits if _holds(emit.when, values)}
        if Only.ALWAYS not in asked and not any(set(pair) <= asked for pair in COMPLEMENTS):
            said = " and ".join(f"`{subject}` is {_said(value)}" for subject, value in values.items())
            lost.append(said or "the engine answers otherwise")
    if lost:
        message = f"no emit applies where {'; or '.join(lost)}"
        checks.fault(codes.NOT_COVERED, rule.at, message, "add an emit for it", key=True)


def _choices(checks: RuleChecks, subject: str) -> list[Scalar | None]:
    """The values worth trying: all members of a closed set, else all that are named; None for any other, or none."""
    members = checks.members(subject)
    if members is None:
        emits = checks.rule.emits
        named = dict.fromkeys(
            value for emit in emits for one in emit.when if one.subject == subject for value in one.values
        )
        return [*named, None]
    is_certain = not any(checks.may_be_absent(subject, schema) for schema in checks.schemas)
    return [*members] if is_certain else [*members, None]


def _said(value: Scalar | None) -> str:
    return "anything else" if value is None else listed([value])


def _holds(when: Sequence[Condition], values: dict[str, Scalar | None]) -> bool:
    return all(one.is_dynamic or one.admits(values[one.subject]) for one in when)


def _check_every_field_read(checks: RuleChecks, table: Table) -> None:
    rule = checks.rule
    read = _paths_read(rule)
    for drop in rule.drop:
        if any(path == drop.path or path.startswith(drop.path + ".") for path in read):
            message = f"`{drop.path}` is carried by the same rule"
            checks.warn(
                codes.DROPPED_AND_READ, drop.at, message, "remove the one that is not meant", key=True
            )
    if rule.unmapped is not None:
        return
    named = (
        read | {drop.path for drop in rule.drop} | {drop.path for drop, _ in table.drop} | READ_BY_THE_ENGINE
    )
    lost: dict[str, None] = {}
    for schema in checks.schemas:
        for path, info in paths(rule.kind, rule.event, schema).items():
            if info.type != "object" and not any(part in named for part in _with_ancestors(path)):
                lost[path] = None
    for path in lost:
        message = f"`{path}` is neither carried nor dropped"
        remedy = f'carry it in a payload, or add drop."{path}" = "why"'
        checks.fault(codes.FIELD_LOST, rule.at, message, remedy, key=True)


def _with_ancestors(path: str) -> Iterable[str]:
    while path != "$":
        yield path
        path = path.rpartition(".")[0]


def _paths_read(rule: Rule) -> set[str]:
    read = {unknown.path for unknown in rule.unknown}
    for emit in rule.emits:
        read |= {source.path for source in sources_of(emit.payload)}
        read |= {one.subject for one in emit.when if not one.is_dynamic}
        read |= _type_paths(emit)
    return read


def _type_paths(emit: EmitRule) -> set[str]:
    return {source.path for source in sources_of(emit.type)} if isinstance(emit.type, Template) else set()


def _lookups_of(rule: Rule) -> set[str]:
    found: set[str] = set()
    todo: list[Term] = [emit.payload for emit in rule.emits]
    while todo:
        term = todo.pop()
        if isinstance(term, Lookup) and term.table is not None:
            found.add(term.table)
        elif isinstance(term, Group):
            todo.extend(inner for _, inner in term.fields)
        elif not isinstance(term, Source | Constant) and hasattr(term, "alternatives"):
            todo.extend(term.alternatives)
    return found
