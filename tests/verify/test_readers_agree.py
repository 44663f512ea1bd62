"""`check`, `explain` and `verify` say the same of a line, and `explain` leads back from every event."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.support.commands import run
from tests.support.samples import sample
from tests.support.strategies import dump
from tests.verify.tampering import Case
from vinaya_bridge.cli.check import check
from vinaya_bridge.cli.explain import explain

GOOD = dump(sample("gate", "summary", seq=1))


def said(command: click.Command, *words: str | Path) -> str:
    return CliRunner().invoke(command, [str(word) for word in words]).output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD, ["an event"]),
        (GOOD[:40], ["pending"]),
        (b"no json\n", ["refused: VB101"]),
        (GOOD[:40] + GOOD + b"\n", ["refused: VB115", "an event"]),
        (GOOD + GOOD[:40], ["an event", "pending"]),
    ],
)
def test_explain_says_of_each_piece_what_check_says(tmp_path: Path, text: bytes, words: list[str]) -> None:
    file = tmp_path / "7.ndjson"
    file.write_bytes(text)
    heads = [line for line in said(explain, f"{file}:1").splitlines() if line.startswith("7.ndjson:1  ")]
    assert len(heads) == len(words)
    assert all(word in head for word, head in zip(words, heads, strict=True))
    summary = said(check, file)
    for word, count in (("pending", "1 pending"), ("refused", "1 refused"), ("an event", "1 event")):
        assert (count in summary) == any(word in each for each in words)


def test_check_prints_twenty_lines_of_a_file_that_is_no_log(tmp_path: Path) -> None:
    file = tmp_path / "7.ndjson"
    file.write_bytes(b"no json\n" * 50)
    lines = said(check, file).splitlines()
    assert sum(line.startswith("7.ndjson:") and "VB101" in line for line in lines) == 20
    assert "7.ndjson: and 30 more; --json has all" in lines
    assert len(said(check, file, "--json").splitlines()) == 50


def test_explain_says_which_of_two_events_happened(case: Case) -> None:
    text = said(explain, case.out, "run-a:7", case.log)
    assert "emitted as run-a:7" in text
    assert "not emitted" in text


def test_explain_names_the_runs_that_are_near(case: Case) -> None:
    assert "there is no such run; near: run-a" in run("explain", case.out, "run-b:1").stderr
    assert "there is no such run among the 3 of the output" in run("explain", case.out, "zzzzzz:1").stderr
    assert "the run's events are 1 to 7" in run("explain", case.out, "run-a:99").stderr


def test_explain_leads_from_a_refusal_to_the_kept_line(case: Case) -> None:
    texts = [said(explain, case.out, f"vinaya-bridge:{seq}") for seq in range(1, 6)]
    assert "the bridge's own word" in texts[0]
    for row in case.rows():
        assert (
            sum(f"{row['file']}:{row['line']}, {row['why'].replace('_', ' ')}" in text for text in texts) == 1
        )
    (case.out / "kept" / "index.jsonl").unlink()
    assert "is not kept" in said(explain, case.out, "vinaya-bridge:2")
