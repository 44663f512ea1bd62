"""What a field may be, as data, read off the record classes: for the decoders, the mapping and redaction."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import attrs
from attrs import evolve, frozen

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import NO_RULE, Absent, Holds, Rule, json_name

Kind = Literal["string", "int", "number", "bool", "enum", "literal", "object", "list", "record", "any"]
"""
The kinds of values. An ``enum`` is one of several strings and a ``literal`` the only value allowed; an ``object`` has
known keys and a ``record`` free ones; ``any`` is a custom field's value: a string, a number or a boolean.
"""


@frozen
class Shape:
    """
    What a value may be.

    Args:
        kind: The kind of value.

        rule: What it must be beyond its kind.

        nullable: Whether null is allowed.

        optional: Whether its key may be absent.

        members: The values of an enum or a literal.

        classes: The record class of an object; several where its ``type`` key chooses among them, or, for a
            header, its ``schema`` key.

        key: The key of a record.

        item: The entry of a list, or the value of a record.

        choices: The shapes of ``any``.
    """

    kind: Kind
    rule: Rule = NO_RULE
    nullable: bool = False
    optional: bool = False
    members: tuple[str | int, ...] = ()
    classes: tuple[type[attrs.AttrsInstance], ...] = ()
    key: Shape | None = None
    item: Shape | None = None
    choices: tuple[Shape, ...] = ()


_SCALARS: Mapping[object, Kind] = {str: "string", int: "int", float: "number", bool: "bool"}


def shape_of(annotation: object) -> Shape:
    """
    Reads a field's annotation.

    Args:
        annotation: An annotation as the record classes use them, resolved.

    Returns:
        What it allows.
    """
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, rule = get_args(annotation)
        return evolve(shape_of(inner), rule=rule)
    if origin is Literal:
        members = get_args(annotation)
        return Shape("literal" if len(members) == 1 else "enum", members=members)
    if origin in (typing.Union, types.UnionType):
        return _union(get_args(annotation))
    if origin is tuple:
        return Shape("list", item=shape_of(get_args(annotation)[0]))
    if origin is dict:
        key, value = get_args(annotation)
        return Shape("record", key=shape_of(key), item=shape_of(value))
    if isinstance(annotation, type) and attrs.has(annotation):
        return Shape("object", classes=(annotation,))
    return Shape(_SCALARS[annotation])


def _union(arms: tuple[object, ...]) -> Shape:
    shapes = [shape_of(arm) for arm in arms if arm is not type(None) and arm is not Absent]
    if len(shapes) == 1:
        whole = shapes[0]
    elif all(shape.kind == "object" for shape in shapes):
        whole = Shape("object", classes=tuple(cls for shape in shapes for cls in shape.classes))
    else:
        whole = Shape("any", choices=tuple(shapes))
    return evolve(whole, nullable=type(None) in arms, optional=Absent in arms)


def fields_of(cls: type[attrs.AttrsInstance]) -> Mapping[str, Shape]:
    """
    The fields of a record class, in the order in which faults are looked for.

    Args:
        cls: A record class.

    Returns:
        Attribute name to what the field may be.
    """
    return _fields_of(cast(Any, cls))


@cache
def _fields_of(cls: Any) -> Mapping[str, Shape]:
    hints = get_type_hints(cls, include_extras=True)
    return types.MappingProxyType({each.name: shape_of(hints[each.name]) for each in attrs.fields(cls)})


def tagged(shape: Shape) -> tuple[str, Mapping[str | int, type[attrs.AttrsInstance]]]:
    """
    How the class of an object is told where there are several.

    Args:
        shape: An object with more than one class.

    Returns:
        The key that tells, ``schema`` of a header and ``type`` of an outcome, and its value for each class.
    """
    tag = "schema" if "schema" in fields_of(shape.classes[0]) else "type"
    return tag, {fields_of(cls)[tag].members[0]: cls for cls in shape.classes}


def class_for(value: Mapping[str, object], shape: Shape) -> type[attrs.AttrsInstance]:
    """
    The record class of an object that is valid.

    Args:
        value: The object, decoded.

        shape: What it may be.

    Returns:
        The class that it is an instance of.
    """
    if len(shape.classes) == 1:
        return shape.classes[0]
    tag, by_tag = tagged(shape)
    return by_tag[value[tag]]  # type: ignore[index]


def schemas_of(kind: str, event: str) -> tuple[int, ...]:
    """
    The header schemas under which an event is valid.

    Args:
        kind: A family's name.

        event: An event's name in it.

    Returns:
        All three, for a custom event the third alone, and none for an event that does not exist.
    """
    cls = FAMILIES.get((kind, event))
    if cls is None:
        return ()
    headers = fields_of(cls)["meta"].classes
    return tuple(number for number, header in HEADERS.items() if header in headers)


@frozen
class PathInfo:
    """
    What a path into a line of one event leads to.

    Args:
        type: The kind of value.

        members: The values of an enum or a literal, else empty.

        nullable: Whether the value may be null.

        optional: Whether the value may be absent: its own key, or a key on the way to it, may be absent or null, or
            belongs only to one of several outcomes.

        max_units: The greatest length of a string in UTF-16 code units; None: no limit.

        free_text: Whether it is a string that somebody wrote: neither one of a closed list nor an id.

        minimum: The least number allowed; None: no limit.

        maximum: The greatest number allowed; None: no limit.

        item: The entry of a list, or the value of a record.
    """

    type: Kind
    members: tuple[str | int, ...] = ()
    nullable: bool = False
    optional: bool = False
    max_units: int | None = None
    free_text: bool = False
    minimum: int | None = None
    maximum: int | None = None
    item: PathInfo | None = None


def paths(kind: str, event: str, schema: int) -> Mapping[str, PathInfo]:
    """
    Every path that lines of one event can have under one header schema.

    Objects are entered (``$.meta.lineage.run``); lists and records are not: what they hold is their ``item``.

    Args:
        kind: A family's name.

        event: An event's name in it.

        schema: A header schema, 1 to 3.

    Returns:
        JSON path to what is there, parents before children; empty where the schema has no such event.
    """
    if schema not in schemas_of(kind, event):
        return types.MappingProxyType({})
    return _paths(kind, event, schema)


@cache
def _paths(kind: str, event: str, schema: int) -> Mapping[str, PathInfo]:
    return types.MappingProxyType(dict(_walk(FAMILIES[(kind, event)], "$", HEADERS[schema], may_lack=False)))


def _walk(
    cls: type[attrs.AttrsInstance], prefix: str, header: type[attrs.AttrsInstance], *, may_lack: bool
) -> Iterator[tuple[str, PathInfo]]:
    for name, shape in fields_of(cls).items():
        path = f"{prefix}.{json_name(name)}"
        yield path, _info(shape, may_lack=may_lack)
        if shape.kind != "object":
            continue
        lacking = may_lack or shape.optional or shape.nullable
        if header in shape.classes:
            yield from _walk(header, path, header, may_lack=lacking)
        elif len(shape.classes) == 1:
            yield from _walk(shape.classes[0], path, header, may_lack=lacking)
        else:
            yield from _variants(shape.classes, path, header, may_lack=lacking)


def _variants(
    classes: tuple[type[attrs.AttrsInstance], ...],
    path: str,
    header: type[attrs.AttrsInstance],
    *,
    may_lack: bool,
) -> Iterator[tuple[str, PathInfo]]:
    found: dict[str, list[PathInfo]] = {}
    for cls in classes:
        for sub_path, info in _walk(cls, path, header, may_lack=may_lack):
            found.setdefault(sub_path, []).append(info)
    for sub_path, infos in found.items():
        members = tuple(dict.fromkeys(member for info in infos for member in info.members))
        kind: Kind = "enum" if infos[0].type == "literal" else infos[0].type
        lacks = may_lack or len(infos) < len(classes)
        yield sub_path, evolve(infos[0], type=kind, members=members, optional=lacks or infos[0].optional)


def _info(shape: Shape, *, may_lack: bool) -> PathInfo:
    return PathInfo(
        type=shape.kind,
        members=shape.members,
        nullable=shape.nullable,
        optional=shape.optional or may_lack,
        max_units=shape.rule.max_units,
        free_text=shape.kind == "string" and shape.rule.holds is Holds.FREE_TEXT,
        minimum=shape.rule.minimum,
        maximum=shape.rule.maximum,
        item=None if shape.item is None else _info(shape.item, may_lack=False),
    )
