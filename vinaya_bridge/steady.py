"""A clock that only goes forward, made of one that may be set back."""

from __future__ import annotations

from collections.abc import Callable

Now = Callable[[], float]
"""The time in seconds since 1970."""


class SteadyClock:
    """
    Counts the seconds that pass by a wall clock, and none while that one is set back.

    A wait must end also when somebody sets the clock back by a day.

    Args:
        wall: The wall clock.
    """

    def __init__(self, wall: Now) -> None:
        self._wall = wall
        self._latest = wall()
        self._ahead = 0.0

    def __call__(self) -> float:
        """Return the time in seconds; only differences matter."""
        now = self._wall()
        if now < self._latest:
            self._ahead += self._latest - now
        self._latest = now
        return now + self._ahead

    def skip(self, seconds: float) -> None:
        """
        Let time pass without waiting.

        Args:
            seconds: How much.
        """
        self._ahead += seconds
