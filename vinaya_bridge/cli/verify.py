"""``vinaya-bridge verify``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from vinaya_bridge.cli.options import made_output
from vinaya_bridge.cli.words import printable, row, say_json
from vinaya_bridge.proof.findings import EVENT_EXTRA, FindingGroup, grouped
from vinaya_bridge.verify import Verification
from vinaya_bridge.verify import verify as verify_output

_MOST_SHOWN = 50


@click.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--against",
    "against",
    multiple=True,
    metavar="IN",
    type=click.Path(exists=True, path_type=str),
    help="Read this input again and hold each line of it against OUT. May be repeated.",
)
@click.argument("more", metavar="[IN]...", nargs=-1, type=click.Path(exists=True, path_type=str))
@click.option("--mapping", metavar="NAME|FILE", help="The mapping of OUT, where its report does not name it.")
@click.option(
    "--max-line-bytes",
    metavar="N",
    type=click.IntRange(min=1),
    help="How long a line may be; by default as in the last call on OUT.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.pass_context
def verify(
    context: click.Context,
    out: Path,
    against: tuple[str, ...],
    more: tuple[str, ...],
    mapping: str | None,
    max_line_bytes: int | None,
    *,
    as_json: bool,
) -> None:
    """
    Prove that OUT is whole: by itself, or against the log it was made from.

    Further inputs may follow the first: verify OUT --against LOGS MORE-LOGS. Exits with 1 when anything is wrong.
    """
    if more and not against:
        raise click.UsageError("inputs to compare with are given after --against")
    made_output(out)
    found = verify_output(out, [*against, *more], mapping=mapping, max_line_bytes=max_line_bytes)
    if as_json:
        say_json(found.data())
    else:
        _say(found, out)
    context.exit(0 if found.proven else 1)


def _say(found: Verification, out: Path) -> None:
    groups = list(grouped(found.findings))
    for group in groups[:_MOST_SHOWN]:
        _say_group(group)
    if len(groups) > _MOST_SHOWN:
        click.echo(f"and {len(groups) - _MOST_SHOWN:,} more: see --json")
    if any(group.code is EVENT_EXTRA for group in groups):
        click.echo("  was OUT made from more logs? try: name all of them after --against")
        click.echo(
            f"  are lines of them gone since? try: vinaya-bridge verify {printable(shlex.quote(str(out)))}"
        )
    if found.findings:
        row("wrong", f"{len(found.findings):,}; each code is explained by vinaya-bridge explain CODE")
    else:
        row("proven", str(out))
    row("runs", f"{found.runs:,} with {found.events:,} events of {found.identities:,} lines")
    row("kept", f"{found.kept:,}")
    if found.lines:
        terms = ", ".join(f"{count:,} {term.replace('_', ' ')}" for term, count in found.lines.items())
        row("against", terms)


def _say_group(group: FindingGroup) -> None:
    """Print findings that say the same as one: the first few places, and how many there are."""
    first, *others = group.places
    times = f" ({group.count:,} times)" if group.count > 1 else ""
    click.echo(f"{group.code.id} {printable(first)}: {printable(group.message)}{times}")
    if others:
        more = group.count - len(group.places)
        click.echo(printable(f"  also {', '.join(others)}{f' and {more:,} more' if more > 0 else ''}"))
