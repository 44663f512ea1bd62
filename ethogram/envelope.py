"""
The two shapes of an event: the draft that a producer emits, and the stamped event that a sink stores.

Parsing is strict about the envelope and about what can be carried, and tolerant about meaning: unknown types,
payload fields and union members are kept. Whether a producer should have sent an event is another question:
`ethogram.validation`.
"""

from __future__ import annotations

from typing import cast

from attrs import define, frozen

from ethogram.json_text import (
    Json,
    ParseError,
    check_representable,
    decode,
    is_unicode,
    numbers_fit,
)
from ethogram.payload import check_payload
from ethogram.vocabulary import MAX_SAFE_INTEGER, SCHEMA_VERSION

_REQUIRED = ("v", "type", "runId", "seq", "ts", "payload")
_EVENT_KEYS = frozenset((*_REQUIRED, "capturedAt"))
_DRAFT_KEYS = frozenset(("type", "payload", "capturedAt"))


@frozen
class EventDraft:
    """
    What a producer emits: a sink adds the rest.

    Args:
        type: ``domain.past_tense``, for example ``agent.tool_use``; any other string is an open type.

        payload: The payload. It is not copied: do not change it afterwards.

        captured_at: The producer's clock at capture, ISO-8601, kept unchanged; None leaves it out.
    """

    type: str
    payload: Json
    captured_at: str | None = None


# Not frozen: that would triple the time it takes to make one, and the bulk path makes one for each event.
@define
class CanonicalDraft:
    """
    A draft whose payload its producer has already validated and written in canonical form: the bulk path.

    No sink looks inside ``payload_json``. Whoever builds one vouches for it;
    `ethogram.validation.validated_payload` makes one that is right. Do not change it once it is handed over.

    Args:
        type: As in `EventDraft`.

        payload_json: The payload's canonical UTF-8, as `ethogram.canonical.canonical_payload` writes it.

        captured_at: As in `EventDraft`.
    """

    type: str
    payload_json: bytes
    captured_at: str | None = None


@frozen
class Event:
    """
    A stored event: complete, so that a reader can replay, follow, fold and prove that nothing is missing.

    Args:
        type: As in `EventDraft`.

        run_id: The run: one harness session, or one process that observes them.

        seq: Its place in the run: gapless, from 1.

        ts: The sink's clock at append, ISO-8601.

        payload: The payload, unknown fields included. It is not copied: do not change it.

        captured_at: As in `EventDraft`.

        v: The schema version, 1.
    """

    type: str
    run_id: str
    seq: int
    ts: str
    payload: Json
    captured_at: str | None = None
    v: int = SCHEMA_VERSION


def stamp(draft: EventDraft, *, run_id: str, seq: int, ts: str) -> Event:
    """
    Make a draft an event. Nothing is checked.

    Args:
        draft: What the producer emitted.

        run_id: The run it was submitted to.

        seq: Its place in that run, from 1.

        ts: The sink's clock, ISO-8601.

    Returns:
        The event.
    """
    return Event(draft.type, run_id, seq, ts, draft.payload, draft.captured_at)


def parse_event_text(text: bytes | str) -> Event:
    """
    Read one event from JSON text: one line of an ``events.jsonl``, with its newline or without.

    Args:
        text: UTF-8 bytes, or a string.

    Returns:
        The event, with unknown payload fields.

    Raises:
        ParseError: It is not an event that can be carried. The first fault counts: text, envelope, numbers,
            payload.
    """
    value = decode(text)
    # The decoder has refused lone surrogates already: only numbers and depth are left.
    return _event(value, checked_strings=True)


def parse_event(value: object) -> Event:
    """
    Read one event from decoded JSON.

    Args:
        value: What a JSON decoder returned. The payload is kept, not copied.

    Returns:
        The event, with unknown payload fields.

    Raises:
        ParseError: It is not an event that can be carried. The first fault counts: envelope, numbers,
            payload.
    """
    return _event(value, checked_strings=False)


def parse_draft(value: object) -> EventDraft:
    """
    Read one draft from decoded JSON: ``type``, ``payload``, perhaps ``capturedAt``, and nothing else.

    Args:
        value: What a JSON decoder returned. The payload is kept, not copied.

    Returns:
        The draft, with unknown payload fields.

    Raises:
        ParseError: It is not a draft that can be carried.
    """
    fields = _object(value, "EventDraft", _DRAFT_KEYS, ("type", "payload"))
    type_name = _string(fields, "type", "EventDraft")
    payload = fields["payload"]
    check_representable(payload)
    check_payload(type_name, payload)
    return EventDraft(type_name, cast(Json, payload), _captured_at(fields, "EventDraft"))


def _event(value: object, *, checked_strings: bool) -> Event:
    fields = _object(value, "Event", _EVENT_KEYS, _REQUIRED)
    version = fields["v"]
    if isinstance(version, bool) or not isinstance(version, int | float) or version != SCHEMA_VERSION:
        raise ParseError(f"Event.v must be the number {SCHEMA_VERSION}", path="v")
    type_name = _string(fields, "type", "Event")
    run_id = _string(fields, "runId", "Event")
    seq = fields["seq"]
    if (
        isinstance(seq, bool)
        or not isinstance(seq, int | float)
        or not 1 <= seq <= MAX_SAFE_INTEGER
        or seq % 1
    ):
        raise ParseError(f"Event.seq must be a whole number from 1 to {MAX_SAFE_INTEGER}", path="seq")
    ts = _string(fields, "ts", "Event")
    payload = fields["payload"]
    if not (checked_strings and numbers_fit(payload)):
        check_representable(payload)
    check_payload(type_name, payload)
    return Event(type_name, run_id, int(seq), ts, cast(Json, payload), _captured_at(fields, "Event"))


def _object(
    value: object, shape: str, allowed: frozenset[str], required: tuple[str, ...]
) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ParseError(f"{shape} must be an object")
    if not value.keys() <= allowed:
        unknown = [key for key in value if key not in allowed]
        names = ", ".join(ascii(key) for key in unknown)
        raise ParseError(f"{shape} has unknown field{'s' if len(unknown) > 1 else ''}: {names}")
    for name in required:
        if name not in value:
            raise ParseError(f"{shape} is missing required field: {name}", path=name)
    return value


def _string(fields: dict[str, object], name: str, shape: str) -> str:
    text = fields[name]
    if not isinstance(text, str):
        raise ParseError(f"{shape}.{name} must be a string", path=name)
    if not is_unicode(text):
        raise ParseError(f"{shape}.{name} holds a lone surrogate", path=name)
    return text


def _captured_at(fields: dict[str, object], shape: str) -> str | None:
    return _string(fields, "capturedAt", shape) if "capturedAt" in fields else None
