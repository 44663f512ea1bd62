"""The sink's clock: the wall's, or that of the lines themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ethogram import CanonicalDraft
from ethogram.sink import BulkSink
from vinaya_bridge.log.moment import instant_us, timestamp

__all__ = ["Stamp", "timestamp"]


class Stamp:
    """
    Gives ``ts``: a sink's clock, told what time it is, or with ``source`` what time each draft was captured.

    It reads no clock itself, so that work handed to another process gives what it would have given here.

    Args:
        source: Whether ``ts`` is the time of the line.
    """

    def __init__(self, *, source: bool) -> None:
        self._source = source
        self.now = timestamp(0)
        """The time; with ``source``, that of drafts without a line of their own."""

    def __call__(self) -> str:
        """Return the time now."""
        return self.now

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
        without_line = self.now
        for captured_at, same in groupby(drafts, key=lambda draft: draft.captured_at):
            instant = None if captured_at is None else instant_us(captured_at)
            if captured_at is None:
                self.now = without_line
            elif instant is not None:  # a time that cannot be read counts as the latest before it
                self.now = timestamp(instant)
            sink.append_canonical(run_id, list(same))
        self.now = without_line
