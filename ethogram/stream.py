"""Events as lines on a stream: standard output, a pipe, an inherited descriptor."""

from __future__ import annotations

from threading import RLock
from typing import Protocol

from ethogram.canonical import serialise_event
from ethogram.envelope import Event
from ethogram.faults import SinkUnavailable

_FACTS = ("run.", "control.")


class ByteStream(Protocol):
    """What a `LineMirror` writes to: a binary file, a socket's file, ``sys.stdout.buffer``."""

    def write(self, data: bytes, /) -> int | None:
        """
        Take bytes.

        Args:
            data: The bytes.

        Returns:
            How many were taken, where the stream says so.
        """

    def flush(self) -> None:
        """Pass on what was taken."""


class LineMirror:
    """
    Writes each event as its canonical line and passes it on at once: a mirror for `ethogram.tee.TeeSink`.

    It stores nothing and checks nothing: the primary has.

    Args:
        stream: Where to write. It is not closed.

        facts_only: Whether only ``run.*`` and ``control.*`` events are written, without what an agent said.
    """

    def __init__(self, stream: ByteStream, *, facts_only: bool = False) -> None:
        self._stream = stream
        self._facts_only = facts_only
        self._lock = RLock()

    def forward(self, event: Event) -> None:
        """
        Write an event.

        Args:
            event: The event.

        Raises:
            SinkUnavailable: The stream refused: its reader is gone, or the disk is full.
        """
        if self._facts_only and not event.type.startswith(_FACTS):
            return
        with self._lock:
            try:
                self._stream.write(serialise_event(event) + b"\n")
                self._stream.flush()
            except (OSError, ValueError) as fault:
                # ValueError: somebody has closed it.
                number = fault.errno if isinstance(fault, OSError) else None
                message = "the stream took no more"
                raise SinkUnavailable("stream", number or 0, message, event.run_id) from fault
