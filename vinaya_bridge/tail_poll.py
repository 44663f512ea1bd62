"""What a tail says of one look at the files, and of where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from attrs import Factory, define, frozen

from vinaya_bridge.files import Notice
from vinaya_bridge.follow import Lag
from vinaya_bridge.gaps import Gap
from vinaya_bridge.relay import Refusal
from vinaya_bridge.runs import Append


@define
class Batch:
    """
    What one poll is about to make durable.

    Args:
        appends: The events.

        refusals: What the bridge's own run tells, by `Refusal.key`.

        refused: Lines that were kept, with file, line and reason.
    """

    appends: list[Append] = Factory(list)
    refusals: dict[tuple[str, str], Refusal] = Factory(dict)
    refused: list[tuple[str, int | None, str]] = Factory(list)


@frozen
class TailPoll:
    """
    What one poll did.

    Args:
        new: Identities of the lines of which the first event became durable in this poll, in order.

        gaps: What the log once held, or may have held, and can no longer be read.

        notices: What is wrong with an input.

        refused: Lines that were kept in this poll, with file, line and reason.

        opened: Runs that started.

        finished: Runs that ended.

        more: Whether there is more to read at once.
    """

    new: list[str]
    gaps: list[Gap]
    notices: list[Notice]
    refused: list[tuple[str, int | None, str]]
    opened: list[str]
    finished: list[str]
    more: bool


def joined(polls: Sequence[TailPoll]) -> TailPoll:
    """
    Return several polls as one.

    Args:
        polls: In order, at least one.
    """
    return TailPoll(
        new=[identity for poll in polls for identity in poll.new],
        gaps=[gap for poll in polls for gap in poll.gaps],
        notices=[notice for poll in polls for notice in poll.notices],
        refused=[line for poll in polls for line in poll.refused],
        opened=[run_id for poll in polls for run_id in poll.opened],
        finished=[run_id for poll in polls for run_id in poll.finished],
        more=polls[-1].more,
    )


class Status(NamedTuple):
    """
    Where a tail stands.

    Args:
        lag: Of its follower.

        lines: The equation's terms of this call.

        events: How many events were appended in this call.

        last_event: Type of the last event and its ``capturedAt``, or None.

        waiting: Lines that wait for a hole to be filled.
    """

    lag: Lag
    lines: dict[str, int]
    events: int
    last_event: tuple[str, str] | None
    waiting: int
