"""Whatever is changed in an output behind its back, `verify` finds; and it never falls over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.samples import sample
from tests.support.strategies import dump
from tests.verify.tampering import NOON, RELAY, Case, Event
from vinaya_bridge.convert import convert
from vinaya_bridge.verify import verify

TURN = "run-a%2Feff-1"
Payload = dict[str, Any]


def test_an_output_that_nobody_changed_is_proven(case: Case) -> None:
    assert case.said(against=False) == ""
    assert case.said(against=True) == ""


@pytest.mark.parametrize("schema", [2, 3])
def test_two_lines_with_one_seq_are_proven(schema: int, tmp_path: Path) -> None:
    file, out = tmp_path / "7.ndjson", tmp_path / "out"
    lines = [
        sample("handoff", "raised", seq=3, schema=schema, meta={"event_id": name}) for name in ("a", "b")
    ]
    file.write_bytes(b"".join(dump(line) + b"\n" for line in lines))
    assert convert([file], out, NOON).lines["converted"] == 2
    assert verify(out, [file]).findings == []


# ---------------------------------------------------------------------------------------- events, against the log


@pytest.mark.parametrize(
    ("run", "event_type", "change"),
    [
        ("run-a", "run.finished", lambda payload: payload.update(outcome="failed")),
        ("run-a", "run.finished", lambda payload: payload.update(reason="other")),
        ("run-a", "run.finished", lambda payload: payload.update(durationMs=7)),
        ("run-a", "run.finished", lambda payload: payload.update(added=True)),
        ("run-a", "run.finished", lambda payload: payload.pop("estimated")),
        (TURN, "run.started", lambda payload: payload.update(actor="other")),
        (TURN, "run.started", lambda payload: payload.update(model="other")),
        (TURN, "run.started", lambda payload: payload.update(parentRunId="other")),
        (TURN, "run.started", lambda payload: payload.pop("parentRunId")),
        (TURN, "run.finished", lambda payload: payload.update(outcome="failed")),
        ("run-a", "execution.usage", lambda payload: payload["vinaya"].update(part=9)),
    ],
)
def test_a_changed_payload_is_found(
    case: Case, run: str, event_type: str, change: Callable[[Payload], object]
) -> None:
    case.edit(run, event_type, change)
    assert "VB417" in case.codes(against=True)


def test_an_event_that_was_moved_to_another_run_is_found(case: Case) -> None:
    events = case.events("run-a")
    moved = events.pop(2)
    case.store("run-a", events)
    turn = case.events(TURN)
    case.store(TURN, [*turn[:2], {**moved, "runId": "run-a/eff-1"}, *turn[2:]])
    assert "stands in a run of other lines" in case.said(against=True)


def test_a_changed_start_that_no_line_states_is_found(case: Case) -> None:
    file = case.log / "acme-lantern" / "7.ndjson"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[4:6]))
    alone = Case(case.log, case.out.with_name("alone"))
    convert([file], alone.out)
    assert alone.said(against=True) == ""
    alone.edit("run-a", "run.started", lambda payload: payload.update(actor="other"))
    assert "the run.started that it implies" in alone.said(against=True)


def test_what_the_bridge_tells_of_a_line_cannot_be_changed(case: Case) -> None:
    case.edit(RELAY, "capture.refused", lambda payload: payload.update(sourceRunId="other"))
    assert "tells something else" in case.said(against=True)


# ---------------------------------------------------------------------------------------- events, by themselves


@pytest.mark.parametrize("against", [False, True])
def test_two_events_of_a_process_that_changed_places_are_found(case: Case, against: bool) -> None:
    events = case.events("run-a")
    events[3], events[4] = events[4], events[3]
    case.store("run-a", events)
    assert "behind a later event of its process" in case.said(against=against)


def test_a_run_that_does_not_begin_with_its_start_is_found(case: Case) -> None:
    events = case.events("run-a")
    case.store("run-a", [events[1], events[0], *events[2:]])
    assert "does not begin with run.started" in case.said(against=False)
    assert "a second run.started" in case.said(against=False)


def strange(events: list[Event]) -> list[Event]:
    return [*events, {**events[-1], "type": "human.intervened", "payload": {**events[-1]["payload"]}}]


@pytest.mark.parametrize(
    "change",
    [strange, lambda events: [*events, events[-1]], lambda events: events[:-1]],
    ids=["an event of another type", "a line told twice", "a line not told"],
)
def test_the_bridge_s_own_run_cannot_be_changed(
    case: Case, change: Callable[[list[Event]], list[Event]]
) -> None:
    case.store(RELAY, change(case.events(RELAY)))
    assert case.codes(against=False)


def test_the_bridge_s_own_run_cannot_be_removed(case: Case) -> None:
    case.run(RELAY).unlink()
    assert "does not tell of this line" in case.said(against=False)


def test_a_part_that_is_no_number_is_a_finding(case: Case) -> None:
    case.edit("run-a", "execution.usage", lambda payload: payload["vinaya"].update(part="0"))
    assert "VB411" in case.codes(against=True)


def test_a_payload_that_is_no_object_is_a_finding(case: Case) -> None:
    events = case.events("run-a")
    events[3].update(type="some.thing", payload=None)
    case.store("run-a", events)
    assert "VB411" in case.codes(against=True)


# ---------------------------------------------------------------------------------------- kept lines


def test_a_removed_folder_of_kept_lines_is_found(case: Case) -> None:
    for path in case.index.parent.iterdir():
        path.unlink()
    case.index.parent.rmdir()
    case.run(RELAY).unlink()
    assert "2 refused, but no such line is kept" in case.said(against=False)
    assert "1 conflict, but no such line is kept" in case.said(against=False)


@pytest.mark.parametrize("name", ["index.jsonl", "refused.ndjson", "unknown-version.ndjson"])
def test_a_removed_file_of_kept_lines_is_found(case: Case, name: str) -> None:
    (case.out / "kept" / name).unlink()
    assert "VB413" in case.codes(against=False)
    assert "VB413" in case.codes(against=True)


def test_bytes_that_no_row_names_are_found(case: Case) -> None:
    (case.out / "kept" / "origin.ndjson").write_bytes(b"{}\n")
    assert "VB413" in case.codes(against=False)


def test_a_replaced_newline_behind_a_kept_line_is_found(case: Case) -> None:
    path = case.out / "kept" / "refused.ndjson"
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    assert "VB413" in case.codes(against=False)


@pytest.mark.parametrize(
    "fields",
    [
        {"why": "bored"},
        {"why": None},
        {"kept_offset": "0"},
        {"kept_offset": -1},
        {"length": True},
        {"file": 1},
        {"line": "1"},
        {"another": 1},
    ],
)
def test_a_row_of_another_shape_is_a_finding(case: Case, fields: dict[str, object]) -> None:
    case.edit_row("refused", **fields)
    assert "VB413" in case.codes(against=False)
    assert "VB413" in case.codes(against=True)


@pytest.mark.parametrize(
    "fields",
    [{"file": "7.ndjson"}, {"line": 1}, {"offset": 0}, {"code": "VB101"}, {"path": "$.meta"}, {"path": None}],
)
def test_a_row_that_says_something_else_than_the_log_is_found(case: Case, fields: dict[str, object]) -> None:
    case.edit_row("refused", **fields)
    assert "VB413" in case.codes(against=True)


def test_a_row_of_another_reason_is_found(case: Case) -> None:
    case.edit_row("refused", why="late")
    assert "VB413" in case.codes(against=False)


# ---------------------------------------------------------------------------------------- the report


@pytest.mark.parametrize(
    "change",
    [
        lambda report: report["lines"].update(read=14, converted=10),
        lambda report: report["total"].update(read=14.0, converted=9),
        lambda report: report["total"].update(pending=-1, read=12),
        lambda report: report["total"].pop("blank"),
        lambda report: report.update(total=[]),
        lambda report: report["total"].update(read=14, late=1),
    ],
)
def test_a_report_that_does_not_add_up_is_found(case: Case, change: Callable[[Payload], object]) -> None:
    case.edit_report(change)
    assert "VB414" in case.codes(against=False)


def test_any_file_of_an_output_can_be_cut_anywhere(case: Case) -> None:
    for path in [*case.out.glob("runs/*/events.jsonl"), *case.out.glob("kept/*")]:
        whole = path.read_bytes()
        for length in {0, 1, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:length])
            assert case.codes(against=True), (path.name, length)
        path.write_bytes(whole)
    assert case.codes(against=True) == set()


def test_any_field_of_an_event_can_have_any_type(case: Case) -> None:
    whole = case.run("run-a").read_bytes()
    values: tuple[object, ...] = (None, "x", {}, True)
    for value in values:
        for field in ("eventId", "part", "digest", "seq", "schema"):
            lines = whole.split(b"\n")
            event = orjson.loads(lines[3])
            if event["payload"]["vinaya"].get(field) == value:
                continue
            event["payload"]["vinaya"][field] = value
            lines[3] = orjson.dumps(event, option=orjson.OPT_SORT_KEYS)
            case.run("run-a").write_bytes(b"\n".join(lines))
            assert case.codes(against=True), (field, value)


def test_a_run_of_any_name_is_a_finding(case: Case) -> None:
    events = case.events("run-a")
    for name in ("run-a~x", "run-a~", "~", "/"):
        folder = case.out / "runs" / "odd"
        case.store("odd", [{**event, "runId": name} for event in events])
        assert case.codes(against=True), name
        for path in sorted(folder.iterdir()):
            path.unlink()


def test_findings_name_no_value_of_the_log(case: Case) -> None:
    case.edit("run-a", "run.finished", lambda payload: payload.update(reason="hunter2"))
    case.edit_row("refused", path="hunter2")
    assert "hunter2" not in case.said(against=True)
