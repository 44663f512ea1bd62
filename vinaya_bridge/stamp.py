"""The sink's clock: the wall's, or that of the lines themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby

from ethogram import CanonicalDraft
from ethogram.clock import Clock
from ethogram.sink import BulkSink

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp(instant_us: int) -> str:
    """
    Return an instant as sinks write it: UTC with milliseconds and ``Z``.

    Args:
        instant_us: Microseconds since 1970.
    """
    moment = _EPOCH + timedelta(microseconds=instant_us)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Stamp:
    """
    Gives ``ts``: a sink's clock, told with ``source`` what time each draft was captured.

    Args:
        clock: The wall's.

        source: Whether ``ts`` is the time of the line instead.
    """

    def __init__(self, clock: Clock, *, source: bool) -> None:
        self._clock = clock
        self._source = source
        self._now = timestamp(0)
        self.latest_us: int | None = None
        """The time of drafts without a line of their own."""

    def __call__(self) -> str:
        """Return the time now."""
        return self._now if self._source else self._clock()

    def append(self, sink: BulkSink, run_id: str, drafts: Sequence[CanonicalDraft]) -> None:
        """
        Append drafts to a sink whose clock this is, each stamped with its own time where that is wanted.

        Args:
            sink: Where to.

            run_id: The run.

            drafts: In order; none appends nothing.
        """
        if not self._source:
            if drafts:
                sink.append_canonical(run_id, drafts)
            return
        for captured_at, same in groupby(drafts, key=lambda draft: draft.captured_at):
            self._now = captured_at or timestamp(self.latest_us or 0)
            sink.append_canonical(run_id, list(same))
