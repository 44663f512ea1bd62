"""What a stored run is on disk: the name of its directory, and the checks that its lines must pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from ethogram.envelope import Event, parse_event_text
from ethogram.faults import LogFaultCause, MalformedLog
from ethogram.json_text import ParseError
from ethogram.sink import RunState
from ethogram.vocabulary import RUN_FINISHED

EVENTS_FILE = "events.jsonl"
"""The file in a run's directory: one canonical event a line."""

_NEW = RunState()
_MAX_NAME_BYTES = 255
_KEPT_OF_LONG_NAME = 180
_HASHED = "%_"
_ENCODED = re.compile(rb"[^A-Za-z0-9_-]")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")


def run_directory_name(run_id: str) -> str:
    """
    The name of a run's directory: injective, and the contract with every tool that reads the layout.

    Each UTF-8 byte outside ``A-Z a-z 0-9 _ -`` becomes ``%XX``, and the empty id ``%``. A name beyond 255
    bytes is its first 180 bytes, ``%_`` and the sha256 of the id: no file system could hold it otherwise.

    Args:
        run_id: Any run id.

    Returns:
        An ASCII name of 1 to 255 bytes.
    """
    encoded = run_id.encode("utf-8", "surrogatepass")
    name = _ENCODED.sub(lambda match: b"%%%02X" % match[0][0], encoded).decode() or "%"
    if len(name) <= _MAX_NAME_BYTES:
        return name
    return f"{name[:_KEPT_OF_LONG_NAME]}{_HASHED}{sha256(encoded).hexdigest()}"


def run_id_of(directory_name: str) -> str | None:
    """
    The run id that a directory's name stands for.

    Args:
        directory_name: The name of a directory under the root.

    Returns:
        The id; None for a name that holds a hash instead, and for one that no run id gives.
    """
    if _HASHED in directory_name:
        return None
    if directory_name == "%":
        return ""
    decoded = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), directory_name.encode())
    try:
        run_id = decoded.decode()
    except UnicodeDecodeError:
        return None
    return run_id if run_directory_name(run_id) == directory_name else None


class LogScan(NamedTuple):
    """
    What a run's whole log says.

    Args:
        state: The run's state after its last whole line.

        torn_bytes: The bytes after that line: a line whose newline was never written. 0 in a sound log.
    """

    state: RunState
    torn_bytes: int


def read_log(lines: Iterable[bytes], run_id: str, after: RunState = _NEW) -> Iterator[tuple[Event, int]]:
    """
    Check a run's lines and give its events. A last line without a newline is left out: it is still being
    written.

    Args:
        lines: The log cut after each 0x0A, as iterating over a binary file gives it.

        run_id: The run it must be.

        after: Where the run stands before the first of the lines.

    Yields:
        Each event and the length of its line in bytes, the newline included.

    Raises:
        MalformedLog: A line is no event, is of another run, is not the next one, or follows ``run.finished``.
    """
    finished = after.finished
    for number, line in enumerate(lines, after.last_seq + 1):
        if not line.endswith(b"\n"):
            return
        try:
            event = parse_event_text(line)
        except ParseError as fault:
            raise MalformedLog(run_id, number, "text", fault.message) from None
        cause = _broken(event, run_id, number, finished=finished)
        if cause is not None:
            raise MalformedLog(run_id, number, *cause)
        finished = event.type == RUN_FINISHED
        yield event, len(line)


def _broken(event: Event, run_id: str, expected: int, *, finished: bool) -> tuple[LogFaultCause, str] | None:
    if event.run_id != run_id:
        return "run", "the event is of another run"
    if finished:
        return "finished", "an event follows run.finished"
    if event.seq < expected:
        return "duplicate", f"event {event.seq} came where {expected} is next"
    if event.seq > expected:
        return "gap", f"event {event.seq} came where {expected} is next"
    return None


def scan_log(lines: Iterable[bytes], run_id: str, size_bytes: int) -> LogScan:
    """
    Check a run's whole log.

    Args:
        lines: As for `read_log`.

        run_id: The run it must be.

        size_bytes: The length of the log, with what may be torn at its end.

    Returns:
        Where the run stands, and how much is torn.

    Raises:
        MalformedLog: As `read_log` raises it.
    """
    last_seq, finished, whole = 0, False, 0
    for event, length in read_log(lines, run_id):
        last_seq, finished, whole = event.seq, event.type == RUN_FINISHED, whole + length
    return LogScan(RunState(last_seq, finished, whole), size_bytes - whole)
