"""What a person meets in the first minutes: the README's commands, and inputs that are not what was meant."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.samples import sample
from tests.support.strategies import dump
from vinaya_bridge import Tail


def test_the_readme_says_how_its_commands_come_on_the_path(repository: Path) -> None:
    text = (repository / "README.md").read_text("utf-8")
    section = text.partition("## Two commands\n")[2].partition("\n## ")[0]
    assert "\n    . .venv/bin/activate\n" in section
    assert "`pip install .`" in section


def test_git_ignores_what_the_commands_of_the_readme_write(repository: Path) -> None:
    text = (repository / "README.md").read_text("utf-8")
    written = set(re.findall(r"^\$ vinaya-bridge .* -o (\S+)", text, re.MULTILINE))
    ignored = (repository / ".gitignore").read_text("utf-8").splitlines()
    assert written
    assert {f"/{name}/" for name in written} <= set(ignored)


def output_of(command: str, folder: Path) -> list[str]:
    return ["-o", str(folder / "out")] if command == "convert" else []


FOUND_NOTHING = "names that end in .ndjson, .ndjson.gz or .ndjson.zst are read"


@pytest.mark.parametrize("command", ["convert", "usage", "status"])
def test_a_directory_without_logs_is_said_to_have_none(command: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    words = [command, str(source), *output_of(command, tmp_path)]
    done = run(*words)
    assert done.returncode == 0
    assert done.stderr == f"no log files found in {source}: {FOUND_NOTHING}\n"
    assert "next" not in done.stdout
    (source / "notes.txt").touch()
    (source / "7.log").touch()
    assert run(*words).stderr.splitlines()[1:] == ["  2 files of other names passed over"]


@pytest.mark.parametrize("command", ["convert", "usage", "status"])
def test_an_input_that_is_missing_is_named_with_a_remedy(command: str, tmp_path: Path) -> None:
    done = run(command, tmp_path / "nope", *output_of(command, tmp_path))
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first == f"VB301 {tmp_path / 'nope'}: does not exist"
    assert second.startswith("  try: check the spelling")


def test_what_an_output_keeps_is_not_read_as_a_log(repository: Path, tmp_path: Path) -> None:
    out = tmp_path / "logs" / "out"
    shutil.copytree(repository / "fixtures" / "torn-file" / "in", tmp_path / "logs" / "in")
    run("convert", tmp_path / "logs" / "in", "-o", out)
    done = run("convert", tmp_path / "logs", "-o", tmp_path / "again")
    assert done.returncode == 0
    assert done.stdout.startswith("13 read = ")
    assert done.stderr.startswith("VB309 out/kept: ")
    assert "try: ethogram runs OUT/runs" in done.stderr
    assert run("usage", out).stderr.startswith("VB309 kept: ")
    with Tail([tmp_path / "logs"], tmp_path / "live") as tail:
        first = tail.poll()
        assert [notice.code.id for notice in first.notices] == ["VB309"]
        assert {Path(file).name for file, _, _ in first.refused} == {"31.ndjson"}
        assert tail.poll().notices == []


def test_a_kept_file_that_is_named_is_read(repository: Path, tmp_path: Path) -> None:
    run("convert", repository / "fixtures" / "torn-file" / "in", "-o", tmp_path / "out")
    assert run("check", tmp_path / "out" / "kept" / "refused.ndjson").stdout.endswith("refused.ndjson\n")


def test_standard_input_is_not_named_as_something_to_verify_against(repository: Path, tmp_path: Path) -> None:
    (log,) = (repository / "fixtures" / "torn-file" / "in").rglob("31.ndjson")
    done = run("convert", "-", "-o", tmp_path / "out", stdin=log.read_bytes())
    assert done.stdout.endswith(f"next        vinaya-bridge verify {tmp_path / 'out'}\n")


def test_every_command_reads_standard_input_or_says_what_to_do(repository: Path, tmp_path: Path) -> None:
    (log,) = (repository / "fixtures" / "torn-file" / "in").rglob("31.ndjson")
    for command in ("usage", "status", "check"):
        read, file = run(command, "-", stdin=log.read_bytes()), run(command, log)
        assert (read.returncode, len(read.stdout.splitlines())) == (0, len(file.stdout.splitlines()))
    followed = run("tail", "-", "-o", tmp_path / "out", "--once", stdin=log.read_bytes())
    assert followed.returncode == 2
    assert "vinaya-bridge convert -" in followed.stderr


@pytest.mark.parametrize(
    ("typed", "meant"), [("covnert", "convert"), ("tial", "tail"), ("maping", "mapping")]
)
def test_a_mistyped_command_is_answered_with_the_nearest(typed: str, meant: str) -> None:
    done = run(typed, "--help")
    assert done.returncode == 2
    assert f"did you mean {meant}?" in done.stderr


def test_a_command_like_no_other_is_refused_without_a_guess() -> None:
    done = run("xyzzy")
    assert done.returncode == 2
    assert "mean" not in done.stderr


def test_lint_of_an_overlay_says_how_an_overlay_is_checked(repository: Path, tmp_path: Path) -> None:
    core = (repository / "mappings" / "core.toml").read_text("utf-8")
    rule = re.search(
        r"^\[rule\.gate\.checked\]\n.*?(?=^\[rule\.gate\.summary)", core, re.MULTILINE | re.DOTALL
    )
    assert rule is not None
    overlay = tmp_path / "overlay.toml"
    overlay.write_text("format = 1\n" + rule[0], "utf-8")
    done = run("mapping", "lint", overlay)
    assert done.returncode == 2
    command = f"vinaya-bridge mapping lint core --mapping-overlay {overlay}"
    assert done.stderr.endswith(f"  try: {command}\n")
    assert run(*command.split()[1:]).returncode == 0
    assert "try:" not in run("mapping", "lint").stderr


def test_what_was_rotated_away_is_said_to_be_a_reason_for_events_without_lines(
    repository: Path, tmp_path: Path
) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    shutil.copytree(repository / "fixtures" / "cancelled-loop" / "in", logs)
    run("tail", logs, "-o", out, "--once")
    next(logs.rglob("90.ndjson")).unlink()
    done = run("verify", out, "--against", logs)
    assert done.returncode == 1
    (tried,) = [
        line for line in done.stdout.splitlines() if line.startswith("  are lines of them gone since?")
    ]
    assert run(*tried.partition("try: vinaya-bridge ")[2].split()).returncode == 0


def test_a_folder_that_is_no_output_is_not_said_to_be_a_broken_one(tmp_path: Path) -> None:
    done = run("verify", tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"VB403 {tmp_path}: it is no output")


def test_what_explain_lacks_is_said(repository: Path, tmp_path: Path) -> None:
    (log,) = (repository / "fixtures" / "torn-file" / "in").rglob("31.ndjson")
    assert "of a file, name a line: FILE:LINE" in run("explain", log).stderr
    assert "of an output, name an event too: OUT RUN:SEQ" in run("explain", tmp_path).stderr
    missing = run("explain", f"{tmp_path / 'nowhere'}:1")
    assert missing.returncode == 1
    assert missing.stderr.startswith(f"VB301 {tmp_path / 'nowhere'}: does not exist\n  try: ")


def test_a_comparison_of_mappings_names_logs_that_are_not_there(tmp_path: Path) -> None:
    done = run("mapping", "diff", "core", "core", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "VB301" in done.stderr


def test_another_mapping_is_named_beside_the_one_of_the_output(repository: Path, tmp_path: Path) -> None:
    logs, out = repository / "fixtures" / "cancelled-loop" / "in", tmp_path / "out"
    run("convert", logs, "-o", out)
    done = run("convert", logs, "-o", out, "--mapping", "generic")
    assert done.stderr.startswith(f"VB410 {out}: it was begun with the mapping core, and generic was given\n")


def test_processes_without_an_id_can_be_told_apart_in_a_report(repository: Path, tmp_path: Path) -> None:
    file, out = tmp_path / "7.ndjson", tmp_path / "out"
    lines = [
        sample("gate", "summary", schema=1, seq=seq, run="run-" + "a" * 60, process=machine)
        for machine in ("b" * 64, "c" * 64)
        for seq in (0, 5)
    ]
    file.write_bytes(b"".join(dump(line) + b"\n" for line in lines))
    run("convert", file, "-o", out)
    said = run("report", out).stdout
    assert len({line for line in said.splitlines() if line.endswith("lacks 1-4")}) == 2
    assert all(len(line) <= 100 for line in said.splitlines())
