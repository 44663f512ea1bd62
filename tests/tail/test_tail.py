"""What a tail does with lines: the same as convert, each once, at the right moment."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.support.corpus import corpus_lines
from tests.tail.tailing import (
    LIVE,
    SETTLE_SECONDS,
    SLOT,
    Desk,
    beat,
    converted,
    edited,
    exited,
    facts,
    fingerprint,
    gate,
    identity_of,
    lines_of,
    process_order,
    report_of,
    started,
    stored,
    text_of,
    told,
)
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.files import MISSING
from vinaya_bridge.tail import Tail

FIXTURES = sorted(path.parent.name for path in (Path(__file__).parents[2] / "fixtures").glob("*/in"))
WITHOUT_CONFLICTS = (
    "coverage-schema1",
    "coverage-schema2",
    "coverage-schema3",
    "fixtures-default-seed",
    "realistic-old",
    "scenarios",
    "seed-new",
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


# ---------------------------------------------------------------------------------------- the same as convert


@pytest.mark.parametrize("name", FIXTURES)
def test_reading_a_log_once_gives_what_convert_gives(desk: Desk, repository: Path, name: str) -> None:
    shutil.copytree(repository / "fixtures" / name / "in", desk.log)
    for path in desk.log.rglob("*.ndjson"):
        content = path.read_bytes()
        if not content.endswith(b"\n"):  # a tail waits for the end of a line
            path.write_bytes(content[: content.rfind(b"\n") + 1])
    desk.once()
    out = converted(desk)
    assert facts(desk.out) == facts(out)
    assert process_order(desk.out, desk.log) == process_order(out, desk.log)
    assert report_of(desk.out)["lines"] == report_of(out)["lines"]
    desk.check()


@pytest.mark.parametrize("name", WITHOUT_CONFLICTS)
def test_lines_that_come_in_pieces_give_what_convert_gives(desk: Desk, shared: Path, name: str) -> None:
    content = (shared / "vinaya" / "lines" / f"{name}.ndjson").read_bytes()
    random = Random(name)
    with desk.tail() as tail:
        while content:
            size = random.choice([1, 7, 500, 3_000, 20_000, 100_000])
            desk.append(content[:size])
            content = content[size:]
            desk.poll(tail, after=0)
        tail.settle()
    out = converted(desk)
    assert facts(desk.out) == facts(out)
    for seqs in process_order(desk.out, desk.log).values():
        assert seqs == sorted(seqs)
    assert report_of(desk.out)["lines"] == report_of(out)["lines"]
    desk.check()


@pytest.mark.parametrize("name", ["fuzz", "hostile", "recorded-in-tests"])
def test_conflicting_lines_that_come_in_pieces_are_all_accounted_for(
    desk: Desk, shared: Path, name: str
) -> None:
    content = (shared / "vinaya" / "lines" / f"{name}.ndjson").read_bytes()
    random = Random(name)
    with desk.tail() as tail:
        while content:
            size = random.choice([500, 3_000, 20_000, 100_000])
            desk.append(content[:size])
            content = content[size:]
            desk.poll(tail, after=0)
        tail.settle()
    held = {each.block["eventId"] for each in lines_of(stored(desk.out))}
    assert held == {each.block["eventId"] for each in lines_of(stored(converted(desk)))}
    assert report_of(desk.out)["lines"]["read"] == report_of(desk.root / "converted")["lines"]["read"]
    desk.check()


def test_several_streams_give_what_convert_gives(desk: Desk) -> None:
    lines = list(corpus_lines(600, random=Random(4)))
    random = Random(5)
    with desk.tail() as tail:
        for number, line in enumerate(lines):
            desk.append(line, f"acme-lantern/{number // 7 % 3}.ndjson")
            if random.random() < 0.05:
                desk.poll(tail, after=0.01)
        tail.settle()
    out = converted(desk)
    assert facts(desk.out) == facts(out)
    assert process_order(desk.out, desk.log) == process_order(out, desk.log)
    desk.check()


def test_a_restart_after_every_poll_changes_nothing(desk: Desk) -> None:
    lines = list(corpus_lines(200, random=Random(6)))
    for start in range(0, len(lines), 9):
        desk.append(b"".join(lines[start : start + 9]))
        with desk.tail() as tail:
            desk.poll(tail, after=0)
    desk.once()
    assert facts(desk.out) == facts(converted(desk))
    desk.check()


# ---------------------------------------------------------------------------------------- one poll after another


def test_a_poll_says_what_became_durable_in_it(desk: Desk) -> None:
    lines = [started(), beat(1), beat(2)]
    with desk.tail() as tail:
        desk.append(lines[:2])
        poll = desk.poll(tail)
        assert (poll.new, poll.opened, poll.finished) == (
            [identity_of(line) for line in lines[:2]],
            ["run-a"],
            [],
        )
        assert desk.identities() == poll.new
        assert desk.poll(tail).new == []
        desk.append(lines[2:])
        assert desk.poll(tail).new == [identity_of(lines[2])]
        assert tail.status().lines["converted"] == 3
        assert tail.status().last_event == ("heartbeat.recorded", "2026-05-04T10:00:02.000Z")
    desk.check()


def test_a_torn_line_waits_for_its_newline(desk: Desk) -> None:
    text = text_of([started(), beat(1)])
    with desk.tail() as tail:
        desk.append(text[:-1])
        assert len(desk.poll(tail).new) == 1
        assert desk.poll(tail, after=60).new == []
        assert tail.status().lag.bytes_behind > 0
        desk.append(b"\n")
        assert desk.poll(tail).new == [identity_of(beat(1))]
    desk.check()


def test_a_missing_root_is_waited_for(desk: Desk) -> None:
    with desk.tail() as tail:
        assert [notice.code for notice in desk.poll(tail).notices] == [MISSING]
        assert desk.poll(tail).notices == []
        desk.append([started()])
        assert len(desk.poll(tail).new) == 1
        desk.append([started(run="run-b")], "other-repo/none.ndjson")
        assert len(desk.poll(tail).new) == 1
    desk.check()


def test_what_is_there_is_passed_over_from_now_on(desk: Desk) -> None:
    desk.append([started(), beat(1)])
    with desk.tail(start="now") as tail:
        assert desk.poll(tail).new == []
        desk.append([beat(2)])
        assert desk.poll(tail).new == [identity_of(beat(2))]
    with desk.tail(start="now") as tail:
        desk.append([beat(3)])
        assert desk.poll(tail).new == [identity_of(beat(3))]


def test_from_now_means_the_first_start_even_where_the_state_is_lost(desk: Desk) -> None:
    with desk.tail(start="now") as tail:
        desk.poll(tail)
        desk.append([started()])
        desk.poll(tail)
    shutil.rmtree(desk.out / "state")
    desk.append([beat(1)])
    with desk.tail(start="now") as tail:
        assert desk.poll(tail).new == [identity_of(beat(1))]
    desk.check()


def test_the_input_is_untouched(desk: Desk) -> None:
    desk.append([started(), beat(1)])
    desk.append(b'{"torn', "acme-lantern/none.ndjson")
    before = fingerprint(desk.log)
    with desk.tail() as tail:
        desk.poll(tail)
        desk.poll(tail, after=60)
    desk.once()
    assert fingerprint(desk.log) == before


def test_an_output_inside_an_input_is_refused(desk: Desk) -> None:
    desk.log.mkdir()
    with pytest.raises(ConfigurationError):
        Tail([desk.log], desk.log / "out")
    assert list(desk.log.iterdir()) == []


def test_files_of_the_output_are_for_their_owner_alone(desk: Desk) -> None:
    desk.append([started(), beat(1), {"meta": {"schema": 9}}])
    desk.once()
    modes = {
        path.stat().st_mode & 0o777 for path in [desk.out, *desk.out.rglob("*")] if not path.is_symlink()
    }
    assert modes == {0o700, 0o600}


# ---------------------------------------------------------------------------------------- holes


def test_a_line_behind_a_hole_waits_until_the_hole_is_filled(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2)])
        assert desk.poll(tail).new == [identity_of(started())]
        assert tail.status().waiting == 1
        desk.append([beat(1)])
        assert desk.poll(tail).new == [identity_of(beat(1)), identity_of(beat(2))]
    assert list(process_order(desk.out, desk.log).values()) == [[0, 1, 2]]


def test_a_hole_is_waited_for_no_longer_than_the_settle_time(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2)])
        desk.poll(tail)
        assert desk.poll(tail, after=SETTLE_SECONDS - 0.2).new == []
        assert desk.poll(tail, after=0.3).new == [identity_of(beat(2))]
    desk.check()


def test_a_hole_is_waited_for_no_longer_because_more_lines_come(desk: Desk) -> None:
    came: list[str] = []
    with desk.tail() as tail:
        desk.append([started()])
        desk.poll(tail)
        for seq in range(2, 20):
            desk.append([beat(seq)])
            came += desk.poll(tail, after=1).new
    assert [identity_of(beat(seq)) for seq in range(2, 14)] == came[:12]


def test_a_hole_is_not_waited_for_after_a_loss(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
        (desk.log / LIVE).write_bytes(text_of([beat(5)]))
        poll = desk.poll(tail)
        assert poll.gaps
        assert poll.new == [identity_of(beat(5))]
    assert ("log.lines_lost", None) in told(desk.out)


def test_a_hole_ends_also_when_the_clock_is_set_back(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2)])
        desk.poll(tail)
        desk.poll(tail, after=-86_400)
        assert desk.poll(tail, after=SETTLE_SECONDS + 1).new == [identity_of(beat(2))]
    desk.append([beat(4)])
    with desk.tail() as tail:
        desk.poll(tail)
    desk.seconds -= 86_400
    with desk.tail() as tail:
        desk.poll(tail)
        assert desk.poll(tail, after=SETTLE_SECONDS).new == [identity_of(beat(4))]


def test_a_line_that_waits_survives_a_restart_and_the_loss_of_its_file(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2)])
        desk.poll(tail)
    assert report_of(desk.out)["lines"]["pending"] == 1
    (desk.log / LIVE).unlink()
    desk.append([beat(1)])
    with desk.tail() as tail:
        assert desk.poll(tail).new == [identity_of(beat(1)), identity_of(beat(2))]
    assert report_of(desk.out)["lines"]["pending"] == 0


def test_a_hole_is_waited_for_also_over_a_restart(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
    desk.append([beat(3)])
    with desk.tail() as tail:
        assert desk.poll(tail).new == []
        desk.append([beat(2)])
        assert desk.poll(tail).new == [identity_of(beat(2)), identity_of(beat(3))]


# ---------------------------------------------------------------------------------------- ends


def test_an_end_waits_until_its_run_is_quiet(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), exited(1)])
        assert desk.poll(tail).finished == []
        desk.append([gate(2)])
        assert desk.poll(tail, after=SETTLE_SECONDS - 1).finished == []
        assert desk.poll(tail, after=SETTLE_SECONDS - 1).finished == []
        assert desk.poll(tail, after=1.1).finished == ["run-a"]
    types = [each.event["type"] for each in stored(desk.out) if each.event["runId"] == "run-a"]
    assert types[-1] == "run.finished"
    desk.check()


def test_an_end_that_is_held_survives_a_restart(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), exited(1), gate(2)])
        desk.poll(tail)
    assert report_of(desk.out)["lines"]["pending"] == 2
    with desk.tail() as tail:
        assert desk.poll(tail).finished == []
        assert desk.poll(tail, after=SETTLE_SECONDS).finished == ["run-a"]
    desk.check()
    assert report_of(desk.out)["total"]["converted"] == 3


def test_a_loop_that_goes_on_after_its_end_opens_the_next_sitting(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), exited(1)])
        desk.poll(tail)
        desk.poll(tail, after=60)
        later = "2026-05-04T11:00:00.000Z"
        desk.append([started(0, process="proc-b", ts=later), exited(1, process="proc-b", ts=later)])
        desk.poll(tail)
        assert desk.poll(tail, after=60).finished == ["run-a~2"]
    desk.check()
    assert facts(desk.out) == facts(converted(desk))


def test_a_line_that_comes_after_its_run_was_closed_is_kept_and_told(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), exited(1)])
        desk.poll(tail)
        desk.poll(tail, after=60)
        desk.append([gate(2)])
        poll = desk.poll(tail)
        assert poll.new == []
        assert [reason for _, _, reason in poll.refused] == ["late: gate.checked"]
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == text_of([gate(2)])
    assert told(desk.out) == [("capture.refused", "finished")]
    assert report_of(desk.out)["lines"]["late"] == 1
    desk.check()


def test_a_late_line_that_comes_again_is_told_once(desk: Desk) -> None:
    desk.append([started(), exited(1)])
    desk.once()
    for _ in range(2):
        desk.append([gate(2)])
        desk.once()
    assert told(desk.out) == [("capture.refused", "finished")]
    desk.check()


def test_reading_once_settles_without_waiting(desk: Desk) -> None:
    desk.append([started(), beat(3), exited(4)])
    poll = desk.once()
    assert poll.finished == ["run-a"]
    assert report_of(desk.out)["lines"]["pending"] == 0
    assert facts(desk.out) == facts(converted(desk))


# ---------------------------------------------------------------------------------------- repeats


def test_a_line_that_comes_again_is_a_duplicate(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
        desk.append([beat(1), started()])
        assert desk.poll(tail).new == []
    desk.append([beat(1)])
    desk.once()
    assert report_of(desk.out)["total"]["duplicate"] == 3
    assert len(desk.identities()) == 2
    desk.check()


def test_a_line_that_comes_again_while_it_waits_is_a_duplicate(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2), exited(4)])
        desk.poll(tail)
        desk.append([beat(2), exited(4)])
        desk.poll(tail)
        tail.settle()
    assert report_of(desk.out)["lines"]["duplicate"] == 2
    assert facts(desk.out) == facts(converted(desk))
    desk.check()


def test_a_rotated_copy_gives_nothing_twice(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
        shutil.copyfile(desk.log / LIVE, desk.log / SLOT)
        assert desk.poll(tail).new == []
        desk.rotate()
        desk.append([beat(2)])
        assert desk.poll(tail).new == [identity_of(beat(2))]
    shutil.copyfile(desk.log / SLOT, desk.log / "acme-lantern/7.draining.ndjson")
    desk.once()
    assert len(desk.identities()) == 3
    desk.check()


def test_another_content_under_a_known_identity_is_kept_and_told(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
        desk.append([edited(beat(1))])
        poll = desk.poll(tail)
        assert [reason for _, _, reason in poll.refused] == ["conflict: dev_review_loop.driver_heartbeat"]
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == text_of([edited(beat(1))])
    assert told(desk.out) == [("capture.refused", "duplicate")]
    assert report_of(desk.out)["lines"]["conflict"] == 1
    desk.check()


def test_a_conflict_with_a_line_that_waits_is_a_conflict(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(2)])
        desk.poll(tail)
        desk.append([edited(beat(2))])
        desk.poll(tail)
        tail.settle()
    assert report_of(desk.out)["lines"]["conflict"] == 1
    desk.check()


def test_a_refused_line_is_kept_byte_for_byte_and_told_once(desk: Desk) -> None:
    broken, unknown = b'{"meta":{"schema":"3"}}', b'{"meta":{"schema":7},"x":1}'
    desk.append(broken + b"\n\n" + unknown + b"\n")
    desk.once()
    desk.append(broken + b"\n" + unknown + b"\n")
    desk.once()
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == (broken + b"\n") * 2
    assert (desk.out / "kept" / "unknown-version.ndjson").read_bytes() == (unknown + b"\n") * 2
    assert sorted(told(desk.out), key=str) == [
        ("capture.refused", "malformed"),
        ("log.version_unrecognised", None),
    ]
    desk.check()


# ---------------------------------------------------------------------------------------- long runs


def test_a_restart_after_a_day_goes_on_where_it_was(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
    desk.seconds += 86_400
    desk.append([beat(2)])
    desk.rotate()
    desk.append([beat(3)])
    with desk.tail() as tail:
        poll = desk.poll(tail)
        assert poll.new == [identity_of(beat(2)), identity_of(beat(3))]
        assert poll.gaps == []
        assert tail.status().lines["read"] == 2
    desk.check()


def test_main_runs_that_are_idle_are_let_go_of_and_found_again(desk: Desk) -> None:
    runs = [f"run-{number}" for number in range(600)]
    with desk.tail() as tail:
        for first in range(0, 600, 100):
            desk.append([started(run=run) for run in runs[first : first + 100]])
            desk.poll(tail)
        assert len(tail._main_runs) <= 256
        desk.append([beat(1, run=run) for run in runs])
        assert len(desk.poll(tail).new) == 600
        assert len(tail._main_runs) <= 256
    assert facts(desk.out) == facts(converted(desk))
    desk.check()


def test_the_position_does_not_grow_with_the_lines(desk: Desk) -> None:
    sizes = []
    with desk.tail() as tail:
        for round_number in range(8):
            desk.append(b"".join(corpus_lines(1500, random=Random(round_number))))
            desk.poll(tail)
            tail.settle()
            position = tail._sink.checkpoint()
            assert position is not None
            sizes.append(len(position))
    assert sizes[-1] < 1.1 * sizes[-3] < 20_000


def test_the_report_balances_whenever_it_is_written(desk: Desk) -> None:
    lines = [started(), beat(1), beat(1), edited(beat(1)), beat(3), exited(4), gate(5)]
    desk.append(lines)
    desk.append(b'\n{"torn\n{"meta":{"schema":8}}\n{"half')
    with desk.tail() as tail:
        desk.poll(tail)
        desk.poll(tail, after=SETTLE_SECONDS)
        terms = Counter(report_of(desk.out)["lines"])
    read = terms.pop("read")
    assert read == terms.total() == 10
    desk.check()


# ---------------------------------------------------------------------------------------- two tails


def test_a_second_tail_on_an_output_is_refused_with_the_process_named(desk: Desk) -> None:
    desk.append([started()])
    with desk.tail() as tail:
        desk.poll(tail)
        with pytest.raises(SinkError) as refused:
            desk.tail()
        assert refused.value.code.id == "VB401"
        assert f"process {os.getpid()} " in refused.value.message
    desk.once()
    desk.check()


def test_closing_twice_does_nothing(desk: Desk) -> None:
    desk.append([started()])
    tail = desk.tail()
    tail.poll()
    tail.close()
    before = (desk.out / "report.json").stat().st_mtime_ns
    tail.close()
    assert (desk.out / "report.json").stat().st_mtime_ns == before
