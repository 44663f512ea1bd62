"""From the text of a line to a JSON value: slowly, exactly, and whatever comes."""

from __future__ import annotations

import json
import math
import re
from typing import Final, NoReturn, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A decoded JSON value. A number beyond double range is an infinite float."""

DEPTH_KEPT: Final = 64
"""How many levels are kept of a text that is nested too deep for the parser; records have six."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_LONGEST_INTEGER: Final = 309


class NotJsonError(Exception):
    """
    Raised for a text that is not one JSON value.

    Args:
        reason: What is wrong, with a place in characters from the start of the text, never with a piece of it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NestedTooDeepError(Exception):
    """
    Raised for a text that nests deeper than the parser goes.

    Args:
        shallow: Its value with everything below `DEPTH_KEPT` levels left out; None where even that is not JSON.
    """

    def __init__(self, shallow: Json) -> None:
        super().__init__("nested too deep")
        self.shallow = shallow


def _integer(text: str) -> int | float:
    number = float(text)
    if math.isinf(number) or len(text) > _LONGEST_INTEGER + 1:
        return number
    return int(text)


def _no_constant(_name: str) -> NoReturn:
    raise NotJsonError("NaN and Infinity are not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_integer, parse_constant=_no_constant)


def parse(text: str) -> Json:
    """
    Parses one JSON text, with white space around it or none.

    Integers keep all their digits. Of a repeated key the last one counts. Lone surrogates are let through.

    Args:
        text: The text.

    Returns:
        Its value.

    Raises:
        NotJsonError: It is not one JSON value.
        NestedTooDeepError: It nests deeper than the parser goes.
    """
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError:
        raise NestedTooDeepError(_shallow(text)) from None
    except json.JSONDecodeError as fault:
        if fault.pos >= len(text.rstrip()) or fault.msg.startswith("Unterminated"):
            raise NotJsonError("it ends before its JSON value does") from None
        raise NotJsonError(f"not JSON at character {fault.pos}") from None
    return value


def _shallow(text: str) -> Json:
    """What can be read of a text when whatever lies below `DEPTH_KEPT` levels is replaced by null."""
    kept: list[str] = []
    depth = position = 0
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == DEPTH_KEPT:
                kept.append(text[position : token.start()] + "null")
        elif mark in "]}":
            if depth == DEPTH_KEPT:
                position = token.end()
            depth -= 1
    kept.append(text[position:] if depth < DEPTH_KEPT else "")
    try:
        return parse("".join(kept))
    except NotJsonError:
        return None


def lone_surrogate(value: Json) -> str | None:
    """
    Where a value holds half of a surrogate pair.

    Args:
        value: A JSON value.

    Returns:
        The JSON path of a string that holds one, or of the object whose key does; None: there is none.
    """
    stack: list[tuple[Json, str]] = [(value, "$")]
    while stack:
        here, path = stack.pop()
        if isinstance(here, str):
            if not is_unicode(here):
                return path
        elif isinstance(here, list):
            stack.extend((item, f"{path}[{index}]") for index, item in reversed(list(enumerate(here))))
        elif isinstance(here, dict):
            if not all(map(is_unicode, here)):
                return path
            stack.extend((item, f"{path}.{shown(key)}") for key, item in reversed(here.items()))
    return None


def is_unicode(text: str) -> bool:
    """
    Whether a string can be written as UTF-8.

    Args:
        text: A string.

    Returns:
        False where it holds half of a surrogate pair.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(key: str) -> str:
    """
    A key as a message may show it: a key of a refused line can be anything, a secret too.

    Args:
        key: The key.

    Returns:
        The key where it has the form of a field's name, else ``*``.
    """
    return key if re.fullmatch(r"[a-z]{1,20}(_[a-z]{1,20}){0,3}", key) else "*"
