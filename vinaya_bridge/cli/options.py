"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from vinaya_bridge.cli.words import printable
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.lines import MAX_LINE_BYTES
from vinaya_bridge.output import OUTPUT_FOREIGN, Output

Command = TypeVar("Command", bound=Callable[..., object])


def overlay_option(command: Command) -> Command:
    """Give a command ``--mapping-overlay``, as its argument ``overlays``."""
    return click.option(
        "--mapping-overlay",
        "overlays",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A mapping file whose rules replace single ones. May be repeated.",
    )(command)


def max_line_bytes_option(command: Command) -> Command:
    """Give a command ``--max-line-bytes``, as its argument ``max_line_bytes``."""
    return click.option(
        "--max-line-bytes",
        metavar="N",
        default=MAX_LINE_BYTES,
        show_default=True,
        type=click.IntRange(min=1),
        help="How long a line may be; a longer one is named and not read.",
    )(command)


def mapping_options(command: Command) -> Command:
    """Give a command ``--mapping`` and ``--mapping-overlay``, as its arguments ``mapping`` and ``overlays``."""
    named = click.option(
        "--mapping", default="core", show_default=True, metavar="NAME|FILE", help="The mapping to apply."
    )
    return named(overlay_option(command))


def made_output(out: Path) -> Output:
    """
    Return an output directory that a command was given.

    Args:
        out: The directory.

    Raises:
        ConfigurationError: Nothing in it shows that it is an output.
    """
    output = Output(out)
    if not any(path.exists() for path in (output.report, output.runs, output.state)):
        raise ConfigurationError(
            OUTPUT_FOREIGN,
            "it is no output: there is no report.json, no runs and no state",
            place=printable(str(out)),
            remedy="name a directory that was given to convert or tail with -o",
        )
    return output
