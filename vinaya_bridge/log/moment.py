"""The instant of a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def instant_us(ts: str) -> int | None:
    """
    Reads a line's time.

    Args:
        ts: ISO 8601 text, as ``meta.ts`` has it; without an offset it is UTC.

    Returns:
        Microseconds since 1970-01-01T00:00:00Z, negative before; digits beyond microseconds are cut. None where the
        text cannot be read as a time: years before 1 and after 9999 and leap seconds are among these.
    """
    try:
        moment = datetime.fromisoformat(ts)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def timestamp(instant: int) -> str:
    """
    Writes an instant as the Log writes ``meta.ts``.

    Args:
        instant: Microseconds since 1970-01-01T00:00:00Z, in the years 1 to 9999; what is below a millisecond is cut.

    Returns:
        ISO 8601 in UTC to the millisecond: ``2026-08-02T06:00:00.000Z``.

    Raises:
        OverflowError: The instant is outside those years.
    """
    moment = _EPOCH + instant * _MICROSECOND
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
