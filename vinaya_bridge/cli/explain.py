"""``vinaya-bridge explain``."""

from __future__ import annotations

import textwrap

import click

from vinaya_bridge.codes import ALL_CODES, find_code

_PAGE_WIDTH = 88


@click.command()
@click.argument("what", metavar="CODE")
def explain(what: str) -> None:
    """
    Explain a code, such as VB203: what it means, why it is so, what to do.

    With the word codes, list all of them.
    """
    if what == "codes":
        for code in ALL_CODES:
            click.echo(f"{code.id}  {code.title}")
        return
    found = find_code(what)
    if found is None:
        raise click.UsageError(f"there is no such code; vinaya-bridge explain codes lists {len(ALL_CODES)}")
    click.echo(f"{found.id}  {found.title}\n")
    click.echo(textwrap.fill(found.page, _PAGE_WIDTH))
