"""``vinaya-bridge explain``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import orjson

from vinaya_bridge.cli.words import printable
from vinaya_bridge.codes import ALL_CODES, find_code
from vinaya_bridge.files import discover
from vinaya_bridge.lines import PhysicalLine, read_lines
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion
from vinaya_bridge.log.codes import NOT_JSON, NOT_UTF8
from vinaya_bridge.log.pieces import split_pieces
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.mapping.explain import ExplainedEvent
from vinaya_bridge.mapping.explain import explain as explain_line
from vinaya_bridge.mapping.visible import visible

_PAGE_WIDTH = 88
_LONGEST_VALUE = 60
_PLACE = re.compile(r"(.+):([0-9]+)")


@click.command()
@click.argument("what", metavar="CODE | FILE:LINE | OUT RUN:SEQ [LOGS]...", nargs=-1, required=True)
@click.option(
    "--mapping", default="core", show_default=True, metavar="NAME|FILE", help="The mapping to explain."
)
@click.option(
    "--mapping-overlay",
    "overlays",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A mapping file whose rules replace single ones. May be repeated.",
)
def explain(what: tuple[str, ...], mapping: str, overlays: tuple[Path, ...]) -> None:
    """
    Explain a code, a line of a log, or an event of an output.

    CODE, such as VB203: what it means, why it is so, what to do; the word codes lists all of them. FILE:LINE: what the
    line is, and the events that it gives, each field with where it came from. OUT RUN:SEQ: the way back from an event
    to its line, which is shown where the LOGS are given.
    """
    if len(what) > 1:
        _explain_event(what[0], what[1], what[2:], load_mapping(mapping, overlays))
        return
    place = _PLACE.fullmatch(what[0])
    if place is not None:
        _explain_place(place[1], int(place[2]), load_mapping(mapping, overlays))
        return
    _explain_code(what[0])


def _explain_code(what: str) -> None:
    if what == "codes":
        for code in ALL_CODES:
            click.echo(f"{code.id}  {code.title}")
        return
    found = find_code(what)
    if found is None:
        raise click.UsageError(f"there is no such code; vinaya-bridge explain codes lists {len(ALL_CODES)}")
    click.echo(f"{found.id}  {found.title}\n")
    click.echo(textwrap.fill(found.page, _PAGE_WIDTH))


def _explain_place(file: str, number: int, mapping: CompiledMapping) -> None:
    for name, line in _lines(file):
        if line.number == number:
            for record in _pieces(line.record):
                _say_line(f"{name}:{number}", record, mapping)
            return
    raise click.UsageError(f"{printable(file)} has no line {number}, or cannot be read")


def _explain_event(out: str, event: str, logs: tuple[str, ...], mapping: CompiledMapping) -> None:
    from ethogram.rundir import RunDirectory  # noqa: PLC0415  only this question needs it

    place = _PLACE.fullmatch(event)
    root = Path(out) / "runs"
    if place is None or not root.is_dir():
        raise click.UsageError("name an output directory, and an event of it as RUN:SEQ")
    path = RunDirectory(root, clock=str).path(place[1])
    lines = path.read_bytes().split(b"\n") if path.is_file() else []
    seq = int(place[2])
    if not 0 < seq <= len(lines) or not lines[seq - 1]:
        raise click.UsageError(f"the run has no event {seq}")
    found = orjson.loads(lines[seq - 1])
    block = found["payload"].get("vinaya", {}) if isinstance(found["payload"], dict) else {}
    click.echo(visible(f"{found['type']}, event {seq} of run {place[1]}"))
    for key in (
        "eventId",
        "part",
        "kind",
        "event",
        "schema",
        "runId",
        "processId",
        "seq",
        "digest",
        "trust",
        "implied",
    ):
        if key in block:
            click.echo(visible(f"    {key:<10}{block[key]}"))
    identity = block.get("eventId")
    if identity is None:
        click.echo("    it is the bridge's own word, or implied: no one line gave it")
    elif not logs:
        click.echo("    give the logs too, to see its line")
    else:
        _say_origin(identity, logs, mapping)


def _say_origin(identity: str, logs: tuple[str, ...], mapping: CompiledMapping) -> None:
    reader = Reader()
    for log in logs:
        for name, line in _lines(log):
            for record in _pieces(line.record):
                verdict = reader.read(record)
                if isinstance(verdict, EventLine) and verdict.identity == identity:
                    click.echo()
                    _say_line(f"{name}:{line.number}", record, mapping)
                    return
    click.echo("    no line of the logs has this identity")


def _lines(path: str) -> Iterator[tuple[str, PhysicalLine]]:
    found = discover([path])
    for notice in found.notices:
        click.echo(printable(f"{notice.code.id} {notice.name}: {notice.message}"), err=True)
    for file in found.files:
        for line in read_lines(file, digest=False):
            yield file.name, line


def _pieces(record: bytes) -> list[bytes]:
    """The records of a physical line: nearly always itself."""
    verdict = Reader().read(record)
    if not isinstance(verdict, Refused) or verdict.code not in (NOT_JSON, NOT_UTF8):
        return [record]
    return [record[piece.start : piece.start + piece.length] for piece in split_pieces(record)]


def _say_line(place: str, record: bytes, mapping: CompiledMapping) -> None:
    verdict = Reader().read(record)
    match verdict:
        case Blank():
            click.echo(printable(f"{place}  blank"))
        case UnknownVersion():
            click.echo(
                printable(f"{place}  unknown version {verdict.schema:g}: kept byte for byte, not interpreted")
            )
        case Refused():
            click.echo(printable(f"{place}  refused: {verdict.code.id} {verdict.path}: {verdict.reason}"))
            click.echo(f"    {verdict.code.title}")
        case EventLine():
            _say_event_line(place, verdict, mapping)


def _say_event_line(place: str, line: EventLine, mapping: CompiledMapping) -> None:
    click.echo(printable(f"{place}  {line.kind}.{line.event}, schema {line.schema}, an event"))
    said = {
        "identity": line.identity,
        "digest": line.digest,
        "run": line.main_run,
        "trust": line.trust or f"unknown: {line.trust_unknown}",
        "redacted": "a secret was cut out" if line.is_redacted else "",
    }
    explained = explain_line(mapping, line)
    said |= {
        "rule": explained.rule or "none",
        "generic": ", ".join(explained.generic),
        "unmapped": explained.unmapped,
        "refused": explained.refused,
    }
    for name, text in said.items():
        if text:
            click.echo(f"    {name:<10}{visible(text)}")
    for event in explained.events:
        _say_event(event)


def _say_event(event: ExplainedEvent) -> None:
    when = f", when {event.when}" if event.when else ""
    click.echo(
        f"\n  {event.part}  {event.type} on the {event.run} run{when}: {event.verdict}  ({event.place})"
    )
    width = max((len(field.name) for field in event.fields), default=0)
    for field in event.fields:
        value = visible(field.value) or "(left out)"
        if len(value) > _LONGEST_VALUE:
            value = f"{value[:_LONGEST_VALUE]}…"
        place = f"  ({field.place})" if field.place else ""
        click.echo(f"     {field.name:<{width}}  {value}  from {visible(field.origin)}{place}")
