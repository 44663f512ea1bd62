"""What a physical line holds: one record nearly always, else its pieces, each with the reader's verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from vinaya_bridge.log import EventLine, Reader, Refused, Verdict
from vinaya_bridge.log.codes import NOT_JSON, NOT_UTF8, TORN_FRAGMENT
from vinaya_bridge.log.pieces import split_pieces

_UNREADABLE = (NOT_JSON, NOT_UTF8)


class Line(Protocol):
    """What reading needs of a physical line; see `vinaya_bridge.lines.PhysicalLine`."""

    @property
    def offset(self) -> int:
        """Where ``raw`` starts in its file, in bytes."""

    @property
    def raw(self) -> bytes:
        """The bytes as they lie in the file, without the newline."""

    @property
    def record(self) -> bytes:
        """What to parse: ``raw``, or the line inside a wrapper."""

    @property
    def ended(self) -> bool:
        """Whether a newline ended it."""


class Piece(NamedTuple):
    """
    A line, or a part of one that counts as a line of its own.

    Args:
        verdict: What it is; None for the unfinished end of a file, which may still become a record.

        raw: The bytes to keep where it cannot be converted.

        offset: Where these stand in the file, in bytes.
    """

    verdict: Verdict | None
    raw: bytes
    offset: int


def read_pieces(reader: Reader, line: Line) -> Iterator[Piece]:
    """
    Read a physical line.

    A torn fragment with a whole record behind it gives both; so do two whole records on one line. A last line without
    a newline is what it is where it ends with a whole record, else its last piece is pending (design, section 3).

    Args:
        reader: Reads a record.

        line: The line.

    Returns:
        Its pieces, at least one. Of a line inside a wrapper, each has the bytes and the place of the wrapper.
    """
    return split_verdict(reader, line, reader.read(line.record))


def split_verdict(reader: Reader, line: Line, verdict: Verdict) -> Iterator[Piece]:
    """
    Take a physical line apart that was read as one record.

    Args:
        reader: Reads a record.

        line: The line.

        verdict: What the reader made of the whole of it.

    Yields:
        Its pieces, as `read_pieces`.
    """
    if type(verdict) is EventLine or not _is_unreadable(verdict):
        yield Piece(verdict, line.raw, line.offset)
        return
    pieces = split_pieces(line.record)
    wrapped = line.record is not line.raw
    for number, (start, length) in enumerate(pieces, 1):
        record = line.record[start : start + length]
        if len(pieces) > 1:
            verdict = reader.read(record)
        unreadable = _is_unreadable(verdict)
        if unreadable and not line.ended and number == len(pieces):
            found: Verdict | None = None
        elif unreadable and len(pieces) > 1:
            found = Refused(TORN_FRAGMENT, "$", "the rest of this record was never written")
        else:
            found = verdict
        yield Piece(found, line.raw, line.offset) if wrapped else Piece(found, record, line.offset + start)


def _is_unreadable(verdict: Verdict) -> bool:
    return isinstance(verdict, Refused) and verdict.code in _UNREADABLE
