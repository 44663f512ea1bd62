"""What an output already holds: of a line, and of a run."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from vinaya_bridge.entry import Entry
from vinaya_bridge.mapping.emit import Emit, Only

_EITHER = (
    frozenset({Only.STARTS_RUN, Only.NOT_STARTS_RUN}),
    frozenset({Only.ENDS_RUN, Only.NOT_ENDS_RUN}),
)


@frozen
class RunFacts:
    """
    What placing needs to know of a run that the output already holds.

    Args:
        finished: Whether it has its terminal event.

        first_instant_us: The time of its first line in microseconds since 1970, or None where it cannot be read.

        agent_started: Whether it holds an ``agent.started``.
    """

    finished: bool
    first_instant_us: int | None
    agent_started: bool


@frozen
class Known:
    """
    What the output already holds of a line.

    Args:
        digest: Of the content that stays under this identity.

        parts: Number of each of the line's events that are there, with the run that has it.

        closed: Those of these runs that have their terminal event.
    """

    digest: str
    parts: Mapping[int, str]
    closed: frozenset[str] = frozenset()


def missing_emits(entry: Entry, known: Known) -> list[Emit]:
    """
    Return the line's events that the output still lacks.

    Of two forms that exclude each other one is enough; an event that depends on the agent having started is not missed
    when a later one of the line is there; and a run that is closed misses no end: another line was it.

    Args:
        entry: The line.

        known: What the output holds of it.
    """
    present = {emit.only for emit in entry.emits if emit.part in known.parts}
    last = max(known.parts, default=-1)
    missing = []
    for emit in entry.emits:
        if emit.part in known.parts or any(emit.only in pair and present & pair for pair in _EITHER):
            continue
        if emit.only in {Only.AGENT_STARTED, Only.NOT_AGENT_STARTED} and emit.part < last:
            continue
        if emit.only in {Only.ENDS_RUN, Only.NOT_ENDS_RUN} and known.closed:
            continue
        missing.append(emit)
    return missing
