"""The ``ethogram`` command: look at events and runs without any producer. Each command is one library call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import click
import orjson

from ethogram.canonical import serialise_event
from ethogram.envelope import Event, parse_event_text
from ethogram.errors import EthogramError
from ethogram.fold import fold_run
from ethogram.inspection import LineReport, check_lines, check_runs
from ethogram.json_text import ParseError
from ethogram.runfiles import RunFiles

_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vinaya-bridge", prog_name="ethogram")
def main() -> None:
    """Look at ethogram events and directories of runs."""


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@_JSON
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


@main.command()
@click.argument("directory", type=_DIRECTORY)
@_JSON
def verify(directory: Path, as_json: bool) -> None:
    """
    Prove each run under DIRECTORY: gapless, canonical, valid, nothing after its end.

    A last line without a newline is reported and is no fault: its writer may be at work. Exits with 1 on a
    fault.
    """
    faults = 0
    for report in check_runs(directory):
        faults += report.fault is not None
        if as_json:
            _print_json(report.as_json())
        elif report.fault is not None:
            click.echo(f"{report.place}: {report.fault}")
        elif report.torn_bytes:
            click.echo(f"{report.place}: the last {report.torn_bytes} bytes are no whole line")
    if not as_json:
        click.echo("a fault was found" if faults else "every run is sound", err=True)
    sys.exit(1 if faults else 0)


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
def canonicalise(files: tuple[BinaryIO, ...]) -> None:
    """
    Print the events in FILES ("-" is standard input) in canonical form.

    A line that is no event stops it, with its number; what was printed stands. Exits with 1 then.
    """
    for stream in files:
        for number, line in enumerate(stream, 1):
            try:
                event = parse_event_text(line)
            except ParseError as fault:
                click.echo(f"{_name(stream)}:{number}: {fault}", err=True)
                sys.exit(1)
            sys.stdout.buffer.write(serialise_event(event) + b"\n")


@main.command()
@click.argument("directory", type=_DIRECTORY)
@_JSON
def runs(directory: Path, as_json: bool) -> None:
    """List the runs under DIRECTORY: how each began, how it ended, how many events it has."""
    files = RunFiles(directory)
    try:
        for run_id in files.runs():
            summary = _summary(files, run_id)
            if as_json:
                _print_json(summary)
            else:
                ended = summary.get("outcome", summary.get("fault", "open"))
                columns = (summary["runId"], summary.get("kind", "-"), ended, summary["events"])
                click.echo("\t".join(_printable(str(column)) for column in columns))
    except EthogramError as fault:
        raise click.ClickException(str(fault)) from fault
    finally:
        files.close()


def _summary(files: RunFiles, run_id: str) -> dict[str, object]:
    summary: dict[str, object] = {"runId": run_id, "events": 0}

    def counted() -> Iterator[Event]:
        for event in files.read_from(run_id):
            summary["events"] = event.seq
            summary["lastTs"] = event.ts
            yield event

    try:
        run = fold_run(counted())
    except EthogramError as fault:
        return summary | {"fault": str(fault)}
    if run is None:
        return summary
    folded: dict[str, object] = {"kind": run.kind, "actor": run.actor, "harness": run.harness}
    folded |= {"parentRunId": run.parent_run_id, "outcome": run.outcome, "durationMs": run.duration_ms}
    return summary | {name: value for name, value in folded.items() if value is not None}


def _print_line_report(name: str, report: LineReport, *, as_json: bool) -> None:
    if as_json:
        _print_json({"file": name, **report.as_json()})
    elif report.fault is not None:
        click.echo(f"{name}:{report.line}: {report.fault}")


def _name(stream: BinaryIO) -> str:
    """What a message calls an input: standard input need not have a name of its own."""
    return str(getattr(stream, "name", "<stdin>"))


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")


def _printable(text: str) -> str:
    """Without control characters: an id is content, and a terminal obeys what it is sent."""
    return "".join(character if character.isprintable() else "\ufffd" for character in text)
