"""The output directory: its layout, and the lock that keeps a second process out (design, section 5)."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import orjson
from attrs import field, frozen

from vinaya_bridge.errors import Code, ConfigurationError, SinkError
from vinaya_bridge.ledger import JsonValue

OUTPUT_BUSY = Code(
    "VB401",
    "another process writes to this output",
    "One output directory takes one writer at a time, so that no event is written twice and no seq is used twice. "
    "The message names the other process. Wait for it, stop it, or give another directory with -o.",
)
OUTPUT_UNWRITABLE = Code(
    "VB402",
    "the output cannot be written",
    "The disk is full, the directory is not yours, or the device failed. Nothing was lost: what was not written is "
    "read again from the log by the next call. Make room or mend the rights, then run the same command again.",
)
OUTPUT_FOREIGN = Code(
    "VB403",
    "the output holds something this tool did not write",
    "A file of the output is not what this tool writes: an event log that is not gapless, a report of another "
    "version. Nothing is guessed at and nothing is overwritten. Move it away, or give another directory with -o.",
)
_BLOCK_BYTES = 1 << 16

CODES = (OUTPUT_BUSY, OUTPUT_UNWRITABLE, OUTPUT_FOREIGN)


@frozen
class Output:
    """
    Where everything of an output directory lies.

    Args:
        root: The directory that was given with ``-o``.
    """

    root: Path = field(converter=Path)

    @property
    def runs(self) -> Path:
        """The events: ``<encoded runId>/events.jsonl``."""
        return self.root / "runs"

    @property
    def kept(self) -> Path:
        """The lines that gave no events, byte for byte."""
        return self.root / "kept"

    @property
    def state(self) -> Path:
        """What a restart needs."""
        return self.root / "state"

    @property
    def report(self) -> Path:
        """The ledger."""
        return self.root / "report.json"

    @contextmanager
    def locked(self) -> Iterator[int]:
        """
        Hold the output for this process alone; made, with what is above it, where it does not exist.

        Yields:
            The descriptor that holds it: a process that is forked meanwhile has to close its own.

        Raises:
            SinkError: Another process holds it, or it cannot be made.
        """
        path = self.state / "lock"
        with writing(self.root):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.state.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise SinkError(
                    OUTPUT_BUSY,
                    f"process {holder} is writing to it",
                    place=str(self.root),
                    remedy="wait for that process or stop it, or give another directory with -o",
                ) from None
            with writing(path):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, str(os.getpid()).encode(), 0)
            yield descriptor
        finally:
            os.close(descriptor)

    def write_report(self, report: Mapping[str, JsonValue]) -> None:
        """Write ``report.json`` whole or not at all."""
        write_atomically(self.report, orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")

    def read_report(self) -> dict[str, JsonValue] | None:
        """
        Return the last call's report, or None where there is none.

        Raises:
            ConfigurationError: There is a report.json that this tool did not write.
        """
        try:
            report = orjson.loads(self.report.read_bytes())
        except FileNotFoundError:
            return None
        except orjson.JSONDecodeError:
            report = None
        if not isinstance(report, dict) or "lines" not in report:
            raise ConfigurationError(
                OUTPUT_FOREIGN,
                "report.json is not a report of this tool",
                place=str(self.report),
                remedy="move it away, or give another directory with -o",
            )
        return report

    def cut_torn_logs(self) -> None:
        """Cut off what a killed call left behind the last newline of a run's log: it is no event, and comes again."""
        for path in self.runs.glob("*/events.jsonl"):
            with writing(path), path.open("r+b") as stream:
                size = stream.seek(0, os.SEEK_END)
                whole = _whole_bytes(stream, size)
                if whole < size:
                    stream.truncate(whole)
                if not whole:
                    path.unlink()
                    with suppress(OSError):  # something else lies there: an empty run is none
                        path.parent.rmdir()

    def clear(self, name: str) -> Path:
        """Remove a folder of ``state`` with all it holds, whoever left it, and return its path."""
        path = self.state / name
        if path.exists():
            shutil.rmtree(path)
        return path


def _whole_bytes(stream: BinaryIO, size: int) -> int:
    """The length of a log up to its last newline."""
    end = size
    while end:
        start = max(0, end - _BLOCK_BYTES)
        stream.seek(start)
        newline = stream.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """
    Turn the operating system's refusal to write into an error that says what to do.

    Args:
        path: What is being written.

    Raises:
        SinkError: Writing failed.
    """
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise SinkError(
            OUTPUT_UNWRITABLE,
            f"cannot be written: {os.strerror(error.errno or 0)}",
            place=str(error.filename or path),
            remedy="make room, then run the same command again: it goes on where this one stopped"
            if full
            else "give a directory you can write to with -o, or mend its rights, then run the same command again",
        ) from error


def write_atomically(path: Path, data: bytes) -> None:
    """
    Write a file so that a reader, or a crash, sees the old content or the new and nothing between.

    Args:
        path: The file.

        data: Its new content.
    """
    partial = path.with_name(path.name + ".part")
    with writing(path):
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
