"""The main runs that a tail has in hand, and which of them hold an end."""

from __future__ import annotations

from collections.abc import Iterable

from vinaya_bridge.runs import Append, Held, MainRun
from vinaya_bridge.sinks import Index

_IDLE_MAIN_RUNS = 256


class MainRuns:
    """
    The main runs in hand: made from what the output holds when they are first asked for.

    Those that hold no end are let go of, the one used longest ago first, and made again when a line comes. What a poll
    costs grows with the runs that hold an end, not with those that are in hand.

    Args:
        index: Answers what the output holds.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._runs: dict[str, MainRun] = {}  # the one used last stands last
        self._holding: dict[str, MainRun] = {}

    def __len__(self) -> int:
        """Return how many are in hand."""
        return len(self._runs)

    def get(self, main_run: str) -> MainRun:
        """
        Return a main run. Who gives it lines says so afterwards, with `used`.

        Args:
            main_run: Run id of the first sitting.
        """
        known = self._runs.pop(main_run, None)
        if known is None:
            known = MainRun(main_run, self._index.facts(main_run))
        self._runs[main_run] = known
        return known

    def used(self, main_runs: Iterable[str]) -> None:
        """
        Note that main runs were given lines: they may hold an end by now, or none any more.

        Args:
            main_runs: Run ids of their first sittings.
        """
        for name in main_runs:
            self._holding.pop(name, None)
            if self._runs[name].held():
                self._holding[name] = self._runs[name]

    def hold(self, held: Held) -> None:
        """
        Hold an end again that `held` returned before a restart.

        Args:
            held: The end.
        """
        main_run = held.ends[0].main_run
        self.get(main_run).hold(held)
        self.used([main_run])

    def held(self) -> list[Held]:
        """Return the ends that are held."""
        return [held for main_run in self._holding.values() for held in main_run.held()]

    def finish_quiet(self, now: float, settle_seconds: float) -> list[Append]:
        """
        Return the terminal events of the runs that have been quiet for long enough.

        Args:
            now: The clock's time in seconds.

            settle_seconds: How long a run must have been quiet.
        """
        appends: list[Append] = []
        for name, main_run in list(self._holding.items()):
            appends.extend(main_run.finish_quiet(now, settle_seconds))
            if not main_run.held():
                del self._holding[name]
        return appends

    def forget_idle(self) -> None:
        """Let go of the main runs used longest ago."""
        surplus = len(self._runs) - len(self._holding) - _IDLE_MAIN_RUNS
        if surplus > 0:
            idle = [name for name in self._runs if name not in self._holding]
            for name in idle[:surplus]:
                del self._runs[name]
