"""Single valid lines for tests that care about a few fields: everything else is as plain as its shape allows."""

from __future__ import annotations

from typing import cast

import attrs

from tests.support.strategies import Json, Line, dump
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of


def sample(
    kind: str,
    event: str,
    *,
    schema: int = 3,
    seq: int = 0,
    run: str = "run-a",
    process: str = "proc-a",
    ts: str | None = None,
    meta: dict[str, Json] | None = None,
    subject: dict[str, Json] | None = None,
    **own: Json,
) -> Line:
    """
    Make a valid line.

    Args:
        kind: The family.

        event: The event.

        schema: The header schema.

        seq: The process's counter; also the second of the minute, unless a time is given.

        run: ``meta.run_id``, and the lineage's run.

        process: ``meta.process_id``; under schema 1 the machine.

        ts: The time.

        meta: Further header fields.

        subject: Further fields of the subject.

        own: The event's own fields; those that are required and not given get a plain value.

    Returns:
        The line as decoded JSON.
    """
    record: type[attrs.AttrsInstance] = FAMILIES[kind, event]
    line = _plain_object(record, schema)
    header = cast(dict[str, Json], line["meta"])
    header |= {"ts": ts or f"2026-05-04T10:{seq // 60 % 60:02}:{seq % 60:02}.000Z", "run_id": run, "seq": seq}
    header |= {"repo": "acme/lantern", "vinaya": "0.41.2", "machine": "machine-a"}
    if schema == 1:
        header["machine"] = process
    else:
        header |= {"event_id": f"ev-{run}-{process}-{seq}", "process_id": process}
        header["lineage"] = {"run": run, "attempt": None, "parent": None}
    header |= meta or {}
    about: dict[str, Json] = {"issue": 7, "role": "developer"}
    line["subject"] = about | (subject or {})
    return line | own


def read(*lines: Line) -> list[EventLine]:
    """
    Read lines that are known to be valid.

    Args:
        lines: Lines as decoded JSON.

    Returns:
        What the reader makes of them.
    """
    reader = Reader()
    verdicts = [reader.read(dump(line)) for line in lines]
    events = [verdict for verdict in verdicts if isinstance(verdict, EventLine)]
    assert len(events) == len(lines), [verdict for verdict in verdicts if not isinstance(verdict, EventLine)]
    return events


def _plain_object(cls: type[attrs.AttrsInstance], schema: int) -> dict[str, Json]:
    shapes = fields_of(cls).items()
    return {json_name(name): _plain(shape, schema) for name, shape in shapes if not shape.optional}


def _plain(shape: Shape, schema: int) -> Json:
    """The plainest value of a shape: null where it is allowed, else empty or least."""
    if shape.nullable:
        return None
    match shape.kind:
        case "literal" | "enum":
            return shape.members[0]
        case "string":
            return "x.y" if shape.rule.pattern else "x"
        case "int" | "number":
            return shape.rule.minimum or 0
        case "bool":
            return False
        case "list":
            return []
        case "object":
            header = HEADERS[schema]
            return _plain_object(header if header in shape.classes else shape.classes[-1], schema)
        case _:
            return {}
