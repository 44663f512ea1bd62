"""The growing files that are followed: known by their content, with a bounded number of them held open."""

from __future__ import annotations

import resource
import sys
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Final

from vinaya_bridge.content import reason
from vinaya_bridge.files import UNREADABLE, Notice
from vinaya_bridge.growing import GrowingFile
from vinaya_bridge.listing import Key
from vinaya_bridge.positions import (
    FINGERPRINT_BYTES,
    START,
    Mark,
    Position,
    SavedFile,
    first_line_mark,
    part_mark,
)

_REMEMBERED_POSITIONS: Final = 1024


class FollowedFiles:
    """
    Growing files, their descriptors and the positions in them.

    Args:
        max_open: How many descriptors to hold, and at most half of those that the process may have; those of
            removed files are kept above it.

    Attributes:
        growing: The files by device and inode.

        faults: What went wrong in this poll.
    """

    def __init__(self, max_open: int) -> None:
        self.growing: dict[Key, GrowingFile] = {}
        self.faults: list[Notice] = []
        self._max_open = max(1, min(max_open, _descriptors_to_spare()))
        self._told: set[Notice] = set()
        self._open: dict[GrowingFile, None] = {}  # in the order of their last use
        self._remembered: deque[Position] = deque(maxlen=_REMEMBERED_POSITIONS)

    def take_new_faults(self) -> list[Notice]:
        """
        Empty the list of faults.

        Returns:
            Those that were not there when it was last emptied: a fault that stays is told once.
        """
        faults = list(dict.fromkeys(self.faults))
        new = [each for each in faults if each not in self._told]
        self._told = set(faults)
        self.faults.clear()
        return new

    def known_positions(self, saved: Iterable[SavedFile]) -> dict[Mark, list[Position]]:
        """
        Gather up to where contents were consumed.

        Args:
            saved: What a saved state says of files that were not found again.

        Returns:
            By fingerprint, the positions in files that are followed, were followed, or are saved.
        """
        positions: dict[Mark, list[Position]] = defaultdict(list)
        followed = (each.position for each in self.growing.values())
        for position in (*followed, *self._remembered, *(each.position for each in saved)):
            if position.first is not None:
                positions[position.first].append(position)
        return positions

    def resume(self, growing: GrowingFile, positions: dict[Mark, list[Position]]) -> None:
        """
        Set a file to the furthest known position that its content bears out, else to its start.

        Args:
            growing: The file; its fingerprint is taken anew.

            positions: What `known_positions` gave before this poll read anything.

        Raises:
            OSError: When the file cannot be read.
        """
        descriptor = self.descriptor(growing)
        growing.fingerprint = first_line_mark(descriptor)
        known = () if growing.fingerprint is None else positions.get(growing.fingerprint, ())
        held = (each for each in known if each.holds(descriptor))
        growing.restart(max(held, key=lambda each: each.offset, default=START))
        # A long first line has its fingerprint before it is complete.
        is_whole = growing.fingerprint is not None and growing.fingerprint.length < FINGERPRINT_BYTES
        growing.part = None if is_whole or growing.is_resumed else part_mark(descriptor)

    def is_carried(self, position: Position, *, without: GrowingFile | None = None) -> bool:
        """
        Tell whether the content that was consumed up to a position stands in a file that is followed.

        Args:
            position: The position.

            without: A file that does not count.

        Returns:
            Whether it does; never where nothing was consumed.
        """
        if position.first is None:
            return False
        for growing in self.growing.values():
            if growing is without or growing.fingerprint != position.first:
                continue
            try:
                if position.holds(self.descriptor(growing)):
                    return True
            except OSError as error:
                self.fail(growing, error)
        return False

    def has_part(self, part: Mark) -> bool:
        """
        Tell whether some file begins with the bytes of an unfinished first line.

        Args:
            part: The mark of these bytes.

        Returns:
            Whether one does.
        """
        for growing in self.growing.values():
            try:
                if part.is_at(self.descriptor(growing), 0):
                    return True
            except OSError as error:
                self.fail(growing, error)
        return False

    def remember(self, position: Position) -> None:
        """
        Keep a position for content that comes back, as after a file system was away for a while.

        Args:
            position: Up to where the content was consumed.
        """
        if position.first is not None:
            self._remembered.append(position)

    def drop(self, key: Key) -> None:
        """
        Follow a file no longer, and remember its position.

        Args:
            key: Its device and inode.
        """
        growing = self.growing.pop(key)
        growing.close()
        self._open.pop(growing, None)
        self.remember(growing.position)

    def close(self) -> None:
        """Give all descriptors back."""
        for growing in self._open:
            growing.close()
        self._open.clear()

    def descriptor(self, growing: GrowingFile) -> int:
        """
        Open a file if need be, and close the one whose last use is longest ago if there are too many.

        Args:
            growing: The file.

        Returns:
            Its descriptor.

        Raises:
            OSError: When it cannot be opened.
        """
        descriptor = growing.descriptor
        self._open.pop(growing, None)
        self._open[growing] = None
        if len(self._open) > self._max_open:
            others = (each for each in self._open if each.missing_since is None and each is not growing)
            idle = next(others, None)
            if idle is not None:
                idle.close()
                del self._open[idle]
        return descriptor

    def fail(self, growing: GrowingFile, error: OSError) -> None:
        """
        Note a fault and have the file looked at again in the next poll; a name that is gone is no fault.

        A descriptor can stay bad for ever, as one of a network file system whose server came back, so the file is
        opened anew while it has a name.

        Args:
            growing: The file.

            error: What went wrong.
        """
        growing.look_again()
        if growing.missing_since is None:
            growing.close()
            self._open.pop(growing, None)
        if not isinstance(error, FileNotFoundError):
            self.faults.append(Notice(growing.file.name, UNREADABLE, reason(error)))


def _descriptors_to_spare() -> int:
    """Half of the descriptors that the process may have: the output needs some too."""
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft_limit == resource.RLIM_INFINITY else soft_limit // 2
