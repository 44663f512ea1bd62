"""The time as sinks write it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], str]
"""Returns the time now, ISO-8601. Sinks are given one, so that tests and replays can choose it."""


def utc_now() -> str:
    """
    The time now, as the existing sinks write it.

    Returns:
        UTC with milliseconds and ``Z``: ``2026-09-10T07:29:40.585Z``.
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
