"""Where the events of a main run's lines go, and when runs start and end."""

from __future__ import annotations

from itertools import count

import orjson

from vinaya_bridge.entry import Act, Entry, Opening, Place
from vinaya_bridge.mapping.emit import Emit, Fill, Only, Run
from vinaya_bridge.runs import Append, Known, MainRun, RunFacts, missing_emits

_numbers = count()
SECOND_US = 1_000_000


def payload(**fields: object) -> bytes:
    return orjson.dumps({**fields, "vinaya": {"part": 0, "kind": "k"}}, option=orjson.OPT_SORT_KEYS)


def entry(name: str, act: Act, *emits: Emit, process: str = "p", at: int = 0, effect: str = "") -> Entry:
    return Entry(
        f"{name}-{next(_numbers)}",
        "0" * 16,
        "main",
        process,
        0,
        at * SECOND_US,
        f"second {at}",
        name,
        act,
        effect,
        Opening("loop", "developer", "vinaya", model="m"),
        list(emits),
        Place(0, 1, 0, 1),
    )


def emit(
    event_type: str,
    only: Only = Only.ALWAYS,
    *,
    part: int = 0,
    run: Run = Run.MAIN,
    fill: Fill = Fill.NOTHING,
) -> Emit:
    return Emit(part, run, event_type, payload(), only, fill)


def gate(process: str = "g", at: int = 0) -> Entry:
    return entry("gate", Act.OTHER, emit("gate.evaluated"), process=process, at=at)


def loop_started(process: str = "p") -> Entry:
    return entry(
        "loop_started",
        Act.LOOP,
        emit("run.started", Only.STARTS_RUN, fill=Fill.PARENT),
        emit("loop.started", Only.NOT_STARTS_RUN, part=1),
        process=process,
    )


def heartbeat(process: str = "p") -> Entry:
    return entry("heartbeat", Act.LOOP, emit("driver.heartbeat_sent"), process=process)


def driver_exited(process: str = "p", at: int = 0) -> Entry:
    return entry(
        "driver_exited",
        Act.DRIVER_EXITED,
        emit("run.finished", Only.ENDS_RUN, fill=Fill.ELAPSED),
        emit("driver.exited", Only.NOT_ENDS_RUN, part=1),
        process=process,
        at=at,
    )


def cancelled(process: str = "p") -> Entry:
    return entry(
        "cancelled",
        Act.CANCELLED,
        emit("human.intervened"),
        emit("run.finished", Only.ENDS_RUN, part=1),
        emit("loop.cancelled", Only.NOT_ENDS_RUN, part=2),
        process=process,
    )


def journal(process: str = "p") -> Entry:
    return entry(
        "journal_finalized",
        Act.JOURNAL_FINALIZED,
        emit("journal.finalized"),
        emit("run.finished", Only.ENDS_RUN, part=1),
        process=process,
    )


def dispatched(effect: str = "e") -> Entry:
    return entry(
        "dispatched",
        Act.DISPATCHED,
        emit("run.started", Only.STARTS_RUN, run=Run.DISPATCH, fill=Fill.PARENT),
        emit("agent.started", part=1, run=Run.DISPATCH),
        effect=effect,
    )


def outcome(effect: str = "e") -> Entry:
    return entry(
        "dispatch_failed",
        Act.DISPATCH_ENDED,
        emit("agent.completed", Only.AGENT_STARTED, run=Run.DISPATCH),
        emit("run.finished", Only.ENDS_RUN, part=1, run=Run.DISPATCH),
        emit("dispatch.ended", Only.NOT_ENDS_RUN, part=2, run=Run.DISPATCH),
        effect=effect,
    )


def told(*entries: Entry, past: dict[str, RunFacts] | None = None) -> list[tuple[str, str]]:
    """Run and type of all that is appended for these lines, ends included."""
    main = MainRun("main", past)
    appends: list[Append] = []
    for line in entries:
        taken = main.take(line)
        assert taken is not None
        appends += taken
    return [(append.run_id, append.type) for append in [*appends, *main.finish()]]


