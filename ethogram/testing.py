"""
The cases that every sink must pass, as a list: run them over a sink of your own.

With pytest::

    @pytest.mark.parametrize("case", SINK_CASES, ids=str)
    def test_my_sink(case: SinkCase, tmp_path: Path) -> None:
        case.check(lambda: MySink(tmp_path, clock=utc_now))

Source: the battery that the existing ethogram sinks share. A case raises AssertionError where the sink
    fails it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import Thread
from typing import Protocol, TypeAlias, cast

from attrs import frozen

from ethogram.canonical import serialise_event
from ethogram.envelope import CanonicalDraft, Event, EventDraft
from ethogram.faults import Duplicate, Finished, Gap, Invalid, SinkFault
from ethogram.json_text import Json
from ethogram.sink import BulkSink, CheckpointedSink, Sink, Source
from ethogram.validation import OverBound, PayloadTooLarge, UnknownMember, validated_payload
from ethogram.vocabulary import MAX_PAYLOAD_BYTES, MAX_TEXT_SCALARS


class SinkAndSource(Sink, Source, Protocol):
    """What a case needs: something that stores events and gives them back."""

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in any stable order.
        """


class BulkSinkAndSource(SinkAndSource, BulkSink, Protocol):
    """A sink that also takes many canonical drafts at once."""


class CheckpointedSinkAndSource(SinkAndSource, CheckpointedSink, Protocol):
    """A sink that also stores its caller's position."""


Opener: TypeAlias = Callable[[], AbstractContextManager[SinkAndSource]]
"""Opens one and the same store, each time it is called; a case closes it before it opens it again."""

BulkOpener: TypeAlias = Callable[[], AbstractContextManager[BulkSinkAndSource]]
CheckpointedOpener: TypeAlias = Callable[[], AbstractContextManager[CheckpointedSinkAndSource]]

AWKWARD_RUN_IDS = (
    "",
    "%",
    ".",
    "..",
    "a/b",
    "run.1",
    "\0",
    "é/😀",
    "A",
    "a",
    "~2",
    "x" * 300,
    "é" * 200,
    "%2E",
)
"""Run ids that a careless encoding confuses, or that no file can be called."""


@frozen
class SinkCase:
    """
    One thing that a sink must do.

    Args:
        name: What it must do, as a sentence.

        check: Raises AssertionError where a sink does not; it is given what opens an empty store.
    """

    name: str
    check: Callable[[Opener], None]

    def __str__(self) -> str:
        """The name with underscores: an identifier for a test."""
        return self.name.replace(" ", "_")


@frozen
class BulkCase:
    """As `SinkCase`, for a sink with ``append_canonical``."""

    name: str
    check: Callable[[BulkOpener], None]

    def __str__(self) -> str:
        """The name with underscores."""
        return self.name.replace(" ", "_")


@frozen
class CheckpointCase:
    """As `SinkCase`, for a sink with ``commit``."""

    name: str
    check: Callable[[CheckpointedOpener], None]

    def __str__(self) -> str:
        """The name with underscores."""
        return self.name.replace(" ", "_")


STARTED = EventDraft("run.started", {"kind": "loop", "actor": "a", "harness": "h"})
FINISHED = EventDraft("run.finished", {"outcome": "completed", "durationMs": 1})
NOTE = EventDraft("test.note", {"n": [1.5, None, {"é": "😀"}]}, "captured")
STEER = EventDraft("control.requested", {"controlId": "c", "kind": "interrupt", "by": "b"})


def event(seq: int, run_id: str = "r", type_name: str = "test.note") -> Event:
    """
    A stamped event to forward.

    Args:
        seq: Its seq.

        run_id: Its run.

        type_name: Its type; the payload fits a type that the protocol does not know.

    Returns:
        The event.
    """
    return Event(type_name, run_id, seq, f"ts-{seq}", {"n": seq}, f"captured-{seq}")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def _refused(kind: type[SinkFault], act: Callable[[], object]) -> SinkFault:
    try:
        act()
    except kind as fault:
        return fault
    raise AssertionError(f"a sink must raise {kind.__name__} here")


def _lines(sink: Source, run_id: str = "r", after: int = 0) -> list[bytes]:
    return [serialise_event(stored) for stored in sink.read_from(run_id, after)]


