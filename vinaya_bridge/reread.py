"""Kept lines, read again: those that gave no events, or whose events could not carry them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vinaya_bridge.kept import REPLAYED, KeptRow, kept_bytes, kept_rows
from vinaya_bridge.ledger import Term
from vinaya_bridge.lines import PhysicalLine, record_of
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.reading import read_pieces


class KeptEvent(NamedTuple):
    """
    A kept line that is an event.

    Args:
        row: Where it lay, and why it is kept.

        line: What it says, redacted.

        record: Its bytes, not redacted; of a line that lay in a wrapper, those of the line inside.
    """

    row: KeptRow
    line: EventLine
    record: bytes


def kept_events(folder: Path, reader: Reader) -> Iterator[KeptEvent]:
    """
    Read kept lines again and give those that are events.

    Args:
        folder: ``OUT/kept``.

        reader: Reads a line.

    Yields:
        The events, in the order in which they were kept.
    """
    for row in kept_rows(folder):
        if row.why != REPLAYED:
            for piece in read_pieces(reader, kept_line(folder, row)):
                if isinstance(piece.verdict, EventLine):
                    yield KeptEvent(row, piece.verdict, piece.raw)


def kept_line(folder: Path, row: KeptRow) -> PhysicalLine:
    """
    Return a kept line as reading needs it: what lay in a wrapper is taken out of it.

    Args:
        folder: ``OUT/kept``.

        row: Its row.
    """
    raw = record_of(row.file, kept_bytes(folder, row))
    return PhysicalLine(row.line or 0, row.offset, raw, row.why != Term.PENDING, raw)
