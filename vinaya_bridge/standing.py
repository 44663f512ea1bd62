"""Where a tail stands, told from its state alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from attrs import frozen

from vinaya_bridge.checkpoint import decode_checkpoint
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.output import Output
from vinaya_bridge.positions import StateError, decode_state
from vinaya_bridge.sinks import saved_checkpoint


@frozen
class Standing:
    """
    Where a tail stands.

    Args:
        writer: Process id of the one that writes, or None where none does.

        saved: Whether there is a position.

        files: Name, position and size of each file that is followed, in bytes.

        waiting: How many lines wait behind a hole.

        held: How many runs have an end that is held until they are quiet.
    """

    writer: int | None
    saved: bool
    files: list[tuple[str, int, int]]
    waiting: int
    held: int

    def data(self) -> dict[str, JsonValue]:
        """Return it as JSON."""
        return {
            "writer": self.writer,
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
    """
    output = Output(Path(out))
    saved = decode_checkpoint(saved_checkpoint(output))
    files: list[tuple[str, int, int]] = []
    if saved is not None:
        try:
            files = sorted(
                (each.name, each.position.offset, each.size) for each in decode_state(saved.follower)
            )
        except StateError:
            saved = None
    return Standing(
        writer=_writer(output.state / "lock"),
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
