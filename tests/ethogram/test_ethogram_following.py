"""Following a run, mirrors, streams and refusals."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ethogram.envelope import Event, EventDraft
from ethogram.faults import Finished, Gap, Invalid, MalformedLog, SinkFault
from ethogram.following import follow
from ethogram.memory import MemorySink
from ethogram.refusal import refusal_payload
from ethogram.rundir import RunDirectory
from ethogram.stream import LineMirror
from ethogram.tee import TeeSink
from ethogram.testing import FINISHED, NOTE, STARTED, STEER, event
from ethogram.validation import validate


def memory() -> MemorySink:
    ticks = count(1)
    return MemorySink(clock=lambda: f"tick-{next(ticks)}")


class Script:
    """Stands for the time between polls: at each wait it does the next thing."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._acts = iter(acts)
        self.waited_seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waited_seconds.append(seconds)
        next(self._acts)()


def test_a_follower_replays_then_follows_and_ends_with_the_run() -> None:
    sink = memory()
    sink.append("r", STARTED)

    def end() -> None:
        sink.append("r", STEER)
        sink.append("r", FINISHED)

    script = Script(lambda: None, lambda: sink.append("r", NOTE), end)
    following = follow(sink, "r", sleep=script, poll_interval_seconds=0.5)
    assert [each.seq for each in following] == [1, 2, 3, 4]
    assert (following.end, following.cursor) == ("finished", 4)
    assert script.waited_seconds == [0.5, 0.5, 0.5]
    assert list(following) == []
    assert following.end == "finished"


def test_a_cursor_is_exclusive_and_may_stand_at_the_end() -> None:
    sink = memory()
    for draft in (STARTED, NOTE, FINISHED):
        sink.append("r", draft)
    assert [each.seq for each in follow(sink, "r", 2, sleep=Script())] == [3]
    assert list(follow(sink, "r", 3, sleep=Script())) == []


def test_an_end_is_never_invented_and_time_that_is_up_is_no_error() -> None:
    sink = memory()
    polls = count(1)
    following = follow(sink, "r", sleep=lambda _: sink.append("r", NOTE), expired=lambda: next(polls) > 2)
    assert [each.seq for each in following] == [1, 2]
    assert (following.end, following.cursor) == ("expired", 2)
    sink.append("r", FINISHED)
    assert [each.seq for each in following] == [3]
    assert following.end == "finished"


def test_a_fault_of_the_source_is_passed_up_and_the_cursor_stays(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=lambda: "now") as runs:
        runs.append("r", NOTE)
        sound = runs.path("r").read_bytes()

        def spoil() -> None:
            runs.path("r").write_bytes(sound + b"nonsense\n")

        following = follow(runs, "r", sleep=Script(spoil))
        with pytest.raises(MalformedLog):
            list(following)
        assert (following.cursor, following.end) == (1, None)
        runs.path("r").write_bytes(sound)
        runs.append("r", FINISHED)
        assert [each.seq for each in following] == [2]


def test_a_follower_waits_for_a_run_that_is_not_there_yet(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "later", clock=lambda: "now") as runs:
        script = Script(lambda: runs.append("r", FINISHED))
        assert [each.type for each in follow(runs, "r", sleep=script)] == ["run.finished"]


def test_a_mirror_sees_what_is_stored_byte_for_byte(tmp_path: Path) -> None:
    stream, facts = io.BytesIO(), io.BytesIO()
    with RunDirectory(tmp_path, clock=lambda: "now") as runs:
        other = memory()
        tee = TeeSink(runs, LineMirror(stream), LineMirror(facts, facts_only=True), other)
        for draft in (STARTED, NOTE, STEER):
            tee.append("r", draft)
        tee.forward(event(4))
        assert tee.last_seq("r") == 4
        assert stream.getvalue() == runs.path("r").read_bytes()
        assert [line.split(b'"')[5] for line in facts.getvalue().splitlines()] == [
            b"run.started",
            b"control.requested",
        ]
        assert list(other.read_from("r")) == list(runs.read_from("r"))
        assert tee.mirror_faults == ()


class BrokenPipe(io.BytesIO):
    def write(self, data: object, /) -> int:
        raise BrokenPipeError(32, "the reader is gone")


def test_a_mirrors_fault_is_recorded_once_and_the_run_goes_on() -> None:
    primary, late = memory(), memory()
    closed = io.BytesIO()
    closed.close()
    primary.append("r", STARTED)
    tee = TeeSink(primary, late, LineMirror(BrokenPipe()), LineMirror(closed))
    for _ in range(3):
        tee.append("r", NOTE)
    assert primary.last_seq("r") == 4
    gap, gone, shut = tee.mirror_faults
    assert isinstance(gap.fault, Gap)
    assert gap.mirror is late
    assert [fault.event.seq for fault in (gap, gone, shut)] == [2, 2, 2]
    assert str(gone.fault) == "stream: the stream took no more"


def test_a_fault_of_the_primary_is_the_callers_and_no_mirror_sees_the_event() -> None:
    primary, mirror = memory(), memory()
    tee = TeeSink(primary, mirror)
    tee.append("r", FINISHED)
    with pytest.raises(Finished):
        tee.append("r", NOTE)
    with pytest.raises(Finished):
        tee.forward(event(2))
    assert mirror.last_seq("r") == 1


def refusals() -> Iterator[tuple[Callable[[MemorySink], object], dict[str, object]]]:
    yield lambda sink: sink.append("done", NOTE), {"cause": "finished"}
    yield lambda sink: sink.forward(event(5)), {"cause": "gap"}
    yield lambda sink: sink.forward(event(1)), {"cause": "duplicate"}
    yield (
        lambda sink: sink.append("r", EventDraft("agent.warning", {"message": "x" * 5_000})),
        {"cause": "over_bound", "field": "payload.message", "count": 5_000, "max": 4_096},
    )
    yield (
        lambda sink: sink.append("r", EventDraft("t.x", [0] * 65_536)),
        {"cause": "over_bound", "field": "payload", "count": 131_073, "max": 131_072},
    )
    yield (
        lambda sink: sink.append("r", EventDraft("agent.text", {"text": 5})),
        {"cause": "malformed", "detail": "payload.text must be a string"},
    )
    yield (
        lambda sink: sink.forward(Event("run.finished", "r", 2, "t", {"outcome": "odd", "durationMs": 1})),
        {"cause": "malformed", "detail": "payload.outcome is not a member of its closed set"},
    )
    yield (
        lambda sink: sink.append("r", EventDraft("t.x", {"k" * 5_000: 2**53})),
        {"cause": "malformed", "truncated": True},
    )


@pytest.mark.parametrize(("act", "expected"), list(refusals()))
def test_a_refusal_is_worded_as_the_sink_guide_says(
    act: Callable[[MemorySink], object], expected: dict[str, object]
) -> None:
    sink = memory()
    sink.append("done", FINISHED)
    sink.append("r", NOTE)
    with pytest.raises(SinkFault) as raised:
        act(sink)
    payload = refusal_payload(raised.value, source_seq=7, source_type="agent.text")
    validate("capture.refused", payload)
    run_id = "done" if expected["cause"] == "finished" else "r"
    assert (
        payload.items()
        >= {**expected, "sourceRunId": run_id, "sourceSeq": 7, "sourceType": "agent.text"}.items()
    )
    assert "sourceSeq" not in refusal_payload(raised.value)
    assert isinstance(raised.value, Invalid) == ("detail" in payload or "count" in payload)
