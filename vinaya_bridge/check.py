"""Check: one row a line, which says what the line is and, where it is refused, why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias, get_args

from attrs import asdict, frozen

from vinaya_bridge.lines import LongLine, PhysicalLine
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.notices import TOO_LONG, too_long_message
from vinaya_bridge.reading import read_pieces

Status: TypeAlias = Literal["event", "unknown_version", "refused", "blank", "pending"]
"""What a line is, in one word; ``pending`` is the unfinished end of a file, or a line too long to be read."""

STATUSES: Final[tuple[Status, ...]] = get_args(Status)
"""All of them."""


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

        code: Of the refusal, or of a line that is too long; else None.

        path: The JSON path of the fault; None: it is not refused.

        reason: What is wrong, in one clause; None: nothing is.
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


def check_lines(reader: Reader, file: str, lines: Iterable[PhysicalLine]) -> Iterator[CheckedLine]:
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
        for piece in read_pieces(reader, line):
            yield _row(file, line.number, piece.offset, piece.verdict)


def check_long_line(file: str, line: LongLine, max_line_bytes: int) -> CheckedLine:
    """
    Return the row of a line that is too long to be read.

    Args:
        file: The file's name, for the row.

        line: The line.

        max_line_bytes: How long it might have been.
    """
    reason = too_long_message(line.length, max_line_bytes)
    return CheckedLine(file, line.number, line.offset, "pending", code=TOO_LONG.id, reason=reason)


def _row(file: str, number: int, offset: int, verdict: Verdict | None) -> CheckedLine:
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
        case None:
            return CheckedLine(file, number, offset, "pending")