def _gapless_across_reopening(opener: Opener) -> None:
    for seq in range(1, 4):
        with opener() as sink:
            _expect(sink.append("r", NOTE).seq == seq, "seq goes on where it was")
            _expect(sink.last_seq("r") == seq, "last_seq is that of the last event")
    with opener() as sink:
        _expect([stored.seq for stored in sink.read_from("r")] == [1, 2, 3], "no event is lost")


def _append_returns_what_is_stored(opener: Opener) -> None:
    with opener() as sink:
        stored = [sink.append("r", draft) for draft in (STARTED, NOTE, STEER, FINISHED)]
    with opener() as sink:
        _expect(list(sink.read_from("r")) == stored, "an event reads back as it was returned")


def _over_bound_text_is_refused(opener: Opener) -> None:
    draft = EventDraft("agent.text", {"text": "😀" * (MAX_TEXT_SCALARS + 1)})
    with opener() as sink:
        fault = _refused(Invalid, lambda: sink.append("r", draft))
        details = fault.details if isinstance(fault, Invalid) else None
        expected = OverBound("payload.text", MAX_TEXT_SCALARS + 1, MAX_TEXT_SCALARS)
        _expect(details == expected, "the fault gives path, count and bound")
        _expect(sink.last_seq("r") == 0 and list(sink.runs()) == [], "a refusal leaves no trace")
        _expect(sink.append("r", NOTE).seq == 1, "a refusal uses no seq")


def _too_large_a_payload_is_refused(opener: Opener) -> None:
    payload: list[int] = [0] * 65_536
    with opener() as sink:
        forwarded = Event("test.note", "r", 1, "t", [*payload])
        for act in (
            lambda: sink.append("r", EventDraft("test.note", [*payload])),
            lambda: sink.forward(forwarded),
        ):
            fault = _refused(Invalid, act)
            details = fault.details if isinstance(fault, Invalid) else None
            expected = PayloadTooLarge(MAX_PAYLOAD_BYTES + 1, MAX_PAYLOAD_BYTES)
            _expect(details == expected, "the fault gives size and bound")
        _expect(sink.last_seq("r") == 0, "a refusal uses no seq")


def _what_could_not_be_read_back_is_refused(opener: Opener) -> None:
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with opener() as sink:
        for payload in (2**53, [1e300], {"a": float("inf")}, "\ud800", deep, {"\udc00": 1}, {1: 2}, {1, 2}):
            # What a caller without types may send.
            draft = EventDraft("test.note", cast(Json, payload))
            _refused(Invalid, lambda draft=draft: sink.append("r", draft))  # type: ignore[misc]
        for broken in (EventDraft("t\ud800", 1), EventDraft("t", 1, "\ud800")):
            _refused(Invalid, lambda broken=broken: sink.append("r", broken))  # type: ignore[misc]
        _refused(Invalid, lambda: sink.append("r\ud800", NOTE))
        _expect(list(sink.runs()) == [], "a refusal leaves no trace")


def _validation_beats_sequence(opener: Opener) -> None:
    payload = {"controlId": "c", "kind": "sing", "by": "b"}
    with opener() as sink:
        sink.append("r", NOTE)
        for seq in (1, 2, 3):
            wrong = Event("control.requested", "r", seq, "t", {**payload})
            fault = _refused(Invalid, lambda wrong=wrong: sink.forward(wrong))  # type: ignore[misc]
            details = fault.details if isinstance(fault, Invalid) else None
            _expect(details == UnknownMember("payload.kind", "sing"), "the fault names the member")
        _expect(sink.last_seq("r") == 1, "a refusal uses no seq")


def _forwarded_events_stay_as_they_are(opener: Opener) -> None:
    events = [event(seq) for seq in range(1, 4)]
    with opener() as sink:
        for forwarded in events:
            sink.forward(forwarded)
    with opener() as sink:
        _expect(_lines(sink) == [serialise_event(each) for each in events], "the same canonical bytes")
        stamped = sink.append("r", NOTE)
        _expect(stamped.seq == 4, "drafts and forwarded events share one counter")


def _gap_and_duplicate_are_told_apart(opener: Opener) -> None:
    with opener() as sink:
        for received, expected in ((2, 1), (3, 1)):
            fault = _refused(Gap, lambda received=received: sink.forward(event(received)))  # type: ignore[misc]
            _expect(getattr(fault, "expected", 0) == expected, "the fault says what is next")
        sink.forward(event(1))
        fault = _refused(Duplicate, lambda: sink.forward(event(1)))
        _expect(
            (getattr(fault, "received", 0), sink.last_seq("r")) == (1, 1), "equal bytes are refused as well"
        )
        _refused(Gap, lambda: sink.forward(event(3)))
        sink.forward(event(2))


