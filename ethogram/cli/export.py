"""``ethogram export``: runs in the formats of other tools."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import BinaryIO

import click

from ethogram.cloudevents import to_cloudevent
from ethogram.envelope import Event
from ethogram.overview import arrange, overviews
from ethogram.places import open_runs
from ethogram.traces import Span, tree_spans


def _headers(
    context: click.Context,  # noqa: ARG001  as click calls it
    parameter: click.Parameter,  # noqa: ARG001
    values: tuple[str, ...],
) -> dict[str, str]:
    """Take ``NAME=VALUE`` apart."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name.strip() or not value.isascii() or not value.isprintable():
            raise click.BadParameter("give NAME=VALUE, in ASCII")
        found[name.strip()] = text.strip()
    return found


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="DIR|FILE...")
@click.option("--cloudevents", is_flag=True, help="CloudEvents 1.0, one JSON object a line; nothing is lost.")
@click.option(
    "--parquet", type=click.Path(dir_okay=False, path_type=Path), help="A Parquet file, a row an event."
)
@click.option("--otlp", metavar="URL", help="Traces to an OpenTelemetry collector, one a tree of runs.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where CloudEvents go.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_headers,
    help="With --otlp: a header. May be repeated.",
)
@click.option("--narration", is_flag=True, help="With --otlp: send what agents said and tools gave, too.")
def export(
    places: tuple[str, ...],
    cloudevents: bool,
    parquet: Path | None,
    otlp: str | None,
    output: Path | None,
    headers: dict[str, str],
    narration: bool,
) -> None:
    """
    Write runs in a format of other tools.

    CloudEvents go to standard output, or to the file of -o. --parquet needs the extra "parquet", and --otlp the
    extra "otel".
    """
    if (cloudevents, parquet is not None, otlp is not None).count(True) != 1:
        raise click.UsageError("say what to export to: one of --cloudevents, --parquet FILE, --otlp URL")
    if cloudevents:
        number = _write_cloudevents(places, output)
        click.echo(f"{number:,} events", err=True)
    elif parquet is not None:
        number = _extra("parquet").write_parquet(_events(places), parquet)
        click.echo(f"{parquet}: {number:,} events", err=True)
    else:
        send = _extra("otlp", extra="otel").send_spans
        number = send(_spans(places, narration=narration), otlp, sleep=time.sleep, headers=headers)
        click.echo(f"{number:,} spans", err=True)


def _write_cloudevents(places: tuple[str, ...], output: Path | None) -> int:
    number = 0
    with _target(output) as stream:
        for event in _events(places):
            stream.write(to_cloudevent(event) + b"\n")
            number += 1
    return number


def _extra(name: str, *, extra: str = "") -> ModuleType:
    """A module that needs packages which are not installed by default."""
    try:
        return import_module(f"ethogram.{name}")
    except ModuleNotFoundError as fault:
        wanted = extra or name
        message = f'{fault.name} is not installed: pip install "vinaya-bridge[{wanted}]"'
        raise click.ClickException(message) from fault


def _events(places: tuple[str, ...]) -> Iterator[Event]:
    for place in places:
        with open_runs(place) as store:
            for run_id in store.runs():
                yield from store.read_from(run_id)


def _spans(places: tuple[str, ...], *, narration: bool) -> Iterator[Span]:
    for place in places:
        with open_runs(place) as store:
            for root in arrange(overviews(store)):
                inside = [tree.run.run_id for _, tree in root.walk()]
                events = {run_id: list(store.read_from(run_id)) for run_id in inside}
                yield from tree_spans(root, events, narration=narration)


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
