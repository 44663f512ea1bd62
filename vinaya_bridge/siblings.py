"""Runs of one kind under one main run: its sittings, or the dispatches of one effect."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from vinaya_bridge.entry import Entry


@define
class PlacedRun:
    """
    A run that lines are placed in.

    Args:
        run_id: Its id.

        parent: The run it was started by.

        started: Whether it has its ``run.started``.

        finished: Whether it has its ``run.finished``.

        first_instant_us: The time of its first line in microseconds since 1970, or None.

        agent_started: Whether it holds an ``agent.started``.

        ends: The end lines that are held, the one whose outcome counts first.

        waiting: Lines that wait behind them.

        last_activity: The clock's time in seconds when its last line came.
    """

    run_id: str
    parent: str | None = None
    started: bool = False
    finished: bool = False
    first_instant_us: int | None = None
    agent_started: bool = False
    ends: list[Entry] = field(factory=list)
    waiting: list[Entry] = field(factory=list)
    last_activity: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether its end was logged, be it durable or still held."""
        return self.finished or bool(self.ends)


class Siblings(list[PlacedRun]):
    """The sittings of a main run, or the dispatches under one effect, in the order of their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._going: list[PlacedRun] = []
        self._lost: deque[PlacedRun] = deque()

    def append(self, run: PlacedRun) -> None:
        """Add the next."""
        super().append(run)
        if not run.ended:
            self._going.append(run)

    def lose(self, run: PlacedRun) -> None:
        """Add one of which a crash kept the number and lost the events."""
        self.append(run)
        self._lost.append(run)

    def first_lost(self) -> PlacedRun | None:
        """Return the first one that was lost and is still not begun again."""
        while self._lost:
            run = self._lost.popleft()
            if not run.started:
                return run
        return None

    def latest_going(self) -> PlacedRun:
        """Return the latest that has not ended, else the last."""
        while self._going and self._going[-1].ended:
            self._going.pop()
        return self._going[-1] if self._going else self[-1]
