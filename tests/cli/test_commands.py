"""The commands as a person types them: exits, words, and no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from random import Random

import click
import orjson
import pytest

from tests.support.commands import run
from tests.support.corpus import write_corpus
from vinaya_bridge.cli import COMMANDS
from vinaya_bridge.codes import ALL_CODES
from vinaya_bridge.output import Output


@pytest.fixture
def torn(repository: Path) -> Path:
    return repository / "fixtures" / "torn-file" / "in"


def test_every_command_that_is_listed_exists_and_says_what_it_does() -> None:
    for name, (module, short_help) in COMMANDS.items():
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        assert command.name == name
        assert command.help
        assert short_help.endswith(".")


def test_the_help_of_every_command_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in COMMANDS:
        done = run(name, "--help")
        assert done.returncode == 0
        assert all(len(line) <= 80 for line in done.stdout.splitlines()), name


def test_the_help_of_a_command_that_holds_every_line_says_what_that_costs() -> None:
    for name in ("usage", "status"):
        assert "held in memory: about 0.6 kB for each line" in run(name, "--help").stdout


def test_every_code_has_a_page_and_no_two_codes_share_an_id() -> None:
    assert len({code.id for code in ALL_CODES}) == len(ALL_CODES)
    for code in ALL_CODES:
        assert code.title[0].islower()
        assert not code.title.endswith(".")
        assert len(code.page) > 40, code.id
        assert code.page.rstrip().endswith("."), code.id


def test_explain_prints_the_page_of_a_code() -> None:
    done = run("explain", "vb105")
    assert done.returncode == 0
    assert done.stdout.startswith("VB105  ")


def test_refused_lines_alone_are_no_failure_unless_strict(torn: Path, tmp_path: Path) -> None:
    assert run("convert", torn, "-o", tmp_path / "out").returncode == 0
    assert run("convert", torn, "-o", tmp_path / "out", "--strict").returncode == 1


def test_an_input_of_which_no_line_is_valid_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "7.ndjson").write_bytes(b"{}\nnot json\n")
    assert run("convert", tmp_path / "7.ndjson", "-o", tmp_path / "out").returncode == 1


def test_an_empty_input_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    done = run("convert", tmp_path / "in", "-o", tmp_path / "out")
    assert done.returncode == 0
    assert done.stdout.startswith("0 read = 0 converted\n")


def test_an_input_that_does_not_exist_is_named_and_fails(torn: Path, tmp_path: Path) -> None:
    done = run("convert", torn, tmp_path / "nowhere", "-o", tmp_path / "out")
    assert done.returncode == 1
    assert "nowhere" in done.stderr
    assert done.stdout.startswith("13 read = ")


def test_a_wrong_option_or_mapping_stops_before_anything_is_read(torn: Path, tmp_path: Path) -> None:
    for words in (["--mapping", "nonesuch"], ["--mapping", str(torn)], ["--colour"]):
        done = run("convert", torn, "-o", tmp_path / "out", *words)
        assert done.returncode == 2, words
        assert not (tmp_path / "out" / "runs").exists()


def test_a_wrong_command_line_is_told_as_every_other_fault(torn: Path, tmp_path: Path) -> None:
    for words, place in (
        (["convert", str(torn)], "vinaya-bridge convert"),
        (["convert", str(torn), "-o", str(tmp_path / "out"), "--colour"], "vinaya-bridge convert"),
        (["convert", str(torn), "-o", str(tmp_path / "out"), "--jobs", "0"], "vinaya-bridge convert"),
        (["verify", str(tmp_path / "nowhere")], "vinaya-bridge verify"),
        (["verify", str(tmp_path), str(torn)], "vinaya-bridge verify"),
        (["tail", str(torn)], "vinaya-bridge tail"),
        (["tail", str(torn), "-o", str(tmp_path / "out"), "--settle", "soon"], "vinaya-bridge tail"),
        (["mapping", "diff", "core"], "vinaya-bridge mapping diff"),
        (["mapping", "draw"], "vinaya-bridge mapping"),
        (["explain", "VB999"], "vinaya-bridge explain"),
        (["convret"], "vinaya-bridge"),
    ):
        done = run(*words)
        assert done.returncode == 2, words
        assert done.stdout == "", words
        first, remedy, more = done.stderr.splitlines()
        assert first.startswith(f"VB239 {place}: "), words
        assert remedy == f"  try: {place} --help", words
        assert more == "  more: vinaya-bridge explain VB239", words


def test_an_output_inside_the_input_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    done = run("convert", tmp_path / "in", "-o", tmp_path / "in" / "out")
    assert done.returncode == 2
    assert "try:" in done.stderr


def test_a_busy_output_exits_with_3_and_names_the_process(torn: Path, tmp_path: Path) -> None:
    with Output(tmp_path / "out").locked():
        done = run("convert", torn, "-o", tmp_path / "out")
    assert done.returncode == 3
    assert str(os.getpid()) in done.stderr


def test_json_for_programs_is_the_report_and_nothing_else(torn: Path, tmp_path: Path) -> None:
    done = run("convert", torn, "-o", tmp_path / "out", "--json")
    assert orjson.loads(done.stdout) == orjson.loads((tmp_path / "out" / "report.json").read_bytes())


def test_quiet_prints_nothing(torn: Path, tmp_path: Path) -> None:
    done = run("convert", torn, "-o", tmp_path / "out", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


def test_standard_input_is_an_input(torn: Path, tmp_path: Path) -> None:
    (file,) = torn.rglob("31.ndjson")
    done = run("convert", "-", "-o", tmp_path / "out", stdin=file.read_bytes())
    assert done.returncode == 0
    assert not (tmp_path / "out" / "state" / "stdin").exists()
    assert run("verify", tmp_path / "out", "--against", file).returncode == 0


def test_a_log_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    hostile = tmp_path / "in" / "\x1b[31m.ndjson"
    hostile.parent.mkdir()
    hostile.write_bytes(b'{"meta":{"schema":3,"\x1b]0;owned\x07":1}}\n\x1b[2Jtorn\n')
    source, out = str(hostile.parent), str(tmp_path / "out")
    for words in (["check", source], ["convert", source, "-o", out]):
        done = run(*words)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr


def test_verify_finds_a_changed_payload_a_lost_event_and_a_lost_kept_line(torn: Path, tmp_path: Path) -> None:
    for name, change in (
        ("payload", lambda text: text.replace(b'"vinaya":', b'"note":1,"vinaya":', 1)),
        ("event", lambda text: b"".join(text.splitlines(keepends=True)[:-1])),
    ):
        out = tmp_path / name
        run("convert", torn, "-o", out)
        log = max((out / "runs").glob("loop*/events.jsonl"), key=lambda path: path.stat().st_size)
        before = log.read_bytes()
        log.write_bytes(change(before))
        assert log.read_bytes() != before
        assert run("verify", out, "--against", torn).returncode == 1, name
    out = tmp_path / "kept"
    run("convert", torn, "-o", out)
    index = out / "kept" / "index.jsonl"
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:-1]))
    assert run("verify", out).returncode == 1


def test_ctrl_c_leaves_an_output_that_the_next_call_continues(tmp_path: Path) -> None:
    source = tmp_path / "7.ndjson"
    write_corpus(source, 20_000, random=Random(5))
    command = [sys.executable, "-m", "vinaya_bridge", "convert", str(source), "-o", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "out" / "runs").is_dir() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "goes on" in err
    assert run("convert", source, "-o", tmp_path / "out").returncode == 0
    assert run("verify", tmp_path / "out", "--against", source).returncode == 0


def test_a_closed_pipe_ends_quietly(torn: Path) -> None:
    command = f"{sys.executable} -m vinaya_bridge check --json {torn} | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_a_full_disk_under_standard_output_is_told_as_every_other_fault(torn: Path, tmp_path: Path) -> None:
    run("convert", torn, "-o", tmp_path / "out")
    for words in (["check", torn], ["check", "--json", torn], ["verify", tmp_path / "out"], ["usage", torn]):
        command = [sys.executable, "-m", "vinaya_bridge", *map(str, words)]
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 3, words
        said = done.stderr.splitlines()
        assert said[0] == "VB402 standard output: cannot be written: No space left on device"
        assert said[1:] == [
            "  try: make room, then run the same command again",
            "  more: vinaya-bridge explain VB402",
        ]


def test_a_fault_of_our_own_is_one_line_that_asks_for_a_report(tmp_path: Path) -> None:
    program = (
        "import sys; from vinaya_bridge import cli; "
        "cli.COMMANDS['convert'] = ('vinaya_bridge.nonesuch', ''); sys.argv = ['x', 'convert']; cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.startswith("VB900 ")
    assert "Traceback" not in done.stderr
