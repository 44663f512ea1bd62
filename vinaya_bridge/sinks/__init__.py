"""Where a tail writes: ``runs``, ``sqlite:FILE``, ``jsonl:FILE`` or ``-``."""

from __future__ import annotations

import sys
from io import FileIO
from pathlib import Path

from attrs import frozen

from ethogram.clock import Clock
from ethogram.journal import stored_checkpoint
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.output import Output, write_atomically
from vinaya_bridge.sinks.base import CODES, OTHER_SINK, UNKNOWN_SINK, Index, TailSink
from vinaya_bridge.sinks.database import DatabaseSink, saved_in_database
from vinaya_bridge.sinks.logs import JOURNAL, LinesSink, RunsSink
from vinaya_bridge.sinks.stdout import ByteStream, StreamSink, TerminalStream

__all__ = ["CODES", "Index", "SinkSpec", "TailSink", "open_sink", "parse_sink", "saved_checkpoint", "sink_of"]

_NAMED = "sink.txt"
_MEMORY = "stdout.sqlite"


@frozen
class SinkSpec:
    """
    Which sink.

    Args:
        kind: ``runs``, ``sqlite``, ``jsonl`` or ``-``.

        file: Of ``sqlite`` and ``jsonl``, absolute; else None.
    """

    kind: str
    file: Path | None = None

    def __str__(self) -> str:
        """As it is given on the command line, the file absolute."""
        return self.kind if self.file is None else f"{self.kind}:{self.file}"


def parse_sink(text: str | None) -> SinkSpec:
    """
    Read the name of a sink.

    Args:
        text: ``runs`` or None, ``sqlite:FILE``, ``jsonl:FILE``, ``-``.

    Raises:
        ConfigurationError: There is no such sink.
    """
    if text is None or text in {"runs", "-"}:
        return SinkSpec(text or "runs")
    kind, _, file = text.partition(":")
    if kind in {"sqlite", "jsonl"} and file:
        return SinkSpec(kind, Path(file).absolute())
    raise ConfigurationError(
        UNKNOWN_SINK,
        "not the name of a sink",
        place="--sink",
        remedy="give runs, sqlite:FILE, jsonl:FILE or -",
    )


def open_sink(spec: SinkSpec, output: Output, *, clock: Clock, stdout: ByteStream | None = None) -> TailSink:
    """
    Open a sink, and let the output remember that it is its own.

    Args:
        spec: Which.

        output: The output directory, locked by the caller.

        clock: Gives ``ts``.

        stdout: What ``-`` stands for; None is the process's standard output.

    Raises:
        ConfigurationError: The output was begun with another sink.

        SinkError: It cannot be opened.
    """
    _claim(output, spec)
    if spec.kind == "-":
        return StreamSink(
            _standard_output() if stdout is None else stdout, output.state / _MEMORY, clock=clock
        )
    if spec.file is None:
        return RunsSink(output, clock=clock)
    if spec.kind == "sqlite":
        return DatabaseSink(spec.file, clock=clock)
    return LinesSink(spec.file, output, clock=clock)


def _standard_output() -> ByteStream:
    """Standard output without a buffer: what is left in one after a fault would be written at exit."""
    stream = FileIO(sys.stdout.fileno(), "wb", closefd=False)
    return TerminalStream(stream) if stream.isatty() else stream


def saved_checkpoint(output: Output) -> bytes | None:
    """
    Return the position that an output's sink holds, without opening or trusting it.

    Args:
        output: The output directory.
    """
    spec = sink_of(output)
    if spec.kind == "sqlite" and spec.file is not None:
        return saved_in_database(spec.file)
    if spec.kind == "-":
        return saved_in_database(output.state / _MEMORY)
    return stored_checkpoint(output.state / JOURNAL)


def sink_of(output: Output) -> SinkSpec:
    """
    Return the sink that an output was begun with; ``runs`` where its state does not say.

    Args:
        output: The output directory.
    """
    return _named(output) or SinkSpec("runs")


def _named(output: Output) -> SinkSpec | None:
    """The sink that an output was begun with; None where its state does not say, or says what is none."""
    try:
        text = (output.state / _NAMED).read_text(encoding="utf-8", errors="replace").strip()
        return parse_sink(text)
    except (FileNotFoundError, ConfigurationError):
        return None


def _claim(output: Output, spec: SinkSpec) -> None:
    named = _named(output)
    if named is None and output.runs.is_dir() and any(output.runs.iterdir()):
        named = SinkSpec("runs")
    if named is not None and named != spec:
        raise ConfigurationError(
            OTHER_SINK,
            f"it was begun with the sink {named}",
            place=str(output.root),
            remedy="give that sink, or another directory with -o",
        )
    write_atomically(output.state / _NAMED, f"{spec}\n".encode())
