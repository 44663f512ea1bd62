"""Holes: lines that leave one in their process's seq wait a while for it to be filled (design, section 7)."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from itertools import islice

import msgspec

from vinaya_bridge.entry import Entry

_REMEMBERED_PROCESSES = 10_000
_SAVED_PROCESSES = 256
_MOST_WAITING = 20_000


class Arrival(msgspec.Struct, frozen=True, array_like=True):
    """
    An event line as it came from a file that is followed.

    Args:
        entry: The line, read and mapped.

        raw: Its bytes.

        file: Name of the file it was read from.

        line: Its number in that file, where it is known.

        stream: The stream that the file belongs to.

        since: The clock's time in seconds when it came.
    """

    entry: Entry
    raw: bytes
    file: str
    line: int | None
    stream: str
    since: float

    @property
    def identity(self) -> str:
        """Of the line."""
        return self.entry.identity

    @property
    def digest(self) -> str:
        """Of its content."""
        return self.entry.digest

    @property
    def process(self) -> str:
        """What counts its seq."""
        return self.entry.process

    @property
    def seq(self) -> int:
        """The process's own counter."""
        return self.entry.seq

    @property
    def instant_us(self) -> int | None:
        """Its time in microseconds since 1970."""
        return self.entry.instant_us


class Holes:
    """
    Holds back lines behind a hole in the seq of a process that was already seen.

    A hole is normal (a line can go elsewhere, or never land), so nothing waits for longer than the settle time. Only
    the processes seen last are remembered, ten thousand of them, and 256 over a restart: one that comes again after
    these counts as new. No more than twenty thousand lines wait, since they are part of every position: beyond that,
    as when a long history is read for the first time, the process that has waited longest goes on.

    Args:
        settle_seconds: How long a line waits at most.

        waiting: Lines that waited when an earlier run stopped.

        seen: What `seen` gave then.

        most_waiting: How many lines wait at most.
    """

    def __init__(
        self,
        settle_seconds: float,
        waiting: Iterable[Arrival] = (),
        seen: Iterable[tuple[str, int]] = (),
        *,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._most_waiting = most_waiting
        self._settle_seconds = settle_seconds
        self._last = OrderedDict(seen)
        self._waiting: dict[str, list[Arrival]] = defaultdict(list)
        for arrival in waiting:
            self._waiting[arrival.process].append(arrival)
            self._last.setdefault(arrival.process, -1)

    def waiting(self) -> list[Arrival]:
        """Return the lines that wait."""
        return [arrival for arrivals in self._waiting.values() for arrival in arrivals]

    def seen(self) -> list[tuple[str, int]]:
        """Return the processes seen last, each with the highest seq that was given."""
        newest = islice(reversed(self._last.items()), _SAVED_PROCESSES)
        return list(newest)[::-1]

    def admit(self, arrivals: Iterable[Arrival], now: float, lossy_streams: frozenset[str]) -> list[Arrival]:
        """
        Take the lines of one poll and give those whose turn has come, each process's by seq.

        Args:
            arrivals: The lines that are new.

            now: The clock's time in seconds.

            lossy_streams: The streams that reported a loss in this poll: what they lack will not come.
        """
        candidates = self._waiting
        self._waiting = defaultdict(list)
        for arrival in arrivals:
            candidates[arrival.process].append(arrival)
        admitted: list[Arrival] = []
        for process, lines in candidates.items():
            lines.sort(key=lambda arrival: (arrival.seq, arrival.identity))
            overdue = self._overdue(lines, now)
            for place, arrival in enumerate(lines):
                last = self._last.get(process)
                if not (
                    place < overdue
                    or last is None
                    or arrival.seq <= last + 1
                    or arrival.stream in lossy_streams
                ):
                    self._waiting[process] = lines[place:]
                    break
                admitted.append(arrival)
                self._saw(process, arrival.seq if last is None else max(last, arrival.seq))
        return admitted + self._surplus()

    def _surplus(self) -> list[Arrival]:
        """The lines of the processes that have waited longest, where too many wait."""
        surplus = sum(map(len, self._waiting.values())) - self._most_waiting
        released: list[Arrival] = []
        for process in sorted(self._waiting, key=self._waiting_since) if surplus > 0 else ():
            if len(released) >= surplus:
                break
            lines = self._waiting.pop(process)
            released += lines
            self._saw(process, max(self._last.get(process, -1), lines[-1].seq))
        return released

    def _waiting_since(self, process: str) -> float:
        return min(arrival.since for arrival in self._waiting[process])

    def _overdue(self, lines: list[Arrival], now: float) -> int:
        """How many lines, by seq, are at or before one that has waited for long enough."""
        for place in range(len(lines), 0, -1):
            if now - lines[place - 1].since >= self._settle_seconds:
                return place
        return 0

    def _saw(self, process: str, seq: int) -> None:
        self._last[process] = seq
        self._last.move_to_end(process)
        if len(self._last) > _REMEMBERED_PROCESSES:
            self._last.popitem(last=False)
