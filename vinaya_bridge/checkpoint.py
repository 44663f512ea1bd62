"""What a restart of a tail needs beside the output."""

from __future__ import annotations

import msgspec

from vinaya_bridge.holes import Arrival
from vinaya_bridge.runs import Held

CHECKPOINT_VERSION = 2


class Checkpoint(msgspec.Struct, frozen=True, array_like=True):
    """
    What a restart needs beside the output: positions, and what was read and is not written yet.

    Args:
        version: Of this form.

        follower: The state of the follower.

        waiting: Lines that wait behind a hole.

        held: Ends that are held.

        seen: The processes seen last, each with the highest seq that was given.

        total: The report's terms, of all calls, as of this position.

        kept_bytes: How long the index of the kept lines was.
    """

    version: int
    follower: bytes
    waiting: list[Arrival]
    held: list[Held]
    seen: list[tuple[str, int]]
    total: dict[str, int]
    kept_bytes: int


def decode_checkpoint(checkpoint: bytes | None) -> Checkpoint | None:
    """
    Return a saved position; None where there is none or it is of another version: then all is read again.

    Args:
        checkpoint: As the sink kept it.
    """
    if checkpoint is None:
        return None
    try:
        saved = msgspec.msgpack.decode(checkpoint, type=Checkpoint)
    except msgspec.DecodeError:
        return None
    return saved if saved.version == CHECKPOINT_VERSION else None