def test_a_line_of_another_kind_implies_the_start_of_its_run() -> None:
    main = MainRun("main")
    taken = main.take(gate())
    assert taken is not None
    implied, event = taken
    assert (implied.type, event.type) == ("run.started", "gate.evaluated")
    assert implied.identity is None
    said = orjson.loads(implied.payload)
    assert said["kind"] == "loop"
    assert said["vinaya"] == {"kind": "k", "generic": [], "implied": True}


def test_loop_started_is_the_start_when_it_comes_first_and_an_open_event_later() -> None:
    assert told(loop_started(), loop_started()) == [("main", "run.started"), ("main", "loop.started")]


def test_the_terminal_event_is_held_until_the_last_line() -> None:
    assert told(loop_started(), driver_exited(), gate()) == [
        ("main", "run.started"),
        ("main", "gate.evaluated"),
        ("main", "run.finished"),
    ]


def test_end_lines_of_one_process_are_one_end_with_the_outcome_of_the_weightiest() -> None:
    assert told(loop_started(), journal(), driver_exited(), cancelled()) == [
        ("main", "run.started"),
        ("main", "journal.finalized"),
        ("main", "driver.exited"),
        ("main", "human.intervened"),
        ("main", "run.finished"),
    ]


def test_a_lesser_end_line_that_follows_is_an_open_event() -> None:
    assert told(loop_started(), cancelled(), driver_exited()) == [
        ("main", "run.started"),
        ("main", "human.intervened"),
        ("main", "driver.exited"),
        ("main", "run.finished"),
    ]


def test_the_lines_of_a_process_that_exited_wait_until_it_is_certain_that_this_was_the_end() -> None:
    assert told(loop_started(), driver_exited(), gate("p"), cancelled()) == [
        ("main", "run.started"),
        ("main", "driver.exited"),
        ("main", "gate.evaluated"),
        ("main", "human.intervened"),
        ("main", "run.finished"),
    ]


def test_an_end_that_waited_behind_an_end_is_not_forgotten() -> None:
    waited = outcome()
    assert waited.process == driver_exited().process
    assert told(loop_started(), dispatched(), driver_exited(), waited)[-3:] == [
        ("main/e", "agent.completed"),
        ("main", "run.finished"),
        ("main/e", "run.finished"),
    ]


def test_a_half_written_line_does_not_wait_behind_an_end() -> None:
    past = {"main/e": RunFacts(finished=False, first_instant_us=0, agent_started=False)}
    main = MainRun("main", past)
    main.take(loop_started())
    main.take(driver_exited())
    line = dispatched()
    taken = main.take(line, Known(line.digest, {0: "main/e"}))
    assert taken is not None
    assert [(append.run_id, append.part) for append in taken] == [("main/e", 1)]


def test_a_loop_line_after_an_end_opens_the_next_sitting() -> None:
    assert told(loop_started(), driver_exited(), heartbeat("q"), gate(), driver_exited("q")) == [
        ("main", "run.started"),
        ("main", "run.finished"),
        ("main~2", "run.started"),
        ("main~2", "driver.heartbeat_sent"),
        ("main~2", "gate.evaluated"),
        ("main~2", "run.finished"),
    ]


def test_a_sitting_names_the_one_before_as_its_parent() -> None:
    main = MainRun("main")
    main.take(loop_started())
    main.take(driver_exited())
    taken = main.take(loop_started("q"))
    assert taken is not None
    assert [append.type for append in taken] == ["run.finished", "run.started"]
    assert orjson.loads(taken[1].payload)["parentRunId"] == "main"


def test_a_cancel_by_another_process_after_the_end_is_a_sitting_of_its_own() -> None:
    assert told(loop_started(), driver_exited(), cancelled("q"))[-3:] == [
        ("main~2", "run.started"),
        ("main~2", "human.intervened"),
        ("main~2", "run.finished"),
    ]


