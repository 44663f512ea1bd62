"""What lies under some roots now, listed again and again while it changes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from attrs import evolve

from vinaya_bridge.content import printable
from vinaya_bridge.files import MISSING, UNREADABLE, LogFile, Notice, StreamNames, identities, walk

_MOST_LISTINGS: Final = 3

Key = tuple[int, int]
"""Device and inode: they name a file only as long as it exists."""


class Listed(NamedTuple):
    """
    A file in a listing.

    Attributes:
        root: The index of the root that it was reached through.

        relative: Its path relative to that root.

        file: The file, its place filled in.

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
        self._missing: set[str] = set()
        self._unlisted: set[str] = set()

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

    def is_hidden(self, place: str) -> bool:
        """
        Tell whether a file may be there although the last listing lacks it: it, or a directory on the way to it, could
        not be read.

        Args:
            place: See `LogFile`.
        """
        return _is_below(place, self._unlisted)

    def may_come_back(self, place: str) -> bool:
        """
        Tell whether nothing is known of a file that the last listing lacks: it is hidden, or its root is not there.

        Args:
            place: See `LogFile`; empty: any of the roots may be its own.
        """
        nowhere = self._unlisted | self._missing
        return _is_below(place, nowhere) if place else bool(nowhere)

    def _list_once(self) -> tuple[dict[Key, Listed], list[Notice]]:
        seen = set() if self._exclude is None else identities([self._exclude])
        listing: dict[Key, Listed] = {}
        notices: list[Notice] = []
        self._missing, self._unlisted = set(), set()
        for root, argument in enumerate(self._roots):
            for found in walk(argument, seen):
                if isinstance(found, Notice):
                    notices.append(found)
                    self._note(found, argument)
                    continue
                key = (found.status.st_dev, found.status.st_ino)
                before = self._last.get(key)
                if before is not None and (before.root, before.relative) == (root, found.relative):
                    file = before.file  # described anew for each poll, a thousand files would cost 10 ms
                else:
                    file = self._names.log_file(found, root)
                    file = evolve(file, place=_place(found.path))
                listing[key] = Listed(root, found.relative, file, found.status)
        return listing, notices

    def _note(self, notice: Notice, argument: str) -> None:
        """Remember what could not be listed."""
        if notice.code is MISSING:
            self._missing |= {_place(argument), _place(argument, is_resolved=True)}
        elif notice.code is UNREADABLE:
            is_root = notice.name == printable(argument)
            self._unlisted.add(_place(argument) if is_root else f"{_place(argument)}/{notice.name}")


def _place(path: str, *, is_resolved: bool = False) -> str:
    """Where a path leads, absolute, as text for comparing; a name that no file can have stands for itself."""
    try:
        return printable(os.path.realpath(path) if is_resolved else os.path.abspath(path))  # noqa: PTH100
    except ValueError:
        return printable(path)


def _is_below(place: str, these: set[str]) -> bool:
    """Tell whether a place is one of these, or below one."""
    return any(place == each or place.startswith(f"{each}/") for each in these)


def _names(listing: dict[Key, Listed]) -> dict[Key, str]:
    return {key: listed.file.name for key, listed in listing.items()}
