"""What a poll costs does not grow with what the output holds: counted in calls of functions, not in seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.samples import sample
from tests.support.strategies import Line
from tests.tail.tailing import (
    SETTLE_SECONDS,
    Desk,
    beat,
    converted,
    exited,
    facts,
    identity_of,
    process_order,
    started,
    text_of,
)
from vinaya_bridge.holes import Holes

SINKS = ["runs", "sqlite", "jsonl"]


def calls(act: Callable[[], object]) -> int:
    """How many functions an act calls."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        act()
    finally:
        sys.setprofile(before)
    return counted


def opened(root: Path, kind: str) -> Desk:
    root.mkdir()
    desk = Desk(root)
    if kind != "runs":
        desk.options["sink"] = f"{kind}:{root / 'events'}"
    return desk


def loops(count: int, dispatches: int = 1) -> list[Line]:
    lines: list[Line] = []
    for number in range(count):
        own: dict[str, Any] = {"run": f"loop-{number}", "process": f"proc-{number}"}
        lines.append(started(**own))
        for turn in range(dispatches):
            own |= {"target_role": "security", "effect_id": f"eff-{turn}"}
            lines.append(sample("dispatch", "dispatched", seq=2 * turn + 1, **own))
            lines.append(sample("dispatch", "outcome_received", seq=2 * turn + 2, **own))
    return lines


@pytest.mark.parametrize("kind", SINKS)
def test_a_poll_costs_no_more_where_the_output_holds_many_runs_and_refusals(
    tmp_path: Path, kind: str
) -> None:
    took = {}
    for count in (10, 150):
        desk = opened(tmp_path / f"{count}", kind)
        desk.append(text_of([*loops(count), exited(9, run="loop-0", process="proc-0")]))
        desk.append(b"".join(b'{"refused":%d}\n' % number for number in range(count)))
        desk.once()
        with desk.tail() as tail:
            desk.poll(tail)
            desk.poll(tail)
            nothing = calls(lambda tail=tail: tail.poll())  # type: ignore[misc]
            desk.append([beat(5, run="loop-3", process="proc-3")])
            took[count] = (nothing, calls(lambda tail=tail: tail.poll()))  # type: ignore[misc]
    assert all(many <= few + 100 for few, many in zip(took[10], took[150], strict=True)), took


def test_a_poll_costs_no_more_where_many_runs_with_many_dispatches_are_in_hand(tmp_path: Path) -> None:
    took = {}
    for count in (2, 40):
        desk = opened(tmp_path / f"{count}", "sqlite")
        with desk.tail() as tail:
            desk.append(loops(count, dispatches=count))
            desk.poll(tail)
            tail.settle()
            desk.poll(tail)
            nothing = calls(lambda tail=tail: tail.poll())  # type: ignore[misc]
            desk.append([beat(200, run="loop-1", process="proc-1")])
            took[count] = (nothing, calls(lambda tail=tail: tail.poll()))  # type: ignore[misc]
    assert all(many <= few + 100 for few, many in zip(took[2], took[40], strict=True)), took


def test_the_report_of_a_tail_is_not_written_while_nothing_comes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.append([started()])
    with desk.tail() as tail:
        desk.poll(tail)
        desk.poll(tail, after=60)
        written = (desk.out / "report.json").stat().st_mtime_ns
        for _ in range(3):
            desk.poll(tail, after=60)
        assert (desk.out / "report.json").stat().st_mtime_ns == written


def test_no_more_lines_wait_than_a_position_can_hold_and_those_that_came_first_go_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    processes = ["proc-a", "proc-b", "proc-c"]
    with desk.tail() as tail:
        tail._holes = Holes(SETTLE_SECONDS, most_waiting=10)
        desk.append([beat(0, process=process) for process in processes])
        desk.poll(tail)
        for process in processes:
            desk.append([beat(seq, process=process) for seq in range(2, 6)])
            poll = desk.poll(tail)
        assert tail.status().waiting == 8
        assert poll.new == [identity_of(beat(seq, process="proc-a")) for seq in range(2, 6)]
        desk.append([beat(1, process=process) for process in processes])
        desk.poll(tail)
        assert tail.status().waiting == 0
    assert facts(desk.out) == facts(converted(desk))
    orders = {process: seqs for (_, process), seqs in process_order(desk.out, desk.log).items()}
    assert sorted(orders.values()) == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0, 2, 3, 4, 5, 1]]
