"""What ``check`` reads and says."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.commands import run

MOST_BYTES = 128 * 2**20


@pytest.fixture
def torn(repository: Path) -> Path:
    (file,) = (repository / "fixtures" / "torn-file" / "in").rglob("31.ndjson")
    return file


def test_standard_input_is_checked_like_a_file(torn: Path) -> None:
    named, piped = run("check", torn), run("check", "-", stdin=torn.read_bytes())
    assert piped.returncode == named.returncode == 0
    assert piped.stdout.splitlines()[:-1] == [
        line.replace("31.ndjson:", "stdin:") for line in named.stdout.splitlines()[:-1]
    ]
    assert piped.stdout.splitlines()[-1] == "for programs: vinaya-bridge check --json -"
    rows = [
        orjson.loads(line)
        for line in run("check", "--json", "-", stdin=torn.read_bytes()).stdout.splitlines()
    ]
    assert [row["line"] for row in rows] == [
        orjson.loads(line)["line"] for line in run("check", "--json", torn).stdout.splitlines()
    ]


def test_standard_input_is_not_held_in_memory(tmp_path: Path) -> None:
    program = f"import sys; [sys.stdout.buffer.write(b' ' * 65_535 + b'\\n') for _ in range({MOST_BYTES // 50_000})]"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as source:
        done = subprocess.run(
            [sys.executable, "-m", "vinaya_bridge", "check", "-"],
            stdin=source.stdout,
            capture_output=True,
            check=False,
            env={"TMPDIR": str(tmp_path)},
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES)),
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"2,684 read = 2,684 blank, in 1 file\n"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_that_cannot_be_copied_is_refused_with_a_remedy(tmp_path: Path) -> None:
    program = (
        "import sys, tempfile; from vinaya_bridge import cli; "
        "tempfile.tempdir = sys.argv[1]; sys.argv = ['x', 'check', '-']; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "nowhere")],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"VB308 -: no such file or directory\n  try: let TMPDIR name a folder")


def test_what_is_left_alone_is_named_with_what_to_do_and_is_no_failure(torn: Path, tmp_path: Path) -> None:
    (tmp_path / "7.ndjson").write_bytes(torn.read_bytes())
    (tmp_path / "8.ndjson").symlink_to(torn)
    done = run("check", tmp_path)
    assert done.returncode == 0
    assert done.stderr.startswith("VB302 8.ndjson: is a link, not a regular file\n  try: ")


def test_a_folder_without_logs_is_said_to_have_none(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    done = run("check", tmp_path)
    assert done.returncode == 0
    assert "no log files found" in done.stderr
    assert "1 file of other names passed over" in done.stderr


def test_an_input_that_does_not_exist_is_named_with_what_to_do(tmp_path: Path) -> None:
    done = run("check", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "VB301" in done.stderr
    assert "  try: check the spelling" in done.stderr
