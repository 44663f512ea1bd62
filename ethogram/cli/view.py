"""``ethogram view``: runs as one page for a browser."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from secrets import token_urlsafe
from threading import Event, Thread

import click

from ethogram.clock import utc_now
from ethogram.page.build import OVERHEAD_BYTES, build_page
from ethogram.page.content import content, page_runs
from ethogram.page.feed import Feed
from ethogram.page.server import LivePage, LiveServer
from ethogram.places import open_growing_runs, open_runs

_LEAST_BYTES = 1_000_000
_LEAST_EVENTS = 10_000
_POLL_SECONDS = 0.25


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="DIR|FILE...")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="The page to write.")
@click.option(
    "--max-bytes",
    type=click.IntRange(min=150_000),
    metavar="N",
    help="Cut long texts until the page is no larger.  [default: 1 MB, 100 bytes an event beyond 10,000]",
)
@click.option("--whole", is_flag=True, help="Cut no text, however large the page becomes.")
@click.option("--live", is_flag=True, help="Serve the page on this machine, and follow the runs.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    default=0,
    help="The port of --live.  [default: one that is free]",
)
def view(
    places: tuple[str, ...], output: Path | None, max_bytes: int | None, whole: bool, live: bool, port: int
) -> None:
    """
    Write runs as one page for a browser, with nothing else to load.

    Time goes across; each run has a lane for each type of event, and nested runs stand beneath their parents.
    The page holds what the events say: keep it as you keep them.

    With --live the page is served on this machine alone, at an address that cannot be guessed, and events
    come as they are written. Ctrl-C ends it.
    """
    if live:
        if len(places) != 1 or output is not None:
            raise click.UsageError("--live takes one place and writes no page")
        _serve(places[0], port)
        return
    if output is None:
        raise click.UsageError('name the page to write, for example "-o page.html"')
    runs = []
    for place in places:
        with open_runs(place) as store:
            runs += page_runs(store)
    events = sum(len(run.rows) for run in runs)
    if max_bytes is None:
        max_bytes = _LEAST_BYTES * max(events, _LEAST_EVENTS) // _LEAST_EVENTS
    shown = content(runs, made=utc_now(), max_bytes=None if whole else max_bytes - OVERHEAD_BYTES)
    page = build_page(shown, title=_title(places))
    _write(output, page)
    click.echo(f"{output}: {len(runs):,} runs, {events:,} events, {len(page):,} bytes", err=True)


def _serve(place: str, port: int) -> None:
    """Serve until a signal asks for the end: then everything stops at once, and nothing is left behind."""
    stop = Event()
    with open_growing_runs(place) as store:
        feed = Feed(store)
        feed.poll()
        live = LivePage(feed, lambda: open_growing_runs(place), _title((place,)), token_urlsafe(16), utc_now)
        try:
            server = LiveServer(live, port)
        except OSError as fault:
            message = f"port {port}: {os.strerror(fault.errno or 0)}"
            raise click.ClickException(message) from fault
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        with server:
            thread = Thread(target=server.serve_forever, name="live page", daemon=True)
            thread.start()
            click.echo(server.address)
            while not stop.wait(_POLL_SECONDS):
                feed.poll()
            feed.close()
            server.shutdown()
            thread.join()


def _title(places: tuple[str, ...]) -> str:
    names = ", ".join(Path(place).name or place for place in places[:3])
    return f"{names} · ethogram"


def _write(output: Path, page: bytes) -> None:
    """Only its owner may read the page: it holds what agents said and did."""
    try:
        fd = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as stream:
            stream.write(page)
    except OSError as fault:
        click.echo(f"Error: {output}: {os.strerror(fault.errno or 0)}", err=True)
        sys.exit(1)
