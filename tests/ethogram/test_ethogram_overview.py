"""Runs at a glance and as trees, and the places that they are read from."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import serialise_event
from ethogram.envelope import Event, EventDraft
from ethogram.faults import MalformedLog, WrongStore
from ethogram.json_text import Json
from ethogram.moment import happened, instant_ms
from ethogram.overview import RunOverview, arrange, overviews, summarise
from ethogram.places import NoSuchPlace, NoSuchRun, choose_run, open_growing_runs, open_runs
from ethogram.rundir import RunDirectory
from ethogram.sqlite import SqliteSink
from ethogram.testing import FINISHED, NOTE, STARTED, event


def clock() -> str:
    return "2026-01-02T03:04:05.000Z"


def overview(run_id: str, parent: str | None = None, first: str | None = None) -> RunOverview:
    return RunOverview(run_id, 1, {}, parent_run_id=parent, first_time=first)


def shape(runs: list[RunOverview]) -> list[tuple[int, str]]:
    return [(depth, tree.run.run_id) for root in arrange(runs) for depth, tree in root.walk()]


def test_children_stand_beneath_their_parents_in_the_order_of_their_starts() -> None:
    runs = [
        overview("late", "root", "2026-01-01T00:00:09Z"),
        overview("grandchild", "early", "2026-01-01T00:00:05Z"),
        overview("early", "root", "2026-01-01T00:00:02Z"),
        overview("root", None, "2026-01-01T00:00:00Z"),
        overview("other", None, None),
    ]
    assert shape(runs) == [(0, "root"), (1, "early"), (2, "grandchild"), (1, "late"), (0, "other")]


def test_a_run_whose_parent_is_missing_is_a_root_and_says_so() -> None:
    (root,) = arrange([overview("a", "gone")])
    assert root.orphan
    assert not arrange([overview("a")])[0].orphan


def test_runs_that_name_each_other_in_a_circle_are_all_shown() -> None:
    assert shape([overview("a", "b"), overview("b", "a"), overview("c", "c"), overview("d", "b")]) == [
        (0, "a"),
        (1, "b"),
        (2, "d"),
        (0, "c"),
    ]


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.none() | st.sampled_from("abcdefghx")))
def test_every_run_is_in_the_trees_exactly_once(parents: dict[str, str | None]) -> None:
    shown = [run_id for _, run_id in shape([overview(run_id, parent) for run_id, parent in parents.items()])]
    assert sorted(shown) == sorted(parents)


def test_an_overview_holds_the_lifecycle_and_the_counts() -> None:
    start: dict[str, Json] = {"kind": "song", "actor": "a", "harness": "h", "model": "m", "parentRunId": "p"}
    found = summarise(
        "r",
        [
            Event("run.started", "r", 1, "2026-01-01T00:00:00Z", dict(start)),
            Event("x", "r", 2, "2027-01-01T00:00:00Z", None, "2026-01-01T00:00:01.5Z"),
            Event("x", "r", 3, "2026-01-01T00:00:04Z", None, "soon"),
        ],
    )
    assert found.as_json() == {
        "runId": "r",
        "open": True,
        "events": 3,
        "types": {"run.started": 1, "x": 2},
        **start,
        "firstTime": "2026-01-01T00:00:00Z",
        "lastTime": "2026-01-01T00:00:04Z",
        "sessions": 0,
        "lowerBound": False,
    }
    assert found.elapsed_ms == 4_000


def test_events_that_cannot_be_folded_are_counted_and_the_fault_is_told() -> None:
    end: dict[str, Json] = {"outcome": "completed", "durationMs": 3}
    found = summarise("r", [Event("run.finished", "r", 1, "t", dict(end)), event(2), event(3)])
    assert (found.events, found.open, found.elapsed_ms) == (3, True, None)
    assert found.fault == "a run has run.finished before run.started"

    def torn() -> Iterator[Event]:
        yield Event("run.finished", "r", 1, "t", dict(end))
        raise MalformedLog("r", 2, "text", "not JSON")

    assert summarise("r", torn()).fault == "line 2 of the run's log: not JSON"


def test_times_are_read_leniently_and_never_invented() -> None:
    assert instant_ms("1970-01-01T00:00:01.5Z") == 1_500
    assert instant_ms("1970-01-01T01:00:00.123456789+01:00") == pytest.approx(123.456)
    assert instant_ms("1970-01-01T00:00:00") == 0
    assert instant_ms("tomorrow") is None
    assert happened(Event("x", "r", 1, "stored", None, "when?")) == "stored"
    assert happened(Event("x", "r", 1, "stored", None, "2026-01-01")) == "2026-01-01"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with RunDirectory(tmp_path / "out" / "runs", clock=clock) as runs:
        for draft in (STARTED, NOTE, FINISHED):
            runs.append("one", draft)
        runs.append("one/two", STARTED)
    return tmp_path / "out"


def ids(place: str) -> list[str]:
    with open_runs(place) as store:
        return sorted(run.run_id for run in overviews(store))


def test_a_place_is_a_directory_of_runs_or_what_holds_it_or_one_run(directory: Path) -> None:
    assert ids(str(directory)) == ids(str(directory / "runs")) == ["one", "one/two"]
    assert ids(str(directory / "runs" / "one")) == ["one"]
    assert ids(str(directory / "runs" / "one" / "events.jsonl")) == ["one"]


def test_a_sqlite_file_is_read_whatever_its_identity_path_and_never_written(tmp_path: Path) -> None:
    file = tmp_path / "a b?.db"
    with SqliteSink(file, clock=clock, identity_path="$.vinaya.eventId") as sink:
        sink.append("r", STARTED)
        sink.append("r", NOTE)
        assert ids(f"sqlite:{file}") == ids(str(file)) == ["r"]
        with open_growing_runs(str(file)) as store:
            assert [found.seq for found in store.read_from("r", 1)] == [2]
            sink.append("r", FINISHED)
            assert [found.type for found in store.read_from("r", 2)] == ["run.finished"]
    with pytest.raises(NoSuchPlace):
        open_runs(f"sqlite:{tmp_path / 'none.db'}")
    assert not (tmp_path / "none.db").exists()


def test_a_foreign_database_is_refused(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(WrongStore):
        open_runs(str(tmp_path / "other.db"))


def test_lines_of_several_runs_may_be_a_part_of_what_happened(tmp_path: Path) -> None:
    file = tmp_path / "some.jsonl"
    lines = [serialise_event(event(seq, run_id)) for seq, run_id in ((5, "b"), (2, "a"), (3, "b"), (5, "b"))]
    file.write_bytes(b"\n".join([*lines, b"", b'{"v":1']))
    assert ids(f"jsonl:{file}") == ["a", "b"]
    with open_runs(str(file)) as store:
        assert list(store.runs()) == ["b", "a"]
        assert [found.seq for found in store.read_from("b")] == [3, 5]
        assert [found.seq for found in store.read_from("b", 3)] == [5]
    file.write_bytes(b"nonsense\n")
    with pytest.raises(MalformedLog, match="line 1"):
        open_runs(str(file))


def test_what_is_not_there_or_of_another_kind_is_named(directory: Path) -> None:
    for place in ("nowhere", "sqlite:nowhere", f"jsonl:{directory}"):
        with pytest.raises(NoSuchPlace, match=place):
            open_runs(place)
    with pytest.raises(NoSuchPlace, match="followed"):
        open_growing_runs(str(directory / "runs" / "one" / "events.jsonl"))
    with open_growing_runs(str(directory / "runs" / "one")) as store:
        assert list(store.runs()) == ["one", "one/two"]


def test_a_run_is_chosen_by_its_id_or_a_part_of_it(directory: Path) -> None:
    with open_runs(str(directory)) as store:
        assert choose_run(store, "p", "one") == "one"
        assert choose_run(store, "p", "two") == "one/two"
        for wanted, fitting in (("x", []), ("on", ["one", "one/two"]), (None, ["one", "one/two"])):
            with pytest.raises(NoSuchRun) as fault:
                choose_run(store, "p", wanted)
            assert sorted(fault.value.fitting) == fitting


def test_two_thousand_generations_do_not_exhaust_the_stack() -> None:
    ticks = count()
    runs = [overview(f"{next(ticks):04}", f"{n - 1:04}") for n in range(2_000)]
    assert shape(runs)[-1] == (1_999, "1999")


def test_a_draft_may_state_no_model() -> None:
    draft = EventDraft("run.started", {"kind": "loop", "actor": "a", "harness": "h", "model": "m"})
    assert summarise("r", [Event(draft.type, "r", 1, "t", draft.payload)]).model == "m"
    assert summarise("r", [Event(STARTED.type, "r", 1, "t", STARTED.payload)]).model is None
