"""How the commands print: text from events never acts on a terminal, JSON is one object a line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from unicodedata import east_asian_width

import click
import orjson

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
"""The option that every command has."""

_UNITS_MS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def printable(text: str) -> str:
    """
    Make a text harmless: an id or an excerpt is content, and a terminal obeys what it is sent.

    Args:
        text: Any text.

    Returns:
        The text with each character that does not print, U+202E and its like included, replaced by U+FFFD.
    """
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def print_json(value: object, *, err: bool = False) -> None:
    """
    Print one JSON object on a line of its own, and pass it on at once.

    Args:
        value: What orjson can write.

        err: Whether it goes to standard error.
    """
    click.echo(orjson.dumps(value), err=err)


def duration(milliseconds: float | None) -> str:
    """
    Write a duration for a person.

    Args:
        milliseconds: The duration; None where it is not known.

    Returns:
        Two units at most, such as ``1h 04min``, ``13.5s`` or ``20ms``; ``-`` for None.
    """
    if milliseconds is None:
        return "-"
    if milliseconds < 1_000:
        return f"{milliseconds:.0f}ms"
    if milliseconds < 60_000:
        return f"{int(milliseconds / 100) / 10:g}s"
    for (unit, size), (smaller, part) in pairwise(_UNITS_MS):
        if milliseconds >= size:
            rest = int(milliseconds % size // part)
            return f"{int(milliseconds // size)}{unit} {rest:02}{smaller}"
    return "-"


def count(number: int | None) -> str:
    """
    Write a large number for a person.

    Args:
        number: The number; None where it is not known.

    Returns:
        ``950``, ``18.2k``, ``1.3M``; ``-`` for None.
    """
    if number is None:
        return "-"
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}"
    return str(number)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()) -> list[str]:
    """
    Align rows under headings.

    Args:
        headings: One for each column.

        rows: The cells; text from events is made harmless here.

        right: The headings of the columns that are aligned to the right.

    Returns:
        The heading and one line for each row; nothing where there are no rows.
    """
    if not rows:
        return []
    cells = [list(headings), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(_columns(row[index]) for row in cells) for index in range(len(headings))]
    return [
        "  ".join(
            _pad(cell, width, to_right=heading in right)
            for cell, width, heading in zip(row, widths, headings, strict=True)
        ).rstrip()
        for row in cells
    ]


def _columns(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _pad(text: str, width: int, *, to_right: bool) -> str:
    space = " " * (width - _columns(text))
    return space + text if to_right else text + space
