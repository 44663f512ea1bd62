"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from vinaya_bridge.lines import MAX_LINE_BYTES

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
