"""
The canonical compact form: the bytes that every SDK writes for the same event.

Payload keys are sorted by their UTF-8 bytes at every level, the envelope keeps its own order, numbers are
written as ECMAScript writes them, and only what JSON must escape is escaped. Source: the ethogram
specification, "two implementations, one corpus".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import orjson

from ethogram.errors import EthogramError
from ethogram.json_text import is_unicode
from ethogram.vocabulary import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from ethogram.envelope import CanonicalDraft, Event

# Dates and dataclasses are not JSON: orjson must not invent a form for them.
_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_STRICT_INTEGER
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_DATACLASS
)
# A number in one of the two classes that orjson writes otherwise than ECMAScript: `1.0`, `1e+20`, `1.5e-6`.
# It may match inside a string: the exact encoder then writes the same bytes, slower.
_ODD_NUMBER = re.compile(rb"(?:^|[:\[,])-?[0-9]+(?:\.[0-9]+)?e|(?:^|[:\[,])-?[0-9]+\.0(?:[,\]}]|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile('["\\\\\x00-\x1f\ud800-\udfff]')


class CanonicalError(EthogramError):
    """Raised when a Python value is not JSON at all: a key that is not a string, a value of another type."""


def canonical_payload(value: object) -> bytes:
    """
    Write a decoded JSON value in canonical form.

    It checks nothing: a number that is not finite becomes ``null``, an integer beyond 2^53 - 1 the nearest
    double, a lone surrogate its escape. Nesting is not limited.

    Args:
        value: None, bool, int, float, str, or a list or dict of them.

    Returns:
        UTF-8 without white space.

    Raises:
        CanonicalError: The value holds something that JSON does not have.
    """
    try:
        text = orjson.dumps(value, option=_OPTIONS)
    except TypeError:
        # A lone surrogate, a large integer, deep nesting, or no JSON: the exact encoder tells which.
        return _encode_exactly(value)
    if (b".0" in text or b"e+" in text or b"e-" in text) and _ODD_NUMBER.search(text):
        return _encode_exactly(value)
    return text


def serialise_event(event: Event) -> bytes:
    """
    Write a stamped event as its canonical line, without the newline. It validates nothing.

    Args:
        event: The event.

    Returns:
        UTF-8 without white space, in the order ``v``, ``type``, ``runId``, ``seq``, ``ts``, ``payload`` and,
        where it is there, ``capturedAt``.

    Raises:
        CanonicalError: The payload holds something that JSON does not have.
    """
    return compose_line(
        event.type,
        event.run_id,
        event.seq,
        event.ts,
        canonical_payload(event.payload),
        captured_at=event.captured_at,
    )


def compose_line(
    type_name: str, run_id: str, seq: int, ts: str, payload_json: bytes, *, captured_at: str | None = None
) -> bytes:
    """
    Put an envelope around a payload that is canonical already, without reading it.

    Args:
        type_name: The event's type.

        run_id: The run it belongs to.

        seq: Its place in the run, from 1.

        ts: The sink's clock at append, ISO-8601.

        payload_json: The payload's canonical form.

        captured_at: The producer's clock at capture, ISO-8601, or None.

    Returns:
        The canonical line, without the newline.
    """
    end = b"}" if captured_at is None else b',"capturedAt":%b}' % encode_string(captured_at)
    return b'{"v":1,"type":%b,"runId":%b,"seq":%d,"ts":%b,"payload":%b%b' % (
        encode_string(type_name),
        encode_string(run_id),
        seq,
        encode_string(ts),
        payload_json,
        end,
    )


def compose_lines(run_id: str, first_seq: int, ts: str, drafts: Iterable[CanonicalDraft]) -> bytes:
    """
    Put envelopes around many canonical drafts of one run, in order.

    Args:
        run_id: The run they belong to.

        first_seq: The seq of the first; the others follow without a gap.

        ts: The sink's clock at append, ISO-8601, one for all.

        drafts: The drafts.

    Returns:
        Their canonical lines, each with its newline.
    """
    run = encode_string(run_id)
    stamp = b',"ts":%b,"payload":' % encode_string(ts)
    heads: dict[str, bytes] = {}
    # Pieces, joined once: a payload is copied only there.
    pieces: list[bytes] = []
    add = pieces.extend
    for seq, draft in enumerate(drafts, first_seq):
        name = draft.type
        head = heads.get(name)
        if head is None:
            head = heads[name] = b'{"v":1,"type":%b,"runId":%b,"seq":' % (encode_string(name), run)
        captured_at = draft.captured_at
        if captured_at is None:
            add((head, b"%d" % seq, stamp, draft.payload_json, b"}\n"))
        else:
            captured = encode_string(captured_at)
            add((head, b"%d" % seq, stamp, draft.payload_json, b',"capturedAt":', captured, b"}\n"))
    return b"".join(pieces)


def encode_string(text: str) -> bytes:
    """
    Write one string as JSON.

    Args:
        text: Any Python string.

    Returns:
        UTF-8 in quotes; a lone surrogate as its escape.
    """
    try:
        return orjson.dumps(text)
    except TypeError:
        return b'"%b"' % _ESCAPED.sub(_escape, text).encode()


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    return _SHORT_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def format_number(number: float) -> str:
    """
    Write a number as ECMAScript writes it.

    Args:
        number: An int or a float, not a bool.

    Returns:
        The shortest digits that read back as the same double; ``null`` where the number is not finite.
    """
    if isinstance(number, int) and abs(number) <= MAX_SAFE_INTEGER:
        return str(number)
    try:
        double = float(number)
    except OverflowError:
        return "null"
    if double - double != 0:
        return "null"
    if double == 0:
        return "0"
    sign = "-" if double < 0 else ""
    mantissa, _, exponent_text = repr(abs(double)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # value = 0.DIGITS x 10^point, counted before trailing zeros go.
    point = len(digits) - len(fraction) + int(exponent_text or 0)
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{point - 1:+d}"


def _encode_exactly(value: object) -> bytes:
    """The canonical form without orjson, of any depth: an explicit stack of values and of pieces of text."""
    pieces: list[bytes] = []
    stack: list[tuple[bytes, object]] = [(b"", value)]
    while stack:
        before, item = stack.pop()
        pieces.append(before)
        if item is _NOTHING:
            continue
        if isinstance(item, str):
            pieces.append(encode_string(item))
        elif item is None or isinstance(item, bool):
            pieces.append(_CONSTANTS[item])
        elif isinstance(item, int | float):
            pieces.append(format_number(item).encode())
        elif isinstance(item, list):
            pieces.append(b"[")
            stack.append((b"]", _NOTHING))
            stack.extend((b"," if index else b"", item[index]) for index in range(len(item) - 1, -1, -1))
        elif isinstance(item, dict):
            pieces.append(b"{")
            stack.append((b"}", _NOTHING))
            stack.extend(_members(item))
        else:
            raise CanonicalError("a value is of a type that JSON does not have")
    return b"".join(pieces)


_NOTHING = object()
_CONSTANTS: dict[object, bytes] = {None: b"null", True: b"true", False: b"false"}


def _members(item: dict[object, object]) -> list[tuple[bytes, object]]:
    """The members of an object, last first, each with the text that goes before its value."""
    keys = [key for key in item if isinstance(key, str)]
    if len(keys) != len(item):
        raise CanonicalError("an object has a key that is not a string")
    # Code-point order is UTF-8 byte order; a lone surrogate sorts as the replacement character.
    order: Callable[[str], str] | None = None
    if not all(is_unicode(key) for key in keys):
        order = _without_surrogates
    keys.sort(key=order)
    return [
        (b"%b%b:" % (b"," if index else b"", encode_string(keys[index])), item[keys[index]])
        for index in range(len(keys) - 1, -1, -1)
    ]


def _without_surrogates(text: str) -> str:
    return _SURROGATE.sub("\ufffd", text)
