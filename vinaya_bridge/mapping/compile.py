"""
Rules to functions: each event's rule becomes Python source once, for each header schema it is met under.

Nothing of the table is interpreted for a line. What the source holds of the table stands in it as quoted literals.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType

import orjson
from msgspec import UNSET

from vinaya_bridge.log.line import EventLine
from vinaya_bridge.mapping import values
from vinaya_bridge.mapping.emit import CERTAINLY_BOUNDED_BYTES, Emit, Only, OverBound, Run, over_bound
from vinaya_bridge.mapping.expressions import ExpressionWriter, ObjectWriter, Value
from vinaya_bridge.mapping.provenance import write_block
from vinaya_bridge.mapping.source_text import SourceText
from vinaya_bridge.mapping.table import EmitRule, Rule
from vinaya_bridge.mapping.terms import Condition, EngineValue, FirstOf, Template, Term

Drafter = Callable[[EventLine], "list[Emit] | OverBound"]
"""What a rule becomes: a line in, its events out."""

_RUNS = {"main": Run.MAIN, "dispatch": Run.DISPATCH}
_ONLY = {
    ("@line.starts_run", True): Only.STARTS_RUN,
    ("@line.starts_run", False): Only.NOT_STARTS_RUN,
    ("@line.ends_run", True): Only.ENDS_RUN,
    ("@line.ends_run", False): Only.NOT_ENDS_RUN,
    ("@agent.started", True): Only.AGENT_STARTED,
    ("@agent.started", False): Only.NOT_AGENT_STARTED,
}
STRICT_INTEGERS = orjson.OPT_STRICT_INTEGER
ENGINE_CONDITIONS = tuple(dict.fromkeys(question for question, _ in _ONLY))
"""What a ``when`` may ask the engine."""


def compile_rule(rule: Rule, schema: int) -> Drafter:
    """
    Compile one event's rule for one header schema.

    Args:
        rule: The rule; it has passed the checks of `vinaya_bridge.mapping.lint`.

        schema: The header schema, under which the event occurs.

    Returns:
        The function.
    """
    text, constants = source_of(rule, schema)
    namespace: dict[str, object] = {
        "UNSET": UNSET,
        "Emit": Emit,
        "over_bound": over_bound,
        "number": values.number,
        "rounded": values.rounded,
        "count": values.count,
        "figure_text": values.figure_text,
        "dumps": orjson.dumps,
        "carried": values.carried,
        **constants,
    }
    code: CodeType = compile(text, f"<mapping rule {rule.name}, schema {schema}>", "exec")
    exec(code, namespace)  # noqa: S102  the text is ours; a table's words stand in it as quoted literals only
    drafts: Drafter = namespace["drafts"]  # type: ignore[assignment]
    return drafts


def source_of(rule: Rule, schema: int) -> tuple[str, dict[str, object]]:
    """
    Write the Python source of a rule.

    Args:
        rule: The rule.

        schema: The header schema.

    Returns:
        The source of a function ``drafts(line)``, and the constants that it names.
    """
    out = SourceText()
    writer = ExpressionWriter(out, rule.kind, rule.event, schema)
    with out.block("def drafts(line):"):
        if not rule.emits:
            out.line("return []")
        else:
            out.line("r = line.record")
            out.line("m = r.meta")
            out.line("s = r.subject")
            write_block(writer, rule)
            out.line("events = []")
            out.line("part = 0")
            for index, emit in enumerate(rule.emits):
                _write_emit(writer, emit, is_first=index == 0)
            out.line("return events")
    return writer.copies.functions() + str(out), out.constants


def only_of(when: tuple[Condition, ...]) -> Only:
    """
    The engine's question among conditions.

    Args:
        when: The conditions of an emit, with at most one question.

    Returns:
        The question and its answer as one value; ``ALWAYS`` where none is asked.
    """
    for condition in when:
        if condition.is_dynamic:
            return _ONLY[condition.subject, bool(condition.values[0])]
    return Only.ALWAYS


def _write_emit(writer: ExpressionWriter, emit: EmitRule, *, is_first: bool) -> None:
    out = writer.out
    test = writer.conditions(emit.when)
    if test is None:
        return
    if test:
        with out.block(f"if {test}:"):
            _write_event(writer, emit, is_first=is_first)
    else:
        _write_event(writer, emit, is_first=is_first)


def _write_event(writer: ExpressionWriter, emit: EmitRule, *, is_first: bool) -> None:
    out = writer.out
    payload = ObjectWriter(writer)
    type_text = repr(emit.type_name)
    if any(map(_may_ask_the_engine, emit.payload.fields)):
        out.line("fill = 0")
    if isinstance(emit.type, Template):
        type_text = writer.as_name(writer.term(emit.type, payload))
    for name, term in emit.payload.fields:
        payload.add(name, term)
    payload.beside("vinaya", Value("v"))
    if not is_first:
        out.line("v['part'] = part")
    name = payload.write()
    out.line(f"try: data = dumps({name}, None, {STRICT_INTEGERS})")
    out.line(f"except TypeError: data = carried({name})")
    fill = f"fill | {payload.fill}" if payload.has_late_fill else str(payload.fill)
    with out.block(f"if len(data) > {CERTAINLY_BOUNDED_BYTES}:"):
        out.line(f"broken = over_bound({type_text}, data, {fill})")
        out.line("if broken is not None: return broken")
    run, only = int(_RUNS[emit.run]), int(only_of(emit.when))
    out.line(f"events.append(Emit(part, {run}, {type_text}, data, {only}, {fill}))")
    out.line("part += 1")


def _may_ask_the_engine(field: tuple[str, Term]) -> bool:
    """Whether the engine's value is one of a field's alternatives."""
    term = field[1]
    return isinstance(term, FirstOf) and any(isinstance(one, EngineValue) for one in term.alternatives)
