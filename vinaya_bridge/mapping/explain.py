"""Why a line gives the events that it gives: its rule, and for each payload field where it came from."""

from __future__ import annotations

import orjson
from attrs import frozen
from msgspec import UNSET

from ethogram.validation import ValidationError, validate
from vinaya_bridge.log.line import EventLine
from vinaya_bridge.log.rules import attribute_name
from vinaya_bridge.mapping.coverage import words_of
from vinaya_bridge.mapping.emit import Emit, Fill, OverBound, fill_payload
from vinaya_bridge.mapping.load import CompiledMapping
from vinaya_bridge.mapping.render import term_text
from vinaya_bridge.mapping.table import EmitRule, Rule, leaf_fields
from vinaya_bridge.mapping.terms import Condition, Constant, EngineValue, FirstOf, Term, sources_of

BY_THE_ENGINE = "by the engine"
"""The origin of what no rule of the table writes."""


@frozen
class FieldOrigin:
    """
    One payload field and where it came from.

    Args:
        name: The field, dotted from the payload.

        value: Its value as JSON; empty where it is left out.

        origin: The words of the table that give it; of alternatives, the one that was there.

        place: ``file:line:column`` of these words.
    """

    name: str
    value: str
    origin: str
    place: str


@frozen
class ExplainedEvent:
    """
    One event that a line gives.

    Args:
        part: Its number among them.

        type: Its type.

        run: ``main`` or ``dispatch``.

        when: On what it depends; empty where it does not.

        verdict: The validator's word on it.

        fields: Its payload, without the ``vinaya`` block.

        place: ``file:line:column`` of its rule.
    """

    part: int
    type: str
    run: str
    when: str
    verdict: str
    fields: tuple[FieldOrigin, ...]
    place: str


@frozen
class Explanation:
    """
    What a mapping makes of a line.

    Args:
        rule: ``file:line:column`` of the rule; empty without one.

        generic: The generic families, each with its basis.

        unmapped: Why the line gives nothing; empty where it does.

        refused: The bound that an event would break, so that the line gives none; empty without one.

        events: The events.
    """

    rule: str
    generic: tuple[str, ...]
    unmapped: str
    refused: str
    events: tuple[ExplainedEvent, ...]


def explain(mapping: CompiledMapping, line: EventLine) -> Explanation:
    """
    Explain what a mapping makes of a line.

    Args:
        mapping: The mapping.

        line: The line.

    Returns:
        The rule, and each event with the origin of its fields.
    """
    rule = mapping.table.rules.get((line.kind, line.event))
    unmapped = mapping.unmapped(line.kind, line.event) or ""
    if rule is None:
        return Explanation("", (), unmapped, "", ())
    generic = tuple(f"{one.name} ({one.basis})" for one in rule.generic if _holds(line, one.when))
    emits = mapping.drafts(line)
    if isinstance(emits, OverBound):
        refused = f"{emits.type}: {emits.path} is over a bound of the protocol"
        return Explanation(str(rule.place), generic, unmapped, refused, ())
    applied = [emit for emit in rule.emits if _holds(line, emit.when)]
    events = tuple(_event(rule, one, emit, line) for one, emit in zip(applied, emits, strict=True))
    return Explanation(str(rule.place), generic, unmapped, "", events)


def _event(rule: Rule, emit_rule: EmitRule, emit: Emit, line: EventLine) -> ExplainedEvent:
    payload = orjson.loads(emit.payload)
    document = rule.document
    fields: list[FieldOrigin] = []
    known: set[str] = set()
    for name, term in leaf_fields(emit_rule.payload):
        chosen = _chosen(term, line)
        value = _value_at(payload, name)
        known.add(name)
        shown = BY_THE_ENGINE if isinstance(chosen, EngineValue) and not value else value
        fields.append(FieldOrigin(name, shown, term_text(chosen), str(document.place_of_value(chosen.at))))
    fields += [
        FieldOrigin(name, _value_at(payload, name), "beside another field", "")
        for name in _names(payload)
        if name not in known and not any(name.startswith(f"{one}.") for one in known)
    ]
    place = str(document.place_of_key((*emit_rule.at, "type")))
    when = words_of([one for one in emit_rule.when if one.is_dynamic])
    return ExplainedEvent(emit.part, emit.type, emit_rule.run, when, _verdict(emit), tuple(fields), place)


def _verdict(emit: Emit) -> str:
    payload = fill_payload(emit.payload, elapsed_ms=0) if emit.fill & Fill.ELAPSED else emit.payload
    try:
        validate(emit.type, orjson.loads(payload))
    except ValidationError as fault:
        return str(fault)
    return "valid"


def _chosen(term: Term, line: EventLine) -> Term:
    """Of alternatives the first that the line has; any other term itself."""
    if not isinstance(term, FirstOf):
        return term
    for one in term.alternatives:
        if isinstance(one, Constant | EngineValue) or all(
            _is_there(line, each.path) for each in sources_of(one)
        ):
            return one
    return term


def _is_there(line: EventLine, path: str) -> bool:
    return _read(line, path) is not None


def _read(line: EventLine, path: str) -> object:
    """The value at a path; None where there is none."""
    value: object = line.record
    for key in path.removeprefix("$.").split("."):
        value = value.get(key) if isinstance(value, dict) else getattr(value, attribute_name(key), None)
        if value is None or value is UNSET:
            return None
    return value


def _holds(line: EventLine, when: tuple[Condition, ...]) -> bool:
    return all(one.is_dynamic or one.admits(_read(line, one.subject)) for one in when)


def _value_at(payload: object, name: str) -> str:
    for key in name.split("."):
        if not isinstance(payload, dict) or key not in payload:
            return ""
        payload = payload[key]
    return orjson.dumps(payload).decode()


def _names(payload: dict[str, object], prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in payload.items():
        if prefix or key != "vinaya":
            found += _names(value, f"{prefix}{key}.") if isinstance(value, dict) and value else [prefix + key]
    return found
