"""When an event happened, as a number: for folding and for drawing, never written back."""

from __future__ import annotations

from datetime import UTC, datetime

from ethogram.envelope import Event


def instant_ms(text: str) -> float | None:
    """
    Read an ISO-8601 time leniently: any offset, any number of digits, ``Z``; without an offset it is UTC.

    Args:
        text: A time as it stands in an event.

    Returns:
        Milliseconds since 1970 UTC; None for a text that is no such time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp() * 1000


def happened(event: Event) -> str:
    """
    The time at which an event happened: when its producer captured it, else when the sink stored it.

    Args:
        event: The event.

    Returns:
        ``capturedAt`` where it can be read as a time, else ``ts``, as it stands in the event.
    """
    captured = event.captured_at
    return captured if captured is not None and instant_ms(captured) is not None else event.ts
