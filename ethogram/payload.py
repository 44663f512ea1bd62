"""The shape of a known payload, checked against the vocabulary: presence and types, no bounds, no members."""

from __future__ import annotations

from ethogram.json_text import ParseError
from ethogram.vocabulary import EVENT_TYPES, MAX_SAFE_INTEGER, Field, FieldKind

_ABSENT = object()


def check_payload(type_name: str, payload: object) -> None:
    """
    Refuse a payload of a known type that lacks a required field or has a known field of the wrong type.

    A field that is there with null has the wrong type. Unknown fields are not looked at, nor is the payload
    of an unknown type.

    Args:
        type_name: The event's type.

        payload: The decoded payload.

    Raises:
        ParseError: The first fault in the vocabulary's order of fields.
    """
    known = EVENT_TYPES.get(type_name)
    if known is not None:
        _check_object(known.payload, payload, "payload")


def _check_object(expected: Field, value: object, path: str) -> None:
    if not isinstance(value, dict):
        raise _wrong_type(expected, path)
    for field in expected.fields:
        inner = value.get(field.name, _ABSENT)
        if inner is not _ABSENT:
            _check(field, inner, f"{path}.{field.name}")
        elif field.required:
            where = f"{path}.{field.name}"
            raise ParseError(f"{where} is required and is not there", path=where, missing=True)


def _check(field: Field, value: object, path: str) -> None:
    kind = field.kind
    if kind is FieldKind.STRING or kind is FieldKind.UNION:
        fits = isinstance(value, str)
    elif kind is FieldKind.BOOLEAN:
        fits = isinstance(value, bool)
    elif kind is FieldKind.COUNT:
        fits = is_count(value)
    elif kind is FieldKind.NUMBER:
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0
    elif kind is FieldKind.OBJECT:
        _check_object(field, value, path)
        return
    else:
        _check_list(field, value, path)
        return
    if not fits:
        raise _wrong_type(field, path)


def _check_list(field: Field, value: object, path: str) -> None:
    if not isinstance(value, list):
        raise _wrong_type(field, path)
    if field.item is not None:
        for index, item in enumerate(value):
            _check(field.item, item, f"{path}[{index}]")


def is_count(value: object) -> bool:
    """
    Whether a value is a count: a whole number from 0 to 2^53 - 1, spelt ``1``, ``1.0`` or ``1e0``.

    Args:
        value: A decoded JSON value.

    Returns:
        False for a bool, a fraction, a negative number and everything that is not a number.
    """
    if isinstance(value, int):
        return not isinstance(value, bool) and 0 <= value <= MAX_SAFE_INTEGER
    return isinstance(value, float) and 0 <= value <= MAX_SAFE_INTEGER and value.is_integer()


def _wrong_type(field: Field, path: str) -> ParseError:
    # A union's members are for `validate`: any string parses.
    required = FieldKind.STRING if field.kind is FieldKind.UNION else field.kind
    return ParseError(f"{path} must be {required.value}", path=path)
