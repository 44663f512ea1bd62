"""``vinaya-bridge usage``."""

from __future__ import annotations

import click

from vinaya_bridge.cli.options import max_line_bytes_option
from vinaya_bridge.cli.reading import ask, say_intake
from vinaya_bridge.cli.table import table
from vinaya_bridge.cli.words import printable, say_json
from vinaya_bridge.readings.documents import usage_document
from vinaya_bridge.readings.figures import Figure
from vinaya_bridge.readings.usage import By, UsageReport
from vinaya_bridge.readings.usage import usage as read_usage

_FIGURES = ("INPUT", "OUTPUT", "CACHE")
_UNKNOWN = "unknown"


@click.command()
@click.argument(
    "inputs", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=str, allow_dash=True)
)
@click.option(
    "--by",
    type=click.Choice(["run", "model", "role", "issue"]),
    help="Give totals by this; without it, a row for each run and model.",
)
@max_line_bytes_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON: every observation and attempt too.")
@click.pass_context
def usage(
    context: click.Context, inputs: tuple[str, ...], by: By | None, max_line_bytes: int, *, as_json: bool
) -> None:
    """
    Add up token use by the Log's own rules.

    IN is a directory that is searched at any depth, a single file, or - for standard input. For each run and model
    only the last cumulative observation counts; deltas are added up; attempts are what dispatches state. These are
    three views of the same tokens and are never added to each other. A sum with an unknown term is unknown.

    Which lines were met is held in memory: about 0.6 kB for each line, 600 MB for a million.
    """
    report, intake = ask(inputs, read_usage, max_line_bytes=max_line_bytes)
    if as_json:
        say_json(usage_document(report, by), has_sorted_keys=True)
    else:
        for line in _grouped_lines(report, by) if by is not None else _lines(report):
            click.echo(line)
    say_intake(intake, inputs)
    context.exit(intake.exit_code)


def _lines(report: UsageReport) -> list[str]:
    rows = [
        [
            row.run,
            _name(row.model),
            _kind(row.semantics, low_trust=row.low_trust),
            f"{row.lines:,}",
            *_shown(row.figures),
        ]
        for row in report.rows
    ]
    why = [(f"{row.run} {_name(row.model)} {row.semantics}", row.figures) for row in report.rows]
    lines = table(("RUN", "MODEL", "KIND", "LINES", *_FIGURES), rows, right=("LINES", *_FIGURES))
    return [*(lines or ["no usage was observed"]), "", *_attempt_lines(report), *_reasons(why)]


def _attempt_lines(report: UsageReport) -> list[str]:
    rows = [
        [
            each.effect_id,
            each.role,
            _name(each.model),
            _kind("attempt", low_trust=each.low_trust),
            *_shown(each.figures),
        ]
        for each in report.attempts
    ]
    lines = table(("ATTEMPT", "ROLE", "MODEL", "KIND", "INPUT", "OUTPUT"), rows, right=_FIGURES)
    return lines or ["no attempt was logged"]


def _grouped_lines(report: UsageReport, by: By) -> list[str]:
    groups = report.grouped(by)
    rows = [
        [
            _name(group.key),
            _kind(group.kind, low_trust=group.low_trust),
            f"{group.input.terms:,}",
            *_shown(group.figures),
            *([""] if group.cache is None else []),
        ]
        for group in groups
    ]
    lines = table((by.upper(), "KIND", "TERMS", *_FIGURES), rows, right=("TERMS", *_FIGURES))
    why = [(f"{_name(group.key)} {group.kind}", group.figures) for group in groups]
    return [*(lines or ["no usage was observed"]), *_reasons(why)]


def _reasons(rows: list[tuple[str, dict[str, Figure]]]) -> list[str]:
    """Why figures are unknown: one line for each row and reason, the figures that share it together."""
    lines = []
    for name, figures in rows:
        shared: dict[str, list[str]] = {}
        for figure_name, figure in figures.items():
            if figure.reason is not None:
                shared.setdefault(figure.reason, []).append(figure_name)
        lines += [printable(f"  {name} {', '.join(names)}: {reason}") for reason, names in shared.items()]
    return ["", "unknown, and why:", *lines] if lines else []


def _shown(figures: dict[str, Figure]) -> list[str]:
    return [_UNKNOWN if each.value is None else f"{each.value:,}" for each in figures.values()]


def _name(key: str | int | None) -> str:
    return _UNKNOWN if key is None else str(key)


def _kind(kind: str, *, low_trust: bool) -> str:
    return f"{kind}, low trust" if low_trust else kind
