"""What an output holds of each line, and of the bridge's own run; each run is checked on the way."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from attrs import Factory, define

from ethogram import EthogramError, Event, canonical_payload, parse_event_text, serialise_event, validate
from ethogram.rundir import run_directory_name
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.log.identity import DIGEST_LENGTH
from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.mapping.emit import Fill
from vinaya_bridge.naming import RELAY_RUN, sitting_run_id, split_run_id
from vinaya_bridge.proof.findings import BROKEN_RUN, REPEATED, Find
from vinaya_bridge.proof.stored import StoredText
from vinaya_bridge.relay import LOST_TYPE, REFUSED_TYPE, UNKNOWN_VERSION_TYPE

_FILLS = (Fill.ELAPSED, Fill.PARENT, Fill.ELAPSED | Fill.PARENT)
_TOLD_TYPES = (REFUSED_TYPE, UNKNOWN_VERSION_TYPE, LOST_TYPE)


@define
class HeldLine:
    """
    What the output holds of one line.

    Args:
        digest: Of its content.

        parts: Number of each of its events, with the run that has it.

        prints: The `fingerprint` of each.

        unfilled: The fingerprints without what the engine adds, by part and `Fill`, where that makes a difference.

        misfilled: Parts and what the engine would have added otherwise.

        implied: The starts that it implied: the run, and the fingerprint without the parent.

        standing: Under schema 1, where each part stands: see `Standing`.

        is_whole: Whether one of its events carries it whole.

        seen: Whether the log that is read again holds it.
    """

    digest: str
    parts: dict[int, str] = Factory(dict)
    prints: dict[int, bytes] = Factory(dict)
    unfilled: dict[tuple[int, int], bytes] | None = None
    misfilled: set[tuple[int, int]] | None = None
    implied: list[tuple[str, bytes]] | None = None
    standing: dict[int, Standing] | None = None
    is_whole: bool = False
    seen: bool = False


@define
class Standing:
    """
    Where an event stands in its run.

    Args:
        number: Its seq in the run.

        ts: When it was appended.

        by_source: Whether that is the time of its line.
    """

    number: int
    ts: str
    by_source: bool

    def may_precede(self, later: Standing) -> bool:
        """Whether an event after this one can be of an earlier line of its process: another call appended it."""
        return (self.by_source and later.by_source) or later.ts >= self.ts


@define
class _Run:
    """What was read of one run."""

    number: int = 0
    is_finished: bool = False
    is_broken: bool = False
    first_captured_at: str | None = None
    last: dict[tuple[str, str], tuple[int, JsonValue, int, Standing]] = Factory(dict)


class HeldEvents:
    """
    The events of an output, checked by themselves.

    Memory grows by about 1.1 kB a line.

    Args:
        find: Told of each fault.

        in_one_call: Whether one conversion made the whole output: no process's line can then follow a later one.
    """

    def __init__(self, find: Find, *, in_one_call: bool) -> None:
        self._find = find
        self._in_one_call = in_one_call
        self._runs: dict[str, _Run] = {}
        self.lines: dict[str, HeldLine] = {}
        self.closed: set[str] = set()
        self.told: Counter[tuple[str, str]] = Counter()
        self.told_prints: dict[tuple[str, str], bytes] = {}
        self.events = 0

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self._runs)

    @property
    def named_lines(self) -> int:
        """How many lines have an event of their own: a start that they only imply is none."""
        return sum(1 for line in self.lines.values() if line.parts)

    def read(self, stored: Iterable[StoredText]) -> None:
        """
        Check events and collect what they say of their lines.

        Args:
            stored: All of the output, those of a run in order.
        """
        for place, directory, text in stored:
            if directory is not None and self._run(directory).is_broken:
                continue
            try:
                event = parse_event_text(text)
                validate(event.type, event.payload)
            except EthogramError as error:
                self._find(BROKEN_RUN, place, str(error))
                if directory is not None:
                    self._run(directory).is_broken = True
                continue
            if serialise_event(event) != text:
                self._find(BROKEN_RUN, place, "the line is not canonical")
            if directory is not None and run_directory_name(event.run_id) != directory:
                self._find(BROKEN_RUN, place, "the directory is not that of this run")
            self._take(place, self._run(event.run_id if directory is None else directory), event)

    def _run(self, key: str) -> _Run:
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run()
        return run

    def _take(self, place: str, run: _Run, event: Event) -> None:
        self.events += 1
        run.number += 1
        if run.number == 1:
            run.first_captured_at = event.captured_at
        if event.seq != run.number:
            self._find(BROKEN_RUN, place, f"seq {event.seq} where {run.number} is next")
        if (run.number == 1) != (event.type == "run.started"):
            words = "the run does not begin with run.started" if run.number == 1 else "a second run.started"
            self._find(BROKEN_RUN, place, words)
        if run.is_finished:
            self._find(BROKEN_RUN, place, "an event follows run.finished")
        run.is_finished = event.type == "run.finished"
        if run.is_finished:
            self.closed.add(event.run_id)
        payload = event.payload
        block = payload.get("vinaya") if isinstance(payload, dict) else None
        if not isinstance(payload, dict) or not isinstance(block, dict):
            self._find(BROKEN_RUN, place, "the event does not name its line")
        elif event.run_id == RELAY_RUN:
            self._take_told(place, event, payload, block)
        elif "part" in block:
            self._take_part(place, run, event, payload, block)
        elif block.get("implied") is True and event.type == "run.started":
            bare = {key: value for key, value in payload.items() if key != "parentRunId"}
            print_ = fingerprint(event.type, event.captured_at, canonical_payload(bare))
            line = self._line(block)
            line.implied = [*(line.implied or ()), (event.run_id, print_)]
            if not _is_right_parent(event.run_id, payload):
                self._find(BROKEN_RUN, place, "its parentRunId is not the run before it")
        else:
            self._find(BROKEN_RUN, place, "the event does not name its line")

    def _take_told(
        self, place: str, event: Event, payload: dict[str, JsonValue], block: dict[str, JsonValue]
    ) -> None:
        """An event of the bridge's own run; each distinct line is told once."""
        if event.type not in _TOLD_TYPES:
            if event.type != "run.started" or payload.get("kind") != "relay":
                self._find(BROKEN_RUN, place, "the bridge's own run never holds such an event")
            return
        if event.type == LOST_TYPE:
            return
        cause = payload.get("cause") if event.type == REFUSED_TYPE else event.type
        key = (str(cause), str(block.get("digest")))
        self.told[key] += 1
        self.told_prints[key] = fingerprint(event.type, event.captured_at, canonical_payload(payload))
        if self.told[key] > 1:
            self._find(REPEATED, place, "the bridge's own run tells of this line twice")

    def _line(self, block: dict[str, JsonValue]) -> HeldLine:
        identity = str(block.get("eventId"))
        line = self.lines.get(identity)
        if line is None:
            line = self.lines[identity] = HeldLine(str(block.get("digest")))
        return line

    def _take_part(
        self,
        place: str,
        run: _Run,
        event: Event,
        payload: dict[str, JsonValue],
        block: dict[str, JsonValue],
    ) -> None:
        part = block["part"]
        if not isinstance(part, int) or isinstance(part, bool) or not isinstance(block.get("eventId"), str):
            self._find(BROKEN_RUN, place, "its eventId or its part is of the wrong type")
            return
        line = self._line(block)
        if part in line.parts:
            self._find(REPEATED, place, f"part {part} of this line is also in another place")
        if line.digest != block.get("digest"):
            self._find(REPEATED, place, "another part of this line has another content")
        whole = block.pop("line", None)
        block.pop("redacted", None)
        if whole is not None:
            if hashlib.sha256(canonical_payload(whole)).hexdigest()[:DIGEST_LENGTH] != block.get("digest"):
                self._find(BROKEN_RUN, place, "the line that it carries is not the one that it names")
            line.is_whole = True
        line.parts[part] = event.run_id
        line.prints[part] = fingerprint(event.type, event.captured_at, canonical_payload(payload))
        if event.type != "run.finished":
            standing = Standing(run.number, event.ts, event.ts == event.captured_at)
            if block.get("schema") == 1:
                line.standing = {**(line.standing or {}), part: standing}
            else:
                self._check_order(place, run, block, part, standing)
        self._note_fills(run, event, payload, block, line, part)

    def _check_order(
        self, place: str, run: _Run, block: dict[str, JsonValue], part: int, standing: Standing
    ) -> None:
        seq = block.get("seq")
        if not isinstance(seq, int):
            return
        process = (str(block.get("runId")), str(block.get("processId")))
        before = run.last.get(process)
        identity = block["eventId"]
        if before is not None:
            last_seq, last_identity, last_part, last_standing = before
            # Parts have an order within a line alone: a process can give two of its lines one seq.
            is_earlier = seq < last_seq or (last_identity == identity and part < last_part)
            if is_earlier and self.is_out_of_order(last_standing, standing):
                self._find(BROKEN_RUN, place, "it stands behind a later event of its process")
        run.last[process] = (seq, identity, part, standing)

    def is_out_of_order(self, before: Standing, after: Standing) -> bool:
        """
        Whether an event of a later line of a process cannot stand before one of an earlier line.

        Args:
            before: Where the event of the later line stands.

            after: Where that of the earlier line stands, behind it.
        """
        return self._in_one_call or not before.may_precede(after)

    def _note_fills(
        self,
        run: _Run,
        event: Event,
        payload: dict[str, JsonValue],
        block: dict[str, JsonValue],
        line: HeldLine,
        part: int,
    ) -> None:
        """Note what the event is without that which only the engine knew, and whether that is right."""
        is_estimated = payload.get("estimated") is True
        wrong: set[tuple[int, int]] = set()
        if is_estimated and payload.get("durationMs") != _elapsed_ms(run, event):
            wrong.add((part, Fill.ELAPSED))
        if event.type == "run.started" and not _is_right_parent(event.run_id, payload):
            wrong.add((part, Fill.PARENT))
        if wrong:
            line.misfilled = (line.misfilled or set()) | wrong
        if not is_estimated and "parentRunId" not in payload:
            return
        line.unfilled = line.unfilled or {}
        for fill in _FILLS:
            bare = {key: value for key, value in payload.items() if key not in _filled_keys(fill)}
            unknown = block.get("unknown")
            if fill & Fill.ELAPSED and isinstance(unknown, dict):
                rest = {key: value for key, value in unknown.items() if key != "durationMs"}
                bare_block = {key: value for key, value in block.items() if key != "unknown"}
                bare["vinaya"] = {**bare_block, "unknown": rest} if rest else bare_block
            line.unfilled[part, fill] = fingerprint(event.type, event.captured_at, canonical_payload(bare))


