"""Order: one process's lines by seq, processes merged by time (design, section 4: Order)."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Protocol, TypeVar

BEFORE_ALL = -(2**63)
"""The time of a process of which none could be read yet."""

_PLACE_IN_PROCESS = attrgetter("process", "seq", "identity")


class Ordered(Protocol):
    """What the order of lines depends on."""

    @property
    def identity(self) -> str:
        """The line's identity."""

    @property
    def process(self) -> str:
        """What counts `seq`."""

    @property
    def seq(self) -> int:
        """The process's own counter."""

    @property
    def instant_us(self) -> int | None:
        """The line's time in microseconds since 1970, or None where it cannot be read."""


T = TypeVar("T", bound=Ordered)


def in_order(lines: Iterable[T]) -> list[T]:
    """
    Return the lines of one main run in the order in which they leave.

    Within a process the order is that of ``meta.seq``. Processes are merged by time, which never runs backwards
    inside a process: a line counts as no earlier than the latest line before it, and so does one whose time cannot
    be read. Ties go by process, then seq, then identity. The result depends on the set of lines alone.

    Args:
        lines: Lines of one main run, in any order, no identity twice.
    """
    lines = sorted(lines, key=_PLACE_IN_PROCESS)
    process: str | None = None
    seen = BEFORE_ALL
    times: list[int] = []
    for line in lines:
        if line.process != process:
            process, seen = line.process, BEFORE_ALL
        instant = line.instant_us
        if instant is not None and instant > seen:
            seen = instant
        times.append(seen)
    # Sorting keeps the order of equals, and that is already the one by process, seq and identity.
    return [lines[index] for index in sorted(range(len(lines)), key=times.__getitem__)]


def precedence(line: Ordered, digest: str) -> tuple[bool, int, str, int, str]:
    """
    Return the key by which one of several contents under one identity stays: the least by time, process, seq, digest.

    A line whose time cannot be read comes after those whose time can.

    Args:
        line: One of the conflicting lines.

        digest: Of its content.
    """
    instant = line.instant_us
    return (instant is None, instant or 0, line.process, line.seq, digest)
