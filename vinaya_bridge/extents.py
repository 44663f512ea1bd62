"""Extents: what of an input one worker reads at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from attrs import frozen

from vinaya_bridge.content import Compression, NotRegularError, open_regular
from vinaya_bridge.files import LogFile

_LEAST_BYTES = 1 << 20
_MOST_BYTES = 16 << 20
_TASKS_A_JOB = 6

_LOOK_BYTES = 1 << 16


@frozen
class Extent:
    """
    A file, or the part of one between two line ends.

    Args:
        file: The file.

        number: Index of the file among those of the call.

        size_bytes: How long it is, as it is stored.

        start: Where it starts in the file, in bytes.

        end: Where it ends; None: at the end of the file.
    """

    file: LogFile
    number: int
    size_bytes: int
    start: int = 0
    end: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole file."""
        return self.start == 0 and self.end is None


def extent_bytes_for(total_bytes: int, jobs: int) -> int:
    """
    Return how much a worker should read for one task: enough to be worth it, little enough to share work evenly.

    Args:
        total_bytes: The size of the input.

        jobs: How many workers there are.
    """
    return min(_MOST_BYTES, max(_LEAST_BYTES, total_bytes // (_TASKS_A_JOB * jobs)))


def whole_files(files: Iterable[LogFile]) -> list[Extent]:
    """
    Return one extent a file.

    Args:
        files: The files, in order.
    """
    return [Extent(file, number, _size(file)) for number, file in enumerate(files)]


def cut(extents: Iterable[Extent], extent_bytes: int) -> list[Extent]:
    """
    Cut large files behind newlines; compressed ones stay whole.

    Args:
        extents: Whole files.

        extent_bytes: How long a part is, at least.

    Returns:
        The parts, in order.
    """
    found: list[Extent] = []
    for extent in extents:
        ends = _line_ends(extent, extent_bytes) if extent.size_bytes >= 2 * extent_bytes else []
        starts = [0, *ends]
        for start, end in zip(starts, [*ends, None], strict=True):
            size = (extent.size_bytes if end is None else end) - start
            found.append(Extent(extent.file, extent.number, size, start, end))
    return found


def tasks_of(extents: Sequence[Extent], extent_bytes: int) -> list[list[int]]:
    """
    Gather small extents into tasks.

    Args:
        extents: The extents, in order.

        extent_bytes: How much a task reads, at least.

    Returns:
        Of each task the indices of its extents; all of them, in order.
    """
    tasks: list[list[int]] = []
    held_bytes = extent_bytes
    for index, extent in enumerate(extents):
        if held_bytes >= extent_bytes:
            tasks.append([])
            held_bytes = 0
        tasks[-1].append(index)
        held_bytes += extent.size_bytes
    return tasks


def _size(file: LogFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:
        return 0


def _line_ends(extent: Extent, extent_bytes: int) -> list[int]:
    """Where to cut: offsets just behind a newline, none of them at the end of the file."""
    if extent.file.compression is not Compression.NONE:
        return []
    try:
        descriptor, status = open_regular(extent.file.path)
    except (OSError, NotRegularError):
        return []  # whoever reads it will say so
    ends: list[int] = []
    try:
        at = extent_bytes
        while at + extent_bytes <= status.st_size:
            block = os.pread(descriptor, _LOOK_BYTES, at)
            newline = block.find(b"\n")
            if newline < 0:
                at += len(block) or status.st_size
                continue
            ends.append(at + newline + 1)
            at += newline + 1 + extent_bytes
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return ends
