"""What the commands that ask the Log share: opening inputs, and saying what was no event."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click

from vinaya_bridge.cli.words import say_no_logs, say_notices
from vinaya_bridge.content import reason
from vinaya_bridge.errors import InputError
from vinaya_bridge.files import SPOOL_FAILED, Notice
from vinaya_bridge.inputs import Intake
from vinaya_bridge.lines import MAX_LINE_BYTES
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.places import spool_stdin

Answer = TypeVar("Answer")

_NO_SCRATCH = "let TMPDIR name a folder that can be written, or save the input to a file and give its path"


@contextmanager
def with_stdin_spooled(inputs: Sequence[str]) -> Iterator[list[str]]:
    """
    Give inputs as paths: standard input is copied to a file, which is gone after the block.

    Args:
        inputs: Files and directories; ``-`` is standard input.

    Yields:
        The same inputs, ``-`` as the path of its copy.

    Raises:
        InputError: Standard input cannot be copied.
    """
    if "-" not in inputs:
        yield list(inputs)
        return
    try:
        scratch = tempfile.TemporaryDirectory(prefix="vinaya-bridge-")
    except OSError as error:
        raise InputError(SPOOL_FAILED, reason(error), place="-", remedy=_NO_SCRATCH) from None
    with scratch as folder:
        copy = str(spool_stdin(sys.stdin.buffer, Path(folder)))
        yield [copy if each == "-" else each for each in inputs]


def ask(
    inputs: Sequence[str],
    question: Callable[[Iterable[EventLine]], Answer],
    *,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> tuple[Answer, Intake]:
    """
    Read all event lines of some inputs and ask a question about them.

    Args:
        inputs: Files and directories; ``-`` is standard input.

        question: What is asked.

        max_line_bytes: How long a line may be.

    Returns:
        The answer, and what was read for it.
    """
    with with_stdin_spooled(inputs) as paths:
        intake = Intake(paths, Reader(), max_line_bytes=max_line_bytes)
        return question(intake), intake


def say_met(notices: Sequence[Notice]) -> None:
    """
    Say on standard error what could not be read, and what to do about the first of each kind.

    Args:
        notices: What was met among the inputs.
    """
    say_notices([{"code": each.code.id, "name": each.name, "message": each.message} for each in notices])


def say_intake(intake: Intake, inputs: Sequence[str]) -> None:
    """
    Say on standard error what could not be read, and how many lines were no events.

    Args:
        intake: What was read.

        inputs: As they were given.
    """
    say_met(intake.notices)
    if not intake.files:
        say_no_logs(inputs)
    left = {
        "refused": intake.refused,
        "of an unknown version": intake.unknown_versions,
        "not finished": intake.pending,
    }
    said = ", ".join(f"{count:,} {name}" for name, count in left.items() if count)
    if said:
        click.echo(f"not counted: {said}; see vinaya-bridge check", err=True)
