"""One sink that others follow."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from attrs import frozen

from ethogram.envelope import Event, EventDraft
from ethogram.errors import EthogramError
from ethogram.sink import Sink


class Mirror(Protocol):
    """Takes events after they are stored: a sink, or anything else that can forward one."""

    def forward(self, event: Event) -> None:
        """
        Take a stored event.

        Args:
            event: The event.

        Raises:
            EthogramError: It cannot be taken; no more are offered then.
            OSError: The system refused; no more are offered then.
        """


@frozen
class MirrorFault:
    """
    Why a mirror was dropped.

    Args:
        mirror: The mirror.

        event: The first event that it did not take.

        fault: What it raised.
    """

    mirror: Mirror
    event: Event
    fault: EthogramError | OSError


class TeeSink:
    """
    Stores in a primary sink, then offers each stored event to mirrors.

    The primary's faults are the caller's. A mirror's fault is recorded once, the mirror is dropped, and the
    run goes on: what a mirror shows was stored before.

    Args:
        primary: Where events are stored.

        mirrors: What follows it.
    """

    def __init__(self, primary: Sink, *mirrors: Mirror) -> None:
        self._primary = primary
        self._mirrors = list(mirrors)
        self._lock = RLock()
        self._faults: list[MirrorFault] = []

    @property
    def mirror_faults(self) -> tuple[MirrorFault, ...]:
        """The mirrors that were dropped, in that order."""
        return tuple(self._faults)

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store a draft in the primary: see `Sink.append`; then show it to the mirrors."""
        with self._lock:
            event = self._primary.append(run_id, draft)
            self._show(event)
            return event

    def forward(self, event: Event) -> None:
        """Store a stamped event in the primary: see `Sink.forward`; then show it to the mirrors."""
        with self._lock:
            self._primary.forward(event)
            self._show(event)

    def last_seq(self, run_id: str) -> int:
        """How far a run has come in the primary: see `Sink.last_seq`."""
        return self._primary.last_seq(run_id)

    def _show(self, event: Event) -> None:
        for mirror in list(self._mirrors):
            try:
                mirror.forward(event)
            except (EthogramError, OSError) as fault:
                self._mirrors.remove(mirror)
                self._faults.append(MirrorFault(mirror, event, fault))
