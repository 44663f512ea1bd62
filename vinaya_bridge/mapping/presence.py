"""Whether a term gives a value on every line, and how long its text can be."""

from __future__ import annotations

from collections.abc import Sequence

from vinaya_bridge.log.shapes import Shape
from vinaya_bridge.mapping.checks import RuleChecks
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Count,
    EngineValue,
    Excerpt,
    FirstOf,
    Group,
    Lookup,
    Rounded,
    Source,
    Template,
    Term,
)

LONGEST_NUMBER = 400
"""More characters than any number of a line has as text."""


def longest(shape: Shape | None) -> int | None:
    """
    The most characters that a value has as text.

    Args:
        shape: What the value may be.

    Returns:
        The bound; None without one.
    """
    if shape is None:
        return 0
    if shape.members:
        return max(len(str(member)) for member in shape.members)
    if shape.kind == "string":
        return shape.rule.max_units
    return LONGEST_NUMBER


def always_there(checks: RuleChecks, term: Term, schema: int, when: Sequence[Condition]) -> bool:
    """
    Whether a term gives a value on every line under a schema.

    Args:
        checks: The rule.

        term: The term.

        schema: The header schema.

        when: The emit's conditions.

    Returns:
        False where some line that meets the conditions leaves it out.
    """
    match term:
        case Constant():
            return True
        case EngineValue():
            return term.name == "@run.elapsed_ms"
        case Source() | Lookup() | Excerpt():
            return not checks.may_be_absent(term.path, schema, when)
        case Template():
            sources = [part.path for part in term.parts if isinstance(part, Source)]
            return not any(checks.may_be_absent(path, schema, when) for path in sources)
        case FirstOf():
            return any(always_there(checks, one, schema, when) for one in term.alternatives)
        case Group():
            return any(always_there(checks, one, schema, when) for _, one in term.fields)
        case Rounded() | Count():
            # A figure that no reader could hold exactly is left out.
            return False