def test_a_dispatch_is_a_run_under_the_sitting_in_which_it_is_ordered() -> None:
    main = MainRun("main")
    main.take(loop_started())
    taken = main.take(dispatched())
    assert taken is not None
    assert [(append.run_id, append.type) for append in taken] == [
        ("main/e", "run.started"),
        ("main/e", "agent.started"),
    ]
    assert orjson.loads(taken[0].payload)["parentRunId"] == "main"


def test_a_second_dispatched_under_one_effect_opens_a_second_run() -> None:
    runs = [run for run, _ in told(dispatched(), outcome(), dispatched(), outcome())]
    assert runs == ["main/e"] * 3 + ["main/e~2"] * 3 + ["main/e", "main/e~2"]


def test_a_dispatch_that_never_started_has_no_agent_that_completed() -> None:
    assert told(outcome()) == [("main/e", "run.started"), ("main/e", "run.finished")]


def test_a_second_outcome_of_one_dispatch_is_an_open_event() -> None:
    assert [kind for _, kind in told(dispatched(), outcome(), outcome())] == [
        "run.started",
        "agent.started",
        "agent.completed",
        "agent.completed",
        "dispatch.ended",
        "run.finished",
    ]


def test_a_straggler_of_a_durably_finished_run_is_late_but_a_loop_line_opens_a_sitting() -> None:
    past = {"main": RunFacts(finished=True, first_instant_us=0, agent_started=False)}
    assert MainRun("main", past).take(gate()) is None
    assert told(heartbeat(), past=past) == [("main~2", "run.started"), ("main~2", "driver.heartbeat_sent")]


def test_elapsed_time_is_counted_from_the_first_line_and_said_to_be_estimated() -> None:
    main = MainRun("main")
    main.take(gate(at=10))
    main.take(driver_exited(at=25))
    (finished,) = main.finish()
    said = orjson.loads(finished.payload)
    assert (said["durationMs"], said["estimated"]) == (15_000, True)


def test_a_run_that_goes_on_keeps_counting_from_its_first_line() -> None:
    past = {"main": RunFacts(finished=False, first_instant_us=10 * SECOND_US, agent_started=False)}
    main = MainRun("main", past)
    main.take(driver_exited(at=11))
    (finished,) = main.finish()
    assert orjson.loads(finished.payload)["durationMs"] == 1000


def test_only_quiet_runs_are_finished_while_the_log_is_open() -> None:
    main = MainRun("main")
    main.take(driver_exited(), now=100.0)
    assert main.finish_quiet(104.9, 5.0) == []
    main.take(gate(), now=104.9)
    assert main.finish_quiet(109.0, 5.0) == []
    assert [append.type for append in main.finish_quiet(109.9, 5.0)] == ["run.finished"]


def test_what_a_crash_left_out_of_a_line_is_missing_and_nothing_else() -> None:
    line = cancelled()
    assert [e.type for e in missing_emits(line, Known("", {0: "main"}))] == ["run.finished", "loop.cancelled"]
    assert missing_emits(line, Known("", {0: "main", 1: "main"})) == []
    assert missing_emits(outcome(), Known("", {1: "main/e"})) == []
    assert missing_emits(loop_started(), Known("", {1: "main"})) == []


def test_the_missing_part_of_a_line_goes_to_the_run_that_has_the_others() -> None:
    line = cancelled("p")
    past = {
        "main": RunFacts(finished=False, first_instant_us=0, agent_started=False),
        "main~2": RunFacts(finished=False, first_instant_us=0, agent_started=False),
    }
    main = MainRun("main", past)
    assert main.take(line, Known(line.digest, {0: "main"})) == []
    assert [(append.run_id, append.part) for append in main.finish()] == [("main", 1)]


def test_many_dispatches_under_one_effect_cost_the_same_each() -> None:
    main = MainRun("main")
    for _ in range(20_000):
        assert main.take(dispatched()) is not None
        assert main.take(outcome()) is not None
    assert len(main.finish()) == 20_000
