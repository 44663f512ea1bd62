"""What an output says of itself, put together for a person: its report, and what it keeps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from attrs import frozen

from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.kept import REPLAYED, kept_rows
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.output import OUTPUT_FOREIGN, Output

_CONFLICT = "conflict"


@frozen
class KeptGroup:
    """
    Kept lines with one reason.

    Args:
        why: See `vinaya_bridge.kept.KeptRow`.

        code: Of the fault, or None.

        lines: How many.

        replayed: How many of them were read again since, and added.

        first: File and line of the first; None for a line where reading began in the middle of a file.
    """

    why: str
    code: str | None
    lines: int
    replayed: int
    first: tuple[str, int | None]


@frozen
class Conflict:
    """
    A line whose identity is that of another one with other content.

    Args:
        kept: File and line of the one that was kept.

        stays: File and line of the one whose events stay; None where an earlier call read it, or a tail.
    """

    kept: tuple[str, int | None]
    stays: tuple[str, int | None] | None


@frozen
class Overview:
    """
    What an output says of itself.

    Args:
        report: The report of the last call, as it stands in ``report.json``.

        kept: The kept lines of all calls, by reason and code; the most frequent first.

        conflicts: The conflicts of all calls, by place.
    """

    report: dict[str, JsonValue]
    kept: list[KeptGroup]
    conflicts: list[Conflict]


def overview(out: str | Path) -> Overview:
    """
    Read what an output says of itself. Memory grows with its conflicts and with the lines that were replayed.

    Args:
        out: The output directory.

    Raises:
        ConfigurationError: It has no report, or one that this tool did not write.
    """
    output = Output(Path(out))
    report = output.read_report()
    if report is None:
        raise ConfigurationError(
            OUTPUT_FOREIGN,
            "there is no report.json",
            place=str(output.root),
            remedy="name an output directory; where a call was killed, run it again to its end",
        )
    lines: Counter[tuple[str, str | None]] = Counter()
    again: Counter[tuple[str, str | None]] = Counter()
    first: dict[tuple[str, str | None], tuple[str, int | None]] = {}
    conflicts: dict[tuple[str, int | None], Conflict] = {}
    replayed = {row.place() for row in kept_rows(output.kept) if row.why == REPLAYED}
    for row in kept_rows(output.kept):
        if row.why == REPLAYED:
            continue
        group = (row.why, row.code)
        lines[group] += 1
        again[group] += row.place() in replayed
        first.setdefault(group, (row.file, row.line))
        if row.why == _CONFLICT:
            place = (row.file, row.line)
            conflicts[place] = Conflict(place, None)
    for conflict in _conflicts_of(report):
        conflicts[conflict.kept] = conflict
    return Overview(
        report,
        [
            KeptGroup(why, code, count, again[why, code], first[why, code])
            for (why, code), count in sorted(
                lines.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "")
            )
        ],
        sorted(conflicts.values(), key=lambda one: (one.kept[0], one.kept[1] or 0)),
    )


def _conflicts_of(report: dict[str, JsonValue]) -> list[Conflict]:
    """The conflicts of the last call, which knows both places."""
    rows = report.get("conflicts")
    found = []
    for row in rows if isinstance(rows, list) else ():
        kept = _place(row.get("kept")) if isinstance(row, dict) else None
        if isinstance(row, dict) and kept is not None:
            found.append(Conflict(kept, _place(row.get("stays"))))
    return found


def _place(value: JsonValue) -> tuple[str, int | None] | None:
    if not isinstance(value, list) or len(value) != 2:
        return None
    file, line = value
    return str(file), line if isinstance(line, int) else None
