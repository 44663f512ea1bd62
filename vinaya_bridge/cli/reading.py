"""What the commands that ask the Log share: opening inputs, and saying what was no event."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import click

from vinaya_bridge.cli.words import say_no_logs, say_notices
from vinaya_bridge.inputs import Intake
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.places import spool_stdin

Answer = TypeVar("Answer")


def ask(
    inputs: Sequence[str], question: Callable[[Iterable[EventLine]], Answer], *, max_line_bytes: int
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
    with tempfile.TemporaryDirectory(prefix="vinaya-bridge-") as scratch:
        paths = [
            str(spool_stdin(sys.stdin.buffer, Path(scratch))) if each == "-" else each for each in inputs
        ]
        intake = Intake(paths, Reader(), max_line_bytes=max_line_bytes)
        return question(intake), intake


def say_intake(intake: Intake, inputs: Sequence[str]) -> None:
    """
    Say on standard error what could not be read, and how many lines were no events.

    Args:
        intake: What was read.

        inputs: As they were given.
    """
    say_notices(
        [{"code": each.code.id, "name": each.name, "message": each.message} for each in intake.notices]
    )
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
