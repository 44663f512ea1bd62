"""``ethogram runs``, ``show`` and ``follow``: what they print, and for whom."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ethogram.cli import cli
from ethogram.cli.words import count as written_count
from ethogram.cli.words import duration, table
from ethogram.envelope import EventDraft
from ethogram.json_text import Json
from ethogram.rundir import RunDirectory
from ethogram.runlog import run_directory_name
from ethogram.testing import FINISHED, NOTE


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def start(kind: str = "loop", **more: Json) -> EventDraft:
    return EventDraft("run.started", {"kind": kind, "actor": "a", "harness": "h", **more})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    ticks = count()
    folder = tmp_path / "runs"
    with RunDirectory(folder, clock=lambda: f"2026-01-01T00:00:{next(ticks):02}.000Z") as runs:
        runs.append("main", start(model="opus"))
        runs.append("main/child", start("subagent", parentRunId="main"))
        usage: Json = {"inputTokens": 1_500, "outputTokens": 250}
        runs.append("main/child", EventDraft("agent.completed", {"costUsd": 0.5, "usage": usage}))
        runs.append("main/child", EventDraft("run.finished", {"outcome": "capped", "durationMs": 61_000}))
        runs.append("main/late", start("subagent", parentRunId="main"))
        runs.append("main", NOTE)
        runs.append("open\x1b[2J", start(parentRunId="gone"))
        runs.append("x" * 300, NOTE)
        runs.append("", NOTE)
    return folder


def test_runs_are_a_tree_with_outcomes_durations_and_folded_figures(root: Path) -> None:
    path = root / run_directory_name("") / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"v":1', b'"v":2'))
    result = run("runs", str(root))
    assert result.exit_code == 0
    rows = {line.split("  ")[0]: line.split() for line in result.stdout.splitlines()}
    assert rows["RUN"] == ["RUN", "KIND", "ACTOR", "OUTCOME", "DURATION", "EVENTS", "TOKENS", "COST"]
    assert rows["main"] == ["main", "loop", "a", "open", "≥", "5s", "2", "Σ", "1.8k", "Σ", "$0.5000"]
    assert rows["├─ main/child"][2:] == ["subagent", "a", "capped", "1min", "01s", "3", "1.8k", "$0.5000"]
    assert rows["└─ main/late"][2:] == ["subagent", "a", "open", "-", "1", "-", "-"]
    assert "open\ufffd[2J" in rows
    assert "fault: line 1 of the run's log: Event.v must be the number 1" in result.stdout
    assert "\x1b" not in result.stdout


def test_runs_can_be_had_as_json_with_their_depth_and_their_children_added(root: Path) -> None:
    rows = [json.loads(line) for line in run("runs", "--json", str(root)).stdout.splitlines()]
    by_id = {row["runId"]: row for row in rows}
    assert [row["runId"] for row in rows][:3] == ["main", "main/child", "main/late"]
    assert by_id["main"]["withChildren"] == {
        "costUsd": 0.5,
        "usage": {"tokens": {"inputTokens": 1_500, "outputTokens": 250}},
        "sessions": 1,
        "lowerBound": False,
    }
    assert (by_id["main/child"]["depth"], by_id["main/child"]["outcome"]) == (1, "capped")
    assert by_id["open\x1b[2J"]["orphan"]
    assert not by_id["main"]["orphan"]


def test_an_empty_directory_has_no_runs(tmp_path: Path) -> None:
    result = run("runs", str(tmp_path))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no runs\n")


def test_a_run_is_shown_with_its_figures_and_one_line_an_event(root: Path) -> None:
    result = run("show", str(root), "child")
    assert result.exit_code == 0
    assert "outcome   capped, 1min 01s\n" in result.stdout
    assert "usage     inputTokens 1,500 outputTokens 250\n" in result.stdout
    assert "parent    main\n" in result.stdout
    lines = result.stdout.split("\n\n")[1].splitlines()
    assert lines[1] == "    2  2026-01-01T00:00:02.000Z  agent.completed  costUsd=0.5"
    only = run("show", str(root), "child", "--type", "run.finished").stdout
    assert "agent.completed" not in only.split("\n\n")[1]


def test_a_run_is_shown_as_canonical_lines_and_with_whole_payloads(root: Path) -> None:
    stored = (root / run_directory_name("main") / "events.jsonl").read_text("utf-8")
    assert run("show", str(root), "main", "--json").stdout == stored
    full = run("show", str(root), "main", "--full").stdout
    assert '       "é": "😀"' in full.replace("      ", "       ", 1) or '"é": "😀"' in full


def test_a_run_that_is_not_clear_is_asked_for_by_name(root: Path) -> None:
    result = run("show", str(root), "ma")
    assert result.exit_code == 1
    assert "  main/child\n" in result.stderr
    assert run("show", str(root), "nobody").exit_code == 1
    assert "\x1b" not in run("show", str(root)).stderr


def test_long_summaries_are_cut_and_payloads_may_be_anything(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=lambda: "t") as runs:
        runs.append("r", EventDraft("x", {"text": "y" * 500 + "\x1b"}))
        runs.append("r", EventDraft("x", [1, 2]))
        runs.append("r", EventDraft("x", {"only": {"nested": 1}}))
    lines = run("show", str(tmp_path)).stdout.split("\n\n")[1].splitlines()
    assert lines[0].endswith("y…")
    assert len(lines[0]) < 150
    assert lines[1].split() == ["2", "t", "x"]


def ethogram(*arguments: str) -> subprocess.Popen[bytes]:
    script = "from ethogram.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_a_run_is_followed_until_it_ends(root: Path) -> None:
    follower = ethogram("follow", str(root), "main/late", "--json")
    assert follower.stdout is not None
    first = json.loads(follower.stdout.readline())
    with RunDirectory(root, clock=lambda: "t") as runs:
        runs.append("main/late", NOTE)
        second = json.loads(follower.stdout.readline())
        runs.append("main/late", FINISHED)
    rest, said = follower.communicate(timeout=20)
    assert (first["seq"], second["seq"], json.loads(rest)["type"]) == (1, 2, "run.finished")
    assert (follower.returncode, said) == (0, b"")


def test_one_runs_directory_can_be_followed_from_a_seq_on(root: Path) -> None:
    place = str(root / run_directory_name("main/child"))
    result = run("follow", place, "--after", "2")
    assert (result.exit_code, [line.split()[2] for line in result.stdout.splitlines()]) == (
        0,
        ["run.finished"],
    )


def test_a_place_that_is_not_there_is_an_error_without_a_traceback() -> None:
    command = ethogram("runs", "nowhere-at-all")
    _, said = command.communicate(timeout=20)
    assert (command.returncode, said) == (
        1,
        b"Error: nowhere-at-all: there is no such file or directory\n",
    )


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (None, "-"),
        (0, "0ms"),
        (999, "999ms"),
        (13_580, "13.5s"),
        (61_000, "1min 01s"),
        (3_600_000 * 25, "1d 01h"),
        (3_840_000, "1h 04min"),
    ],
)
def test_durations_are_written_in_two_units_at_most(milliseconds: float | None, written: str) -> None:
    assert duration(milliseconds) == written


def test_large_numbers_are_written_short() -> None:
    assert [written_count(number) for number in (None, 0, 999, 1_250, 3_000_000, 2_000_000_000)] == [
        "-",
        "0",
        "999",
        "1.2k",
        "3.0M",
        "2.0G",
    ]


def test_wide_characters_keep_a_table_straight() -> None:
    assert table(("A", "B"), [("漢字", "x"), ("ab", "y")]) == ["A     B", "漢字  x", "ab    y"]
    assert table(("A",), []) == []
