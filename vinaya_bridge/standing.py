"""Where a tail stands, told from its state alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from attrs import frozen

from vinaya_bridge.checkpoint import decode_checkpoint
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.output import OUTPUT_FOREIGN, Output
from vinaya_bridge.positions import StateError, decode_state
from vinaya_bridge.sinks import saved_checkpoint


@frozen
class Standing:
    """
    Where a tail stands.

    Args:
        writer: Process id of the one that writes, or None where none does.

        tailed: Whether a tail has left a position, be it one that can be trusted or not.

        saved: Whether there is a position that can be trusted.

        files: Name, position and size of each file that is followed, in bytes.

        waiting: How many lines wait behind a hole.

        held: How many runs have an end that is held until they are quiet.
    """

    writer: int | None
    tailed: bool
    saved: bool
    files: list[tuple[str, int, int]]
    waiting: int
    held: int

    def data(self) -> dict[str, JsonValue]:
        """Return it as JSON."""
        return {
            "writer": self.writer,
            "tailed": self.tailed,
            "saved": self.saved,
            "files": [{"name": name, "offset": offset, "size": size} for name, offset, size in self.files],
            "waiting": self.waiting,
            "held": self.held,
        }


def standing(out: str | Path) -> Standing:
    """
    Tell where the tail of an output stands; nothing is locked, written or read but its state.

    Args:
        out: The output directory.

    Raises:
        ConfigurationError: The directory is no output of this tool.
    """
    output = Output(Path(out))
    lock = output.state / "lock"
    if not (lock.is_file() or output.report.is_file()):
        raise ConfigurationError(
            OUTPUT_FOREIGN,
            "there is neither a report.json nor a state",
            place=str(output.root),
            remedy="name a directory that was given to tail with -o",
        )
    position = saved_checkpoint(output)
    saved = decode_checkpoint(position)
    files: list[tuple[str, int, int]] = []
    if saved is not None:
        try:
            files = sorted(
                (each.name, each.position.offset, each.size) for each in decode_state(saved.follower)
            )
        except StateError:
            saved = None
    return Standing(
        writer=_writer(lock),
        tailed=position is not None,
        saved=saved is not None,
        files=files,
        waiting=0 if saved is None else len(saved.waiting),
        held=0 if saved is None else len(saved.held),
    )


def _writer(lock: Path) -> int | None:
    """The process that holds the lock, if one does."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).strip()
        return int(holder) if holder.isdigit() else None
    finally:
        os.close(descriptor)
    return None
