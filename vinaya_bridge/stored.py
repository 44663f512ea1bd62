"""The events that an output holds, wherever its sink put them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import orjson

from ethogram.json_text import is_unicode
from ethogram.rundir import run_directory_name
from ethogram.sqlite_source import SqliteSource
from vinaya_bridge.errors import Code, SinkError
from vinaya_bridge.log.text import Json
from vinaya_bridge.output import OUTPUT_FOREIGN, Output
from vinaya_bridge.sinks import SinkSpec, sink_of
from vinaya_bridge.sinks.base import sink_faults

EVENTS_ELSEWHERE = Code(
    "VB424",
    "the output's events cannot be read again",
    "The events of an output are in OUT/runs, or in the file that --sink named. They went to standard output, or the "
    "file is not there any more: put it back where it was, or convert the log again into a directory.",
)
NO_SUCH_EVENT = Code(
    "VB425",
    "the output has no such event",
    "An event is named by its run and its seq, counted from 1, as RUN:SEQ. The output has no run of that id, or the "
    "run is shorter. ethogram runs lists the runs of an output, and ethogram show the events of one with their seqs.",
)
CODES = (EVENTS_ELSEWHERE, NO_SUCH_EVENT)


class StoredEvent(NamedTuple):
    """
    One event that an output holds.

    Args:
        run_id: Its run.

        seq: Its number in the run, from 1.

        type: Its type.

        payload: Its payload.
    """

    run_id: str
    seq: int
    type: str
    payload: dict[str, Json]


def stored_payloads(output: Output) -> Iterator[tuple[str, dict[str, Json]]]:
    """
    Read all events that an output's sink holds, a run's in order; a torn last one is left out.

    Args:
        output: The output directory.

    Yields:
        Run id and payload.

    Raises:
        SinkError: As `stored_events`.
    """
    for event in stored_events(output):
        yield event.run_id, event.payload


def stored_events(
    output: Output, *, run_id: str | None = None, identity: str | None = None
) -> Iterator[StoredEvent]:
    """
    Read events that an output's sink holds, a run's in order; a torn last one is left out.

    Args:
        output: The output directory.

        run_id: Only those of this run.

        identity: Only those whose ``vinaya`` block names this line.

    Yields:
        The events.

    Raises:
        SinkError: They cannot be read, or are not what this tool writes; also where the sink is standard output, which
            cannot be read again.
    """
    sink = _readable_sink(output)
    if not all(is_unicode(name) for name in (run_id, identity) if name is not None):
        return  # no event can name it
    for event in _events(output, sink, run_id, identity):
        if identity is None or _identity_of(event.payload) == identity:
            yield event


def stored_runs(output: Output) -> list[str]:
    """
    Name the runs that an output's sink holds, in order.

    Args:
        output: The output directory.

    Raises:
        SinkError: As `stored_events`.
    """
    sink = _readable_sink(output)
    if sink.kind == "sqlite" and sink.file is not None:
        with sink_faults(sink.file), SqliteSource(sink.file) as source:
            return list(source.runs())
    if sink.file is None:
        logs = output.runs.glob("*/events.jsonl")
        return sorted(event.run_id for path in logs for event in islice(_lines(path), 1))
    return sorted({event.run_id for event in _lines(sink.file)})


def _readable_sink(output: Output) -> SinkSpec:
    """The output's sink; refused where its events cannot be read again."""
    sink = sink_of(output)
    if sink.kind == "-" or (sink.file is not None and not sink.file.is_file()):
        raise SinkError(
            EVENTS_ELSEWHERE,
            "its events went to standard output"
            if sink.file is None
            else "the file of its sink is not there",
            place=str(sink.file or output.root),
            remedy="put the file back where it was, or convert the log again into a directory",
        )
    return sink


def _events(
    output: Output, sink: SinkSpec, run_id: str | None, identity: str | None
) -> Iterator[StoredEvent]:
    """The events of a sink; of one run if it is given, and at least those that name an identity if it is given."""
    if sink.kind == "sqlite" and sink.file is not None:
        with sink_faults(sink.file), SqliteSource(sink.file) as source:
            for each in source.runs() if run_id is None else [run_id]:
                for stored in source.read_from(each):
                    yield StoredEvent(each, stored.seq, stored.type, cast(dict[str, Json], stored.payload))
        return
    # A line is decoded only where it can be one that is asked for: its text would hold the name.
    marks = [orjson.dumps(name) for name in (run_id, identity) if name is not None]
    if sink.file is not None:
        for event in _lines(sink.file, marks):
            if run_id is None or event.run_id == run_id:
                yield event
        return
    folder = "*" if run_id is None else run_directory_name(run_id)
    for path in sorted(output.runs.glob(f"{folder}/events.jsonl")):
        yield from _lines(path, marks)


def _identity_of(payload: dict[str, Json]) -> Json:
    block = payload.get("vinaya")
    return block.get("eventId") if isinstance(block, dict) else None


def _lines(path: Path, marks: Sequence[bytes] = ()) -> Iterator[StoredEvent]:
    """The events of a log, those alone whose lines hold all marks."""
    with sink_faults(path), path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.endswith(b"\n"):
                return
            if not all(mark in raw for mark in marks):
                continue
            try:
                event = orjson.loads(raw)
                yield StoredEvent(
                    str(event["runId"]), int(event["seq"]), str(event["type"]), dict(event["payload"])
                )
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as fault:
                raise SinkError(
                    OUTPUT_FOREIGN,
                    f"line {number:,} is no event of this tool",
                    place=str(path),
                    remedy="see what vinaya-bridge verify says of the output",
                ) from fault