def _nothing_follows_the_finish(opener: Opener) -> None:
    with opener() as sink:
        sink.append("r", STARTED)
        sink.append("r", FINISHED)
    with opener() as sink:
        before = _lines(sink)
        for act in (
            lambda: sink.append("r", NOTE),
            lambda: sink.append("r", STEER),
            lambda: sink.append("r", FINISHED),
            lambda: sink.append("r", EventDraft("agent.text", {})),
            lambda: sink.forward(event(3)),
            lambda: sink.forward(event(9)),
            lambda: sink.forward(event(1)),
        ):
            _refused(Finished, act)
        _expect(_lines(sink) == before, "a refusal writes nothing")
        _expect(sink.append("other", NOTE).seq == 1, "other runs go on")


def _appending_and_forwarding_may_race(opener: Opener) -> None:
    with opener() as sink:
        sink.append("r", NOTE)

        def forward() -> None:
            for seq in range(2, 40):
                try:
                    sink.forward(event(seq))
                except (Duplicate, Gap):
                    continue

        def append() -> None:
            for _ in range(20):
                sink.append("r", NOTE)

        threads = [Thread(target=target) for target in (append, forward, append)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = [each.seq for each in sink.read_from("r")]
        _expect(stored == list(range(1, len(stored) + 1)), "no seq is given twice or left out")
        _expect(len(stored) >= 41, "no append is lost")


def _an_unknown_run_is_empty(opener: Opener) -> None:
    with opener() as sink:
        _expect(sink.last_seq("nobody") == 0, "last_seq is 0")
        _expect(list(sink.read_from("nobody")) == [], "there are no events")
        _expect(list(sink.runs()) == [], "asking makes no run")


def _runs_are_independent_whatever_they_are_called(opener: Opener) -> None:
    with opener() as sink:
        for times in (1, 2):
            for run_id in AWKWARD_RUN_IDS:
                _expect(sink.append(run_id, NOTE).seq == times, "each run counts for itself")
    with opener() as sink:
        _expect(sorted(sink.runs()) == sorted(AWKWARD_RUN_IDS), "each run is listed once, by its own id")
        for run_id in AWKWARD_RUN_IDS:
            _expect(
                {each.run_id for each in sink.read_from(run_id)} == {run_id}, "no run holds another's events"
            )


def _replay_is_exclusive(opener: Opener) -> None:
    with opener() as sink:
        for _ in range(3):
            sink.append("r", NOTE)
        for after in range(5):
            stored = [each.seq for each in sink.read_from("r", after)]
            _expect(stored == list(range(after + 1, 4)), "only what is after the cursor")


def _a_terminal_is_never_invented(opener: Opener) -> None:
    with opener() as sink:
        sink.append("r", STARTED)
    with opener() as sink:
        _expect([each.type for each in sink.read_from("r")] == ["run.started"], "an open run stays open")


def _as_canonical(*drafts: EventDraft) -> list[CanonicalDraft]:
    return [CanonicalDraft(d.type, validated_payload(d.type, d.payload), d.captured_at) for d in drafts]


def _a_batch_equals_its_drafts_one_by_one(opener: BulkOpener) -> None:
    drafts = (STARTED, NOTE, STEER, NOTE, FINISHED)
    with opener() as sink:
        state = sink.append_canonical("bulk", _as_canonical(*drafts[:2]))
        _expect(state[:2] == (2, False), "the state counts the batch")
        state = sink.append_canonical("bulk", [])
        _expect(state[:2] == (2, False), "an empty batch changes nothing")
        state = sink.append_canonical("bulk", _as_canonical(*drafts[2:]))
        _expect(state[:2] == (5, True), "the state knows the finish")
        for draft in drafts:
            sink.append("singly", draft)
    with opener() as sink:
        bulk = [(e.seq, e.type, e.payload, e.captured_at) for e in sink.read_from("bulk")]
        singly = [(e.seq, e.type, e.payload, e.captured_at) for e in sink.read_from("singly")]
        _expect(bulk == singly, "the same events")
        lines = sum(len(line) + 1 for line in _lines(sink, "bulk"))
        _expect(state.size_bytes == lines, "the state measures the canonical lines")


def _a_batch_is_refused_whole(opener: BulkOpener) -> None:
    with opener() as sink:
        _refused(Finished, lambda: sink.append_canonical("r", _as_canonical(NOTE, FINISHED, NOTE)))
        _expect(sink.last_seq("r") == 0 and list(sink.runs()) == [], "a refusal leaves no trace")
        sink.append_canonical("r", _as_canonical(FINISHED))
        _refused(Finished, lambda: sink.append_canonical("r", _as_canonical(NOTE)))
        _expect(sink.append_canonical("r", [])[:2] == (1, True), "an empty batch is no refusal")


def _events_and_position_are_stored_together(opener: CheckpointedOpener) -> None:
    with opener() as sink:
        _expect(sink.checkpoint() is None, "a new store has no position")
        note, started, finished = _as_canonical(NOTE, STARTED, FINISHED)
        sink.commit([("a", started), ("b", note), ("a", note)], b"one")
        _expect(sink.checkpoint() == b"one", "the position is the last commit's")
    with opener() as sink:
        _expect(sink.checkpoint() == b"one", "the position outlives the process")
        _expect(
            [e.type for e in sink.read_from("a")] == ["run.started", "test.note"], "the runs are in order"
        )
        sink.commit([], b"\0two")
    with opener() as sink:
        _expect(sink.checkpoint() == b"\0two", "a position may move without events")
        sink.commit([("a", finished)], b"")
        _expect(sink.state("a")[:2] == (3, True), "the state counts the commit")
    with opener() as sink:
        _expect(sink.checkpoint() == b"", "an empty position is a position")


def _a_refused_commit_stores_nothing(opener: CheckpointedOpener) -> None:
    with opener() as sink:
        note, finished = _as_canonical(NOTE, FINISHED)
        sink.commit([("a", finished), ("b", note)], b"one")
        _refused(Finished, lambda: sink.commit([("b", note), ("a", note)], b"two"))
        _refused(Finished, lambda: sink.commit([("c", finished), ("c", note)], b"two"))
        _expect(sink.checkpoint() == b"one", "the position stays")
        _expect((sink.last_seq("b"), sink.last_seq("c")) == (1, 0), "no event is stored")
    with opener() as sink:
        _expect(sink.checkpoint() == b"one", "the position stays")


def _other_appends_leave_the_position(opener: CheckpointedOpener) -> None:
    with opener() as sink:
        sink.append("r", NOTE)
        _expect(sink.checkpoint() is None, "an append makes no position")
        sink.commit([], b"one")
        sink.append("r", NOTE)
        sink.forward(event(3))
    with opener() as sink:
        _expect(sink.checkpoint() == b"one", "an append leaves the position")
        _expect(sink.last_seq("r") == 3, "and is stored")


SINK_CASES = (
    SinkCase("seq is gapless across reopening", _gapless_across_reopening),
    SinkCase("an event reads back as append returned it", _append_returns_what_is_stored),
    SinkCase("text over its bound is refused", _over_bound_text_is_refused),
    SinkCase("too large a payload is refused", _too_large_a_payload_is_refused),
    SinkCase("what could not be read back is refused", _what_could_not_be_read_back_is_refused),
    SinkCase("validation beats sequence", _validation_beats_sequence),
    SinkCase("forwarded events stay as they are", _forwarded_events_stay_as_they_are),
    SinkCase("gap and duplicate are told apart", _gap_and_duplicate_are_told_apart),
    SinkCase("nothing follows run.finished", _nothing_follows_the_finish),
    SinkCase("appending and forwarding may race", _appending_and_forwarding_may_race),
    SinkCase("an unknown run is empty", _an_unknown_run_is_empty),
    SinkCase("runs are independent whatever they are called", _runs_are_independent_whatever_they_are_called),
    SinkCase("replay is exclusive", _replay_is_exclusive),
    SinkCase("a terminal is never invented", _a_terminal_is_never_invented),
)
"""What every sink that is also a source must do."""

BULK_CASES = (
    BulkCase("a batch equals its drafts one by one", _a_batch_equals_its_drafts_one_by_one),
    BulkCase("a batch is refused whole", _a_batch_is_refused_whole),
)
"""What a sink with ``append_canonical`` must do besides."""

CHECKPOINT_CASES = (
    CheckpointCase("events and position are stored together", _events_and_position_are_stored_together),
    CheckpointCase("a refused commit stores nothing", _a_refused_commit_stores_nothing),
    CheckpointCase("other appends leave the position", _other_appends_leave_the_position),
)
"""What a sink with ``commit`` must do besides."""
