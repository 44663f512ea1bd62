"""How reports read on a terminal: aligned, short, and with the next command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import orjson

from vinaya_bridge.files import REMEDIES, count_other_files
from vinaya_bridge.ledger import JsonValue, equation
from vinaya_bridge.report import Report
from vinaya_bridge.terminal import escape_in_json

_LABEL_WIDTH = 12
_MOST_NOTICES = 20


def printable(text: str) -> str:
    """Return *text* so that no character of it can act on a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def row(label: str, text: str, *, err: bool = False) -> None:
    """Print one aligned line."""
    click.echo(f"{label:<{_LABEL_WIDTH}}{printable(text)}", err=err)


def say_summary(report: Report, out: Path, inputs: Sequence[str]) -> None:
    """
    Print what a conversion did.

    Args:
        report: Of the call.

        out: The output directory.

        inputs: As they were given.
    """
    lines = report.lines
    data = report.data
    say_notices(data["notices"])
    if not data["files"]:
        say_no_logs(inputs)
    click.echo(equation(lines))
    kept = {term: lines[term] for term in ("refused", "conflict", "late", "unknown_version") if lines[term]}
    if kept:
        row("kept", f"{counts(kept)}; each with its reason in {out / 'kept' / 'index.jsonl'}")
    left_out = data["unmapped"]
    if isinstance(left_out, dict) and left_out:
        row("unmapped", ", ".join(f"{number:,} {name}" for name, number in left_out.items()))
    runs = data["runs"]
    if isinstance(runs, dict):
        row("runs", f"{counts(runs)}; in {out / 'runs'}")
    events = data["events"]
    if isinstance(events, dict):
        row("events", f"{sum(n for n in events.values() if isinstance(n, int)):,} appended")
    if data["files"]:
        say_next(out, inputs)


def say_next(out: Path, inputs: Sequence[str], *, err: bool = False) -> None:
    """
    Print the command that proves an output.

    Args:
        out: The output directory.

        inputs: As they were given; what is missing is left out, and all where one is standard input, which
            cannot be read again.

        err: Whether to print to standard error.
    """
    there = [each for each in inputs if Path(each).exists()]  # verify refuses to start without an input
    against = f" --against {shlex.join(there)}" if there and "-" not in inputs else ""
    row("next", f"vinaya-bridge verify {shlex.quote(str(out))}{against}", err=err)


def say_no_logs(inputs: Sequence[str]) -> None:
    """
    Say on standard error that no log file was found, how logs are known, and what else was there.

    Args:
        inputs: As they were given.
    """
    there = [each for each in inputs if Path(each).exists()]
    if not there:
        return  # each was named as missing
    names = ", ".join(printable(each) for each in there)
    click.echo(
        f"no log files found in {names}: names that end in .ndjson, .ndjson.gz or .ndjson.zst are read",
        err=True,
    )
    others = count_other_files(there)
    if others:
        click.echo(f"  {counted(others, 'file')} of other names passed over", err=True)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 file``, ``2 files`` or ``3 directories``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def say_notices(notices: JsonValue) -> None:
    """
    Print what a person has to know of the inputs, to standard error; what to do with the first of each kind.

    Args:
        notices: As a report has them: objects with code, name and message.
    """
    if not isinstance(notices, list):
        return
    explained: set[str] = set()
    for notice in notices[:_MOST_NOTICES]:
        if isinstance(notice, dict):
            code = str(notice["code"])
            click.echo(printable(f"{code} {notice['name']}: {notice['message']}"), err=True)
            if code in REMEDIES and code not in explained:
                click.echo(f"  try: {REMEDIES[code]}", err=True)
            explained.add(code)
    if len(notices) > _MOST_NOTICES:
        click.echo(f"and {len(notices) - _MOST_NOTICES:,} more", err=True)


def say_json(
    document: object, *, is_indented: bool = True, has_sorted_keys: bool = False, err: bool = False
) -> None:
    """
    Print a document as JSON in which no character can act on a terminal.

    Args:
        document: What JSON can hold.

        is_indented: Whether it takes many lines, else one.

        has_sorted_keys: Whether keys are sorted, else as they stand.

        err: Whether to print to standard error.
    """
    option = (orjson.OPT_INDENT_2 if is_indented else 0) | (orjson.OPT_SORT_KEYS if has_sorted_keys else 0)
    click.echo(escape_in_json(orjson.dumps(document, option=option).decode()), err=err)


def counts(numbers: Mapping[str, JsonValue]) -> str:
    """Return ``3 refused, 1 conflict`` for a mapping of names to numbers."""
    return ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in numbers.items() if isinstance(number, int)
    )
