"""The bridge's own run: what it refuses, once per distinct line, never with content (design, section 5)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import orjson
from attrs import frozen

from ethogram import CanonicalDraft, excerpt
from ethogram.vocabulary import MAX_EXCERPT_SCALARS
from vinaya_bridge.naming import RELAY_RUN

REFUSED_TYPE = "capture.refused"
UNKNOWN_VERSION_TYPE = "log.version_unrecognised"
LOST_TYPE = "log.lines_lost"


@frozen
class Refusal:
    """
    One line that the bridge refused or could not read, as its own run tells it.

    Args:
        type: Of the event that tells it.

        cause: ``malformed``, ``duplicate``, ``finished`` or ``over_bound``; None for an unknown version.

        digest: The first 16 hex digits of the sha256 of the line's bytes.

        source_run: The run the line would have gone to, ``unknown`` where it names none.

        source_type: ``kind.event``, where the line names a known one.

        code: Of the fault.

        detail: What is wrong, without any value; None where the cause says all.

        field: The field at fault.

        count: What was measured, with cause ``over_bound``.

        max: The bound, likewise.

        schema: The version that is not known, as text.

        seq: ``meta.seq``, where it is known.
    """

    type: str
    cause: str | None
    digest: str
    source_run: str
    source_type: str | None = None
    code: str | None = None
    detail: str | None = None
    field: str | None = None
    count: int | None = None
    max: int | None = None
    schema: str | None = None
    seq: int | None = None

    def key(self) -> tuple[str, str]:
        """What the bridge's run tells only once, and its order: cause, then digest."""
        return (self.cause or self.type, self.digest)

    def draft(self) -> CanonicalDraft:
        """Return the event that tells it."""
        block = {"digest": self.digest, "code": self.code, "seq": self.seq}
        payload: dict[str, object] = {
            "cause": self.cause,
            "sourceRunId": self.source_run,
            "sourceType": self.source_type,
            "field": self.field,
            "count": self.count,
            "max": self.max,
            "schema": self.schema,
        }
        if self.detail is not None:
            short = excerpt(self.detail, MAX_EXCERPT_SCALARS)
            payload["detail"] = short.text
            payload["truncated"] = True if short.truncated else None
        payload = {key: value for key, value in payload.items() if value is not None}
        payload["vinaya"] = {key: value for key, value in block.items() if value is not None}
        # A copy: what the serialiser returns holds far more memory than its bytes, and all drafts are held at once.
        return CanonicalDraft(self.type, b"%b" % orjson.dumps(payload, option=orjson.OPT_SORT_KEYS), None)


@frozen
class Lost:
    """
    Something the log once held, or may have held, and that can no longer be read.

    Args:
        stream: The stream it belongs to.

        code: What happened.

        offset_bytes: Up to where the file was read.

        line: Number of lines up to there, where it is known.
    """

    stream: str
    code: str
    offset_bytes: int
    line: int | None

    def draft(self) -> CanonicalDraft:
        """Return the event that tells it."""
        payload: dict[str, object] = {
            "stream": self.stream,
            "offsetBytes": self.offset_bytes,
            "line": self.line,
            "vinaya": {"code": self.code},
        }
        payload = {key: value for key, value in payload.items() if value is not None}
        return CanonicalDraft(LOST_TYPE, orjson.dumps(payload, option=orjson.OPT_SORT_KEYS), None)


def line_digest(raw: bytes) -> str:
    """Return the first 16 hex digits of the sha256 of a line's bytes."""
    return hashlib.sha256(raw).hexdigest()[:16]


def opening_draft() -> CanonicalDraft:
    """Return the event that opens the bridge's own run."""
    payload = {"kind": "relay", "actor": RELAY_RUN, "harness": RELAY_RUN, "vinaya": {}}
    return CanonicalDraft("run.started", orjson.dumps(payload, option=orjson.OPT_SORT_KEYS), None)


def told_key(event_type: str, payload: Mapping[str, object]) -> tuple[str, str]:
    """
    Return the `Refusal.key` of an event of the bridge's own run.

    Args:
        event_type: Its type.

        payload: Its payload, with a ``vinaya`` block that holds the digest.
    """
    block = payload["vinaya"]
    digest = block["digest"] if isinstance(block, dict) else ""
    return (str(payload.get("cause", event_type)), str(digest))


def note(refusals: dict[tuple[str, str], Refusal], refusal: Refusal) -> None:
    """
    Note a refusal; of several of one line the least stays, in whatever order they come.

    Args:
        refusals: Those noted so far, by key.

        refusal: Another.
    """
    key = refusal.key()
    before = refusals.get(key)
    if before is None or _whole(refusal) < _whole(before):
        refusals[key] = refusal


def relay_drafts(
    refusals: Iterable[Refusal], *, already: frozenset[tuple[str, str]], opened: bool
) -> list[CanonicalDraft]:
    """
    Return what to append to the bridge's own run: each distinct line once, by cause and digest.

    Args:
        refusals: Of this call, repeats among them.

        already: Keys of what the run has told before.

        opened: Whether the run has been started.
    """
    distinct: dict[tuple[str, str], Refusal] = {}
    for refusal in refusals:
        note(distinct, refusal)
    drafts = [refusal.draft() for key, refusal in sorted(distinct.items()) if key not in already]
    return [opening_draft(), *drafts] if drafts and not opened else drafts


def _whole(refusal: Refusal) -> tuple[str, ...]:
    return (refusal.source_run, refusal.source_type or "", refusal.code or "", refusal.detail or "")
