"""
Hypothesis strategies for lines of the Log, read off the record classes that the reader itself uses.

Every event under every schema that has it, with every optional field absent or present, null where null is
allowed, every member of every closed list, and text that line splitters, escapers and terminals trip over.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final, TypeAlias

import attrs
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of, schemas_of

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Line: TypeAlias = dict[str, Json]
"""A line as decoded JSON."""

SHAPES: Final = tuple((kind, event, schema) for kind, event in FAMILIES for schema in schemas_of(kind, event))
"""Every (kind, event, schema) that a line can have."""

VERSIONS: Final = (
    "0.41.2",
    "0.33.0",
    "0.33.0+build.5",
    "0.33.0-rc.1",
    "0.32.99",
    "0.24.1",
    "1.0.0",
    "unknown",
    "",
)
"""CLI versions on both sides of the limit of low trust, and unreadable ones."""

AWKWARD: Final = (
    "",
    "\u2028\u2029\u0085",
    "\U0001f9ef\U0001f468\u200d\U0001f469",
    '"quoted" \\ back\\slash /',
    "\x00\x01\x1f\x7f\ufeff",
    "line\r\nbreak\ttab",
    '{"meta":{"schema":3}}',
    '}{"kind":"usage","event":"observed"',
    "\x1b[31mred\x1b[0m",
    "%2F/~..",
    "e\u0301 \u0645\u0631\u062d\u0628\u0627 \u65e5\u672c",
    "null",
)
"""Words that have broken readers, writers, terminals and file systems."""

SAFE_INTEGER: Final = 2**53 - 1
_EPOCH: Final = datetime(2026, 3, 1, tzinfo=UTC)


def dump(line: Json) -> bytes:
    """
    Write a line as the producer does: compact, its keys in order, everything but control characters raw.

    Args:
        line: Decoded JSON.

    Returns:
        The text in UTF-8, without a newline.
    """
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def stamp(offset_ms: int) -> str:
    """
    Write a time as the producer does.

    Args:
        offset_ms: Milliseconds since a fixed day.

    Returns:
        ISO 8601, UTC, with milliseconds and ``Z``.
    """
    moment = _EPOCH + timedelta(milliseconds=offset_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def texts(*, most_units: int | None = None, plain: bool = False) -> SearchStrategy[str]:
    """
    Free text.

    Args:
        most_units: The greatest length in UTF-16 units; None: no limit.

        plain: Only whole awkward words: one draw each, for strategies of whole logs.

    Returns:
        Strings without lone surrogates.
    """
    words = st.sampled_from([word for word in AWKWARD if most_units is None or units(word) <= most_units])
    if plain:
        return words
    free = st.text(max_size=12)
    if most_units is None:
        return st.one_of(words, free)
    limit = st.sampled_from(["e" * most_units, "\U0001f9ef" * (most_units // 2), "\u2028" * most_units])
    return st.one_of(words, free.filter(lambda text: units(text) <= most_units), limit)


def units(text: str) -> int:
    """The length of a string in UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)


@cache
def values(shape: Shape, *, plain: bool = False) -> SearchStrategy[Json]:
    """
    What a field may hold; null among it where the shape allows null.

    Args:
        shape: The field's shape.

        plain: Cheap text, for strategies of whole logs.

    Returns:
        Decoded JSON.
    """
    inner = _inner(shape, plain=plain)
    return st.one_of(st.none(), inner) if shape.nullable else inner


def _inner(shape: Shape, *, plain: bool) -> SearchStrategy[Json]:
    rule = shape.rule
    match shape.kind:
        case "literal" | "enum":
            return st.sampled_from(shape.members)
        case "bool":
            return st.booleans()
        case "string":
            if rule.pattern is not None:
                # fullmatch alone lets `$` pass a newline; the flag keeps \w and the like ASCII.
                pattern = re.compile(rule.pattern, re.ASCII)
                fitting = st.from_regex(pattern, fullmatch=True)
                most = rule.max_units
                return fitting if most is None else fitting.filter(lambda text: len(text) <= most)
            if rule.min_units:
                return texts(plain=plain).filter(bool)
            return texts(most_units=rule.max_units, plain=plain)
        case "int":
            whole = st.integers(
                -SAFE_INTEGER if rule.minimum is None else rule.minimum,
                SAFE_INTEGER if rule.maximum is None else rule.maximum,
            )
            # `5.0` is an integer too, whatever a decoder makes of it.
            return st.one_of(whole, whole, whole.filter(lambda n: abs(n) < 2**52).map(float))
        case "number":
            low, high = rule.minimum, rule.maximum
            fractions = st.floats(low, high, allow_nan=False, allow_infinity=False)
            return st.one_of(st.integers(low or 0, high if high is not None else SAFE_INTEGER), fractions)
        case "any":
            return st.one_of([values(choice, plain=plain) for choice in shape.choices])
        case "list":
            assert shape.item is not None
            return st.lists(values(shape.item, plain=plain), max_size=min(rule.max_items or 3, 3))
        case "record":
            assert shape.key is not None
            assert shape.item is not None
            keys = values(shape.key, plain=plain).map(str)
            return st.dictionaries(
                keys, values(shape.item, plain=plain), max_size=min(rule.max_items or 4, 4)
            )
        case "object":
            return st.one_of([objects(cls, plain=plain) for cls in shape.classes])


