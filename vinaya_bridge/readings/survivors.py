"""One line for each identity. Source: Vinaya Log reference, Reading rules: Identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from vinaya_bridge.log import EventLine
from vinaya_bridge.order import precedence

T = TypeVar("T")


class _Place(NamedTuple):
    """Where a line stands in order."""

    identity: str
    process: str
    seq: int
    instant_us: int | None


class Survivors(Generic[T]):
    """
    Keeps what a question needs of each line, once for each identity.

    The same identity with the same content is one event. Of several contents under one identity the least by time,
    process, seq and digest stays, whatever the order in which they come.

    Memory grows with the number of identities: about 0.6 kB each.

    Args:
        take: What to keep of a line; None: the line has no part in the question. It still holds its identity.

    Attributes:
        duplicates: How many lines repeated the content that stays.

        conflicts: How many lines lost against other content under their identity.
    """

    def __init__(self, take: Callable[[EventLine], T | None]) -> None:
        self.duplicates = 0
        self.conflicts = 0
        self._take = take
        self._kept: dict[str, tuple[str, tuple[bool, int, str, int, str], T | None]] = {}

    def add(self, line: EventLine) -> None:
        """
        Meet a line.

        Args:
            line: The line.
        """
        digest, kept = line.digest, self._kept.get(line.identity)
        if kept is not None:
            if kept[0] == digest:
                self.duplicates += 1
                return
            self.conflicts += 1
        place = _Place(line.identity, line.process, line.record.meta.seq, line.instant_us)
        rank = precedence(place, digest)
        if kept is None or rank < kept[1]:
            self._kept[line.identity] = (digest, rank, self._take(line))

    def items(self) -> list[T]:
        """
        What stayed.

        Returns:
            One item for each identity that has a part in the question, in the order first met.
        """
        return [item for _, _, item in self._kept.values() if item is not None]
