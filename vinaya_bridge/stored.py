"""The events that an output holds, wherever its sink put them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import orjson

from ethogram.sqlite_source import SqliteSource
from vinaya_bridge.errors import Code, SinkError
from vinaya_bridge.log.text import Json
from vinaya_bridge.output import OUTPUT_FOREIGN, Output
from vinaya_bridge.sinks import sink_of
from vinaya_bridge.sinks.base import sink_faults

EVENTS_ELSEWHERE = Code(
    "VB424",
    "the output's events cannot be read again",
    "The events of an output are in OUT/runs, or in the file that --sink named. They went to standard output, or the "
    "file is not there any more: put it back where it was, or convert the log again into a directory.",
)
CODES = (EVENTS_ELSEWHERE,)


def stored_payloads(output: Output) -> Iterator[tuple[str, dict[str, Json]]]:
    """
    Read all events that an output's sink holds, a run's in order; a torn last one is left out.

    Args:
        output: The output directory.

    Yields:
        Run id and payload.

    Raises:
        SinkError: They cannot be read, or are not what this tool writes; also where the sink is standard output, which
            cannot be read again.
    """
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
    if sink.file is None:
        for path in sorted(output.runs.glob("*/events.jsonl")):
            yield from _lines(path)
    elif sink.kind == "jsonl":
        yield from _lines(sink.file)
    else:
        with sink_faults(sink.file), SqliteSource(sink.file) as source:
            for run_id in source.runs():
                for event in source.read_from(run_id):
                    yield run_id, cast(dict[str, Json], event.payload)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Json]]]:
    with sink_faults(path), path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.endswith(b"\n"):
                return
            try:
                event = orjson.loads(raw)
                yield str(event["runId"]), dict(event["payload"])
            except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as fault:
                raise SinkError(
                    OUTPUT_FOREIGN,
                    f"line {number:,} is no event of this tool",
                    place=str(path),
                    remedy="see what vinaya-bridge verify says of the output",
                ) from fault
