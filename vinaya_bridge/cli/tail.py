"""``vinaya-bridge tail``."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from threading import Event
from typing import Literal

import click

from vinaya_bridge.cli.durations import seconds
from vinaya_bridge.cli.options import mapping_options, max_line_bytes_option
from vinaya_bridge.cli.words import counted, printable, row, say_json, say_next
from vinaya_bridge.ledger import equation
from vinaya_bridge.output import Output
from vinaya_bridge.running import Tell, run
from vinaya_bridge.standing import Standing, standing
from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll
from vinaya_bridge.waking import Waker

_CLEARED_LINE = "\r\033[K"


@click.command()
@click.argument("inputs", metavar="IN...", nargs=-1, type=click.Path(path_type=str))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The output directory; needed with every sink: report, kept lines and position live there.",
)
@click.option(
    "--sink",
    default="runs",
    show_default=True,
    metavar="SPEC",
    help="Where events go: runs, sqlite:FILE, jsonl:FILE, or - for standard output.",
)
@mapping_options
@click.option(
    "--poll-ms",
    default=100,
    show_default=True,
    type=click.IntRange(1, 60_000),
    metavar="N",
    help="The pause between two looks at the files, in milliseconds.",
)
@click.option(
    "--settle",
    "settle_seconds",
    default="5s",
    show_default=True,
    metavar="DURATION",
    callback=seconds,
    help="How long a hole is waited for, and how long a run must be quiet before it is closed: a number with ms, s, m "
    "or h.",
)
@click.option("--watch", is_flag=True, help="Wake early when a file changes; needs vinaya-bridge[watch].")
@click.option("--once", is_flag=True, help="Read to the end, settle without waiting, and stop.")
@click.option(
    "--from",
    "start",
    default="start",
    show_default=True,
    type=click.Choice(["start", "now"]),
    help="Where a first start begins: at the start of what is there, or at what comes now.",
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
@click.option("--quiet", is_flag=True, help="Print nothing but faults.")
@click.option("--json", "as_json", is_flag=True, help="Tell what happens as JSON lines.")
@click.option(
    "--status",
    "status_of",
    metavar="OUT",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Say where the tail of OUT stands, and do nothing else.",
)
def tail(
    inputs: tuple[str, ...],
    out: Path | None,
    sink: str,
    mapping: str,
    overlays: tuple[Path, ...],
    poll_ms: int,
    settle_seconds: float,
    start: Literal["start", "now"],
    origin: Literal["ids", "full"],
    max_line_bytes: int,
    status_of: Path | None,
    *,
    once: bool,
    watch: bool,
    include_selftest: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """
    Follow log directories while agents write to them, each event exactly once.

    IN need not exist yet. Stop it with Ctrl-C or SIGTERM; the same command goes on where it stopped.
    """
    if status_of is not None:
        _say_standing(status_of, as_json=as_json)
        return
    if inputs and out is None:
        raise click.UsageError(
            "-o OUT is needed with every --sink: report, kept lines and position live there"
        )
    if not inputs or out is None:
        raise click.UsageError("give what to follow and -o OUT; or --status OUT")
    if "-" in inputs:
        raise click.UsageError(
            "tail follows files; standard input is read with vinaya-bridge convert - -o OUT"
        )
    stop = _stopped_by_signals()
    with Tail(
        inputs,
        out,
        mapping=mapping,
        overlays=overlays,
        sink=sink,
        settle_seconds=settle_seconds,
        start=start,
        origin=origin,
        include_selftest=include_selftest,
        max_line_bytes=max_line_bytes,
        command=sys.argv[1:],
    ) as following:
        is_told = not (quiet or as_json)
        if is_told and not once:
            click.echo(f"following {_described(inputs)}; Ctrl-C to stop", err=True)
        tell = _teller(following, quiet=quiet, as_json=as_json, to_stderr=sink == "-")
        wait = Waker(inputs, stop).wait if watch else None
        run(following, stop=stop, poll_seconds=poll_ms / 1000, once=once, tell=tell, wait=wait)
    if is_told:
        _say_end(out, inputs, sink)


def _described(inputs: tuple[str, ...]) -> str:
    """What is followed, counted by what it is now."""
    paths = [Path(each) for each in inputs]
    directories = sum(path.is_dir() for path in paths)
    files = sum(path.exists() for path in paths) - directories
    missing = len(paths) - directories - files
    said = [
        counted(directories, "directory", "directories") if directories else "",
        counted(files, "file") if files else "",
        f"{counted(missing, 'path')} not there yet" if missing else "",
    ]
    return ", ".join(each for each in said if each)


def _say_end(out: Path, inputs: tuple[str, ...], sink: str) -> None:
    """The equation of the call, from its report, and the next command."""
    if sys.stderr.isatty():
        click.echo(_CLEARED_LINE, nl=False, err=True)
    report = Output(out).read_report()
    lines = report["lines"] if report is not None else None
    if isinstance(lines, dict):
        click.echo(equation({name: n for name, n in lines.items() if isinstance(n, int)}), err=True)
    if sink != "-":
        say_next(out, inputs, err=True)
    if sink not in {"runs", "-"}:
        row("", f"ethogram runs {shlex.quote(sink)}", err=True)


def _stopped_by_signals() -> Event:
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _teller(following: Tail, *, quiet: bool, as_json: bool, to_stderr: bool) -> Tell:
    if as_json:
        return lambda poll: _tell_json(following, poll, to_stderr=to_stderr)
    if quiet:
        return _tell_faults
    status_line = sys.stderr.isatty()

    def tell(poll: TailPoll) -> None:
        if status_line:
            click.echo(_CLEARED_LINE, nl=False, err=True)
        _tell(poll)
        if status_line:
            click.echo(_status(following)[: os.get_terminal_size(2).columns - 1], nl=False, err=True)

    return tell


def _tell(poll: TailPoll) -> None:
    _tell_faults(poll)
    for file, line, reason in poll.refused:
        row("kept", f"{file}:{'?' if line is None else line} {reason}", err=True)
    for run_id in poll.opened:
        row("started", run_id, err=True)
    for run_id in poll.finished:
        row("finished", run_id, err=True)


def _tell_faults(poll: TailPoll) -> None:
    for notice in poll.notices:
        row("notice", f"{notice.code.id} {notice.name}: {notice.message}", err=True)
    for gap in poll.gaps:
        row("gap", f"{gap.code.id} {gap.name}, byte {gap.offset:,}: {gap.message}", err=True)


def _status(following: Tail) -> str:
    status = following.status()
    last = f"{status.last_event[0]} {status.last_event[1]}" if status.last_event else "none yet"
    return printable(
        f"{counted(status.lag.streams, 'stream')}  {counted(status.lines['read'], 'line')}"
        f"  {counted(status.events, 'event')}"
        f"  {status.lag.bytes_behind:,} bytes behind  last: {last}"
    )


def _tell_json(following: Tail, poll: TailPoll, *, to_stderr: bool) -> None:
    rows: list[dict[str, object]] = []
    rows += [
        {"tell": "notice", "code": n.code.id, "name": n.name, "message": n.message} for n in poll.notices
    ]
    rows += [
        {
            "tell": "gap",
            "code": g.code.id,
            "stream": g.stream,
            "name": g.name,
            "offset": g.offset,
            "line": g.line,
        }
        for g in poll.gaps
    ]
    rows += [{"tell": "kept", "file": file, "line": line, "reason": why} for file, line, why in poll.refused]
    rows += [{"tell": "started", "run": run_id} for run_id in poll.opened]
    rows += [{"tell": "finished", "run": run_id} for run_id in poll.finished]
    if rows or poll.new:
        status = following.status()
        rows.append(
            {
                "tell": "status",
                "streams": status.lag.streams,
                "lines": status.lines,
                "events": status.events,
                "bytes_behind": status.lag.bytes_behind,
                "last_event": status.last_event,
                "waiting": status.waiting,
            }
        )
    for each in rows:
        say_json(each, is_indented=False, err=to_stderr)


def _say_standing(out: Path, *, as_json: bool) -> None:
    found = standing(out)
    if as_json:
        say_json(found.data())
        return
    row("writer", "none is running" if found.writer is None else f"process {found.writer}")
    row("position", _position(found))
    for name, offset, size in found.files:
        row("", f"{name}: {offset:,} of {size:,} bytes")
    if found.saved:
        row(
            "waiting",
            f"{counted(found.waiting, 'line')} behind a hole, {counted(found.held, 'run')} whose end is held",
        )


def _position(found: Standing) -> str:
    if found.saved:
        return counted(len(found.files), "file")
    return "saved, but cannot be trusted" if found.tailed else "none: no tail has run here"
