"""Tables for a terminal: aligned, with no frame."""

from __future__ import annotations

from collections.abc import Sequence

from vinaya_bridge.cli.words import printable


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """
    Align rows under headings.

    Args:
        headings: One for each column.

        rows: The cells; text from a log is made harmless here.

        right: The headings of the columns that are aligned to the right.

    Returns:
        The heading and one line for each row; empty where there are no rows.
    """
    if not rows:
        return []
    cells = [list(headings), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headings))]
    return [
        "  ".join(
            cell.rjust(width) if heading in right else cell.ljust(width)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        ).rstrip()
        for row in cells
    ]
