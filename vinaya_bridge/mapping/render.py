"""A table as normalised TOML: what applies after overlays, and what a mapping's digest is taken of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from vinaya_bridge.mapping.table import FORMAT_VERSION, Drop, EmitRule, Rule, Table, leaf_fields
from vinaya_bridge.mapping.terms import (
    LONGEST_EXCERPT_SCALARS,
    Condition,
    Constant,
    Count,
    EngineValue,
    Entry,
    Excerpt,
    FirstOf,
    Group,
    Lookup,
    Rounded,
    Source,
    Template,
    Term,
)

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def render(table: Table) -> str:
    """
    Write a table as TOML in one fixed form.

    Rules stand in the order of their names, lookups are written out where they are used, comments are gone; reading
    the result gives the same rules.

    Args:
        table: The table.

    Returns:
        The TOML.
    """
    lines = [f"format = {FORMAT_VERSION}"]
    if table.drop:
        lines += ["", "[drop]", *_drops([drop for drop, _ in table.drop])]
    for _, rule in sorted(table.rules.items()):
        lines += ["", *render_rule(rule)]
    return "\n".join(lines) + "\n"


def render_rule(rule: Rule) -> list[str]:
    """
    Write one rule as TOML in the form of `render`.

    Args:
        rule: The rule.

    Returns:
        Its lines.
    """
    head = f"rule.{_key(rule.kind)}.{_key(rule.event)}"
    lines = [f"[{head}]"]
    families = [
        _inline({"family": family.name, "basis": family.basis, **_when(family.when)})
        for family in rule.generic
    ]
    lines.append(f"generic = [{', '.join(families)}]")
    if rule.unmapped is not None:
        lines.append(f"unmapped = {_value(rule.unmapped)}")
    for unknown in sorted(rule.unknown, key=lambda one: one.name):
        reason = [term_data(part) for part in unknown.reason]
        lines.append(f"unknown.{_key(unknown.name)} = {_inline({'of': unknown.path, 'reason': reason})}")
    lines += [f"drop.{line}" for line in _drops(rule.drop)]
    for emit in rule.emits:
        lines += ["", f"[[{head}.emit]]", *render_emit(emit)]
    return lines


def render_emit(emit: EmitRule) -> list[str]:
    """
    Write one emit as TOML, without its heading.

    Args:
        emit: The emit.

    Returns:
        Its lines.
    """
    lines = [f"run = {_value(emit.run)}", f"type = {_value(emit.type_name)}"]
    if emit.when:
        lines.append(f"when = {_inline(_when(emit.when)['when'])}")
    for name, term in leaf_fields(emit.payload):
        key = ".".join(_key(part) for part in name.split("."))
        lines.append(f"payload.{key} = {_value(term_data(term))}")
    return lines


def term_data(term: Term) -> object:
    """
    A term as the plain data that TOML has for it.

    Args:
        term: The term.

    Returns:
        Text, a number, true or false, a list or a dict.
    """
    match term:
        case Constant():
            needs_form = isinstance(term.value, list | dict) or str(term.value)[:1] in {"$", "@"}
            return {"literal": term.value} if needs_form else term.value
        case Source():
            return term.path
        case EngineValue():
            return term.name
        case Lookup():
            return {"lookup": term.path, "in": _entries(term.entries)}
        case Template():
            text = "".join(part if isinstance(part, str) else f"{{{part.path}}}" for part in term.parts)
            return {"template": text} | ({} if term.max_scalars is None else {"max": term.max_scalars})
        case Excerpt():
            bound = {} if term.max_scalars == LONGEST_EXCERPT_SCALARS else {"max": term.max_scalars}
            return {
                "excerpt": term.path,
                **bound,
                **({} if term.flag == "truncated" else {"flag": term.flag}),
            }
        case Rounded():
            return {"round": term.path}
        case Count():
            return {"count": term.path} | ({} if term.text_field is None else {"text": term.text_field})
        case FirstOf():
            return [term_data(one) for one in term.alternatives]
        case Group():
            return {name: term_data(one) for name, one in term.fields}


def term_text(term: Term) -> str:
    """
    A term as TOML has it, on one line.

    Args:
        term: The term.

    Returns:
        What could stand behind ``=``.
    """
    return _value(term_data(term))


def _entries(entries: Iterable[Entry]) -> dict[str, object]:
    return {entry.member: entry.value for entry in sorted(entries, key=lambda one: one.member)}


def _when(conditions: Sequence[Condition]) -> dict[str, object]:
    if not conditions:
        return {}
    return {"when": dict(sorted((one.subject, _values(one)) for one in conditions))}


def _values(condition: Condition) -> object:
    values = list(condition.values) if len(condition.values) > 1 else condition.values[0]
    return {"not": values} if condition.is_negated else values


def _drops(drops: Iterable[Drop]) -> list[str]:
    return [f"{_key(one.path)} = {_value(one.why)}" for one in sorted(drops, key=lambda one: one.path)]


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # TOML's basic strings have JSON's escapes; DEL alone has to be escaped besides.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Mapping():
            return _inline(value)
        case list():
            return f"[{', '.join(_value(item) for item in value)}]"
        case _:
            return repr(value)


def _inline(data: object) -> str:
    if not isinstance(data, Mapping) or not data:
        return "{}"
    return "{ " + ", ".join(f"{_key(str(key))} = {_value(value)}" for key, value in data.items()) + " }"
