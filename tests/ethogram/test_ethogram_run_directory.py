"""Run directories: the layout on disk, what is refused, and what a second writer or a full disk does."""

from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import canonical_payload, serialise_event
from ethogram.envelope import CanonicalDraft, Event, EventDraft
from ethogram.faults import Finished, Gap, Invalid, MalformedLog, SinkUnavailable
from ethogram.rundir import RunDirectory
from ethogram.runlog import run_directory_name, run_id_of
from ethogram.sink import RunState
from ethogram.testing import FINISHED, NOTE, STARTED, event


def ticking() -> Callable[[], str]:
    ticks = count(1)
    return lambda: f"tick-{next(ticks)}"


def line(seq: int, run_id: str = "r", type_name: str = "test.note") -> bytes:
    return serialise_event(event(seq, run_id, type_name)) + b"\n"


def write(root: Path, *lines: bytes, run_id: str = "r") -> Path:
    path = root / run_directory_name(run_id) / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(lines))
    return path


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("", "%"),
        ("%", "%25"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("run.1", "run%2E1"),
        ("a/b", "a%2Fb"),
        ("\0", "%00"),
        ("é", "%C3%A9"),
        ("A-z_0", "A-z_0"),
        ("x" * 255, "x" * 255),
    ],
)
def test_the_name_of_a_run_is_the_one_that_other_tools_give_it(run_id: str, name: str) -> None:
    assert run_directory_name(run_id) == name
    assert run_id_of(name) == run_id


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.text(max_size=40))
def test_names_are_injective_and_read_back(one: str, other: str) -> None:
    assert (run_directory_name(one) == run_directory_name(other)) == (one == other)
    assert run_id_of(run_directory_name(one)) == one
    assert "/" not in run_directory_name(other)


def test_a_long_name_is_cut_and_told_apart_by_a_hash() -> None:
    names = {run_directory_name("é" * 200 + end) for end in ("", "x", "y")}
    assert len(names) == 3
    for name in names:
        assert len(name) == 246
        assert name[180:182] == "%_"
        assert run_id_of(name) is None


@pytest.mark.parametrize("name", ["%2e", "a.b", "%zz", "%FF", "lost+found", "é"])
def test_a_directory_that_no_run_id_names_stands_for_none(name: str) -> None:
    assert run_id_of(name) is None


def test_files_and_directories_are_for_their_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "runs"
    with RunDirectory(root, clock=ticking()) as runs:
        runs.append("a/b", NOTE)
        assert runs.path("a/b") == root / "a%2Fb" / "events.jsonl"
    assert (root / "a%2Fb" / "events.jsonl").stat().st_mode & 0o777 == 0o600
    assert (root / "a%2Fb").stat().st_mode & 0o777 == 0o700
    assert root.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in (root / "a%2Fb").iterdir()] == ["events.jsonl"]


