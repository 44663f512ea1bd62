"""What lies under some roots now, listed again and again while it changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from vinaya_bridge.files import LogFile, Notice, StreamNames, identities, walk

_MOST_LISTINGS: Final = 3

Key = tuple[int, int]
"""Device and inode: they name a file only as long as it exists."""


class Listed(NamedTuple):
    """
    A file in a listing.

    Attributes:
        root: The index of the root that it was reached through.

        relative: Its path relative to that root.

        file: The file.

        status: Its status at the time of listing.
    """

    root: int
    relative: str
    file: LogFile
    status: os.stat_result


class Roots:
    """
    Files and directories that are listed over and over.

    Args:
        roots: The files and directories; they need not exist.

        exclude: A directory that is not searched.
    """

    def __init__(self, roots: Sequence[str | Path], *, exclude: Path | None) -> None:
        self._roots = [os.fspath(root) for root in roots]
        self._exclude = exclude
        self._names = StreamNames(self._roots)
        self._last: dict[Key, Listed] = {}

    def list_files(self) -> tuple[dict[Key, Listed], list[Notice]]:
        """
        List all files; again while names change, since a file that is renamed meanwhile may be in no listing.

        Returns:
            The files, and what was passed over or could not be listed.
        """
        for _ in range(_MOST_LISTINGS):
            before = self._last
            self._last, notices = self._list_once()
            if _names(self._last) == _names(before):
                break
        return self._last, notices

    def _list_once(self) -> tuple[dict[Key, Listed], list[Notice]]:
        seen = set() if self._exclude is None else identities([self._exclude])
        listing: dict[Key, Listed] = {}
        notices: list[Notice] = []
        for root, argument in enumerate(self._roots):
            for found in walk(argument, seen):
                if isinstance(found, Notice):
                    notices.append(found)
                    continue
                key = (found.status.st_dev, found.status.st_ino)
                before = self._last.get(key)
                if before is not None and (before.root, before.relative) == (root, found.relative):
                    file = before.file  # described anew for each poll, a thousand files would cost 10 ms
                else:
                    file = self._names.log_file(found, root)
                listing[key] = Listed(root, found.relative, file, found.status)
        return listing, notices


def _names(listing: dict[Key, Listed]) -> dict[Key, str]:
    return {key: listed.file.name for key, listed in listing.items()}
