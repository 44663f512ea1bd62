"""Where an output may go, and where standard input is kept while it is read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Final

from vinaya_bridge.content import BLOCK_BYTES, printable, reason
from vinaya_bridge.errors import ConfigurationError, InputError
from vinaya_bridge.files import OUTPUT_IN_INPUT, SPOOL_FAILED, identities

OUTPUT_PARTS: Final = ("runs", "kept", "state", "report.json")
"""What is written inside an output directory."""


def check_output_not_inside_inputs(out: str | Path, inputs: Sequence[str | Path]) -> None:
    """
    Refuse an output that would be written among the inputs, or over one.

    Vinaya files reference, hazard 44. Links and other spellings of a path are seen through.

    Args:
        out: The output directory, or a file that would be written.

        inputs: The files and directories that are read; they need not exist yet.

    Raises:
        ConfigurationError: When ``out`` is an input, lies inside an input directory, or when an input lies
            in one of the places inside ``out`` that are written.
    """
    target = Path(out).resolve()
    written = [target, *(target / part for part in OUTPUT_PARTS)]
    for each in inputs:
        source = Path(each).resolve()
        if _is_within(target, source) or any(_is_within(source, place) for place in written[1:]):
            raise ConfigurationError(
                OUTPUT_IN_INPUT,
                f"the output would be written among the logs of {printable(os.fspath(each))}",
                place=printable(os.fspath(out)),
                remedy="choose an output directory outside of all inputs",
            )


def _is_within(path: Path, directory: Path) -> bool:
    """Tell whether a path is a directory or lies in it, by spelling or, where both exist, by identity."""
    if path.is_relative_to(directory):
        return True
    return bool(identities([directory]) & identities([path, *path.parents]))


def spool_stdin(stream: BinaryIO, directory: Path) -> Path:
    """
    Copy standard input to a file, so that it can be read like any other input.

    Args:
        stream: Standard input, as bytes.

        directory: Where to put the copy; the caller removes it.

    Returns:
        The path of the copy, named ``stdin`` and readable for its owner alone.

    Raises:
        InputError: When the input cannot be read to its end or the copy cannot be written.
    """
    path = directory / "stdin"
    try:
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
        )
        with os.fdopen(descriptor, "wb") as copy:
            shutil.copyfileobj(stream, copy, BLOCK_BYTES)
    except OSError as error:
        raise InputError(
            SPOOL_FAILED, reason(error), place="-", remedy="save the input to a file and give its path"
        ) from None
    return path
