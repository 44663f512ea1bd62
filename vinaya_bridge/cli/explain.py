"""``vinaya-bridge explain``."""

from __future__ import annotations

import os
import re
import shlex
import textwrap
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import cast

import click
from click.core import ParameterSource

from vinaya_bridge.cli.options import made_output, mapping_options
from vinaya_bridge.cli.reading import say_met
from vinaya_bridge.cli.words import printable
from vinaya_bridge.codes import ALL_CODES, find_code
from vinaya_bridge.errors import ConfigurationError, InputError
from vinaya_bridge.files import NO_SUCH_LINE, REMEDIES, LogFile, discover
from vinaya_bridge.kept import INDEX_NAME, REPLAYED, kept_file_name, kept_rows
from vinaya_bridge.lines import PhysicalLine, read_lines
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.text import Json
from vinaya_bridge.made_by import mapping_of
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.mapping.explain import ExplainedEvent
from vinaya_bridge.mapping.explain import explain as explain_line
from vinaya_bridge.mapping.visible import visible
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import Output
from vinaya_bridge.reading import read_pieces
from vinaya_bridge.relay import line_digest
from vinaya_bridge.reread import kept_line
from vinaya_bridge.sinks import sink_of

_PAGE_WIDTH = 88
_LONGEST_VALUE = 60
_BLOCK_KEYS = (
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
)
_PLACE = re.compile(r"(.+):([0-9]{1,18})", re.DOTALL)


@click.command()
@click.argument("what", metavar="CODE | FILE:LINE | OUT RUN:SEQ [LOGS]...", nargs=-1, required=True)
@mapping_options
@click.pass_context
def explain(context: click.Context, what: tuple[str, ...], mapping: str, overlays: tuple[Path, ...]) -> None:
    """
    Explain a code, a line of a log, or an event of an output.

    CODE, such as VB203: what it means, why it is so, what to do; the word codes lists all of them. FILE:LINE: what the
    line is, and the events that it gives, each field with where it came from. OUT RUN:SEQ: the way back from an event
    to its line, which is shown where the LOGS are given, with OUT's own mapping unless another is named.
    """
    if len(what) > 1:
        is_named = overlays or context.get_parameter_source("mapping") is not ParameterSource.DEFAULT
        named = load_mapping(mapping, overlays) if is_named else None
        _explain_event(Path(what[0]), what[1], what[2:], named)
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
    if found is None and os.path.isdir(what):  # noqa: PTH112 - a Path raises where a name is too long
        raise click.UsageError("of an output, name an event too: OUT RUN:SEQ")
    if found is None and os.path.exists(what):  # noqa: PTH110
        raise click.UsageError("of a file, name a line: FILE:LINE")
    if found is None:
        raise click.UsageError(f"there is no such code; vinaya-bridge explain codes lists {len(ALL_CODES)}")
    click.echo(f"{found.id}  {found.title}\n")
    click.echo(textwrap.fill(found.page, _PAGE_WIDTH))


def _explain_place(file: str, number: int, mapping: CompiledMapping) -> None:
    found = discover([file])
    if not found.files:
        for notice in found.notices:
            raise InputError(notice.code, notice.message, place=notice.name, remedy=REMEDIES[notice.code.id])
    for name, line in _lines(found.files):
        if line.number == number:
            for piece in read_pieces(Reader(), line):
                _say_line(f"{name}:{number}", piece.verdict, mapping)
            return
    raise ConfigurationError(
        NO_SUCH_LINE,
        f"there is no line {number:,}",
        place=printable(file),
        remedy="vinaya-bridge check --json lists the lines of a file with their numbers",
    )


def _explain_event(out: Path, event: str, logs: tuple[str, ...], mapping: CompiledMapping | None) -> None:
    from vinaya_bridge.stored import stored_events  # noqa: PLC0415  only this question needs it

    place = _PLACE.fullmatch(event)
    if place is None:
        raise click.UsageError("an event of an output is named as RUN:SEQ")
    output, run_id, seq = made_output(out), place[1], int(place[2])
    last = None
    for last in stored_events(output, run_id=run_id):
        if last.seq == seq:
            break
    if last is None or last.seq != seq:
        raise _no_such_event(output, run_id, None if last is None else last.seq)
    found = last.payload.get("vinaya")
    block = found if isinstance(found, dict) else {}
    click.echo(visible(f"{last.type}, event {seq} of run {run_id}"))
    for key in _BLOCK_KEYS:
        if key in block:
            click.echo(visible(f"    {key:<10}{block[key]}"))
    identity = block.get("eventId")
    if run_id == RELAY_RUN:
        _say_kept(output.kept, block.get("digest"))
    elif not isinstance(identity, str):
        click.echo("    it names no line")
    elif not logs:
        click.echo("    give the logs too, to see its line")
    else:
        happened = {
            part: f"{each.run_id}:{each.seq}"
            for each in stored_events(output, identity=identity)
            if isinstance(part := cast(dict[str, Json], each.payload["vinaya"]).get("part"), int)
        }
        _say_origin(identity, logs, mapping or mapping_of(output.read_report()), happened)


