"""``ethogram runs``, ``show`` and ``follow``: what happened, as a tree of runs or event by event."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import click
import orjson

from ethogram.canonical import serialise_event
from ethogram.cli.words import JSON_OPTION, count, duration, print_json, printable, table
from ethogram.envelope import Event
from ethogram.following import follow as follow_run
from ethogram.json_text import Json
from ethogram.moment import happened
from ethogram.overview import RunOverview, RunTree, arrange, overviews, summarise
from ethogram.places import NoSuchRun, RunStore, choose_run, open_growing_runs, open_runs
from ethogram.runlog import EVENTS_FILE, run_id_of
from ethogram.usage import TOKENS, Spending

_PLACE = click.argument("place", metavar="DIR|sqlite:FILE|FILE")
_RUN = click.argument("run", required=False)
_FULL = click.option("--full", is_flag=True, help="Print whole payloads.")
_TYPES = click.option("--type", "types", multiple=True, metavar="TYPE", help="Only events of this type.")
_MOST_CANDIDATES = 10
_SUMMARY_COLUMNS = 100
_ID_COLUMNS = 80
_SUM = "Σ "


@click.command()
@_PLACE
@JSON_OPTION
def runs(place: str, as_json: bool) -> None:
    """
    Show the runs in a place as a tree.

    Tokens and cost are folded: a session's largest figure counts, and sessions are added. A figure with Σ is
    that of a run with all the runs beneath it; "≥" marks a lower bound.
    """
    with open_runs(place) as store:
        roots = arrange(overviews(store))
    if as_json:
        for depth, tree in (row for root in roots for row in root.walk()):
            print_json(_as_json(depth, tree))
        return
    rows = [row for root in roots for row in _rows(root)]
    right = ("DURATION", "EVENTS", "TOKENS", "COST")
    for line in table(("RUN", "KIND", "ACTOR", "OUTCOME", *right), rows, right=right):
        click.echo(line)
    if not rows:
        click.echo("no runs", err=True)


@click.command()
@_PLACE
@_RUN
@_TYPES
@_FULL
@JSON_OPTION
def show(place: str, run: str | None, types: tuple[str, ...], full: bool, as_json: bool) -> None:
    """
    Show the events of RUN.

    RUN is an id, or a part of one that no other run has; it may be left out where there is only one. With
    --json each line is an event in canonical form.
    """
    with open_runs(place) as store:
        run_id = _chosen(store, place, run)
        if not as_json:
            _print_overview(summarise(run_id, store.read_from(run_id)))
        _print_events(store.read_from(run_id), types, full=full, as_json=as_json)


@click.command()
@_PLACE
@_RUN
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="SEQ",
    default=0,
    show_default=True,
    help="Only events after this one.",
)
@_TYPES
@_FULL
@JSON_OPTION
def follow(
    place: str, run: str | None, after: int, types: tuple[str, ...], full: bool, as_json: bool
) -> None:
    """
    Show the events of RUN, those that are there and those to come, until it ends.

    Interrupt it with Ctrl-C; "--after SEQ" goes on behind an event.
    """
    with open_growing_runs(place) as store:
        path = Path(place)
        if run is None and (path / EVENTS_FILE).is_file():
            run = run_id_of(path.resolve().name)
        run_id = _chosen(store, place, run)
        _print_events(follow_run(store, run_id, after, sleep=time.sleep), types, full=full, as_json=as_json)


def _chosen(store: RunStore, place: str, wanted: str | None) -> str:
    """Find a run, and name those that it might be where that is not clear."""
    try:
        return choose_run(store, place, wanted)
    except NoSuchRun as fault:
        for run_id in fault.fitting[:_MOST_CANDIDATES]:
            click.echo(f"  {printable(run_id)}", err=True)
        raise


def _as_json(depth: int, tree: RunTree) -> dict[str, Json]:
    row: dict[str, Json] = {**tree.run.as_json(), "depth": depth, "orphan": tree.orphan}
    if tree.children:
        row["withChildren"] = tree.spending().as_json()
    return row


def _rows(root: RunTree) -> Iterable[tuple[str, ...]]:
    """The rows of a tree, its branches drawn before the ids."""
    waiting: list[tuple[str, str, RunTree]] = [("", "", root)]
    while waiting:
        branch, stem, tree = waiting.pop()
        yield _row(branch, tree)
        last = len(tree.children) - 1
        waiting += [
            (
                f"{stem}{'└─ ' if index == last else '├─ '}",
                f"{stem}{'   ' if index == last else '│  '}",
                child,
            )
            for index, child in reversed(list(enumerate(tree.children)))
        ]


def _row(branch: str, tree: RunTree) -> tuple[str, ...]:
    run = tree.run
    spending, mark = (tree.spending(), _SUM) if tree.children else (run.spending, "")
    return (
        f"{branch}{_short(run.run_id)}",
        run.kind or "-",
        run.actor or "-",
        _outcome(run),
        _taken(run),
        str(run.events),
        _marked(mark, count(spending.total())),
        _marked(mark, _cost(spending)),
    )


def _short(run_id: str) -> str:
    """An id as it fits in a table: a long one keeps its start and its end."""
    if len(run_id) > _ID_COLUMNS:
        half = _ID_COLUMNS // 2
        return f"{run_id[:half]}…{run_id[-half:]}"
    return run_id or '""'


def _marked(mark: str, figure: str) -> str:
    return figure if figure == "-" else f"{mark}{figure}"


def _outcome(run: RunOverview) -> str:
    if run.fault is not None:
        return f"fault: {run.fault}"
    return run.outcome or "open"


def _taken(run: RunOverview) -> str:
    if run.duration_ms is None and run.elapsed_ms is not None and run.events > 1:
        return f"≥ {duration(run.elapsed_ms)}"
    return duration(run.duration_ms)


def _cost(spending: Spending) -> str:
    if spending.cost_usd is None:
        return "-"
    return f"{'≥ ' if spending.lower_bound else ''}${spending.cost_usd:.4f}"


def _print_overview(run: RunOverview) -> None:
    spending = run.spending
    figures = [
        f"{' '.join(f'{name} {number:,}' for name, number in named.items())}"
        + ("" if unit == TOKENS else f" ({unit})")
        for unit, named in spending.usage.items()
    ]
    lines = (
        ("run", run.run_id),
        ("kind", " ".join(filter(None, (run.kind, run.actor, run.harness, run.model)))),
        ("parent", run.parent_run_id),
        ("from", run.first_time),
        ("to", run.last_time),
        ("outcome", f"{_outcome(run)}, {_taken(run)}"),
        ("cost", None if spending.cost_usd is None else _cost(spending)),
        ("usage", "; ".join(figures)),
    )
    for label, text in lines:
        if text:
            click.echo(f"{label:<8}  {printable(text)}")
    click.echo()


def _print_events(events: Iterable[Event], types: tuple[str, ...], *, full: bool, as_json: bool) -> None:
    for event in events:
        if types and event.type not in types:
            continue
        if as_json:
            click.echo(serialise_event(event))
        else:
            summary = "" if full else _summary(event.payload)
            click.echo(f"{event.seq:>5}  {printable(happened(event)):<24}  {printable(event.type)}{summary}")
            if full:
                _print_payload(event.payload)


def _summary(payload: Json) -> str:
    """The payload's plain fields on the rest of the line, cut where the line is full."""
    if not isinstance(payload, dict):
        return ""
    plain = [f"{name}={value}" for name, value in payload.items() if isinstance(value, str | int | float)]
    text = printable(" ".join(plain))
    if len(text) > _SUMMARY_COLUMNS:
        text = f"{text[: _SUMMARY_COLUMNS - 1]}…"
    return f"  {text}" if text else ""


def _print_payload(payload: Json) -> None:
    for line in orjson.dumps(payload, option=orjson.OPT_INDENT_2).decode().split("\n"):
        click.echo(f"       {printable(line)}")
