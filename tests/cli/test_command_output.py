"""What commands print for programs cannot act on a terminal, and says the same."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.commands import run
from vinaya_bridge.terminal import escape_in_json

ACTING = "\x7f\x85\x9b\x9f\u061c\u200e\u200f\u202a\u202e\u2066\u2069"


def acts(text: str) -> bool:
    return any(char in ACTING for char in text)


@pytest.fixture
def hostile(repository: Path, tmp_path: Path) -> Path:
    """A log whose names and texts could act on a terminal."""
    (log,) = (repository / "fixtures" / "cancelled-loop" / "in").rglob("90.ndjson")
    folder = tmp_path / "in"
    folder.mkdir()
    text = (
        log.read_text("utf-8").replace('"role":"', f'"role":"{ACTING}').replace("loop-90-", f"loop{ACTING}-")
    )
    (folder / f"9{ACTING[1:]}.ndjson").write_text(text + "{}\n", "utf-8")
    return folder


@given(st.dictionaries(st.text(), st.text() | st.text(alphabet=ACTING)))
def test_escaped_json_has_the_same_values_and_nothing_that_acts(document: dict[str, str]) -> None:
    text = orjson.dumps(document).decode()
    assert orjson.loads(escape_in_json(text)) == document
    assert not acts(escape_in_json(text))


def test_no_json_for_programs_acts_on_a_terminal(hostile: Path, tmp_path: Path) -> None:
    out, live, changed = tmp_path / "out", tmp_path / "live", tmp_path / f"c{ACTING}.ndjson"
    changed.write_text("[]\n")
    for words in (
        ["convert", str(hostile), "-o", str(out), "--origin", "full", "--json"],
        ["tail", str(hostile), "-o", str(live), "--once", "--json"],
        ["tail", "--status", str(live), "--json"],
        ["report", str(out), "--json"],
        ["usage", str(hostile), "--json"],
        ["status", str(hostile), "--json"],
        ["replay", str(out), "--json"],
        ["restore", str(out), "-o", str(tmp_path / "logs"), "--json"],
        ["check", str(hostile), "--json"],
        ["verify", str(out), "--against", str(hostile), str(changed), "--json"],
    ):
        done = run(*words)
        assert done.stdout, words
        assert not acts(done.stdout), words
        assert not acts(done.stderr), words


def test_events_on_standard_output_are_escaped_for_a_terminal_only(hostile: Path, tmp_path: Path) -> None:
    def words(out: str) -> list[str]:
        options = ["--sink", "-", "--once", "--quiet"]
        return [
            sys.executable,
            "-m",
            "vinaya_bridge",
            "tail",
            str(hostile),
            "-o",
            str(tmp_path / out),
            *options,
        ]

    piped = subprocess.run(words("piped"), stdout=subprocess.PIPE, check=True).stdout.decode()
    ours, theirs = pty.openpty()
    with subprocess.Popen(words("shown"), stdout=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while block := os.read(ours, 65_536):
                shown += block
        except OSError:
            pass  # how a terminal ends
    os.close(ours)
    assert process.returncode == 0
    assert acts(piped)
    assert not acts(shown.decode())
    payloads = [orjson.loads(line)["payload"] for line in piped.split("\n")[:-1]]
    assert [orjson.loads(line)["payload"] for line in shown.split(b"\r\n")[:-1]] == payloads
