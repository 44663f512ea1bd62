"""Lines that are too long while they are written: passed over in bounded memory, told once, and nothing else lost."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.tail.tailing import (
    LIVE,
    Desk,
    beat,
    identity_of,
    report_of,
    started,
    stored,
    text_of,
)
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.files import TOO_LONG
from vinaya_bridge.gaps import Gap
from vinaya_bridge.kept import kept_rows
from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll, joined

LIMIT = 2_000
LENGTHS = [LIMIT + 1, 100_000, 5_000_000]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, options={"max_line_bytes": LIMIT})


def poll_all(desk: Desk, tail: Tail, after: float = 0.1) -> TailPoll:
    polls = [desk.poll(tail, after=after)]
    while polls[-1].more:
        polls.append(desk.poll(tail))
    return joined(polls)


def places(gaps: list[Gap]) -> list[tuple[str, int, int | None]]:
    assert {gap.code for gap in gaps} <= {TOO_LONG}
    return [(gap.name, gap.offset, gap.line) for gap in gaps]


def lost(desk: Desk) -> list[tuple[int, int | None]]:
    """What the bridge's own run tells: offset and line of each loss."""
    events = [event for _, event in stored(desk.out) if event["type"] == "log.lines_lost"]
    assert {event["payload"]["vinaya"]["code"] for event in events} <= {TOO_LONG.id}
    return [(event["payload"]["offsetBytes"], event["payload"].get("line")) for event in events]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("origin", ["ids", "full"])
def test_a_long_line_is_told_as_a_gap_and_its_neighbours_are_converted(
    desk: Desk, length: int, origin: str
) -> None:
    first, last = text_of([started()]), text_of([beat(1)])
    desk.append(first + b"x" * length + b"\n" + last)
    with desk.tail(origin=origin) as tail:
        poll = poll_all(desk, tail)
        assert poll.new == [identity_of(started()), identity_of(beat(1))]
        assert places(poll.gaps) == [(LIVE, len(first), 1)]
        assert f"{length:,} bytes" in poll.gaps[0].message
        assert tail.status().lag.bytes_behind == 0
    assert lost(desk) == [(len(first), 1)]
    assert report_of(desk.out)["lines"]["pending"] == 1
    assert list(kept_rows(desk.out / "kept")) == []
    desk.check()


@pytest.mark.parametrize("length", LENGTHS)
def test_a_line_as_long_as_is_allowed_is_read(desk: Desk, length: int) -> None:
    line = beat(1)
    line["pad"] = "x" * length
    text = text_of([line])
    desk.append(text_of([started()]) + text)
    with desk.tail(max_line_bytes=len(text) - 1) as tail:
        poll = poll_all(desk, tail)
    assert poll.gaps == []
    (desk.root / "short").mkdir()
    with Tail([desk.log], desk.root / "short" / "out", max_line_bytes=len(text) - 2) as tail:
        assert places(poll_all(desk, tail).gaps) == [(LIVE, len(text_of([started()])), 1)]


@pytest.mark.parametrize("before", [b"", text_of([started()])])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_long_line_that_grows_is_told_once_when_it_ends_also_over_restarts(
    desk: Desk, before: bytes, restarts: bool
) -> None:
    desk.append(before)
    gaps: list[Gap] = []
    is_ended = False
    tail = desk.tail()
    for step in (b"x" * 1_500, b"x" * 1_500, b"\0" * 300_000, b"", b"\0" * 2_000_000, b"x\n", b""):
        desk.append(step)
        poll = poll_all(desk, tail, after=1)
        gaps += poll.gaps
        is_ended = is_ended or b"\n" in step
        assert len(gaps) == is_ended
        if restarts:
            tail.close()
            tail = desk.tail()
    desk.append([beat(1)])
    assert poll_all(desk, tail).new == [identity_of(beat(1))]
    tail.close()
    assert places(gaps) == [(LIVE, len(before), before.count(b"\n"))]
    assert lost(desk) == [(len(before), before.count(b"\n"))]
    desk.check()


def test_a_restart_behind_a_long_first_line_goes_on_there(desk: Desk) -> None:
    for length in LENGTHS:
        name = f"acme-lantern/{length}.ndjson"
        desk.append(b"x" * length + b"\n", name)
    with desk.tail() as tail:
        assert len(poll_all(desk, tail).gaps) == len(LENGTHS)
    for limit in (LIMIT, 3 * LIMIT, 10_000_000):
        with desk.tail(max_line_bytes=limit) as tail:
            assert poll_all(desk, tail, after=1).gaps == []
    desk.append([started(), beat(1)], f"acme-lantern/{LENGTHS[-1]}.ndjson")
    with desk.tail() as tail:
        assert len(poll_all(desk, tail).new) == 2


def test_a_long_line_whose_bytes_are_cut_off_and_replaced_takes_no_line_with_it(desk: Desk) -> None:
    first = text_of([started()])
    desk.append(first + b"x" * 200_000)
    with desk.tail() as tail:
        poll_all(desk, tail)
        with (desk.log / LIVE).open("r+b") as stream:
            stream.truncate(len(first))
            stream.seek(0, 2)
            stream.write(text_of([beat(1)]))
            stream.write(b"y" * 300_000)
        assert poll_all(desk, tail).new == [identity_of(beat(1))]
        desk.append(b"\n" + text_of([beat(2)]))
        poll = poll_all(desk, tail)
        assert (poll.new, len(poll.gaps)) == ([identity_of(beat(2))], 1)


def test_a_long_line_of_a_compressed_file_is_told_when_the_file_was_read(desk: Desk) -> None:
    first = text_of([started()])
    name = "acme-lantern/7.1.ndjson.gz"
    desk.append(gzip.compress(first + b"\0" * 9_000_000 + b"\n" + text_of([beat(1)])), name)
    with desk.tail() as tail:
        poll_all(desk, tail)
        poll = poll_all(desk, tail, after=60)
        assert len(poll.new) == 2
        assert places(poll.gaps) == [(name, len(first), 1)]
    with desk.tail() as tail:
        assert poll_all(desk, tail, after=60).gaps == []
    desk.check()


def test_converting_into_the_output_of_a_tail_with_a_greater_limit_adds_the_line(desk: Desk) -> None:
    line = beat(1)
    line["pad"] = "x" * 5_000
    desk.append([started(), line, beat(2)])
    with desk.tail() as tail:
        assert len(poll_all(desk, tail).new) == 2
    report = convert([desk.log], desk.out, ConvertOptions(jobs=1))
    assert (report.lines["pending"], report.lines["duplicate"], report.input_faults) == (0, 2, False)
    assert report.lines["converted"] + report.lines["refused"] == 1
    desk.check()
