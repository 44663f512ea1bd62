"""Placing: settle the identities of a partition, order each main run's lines, and append their events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TypeAlias

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

_LARGE_LINES = 1000
_TERM_OF = {Act.UNMAPPED: Term.UNMAPPED, Act.SELF_TEST: Term.SELF_TEST}

_type_of = attrgetter("type")

_Drafts: TypeAlias = defaultdict[str, list[CanonicalDraft]]
"""What to append, by run, in order."""


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
        groups: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in partition.entries():
            groups[entry.main_run].append(entry)
        for main_run, entries in groups.items():
            self._place_main_run(main_run, entries, decided, placed)
        return placed

    def _place_main_run(
        self, main_run: str, entries: Sequence[Entry], decided: Decided, placed: Placed
    ) -> None:
        known = self._known(entries)
        staying = _staying(entries, decided, known)
        settled = settle(entries, staying)
        if settled.duplicates or settled.conflicts:
            # Of lines that say the same the first in the input stays; entries come a header's together.
            settled = settle(sorted(entries, key=_where), staying)
        placed.terms[Term.DUPLICATE] += len(settled.duplicates)
        if settled.conflicts:
            places = {entry.identity: entry.place for entry in settled.stay}
            for entry in settled.conflicts:
                stays = places.get(entry.identity) or decided.places.get(entry.identity)
                self._conflict(entry, None if entry.identity in known else stays, placed)
        run = self._main_run(main_run)
        self._place_lines(run, in_order(settled.stay), known, placed)
        self._finish(run, placed)

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
                self._finish(run, placed)

    def _main_run(self, main_run: str) -> MainRun:
        return MainRun(main_run, None if self._index is None else self._index.facts(main_run))

    def _known(self, lines: Iterable[Identified]) -> Mapping[str, Known]:
        """What the output held of these lines before this call."""
        return {} if self._index is None else self._index.known(line.identity for line in lines)

    def _place_lines(
        self, run: MainRun, entries: Sequence[Entry], known: Mapping[str, Known], placed: Placed
    ) -> None:
        """Append the events of some lines of a main run, in order."""
        mapped = [entry for entry in entries if entry.act < Act.UNMAPPED]
        if len(mapped) < len(entries):
            self._leave_out([entry for entry in entries if entry.act >= Act.UNMAPPED], placed)
        drafts: _Drafts = defaultdict(list)
        is_new = not known and not self._late
        next_line = 0
        while next_line < len(mapped):
            going = run.plain_run() if is_new else None
            if going is not None:
                first, next_line = next_line, run.take_plain(mapped, next_line, drafts[going])
                placed.terms[Term.CONVERTED] += next_line - first
            if next_line < len(mapped):
                _add(drafts, self._take(run, mapped[next_line], known, placed))
                next_line += 1
        self._append(drafts, placed)

    def _take(
        self, run: MainRun, entry: Entry, known: Mapping[str, Known], placed: Placed
    ) -> Iterable[Append]:
        """The events of the next line that the output lacks; count what becomes of the line."""
        before = known.get(entry.identity)
        if before is not None:
            if self._fills_in:
                placed.left_out.append(_left_out(entry, ORIGIN))
            if not missing_emits(entry, before):
                placed.terms[Term.DUPLICATE] += 1
                return ()
        stays_late = self._late and before is None and identity_mark(entry.identity) in self._late
        taken = None if stays_late else run.take(entry, before)
        if taken is None:
            placed.terms[Term.LATE] += 1
            placed.left_out.append(_left_out(entry, Term.LATE, "finished"))
            return ()
        placed.terms[Term.CONVERTED if before is None else Term.DUPLICATE] += 1
        return taken

    def _append(self, drafts: _Drafts, placed: Placed) -> None:
        for run_id, some in drafts.items():
            placed.events.update(map(_type_of, some))
            self._stamp.append(self._sink, run_id, some)

    def _finish(self, run: MainRun, placed: Placed) -> None:
        drafts: _Drafts = defaultdict(list)
        _add(drafts, run.finish())
        self._append(drafts, placed)

    def _leave_out(self, entries: Sequence[Entry], placed: Placed) -> None:
        """Count lines that belong to no run."""
        unmapped = [entry.name for entry in entries if entry.act == Act.UNMAPPED]
        placed.unmapped.update(unmapped)
        placed.terms[Term.UNMAPPED] += len(unmapped)
        placed.terms[Term.SELF_TEST] += len(entries) - len(unmapped)
        if self._whole_lines:
            placed.left_out.extend(_left_out(entry, _TERM_OF[Act(entry.act)]) for entry in entries)

    def _conflict(self, entry: Entry, stays: Place | None, placed: Placed) -> None:
        placed.terms[Term.CONFLICT] += 1
        placed.left_out.append(_left_out(entry, Term.CONFLICT, "duplicate", stays))


def _where(entry: Entry) -> tuple[int, int]:
    return entry.place.file, entry.place.offset


def _add(drafts: _Drafts, appends: Iterable[Append]) -> None:
    for append in appends:
        drafts[append.run_id].append(CanonicalDraft(append.type, append.payload, append.captured_at))


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
