"""``vinaya-bridge mapping``: check, show, compare and test mappings."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from vinaya_bridge.cli.options import overlay_option
from vinaya_bridge.cli.words import printable, say_json
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.findings import Finding, Severity
from vinaya_bridge.mapping.lint import is_partial
from vinaya_bridge.mapping.lint import lint as lint_table
from vinaya_bridge.mapping.load import SHIPPED, load_mapping, read_mapping

_FAULTY = 2
_DIFFERENT = 1

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def mapping() -> None:
    """
    Check, show, compare and test mappings.

    A mapping says what becomes of each event of the Log. It is the name of one that comes with the package (core,
    generic) or the path of a TOML file.
    """


@mapping.command()
@click.argument("mappings", metavar="[NAME|FILE]...", nargs=-1)
@overlay_option
@click.option("--strict", is_flag=True, help="Exit with 2 for warnings too.")
@_json
@click.pass_context
def lint(
    context: click.Context,
    mappings: tuple[str, ...],
    overlays: tuple[Path, ...],
    *,
    strict: bool,
    as_json: bool,
) -> None:
    """
    Check mappings against both vocabularies.

    All findings are named, each with its place, a code, the rule and what to do. Without an argument, the mappings
    that come with the package are checked. Exits with 2 on an error.
    """
    found: list[Finding] = []
    partial: list[str] = []
    for name in mappings or SHIPPED:
        table, faults = read_mapping(name, overlays)
        found += [*faults, *lint_table(table, faults)]
        if is_partial(table) and not overlays:
            partial.append(name)
    if as_json:
        for finding in found:
            say_json(finding.to_json(), is_indented=False)
    else:
        for finding in found:
            for line in str(finding).splitlines():
                click.echo(printable(line))
        errors = sum(finding.severity is Severity.ERROR for finding in found)
        checked = ", ".join(mappings or SHIPPED)
        click.echo(
            f"{checked}: {_counted(errors, 'error')}, {_counted(len(found) - errors, 'warning')}", err=True
        )
    for name in partial:
        click.echo(
            printable(f"{name} has rules for few events, as an overlay has; check it on its base:"), err=True
        )
        command = f"vinaya-bridge mapping lint core --mapping-overlay {shlex.quote(name)}"
        click.echo(printable(f"  try: {command}"), err=True)
    is_faulty = any(finding.severity is Severity.ERROR or strict for finding in found)
    context.exit(_FAULTY if is_faulty else 0)


@mapping.command(short_help="Print a mapping as it applies.")
@click.argument("name", metavar="[NAME|FILE]", default="core")
@overlay_option
def show(name: str, overlays: tuple[Path, ...]) -> None:
    """
    Print a mapping as it applies: overlays applied, lookups written out, in one fixed form.

    Without an argument it is core.
    """
    from vinaya_bridge.mapping.render import render  # noqa: PLC0415  each command imports its own

    click.echo(render(load_mapping(name, overlays).table), nl=False)


@mapping.command(short_help="Print what a mapping makes of each of the Log's events.")
@click.argument("name", metavar="[NAME|FILE]", default="core")
@overlay_option
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a Markdown table.")
@_json
def coverage(name: str, overlays: tuple[Path, ...], *, as_markdown: bool, as_json: bool) -> None:
    """
    Print what a mapping makes of each of the Log's events, and what it leaves out, and why.

    Without an argument it is core.
    """
    from vinaya_bridge.mapping.coverage import coverage as rows_of  # noqa: PLC0415
    from vinaya_bridge.mapping.coverage import markdown  # noqa: PLC0415

    rows = rows_of(load_mapping(name, overlays).table)
    if as_json:
        for row in rows:
            say_json(row.to_json(), is_indented=False)
        return
    if as_markdown:
        click.echo(markdown(rows), nl=False)
        return
    for row in rows:
        click.echo(f"{row.name}  (schema {', '.join(map(str, row.schemas))})  {row.place}")
        for family, basis, when in row.generic:
            click.echo(f"    family   {family}, {basis}{', when ' + when if when else ''}")
        for type_name, run, when in row.types:
            click.echo(f"    emits    {type_name} on {run}{', when ' + when if when else ''}")
        if row.unmapped:
            click.echo(f"    unmapped {row.unmapped}")
        if row.types:
            click.echo(f"    carries  {' '.join(row.carried)}")
        for path, why in row.dropped:
            click.echo(f"    drops    {path}: {why}")


@mapping.command(short_help="Compare two mappings.")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.argument("logs", metavar="[LOGS]...", nargs=-1)
@_json
@click.pass_context
def diff(context: click.Context, old: str, new: str, logs: tuple[str, ...], *, as_json: bool) -> None:
    """
    Compare two mappings by rule and, with LOGS, by the events that they make of them.

    LOGS are directories, files, or - for standard input. Exits with 1 when anything differs.
    """
    from vinaya_bridge.cli.reading import ask, say_intake  # noqa: PLC0415
    from vinaya_bridge.mapping.diff import EventChange, diff_events, diff_tables  # noqa: PLC0415

    before, after = load_mapping(old), load_mapping(new)
    rules = diff_tables(before.table, after.table)
    events: list[EventChange] = []
    unread = 0
    if logs:
        events, intake = ask(logs, lambda lines: diff_events(before, after, lines))
        say_intake(intake, logs)
        unread = intake.exit_code
    if as_json:
        data = {
            "rules": [{"rule": one.name, "change": one.change, "lines": list(one.lines)} for one in rules],
            "events": [
                {
                    "event": one.name,
                    "lines": one.lines,
                    "changed": one.changed,
                    "example": one.example,
                    "differences": one.differences,
                }
                for one in events
            ],
        }
        say_json(data)
    else:
        for rule in rules:
            click.echo(f"{rule.name}: {rule.change}")
            for line in rule.lines:
                click.echo(f"    {printable(line)}")
        for event in events:
            click.echo(f"{event.name}: {event.changed:,} of {event.lines:,} lines give other events")
            click.echo(f"    first: {printable(event.example)}")
            for line in event.differences:
                click.echo(f"    {printable(line)}")
        click.echo(f"{len(rules)} rules differ" + (f", {len(events)} events" if logs else ""), err=True)
    context.exit(_DIFFERENT if rules or events else unread)


@mapping.command()
@click.argument(
    "folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--mapping", "name", default="core", show_default=True, metavar="NAME|FILE", help="The mapping to test."
)
@click.option("--update", is_flag=True, help="Write what came out as what must, for the cases named.")
@click.pass_context
def test(context: click.Context, folders: tuple[Path, ...], name: str, *, update: bool) -> None:
    """
    Test a mapping with cases that anyone can write.

    A case is a folder with input*.ndjson (or a folder named in), perhaps an overlay mapping.toml, and expected/.
    Without an argument, the cases under the present folder are run. Exits with 1 when one fails.
    """
    from vinaya_bridge.mapping.cases import find_cases, run_case  # noqa: PLC0415

    cases = find_cases(folders or (Path(),))
    if not cases:
        where = ", ".join(str(folder) for folder in folders) or "."
        remedy = "make a folder with a file input.ndjson in it"
        raise ConfigurationError(codes.NO_CASES, "no case was found", place=where, remedy=remedy)
    failed = 0
    for case in cases:
        result = run_case(case, name, update=update)
        failed += bool(result.differences)
        word = "updated" if result.updated else "FAILED" if result.differences else "ok"
        click.echo(f"{word:<8}{case.name}")
        for difference in result.differences:
            line = f":{difference.line}" if difference.line else ""
            click.echo(
                f"    {difference.file}{line}" + (f"  rule {difference.rule}" if difference.rule else "")
            )
            for change in difference.changes:
                click.echo(f"        {change}")
    click.echo(f"{len(cases) - failed} passed, {failed} failed", err=True)
    context.exit(_DIFFERENT if failed else 0)


@mapping.command(short_help="Print the mapping language as a JSON Schema.")
def schema() -> None:
    """Print the mapping language as a JSON Schema, for an editor that completes and checks TOML."""
    from vinaya_bridge.mapping.json_schema import json_schema  # noqa: PLC0415

    say_json(json_schema(), is_indented=False)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" + ("" if number == 1 else "s")
