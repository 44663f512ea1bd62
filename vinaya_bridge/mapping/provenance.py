"""
The ``vinaya`` block of every payload: which line the event came from, and what is not known about it, with the reason.

``{"digest","event","eventId","generic","issue"?,"kind","part","processId"?,"runId","schema","seq","trust"?,"unknown"?}``
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from vinaya_bridge.mapping.expressions import ExpressionWriter, Value
from vinaya_bridge.mapping.table import Family, Rule
from vinaya_bridge.mapping.terms import LONGEST_EXCERPT_SCALARS, Constant, Source

READ_BY_THE_ENGINE = frozenset(
    {
        "$.kind",
        "$.event",
        "$.payload",
        "$.meta.schema",
        "$.meta.ts",
        "$.meta.run_id",
        "$.meta.seq",
        "$.meta.event_id",
        "$.meta.process_id",
        "$.meta.lineage.run",
        "$.meta.provenance",
        "$.subject.issue",
    }
)
"""The fields that travel with every event whatever a rule says: in the block, in ``capturedAt``, in the run's id."""


def header_unknowns(schema: int, *, trust_is_known: bool) -> Mapping[str, str]:
    """
    What a header of an old schema cannot say. Source: Vinaya Log reference, Reading rules: Unknown, never zero.

    Args:
        schema: The header schema.

        trust_is_known: Whether the line's trust is known all the same, from the CLI's version.

    Returns:
        Field to reason, in key order.
    """
    absent = {
        1: ("actor", "flowId", "flowVersion", "provenance", "workRef"),
        2: ("flowId", "flowVersion", "workRef"),
    }
    found = {field: f"a schema {schema} header has no {field}" for field in absent.get(schema, ())}
    if not trust_is_known:
        found["trust"] = f"a schema {schema} header declares no provenance"
    return dict(sorted(found.items()))


def write_block(writer: ExpressionWriter, rule: Rule) -> str:
    """
    Write the source that builds the block of one line.

    Args:
        writer: Writes for one event and schema; the record is ``r``, its header ``m``, its subject ``s``, the line
        ``line``.

        rule: The event's rule.

    Returns:
        The name of the variable that holds the block, its ``part`` 0.
    """
    out = writer.out
    generic = _generic(writer, rule.generic)
    unknown = _unknown(writer, rule)
    head = f"'digest': line.digest, 'event': {rule.event!r}, 'eventId': line.identity, 'generic': {generic}"
    tail = f"'kind': {rule.kind!r}, 'part': 0, "
    if writer.schema > 1:
        tail += "'processId': m.process_id, "
    tail += f"'runId': m.run_id, 'schema': {writer.schema}, 'seq': m.seq"
    if writer.schema > 1:
        tail += ", 'trust': line.trust"
    out.line("issue = s.issue")
    out.line(f"v = {{{head}, {tail}}} if issue is None else {{{head}, 'issue': issue, {tail}}}")
    if writer.schema == 1:
        out.line("if trust is not None: v['trust'] = trust")
    if unknown.present:
        out.line(f"if {unknown.present}: v['unknown'] = {unknown.text}")
    elif not unknown.never:
        out.line(f"v['unknown'] = {unknown.text}")
    return "v"


def _generic(writer: ExpressionWriter, families: tuple[Family, ...]) -> str:
    """The expression of the list of families."""
    out = writer.out
    tests = [(family.name, writer.conditions(family.when)) for family in families]
    if all(test in ("", None) for _, test in tests):
        names = [name for name, test in tests if test is not None]
        return out.constant(orjson.Fragment(orjson.dumps(names)), "FAMILIES")
    out.line("generic = []")
    for name, test in tests:
        if test is not None:
            out.line(f"if {test}: generic.append({name!r})" if test else f"generic.append({name!r})")
    return "generic"


def _unknown(writer: ExpressionWriter, rule: Rule) -> Value:
    """The expression of what is not known, and the test that anything is."""
    out = writer.out
    schema = writer.schema
    always = header_unknowns(schema, trust_is_known=True)
    whole, written = _constants(writer, always)
    if schema == 1:
        # Only the first schema declares no provenance; an old CLI is of low trust all the same.
        out.line("trust = line.trust")
        untrusted_whole, untrusted = _constants(writer, header_unknowns(schema, trust_is_known=False))
        whole = f"({untrusted_whole} if trust is None else {whole})"
        written = f"({untrusted} if trust is None else {written})"
    if not rule.unknown:
        return Value(written, never=not always)
    out.line("unknown = None")
    for entry in rule.unknown:
        value = writer.read(entry.path)
        if value.never or not value.present:
            continue
        with out.block(f"if not ({value.present}):"):
            reason = _reason(writer, entry.reason)
            out.line(f"unknown = {{**(unknown or {whole}), {entry.name!r}: {reason}}}")
    if not always:
        return Value("dict(sorted(unknown.items()))", "unknown")
    return Value(f"dict(sorted(unknown.items())) if unknown else {written}")


def _constants(writer: ExpressionWriter, unknowns: Mapping[str, str]) -> tuple[str, str]:
    """The names of a constant as a dict, and as the text that it is written as."""
    text = orjson.Fragment(orjson.dumps(unknowns))
    return writer.out.constant(unknowns, "UNKNOWN"), writer.out.constant(text, "UNKNOWN")


def _reason(writer: ExpressionWriter, parts: tuple[Constant | Source, ...]) -> str:
    """The name that holds the first reason that is present, bounded."""
    out = writer.out
    name = out.fresh("why")
    out.line(f"{name} = None")
    for part in parts:
        if isinstance(part, Constant):
            out.line(f"if {name} is None: {name} = {part.value!r}")
            break
        value = writer.read(part.path)
        if not value.never:
            guard = f" and {value.present}" if value.present else ""
            out.line(f"if {name} is None{guard}: {name} = {value.text}[:{LONGEST_EXCERPT_SCALARS}]")
    return name