def test_a_stored_line_is_canonical(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        runs.append("r", EventDraft("test.note", {"b": 1.0, "a": 1e-7}, "c"))
        expected = (
            b'{"v":1,"type":"test.note","runId":"r","seq":1,"ts":"tick-1","payload":{"a":1e-7,"b":1},'
            b'"capturedAt":"c"}\n'
        )
        assert runs.path("r").read_bytes() == expected
        assert runs.state("r") == RunState(1, False, len(expected))


def test_nothing_is_made_before_something_is_stored(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    with RunDirectory(root, clock=ticking()) as runs:
        assert list(runs.runs()) == []
        assert runs.last_seq("r") == 0
        runs.sync()
        with pytest.raises(Invalid):
            runs.append("r", EventDraft("agent.text", {}))
        with pytest.raises(Gap):
            runs.forward(event(2))
        assert runs.append_canonical("r", []) == RunState()
        assert not root.exists()


def test_a_clock_is_not_read_for_what_is_refused(tmp_path: Path) -> None:
    clock = ticking()
    with RunDirectory(tmp_path, clock=clock) as runs:
        runs.append("r", FINISHED)
        for refused in (
            lambda: runs.append("r", NOTE),
            lambda: runs.append_canonical("r", [CanonicalDraft("a", b"1")]),
        ):
            with pytest.raises(Finished):
                refused()
    assert clock() == "tick-2"


@pytest.mark.parametrize(
    ("lines", "cause", "number"),
    [
        ([line(1), b"{}\n"], "text", 2),
        ([b"\n"], "text", 1),
        ([b"\xff\n"], "text", 1),
        ([b"\0" * 20 + line(1)], "text", 1),
        ([line(1), line(2, "other")], "run", 2),
        ([line(1), line(3)], "gap", 2),
        ([line(2)], "gap", 1),
        ([line(1), line(1)], "duplicate", 2),
        (
            [
                line(1),
                line(2)
                .replace(b'"test.note"', b'"run.finished"')
                .replace(b'{"n":2}', b'{"outcome":"failed","durationMs":1}'),
                line(3),
            ],
            "finished",
            3,
        ),
    ],
)
def test_a_broken_log_is_reported_and_never_written_to(
    tmp_path: Path, lines: list[bytes], cause: str, number: int
) -> None:
    path = write(tmp_path, *lines)
    before = path.read_bytes()
    with RunDirectory(tmp_path, clock=ticking(), repair_torn_tail=True) as runs:
        for act in (
            lambda: runs.append("r", NOTE),
            lambda: runs.forward(event(9)),
            lambda: runs.append_canonical("r", [CanonicalDraft("a", b"1")]),
            lambda: runs.last_seq("r"),
            lambda: list(runs.read_from("r", 99)),
        ):
            with pytest.raises(MalformedLog) as raised:
                act()
            assert (raised.value.cause, raised.value.line, raised.value.run_id) == (cause, number, "r")
    assert path.read_bytes() == before


@pytest.mark.parametrize("torn", [line(3)[:-1], line(3)[:7], b"\0\0\0", b"{"])
def test_a_torn_last_line_is_not_read_and_stops_a_writer_unless_it_may_be_cut(
    tmp_path: Path, torn: bytes
) -> None:
    path = write(tmp_path, line(1), line(2), torn)
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        assert [each.seq for each in runs.read_from("r")] == [1, 2]
        assert runs.state("r").last_seq == 2
        with pytest.raises(MalformedLog) as raised:
            runs.append("r", NOTE)
        assert (raised.value.cause, raised.value.line) == ("torn", 3)
        assert path.read_bytes().endswith(torn)
    with RunDirectory(tmp_path, clock=ticking(), repair_torn_tail=True) as runs:
        assert runs.append("r", NOTE).seq == 3
        assert path.read_bytes().startswith(line(1) + line(2) + b'{"v":1,')
        assert [each.seq for each in runs.read_from("r")] == [1, 2, 3]


def test_runs_are_listed_by_directory_and_what_is_no_run_is_passed_over(tmp_path: Path) -> None:
    long_id = "x" * 300
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        for run_id in ("b", "a", long_id, ""):
            runs.append(run_id, NOTE)
        (tmp_path / "file").write_text("")
        (tmp_path / "empty").mkdir()
        write(tmp_path, b"", run_id="void")
        (tmp_path / "not.a.run").mkdir()
        (tmp_path / "not.a.run" / "events.jsonl").write_bytes(line(1))
        hashed = tmp_path / run_directory_name("y" * 300)
        hashed.mkdir()
        (hashed / "events.jsonl").write_bytes(b"no event\n")
        assert list(runs.runs()) == ["", "a", "b", long_id]


def test_a_second_writer_is_seen_before_the_next_seq_is_given(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking()) as one, RunDirectory(tmp_path, clock=ticking()) as other:
        for seq in range(1, 9, 2):
            assert one.append("r", NOTE).seq == seq
            assert other.append_canonical("r", [CanonicalDraft("a", b"1")]).last_seq == seq + 1
        other.append("r", FINISHED)
        with pytest.raises(Finished):
            one.append("r", NOTE)
        assert [each.seq for each in one.read_from("r")] == list(range(1, 10))


def test_writers_in_several_processes_share_one_sequence(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, RunDirectory, utc_now\n"
        "runs = RunDirectory(Path(sys.argv[1]), clock=utc_now, durability='batch')\n"
        "for _ in range(50): runs.append_canonical('r', [CanonicalDraft('t.x', b'{}')] * 3)\n"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        assert [each.seq for each in runs.read_from("r")] == list(range(1, 451))


def test_a_log_that_was_removed_begins_again(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        runs.append("r", FINISHED)
        runs.path("r").unlink()
        assert runs.append("r", NOTE).seq == 1


def test_more_runs_than_are_remembered_go_on_where_they_were(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking(), durability="batch", remembered_runs=2) as runs:
        for times in (1, 2, 3):
            for number in range(5):
                assert runs.append(f"r{number}", STARTED if times == 1 else NOTE).seq == times
        runs.sync()


def test_many_unsynced_runs_are_synced_at_once(tmp_path: Path) -> None:
    drafts = [CanonicalDraft("test.note", canonical_payload({"n": 1}))]
    with RunDirectory(tmp_path, clock=ticking(), durability="batch") as runs:
        for number in range(200):
            runs.append_canonical(f"r{number}", drafts)
        runs.sync()
        assert len(list(runs.runs())) == 200


def test_what_the_system_refuses_is_a_fault_with_its_number_and_leaves_no_half_line(tmp_path: Path) -> None:
    # A real limit of the system stands in for a full disk; it would hold for the whole process.
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from ethogram import EventDraft, RunDirectory, SinkUnavailable, utc_now\n"
        "runs = RunDirectory(Path(sys.argv[1]), clock=utc_now)\n"
        "runs.append('r', EventDraft('t.x', 'x' * 500))\n"
        "size = runs.path('r').stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))\n"
        "for draft in (EventDraft('t.x', 'y' * 500),) * 2:\n"
        "    try: runs.append('r', draft)\n"
        "    except SinkUnavailable as fault: print(fault.error_number, fault.run_id, fault.path)\n"
        "assert runs.path('r').stat().st_size == size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "print(runs.append('r', EventDraft('t.x', 'z' * 500)).seq)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    path = tmp_path / "r" / "events.jsonl"
    assert done.stdout.splitlines() == [f"{errno.EFBIG} r {path}"] * 2 + ["2"], done.stderr
    assert path.read_bytes().count(b"\n") == 2


def test_a_root_that_is_no_directory_is_a_fault(tmp_path: Path) -> None:
    root = tmp_path / "file"
    root.write_text("")
    with RunDirectory(root, clock=ticking()) as runs:
        for act in (lambda: runs.append("r", NOTE), lambda: list(runs.runs()), lambda: runs.last_seq("r")):
            with pytest.raises(SinkUnavailable) as raised:
                act()
            assert raised.value.error_number == errno.ENOTDIR


def test_an_unvalidated_directory_takes_what_breaks_a_rule(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking(), validate=False) as runs:
        runs.append("r", EventDraft("control.requested", {"controlId": "c", "kind": "sing", "by": "b"}))
        runs.forward(Event("run.finished", "r", 2, "t", {"outcome": "odd", "durationMs": 0}))
        assert runs.state("r")[:2] == (2, True)


def test_a_growing_log_is_read_on_from_where_it_was_checked(tmp_path: Path) -> None:
    path = write(tmp_path, *(line(seq) for seq in range(1, 6)))
    with RunDirectory(tmp_path, clock=ticking()) as runs:
        assert [each.seq for each in runs.read_from("r")] == [1, 2, 3, 4, 5]
        with path.open("ab") as stream:
            stream.write(line(6) + line(7)[:9])
        assert [each.seq for each in runs.read_from("r", 5)] == [6]
        assert [each.seq for each in runs.read_from("r", 6)] == []
        assert [each.seq for each in runs.read_from("r", 3)] == [4, 5, 6]
        with path.open("ab") as stream:
            stream.write(line(7)[9:] + line(9))
        with pytest.raises(MalformedLog) as raised:
            list(runs.read_from("r", 6))
        assert (raised.value.cause, raised.value.line) == ("gap", 8)
        path.write_bytes(line(2))
        with pytest.raises(MalformedLog):
            list(runs.read_from("r", 6))
