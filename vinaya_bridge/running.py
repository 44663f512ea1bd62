"""Running a tail: look, tell, wait, until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll

Tell = Callable[[TailPoll], None]
"""Told of each poll."""

Wait = Callable[[float], object]
"""Waits for some seconds, or less."""


def run(
    tail: Tail, *, stop: Event, poll_seconds: float, once: bool, tell: Tell, wait: Wait | None = None
) -> None:
    """
    Poll until *stop* is set, or with *once* until all that is there is read and settled.

    The line in hand is always finished: *stop* is looked at between polls.

    Args:
        tail: What is run; the caller closes it.

        stop: Set by a signal handler.

        poll_seconds: Pause between two looks at the files.

        once: Whether to end when everything is read; then nothing waits for real time to pass.

        tell: Told of each poll.

        wait: Waits between two looks; None waits for *stop* (`vinaya_bridge.waking.Waker` can wake earlier).

    Raises:
        SinkError: The output cannot be written; the position has not moved.
    """
    while not stop.is_set():
        poll = tail.poll()
        tell(poll)
        if poll.more:
            continue
        if once:
            tell(tail.settle())
            return
        (wait or stop.wait)(poll_seconds)