def _no_such_event(output: Output, run_id: str, last_seq: int | None) -> ConfigurationError:
    """The fault of an event that is not there; it names the runs that are, where no run has the id."""
    from vinaya_bridge.stored import NO_SUCH_EVENT, stored_runs  # noqa: PLC0415

    sink = sink_of(output)
    place = shlex.quote(str(output.root if sink.file is None else sink))
    if last_seq is not None:
        message = f"the run's events are 1 to {last_seq:,}"
        remedy = f"ethogram show {place} {shlex.quote(run_id)}"
    else:
        there = stored_runs(output)
        near = get_close_matches(run_id, there, n=3)
        names = f"; near: {', '.join(near)}" if near else f" among the {len(there):,} of the output"
        message, remedy = f"there is no such run{names}", f"ethogram runs {place}"
    return ConfigurationError(
        NO_SUCH_EVENT, printable(message), place=printable(str(output.root)), remedy=printable(remedy)
    )


def _say_kept(folder: Path, digest: object) -> None:
    """Lead from an event of the bridge's own run to the kept line that it tells of."""
    if not isinstance(digest, str):
        click.echo("    it is the bridge's own word: no one line gave it")
        return
    found = False
    for number, row in enumerate(kept_rows(folder), 1):
        if digest in {row.sha256[:16], line_digest(kept_line(folder, row).record)} and row.why != REPLAYED:
            found = True
            reason = ": ".join(each for each in (row.code, row.path, row.reason) if each)
            why = row.why.replace("_", " ")
            click.echo(
                printable(f"    kept      {row.file}:{row.line}, {why}{f': {reason}' if reason else ''}")
            )
            click.echo(
                f"    bytes     {row.length} from {row.kept_offset} of {kept_file_name(row.why)}; "
                f"row {number} of {INDEX_NAME}"
            )
    if not found:
        click.echo("    the line that it tells of is not kept")


def _say_origin(
    identity: str, logs: tuple[str, ...], mapping: CompiledMapping, happened: dict[int, str]
) -> None:
    reader = Reader()
    for log in logs:
        found = discover([log])
        say_met(found.notices)
        for name, line in _lines(found.files):
            for piece in read_pieces(reader, line):
                verdict = piece.verdict
                if isinstance(verdict, EventLine) and verdict.identity == identity:
                    click.echo()
                    _say_line(f"{name}:{line.number}", verdict, mapping, happened)
                    return
    click.echo("    no line of the logs has this identity")


def _lines(files: list[LogFile]) -> Iterator[tuple[str, PhysicalLine]]:
    for file in files:
        for line in read_lines(file, digest=False):
            yield file.name, line


def _say_line(
    place: str, verdict: Verdict | None, mapping: CompiledMapping, happened: dict[int, str] | None = None
) -> None:
    match verdict:
        case None:
            click.echo(
                printable(f"{place}  pending: the unfinished end of the file, which may become a record")
            )
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
            _say_event_line(place, verdict, mapping, happened)


def _say_event_line(
    place: str, line: EventLine, mapping: CompiledMapping, happened: dict[int, str] | None
) -> None:
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
        _say_event(event, happened)


def _say_event(event: ExplainedEvent, happened: dict[int, str] | None) -> None:
    when = f", when {event.when}" if event.when else ""
    click.echo(
        f"\n  {event.part}  {event.type} on the {event.run} run{when}: {event.verdict}  ({event.place})"
    )
    if happened is not None:
        stored = happened.get(event.part)
        click.echo(printable("     not emitted" if stored is None else f"     emitted as {stored}"))
    width = max((len(field.name) for field in event.fields), default=0)
    for field in event.fields:
        value = visible(field.value) or "(left out)"
        if len(value) > _LONGEST_VALUE:
            value = f"{value[:_LONGEST_VALUE]}…"
        place = f"  ({field.place})" if field.place else ""
        click.echo(f"     {field.name:<{width}}  {value}  from {visible(field.origin)}{place}")
