"""What tail says to a person: at its start, at its end, and of where it stands."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.commands import run


@pytest.fixture
def logs(repository: Path) -> Path:
    return repository / "fixtures" / "cancelled-loop" / "in"


def test_tail_ends_with_the_equation_and_the_next_command(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("tail", logs, "-o", out, "--once")
    assert done.stdout == ""
    equation, following = done.stderr.splitlines()[-2:]
    assert equation == "18 read = 17 converted + 1 unmapped"
    assert following == f"next        vinaya-bridge verify {out} --against {logs}"
    assert run(*following.split()[2:]).returncode == 0


@pytest.mark.parametrize("option", ["--json", "--quiet"])
def test_tail_says_nothing_to_a_person_who_did_not_ask(option: str, logs: Path, tmp_path: Path) -> None:
    assert run("tail", logs, "-o", tmp_path / "out", "--once", option).stderr == ""


def test_a_quiet_tail_still_names_faults(tmp_path: Path) -> None:
    done = run("tail", tmp_path / "nope", "-o", tmp_path / "out", "--once", "--quiet")
    assert done.stderr == f"notice      VB301 {tmp_path / 'nope'}: does not exist\n"


def test_tail_says_what_it_follows_and_how_it_is_stopped(logs: Path, tmp_path: Path) -> None:
    words = ["tail", str(logs), str(tmp_path / "later"), "-o", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-m", "vinaya_bridge", *words], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "following 1 directory, 1 path not there yet; Ctrl-C to stop\n"
        while "finished    loop-91" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read().splitlines()
    assert process.returncode == 0
    assert rest[-2].startswith("18 read = ")
    assert rest[-1].endswith(f"--against {logs}")


def test_where_an_output_stands_is_said_in_the_right_number(repository: Path, tmp_path: Path) -> None:
    (log,) = (repository / "fixtures" / "cancelled-loop" / "in").rglob("90.ndjson")
    run("tail", log, "-o", tmp_path / "out", "--once")
    said = run("tail", "--status", tmp_path / "out").stdout
    assert "position    1 file\n" in said
    assert "0 lines behind a hole, 0 runs whose end is held" in said


def test_an_output_of_convert_is_said_to_have_had_no_tail(logs: Path, tmp_path: Path) -> None:
    run("convert", logs, "-o", tmp_path / "out")
    done = run("tail", "--status", tmp_path / "out")
    assert done.stdout == "writer      none is running\nposition    none: no tail has run here\n"
    assert orjson.loads(run("tail", "--status", tmp_path / "out", "--json").stdout)["tailed"] is False


def test_the_standing_of_what_is_no_output_is_an_error(tmp_path: Path) -> None:
    missing = run("tail", "--status", tmp_path / "nope")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "does not exist" in missing.stderr
    other = run("tail", "--status", tmp_path)
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr.startswith("VB403 ")
    assert "try: name a directory that was given to tail with -o" in other.stderr


def test_an_output_is_needed_with_every_sink(logs: Path) -> None:
    done = run("tail", logs, "--sink", "-")
    assert done.returncode == 2
    assert "-o OUT is needed with every --sink" in done.stderr
    assert "needed with every sink" in " ".join(run("tail", "--help").stdout.split())


def test_the_next_commands_of_another_sink_prove_it_and_show_its_runs(logs: Path, tmp_path: Path) -> None:
    sink, out = f"sqlite:{tmp_path / 'events.db'}", tmp_path / "out"
    done = run("tail", logs, "-o", out, "--sink", sink, "--once")
    proof, look = done.stderr.splitlines()[-2:]
    assert proof == f"next        vinaya-bridge verify {out} --against {logs}"
    assert run(*proof.split()[2:]).returncode == 0
    assert look == f"            ethogram runs {sink}"
