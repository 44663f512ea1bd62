"""
Paths into a line, resolved against the Log's record classes: what each step may lack, and what is at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import attrs
from attrs import frozen

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import attribute_name
from vinaya_bridge.log.shapes import Shape, fields_of, schemas_of


@frozen
class Step:
    """
    One attribute on the way.

    Args:
        attribute: Its name on the record.

        shape: What it may be; where several classes are possible, what they have in common.

        certain: Whether the object before it always has this attribute.

        by_key: Whether it is a key of a record instead, which a line may or may not have.
    """

    attribute: str
    shape: Shape
    certain: bool = True
    by_key: bool = False


@frozen
class ResolvedPath:
    """
    A path of one event under one header schema.

    Args:
        steps: From the record to the value.
    """

    steps: tuple[Step, ...]

    @property
    def shape(self) -> Shape:
        """What is at its end."""
        return self.steps[-1].shape

    @property
    def may_be_absent(self) -> bool:
        """Whether some line has nothing there: a null or absent value, or object on the way."""
        return any(step.shape.nullable or step.shape.optional or not step.certain for step in self.steps)


@cache
def resolve(kind: str, event: str, schema: int, path: str) -> ResolvedPath | None:
    """
    Find what a path leads to.

    Args:
        kind: A family of the Log.

        event: An event in it.

        schema: A header schema, 1 to 3.

        path: ``$.a.b``; it enters objects, and records by a key that they may have, not lists.

    Returns:
        The way there; None where no line of this event has the path.
    """
    if schema not in schemas_of(kind, event) or not path.startswith("$."):
        return None
    classes: tuple[type[attrs.AttrsInstance], ...] = (FAMILIES[kind, event],)
    steps: list[Step] = []
    for key in path[2:].split("."):
        if steps and steps[-1].shape.kind == "record":
            value = _record_value(steps[-1].shape, key)
            if value is None:
                return None
            steps.append(Step(key, value, certain=False, by_key=True))
            classes = ()
            continue
        name = attribute_name(key)
        owners = [cls for cls in classes if name in fields_of(cls)]
        if not owners:
            return None
        shape = _common([fields_of(cls)[name] for cls in owners])
        if name == "meta" and not steps:
            shape = attrs.evolve(shape, classes=(HEADERS[schema],))
        steps.append(Step(name, shape, certain=len(owners) == len(classes)))
        classes = shape.classes if shape.kind == "object" else ()
    return ResolvedPath(tuple(steps))


def _record_value(record: Shape, key: str) -> Shape | None:
    """What stands under a key of a record; None where it cannot have the key."""
    if record.key is None or record.item is None:
        return None
    rule = record.key.rule
    is_key = (
        key in record.key.members if record.key.members else re.fullmatch(rule.pattern or ".*", key, re.ASCII)
    )
    return attrs.evolve(record.item, optional=True) if is_key else None


def _common(shapes: list[Shape]) -> Shape:
    """What several variants have in common: the members of all, nullable where one is."""
    first = shapes[0]
    if len(shapes) == 1:
        return first
    members = tuple(dict.fromkeys(member for shape in shapes for member in shape.members))
    return attrs.evolve(
        first,
        kind="enum" if first.kind == "literal" else first.kind,
        members=members,
        nullable=any(shape.nullable for shape in shapes),
        optional=any(shape.optional for shape in shapes),
    )


def events() -> Mapping[tuple[str, str], tuple[int, ...]]:
    """Every (kind, event) of the Log with the header schemas it occurs under."""
    return {pair: schemas_of(*pair) for pair in FAMILIES}
