"""Asides: lines that give no events, why, and what the bridge's own run tells of them."""

from __future__ import annotations

from typing import NamedTuple

from ethogram.vocabulary import MAX_TEXT_SCALARS
from vinaya_bridge.entry import Place
from vinaya_bridge.ledger import Term
from vinaya_bridge.log import Blank, Refused, UnknownVersion
from vinaya_bridge.log.codes import OVER_BOUND, UNKNOWN_VERSION
from vinaya_bridge.mapping.emit import OverBound
from vinaya_bridge.naming import main_run_id
from vinaya_bridge.notices import TOO_LONG
from vinaya_bridge.relay import REFUSED_TYPE, UNKNOWN_VERSION_TYPE, Refusal, line_digest


class Aside(NamedTuple):
    """
    A line, or a piece of one, that gives no events.

    Args:
        term: What became of it.

        place: Where it lies.

        raw: Its bytes.

        code: Of the fault, or None.

        path: Of the field at fault, or None.

        reason: What is wrong, without any value; or None.

        refusal: What the bridge's own run tells of it, or None.
    """

    term: Term
    place: Place
    raw: bytes
    code: str | None = None
    path: str | None = None
    reason: str | None = None
    refusal: Refusal | None = None

    @property
    def is_passed_over(self) -> bool:
        """Whether its bytes were not read because they are too many, so that there is nothing to keep."""
        return self.code == TOO_LONG.id


def aside_of(
    verdict: Blank | UnknownVersion | Refused | None, place: Place, raw: bytes, record: bytes
) -> Aside:
    """
    Set a line aside that is no event line.

    Args:
        verdict: What the reader made of it; None for the unfinished end of a file.

        place: Where it lies.

        raw: Its bytes.

        record: The bytes of the record alone, where they lie in a wrapper; else *raw*.
    """
    if verdict is None:
        return Aside(Term.PENDING, place, raw)
    if isinstance(verdict, Blank):
        return Aside(Term.BLANK, place, raw)
    if isinstance(verdict, UnknownVersion):
        refusal = Refusal(
            UNKNOWN_VERSION_TYPE,
            None,
            line_digest(record),
            "unknown",
            schema=str(verdict.schema),
        )
        reason = "a number that no header version has"
        return Aside(Term.UNKNOWN_VERSION, place, raw, UNKNOWN_VERSION.id, "$.meta.schema", reason, refusal)
    return refused(
        raw,
        record,
        place,
        verdict.code.id,
        verdict.path,
        verdict.reason,
        source_run=named(None if verdict.run is None else main_run_id(verdict.run)),
        source_type=_name(verdict.kind, verdict.event),
    )


def passed_over(place: Place) -> Aside:
    """
    Set a line aside that is too long to be read: it is not decided, and its bytes are still in the input.

    Args:
        place: Where it lies.
    """
    return Aside(Term.PENDING, place, b"", TOO_LONG.id)


def refused(
    raw: bytes,
    record: bytes,
    place: Place,
    code: str,
    path: str,
    reason: str,
    *,
    source_run: str = "unknown",
    source_type: str | None = None,
) -> Aside:
    """
    Set a line aside that is refused.

    Args:
        raw: Its bytes.

        record: As in `aside_of`.

        place: Where it lies.

        code: Of the fault.

        path: Of the field at fault.

        reason: What is wrong, without any value.

        source_run: The run that it would have gone to.

        source_type: ``kind.event``, where it is known.
    """
    refusal = Refusal(
        REFUSED_TYPE,
        "malformed",
        line_digest(record),
        source_run,
        source_type=source_type,
        code=code,
        detail=f"{path}: {reason}",
    )
    return Aside(Term.REFUSED, place, raw, code, path, reason, refusal)


def named(run_id: str | None) -> str:
    """
    Return a run as the bridge's own run may name it.

    Args:
        run_id: Its id, or None where it is not known.
    """
    return "unknown" if run_id is None or len(run_id) > MAX_TEXT_SCALARS else run_id


def over_bound(
    fault: OverBound, raw: bytes, record: bytes, place: Place, run: str, name: str, seq: int
) -> Aside:
    """
    Set a line aside of which an event would break the protocol, before any of its events is appended.

    Args:
        fault: The event, and what it would break.

        raw: The line's bytes.

        record: As in `aside_of`.

        place: Where it lies.

        run: The run that it would have gone to.

        name: ``kind.event``.

        seq: ``meta.seq``.
    """
    details = fault.details
    refusal = Refusal(
        REFUSED_TYPE,
        "over_bound",
        line_digest(record),
        run,
        source_type=name,
        code=OVER_BOUND.id,
        field=fault.path,
        count=getattr(details, "count", None) or getattr(details, "bytes", None),
        max=getattr(details, "max", None),
        seq=seq,
    )
    reason = f"its event {fault.type} would be over a bound of the protocol"
    return Aside(Term.REFUSED, place, raw, OVER_BOUND.id, fault.path, reason, refusal)


def _name(kind: str | None, event: str | None) -> str | None:
    return None if kind is None or event is None else f"{kind}.{event}"
