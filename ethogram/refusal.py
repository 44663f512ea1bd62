"""How a refusal is reported: the payload of a ``capture.refused`` on the refusing runtime's own run."""

from __future__ import annotations

from ethogram.excerpts import excerpt
from ethogram.faults import Duplicate, Finished, Gap, Invalid, SinkFault
from ethogram.json_text import Json
from ethogram.validation import OverBound, PayloadTooLarge, ValidationError
from ethogram.vocabulary import MAX_EXCERPT_SCALARS


def refusal_payload(
    fault: SinkFault, *, source_seq: int | None = None, source_type: str | None = None
) -> dict[str, Json]:
    """
    Word a refusal as the payload of a ``capture.refused``, to be appended to the refusing runtime's own run.

    It never holds what was refused. Source: the ethogram specification, "Sink guide".

    Args:
        fault: Why a sink refused something.

        source_seq: The seq of the refused event, where it had one.

        source_type: Its type, where it is known.

    Returns:
        A valid payload.
    """
    payload: dict[str, Json] = {"cause": _cause(fault), "sourceRunId": fault.run_id}
    if source_seq is not None:
        payload["sourceSeq"] = source_seq
    if source_type is not None:
        payload["sourceType"] = source_type
    details = fault.details if isinstance(fault, Invalid) else None
    if isinstance(details, OverBound):
        return payload | {"field": details.path, "count": details.count, "max": details.max}
    if isinstance(details, PayloadTooLarge):
        return payload | {"field": "payload", "count": details.bytes, "max": details.max}
    if payload["cause"] == "malformed":
        detail, truncated = excerpt(fault.message, MAX_EXCERPT_SCALARS)
        payload["detail"] = detail
        if truncated:
            payload["truncated"] = True
    return payload


def _cause(fault: SinkFault) -> str:
    match fault:
        case Finished():
            return "finished"
        case Gap():
            return "gap"
        case Duplicate():
            return "duplicate"
        case Invalid(error=ValidationError(details=OverBound() | PayloadTooLarge())):
            return "over_bound"
        case _:
            return "malformed"
