"""Vinaya Log reference, Reading rules: Liveness (ten-minute rule)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.samples import read, sample
from tests.support.strategies import Json, Line
from vinaya_bridge.readings import LoopStatus, liveness

START = datetime(2026, 5, 4, 10, 0, tzinfo=UTC)
LOOP = "dev_review_loop"


def loop_line(
    event: str,
    minute: float = 0,
    *,
    seq: int = 0,
    process: str = "proc-a",
    meta: dict[str, Json] | None = None,
    subject: dict[str, Json] | None = None,
    ts: str | None = None,
    **own: Json,
) -> Line:
    """A line of the loop, some minutes after its start."""
    moment = START + timedelta(minutes=minute)
    stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = sample(LOOP, event, seq=seq, process=process, ts=ts or stamp, meta=meta, subject=subject)
    return line | {"loop_id": "loop-a"} | own


def heartbeat(
    minute: float, *, seq: int = 0, turn: int = 1, phase: str = "publish", process: str = "proc-a"
) -> Line:
    """A heartbeat of the driver."""
    return loop_line("driver_heartbeat", minute, seq=seq, process=process, task=7, round=turn, phase=phase)


def exited(reason: str, minute: float, *, seq: int = 1, process: str = "proc-a") -> Line:
    """The driver's exit."""
    return loop_line("driver_exited", minute, seq=seq, process=process, task=7, reason=reason)


def statuses(*lines: Line, minute: float) -> list[LoopStatus]:
    return liveness(read(*lines), now=START + timedelta(minutes=minute))


def status(*lines: Line, minute: float) -> LoopStatus:
    (only,) = statuses(*lines, minute=minute)
    return only


def test_a_loop_runs_while_its_newest_line_is_under_ten_minutes_old() -> None:
    lines = [loop_line("loop_started"), heartbeat(5, seq=1)]
    assert status(*lines, minute=14.99).state == "running"
    assert status(*lines, minute=15).state == "stale"


@pytest.mark.parametrize(
    ("reason", "state"),
    [
        ("finished", "finished"),
        ("paused", "paused"),
        ("reexec", "exited"),
        ("error", "exited"),
        ("signal", "exited"),
    ],
)
def test_an_exit_that_is_the_newest_line_says_what_the_loop_does_at_any_age(reason: str, state: str) -> None:
    for minute in (2.0, 10_000.0):
        found = status(heartbeat(0), exited(reason, 1), minute=minute)
        assert (found.state, found.exit_reason) == (state, reason)


def test_a_line_after_an_exit_brings_the_loop_back() -> None:
    lines = [exited("paused", 1, seq=0), loop_line("resumed", 60, process="proc-b")]
    assert status(*lines, minute=61).state == "running"
    assert status(*lines, minute=80).state == "stale"


def test_the_newest_line_is_found_by_time_and_seq_and_not_by_the_order_of_lines() -> None:
    lines = [exited("finished", 3, seq=2), loop_line("loop_started"), heartbeat(2, seq=1)]
    assert status(*lines, minute=4).state == "finished"


def test_inside_a_process_the_exit_is_newest_even_where_the_clock_was_set_back() -> None:
    assert status(heartbeat(5), exited("finished", 1), minute=6).state == "finished"


def test_each_issue_of_each_repository_has_a_status_of_its_own() -> None:
    found = statuses(
        loop_line("loop_started", subject={"issue": 12}),
        loop_line("loop_started", seq=1, subject={"issue": 7}, loop_id="loop-b"),
        loop_line("loop_started", seq=2, meta={"repo": "acme/beacon"}, loop_id="loop-c"),
        minute=1,
    )
    assert [(each.repo, each.issue) for each in found] == [
        ("acme/beacon", 7),
        ("acme/lantern", 7),
        ("acme/lantern", 12),
    ]


def test_a_line_that_knows_no_issue_and_no_repository_belongs_with_its_loop() -> None:
    lost = loop_line("round_started", 1, seq=1, meta={"repo": None}, subject={"issue": None})
    found = status(loop_line("loop_started", task=7), lost, minute=2)
    assert (found.repo, found.issue, found.event) == ("acme/lantern", 7, "round_started")


def test_loops_that_know_no_issue_are_not_thrown_together() -> None:
    found = statuses(
        loop_line("round_started", subject={"issue": None}),
        loop_line("round_started", seq=1, subject={"issue": None}, loop_id="loop-b"),
        minute=1,
    )
    assert [(each.issue, each.loop_id) for each in found] == [(None, "loop-a"), (None, "loop-b")]


def test_round_phase_machine_and_pull_request_are_the_newest_that_a_line_names() -> None:
    found = status(
        heartbeat(0, turn=1, phase="dispatch_developer"),
        loop_line("driver_heartbeat", 1, seq=1, task=7, pr=80, round=2, phase="publish"),
        loop_line("round_ended", 2, seq=2, round=2, meta={"machine": "machine-b"}),
        minute=3,
    )
    assert (found.round, found.phase, found.pr, found.machine) == (2, "publish", 80, "machine-b")


def test_a_phase_that_no_line_names_is_unknown() -> None:
    assert status(loop_line("loop_started"), minute=1).phase is None


def test_the_age_is_that_of_the_newest_line_in_milliseconds() -> None:
    assert status(heartbeat(1), minute=2.5).age_ms == 90_000


def test_a_line_from_the_future_is_said_to_be_one() -> None:
    found = status(heartbeat(30), minute=0)
    assert (found.state, found.age_ms) == ("running", -1_800_000)
    assert any("from the future" in note for note in found.notes)


def test_a_time_that_cannot_be_read_counts_as_the_latest_of_its_process() -> None:
    found = status(heartbeat(1), loop_line("round_started", seq=1, ts="this morning"), minute=3)
    assert (found.event, found.age_ms) == ("round_started", 120_000)
    assert any("cannot be read" in note for note in found.notes)


def test_a_loop_without_any_readable_time_is_unknown() -> None:
    found = status(loop_line("loop_started", ts="this morning"), minute=3)
    assert (found.state, found.age_ms) == ("unknown", None)


def test_a_stale_loop_is_only_presumed_dead() -> None:
    assert any("presumed dead" in note for note in status(heartbeat(0), minute=60).notes)


def test_after_a_cancel_the_rule_is_said_to_look_at_exits_alone() -> None:
    found = status(loop_line("cancelled", 1), minute=2)
    assert found.state == "running"
    assert any("after cancelled no driver need be running" in note for note in found.notes)


def test_two_processes_that_write_at_once_are_named() -> None:
    found = status(heartbeat(1), heartbeat(2, process="proc-b"), minute=3)
    assert "2 processes wrote in the last ten minutes" in found.notes


def test_a_line_of_low_trust_is_said_to_be_one() -> None:
    found = status(loop_line("loop_started", meta={"vinaya": "0.24.1"}), minute=1)
    assert found.low_trust
    assert any("low trust" in note for note in found.notes)


def test_lines_of_other_families_are_no_sign_of_life() -> None:
    late = sample("usage", "observed", seq=3, ts="2026-05-04T11:00:00.000Z")
    assert status(heartbeat(0), late, minute=61).state == "stale"
    assert statuses(late, minute=61) == []
