"""The precise path: a record of attrs objects from a JSON value, or the place and the reason why not."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Final, Literal, TypeAlias, TypeVar, cast

import attrs
import cattrs
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ForbiddenExtraKeysError,
)
from cattrs.gen import make_dict_structure_fn, override

from vinaya_bridge.errors import Code
from vinaya_bridge.log import codes
from vinaya_bridge.log.families import FAMILIES, KINDS
from vinaya_bridge.log.parts import Record
from vinaya_bridge.log.rules import ABSENT, Rule, json_name
from vinaya_bridge.log.shapes import Shape, fields_of, schemas_of, shape_of, tagged
from vinaya_bridge.log.text import Json, shown

_R = TypeVar("_R", bound=attrs.AttrsInstance)
_Hook: TypeAlias = Callable[[object], object]

_NAMES: Final[dict[type, str]] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


class InvalidValueError(Exception):
    """
    Raised for the first thing in a value that its schema does not allow.

    Args:
        code: What is wrong.

        reason: It in one clause, with types and limits, never with a value.

        path: Where, in the value it was raised for: ``.meta.seq``, ``[2]``; of a whole line ``$.meta.seq``.
    """

    def __init__(self, code: Code, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.path = path

    def inside(self, step: str) -> InvalidValueError:
        """
        The same fault, seen from one level further out.

        Args:
            step: The step from there to here: ``.key`` or ``[index]``.

        Returns:
            A fault with the longer path.
        """
        return InvalidValueError(self.code, self.reason, step + self.path)


class Structurer:
    """
    Builds records from JSON values, strictly: nothing is converted, no unknown key is let through.

    Of several faults in a line it finds the first: a class's fields in the order in which they are stated, each to
    its full depth, and then its unknown keys.
    """

    def __init__(self) -> None:
        self._converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
        self._converter.register_structure_hook_factory(lambda _: True, self._leaf_hook)
        self._converter.register_structure_hook_factory(attrs.has, self._class_hook)
        # cattrs has hooks of its own for the plain types, which convert and which go before any factory.
        for plain in (bool, int, float, str):
            self._converter.register_structure_hook(plain, self._leaf_hook(plain))

    def record(self, value: dict[str, Json], schema: int) -> Record:
        """
        Builds the record of a line.

        Args:
            value: The line, decoded.

            schema: Its header schema, 1 to 3, which the caller has read from it.

        Returns:
            The record, of the class that `FAMILIES` has for the line's kind and event.

        Raises:
            InvalidValueError: The line is not valid under its schema; ``path`` begins with ``$``.
        """
        try:
            return self._record(value, schema)
        except InvalidValueError as fault:
            raise fault.inside("$") from None

    def _record(self, value: dict[str, Json], schema: int) -> Record:
        kind = _member(value, "kind", KINDS)
        event = _member(value, "event", {event for family, event in FAMILIES if family == kind})
        if schema not in schemas_of(kind, event):
            raise InvalidValueError(codes.NOT_A_MEMBER, f"schema {schema} has no {kind} events", ".kind")
        return self._build(FAMILIES[(kind, event)], value)

    def _build(self, cls: type[_R], value: object) -> _R:
        return self._converter.structure(value, cls)

    def _class_hook(self, cls: type[attrs.AttrsInstance]) -> Callable[[object, object], object]:
        renamed = {
            name: override(rename=json_name(name)) for name in fields_of(cls) if json_name(name) != name
        }
        make = cast(Callable[..., Callable[[object, object], object]], make_dict_structure_fn)
        build = make(
            cls, self._converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True, **renamed
        )

        def structure(value: object, _: object) -> object:
            if not isinstance(value, dict):
                raise _wrong("an object", value)
            try:
                return build(value, cls)
            except BaseValidationError as faults:
                raise _first(faults, value, cls) from None

        return structure

    def _leaf_hook(self, annotation: object) -> Callable[[object, object], object]:
        check = self._check(shape_of(annotation))
        return lambda value, _: check(value)

    def _check(self, shape: Shape) -> _Hook:
        inner = self._check_present(shape)
        if not shape.nullable:
            return inner
        return lambda value: None if value is None else inner(value)

    def _check_present(self, shape: Shape) -> _Hook:
        rule = shape.rule
        match shape.kind:
            case "string":
                return lambda value: _string(value, rule)
            case "int":
                return lambda value: _int(value, rule)
            case "number":
                return lambda value: _number(value, rule)
            case "bool":
                return _bool
            case "enum" | "literal":
                return lambda value: _literal(value, shape.members)
            case "object":
                return self._object(shape)
            case "list":
                return _list(self._check(cast(Shape, shape.item)), rule)
            case "record":
                key, item = cast(Shape, shape.key), cast(Shape, shape.item)
                return _mapping(self._check(key), self._check(item), rule)
            case "any":
                return _any({choice.kind: self._check(choice) for choice in shape.choices})

    def _object(self, shape: Shape) -> _Hook:
        if len(shape.classes) == 1:
            only = shape.classes[0]
            return lambda value: self._build(only, value)
        tag, by_tag = tagged(shape)
        members = tuple(by_tag)

        def build(value: object) -> object:
            if not isinstance(value, dict):
                raise _wrong("an object", value)
            if tag not in value:
                raise InvalidValueError(codes.MISSING_FIELD, "this field is required", f".{tag}")
            try:
                member = _literal(value[tag], members)
            except InvalidValueError as fault:
                raise fault.inside(f".{tag}") from None
            return self._build(by_tag[member], value)

        return build


def unstructure(record: attrs.AttrsInstance) -> dict[str, Json]:
    """
    A record as the JSON value it was built from: numbers keep their form, absent fields stay absent.

    Args:
        record: A record, or an object inside one.

    Returns:
        The value, with the keys of the line.
    """
    pairs = ((json_name(name), getattr(record, name)) for name in fields_of(type(record)))
    return {key: _plain(value) for key, value in pairs if value is not ABSENT}


def _plain(value: object) -> Json:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return unstructure(cast(attrs.AttrsInstance, value))


def _first(
    error: BaseValidationError, value: dict[str, Json], cls: type[attrs.AttrsInstance]
) -> InvalidValueError:
    """The first fault of those that cattrs found while it built one object."""
    first = error.exceptions[0]
    if isinstance(first, ForbiddenExtraKeysError):
        known = {json_name(name) for name in fields_of(cls)}
        extra = sorted(key for key in value if key not in known)
        names = ", ".join(dict.fromkeys(map(shown, extra)))
        return InvalidValueError(
            codes.UNKNOWN_KEY, f"{len(extra)} unknown key{'s' * (len(extra) > 1)}: {names}"
        )
    note = next(note for note in first.__notes__ if isinstance(note, AttributeValidationNote))
    step = f".{json_name(note.name)}"
    if isinstance(first, KeyError):
        return InvalidValueError(codes.MISSING_FIELD, "this field is required", step)
    return cast(InvalidValueError, first).inside(step)


def _member(value: dict[str, Json], key: str, members: frozenset[str] | set[str]) -> str:
    if key not in value:
        raise InvalidValueError(codes.MISSING_FIELD, "this field is required", f".{key}")
    found = value[key]
    if not isinstance(found, str):
        raise _wrong("a string", found).inside(f".{key}")
    if found not in members:
        raise InvalidValueError(
            codes.NOT_A_MEMBER, f"not one of the {len(members)} allowed values", f".{key}"
        )
    return found


def _wrong(expected: str, found: object) -> InvalidValueError:
    return InvalidValueError(codes.WRONG_TYPE, f"expected {expected}, found {_NAMES[type(found)]}")


def _string(value: object, rule: Rule) -> str:
    if not isinstance(value, str):
        raise _wrong("a string", value)
    if rule.min_units or rule.max_units is not None:
        units = len(value) + sum(char > "\uffff" for char in value)
        if units < rule.min_units:
            raise InvalidValueError(codes.LENGTH, f"fewer than {rule.min_units} UTF-16 units")
        if rule.max_units is not None and units > rule.max_units:
            raise InvalidValueError(codes.LENGTH, f"more than {rule.max_units} UTF-16 units")
    if rule.pattern is not None and re.fullmatch(rule.pattern, value) is None:
        raise InvalidValueError(codes.PATTERN, f"does not match {rule.pattern}")
    return value


def _number(value: object, rule: Rule) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong("a number", value)
    if math.isinf(value):
        raise InvalidValueError(codes.BEYOND_DOUBLE, "a number beyond double range")
    if rule.minimum is not None and value < rule.minimum:
        raise InvalidValueError(codes.OUT_OF_RANGE, f"less than {rule.minimum}")
    if rule.maximum is not None and value > rule.maximum:
        raise InvalidValueError(codes.OUT_OF_RANGE, f"more than {rule.maximum}")
    return value


def _int(value: object, rule: Rule) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong("an integer", value)
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        raise InvalidValueError(codes.WRONG_TYPE, "expected an integer, found a number with a fraction")
    return int(_number(value, rule))


def _bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong("a boolean", value)
    return value


def _literal(value: object, members: tuple[str | int, ...]) -> str | int:
    wanted: Literal["a string", "a number"] = "a string" if isinstance(members[0], str) else "a number"
    if isinstance(value, bool) or not isinstance(value, str if wanted == "a string" else int | float):
        raise _wrong(wanted, value)
    for member in members:
        if value == member:
            return member
    if len(members) == 1:
        raise InvalidValueError(codes.NOT_A_MEMBER, f"not {members[0]}")
    raise InvalidValueError(codes.NOT_A_MEMBER, f"not one of the {len(members)} allowed values")


def _list(check: _Hook, rule: Rule) -> _Hook:
    def build(value: object) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise _wrong("a list", value)
        _few(value, rule)
        items = []
        for index, item in enumerate(value):
            try:
                items.append(check(item))
            except InvalidValueError as fault:
                raise fault.inside(f"[{index}]") from None
        return tuple(items)

    return build


def _mapping(check_key: _Hook, check_value: _Hook, rule: Rule) -> _Hook:
    def build(value: object) -> dict[object, object]:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        _few(value, rule)
        items = {}
        for key, item in value.items():
            try:
                items[check_key(key)] = check_value(item)
            except InvalidValueError as fault:
                raise fault.inside(f".{shown(key)}") from None
        return items

    return build


def _few(value: list[object] | dict[str, object], rule: Rule) -> None:
    if rule.max_items is not None and len(value) > rule.max_items:
        raise InvalidValueError(codes.LENGTH, f"more than {rule.max_items} entries")


def _any(checks: dict[str, _Hook]) -> _Hook:
    kinds: dict[type, str] = {str: "string", int: "number", float: "number", bool: "bool"}

    def build(value: object) -> object:
        kind = kinds.get(type(value))
        if kind is None:
            raise _wrong("a string, a number or a boolean", value)
        return checks[kind](value)

    return build
