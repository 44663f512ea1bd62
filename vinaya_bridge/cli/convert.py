"""``vinaya-bridge convert``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Literal

import click

from vinaya_bridge.cli.options import mapping_options, max_line_bytes_option
from vinaya_bridge.cli.words import say_json, say_summary
from vinaya_bridge.convert import ConvertOptions, Progress
from vinaya_bridge.convert import convert as convert_logs
from vinaya_bridge.jobs import executor_named


@click.command()
@click.argument(
    "inputs", metavar="IN...", nargs=-1, required=True, type=click.Path(path_type=str, allow_dash=True)
)
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="The output directory.")
@mapping_options
@click.option(
    "--clock",
    default="wall",
    show_default=True,
    type=click.Choice(["wall", "source"]),
    help="Whether an event's ts is the time of writing or that of its line.",
)
@click.option(
    "--origin",
    default="ids",
    show_default=True,
    type=click.Choice(["ids", "full"]),
    help="Whether events name their line or carry it whole, so that the log can be restored.",
)
@click.option("--include-selftest", is_flag=True, help="Convert the producer's own self-test lines too.")
@max_line_bytes_option
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many processes work; by default as many as there are cores. The output is the same.",
)
@click.option(
    "--executor",
    metavar="dask:ADDRESS",
    help="Work on a Dask cluster whose workers find IN and OUT under the same paths.",
)
@click.option(
    "--strict", is_flag=True, help="Exit with 1 when a line was refused, conflicting, late or unknown."
)
@click.option("--quiet", is_flag=True, help="Print nothing but faults.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def convert(
    context: click.Context,
    inputs: tuple[str, ...],
    out: Path,
    mapping: str,
    overlays: tuple[Path, ...],
    clock: Literal["wall", "source"],
    origin: Literal["ids", "full"],
    max_line_bytes: int,
    jobs: int | None,
    executor: str | None,
    *,
    include_selftest: bool,
    strict: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """
    Convert log directories and files into runs.

    IN is a directory that is searched at any depth, a single file, or - for standard input. What OUT holds already
    is never repeated: the same command, given again, adds only what is new.
    """
    options = ConvertOptions(
        mapping=mapping,
        overlays=overlays,
        stamp=clock,
        origin=origin,
        include_selftest=include_selftest,
        jobs=jobs,
        max_line_bytes=max_line_bytes,
        command=sys.argv[1:],
    )
    workers = nullcontext() if executor is None else executor_named(executor)
    with workers as elsewhere, _progress(quiet=quiet) as progress:
        report = convert_logs(
            inputs, out, options, progress=progress, stdin=sys.stdin.buffer, executor=elsewhere
        )
    if as_json:
        say_json(report.data)
    elif not quiet:
        say_summary(report, out, inputs)
    context.exit(report.exit_code(strict=strict))


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Progress]:
    """A bar by bytes on a terminal, nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done_bytes, _total_bytes: None
        return
    bar = click.progressbar(length=1, label="reading", file=sys.stderr)

    def advance(done_bytes: int, total_bytes: int) -> None:
        bar.length = max(1, total_bytes)
        bar.update(done_bytes - bar.pos)

    with bar:
        yield advance
