"""What compiled rules call at run time: values of a line made fit for a payload."""

from __future__ import annotations

import orjson

from ethogram.canonical import canonical_payload, format_number
from ethogram.vocabulary import MAX_SAFE_INTEGER


def number(value: float | str | bool) -> object:
    """
    Make a number fit for orjson's notation to be the protocol's.

    Args:
        value: A finite number; text and booleans pass as they are.

    Returns:
        An int for an integral number, the number itself, or its exact notation ready to be written; text for
        a number that a reader could not hold exactly.
    """
    if type(value) is not float:
        return value
    if value.is_integer():
        whole = int(value)
        return whole if -MAX_SAFE_INTEGER <= whole <= MAX_SAFE_INTEGER else format_number(value)
    # orjson and ECMAScript differ here: 1.5e-6 against 0.0000015.
    if 1e-6 <= abs(value) < 1e-5:
        return orjson.Fragment(format_number(value))
    return value


def rounded(value: float) -> int | None:
    """
    Round a duration to whole milliseconds, half to even.

    Args:
        value: Milliseconds, not negative.

    Returns:
        The whole number; None for one that a reader could not hold exactly.
    """
    whole = round(value)
    return whole if whole <= MAX_SAFE_INTEGER else None


def count(value: float) -> int | None:
    """
    Take a figure as a count.

    Args:
        value: Any finite number.

    Returns:
        The whole number; None for a fraction, a negative number, or one that a reader could not hold exactly.
    """
    if type(value) is float and not value.is_integer():
        return None
    whole = int(value)
    return whole if 0 <= whole <= MAX_SAFE_INTEGER else None


def figure_text(value: float) -> str:
    """
    Write a figure as text.

    Args:
        value: Any finite number.

    Returns:
        All digits of an int, the protocol's notation of a float.
    """
    return str(value) if isinstance(value, int) else format_number(value)


def carried(payload: dict[str, object]) -> bytes:
    """
    Write a payload in which orjson met an integer that a reader could not hold exactly.

    Args:
        payload: The payload, its numbers made fit with `number`.

    Returns:
        Its canonical form, with such an integer as text.
    """
    return canonical_payload(_carried(payload))


def _carried(value: object) -> object:
    """A copy in which every integer beyond 2^53 - 1 is text."""
    if isinstance(value, dict):
        return {key: _carried(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_carried(item) for item in value]
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    if type(value) is int and abs(value) > MAX_SAFE_INTEGER:
        return str(value)
    return value
