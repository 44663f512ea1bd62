"""Scan: from a physical line to entries, and to what is set aside and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
from attrs import frozen

from ethogram.validation import OverBound as ScalarBound
from ethogram.validation import PayloadTooLarge
from ethogram.vocabulary import MAX_PAYLOAD_BYTES, MAX_TEXT_SCALARS
from vinaya_bridge.asides import Aside, aside_of, named, over_bound, refused
from vinaya_bridge.entry import Act, Entry, Opening, Place
from vinaya_bridge.lines import MAX_LINE_BYTES, PhysicalLine
from vinaya_bridge.log import EventLine, Reader, Verdict
from vinaya_bridge.log.codes import UNSAFE_INTEGER
from vinaya_bridge.log.headers import HeaderFacts
from vinaya_bridge.log.identity import exact_text
from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.mapping import CompiledMapping
from vinaya_bridge.mapping.compile import Drafter
from vinaya_bridge.mapping.emit import Emit, OverBound, with_origin
from vinaya_bridge.naming import dispatch_run_id, escape, main_run_id
from vinaya_bridge.reading import split_verdict

SELF_TEST_OPERATION = "log.selftest"
"""Vinaya Log reference, Reading rules: Self-test."""

_REMEMBERED_HEADERS = 4096
_LONG_BYTES = 4096
"""A shorter line holds nothing that could break a bound."""
_RUN_MARK_SCALARS = 32
"""For the marks and numbers that make a run id of an id."""
_MAX_SAFE_SEQ = 2**53 - 1
_LOOP_ENDS = {
    "cancelled": Act.CANCELLED,
    "driver_exited": Act.DRIVER_EXITED,
    "journal_finalized": Act.JOURNAL_FINALIZED,
}
_ASKS = {
    ("operation", "completed"): ("operation", SELF_TEST_OPERATION),
    ("dev_review_loop", "driver_exited"): ("reason", "reexec"),
}
"""The field, and its value, that make an operation a self-test, and an exit no end."""

_DISPATCH_ACTS = (Act.DISPATCHED, Act.DISPATCH_ENDED)


class Scanned(NamedTuple):
    """
    An event line that was read and mapped.

    Args:
        entry: What placing it needs.

        line: The line as it was read, for the report's counts.

        raw: Its bytes.

        is_whole: Whether nothing of it is lost where its events alone remain. With ``whole_lines`` this is False
            where no event could carry the line; without, it is not asked.
    """

    entry: Entry
    line: EventLine
    raw: bytes
    is_whole: bool = True


class _Kind(NamedTuple):
    """What all lines of one kind and event have in common; with `asks` being `asked` it is another act."""

    name: str
    act: Act
    asks: str | None
    asked: str | None
    in_loop: bool
    drafts: Drafter


_Openings: TypeAlias = dict[HeaderFacts, tuple[str, Opening]]


@frozen
class ScanOptions:
    """
    What to make of lines that not everyone wants.

    Args:
        include_selftest: Whether the producer's own self-test lines are events like any other.

        whole_lines: Whether the first event of a line carries the whole line.

        max_line_bytes: How long a line may be; a longer one is passed over.
    """

    include_selftest: bool = False
    whole_lines: bool = False
    max_line_bytes: int = MAX_LINE_BYTES


class Scanner:
    """
    Reads lines and maps them; what it remembers between lines is only there to save time.

    Args:
        reader: Reads a line.

        mapping: Makes events of it.

        options: What to make of lines that not everyone wants.
    """

    def __init__(self, reader: Reader, mapping: CompiledMapping, options: ScanOptions) -> None:
        self._reader = reader
        self._mapping = mapping
        self._options = options
        self._whole_lines = options.whole_lines
        self._kinds: dict[type, _Kind] = {}
        self._headers: tuple[_Openings, _Openings] = ({}, {})

    def scan(self, line: PhysicalLine, file: int) -> Iterator[Scanned | Aside]:
        """
        Read one physical line.

        Args:
            line: The line.

            file: Index of its file.

        Returns:
            What became of each of its pieces; nearly always there is one.
        """
        return self.pieces(self._reader.read(line.record), line, file)

    def pieces(self, verdict: Verdict, line: PhysicalLine, file: int) -> Iterator[Scanned | Aside]:
        """
        Take apart a physical line that was read as one.

        Args:
            verdict: What the reader made of the whole of it.

            line: The line.

            file: Index of its file.

        Yields:
            As `scan`.
        """
        is_wrapped = line.record is not line.raw
        for found, raw, offset in split_verdict(self._reader, line, verdict):
            place = Place(file, line.number, offset, len(raw))
            record = line.record if is_wrapped else raw
            if isinstance(found, EventLine):
                yield self._whole(found, place, raw, record)
            else:
                yield aside_of(found, place, raw, record)

    def events(self, pieces: Sequence[tuple[EventLine, Place, bytes, bytes]]) -> list[Entry | Aside]:
        """
        Map many event lines that need not be carried whole, one step for all of them after the other.

        Args:
            pieces: Of each the line as the reader read it, where it lies, its bytes, and those of the record alone
                where it lies in a wrapper, else its bytes again.

        Returns:
            Of each what placing it needs; or why it is refused all the same.
        """
        EventLine.digest_all([line for line, _, _, _ in pieces])
        drafted = [self._draft(line) for line, _, _, _ in pieces]
        return [self._entry(*piece, *draft) for piece, draft in zip(pieces, drafted, strict=True)]

    def _draft(self, line: EventLine) -> tuple[_Kind, Act, list[Emit] | OverBound]:
        """What kind of line it is, what it does, and its events."""
        fields = line.record
        kind = self._kinds.get(fields.__class__) or self._learn(line)
        act = kind.act
        if kind.asks is not None and getattr(fields, kind.asks) == kind.asked:
            act = self._act(line)
        if act >= Act.UNMAPPED or fields.meta.seq > _MAX_SAFE_SEQ:
            return kind, act, []
        return kind, act, kind.drafts(line)

    def _entry(
        self,
        line: EventLine,
        place: Place,
        raw: bytes,
        record: bytes,
        kind: _Kind,
        act: Act,
        emits: list[Emit] | OverBound,
    ) -> Entry | Aside:
        fields, header = line.record, line.header
        meta = fields.meta
        seq, ts = meta.seq, meta.ts
        found = self._headers[kind.in_loop].get(header)
        main_run, opening = found or self._learn_header(line, in_loop=kind.in_loop)
        effect = ""
        if act == Act.DISPATCHED or act == Act.DISPATCH_ENDED:  # noqa: PLR1714 - a tuple costs more
            effect = escape(fields.effect_id)
            opening = _dispatch_opening(fields, opening)
        if seq > _MAX_SAFE_SEQ:
            return refused(
                raw,
                record,
                place,
                UNSAFE_INTEGER.id,
                "$.meta.seq",
                "a whole number beyond 2^53-1 cannot be carried",
                source_run=main_run,
                source_type=kind.name,
            )
        if isinstance(emits, OverBound):
            run = dispatch_run_id(main_run, effect, 1) if act in _DISPATCH_ACTS else main_run
            return over_bound(emits, raw, record, place, named(run), kind.name, seq)
        if place.length > _LONG_BYTES and (fault := _too_long(main_run, effect, opening, emits)) is not None:
            return over_bound(fault, raw, record, place, "unknown", kind.name, seq)
        return Entry(
            line.identity,
            line.digest,
            main_run,
            header.process,
            seq,
            instant_us(ts),
            ts,
            kind.name,
            act,
            effect,
            opening,
            emits,
            place,
        )

    def _whole(self, line: EventLine, place: Place, raw: bytes, record: bytes) -> Scanned | Aside:
        """Map an event line; where that is asked for, let an event carry it whole."""
        entry = self._entry(line, place, raw, record, *self._draft(line))
        if isinstance(entry, Aside):
            return entry
        if not self._whole_lines or entry.act >= Act.UNMAPPED:
            return Scanned(entry, line, raw)
        carrying = _carrying(entry.emits, line, entry.main_run)
        if carrying is None:
            return Scanned(entry, line, raw, is_whole=False)
        return Scanned(msgspec.structs.replace(entry, emits=carrying), line, raw)

    def _learn(self, line: EventLine) -> _Kind:
        """What all lines of a record class have in common; remembered where the class has one schema."""
        kind, event = line.kind, line.event
        asks, asked = _ASKS.get((kind, event), (None, None))
        found = _Kind(
            f"{kind}.{event}",
            self._act_of(kind, event),
            asks,
            asked,
            kind == "dev_review_loop",
            self._mapping.drafter(line),
        )
        if isinstance(line.record, msgspec.Struct):
            self._kinds[line.record.__class__] = found
        return found

    def _act(self, line: EventLine) -> Act:
        """What a line does that says what `_ASKS` asks for."""
        kind, event = line.kind, line.event
        if kind == "operation" and not self._options.include_selftest:
            return Act.SELF_TEST
        act = self._act_of(kind, event)
        return Act.LOOP if act == Act.DRIVER_EXITED else act

    def _act_of(self, kind: str, event: str) -> Act:
        if self._mapping.unmapped(kind, event) is not None:
            return Act.UNMAPPED
        if kind == "dev_review_loop":
            return _LOOP_ENDS.get(event, Act.LOOP)
        if kind == "dispatch":
            return Act.DISPATCHED if event == "dispatched" else Act.DISPATCH_ENDED
        return Act.OTHER

    def _learn_header(self, line: EventLine, *, in_loop: bool) -> tuple[str, Opening]:
        """The main run's id, and what a start implied by the line would say."""
        known = self._headers[in_loop]
        if len(known) >= _REMEMBERED_HEADERS:
            known.clear()
        found = known[line.header] = (main_run_id(line.main_run), _opening(line, in_loop=in_loop))
        return found


