"""
Lines that cover the Log's vocabulary one difference at a time, the same on every run.

For each event under each schema: a line with every field present, then one for each member of each closed list, for
null and for absence wherever they are allowed, and for numbers at the edges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Final

import attrs

from tests.support.strategies import SHAPES, Json, Line
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of

LARGE: Final = 9_007_199_254_740_993
"""A whole number that readers of the protocol could not hold exactly."""

LONG: Final = "long " * 820
"""More text than an excerpt keeps."""

EXCERPTED: Final = frozenset(
    {
        "check",
        "error_class",
        "last_decision",
        "operation",
        "phase",
        "reason",
        "requested_decision",
        "resolution",
        "resolved_by",
        "target",
        "unknown_reason",
    }
)
"""Fields of free text that a mapping shortens."""

_GONE: Final = object()


def coverage_lines() -> Iterator[Line]:
    """
    Every line of the set, in a fixed order.

    Yields:
        Valid lines as decoded JSON, each with an identity of its own.
    """
    number = 0
    for kind, event, schema in SHAPES:
        for line in _lines(kind, event, schema):
            number += 1
            header = line["meta"]
            assert isinstance(header, dict)
            header["seq"] = number
            if schema > 1:
                header["event_id"] = f"evt-{number}"
            yield line


def _lines(kind: str, event: str, schema: int) -> Iterator[Line]:
    record = FAMILIES[kind, event]
    full = _object(record, schema)
    yield deepcopy(full)
    for changed in _changed_objects(record, full, schema):
        yield deepcopy(changed)


def _object(cls: type[attrs.AttrsInstance], schema: int) -> dict[str, Json]:
    return {json_name(name): _full(json_name(name), shape, schema) for name, shape in fields_of(cls).items()}


def _changed_objects(
    cls: type[attrs.AttrsInstance], full: dict[str, Json], schema: int
) -> Iterator[dict[str, Json]]:
    for name, shape in fields_of(cls).items():
        key = json_name(name)
        if key in ("seq", "schema", "event_id"):
            continue
        for other in _others(key, shape, schema):
            if other is _GONE:
                yield {each: value for each, value in full.items() if each != key}
            else:
                yield {**full, key: other}  # type: ignore[dict-item]


def _full(key: str, shape: Shape, schema: int) -> Json:
    match shape.kind:
        case "string":
            return _text(key, shape)
        case "int" | "number":
            return max(3, shape.rule.minimum or 0) if shape.rule.maximum != 1 else 0.75
        case "bool":
            return True
        case "enum" | "literal":
            return shape.members[0]
        case "object":
            return _object(_class_of(shape, schema), schema)
        case "list":
            assert shape.item is not None
            return [_full(key, shape.item, schema)]
        case "record":
            assert shape.key is not None
            assert shape.item is not None
            keys = [str(one) for one in shape.key.members] or ["b", "a"]
            return {each: _full(each, shape.item, schema) for each in keys[:2]}
        case "any":
            return "text"


def _class_of(shape: Shape, schema: int) -> type[attrs.AttrsInstance]:
    header: type[attrs.AttrsInstance] = HEADERS[schema]
    return header if header in shape.classes else shape.classes[0]


def _text(key: str, shape: Shape) -> str:
    pattern = re.compile(shape.rule.pattern or ".*")
    return next(text for text in (f"{key}.x", key, "a") if pattern.fullmatch(text))


def _others(key: str, shape: Shape, schema: int) -> Iterator[object]:
    """Every other value of a field that is worth a line."""
    if shape.optional:
        yield _GONE
    if shape.nullable:
        yield None
    match shape.kind:
        case "string":
            yield from _other_texts(key, shape)
        case "int" | "number":
            yield from _other_numbers(shape)
        case "bool":
            yield False
        case "enum":
            yield from shape.members[1:]
        case "object":
            for cls in shape.classes if HEADERS[schema] not in shape.classes else (HEADERS[schema],):
                full = _object(cls, schema)
                if cls is not shape.classes[0] and cls is not HEADERS[schema]:
                    yield full
                yield from _changed_objects(cls, full, schema)
        case "list":
            assert shape.item is not None
            yield []
            for other in _others(key, shape.item, schema):
                yield [other]
        case "record":
            yield {}
            assert shape.item is not None
            for other in _others(key, shape.item, schema):
                yield {
                    ("a" if shape.key is None or not shape.key.members else str(shape.key.members[0])): other
                }
        case "any":
            yield from (True, False, 0, 2.5, 1.5e-6, 1e-7, LARGE, 1e21, "")


def _other_texts(key: str, shape: Shape) -> Iterator[str]:
    if shape.rule.pattern is None and key not in ("ts", "vinaya"):
        yield '"\u2028\x00\U0001f9ef'
        if shape.rule.max_units is None:
            yield LONG
    if key == "vinaya":
        yield from ("0.41.2", "0.32.0")


def _other_numbers(shape: Shape) -> Iterator[float]:
    least = shape.rule.minimum
    yield least if least is not None else -2
    if shape.rule.maximum is None:
        yield LARGE
        if shape.kind == "number":
            yield from (2.5, 3.5, 0.1, 1e300)


def story_lines() -> Iterator[Line]:
    """
    A smaller set for people to read: each event under each schema, full and bare, and each word of its closed lists.

    Yields:
        Valid lines as decoded JSON, in a fixed order.
    """
    number = 0
    for kind, event, schema in SHAPES:
        for line in _stories(kind, event, schema):
            number += 1
            header = line["meta"]
            assert isinstance(header, dict)
            header |= {"seq": number, "ts": f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}.000Z"}
            if schema > 1:
                header["event_id"] = f"evt-{number}"
            subject = line["subject"]
            assert isinstance(subject, dict)
            # Of two sources for one field it must show which was taken.
            subject |= {
                key: value for key, value in {"round": 7, "issue": 5}.items() if subject.get(key) is not None
            }
            yield line


def _stories(kind: str, event: str, schema: int) -> Iterator[Line]:
    record = FAMILIES[kind, event]
    full = _object(record, schema)
    yield deepcopy(full)
    yield deepcopy(_bare(record, schema))
    if schema < 3 and kind != "custom":
        return
    if "target_role" in full:
        # Some events are only of reviewers: theirs too must show what becomes of a round that is not there.
        yield {**_without(full, "round"), "target_role": "security"}
    for name, shape in fields_of(record).items():
        key = json_name(name)
        if key in ("meta", "subject"):
            continue
        for other in _others(key, shape, schema):
            if other is _GONE:
                yield _without(full, key)
            elif key in EXCERPTED or LONG not in str(other):
                yield deepcopy({**full, key: other})  # type: ignore[dict-item]


def _bare(cls: type[attrs.AttrsInstance], schema: int) -> dict[str, Json]:
    """An object with nothing in it that may be absent or null."""
    found: dict[str, Json] = {}
    for name, shape in fields_of(cls).items():
        key = json_name(name)
        if shape.optional:
            continue
        if shape.nullable:
            found[key] = None
        elif shape.kind == "object":
            found[key] = _bare(_class_of(shape, schema), schema)
        else:
            found[key] = _full(key, shape, schema)
    return found


def _without(full: Line, key: str) -> Line:
    return {name: deepcopy(value) for name, value in full.items() if name != key}
