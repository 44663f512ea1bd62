"""What is wrong with stored events, without changing any: what the ``ethogram`` command prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from attrs import frozen

from ethogram.canonical import serialise_event
from ethogram.envelope import parse_event_text
from ethogram.faults import MalformedLog, system_faults
from ethogram.json_text import ParseError
from ethogram.runfiles import RunFiles
from ethogram.runlog import EVENTS_FILE, read_log
from ethogram.validation import ValidationError, validate


@frozen
class LineReport:
    """
    What is to be said of one line.

    Args:
        line: Its number, from 1.

        kind: ``ok``, ``ParseError``, or one of the six kinds of `ethogram.validation.ValidationError`.

        path: Where the fault is, on the wire; empty for the line as a whole.

        fault: What is wrong; None where nothing is.
    """

    line: int
    kind: str = "ok"
    path: str = ""
    fault: str | None = None

    def as_json(self) -> dict[str, object]:
        """
        The report as a JSON object.

        Returns:
            ``line`` and ``kind``, and ``path`` and ``message`` where there is a fault.
        """
        fault = {} if self.fault is None else {"path": self.path, "message": self.fault}
        return {"line": self.line, "kind": self.kind, **fault}


@frozen
class RunReport:
    """
    What is to be said of one run's log.

    Args:
        place: The path of the log, and the number of the line with the fault.

        run_id: The run; None where the directory's name gives none.

        events: How many sound events come first.

        finished: Whether the run has its end.

        torn_bytes: How many bytes of an unfinished line come last.

        fault: What is wrong; None where nothing is.
    """

    place: str
    run_id: str | None
    events: int
    finished: bool = False
    torn_bytes: int = 0
    fault: str | None = None

    def as_json(self) -> dict[str, object]:
        """
        The report as a JSON object.

        Returns:
            The same fields, in the protocol's spelling; ``message`` where there is a fault.
        """
        fault = {} if self.fault is None else {"message": self.fault}
        return {
            "place": self.place,
            "runId": self.run_id,
            "events": self.events,
            "finished": self.finished,
            "tornBytes": self.torn_bytes,
            **fault,
        }


def check_lines(lines: Iterable[bytes]) -> Iterator[LineReport]:
    """
    Check events, each for itself.

    Args:
        lines: One event each, with a newline or without.

    Yields:
        One report a line.
    """
    for number, line in enumerate(lines, 1):
        try:
            event = parse_event_text(line)
            validate(event.type, event.payload)
        except ParseError as fault:
            yield LineReport(number, "ParseError", fault.path, fault.message)
        except ValidationError as fault:
            yield LineReport(number, fault.kind, fault.path, str(fault))
        else:
            yield LineReport(number)


def check_runs(root: Path) -> Iterator[RunReport]:
    """
    Check each run under a directory: gapless, one run, canonical, valid, nothing after its end.

    Args:
        root: The directory of runs.

    Yields:
        One report a run, in the order of the directories' names. It stops in a run at its first fault.

    Raises:
        SinkUnavailable: Something could not be read.
    """
    files = RunFiles(root)
    with system_faults(root):
        names = [name for name, _ in files.sizes()]
    for name in names:
        path = root / name / EVENTS_FILE
        with system_faults(path):
            yield _check_run(path, files.run_id(name))


def _check_run(path: Path, run_id: str | None) -> RunReport:
    if run_id is None:
        return RunReport(
            str(path), None, 0, fault="the directory's name is not that of the run in its first line"
        )
    events, whole_bytes, finished = 0, 0, False
    with path.open("rb") as stream, path.open("rb") as again:
        try:
            for event, length in read_log(stream, run_id):
                if again.read(length) != serialise_event(event) + b"\n":
                    return RunReport(
                        f"{path}:{event.seq}", run_id, events, fault="the line is not in canonical form"
                    )
                validate(event.type, event.payload)
                events, whole_bytes = event.seq, whole_bytes + length
                finished = event.type == "run.finished"
        except MalformedLog as fault:
            return RunReport(f"{path}:{fault.line}", run_id, events, finished, fault=fault.message)
        except ValidationError as fault:
            return RunReport(f"{path}:{events + 1}", run_id, events, finished, fault=str(fault))
        torn_bytes = len(again.read())
    return RunReport(str(path), run_id, events, finished, torn_bytes)
