"""What the ``ethogram`` command says to a person who is wrong about what is where."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ethogram.cli import cli
from ethogram.rundir import RunDirectory
from ethogram.testing import STARTED


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, arguments)))


def test_a_folder_without_runs_is_not_said_to_be_sound(tmp_path: Path) -> None:
    done = run("verify", tmp_path)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "no runs\n")


@pytest.mark.parametrize(("typed", "meant"), [("rnus", "runs"), ("validat", "validate")])
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    done = run(typed, "--help")
    assert done.exit_code == 2
    assert f"did you mean {meant}?" in done.stderr


def test_a_command_like_no_other_is_refused_without_a_guess() -> None:
    done = run("xyzzy")
    assert done.exit_code == 2
    assert "mean" not in done.stderr


@pytest.mark.parametrize(
    "words", [["export", "--cloudevents", "-o", "/dev/full"], ["runs"], ["show", "--json"]]
)
def test_a_full_disk_is_said_in_one_line(words: list[str], tmp_path: Path) -> None:
    with RunDirectory(tmp_path, clock=lambda: "now") as runs:
        runs.append("a", STARTED)
    command = [sys.executable, "-m", "ethogram", *words, str(tmp_path)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device\n")
