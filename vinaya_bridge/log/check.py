"""Check: one row a line, which says what the line is and, where it is refused, why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal, Protocol, TypeAlias

from attrs import asdict, frozen

from vinaya_bridge.log.codes import NOT_JSON, NOT_UTF8, TORN_FRAGMENT
from vinaya_bridge.log.line import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.pieces import Piece, split_pieces

Status: TypeAlias = Literal["event", "unknown_version", "refused", "blank"]
"""What a line is, in one word."""


class Line(Protocol):
    """A physical line of a file."""

    @property
    def number(self) -> int:
        """Its number in the file, from 1."""

    @property
    def offset(self) -> int:
        """Where its first byte is, in bytes from the start of the content."""

    @property
    def record(self) -> bytes:
        """What to read: its bytes without the newline."""


@frozen
class CheckedLine:
    """
    What one line is, or one piece of a line that holds several.

    Args:
        file: The file, as it is to be shown.

        line: The line's number, from 1; the same for all pieces of a line.

        offset: Where the line or the piece begins, in bytes.

        status: What it is.

        identity: The identity, where it can be read.

        schema: The header schema, where it can be read: a number, or ``Infinity`` for one beyond double range.

        kind: The family, where it is one of the ten.

        event: The event, where it is one of the family's.

        code: Of the refusal; None: it is not refused.

        path: The JSON path of the fault; None: it is not refused.

        reason: The fault in one clause; None: it is not refused.
    """

    file: str
    line: int
    offset: int
    status: Status
    identity: str | None = None
    schema: float | str | None = None
    kind: str | None = None
    event: str | None = None
    code: str | None = None
    path: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, str | int | float | None]:
        """
        The row as decoded JSON.

        Returns:
            All fields, under their names.
        """
        return asdict(self)


def check_lines(reader: Reader, file: str, lines: Iterable[Line]) -> Iterator[CheckedLine]:
    """
    Checks lines, each by itself: no line is compared with another.

    Args:
        reader: What reads a line.

        file: The file's name, for the rows.

        lines: The lines of one file.

    Yields:
        One row a line; of a line that holds a torn record and a whole one, or several whole ones, one row a piece.
    """
    for line in lines:
        for piece, verdict in read_pieces(reader, line.record):
            yield _row(file, line.number, line.offset + piece.start, verdict)


def read_pieces(reader: Reader, raw: bytes) -> Iterator[tuple[Piece, Verdict]]:
    """
    Reads a physical line, and each of its pieces by itself where it is not one JSON value.

    Args:
        reader: What reads a line.

        raw: The line's bytes without the newline.

    Yields:
        Each piece with what it is; the line itself where it is one piece.
    """
    verdict = reader.read(raw)
    pieces = split_pieces(raw) if _is_unreadable(verdict) else []
    if len(pieces) < 2:
        yield Piece(0, len(raw)), verdict
        return
    for piece in pieces:
        part = reader.read(raw[piece.start : piece.start + piece.length])
        if _is_unreadable(part):
            part = Refused(TORN_FRAGMENT, "$", "the rest of this record was never written")
        yield piece, part


def _is_unreadable(verdict: Verdict) -> bool:
    return isinstance(verdict, Refused) and verdict.code in (NOT_JSON, NOT_UTF8)


def _row(file: str, number: int, offset: int, verdict: Verdict) -> CheckedLine:
    match verdict:
        case EventLine():
            return CheckedLine(
                file, number, offset, "event", verdict.identity, verdict.schema, verdict.kind, verdict.event
            )
        case UnknownVersion():
            schema = "Infinity" if math.isinf(verdict.schema) else verdict.schema
            return CheckedLine(file, number, offset, "unknown_version", verdict.identity, schema)
        case Refused():
            return CheckedLine(
                file,
                number,
                offset,
                "refused",
                verdict.identity,
                verdict.schema,
                verdict.kind,
                verdict.event,
                verdict.code.id,
                verdict.path,
                verdict.reason,
            )
        case Blank():
            return CheckedLine(file, number, offset, "blank")
