"""The quick path: decoders that are derived from the record classes, and that only ever say yes."""

from __future__ import annotations

import re
import types
from collections.abc import Callable
from functools import reduce
from operator import attrgetter, or_
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import attrs
import msgspec
from attrs import frozen

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.parts import Record
from vinaya_bridge.log.rules import Absent, Rule, json_name
from vinaya_bridge.log.shapes import Shape, fields_of, schemas_of

_SCHEMA: Final = b'"schema":'
_KIND: Final = b'"kind":"'
_EVENT: Final = b'"event":"'
_SHORTEST_HEADER: Final = {b"1": 150, b"2": 350, b"3": 500}
"""Where to look for the kind first, in bytes: headers are seldom shorter."""

_MAY_BE_TWO_UNITS: Final = re.compile(rb"[\xf0-\xf4]|\\u[dD]")

_EXACT: Final = 2**53
"""Up to here a double holds every integer; greater ones are left to the precise path."""

_StructType: TypeAlias = type[msgspec.Struct]
_Check: TypeAlias = Callable[[Any], bool]


@frozen
class _Decoder:
    decode: Callable[[bytes], Record]
    counts_units: bool


class QuickReader:
    """
    Decodes lines into msgspec structs that have the attributes of the record classes.

    What it returns is valid by every rule that the record classes state, save the pattern of ``run_id``, which the
    caller checks once for each id. What it does not return may be valid all the same: ``5.0`` for an integer, say.
    Decoders are built when their event is first met.
    """

    def __init__(self) -> None:
        self._decoders: dict[tuple[bytes, bytes, bytes], _Decoder] = {}
        self._structs = _Structs()

    def read(self, raw: bytes) -> Record | None:
        """
        Decodes a line.

        Args:
            raw: The line's bytes.

        Returns:
            The record, a struct and not an attrs object; None where the line is not plainly valid.
        """
        # What the bytes seem to say. Text inside a string can mislead this: then the decoder that is chosen refuses
        # the line, since the schema, kind and event that it expects are literals.
        start = raw.find(_SCHEMA) + 9
        schema = raw[start : start + 1]
        start = raw.find(_KIND, _SHORTEST_HEADER.get(schema, 0)) + 8
        end = raw.find(b'"', start)
        event = raw.find(_EVENT, end) + 9
        decoder = self._decoders.get((schema, raw[start:end], raw[event : raw.find(b'"', event)]))
        if decoder is None:
            decoder = self._search(raw, schema)
            if decoder is None:
                return None
        if decoder.counts_units and (b"\\u" in raw or not raw.isascii()) and _MAY_BE_TWO_UNITS.search(raw):
            return None
        try:
            return decoder.decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _search(self, raw: bytes, schema: bytes) -> _Decoder | None:
        """The decoder of a line whose event was not met before, or whose keys stand in an unusual order."""
        start = raw.find(_KIND) + 8
        event = raw.find(_EVENT) + 9
        key = (schema, raw[start : raw.find(b'"', start)], raw[event : raw.find(b'"', event)])
        return self._decoders.get(key) or self._build(key)

    def _build(self, key: tuple[bytes, bytes, bytes]) -> _Decoder | None:
        try:
            schema, kind, event = int(key[0]), key[1].decode(), key[2].decode()
        except ValueError:
            return None
        if schema not in schemas_of(kind, event):
            return None
        cls = FAMILIES[(kind, event)]
        decoder = _Decoder(
            cast(Callable[[bytes], Record], msgspec.json.Decoder(self._structs.of(cls, schema)).decode),
            counts_units=any(map(_counts_units, fields_of(cls).values())),
        )
        self._decoders[key] = decoder
        return decoder


def encodes_canonically(record: msgspec.Struct) -> bool:
    """
    Whether `msgspec.json.Encoder` writes the canonical text of a struct that a `QuickReader` made.

    Args:
        record: A struct of a whole line.

    Returns:
        False where a number or an outcome in it is one that the encoder would write in another form.
    """
    check: _Check = type(record).encodes_canonically  # type: ignore[attr-defined]
    return check(record)