@cache
def objects(cls: type[attrs.AttrsInstance], *, plain: bool = False) -> SearchStrategy[dict[str, Json]]:
    """
    Objects of one record class.

    Args:
        cls: The class.

        plain: Cheap text.

    Returns:
        Decoded JSON objects, optional keys absent or present.
    """
    shapes = fields_of(cls)
    return st.fixed_dictionaries(
        {json_name(name): values(shape, plain=plain) for name, shape in shapes.items() if not shape.optional},
        optional={
            json_name(name): values(shape, plain=plain) for name, shape in shapes.items() if shape.optional
        },
    )


@cache
def line_objects(kind: str, event: str, schema: int, *, plain: bool = False) -> SearchStrategy[Line]:
    """
    Valid lines of one event under one schema.

    Args:
        kind: The family.

        event: The event.

        schema: The header schema; one of those that have this event.

        plain: Cheap text.

    Returns:
        Lines as decoded JSON.
    """
    record: type[attrs.AttrsInstance] = FAMILIES[kind, event]
    shapes = dict(fields_of(record))
    del shapes["meta"]
    required = {
        json_name(name): values(shape, plain=plain) for name, shape in shapes.items() if not shape.optional
    }
    optional = {
        json_name(name): values(shape, plain=plain) for name, shape in shapes.items() if shape.optional
    }
    return st.fixed_dictionaries({"meta": headers(schema, plain=plain), **required}, optional=optional)


@cache
def headers(schema: int, *, plain: bool = False) -> SearchStrategy[dict[str, Json]]:
    """
    Valid headers of one schema.

    Args:
        schema: 1, 2 or 3.

        plain: Cheap text.

    Returns:
        Headers as decoded JSON: most with a readable time, some with any text in its place.
    """
    required = {
        json_name(name): values(shape, plain=plain) for name, shape in fields_of(HEADERS[schema]).items()
    }
    readable = st.integers(0, 10**9).map(stamp)
    required["ts"] = st.one_of(
        readable, readable, readable, texts(plain=True), st.just("2026-03-01T10:00:00+02:00")
    )
    required["vinaya"] = st.sampled_from(VERSIONS)
    return st.fixed_dictionaries(required)


def lines(*, plain: bool = False) -> SearchStrategy[Line]:
    """
    Valid lines of any event under any schema that has it.

    Args:
        plain: Cheap text.

    Returns:
        Lines as decoded JSON.
    """
    return st.sampled_from(SHAPES).flatmap(lambda shape: line_objects(*shape, plain=plain))


def raw_lines() -> SearchStrategy[bytes]:
    """
    Valid lines as bytes.

    Returns:
        Text in UTF-8 without a newline: compact, or with white space and escapes that JSON allows.
    """
    return st.builds(spelled, lines(), st.integers(0, 3))


def spelled(line: Json, way: int) -> bytes:
    """
    Write a line in one of several ways that mean the same.

    Args:
        line: Decoded JSON.

        way: 0: as the producer; 1: all but ASCII escaped; 2: keys reversed; 3: with white space.

    Returns:
        Text in UTF-8 without a newline.
    """
    match way:
        case 1:
            return json.dumps(line).encode()
        case 2:
            return dump(reversed_keys(line))
        case 3:
            return b" \t" + json.dumps(line, ensure_ascii=False, separators=(" ,\t", " : ")).encode() + b" \r"
        case _:
            return dump(line)


def reversed_keys(value: Json) -> Json:
    """
    Turn the order of all keys round.

    Args:
        value: Decoded JSON.

    Returns:
        The same value, its objects' keys in the opposite order.
    """
    if isinstance(value, dict):
        return {key: reversed_keys(inner) for key, inner in reversed(value.items())}
    if isinstance(value, list):
        return [reversed_keys(inner) for inner in value]
    return value
