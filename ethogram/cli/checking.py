"""``ethogram verify``, ``validate`` and ``canonicalise``: what is wrong with events, and nothing changed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click

from ethogram.canonical import serialise_event
from ethogram.cli.words import JSON_OPTION, print_json, printable
from ethogram.envelope import parse_event_text
from ethogram.inspection import LineReport, check_lines, check_runs
from ethogram.json_text import ParseError
from ethogram.places import root_of

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
_FILES = click.argument("files", nargs=-1, required=True, type=click.File("rb"))


@click.command()
@_FILES
@JSON_OPTION
def validate(files: tuple[BinaryIO, ...], as_json: bool) -> None:
    """
    Check events, one a line, in FILES ("-" is standard input).

    Each line must parse and be what a producer should have sent. Exits with 1 where one is not.
    """
    faults = 0
    for stream in files:
        for report in check_lines(stream):
            faults += report.fault is not None
            _print_line_report(_name(stream), report, as_json=as_json)
    sys.exit(1 if faults else 0)


@click.command()
@click.argument("directories", nargs=-1, required=True, metavar="DIR...", type=_DIRECTORY)
@JSON_OPTION
def verify(directories: tuple[Path, ...], as_json: bool) -> None:
    """
    Prove each run under DIR: gapless, canonical, valid, nothing after its end.

    A last line without a newline is reported and is no fault: its writer may be at work. Exits with 1 on a
    fault.
    """
    faults, seen = 0, 0
    for report in (report for directory in directories for report in check_runs(root_of(directory))):
        seen += 1
        faults += report.fault is not None
        if as_json:
            print_json(report.as_json())
        elif report.fault is not None:
            click.echo(printable(f"{report.place}: {report.fault}"))
        elif report.torn_bytes:
            click.echo(printable(f"{report.place}: the last {report.torn_bytes} bytes are no whole line"))
    if not as_json:
        click.echo("a fault was found" if faults else "every run is sound" if seen else "no runs", err=True)
    sys.exit(1 if faults else 0)


@click.command()
@_FILES
@JSON_OPTION
def canonicalise(files: tuple[BinaryIO, ...], as_json: bool) -> None:
    """
    Print the events in FILES ("-" is standard input) in canonical form.

    A line that is no event stops it, with its number; what was printed stands. Exits with 1 then. With --json
    that fault is printed as a JSON object, on standard error.
    """
    for name, number, line in _lines(files):
        try:
            event = parse_event_text(line)
        except ParseError as fault:
            report = LineReport(number, "ParseError", fault.path, fault.message)
            if as_json:
                print_json({"file": name, **report.as_json()}, err=True)
            else:
                click.echo(printable(f"{name}:{number}: {fault}"), err=True)
            sys.exit(1)
        sys.stdout.buffer.write(serialise_event(event) + b"\n")


def _lines(files: tuple[BinaryIO, ...]) -> Iterator[tuple[str, int, bytes]]:
    for stream in files:
        for number, line in enumerate(stream, 1):
            yield _name(stream), number, line


def _print_line_report(name: str, report: LineReport, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": name, **report.as_json()})
    elif report.fault is not None:
        click.echo(printable(f"{name}:{report.line}: {report.fault}"))


def _name(stream: BinaryIO) -> str:
    """What a message calls an input: standard input need not have a name of its own."""
    return str(getattr(stream, "name", "<stdin>"))