def fingerprint(event_type: str, captured_at: str | None, payload: bytes) -> bytes:
    """
    Condense an event as its line gives it: without the sink's stamps.

    Args:
        event_type: Its type.

        captured_at: ``meta.ts``.

        payload: In canonical form.

    Returns:
        8 bytes.
    """
    head = f"{event_type}\0{captured_at}\0".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(head + payload, digest_size=8).digest()


def main_run_of(run_id: str) -> tuple[str, str | None]:
    """
    Return the main run and the effect that a run's id names; a run of no such id is its own main run.

    Args:
        run_id: Of a stored event.
    """
    try:
        main_run, effect, _ = split_run_id(run_id)
    except ValueError:
        return run_id, None
    return main_run, effect


def _filled_keys(fill: Fill) -> frozenset[str]:
    elapsed = {"durationMs", "estimated"} if fill & Fill.ELAPSED else set()
    return frozenset(elapsed | ({"parentRunId"} if fill & Fill.PARENT else set()))


def _elapsed_ms(run: _Run, event: Event) -> int:
    """What ``durationMs`` is where the line has no figure: since the run's first line; 0 where it cannot be told."""
    first, now = (
        None if text is None else instant_us(text) for text in (run.first_captured_at, event.captured_at)
    )
    return 0 if first is None or now is None else max(0, (now - first) // 1000)


def _is_right_parent(run_id: str, payload: dict[str, JsonValue]) -> bool:
    """Whether a start names the run before it: the sitting before, or of a dispatch a sitting of its main run."""
    parent = payload.get("parentRunId")
    try:
        main_run, effect, number = split_run_id(run_id)
    except ValueError:
        return False
    if effect is not None:
        return isinstance(parent, str) and main_run_of(parent) == (main_run, None)
    return parent == (None if number == 1 else sitting_run_id(main_run, number - 1))
