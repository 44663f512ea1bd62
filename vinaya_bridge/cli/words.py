"""How reports read on a terminal: aligned, short, and with the next command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from vinaya_bridge.ledger import JsonValue, equation
from vinaya_bridge.report import Report

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
    row("next", f"vinaya-bridge verify {shlex.quote(str(out))} --against {shlex.join(inputs)}")


def say_notices(notices: JsonValue) -> None:
    """Print what a person has to know of the inputs, to standard error."""
    if not isinstance(notices, list):
        return
    for notice in notices[:_MOST_NOTICES]:
        if isinstance(notice, dict):
            click.echo(printable(f"{notice['code']} {notice['name']}: {notice['message']}"), err=True)
    if len(notices) > _MOST_NOTICES:
        click.echo(f"and {len(notices) - _MOST_NOTICES:,} more: see report.json", err=True)


def counts(numbers: Mapping[str, JsonValue]) -> str:
    """Return ``3 refused, 1 conflict`` for a mapping of names to numbers."""
    return ", ".join(
        f"{number:,} {name.replace('_', ' ')}" for name, number in numbers.items() if isinstance(number, int)
    )
