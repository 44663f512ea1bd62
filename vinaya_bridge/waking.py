"""Waking early: a watcher's hint that a log changed. Polling decides; a hint that never comes costs an interval."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread

from vinaya_bridge.errors import Code, ConfigurationError

NO_WATCHER = Code(
    "VB408",
    "the watcher is not installed",
    "A watcher only wakes a tail before its next look; it needs a package that is not always there. Install it with "
    "pip install 'vinaya-bridge[watch]', or leave --watch out: polling finds all, after --poll-ms at the latest.",
)
CODES = (NO_WATCHER,)

_MERGED_WITHIN_MS = 5
_LOOKS_FOR_ROOTS_SECONDS = 1.0


class Waker:
    """
    Waits for the next look, and cuts the wait short when a file under the roots changes.

    A root that does not exist yet is watched once it does. Changes that the system does not tell (a network file
    system, a lost event) are found by the next poll.

    Args:
        roots: Directories and files.

        stop: Ends the watching, and every wait.

    Raises:
        ConfigurationError: The package that watches is not installed.
    """

    def __init__(self, roots: Sequence[str | Path], stop: Event) -> None:
        if find_spec("watchfiles") is None:
            raise ConfigurationError(
                NO_WATCHER,
                "it needs a package that is not installed",
                place="--watch",
                remedy="pip install 'vinaya-bridge[watch]', or leave --watch out",
            )
        self._roots = [Path(root) for root in roots]
        self._stop = stop
        self._changed = Event()
        Thread(target=self._watch, daemon=True, name="watcher").start()

    def wait(self, seconds: float) -> None:
        """
        Wait until something changed, for *seconds* at most.

        Args:
            seconds: The pause between two looks.
        """
        self._changed.wait(seconds)
        self._changed.clear()

    def _watch(self) -> None:
        from watchfiles import watch  # noqa: PLC0415 - only who asks for a watcher needs the package

        while not self._stop.is_set():
            there = [root for root in self._roots if root.exists()]
            if not there:
                self._stop.wait(_LOOKS_FOR_ROOTS_SECONDS)
                continue
            for _ in watch(
                *there,
                stop_event=self._stop,
                step=_MERGED_WITHIN_MS,
                debounce=_MERGED_WITHIN_MS,
                watch_filter=None,
                yield_on_timeout=len(there) < len(self._roots),
                raise_interrupt=False,
            ):
                self._changed.set()
                if len(there) < sum(root.exists() for root in self._roots):
                    break
        self._changed.set()
