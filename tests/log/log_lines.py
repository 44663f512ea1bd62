"""One plain valid line of every event, as decoded JSON: what the tests of single faults start from."""

from __future__ import annotations

import attrs

from tests.support.strategies import Json, Line
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of


def line_of(kind: str, event: str, schema: int = 3, **changed: Json) -> Line:
    """
    Make a line.

    Args:
        kind: The family.

        event: The event.

        schema: The header schema; one that has the event.

        changed: Fields of the top level that replace the plain ones.

    Returns:
        A line with all required fields and no other, the lists in it with one entry each.
    """
    line = _object(FAMILIES[kind, event], schema)
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta |= {"ts": "2026-03-01T10:00:00.000Z", "vinaya": "0.41.0"}
    return line | changed


def _object(cls: type[attrs.AttrsInstance], schema: int) -> dict[str, Json]:
    shapes = fields_of(cls)
    return {json_name(name): _value(shape, schema) for name, shape in shapes.items() if not shape.optional}


def _value(shape: Shape, schema: int) -> Json:
    match shape.kind:
        case "string":
            return "a.b" if shape.rule.pattern else "x"
        case "int" | "number":
            return shape.rule.minimum or 0
        case "bool":
            return True
        case "enum" | "literal":
            return shape.members[0]
        case "object":
            header = HEADERS[schema]
            return _object(header if header in shape.classes else shape.classes[-1], schema)
        case "list":
            assert shape.item is not None
            return [_value(shape.item, schema)]
        case "record":
            return {}
        case "any":
            return "x"
