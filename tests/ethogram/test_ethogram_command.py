"""The ``ethogram`` command: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ethogram.canonical import serialise_event
from ethogram.cli import COMMANDS, cli
from ethogram.envelope import EventDraft
from ethogram.rundir import RunDirectory
from ethogram.runlog import run_directory_name
from ethogram.testing import FINISHED, NOTE, STARTED, event


def run(*arguments: str, text: bytes = b"") -> Result:
    return CliRunner().invoke(cli, arguments, input=text)


def ticking() -> Callable[[], str]:
    ticks = count(1)
    return lambda: f"tick-{next(ticks)}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    with RunDirectory(folder, clock=ticking()) as runs:
        for draft in (STARTED, NOTE, FINISHED):
            runs.append("done", draft)
        runs.append("open\x1b[2J", STARTED)
        runs.append("x" * 300, NOTE)
        runs.append("", NOTE)
    return folder


def test_sound_runs_are_proved_in_silence(root: Path) -> None:
    result = run("verify", str(root))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "every run is sound\n")


def test_a_report_of_each_run_can_be_had_as_json(root: Path) -> None:
    result = run("verify", "--json", str(root))
    reports = [json.loads(line) for line in result.stdout_bytes.splitlines()]
    assert {report["runId"]: (report["events"], report["finished"]) for report in reports} == {
        "": (1, False),
        "done": (3, True),
        "open\x1b[2J": (1, False),
        "x" * 300: (1, False),
    }


def spoil(root: Path, run_id: str, change: Callable[[bytes], bytes]) -> None:
    path = root / run_directory_name(run_id) / "events.jsonl"
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace(b'"seq":2', b'"seq":4'),
            ":2: line 2 of the run's log: event 4 came where 2 is next",
        ),
        (lambda text: text.replace(b'"v":1,', b'"v": 1,', 1), ":1: the line is not in canonical form"),
        (lambda text: text.replace(b'"kind":"loop"', b'"kind":"song"'), ":1: payload.kind is not a member"),
        (
            lambda text: text + text[text.rfind(b'{"v"') :].replace(b'"seq":3', b'"seq":4'),
            "follows run.finished",
        ),
        (lambda text: text.replace(b"{", b"[", 1), ":1: line 1 of the run's log: not JSON at character"),
    ],
)
def test_a_fault_is_placed_and_worded_without_values(
    root: Path, change: Callable[[bytes], bytes], said: str
) -> None:
    spoil(root, "done", change)
    result = run("verify", str(root))
    assert result.exit_code == 1
    assert said in result.stdout
    assert "song" not in result.stdout
    assert result.stderr == "a fault was found\n"


def test_an_unfinished_last_line_is_told_and_is_no_fault(root: Path) -> None:
    spoil(root, "", lambda text: text + b'{"v":1')
    result = run("verify", str(root))
    assert result.exit_code == 0
    assert "the last 6 bytes are no whole line" in result.stdout


def test_a_directory_that_is_not_named_as_its_run_is_a_fault(root: Path) -> None:
    (root / "done").rename(root / "not.encoded")
    result = run("verify", str(root))
    assert result.exit_code == 1
    assert "not that of the run" in result.stdout


def test_events_are_validated_one_a_line(tmp_path: Path) -> None:
    good = serialise_event(event(1))
    bad = good.replace(b'"type":"test.note"', b'"type":"agent.text"')
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join((good, bad, b"", good)))
    result = run("validate", str(file))
    assert result.exit_code == 1
    wrong, empty = result.stdout.splitlines()
    assert wrong == f"{file}:2: payload.text is required and is not there"
    assert empty.startswith(f"{file}:3: not JSON at character 0: ")
    as_json = [json.loads(line) for line in run("validate", "--json", str(file)).stdout.splitlines()]
    assert [report["kind"] for report in as_json] == ["ok", "ParseError", "ParseError", "ok"]
    assert as_json[1]["path"] == "payload.text"
    assert run("validate", "-", text=good).exit_code == 0
    over = serialise_event(event(1)).replace(b'{"n":1}', b'"' + b"x" * 16_385 + b'"')
    assert '"kind":"OverBound"' in run("validate", "--json", "-", text=over).stdout


def test_events_are_printed_in_canonical_form_up_to_the_first_that_is_none() -> None:
    good = serialise_event(event(1))
    pretty = json.dumps(json.loads(good), indent=None).encode()
    result = run("canonicalise", "-", text=pretty + b"\n" + good + b"\nnonsense\n" + good)
    assert result.exit_code == 1
    assert result.stdout_bytes == (good + b"\n") * 2
    assert ":3: not JSON" in result.stderr
    assert run("canonicalise", "-", text=good).exit_code == 0
    fault = json.loads(run("canonicalise", "--json", "-", text=b"nonsense").stderr)
    assert (fault["file"], fault["line"], fault["kind"]) == ("<stdin>", 1, "ParseError")


def test_each_command_has_help() -> None:
    for name in COMMANDS:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert len(result.stdout) > 100


def test_the_help_of_the_whole_loads_no_command() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from ethogram.cli import cli;"
        "CliRunner().invoke(cli, ['--help']);"
        "print([n for n in sys.modules if n.startswith('ethogram.cli.') or n in ('orjson', 'attr')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_draft_over_its_bound_is_found_in_a_directory_that_was_not_validated(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=ticking(), validate=False) as runs:
        runs.append("r", NOTE)
        runs.append("r", EventDraft("agent.warning", {"message": "x" * 4_097}))
    result = run("verify", str(tmp_path))
    assert result.exit_code == 1
    assert "events.jsonl:2: payload.message has 4097 Unicode scalar values" in result.stdout
