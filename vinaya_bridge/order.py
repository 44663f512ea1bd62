"""Order: one process's lines by seq, processes merged by time (design, section 4: Order)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

_BEFORE_ALL = -(2**63)


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
    latest: dict[str, int] = {}
    keyed = []
    for line in sorted(lines, key=lambda line: (line.process, line.seq, line.identity)):
        process = line.process
        seen = latest.get(process, _BEFORE_ALL)
        instant = line.instant_us
        if instant is not None and instant > seen:
            latest[process] = seen = instant
        keyed.append((seen, process, line.seq, line.identity, line))
    keyed.sort(key=lambda key: key[:4])
    return [key[4] for key in keyed]


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
