"""``vinaya-bridge replay``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from vinaya_bridge.cli.words import counts, row, say_json
from vinaya_bridge.ledger import equation
from vinaya_bridge.replay import replay as replay_kept


@click.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--quiet", is_flag=True, help="Print nothing but faults.")
@click.option("--json", "as_json", is_flag=True, help="Print the report of this call as JSON.")
def replay(out: Path, *, quiet: bool, as_json: bool) -> None:
    """
    Read the kept lines of OUT again, and add what this version can read.

    Kept are lines of unknown header versions and refused ones. After an update, some may be readable: each goes where
    it would have gone; where its run is finished, to the next sitting. Nothing is added twice.
    """
    report = replay_kept(out, command=sys.argv[1:])
    if as_json:
        say_json(report.data)
        return
    if quiet:
        return
    lines = report.lines
    click.echo(equation(lines))
    still = {term: lines[term] for term in ("refused", "unknown_version") if lines[term]}
    if still:
        row("still kept", f"{counts(still)}; vinaya-bridge report {shlex.quote(str(out))} says why")
    events = report.data["events"]
    if isinstance(events, dict):
        row("events", f"{sum(n for n in events.values() if isinstance(n, int)):,} appended")
    row("next", f"vinaya-bridge verify {shlex.quote(str(out))}")
