"""``vinaya-bridge restore``."""

from __future__ import annotations

from pathlib import Path

import click

from vinaya_bridge.cli.words import counts, printable, row, say_json
from vinaya_bridge.restore import Restoration
from vinaya_bridge.restore import restore as restore_logs

_MOST_SHOWN = 20


@click.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--out",
    "logs",
    required=True,
    metavar="LOGS",
    type=click.Path(path_type=Path),
    help="Where to write.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was given back as JSON.")
@click.pass_context
def restore(context: click.Context, out: Path, logs: Path, *, as_json: bool) -> None:
    """
    Give the log back from OUT, which was made with --origin full.

    LOGS becomes a log directory of the same event lines, as the same JSON values. What is no event stays in OUT/kept,
    byte for byte. Exits with 1 when a line of OUT could not be given back.
    """
    found = restore_logs(out, logs)
    if as_json:
        say_json(found.data())
    else:
        _say(found, out, logs)
    context.exit(0 if found.complete else 1)


def _say(found: Restoration, out: Path, logs: Path) -> None:
    files = "1 file" if len(found.files) == 1 else f"{len(found.files):,} files"
    row("restored", f"{found.lines:,} lines in {files}; in {logs}")
    for name, line in found.redacted[:_MOST_SHOWN]:
        row("redacted", f"{name}:{line} has <redacted>, or a digest, where a secret stood")
    _say_more(len(found.redacted))
    for identity in found.missing[:_MOST_SHOWN]:
        row("missing", f"{printable(identity)}: it was converted without --origin full")
    _say_more(len(found.missing))
    if found.waiting:
        row("waiting", f"{found.waiting:,} lines: a tail has read them and not written them yet")
    if found.kept:
        row("kept", f"{counts(found.kept)}: no events; byte for byte in {out / 'kept'}")


def _say_more(length: int) -> None:
    if length > _MOST_SHOWN:
        row("", f"and {length - _MOST_SHOWN:,} more: see --json")
