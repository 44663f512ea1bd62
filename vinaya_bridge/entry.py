"""An entry: what is left of a log line once it is read, and all that placing its events needs."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from vinaya_bridge.mapping.emit import Emit


class Act(IntEnum):
    """What a line does to the runs it belongs to (design, section 4: Start, End, Sittings)."""

    OTHER = 0
    LOOP = 1
    """A dev_review_loop line that ends nothing."""
    CANCELLED = 2
    DRIVER_EXITED = 3
    JOURNAL_FINALIZED = 4
    DISPATCHED = 5
    DISPATCH_ENDED = 6
    UNMAPPED = 7
    """A line that the mapping leaves out: it belongs to no run."""
    SELF_TEST = 8
    """A line of the producer's own self-test: likewise."""


END_ACTS = (Act.CANCELLED, Act.DRIVER_EXITED, Act.JOURNAL_FINALIZED)
"""The lines that end a sitting, the one whose outcome counts most first."""


class Opening(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    What a ``run.started`` would say that no line states and this line implies.

    Args:
        kind: A member of ``run.started.kind``.

        actor: ``meta.actor_id``, else the role; of a dispatch the target role.

        harness: ``vinaya``; of a dispatch ``meta.runtime`` where it is known.

        repository: ``owner/name``, or None where it is not known.

        work_order: ``meta.work.ref``, or None.

        model: Of a dispatch.
    """

    kind: str
    actor: str
    harness: str
    repository: str | None = None
    work_order: str | None = None
    model: str | None = None


class Place(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    Where a line, or a piece of one, lies.

    Args:
        file: Index into the list of files of this call.

        line: Number of the physical line, from 1.

        offset: Of its first byte, in bytes of the uncompressed content.

        length: In bytes, without the newline.
    """

    file: int
    line: int
    offset: int
    length: int


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """
    One event line on its way to its runs.

    The first six fields are all that dedupe and order need; a spilled entry can be read as far as these alone.

    Args:
        identity: ``event_id``, under schema 1 ``<run_id>:<seq>``, as it leaves.

        digest: The first 16 hex digits of the content's sha256.

        main_run: Run id of the main run's first sitting.

        process: What counts ``meta.seq``.

        seq: ``meta.seq``.

        instant_us: The instant of ``meta.ts`` in microseconds since 1970, or None where it cannot be read.

        ts: ``meta.ts`` untouched.

        name: ``kind.event``.

        act: What the line does to its runs.

        effect: The escaped ``effect_id`` of a dispatch line, else empty.

        opening: What a start implied by this line would say.

        emits: The events that the mapping makes of it.

        place: Where the line lies.
    """

    identity: str
    digest: str
    main_run: str
    process: str
    seq: int
    instant_us: int | None
    ts: str
    name: str
    act: int
    effect: str
    opening: Opening
    emits: list[Emit]
    place: Place


class EntryKey(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The leading fields of an `Entry`: enough to find repeats and to order."""

    identity: str
    digest: str
    main_run: str
    process: str
    seq: int
    instant_us: int | None
