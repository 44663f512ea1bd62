"""What a mapping gives for a line: events whose payloads are written, and what the engine still has to decide."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag

import msgspec
import orjson
from attrs import frozen

from ethogram.canonical import canonical_payload
from ethogram.validation import OverBound as TextOverBound
from ethogram.validation import PayloadTooLarge, ValidationDetails, ValidationError, validate
from ethogram.vocabulary import MAX_PAYLOAD_BYTES, MAX_SAFE_INTEGER, MAX_TEXT_SCALARS

_BLOCK = b'"vinaya":{"digest":'
_PART = b',"part":'
_RUN_ID = b',"runId":'
"""Marks of the block in a payload: its beginning, and the keys before which ``line`` and ``redacted`` stand."""

_NO_TYPE = "line.whole"
"""The name of no type of the protocol: what is checked under it has only the bounds that all payloads have."""

CERTAINLY_BOUNDED_BYTES = 4096
"""A payload of at most so many bytes cannot hold a text over the smallest bound of the protocol."""


class Run(IntEnum):
    """The run that an event goes to."""

    MAIN = 0
    DISPATCH = 1


class Only(IntEnum):
    """When the engine emits an event: always, or as the answer to one of its three questions."""

    ALWAYS = 0
    STARTS_RUN = 1
    NOT_STARTS_RUN = 2
    ENDS_RUN = 3
    NOT_ENDS_RUN = 4
    AGENT_STARTED = 5
    NOT_AGENT_STARTED = 6


COMPLEMENTS = (
    (Only.STARTS_RUN, Only.NOT_STARTS_RUN),
    (Only.ENDS_RUN, Only.NOT_ENDS_RUN),
    (Only.AGENT_STARTED, Only.NOT_AGENT_STARTED),
)
"""The answers of which exactly one holds."""

_COMPLEMENT = {one: other for pair in COMPLEMENTS for one, other in (pair, pair[::-1])}


class Fill(IntFlag):
    """What the engine adds to a payload before it emits it; see `fill_payload`."""

    NOTHING = 0
    ELAPSED = 1
    PARENT = 2


class Emit(msgspec.Struct, array_like=True, frozen=True):
    """
    One event of a line.

    Args:
        part: Its number among the events that the line can give, from 0.

        run: The run it goes to, a `Run`.

        type: Its type.

        payload: Its payload in canonical form, with the ``vinaya`` block, without what `fill` names.

        only: When it is emitted, an `Only`.

        fill: What the engine adds, a `Fill`.
    """

    part: int
    run: int
    type: str
    payload: bytes
    only: int
    fill: int


@frozen
class OverBound:
    """
    An event of the line would break the protocol's rules, so the whole line gives none.

    Args:
        type: The event's type.

        details: The first fault: nearly always a bound (``OverBound``, ``PayloadTooLarge``).
    """

    type: str
    details: ValidationDetails

    @property
    def path(self) -> str:
        """Where in the payload; ``payload`` where it is too large as a whole."""
        path: str = getattr(self.details, "path", "payload")
        return path

    @property
    def count(self) -> int | None:
        """The measure that is over its bound, in scalar values or bytes; None for a fault of another kind."""
        if isinstance(self.details, PayloadTooLarge):
            return self.details.bytes
        return self.details.count if isinstance(self.details, TextOverBound) else None

    @property
    def max(self) -> int | None:
        """The bound, in the same unit; None for a fault of another kind."""
        return self.details.max if isinstance(self.details, PayloadTooLarge | TextOverBound) else None


def over_bound(type_name: str, payload: bytes, fill: int = 0) -> OverBound | None:
    """
    Check a payload that is long enough to break a bound.

    Args:
        type_name: The event's type.

        payload: Its payload in canonical form.

        fill: What the engine still adds to it; the longest figure is put in its place, the parent's id cannot be.

    Returns:
        The first fault, or None.
    """
    if len(payload) <= CERTAINLY_BOUNDED_BYTES:
        return None
    fields = orjson.loads(payload)
    if fill & Fill.ELAPSED:
        fields |= {"durationMs": MAX_SAFE_INTEGER, "estimated": True}
    try:
        validate(type_name, fields)
    except ValidationError as fault:
        return OverBound(type_name, fault.details)
    return None


def fill_payload(
    payload: bytes,
    *,
    elapsed_ms: int | None = None,
    unknown_reason: str | None = None,
    parent: str | None = None,
) -> bytes:
    """
    Add to a payload what only the engine knows.

    The result can be longer than what it was made of: ask `over_bound` again where `parent` is long.

    Args:
        payload: A payload in canonical form.

        elapsed_ms: Milliseconds since the run's first line, for ``durationMs``, which is then ``estimated``.

        unknown_reason: Why no time could be read: ``durationMs`` is then 0 and estimated, and ``vinaya.unknown``
            says so.

        parent: The run that this one was started by, for ``parentRunId``.

    Returns:
        The payload in canonical form.
    """
    fields = orjson.loads(payload)
    if elapsed_ms is not None:
        fields["durationMs"] = max(0, elapsed_ms)
        fields["estimated"] = True
    elif unknown_reason is not None:
        fields["durationMs"] = 0
        fields["estimated"] = True
        fields["vinaya"].setdefault("unknown", {})["durationMs"] = unknown_reason
    if parent is not None:
        fields["parentRunId"] = parent
    return canonical_payload(fields)


def with_origin(
    emits: Sequence[Emit], line: bytes, *, is_redacted: bool = False, spare_bytes: int = 0
) -> list[Emit] | None:
    """
    Add the whole line, as the object ``vinaya.line``, to the first event that is certainly emitted.

    Where none is certain by itself, it goes to the first two of which exactly one is.

    Args:
        emits: The events of the line.

        line: The line in canonical form, redacted, with no number that the protocol does not have.

        is_redacted: Whether a secret was cut out of it: the block then says ``"redacted": true``.

        spare_bytes: How much the engine may still add to a payload.

    Returns:
        The events; None where the line would break a bound.
    """
    if len(line) > MAX_TEXT_SCALARS:  # else no string of it can be over the bound of one
        try:
            validate(_NO_TYPE, orjson.loads(line))
        except ValidationError:
            return None
    carriers = _certain(emits)
    found = list(emits)
    for index in carriers:
        payload = _carrying(emits[index].payload, line, is_redacted=is_redacted)
        if len(payload) + spare_bytes > MAX_PAYLOAD_BYTES:
            return None
        found[index] = msgspec.structs.replace(emits[index], payload=payload)
    return found if carriers else None


def _certain(emits: Sequence[Emit]) -> list[int]:
    """The place of the first event that is always emitted, else of the first two of which exactly one is."""
    asked: dict[tuple[int, int], int] = {}
    pair: list[int] = []
    for index, emit in enumerate(emits):
        if emit.only == Only.ALWAYS:
            return [index]
        other = asked.get((emit.run, _COMPLEMENT[Only(emit.only)]))
        if other is not None and not pair:
            pair = [other, index]
        asked.setdefault((emit.run, emit.only), index)
    return pair


def _carrying(payload: bytes, line: bytes, *, is_redacted: bool) -> bytes:
    """The payload with the line in its block. The bytes found cannot stand in a string: a quote in one is escaped."""
    block = payload.find(_BLOCK)
    if block < 0 or payload.find(_BLOCK, block + 1) >= 0:
        fields = orjson.loads(payload)
        fields["vinaya"] |= {"line": orjson.loads(line)} | ({"redacted": True} if is_redacted else {})
        return canonical_payload(fields)
    at = payload.index(_PART, block)
    rest = payload[at:]
    if is_redacted:
        rest = rest.replace(_RUN_ID, b',"redacted":true' + _RUN_ID, 1)
    return b'%b,"line":%b%b' % (payload[:at], line, rest)
