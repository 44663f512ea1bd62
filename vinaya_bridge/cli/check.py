"""``vinaya-bridge check``."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

import click

from vinaya_bridge.check import STATUSES, CheckedLine, check_lines, check_long_line
from vinaya_bridge.cli.options import max_line_bytes_option
from vinaya_bridge.cli.reading import say_met, with_stdin_spooled
from vinaya_bridge.cli.words import counted, printable, say_json, say_no_logs
from vinaya_bridge.files import LEFT_ALONE, TOO_LONG, Discovery, LogFile, Notice, discover, too_long
from vinaya_bridge.lines import LongLine, read_lines
from vinaya_bridge.log.codes import CODES
from vinaya_bridge.log.line import Reader

_MOST_SAID = 20
_NOT_SAID = ("event", "blank")
_CLAUSES = {
    "unknown_version": "unknown version: kept byte for byte, not interpreted",
    "pending": "pending: the unfinished end of the file, which may become a record",
}
_TITLES = {code.id: code.title for code in CODES}


@click.command()
@click.argument(
    "inputs", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=str, allow_dash=True)
)
@max_line_bytes_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line of the log.")
@click.option("--strict", is_flag=True, help="Exit with 1 when a line was refused.")
@click.pass_context
def check(
    context: click.Context, inputs: tuple[str, ...], max_line_bytes: int, *, as_json: bool, strict: bool
) -> None:
    """
    Say what is wrong with the lines of log files.

    IN is a directory that is searched at any depth, a single file, or - for standard input. Only lines that are
    neither events nor blank are printed, with place and reason, 20 of a file at most, and then one line that counts.
    No value of a line is ever shown.
    """
    with with_stdin_spooled(inputs) as paths:
        exit_code = _check(discover(paths), inputs, max_line_bytes, as_json=as_json, strict=strict)
    context.exit(exit_code)


def _check(
    found: Discovery, inputs: tuple[str, ...], max_line_bytes: int, *, as_json: bool, strict: bool
) -> int:
    counts: Counter[str] = Counter()
    said: Counter[str] = Counter()
    codes: set[str | None] = set()
    notices = list(found.notices)
    for row in _rows(found.files, notices, max_line_bytes):
        counts[row.status] += 1
        if as_json:
            say_json(row.to_json(), is_indented=False)
        elif row.status not in _NOT_SAID and row.code != TOO_LONG.id:  # which a notice names
            said[row.file] += 1
            if said[row.file] <= _MOST_SAID:
                _say(row, is_first=row.code is not None and row.code not in codes)
                codes.add(row.code)
    for file, lines in () if as_json else said.items():
        if lines > _MOST_SAID:
            click.echo(printable(f"{file}: and {lines - _MOST_SAID:,} more; --json has all"))
    say_met(notices)
    if not found.files:
        say_no_logs(inputs)
    if not as_json:
        _say_summary(counts, len(found.files), inputs)
    faults = any(notice.code.id not in LEFT_ALONE for notice in notices)
    nothing_valid = counts.total() > counts["blank"] and not counts["event"]
    return 1 if faults or nothing_valid or (strict and counts["refused"]) else 0


def _rows(files: list[LogFile], notices: list[Notice], max_line_bytes: int) -> Iterator[CheckedLine]:
    reader = Reader()
    for file in files:
        long_lines: list[LongLine] = []
        lines = read_lines(file, digest=False, max_line_bytes=max_line_bytes, take_long=long_lines.append)
        for row in check_lines(reader, file.name, lines):
            yield from _long_rows(file.name, long_lines, notices, max_line_bytes)
            yield row
        yield from _long_rows(file.name, long_lines, notices, max_line_bytes)
        if lines.fault is not None:
            notices.append(lines.fault)


def _long_rows(
    file: str, long_lines: list[LongLine], notices: list[Notice], max_line_bytes: int
) -> Iterator[CheckedLine]:
    """Empty the list of the lines that were passed over since the last row."""
    for line in long_lines:
        notices.append(too_long(file, line.number, line.length, max_line_bytes))
        yield check_long_line(file, line, max_line_bytes)
    long_lines.clear()


def _say(row: CheckedLine, *, is_first: bool) -> None:
    """Print one line that is no event; what its code means and where to read more with the first of its kind."""
    if row.status != "refused":
        click.echo(printable(f"{row.file}:{row.line}: {_CLAUSES[row.status]}"))
        return
    name = f" ({row.kind} {row.event})" if row.event is not None else ""
    click.echo(printable(f"{row.file}:{row.line}: {row.code} {row.path}: {row.reason}{name}"))
    if is_first:
        click.echo(f"  {_TITLES[row.code or '']}; try: vinaya-bridge explain {row.code}")


def _say_summary(counts: Counter[str], files: int, inputs: tuple[str, ...]) -> None:
    terms = " + ".join(
        f"{counts[status]:,} {status.replace('_', ' ')}" for status in STATUSES if counts[status]
    )
    click.echo(f"{counts.total():,} read = {terms or 'nothing'}, in {counted(files, 'file')}")
    if counts["refused"]:
        click.echo(f"for programs: vinaya-bridge check --json {printable(shlex.join(inputs))}")
