"""JSON text in: one strict rule for what an event's text may hold, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import orjson

from ethogram.errors import EthogramError
from ethogram.vocabulary import MAX_PAYLOAD_DEPTH, MAX_SAFE_INTEGER

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value."""


class ParseError(EthogramError):
    """
    Raised when a value cannot be an event: no SDK could carry it.

    Args:
        message: What is wrong, in names and types.

        path: Where, on the wire: ``payload.usage.unit``; empty for the text or the envelope as a whole.

        missing: Whether a required payload field is absent, rather than present and wrong.
    """

    def __init__(self, message: str, *, path: str = "", missing: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.missing = missing


def decode(text: bytes | str) -> Json:
    """
    Decode one JSON text.

    Refused: bytes that are not UTF-8, a byte order mark, lone surrogate escapes, NaN, Infinity, a number
    beyond the range of a double, nesting beyond 1,024 levels. Of a repeated key the last one counts.

    Args:
        text: One JSON value, with white space around it or none.

    Returns:
        The value. An integer beyond 64 bits comes as the nearest double, which no event may hold anyway.

    Raises:
        ParseError: The text is refused. The message gives the place in characters, not the content.
    """
    try:
        value: Json = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        raise ParseError(f"not JSON at character {fault.pos}: {_reason(fault.msg)}") from None
    return value


def _reason(message: str) -> str:
    """The decoder's own reason: fixed sentences about the syntax, never a piece of the text."""
    return message.partition(":")[0]


def numbers_fit(value: object) -> bool:
    """
    Whether the numbers and the nesting of a decoded value can be carried: the quick part of the check.

    Args:
        value: A decoded JSON value.

    Returns:
        True only where `check_representable` could object to nothing but a string or a value that is not
        JSON.
    """
    return _numbers_fit((value,), MAX_PAYLOAD_DEPTH)


def _numbers_fit(items: Iterable[object], depth: int) -> bool:
    for item in items:
        # Strings are by far the most: they go first. Any other type is left to the exact check.
        if isinstance(item, str) or item is None:
            continue
        if isinstance(item, int | float):
            # Above this bound every double is a whole number; an infinity or no number at all fails as well.
            if not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
                return False
        elif isinstance(item, dict):
            if depth == 0 or not _numbers_fit(item.values(), depth - 1):
                return False
        elif isinstance(item, list):
            if depth == 0 or not _numbers_fit(item, depth - 1):
                return False
        else:
            return False
    return True


def check_representable(value: object, path: str = "payload") -> None:
    """
    Refuse what an event cannot carry exactly, whatever its type.

    That is: an integer-valued number beyond 2^53 - 1 either way, a number that is not finite, a lone
    surrogate, a key that is not a string, a value that is not JSON, and nesting beyond `MAX_PAYLOAD_DEPTH`
    levels. It walks objects and arrays in their own order and stops at the first fault.

    Args:
        value: A decoded JSON value.

        path: Where the value stands, for the message.

    Raises:
        ParseError: Something in it is refused.
    """
    # An explicit stack: depth is what this function checks, so it must not be what stops it.
    stack: list[tuple[object, str, int]] = [(value, path, 0)]
    while stack:
        item, place, depth = stack.pop()
        if isinstance(item, str):
            if not is_unicode(item):
                raise ParseError(f"{place} holds a lone surrogate", path=place)
        elif item is None or isinstance(item, bool):
            continue
        elif isinstance(item, int | float):
            check_number(item, place)
        elif isinstance(item, dict | list):
            if depth == MAX_PAYLOAD_DEPTH:
                raise ParseError(f"{path} nests deeper than {MAX_PAYLOAD_DEPTH} levels", path=path)
            stack.extend(reversed(children(item, place, depth + 1)))
        else:
            raise ParseError(f"{place} is of a type that JSON does not have", path=place)


def children(
    item: dict[object, object] | list[object], place: str, depth: int
) -> list[tuple[object, str, int]]:
    """
    The values directly inside an object or array, each with its path.

    Args:
        item: The object or array.

        place: Its own path.

        depth: What to say of how deep they are.

    Returns:
        ``(value, path, depth)`` in the container's own order.

    Raises:
        ParseError: A key is not a string, or holds a lone surrogate.
    """
    if isinstance(item, list):
        return [(inner, f"{place}[{index}]", depth) for index, inner in enumerate(item)]
    found: list[tuple[object, str, int]] = []
    for key, inner in item.items():
        if not isinstance(key, str):
            raise ParseError(f"{place} has a key that is not a string", path=place)
        if not is_unicode(key):
            raise ParseError(f"{place} has a key that holds a lone surrogate", path=place)
        found.append((inner, f"{place}.{key}", depth))
    return found


def check_number(number: float, path: str) -> None:
    """
    Refuse a number that not every reader holds as it was sent.

    Args:
        number: An int or a float, not a bool.

        path: Where it stands.

    Raises:
        ParseError: It is not finite, or integer-valued and beyond 2^53 - 1 either way.
    """
    if number - number != 0:
        raise ParseError(f"{path} is not a finite number", path=path)
    if abs(number) > MAX_SAFE_INTEGER and number == number // 1:
        raise ParseError(
            f"{path} is a whole number beyond {MAX_SAFE_INTEGER} either way; carry it as a string", path=path
        )


def is_unicode(text: str) -> bool:
    """
    Whether a string can be written as UTF-8: it holds no lone surrogate.

    Args:
        text: Any Python string.

    Returns:
        True where every code point is a Unicode scalar value.
    """
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
