"""``vinaya-bridge status``."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from vinaya_bridge.cli.options import max_line_bytes_option
from vinaya_bridge.cli.reading import ask, say_intake
from vinaya_bridge.cli.table import table
from vinaya_bridge.cli.words import printable, say_json
from vinaya_bridge.readings.documents import status_document
from vinaya_bridge.readings.liveness import LoopStatus, liveness

_MACHINE_DIGITS = 12
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def _moment(_context: click.Context, _param: click.Parameter, value: str | None) -> datetime | None:
    """The option's time; one without a zone is UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter("is not a time such as 2026-10-12T08:30:00Z") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@click.command()
@click.argument(
    "inputs", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=str, allow_dash=True)
)
@click.option("--issue", type=int, metavar="NUMBER", help="Only the loops of this Issue.")
@click.option(
    "--now",
    metavar="TIME",
    callback=_moment,
    help="Judge by this time, such as 2026-10-12T08:30:00Z, not the clock's.",
)
@max_line_bytes_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def status(
    context: click.Context,
    inputs: tuple[str, ...],
    issue: int | None,
    now: datetime | None,
    max_line_bytes: int,
    *,
    as_json: bool,
) -> None:
    """
    Say which loops run, are done, or went quiet.

    IN is a directory that is searched at any depth, a single file, or - for standard input. The rule is the Log's
    own: a loop runs while its newest line is under ten minutes old and no exit of its driver; after that it is
    presumed dead. It reads the log, not the machine: clocks differ, and lines can come late.

    Which lines were met is held in memory: about 0.6 kB for each line, 600 MB for a million.
    """
    moment = datetime.now(UTC) if now is None else now
    statuses, intake = ask(inputs, lambda lines: liveness(lines, now=moment), max_line_bytes=max_line_bytes)
    chosen = [each for each in statuses if issue is None or each.issue == issue]
    if as_json:
        stamp = moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        say_json(status_document(chosen, stamp), has_sorted_keys=True)
    else:
        for line in _lines(chosen):
            click.echo(line)
    say_intake(intake, inputs)
    context.exit(intake.exit_code)


def _lines(statuses: list[LoopStatus]) -> list[str]:
    if not statuses:
        return ["no loop was logged"]
    headings = ("REPOSITORY", "ISSUE", "STATE", "ROUND", "PHASE", "AGE", "LAST LINE", "MACHINE")
    rows = [
        [
            _name(each.repo),
            _name(each.issue),
            each.state if each.exit_reason in {None, each.state} else f"{each.state} ({each.exit_reason})",
            _name(each.round),
            _name(each.phase),
            _age(each.age_ms),
            each.event,
            each.machine[:_MACHINE_DIGITS],
        ]
        for each in statuses
    ]
    lines = table(headings, rows, right=("ISSUE", "ROUND", "AGE"))
    for each in statuses:
        lines += [printable(f"  {_name(each.repo)} {_name(each.issue)}: {note}") for note in each.notes]
    return lines


def _name(value: str | int | None) -> str:
    return "unknown" if value is None else str(value)


def _age(age_ms: int | None) -> str:
    """An age in its greatest unit, rounded down."""
    if age_ms is None:
        return "unknown"
    sign, rest = ("-", -age_ms) if age_ms < 0 else ("", age_ms)
    for size, unit in _UNITS:
        if rest >= size:
            return f"{sign}{rest // size} {unit}"
    return f"{sign}{rest} ms"