class _Structs:
    """Makes struct classes from record classes, each once."""

    def __init__(self) -> None:
        self._made: dict[tuple[type[attrs.AttrsInstance], int], _StructType] = {}

    def of(self, cls: type[attrs.AttrsInstance], schema: int) -> _StructType:
        """
        The struct class of a record class.

        Args:
            cls: A record class.

            schema: The header schema; a class without a header in it is the same under all of them.

        Returns:
            A class with the same attributes, declared in the order of the canonical text.
        """
        key = (cls, schema)
        if key not in self._made:
            self._made[key] = self._make(cls, schema)
        return self._made[key]

    def _make(self, cls: type[attrs.AttrsInstance], schema: int) -> _StructType:
        shapes = fields_of(cls)
        tag = shapes["type"].members[0] if "type" in shapes else None
        declared: list[tuple[str, object] | tuple[str, object, object]] = []
        for name in sorted(shapes, key=json_name):
            shape = shapes[name]
            if name == "type" and tag is not None:
                continue
            annotation = self._annotation(shape, schema, with_pattern=name != "run_id")
            if shape.optional:
                declared.append((name, annotation | Absent, msgspec.UNSET))
            else:
                declared.append((name, annotation))
        namespace: dict[str, object] = {"encodes_canonically": staticmethod(_plain_object(cls))}
        if tag is not None:
            namespace["type"] = tag
        return msgspec.defstruct(
            cls.__name__,
            declared,
            namespace=namespace,
            tag=tag,
            tag_field=None if tag is None else "type",
            rename={name: json_name(name) for name in shapes},
            forbid_unknown_fields=True,
            kw_only=True,
            frozen=True,
            gc=False,
        )

    def _annotation(self, shape: Shape, schema: int, *, with_pattern: bool = True) -> Any:
        present = self._present(shape, schema, with_pattern=with_pattern)
        return present | None if shape.nullable else present

    def _present(self, shape: Shape, schema: int, *, with_pattern: bool) -> Any:
        rule = shape.rule
        match shape.kind:
            case "string":
                return _string(rule, with_pattern=with_pattern)
            case "int":
                return Annotated[int, _bounds(rule)]
            case "number":
                least = msgspec.Meta(ge=rule.minimum, le=rule.maximum)
                return Annotated[int, _bounds(rule)] | Annotated[float, least]
            case "bool":
                return bool
            case "enum" | "literal":
                return Literal[shape.members]
            case "object":
                header = HEADERS[schema]
                classes = (header,) if header in shape.classes else shape.classes
                return reduce(or_, (self.of(cls, schema) for cls in classes))
            case "list":
                entry = self._annotation(cast(Shape, shape.item), schema)
                return _few(types.GenericAlias(tuple, (entry, ...)), rule)
            case "record":
                key = self._annotation(cast(Shape, shape.key), schema)
                value = self._annotation(cast(Shape, shape.item), schema)
                return _few(types.GenericAlias(dict, (key, value)), rule)
            case "any":
                return reduce(or_, (self._annotation(choice, schema) for choice in shape.choices))


def _string(rule: Rule, *, with_pattern: bool) -> Any:
    pattern = rf"\A(?:{rule.pattern})\Z" if rule.pattern is not None and with_pattern else None
    least = rule.min_units or None
    # Characters, not units: a line whose text could have more units than characters does not come this way.
    return Annotated[str, msgspec.Meta(pattern=pattern, min_length=least, max_length=rule.max_units)]


def _few(container: types.GenericAlias, rule: Rule) -> Any:
    return Annotated[container, msgspec.Meta(max_length=rule.max_items)]


def _bounds(rule: Rule) -> msgspec.Meta:
    least = -_EXACT if rule.minimum is None else rule.minimum
    return msgspec.Meta(ge=least, le=_EXACT if rule.maximum is None else rule.maximum)


def _counts_units(shape: Shape) -> bool:
    """Whether a length in UTF-16 units is checked somewhere in a value."""
    inner = [each for each in (shape.key, shape.item, *shape.choices) if each is not None]
    inner += [each for cls in shape.classes for each in fields_of(cls).values()]
    return shape.rule.max_units is not None or any(map(_counts_units, inner))


def _plain_object(cls: type[attrs.AttrsInstance]) -> _Check:
    """A check that the encoder writes all numbers of an object as the canonical text has them."""
    found = [(attrgetter(name), _plain_value(shape)) for name, shape in fields_of(cls).items()]
    checks = [(get, check) for get, check in found if check is not None]

    def check_object(value: object) -> bool:
        return all(check(get(value)) for get, check in checks)

    return check_object


def _plain_value(shape: Shape) -> _Check | None:
    """The check of one field; None where nothing in it can go wrong."""
    match shape.kind:
        case "number" | "any":
            return _plain_number
        case "record" | "list":
            check = _plain_value(shape.item) if shape.item is not None else None
            return None if check is None else _plain_entries(check, is_record=shape.kind == "record")
        case "object" if len(shape.classes) == 1:
            if all(_plain_value(each) is None for each in fields_of(shape.classes[0]).values()):
                return None
            inner = _plain_object(shape.classes[0])
            return lambda value: value is None or value is msgspec.UNSET or inner(value)
        case "object" if "type" in fields_of(shape.classes[0]):
            # The encoder writes the tag first, which is its place only where it is alone.
            return lambda value: len(value.__struct_fields__) == 0
        case _:
            return None


def _plain_entries(check: _Check, *, is_record: bool) -> _Check:
    if is_record:
        return lambda value: all(map(check, value.values()))
    return lambda value: value is msgspec.UNSET or all(map(check, value))


def _plain_number(value: Any) -> bool:
    """Between these limits both write the shortest digits, without an exponent; a whole float loses its ``.0``."""
    return value.__class__ is not float or (1e-5 <= abs(value) < 1e15 and not value.is_integer())
