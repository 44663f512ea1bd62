"""``ethogram export``: runs in the formats of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click

from ethogram.cloudevents import to_cloudevent
from ethogram.envelope import Event
from ethogram.places import open_runs


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="DIR|FILE...")
@click.option("--cloudevents", is_flag=True, help="CloudEvents 1.0, one JSON object a line; nothing is lost.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def export(places: tuple[str, ...], cloudevents: bool, output: Path | None) -> None:
    """
    Write runs in a format of other tools.

    Without -o, CloudEvents go to standard output.
    """
    if not cloudevents:
        raise click.UsageError("say what to export to: --cloudevents")
    number = 0
    with _target(output) as stream:
        for event in _events(places):
            stream.write(to_cloudevent(event) + b"\n")
            number += 1
    click.echo(f"{number:,} events", err=True)


def _events(places: tuple[str, ...]) -> Iterator[Event]:
    for place in places:
        with open_runs(place) as store:
            for run_id in store.runs():
                yield from store.read_from(run_id)


@contextmanager
def _target(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        # Only its owner may read it: it holds what agents said and did.
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise click.ClickException(f"{output}: {os.strerror(fault.errno or 0)}") from fault
    with os.fdopen(fd, "wb") as stream:
        yield stream
