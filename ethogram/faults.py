"""What a sink or a source raises: each class is one thing that a caller can act on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

from ethogram.errors import EthogramError
from ethogram.json_text import ParseError
from ethogram.validation import ValidationDetails, ValidationError

LogFaultCause: TypeAlias = Literal["torn", "text", "run", "gap", "duplicate", "finished"]
"""Why a stored log is malformed: an unfinished last line, no event, a foreign run, a broken sequence."""


class SinkFault(EthogramError):  # noqa: N818  the protocol's word
    """
    The root of what a sink or source raises.

    Args:
        message: What is wrong, in names and types.

        run_id: The run that was asked for; empty where the fault is of no single run.
    """

    def __init__(self, message: str, run_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.run_id = run_id


class Finished(SinkFault):
    """Raised when something is submitted to a run that has its ``run.finished``."""

    def __init__(self, run_id: str) -> None:
        super().__init__("the run is finished: nothing follows run.finished", run_id)


class OutOfSequence(SinkFault):
    """
    Raised when a forwarded event is not the next of its run: see `Gap` and `Duplicate`.

    Args:
        run_id: The run.

        expected: The seq that would be next.

        received: The seq that came.
    """

    def __init__(self, run_id: str, expected: int, received: int) -> None:
        super().__init__(f"event {received} came where {expected} is next", run_id)
        self.expected = expected
        self.received = received


class Gap(OutOfSequence):
    """Raised when events before a forwarded one are missing."""


class Duplicate(OutOfSequence):
    """Raised when a forwarded event's seq is stored already, whatever its content."""


class Invalid(SinkFault):
    """
    Raised when a payload breaks the protocol's rules, or could not be read back.

    Args:
        run_id: The run.

        error: The fault, with its kind and path.
    """

    def __init__(self, run_id: str, error: ValidationError | ParseError) -> None:
        super().__init__(str(error), run_id)
        self.error = error

    @property
    def details(self) -> ValidationDetails | None:
        """The fault as one of the six kinds; None where the payload is valid and yet cannot be read back."""
        return self.error.details if isinstance(self.error, ValidationError) else None


class MalformedLog(SinkFault):
    """
    Raised when what a sink has stored cannot be trusted: it is never repaired in silence.

    Args:
        run_id: The run.

        line: The number of the line, from 1.

        cause: Why, as one of a closed set.

        message: Why, in words.
    """

    def __init__(self, run_id: str, line: int, cause: LogFaultCause, message: str) -> None:
        super().__init__(f"line {line} of the run's log: {message}", run_id)
        self.line = line
        self.cause = cause


class SinkUnavailable(SinkFault):
    """
    Raised when the operating system refused to store or read: a full disk, a lost mount, a missing right.

    Args:
        path: The file or directory.

        error_number: The system's ``errno``.

        message: What was being done and what the system said.

        run_id: The run, where there is one.
    """

    def __init__(self, path: str, error_number: int, message: str, run_id: str = "") -> None:
        super().__init__(f"{path}: {message}", run_id)
        self.path = path
        self.error_number = error_number


class SinkLocked(SinkFault):
    """
    Raised when another process writes to the same store.

    Args:
        path: The lock's file.

        process_id: The other process; 0 where it could not be read.
    """

    def __init__(self, path: str, process_id: int) -> None:
        super().__init__(f"{path}: process {process_id or 'unknown'} writes here already")
        self.path = path
        self.process_id = process_id


class WrongStore(SinkFault):
    """
    Raised when a file is not the store it should be: it is left as it is.

    Args:
        path: The file.

        message: What it is instead, as far as it can be told.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class StoreChanged(SinkFault):
    """Raised when a run's log is not what the sink left: another program wrote to it or put an older one back."""

    def __init__(self, run_id: str) -> None:
        super().__init__("the run's log was changed by another program; open the sink again", run_id)


@contextmanager
def system_faults(path: Path, run_id: str = "") -> Iterator[None]:
    """
    Name what the operating system refuses as a fault of the sink.

    Args:
        path: What is being read or written.

        run_id: The run, where there is one.

    Yields:
        Nothing.

    Raises:
        SinkUnavailable: An OSError came from inside.
    """
    try:
        yield
    except OSError as fault:
        message = os.strerror(fault.errno) if fault.errno else "the system refused"
        raise SinkUnavailable(str(path), fault.errno or 0, message, run_id) from fault
