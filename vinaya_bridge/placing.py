"""Placing: settle the identities of a partition, order each main run's lines, and append their events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from operator import attrgetter
from pathlib import Path

from attrs import Factory, define, frozen

from ethogram import CanonicalDraft
from ethogram.sink import BulkSink
from vinaya_bridge.entry import Act, Entry, EntryKey, Place
from vinaya_bridge.index import OutputIndex
from vinaya_bridge.kept import ORIGIN, identity_mark
from vinaya_bridge.large import LARGE_BYTES, LargePartition
from vinaya_bridge.ledger import Term
from vinaya_bridge.naming import dispatch_run_id
from vinaya_bridge.order import in_order, precedence
from vinaya_bridge.runs import Append, Known, MainRun, missing_emits
from vinaya_bridge.settle import Identified, fingerprints, settle
from vinaya_bridge.spill import Partition
from vinaya_bridge.stamp import Stamp

_HELD_BYTES = 4 << 20
_LARGE_LINES = 1000

_type_of = attrgetter("type")


@frozen
class Decided:
    """
    The identities that occur under several main runs, settled over all of them.

    Args:
        digests: Of the content that stays, by identity.

        places: Where the line lies that stays, by identity.
    """

    digests: Mapping[str, str] = Factory(dict)
    places: Mapping[str, Place] = Factory(dict)


@frozen
class LeftOut:
    """
    A line that gave no events, or too late, or that has to be kept beside its events.

    Args:
        why: See `vinaya_bridge.kept.KeptRow`.

        place: Where it lies.

        identity: Of the line.

        digest: Of its content.

        cause: Why the bridge's own run tells it, or None.

        run: The run that it would have gone to.

        name: ``kind.event``.

        seq: ``meta.seq``.

        stays: Of a conflict: where the line lies that stays; None where the output had it before.
    """

    why: str
    place: Place
    identity: str
    digest: str
    cause: str | None
    run: str
    name: str
    seq: int
    stays: Place | None = None


@define
class Placed:
    """
    What became of the lines of a partition.

    Args:
        terms: Of each disposition how many lines.

        unmapped: How many lines by ``kind.event``.

        events: How many events by type.

        left_out: The lines of which more has to be done, in order.
    """

    terms: Counter[str] = Factory(Counter)
    unmapped: Counter[str] = Factory(Counter)
    events: Counter[str] = Factory(Counter)
    left_out: list[LeftOut] = Factory(list)


class Placer:
    """
    Places partitions, one after another.

    Args:
        sink: Where events go; its clock is *stamp*.

        stamp: Gives their ``ts``.

        scratch: A folder for what does not fit in memory.

        index: What the output held before this call; None for an output that held nothing.

        whole_lines: Whether what gives no events is kept too.

        fills_in: Whether lines that the output holds already are still to be kept whole.

        late: Marks of the identities of lines that came too late before: they stay late.
    """

    def __init__(
        self,
        sink: BulkSink,
        stamp: Stamp,
        scratch: Path,
        *,
        index: OutputIndex | None = None,
        whole_lines: bool = False,
        fills_in: bool = False,
        late: Set[bytes] = frozenset(),
    ) -> None:
        self._sink = sink
        self._stamp = stamp
        self._scratch = scratch
        self._index = index
        self._whole_lines = whole_lines
        self._fills_in = fills_in
        self._late = late

    def place(self, partition: Partition, decided: Decided) -> Placed:
        """
        Append the events of a partition.

        Args:
            partition: The partition.

            decided: What was settled over several main runs.

        Returns:
            What became of its lines.
        """
        placed = Placed()
        if partition.spilled_bytes > LARGE_BYTES:
            self._place_large(partition, decided, placed)
            return placed
        groups: dict[str, list[Entry]] = {}
        for entry in partition.entries():
            group = groups.get(entry.main_run)
            if group is None:
                group = groups[entry.main_run] = []
            group.append(entry)
        for main_run, entries in groups.items():
            self._place_main_run(main_run, entries, decided, placed)
        return placed

    def _place_main_run(
        self, main_run: str, entries: Sequence[Entry], decided: Decided, placed: Placed
    ) -> None:
        known = self._known(entries)
        settled = settle(entries, _staying(entries, decided, known))
        placed.terms[Term.DUPLICATE] += len(settled.duplicates)
        if settled.conflicts:
            places = {entry.identity: entry.place for entry in settled.stay}
            for entry in settled.conflicts:
                stays = places.get(entry.identity) or decided.places.get(entry.identity)
                self._conflict(entry, None if entry.identity in known else stays, placed)
        run = self._main_run(main_run)
        self._place_lines(run, in_order(settled.stay), known, placed)
        self._append(run.finish(), placed)

    def _place_large(self, partition: Partition, decided: Decided, placed: Placed) -> None:
        """The same for what does not fit in memory."""

        def staying_of(keys: Sequence[EntryKey]) -> dict[str, str]:
            return _staying(keys, decided, self._known(keys))

        with LargePartition(partition, self._scratch, staying_of) as large:
            for main_run in large.main_runs():
                placed.terms[Term.DUPLICATE] += large.duplicates(main_run)
                for entry, winner in large.conflicts(main_run):
                    stays = decided.places.get(entry.identity) if winner is None else winner.place
                    self._conflict(entry, None if self._known([entry]) else stays, placed)
                run = self._main_run(main_run)
                lines = large.in_order(main_run)
                while some := list(islice(lines, _LARGE_LINES)):
                    self._place_lines(run, some, self._known(some), placed)
                self._append(run.finish(), placed)

    def _main_run(self, main_run: str) -> MainRun:
        return MainRun(main_run, None if self._index is None else self._index.facts(main_run))

    def _known(self, lines: Iterable[Identified]) -> Mapping[str, Known]:
        """What the output held of these lines before this call."""
        return {} if self._index is None else self._index.known(line.identity for line in lines)

    def _place_lines(
        self, run: MainRun, entries: Iterable[Entry], known: Mapping[str, Known], placed: Placed
    ) -> None:
        appends: list[Append] = []
        held_bytes = converted = 0
        for entry in entries:
            if entry.act >= Act.UNMAPPED:
                self._leave_out(entry, placed)
                continue
            before = known.get(entry.identity) if known else None
            if before is not None:
                if self._fills_in:
                    placed.left_out.append(_left_out(entry, ORIGIN))
                if not missing_emits(entry, before):
                    placed.terms[Term.DUPLICATE] += 1
                    continue
            stays_late = self._late and before is None and identity_mark(entry.identity) in self._late
            taken = None if stays_late else run.take(entry, before)
            if taken is None:
                placed.terms[Term.LATE] += 1
                placed.left_out.append(_left_out(entry, Term.LATE, "finished"))
                continue
            if before is None:
                converted += 1
            else:
                placed.terms[Term.DUPLICATE] += 1
            appends += taken
            held_bytes += entry.place.length
            if held_bytes > _HELD_BYTES:
                self._append(appends, placed)
                appends, held_bytes = [], 0
        placed.terms[Term.CONVERTED] += converted
        self._append(appends, placed)

    def _append(self, appends: Iterable[Append], placed: Placed) -> None:
        by_run: dict[str, list[CanonicalDraft]] = {}
        for append in appends:
            drafts = by_run.get(append.run_id)
            if drafts is None:
                drafts = by_run[append.run_id] = []
            drafts.append(CanonicalDraft(append.type, append.payload, append.captured_at))
        for run_id, drafts in by_run.items():
            placed.events.update(map(_type_of, drafts))
            self._stamp.append(self._sink, run_id, drafts)

    def _leave_out(self, entry: Entry, placed: Placed) -> None:
        term = Term.SELF_TEST if entry.act == Act.SELF_TEST else Term.UNMAPPED
        placed.terms[term] += 1
        if term is Term.UNMAPPED:
            placed.unmapped[entry.name] += 1
        if self._whole_lines:
            placed.left_out.append(_left_out(entry, term))

    def _conflict(self, entry: Entry, stays: Place | None, placed: Placed) -> None:
        placed.terms[Term.CONFLICT] += 1
        placed.left_out.append(_left_out(entry, Term.CONFLICT, "duplicate", stays))


def decide(partitions: Iterable[Partition], suspects: frozenset[int]) -> Decided:
    """
    Settle the identities that occur under several main runs, before any of these is settled.

    Args:
        partitions: All of a call.

        suspects: The fingerprints of these identities, and perhaps of others.

    Returns:
        What stays under each of them.
    """
    least: dict[str, Entry] = {}
    for partition in partitions if suspects else ():
        entries = partition.entries()
        for mark, entry in zip(fingerprints(entry.identity for entry in entries), entries, strict=True):
            if mark in suspects:
                best = least.get(entry.identity)
                if best is None or precedence(entry, entry.digest) < precedence(best, best.digest):
                    least[entry.identity] = entry
    return Decided(
        {identity: entry.digest for identity, entry in least.items()},
        {identity: entry.place for identity, entry in least.items()},
    )


def _staying(lines: Iterable[Identified], decided: Decided, known: Mapping[str, Known]) -> dict[str, str]:
    """The digest of what is known to stay under the identity of each line; lines of which nothing is are left out."""
    staying: dict[str, str] = {}
    if decided.digests:
        staying = {
            line.identity: decided.digests[line.identity]
            for line in lines
            if line.identity in decided.digests
        }
    staying.update((identity, line.digest) for identity, line in known.items())
    return staying


def _left_out(entry: Entry, why: str, cause: str | None = None, stays: Place | None = None) -> LeftOut:
    run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
    return LeftOut(
        str(why), entry.place, entry.identity, entry.digest, cause, run, entry.name, entry.seq, stays
    )
