"""Every sink of a tail holds the same events, each once, whatever stopped the tail before."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from ethogram import CanonicalDraft, compose_line, parse_event_text
from tests.support.corpus import corpus_lines
from tests.tail.tailing import (
    Desk,
    beat,
    converted,
    edited,
    exited,
    gate,
    identity_of,
    report_of,
    started,
    stored,
)
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.output import Output
from vinaya_bridge.sinks import SinkSpec, open_sink, parse_sink
from vinaya_bridge.standing import standing

FILE_SINKS = ("sqlite", "jsonl")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def with_sink(desk: Desk, kind: str) -> Desk:
    desk.options["sink"] = f"{kind}:{desk.root / 'events'}"
    return desk


def events_in(desk: Desk, kind: str) -> list[dict[str, Any]]:
    file = desk.root / "events"
    if kind == "jsonl":
        return [orjson.loads(line) for line in file.read_bytes().splitlines()]
    database = sqlite3.connect(file)
    rows = database.execute("SELECT type, run_id, seq, ts, payload, captured_at FROM events ORDER BY rowid")
    lines = [
        compose_line(event_type, run_id, seq, ts, payload.encode(), captured_at=captured_at)
        for event_type, run_id, seq, ts, payload, captured_at in rows.fetchall()
    ]
    database.close()
    return [orjson.loads(line) for line in lines]


def facts_of(events: list[dict[str, Any]]) -> Counter[tuple[str, str, bytes, str | None]]:
    """As `tests.tail.tailing.facts`; that seq is gapless in each run is checked on the way."""
    seqs: Counter[str] = Counter()
    for event in events:
        seqs[event["runId"]] += 1
        assert event["seq"] == seqs[event["runId"]]
    return Counter(
        (
            event["runId"],
            event["type"],
            orjson.dumps(event["payload"], option=orjson.OPT_SORT_KEYS),
            event.get("capturedAt"),
        )
        for event in events
    )


def check(desk: Desk, kind: str) -> None:
    """The sink holds what `convert` makes of the log."""
    expected = facts_of([each.event for each in stored(converted(desk))])
    assert facts_of(events_in(desk, kind)) == expected


def some_lines(desk: Desk, count: int, seed: int) -> None:
    desk.append(b"".join(corpus_lines(count, random=Random(seed))))


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_sink_holds_what_convert_makes(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    for seed in range(4):
        some_lines(desk, 60, seed)
        with desk.tail() as tail:
            desk.poll(tail)
    desk.append(b"{}\n")
    desk.once()
    check(desk, kind)
    assert not (desk.out / "runs").exists()
    total = report_of(desk.out)["total"]
    assert total["pending"] < 10
    assert total["converted"] + total["unmapped"] + total["refused"] + total["pending"] == total["read"]


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_sink_knows_what_it_holds(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    with desk.tail() as tail:
        desk.append([started(), beat(1), exited(2)])
        desk.poll(tail)
        desk.append([beat(1), edited(beat(1))])
        poll = desk.poll(tail)
        assert (poll.new, [reason.split(":")[0] for *_, reason in poll.refused]) == ([], ["conflict"])
        assert desk.poll(tail, after=60).finished == ["run-a"]
        desk.append([gate(3)])
        assert [reason.split(":")[0] for *_, reason in desk.poll(tail).refused] == ["late"]
        later = "2026-05-04T11:00:00.000Z"
        desk.append([started(process="proc-b", ts=later), edited(beat(1)), gate(3)])
        assert desk.poll(tail).opened == ["run-a~2"]
    refusals = [event for event in events_in(desk, kind) if event["type"] == "capture.refused"]
    assert [event["payload"]["cause"] for event in refusals] == ["duplicate", "finished"]
    assert report_of(desk.out)["lines"]["converted"] == 4


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_sink_without_the_state_of_the_output_is_added_to(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    some_lines(desk, 60, 1)
    desk.append(b"{}\n")
    desk.append([started(run="other"), exited(1, run="other")])
    with desk.tail() as tail:
        desk.poll(tail)
    for path in (desk.out / "state").rglob("*"):
        if path.is_file():
            path.unlink()
    some_lines(desk, 60, 2)
    desk.once()
    check(desk, kind)


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_sink_that_is_put_back_to_an_older_copy_is_completed(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    some_lines(desk, 60, 1)
    desk.once()
    old = (desk.root / "events").read_bytes()
    some_lines(desk, 60, 2)
    desk.once()
    for path in desk.root.glob("events-*"):
        path.unlink()
    (desk.root / "events").write_bytes(old)
    desk.once()
    check(desk, kind)


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_killed_tail_goes_on(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    for seed in range(3):
        some_lines(desk, 40, seed)
        child = os.fork()
        if child == 0:
            desk.tail().poll()
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    desk.once()
    check(desk, kind)


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_second_output_with_the_same_file_is_refused(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    with desk.tail(), pytest.raises(SinkError) as refused:
        open_sink(parse_sink(desk.options["sink"]), other_output(desk), clock=lambda: "")
    assert refused.value.code.id == "VB401"


def other_output(desk: Desk) -> Output:
    output = Output(desk.root / "other")
    output.state.mkdir(parents=True)
    return output


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_foreign_file_is_refused_and_left_alone(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    foreign = b"somebody's notes\n" * 400
    (desk.root / "events").write_bytes(foreign)
    with pytest.raises(SinkError) as refused:
        desk.tail()
    assert refused.value.code.id == "VB403"
    assert (desk.root / "events").read_bytes() == foreign


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_a_file_among_the_logs_is_refused(desk: Desk, kind: str) -> None:
    desk.log.mkdir()
    with pytest.raises(ConfigurationError):
        desk.tail(sink=f"{kind}:{desk.log / 'events'}")
    assert list(desk.log.iterdir()) == []


@pytest.mark.parametrize("kind", FILE_SINKS)
def test_the_standing_of_a_sink_is_told(desk: Desk, kind: str) -> None:
    with_sink(desk, kind)
    desk.append([started(), exited(1), beat(3)])
    with desk.tail() as tail:
        desk.poll(tail)
    found = standing(desk.out)
    assert (found.saved, found.waiting, found.held) == (True, 1, 1)


def test_an_output_belongs_to_the_sink_that_it_was_begun_with(desk: Desk) -> None:
    desk.append([started()])
    desk.once()
    with pytest.raises(ConfigurationError) as refused:
        with_sink(desk, "sqlite").once()
    assert refused.value.code.id == "VB405"
    (desk.out / "state" / "sink.txt").unlink()
    with pytest.raises(ConfigurationError):
        desk.once()
    assert not (desk.root / "events").exists()


@pytest.mark.parametrize("text", ["", "sqlite", "sqlite:", "postgres:x", "RUNS"])
def test_a_name_that_is_no_sink_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_sink(text)
    assert refused.value.code.id == "VB404"


def test_a_sink_is_read_as_it_is_written() -> None:
    for text in ("runs", "-", "sqlite:/a/b", "jsonl:/a:b"):
        assert str(parse_sink(text)) == text
    assert parse_sink(None) == SinkSpec("runs")


def test_a_database_can_be_read_while_it_grows(desk: Desk) -> None:
    with_sink(desk, "sqlite")
    desk.append([started(), beat(1)])
    with desk.tail() as tail:
        desk.poll(tail)
        reader = sqlite3.connect(desk.root / "events", timeout=0)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (2,)
        desk.append([beat(2)])
        assert desk.poll(tail).new == [identity_of(beat(2))]
        assert reader.execute("SELECT count(*) FROM events").fetchone() == (2,)
        reader.execute("COMMIT")
        found = reader.execute("SELECT seq FROM events WHERE identity = ?", (identity_of(beat(2)),))
        assert found.fetchall() == [(3,)]
        reader.close()


# ---------------------------------------------------------------------------------------- standard output


def command(desk: Desk, *options: str) -> list[str]:
    return [sys.executable, "-m", "vinaya_bridge", "tail", str(desk.log), "-o", str(desk.out), *options]


def test_standard_output_gets_events_and_nothing_else(desk: Desk) -> None:
    some_lines(desk, 60, 1)
    desk.append(b"{}\n")
    written = b""
    for _ in range(2):
        done = subprocess.run(
            command(desk, "--sink", "-", "--once"), capture_output=True, check=True, timeout=60
        )
        written += done.stdout
        some_lines(desk, 60, 2)
    for line in written.splitlines():
        parse_event_text(line)
    done = subprocess.run(command(desk, "--sink", "-", "--once"), capture_output=True, check=True, timeout=60)
    events = [orjson.loads(line) for line in (written + done.stdout).splitlines()]
    # The second copy of what was there before it was read again is a duplicate.
    assert facts_of(events) == facts_of([each.event for each in stored(converted(desk))])


def test_a_closed_pipe_ends_quietly_and_nothing_is_lost(desk: Desk) -> None:
    some_lines(desk, 60, 1)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command(desk, "--sink", "-", "--once"),
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    done = subprocess.run(command(desk, "--sink", "-", "--once"), capture_output=True, check=True, timeout=60)
    events = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert facts_of(events) == facts_of([each.event for each in stored(converted(desk))])


def test_a_full_disk_behind_standard_output_ends_with_exit_3(desk: Desk) -> None:
    some_lines(desk, 60, 1)
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no device that is always full")
    with full.open("wb") as stdout:
        done = subprocess.run(
            command(desk, "--sink", "-", "--once"),
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert (done.returncode, b"Traceback" in done.stderr) == (3, False)
    assert b"VB402" in done.stderr


def test_what_was_written_to_a_stream_is_remembered(desk: Desk) -> None:
    output = other_output(desk)
    for times, expected in ((1, 2), (2, 0)):
        stream = io.BytesIO()
        sink = open_sink(parse_sink("-"), output, clock=lambda: "t", stdout=stream)
        if times == 1:
            draft_of = stored_drafts(desk)
            sink.commit(draft_of, b"position")
        assert len(stream.getvalue().splitlines()) == expected
        assert sink.checkpoint() == b"position"
        assert sink.last_seq("run-a") == 2
        assert set(sink.index.known([identity_of(beat(1))])) == {identity_of(beat(1))}
        assert sink.index.lines() == 2
        sink.close()


def stored_drafts(desk: Desk) -> list[Any]:
    desk.append([started(), beat(1)])
    return [
        (
            each.event["runId"],
            CanonicalDraft(each.event["type"], orjson.dumps(each.event["payload"]), each.event["capturedAt"]),
        )
        for each in stored(converted(desk))
    ]


def test_the_memory_of_a_stream_that_is_broken_is_made_anew(desk: Desk) -> None:
    output = other_output(desk)
    memory = output.state / "stdout.sqlite"
    for content in (b"", b"not a database" * 500):
        memory.write_bytes(content)
        sink = open_sink(parse_sink("-"), output, clock=lambda: "t", stdout=io.BytesIO())
        assert sink.checkpoint() is None
        assert sink.last_seq("run-a") == 0
        sink.close()
