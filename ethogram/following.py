"""Replay a run, then follow it until it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

from attrs import define

from ethogram.envelope import Event
from ethogram.sink import Source
from ethogram.vocabulary import RUN_FINISHED

FollowEnd: TypeAlias = Literal["finished", "expired"]
"""Why following ended: the run did, or the time was up and the caller may resume from the cursor."""


@define
class Follower:
    """
    The events of one run as an iterable that knows where it is: what `follow` returns.

    Args:
        source: Where the run is stored.

        run_id: The run.

        cursor: The seq of the last event given.

        sleep: Waits so many seconds.

        poll_interval_seconds: How long to wait between polls.

        expired: Says whether the time is up.

        end: Why it ended; None while it has not.
    """

    source: Source
    run_id: str
    cursor: int
    sleep: Callable[[float], object]
    poll_interval_seconds: float
    expired: Callable[[], bool]
    end: FollowEnd | None = None

    def __iter__(self) -> Iterator[Event]:
        """
        Give events from the cursor on.

        Yields:
            Events in order of seq, each once.

        Raises:
            MalformedLog: What is stored is broken.
            SinkUnavailable: It could not be read.
        """
        self.end = None
        finished = self._ends_at_cursor()
        while not finished:
            for event in self.source.read_from(self.run_id, self.cursor):
                self.cursor = event.seq
                finished = event.type == RUN_FINISHED
                yield event
            if not finished:
                if self.expired():
                    self.end = "expired"
                    return
                self.sleep(self.poll_interval_seconds)
        self.end = "finished"

    def _ends_at_cursor(self) -> bool:
        """Whether the event at the cursor is the run's end: a caller may resume after it."""
        if self.cursor == 0:
            return False
        last = next(iter(self.source.read_from(self.run_id, self.cursor - 1)), None)
        return last is not None and last.type == RUN_FINISHED


def follow(
    source: Source,
    run_id: str,
    after: int = 0,
    *,
    sleep: Callable[[float], object],
    poll_interval_seconds: float = 0.25,
    expired: Callable[[], bool] = lambda: False,
) -> Follower:
    """
    Replay a run, then follow it until it ends.

    An end is never invented: without ``run.finished`` it goes on until the time is up. A fault of the
    source is raised as it is, and the cursor stays, so that iterating again goes on where it was.

    Args:
        source: Where the run is stored. Each poll reads the run from its start in a source that keeps plain
            files.

        run_id: The run. It need not be known yet.

        after: An exclusive cursor: the seq of the last event already handled, 0 for all.

        sleep: Waits so many seconds: ``time.sleep``, or the ``wait`` of a ``threading.Event``.

        poll_interval_seconds: How long to wait between polls.

        expired: Says whether the time is up; asked after each poll that did not end the run.

    Returns:
        An iterable of events that knows its cursor and why it ended: ``finished``, or ``expired``, after
        which the caller may resume from the cursor.
    """
    return Follower(source, run_id, after, sleep, poll_interval_seconds, expired)