def _too_long(main_run: str, effect: str, opening: Opening, emits: list[Emit]) -> OverBound | None:
    """
    What a line without a bound on its ids and names would break once its events are placed, if anything.

    A run's id must fit the events that name it as their parent or their source, and a start that the line may imply
    must fit what a payload may hold. The size is estimated from above: a character takes six bytes at most.
    """
    run_scalars = len(main_run) + len(effect) + _RUN_MARK_SCALARS
    if run_scalars > MAX_TEXT_SCALARS:
        return OverBound("run.started", ScalarBound("payload.parentRunId", run_scalars, MAX_TEXT_SCALARS))
    named = (opening.actor, opening.harness, opening.repository, opening.work_order, opening.model)
    size = 6 * (run_scalars + sum(len(name or "") for name in named))
    size += max((len(emit.payload) for emit in emits), default=0)
    if size > MAX_PAYLOAD_BYTES:
        return OverBound("run.started", PayloadTooLarge(size, MAX_PAYLOAD_BYTES))
    return None


def _bounded(text: str | None) -> str | None:
    """A name that a start may carry; one over the protocol's bound is left out, never cut."""
    return text if text is None or len(text) <= MAX_TEXT_SCALARS else None


def _carrying(emits: list[Emit], line: EventLine, main_run: str) -> list[Emit] | None:
    """The events of a line, one of which carries it whole; None where none can."""
    text = exact_text(line.record)
    if text is None:
        return None
    # A parent's id is the main run's, with a number; escaped, a character of it takes six bytes at most.
    spare_bytes = 256 + 6 * len(main_run)
    return with_origin(emits, text, is_redacted=line.is_redacted, spare_bytes=spare_bytes)


def _opening(line: EventLine, *, in_loop: bool) -> Opening:
    """What a start implied by this line would say (design, section 4: Start)."""
    record = line.record
    meta = record.meta
    actor_id = getattr(meta, "actor_id", None)
    work = getattr(meta, "work", None)
    issue = record.subject.issue
    work_order = (None if work is None else work.ref) or (None if issue is None else str(int(issue)))
    return Opening(
        "loop" if in_loop or meta.host == "loop" or line.main_run != meta.run_id else "session",
        _bounded(actor_id) or record.subject.role,
        "vinaya",
        _bounded(meta.repo),
        _bounded(work_order),
    )


def _dispatch_opening(record: Any, opening: Opening) -> Opening:
    """The same for the run of a dispatch."""
    return Opening(
        opening.kind,
        record.target_role,
        _bounded(getattr(record.meta, "runtime", None)) or "vinaya",
        opening.repository,
        opening.work_order,
        record.model,
    )
