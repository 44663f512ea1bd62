"""
Events as CloudEvents 1.0 in their JSON format, and back, with nothing lost.

``source`` and ``id`` name a run and a seq, so that together they are unique as that format asks; ``type`` is the
event's type after ``ethogram.``. An attribute of a CloudEvent may hold neither control characters nor
noncharacters, and an ethogram text may: such a character, and ``%``, is percent-encoded in an attribute. The
payload is ``data``, in canonical form. Source: CloudEvents 1.0.2, JSON event format.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

import orjson

from ethogram.canonical import canonical_payload
from ethogram.envelope import Event, parse_event
from ethogram.json_text import Json, ParseError, decode
from ethogram.moment import happened, instant_ms
from ethogram.vocabulary import SCHEMA_VERSION

SPEC_VERSION: Final = "1.0"
"""The version of CloudEvents."""

SOURCE_PREFIX: Final = "urn:ethogram:run:"
"""What comes before the percent-encoded run id in ``source``."""

TYPE_PREFIX: Final = "ethogram."
"""What comes before the event's type in ``type``."""

TS: Final = "ethogramts"
"""The extension attribute that holds ``ts``."""

CAPTURED_AT: Final = "ethogramcapturedat"
"""The extension attribute that holds ``capturedAt``; absent where it is."""

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_NOT_IN_ATTRIBUTES = re.compile(
    "[%\x00-\x1f\x7f-\x9f\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF))
    + "]"
)


def to_cloudevent(event: Event) -> bytes:
    """
    Write an event as a CloudEvent.

    Args:
        event: The event.

    Returns:
        A JSON object in one line, without a newline.
    """
    attributes: dict[str, Json] = {
        "specversion": SPEC_VERSION,
        "id": str(event.seq),
        "source": SOURCE_PREFIX + quote(event.run_id, safe=""),
        "type": TYPE_PREFIX + _attribute(event.type),
        "datacontenttype": "application/json",
    }
    time = happened(event)
    # `time` is for readers that know CloudEvents alone; what the event says is in the extension attributes.
    if _RFC_3339.fullmatch(time) and instant_ms(time) is not None:
        attributes["time"] = time
    attributes[TS] = _attribute(event.ts)
    if event.captured_at is not None:
        attributes[CAPTURED_AT] = _attribute(event.captured_at)
    return orjson.dumps(attributes)[:-1] + b',"data":' + canonical_payload(event.payload) + b"}"


def from_cloudevent(text: bytes | str) -> Event:
    """
    Read an event back from a CloudEvent.

    Args:
        text: What `to_cloudevent` wrote, its members in any order.

    Returns:
        The event that it was written from.

    Raises:
        ParseError: It is no CloudEvent of an ethogram event.
    """
    value = decode(text)
    if not isinstance(value, dict):
        raise ParseError("CloudEvent must be an object")
    if value.get("specversion") != SPEC_VERSION:
        raise ParseError(f'CloudEvent.specversion must be "{SPEC_VERSION}"', path="specversion")
    if "data" not in value:
        raise ParseError("CloudEvent.data is required and is not there", path="data", missing=True)
    number = _string(value, "id")
    if not re.fullmatch("[1-9][0-9]*", number, re.ASCII):
        raise ParseError("CloudEvent.id must be a whole number from 1", path="id")
    fields: dict[str, object] = {
        "v": SCHEMA_VERSION,
        "type": _decoded(_after(value, "type", TYPE_PREFIX), "type"),
        "runId": _decoded(_after(value, "source", SOURCE_PREFIX), "source"),
        "seq": int(number) if len(number) <= 16 else 0,
        "ts": _decoded(_string(value, TS), TS),
        "payload": value["data"],
    }
    if CAPTURED_AT in value:
        fields["capturedAt"] = _decoded(_string(value, CAPTURED_AT), CAPTURED_AT)
    return parse_event(fields)


def _attribute(text: str) -> str:
    return _NOT_IN_ATTRIBUTES.sub(lambda match: quote(match[0], safe=""), text)


def _decoded(text: str, name: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise ParseError(f"CloudEvent.{name} is not percent-encoded UTF-8", path=name) from None


def _string(attributes: dict[str, Json], name: str) -> str:
    value = attributes.get(name)
    if not isinstance(value, str):
        raise ParseError(f"CloudEvent.{name} must be a string", path=name)
    return value


def _after(attributes: dict[str, Json], name: str, prefix: str) -> str:
    value = _string(attributes, name)
    if not value.startswith(prefix):
        raise ParseError(f"CloudEvent.{name} must begin with {prefix}", path=name)
    return value.removeprefix(prefix)
