"""
What runs used, folded from what harnesses report: cost, tokens, turns.

A completion's cost and usage are totals of its session so far, so they are never added to each other: of each
session the maximum counts, and sessions are added. ``turns`` are of one invocation, and are added. Source: the
rule of the existing ethogram watchdog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import fsum
from typing import TypeAlias, cast

from attrs import define, field, frozen

from ethogram.envelope import Event
from ethogram.json_text import Json
from ethogram.payload import is_count
from ethogram.vocabulary import RUN_FINISHED

TOKENS = "tokens"
"""The unit of a usage that names none."""

USAGE_FIELDS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheCreationTokens")
"""The figures of a usage, as the wire spells them."""

_Key: TypeAlias = tuple[str, ...]
_Figures: TypeAlias = dict[str, int]


@frozen
class Spending:
    """
    What was used, by one run or by several.

    Args:
        cost_usd: The cost in US dollars; None where nothing states one.

        usage: The figures by unit, spelt as on the wire. A figure that nothing states is left out, and unlike
            units are never added.

        turns: The turns of all invocations; None where none is stated.

        sessions: How many sessions the figures come from.

        lower_bound: Whether the cost may be more: a harness estimated it, or a session states none.
    """

    cost_usd: float | None = None
    usage: Mapping[str, Mapping[str, int]] = field(factory=dict)
    turns: int | None = None
    sessions: int = 0
    lower_bound: bool = False

    def total(self, unit: str = TOKENS) -> int | None:
        """
        The sum of the four figures of a unit.

        Args:
            unit: The unit, `TOKENS` for tokens.

        Returns:
            Their sum; None where nothing states any of them.
        """
        figures = self.usage.get(unit)
        return sum(figures.values()) if figures else None

    def as_json(self) -> dict[str, Json]:
        """
        The figures as a JSON object.

        Returns:
            ``costUsd``, ``usage`` (by unit), ``turns``, ``sessions`` and ``lowerBound``; what nothing states
            is left out.
        """
        stated: dict[str, Json] = {} if self.cost_usd is None else {"costUsd": self.cost_usd}
        if self.usage:
            stated["usage"] = {unit: dict(figures) for unit, figures in self.usage.items()}
        if self.turns is not None:
            stated["turns"] = self.turns
        return {**stated, "sessions": self.sessions, "lowerBound": self.lower_bound}


@define
class _Session:
    """The maxima of one session."""

    cost_usd: float | None = None
    usage: dict[str, _Figures] = field(factory=dict)
    estimated: bool = False
    covered: bool = False  # the run's finish states the cost that this session does not

    def take(self, payload: Mapping[str, Json]) -> None:
        cost = payload.get("costUsd")
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.cost_usd = max(cost, self.cost_usd or 0)
        self.estimated = self.estimated or payload.get("estimated") is True
        usage = payload.get("usage")
        if isinstance(usage, dict):
            unit = usage.get("unit", TOKENS)
            figures = {name: usage[name] for name in USAGE_FIELDS if is_count(usage.get(name))}
            self._raise_to(unit if isinstance(unit, str) else TOKENS, cast("_Figures", figures))

    def merge(self, other: _Session) -> None:
        if other.cost_usd is not None:
            self.cost_usd = max(other.cost_usd, self.cost_usd or 0)
        self.estimated = self.estimated or other.estimated
        self.covered = self.covered or other.covered
        for unit, figures in other.usage.items():
            self._raise_to(unit, figures)

    def _raise_to(self, unit: str, figures: _Figures) -> None:
        known = self.usage.setdefault(unit, {}) if figures else {}
        for name, figure in figures.items():
            known[name] = max(int(figure), known.get(name, 0))


class UsageFold:
    """
    Folds what runs used, event by event.

    The session of a completion is the one that it names, else the one that the run's latest
    ``agent.started`` names, else one of its own. What a run's completions do not state, its ``run.finished``
    may: its figures are of the whole run, and are taken only where no completion states that figure.

    A fold is of one run. `merge` adds another run's; a session that both name is counted once.
    """

    def __init__(self) -> None:
        self._sessions: dict[_Key, _Session] = {}
        self._turns: int | None = None
        self._latest_session: str | None = None
        # What the ends of runs state and no completion of theirs does.
        self._finishes: list[_Session] = []

    def take(self, event: Event) -> None:
        """
        Take an event into account.

        Args:
            event: An event of the run, in the run's order. Types that state no usage are passed over.
        """
        payload = event.payload
        if not isinstance(payload, dict):
            return
        if event.type == "agent.started":
            self._latest_session = _text(payload.get("sessionId"))
        elif event.type == "agent.completed":
            session = _text(payload.get("sessionId")) or self._latest_session
            key = (session,) if session else (event.run_id, str(event.seq))
            self._sessions.setdefault(key, _Session()).take(payload)
            turns = payload.get("turns")
            if is_count(turns):
                self._turns = (self._turns or 0) + int(cast(float, turns))
        elif event.type == RUN_FINISHED:
            self._take_finish(payload)

    def merge(self, other: UsageFold) -> None:
        """
        Add what another run used.

        Args:
            other: The other run's fold; it stays as it is.
        """
        for key, session in other._sessions.items():
            self._sessions.setdefault(key, _Session()).merge(session)
        self._finishes += other._finishes
        if other._turns is not None:
            self._turns = (self._turns or 0) + other._turns

    def spending(self) -> Spending:
        """
        The figures so far.

        Returns:
            What was used.
        """
        sessions = [*self._sessions.values(), *self._finishes]
        costs = [session.cost_usd for session in sessions if session.cost_usd is not None]
        usage: dict[str, _Figures] = {}
        for session in sessions:
            for unit, figures in session.usage.items():
                sums = usage.setdefault(unit, {})
                for name, figure in figures.items():
                    sums[name] = sums.get(name, 0) + figure
        open_ended = any(
            session.estimated or (session.cost_usd is None and not session.covered) for session in sessions
        )
        return Spending(
            # One session's cost stays as it was written: adding would round it.
            costs[0] if len(costs) == 1 else fsum(costs) if costs else None,
            {
                unit: {name: sums[name] for name in USAGE_FIELDS if name in sums}
                for unit, sums in sorted(usage.items())
            },
            self._turns,
            len(self._sessions),
            lower_bound=bool(costs) and open_ended,
        )

    def _take_finish(self, payload: Mapping[str, Json]) -> None:
        finish = _Session()
        finish.take(payload)
        sessions = self._sessions.values()
        if any(session.cost_usd is not None for session in sessions):
            finish.cost_usd, finish.estimated = None, False
        if any(session.usage for session in sessions):
            finish.usage = {}
        if finish.cost_usd is None:
            # It is taken for its usage alone, and says nothing about the cost.
            finish.covered, finish.estimated = True, False
        else:
            for session in sessions:
                session.covered = True
        if finish.cost_usd is not None or finish.usage:
            self._finishes.append(finish)


def fold_usage(events: Iterable[Event]) -> Spending:
    """
    Fold what one run used.

    Args:
        events: The run's events, in order.

    Returns:
        What was used; nothing but zeros and None where nothing states it.
    """
    fold = UsageFold()
    for event in events:
        fold.take(event)
    return fold.spending()


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None
