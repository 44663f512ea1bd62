"""What an output says of itself, for a person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.logs import write_files
from tests.support.samples import sample
from tests.support.strategies import Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.log.codes import CONFLICT, NOT_JSON, UNKNOWN_VERSION
from vinaya_bridge.overview import Conflict, overview
from vinaya_bridge.tail import Tail

FIXED = ConvertOptions(clock=lambda: "2031-02-03T04:05:06.789Z")


def report(out: Path, *options: str) -> str:
    command = [sys.executable, "-m", "vinaya_bridge", "report", os.fspath(out), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def text_of(*lines: Line | bytes) -> bytes:
    return b"".join((line if isinstance(line, bytes) else dump(line)) + b"\n" for line in lines)


@pytest.fixture(name="out")
def converted(tmp_path: Path) -> Path:
    """An output with a gap, a conflict, kept lines of three kinds and lines of low trust."""
    lines: list[Line | bytes] = [
        sample("gate", "summary", seq=0),
        sample("gate", "summary", seq=0, meta={"doctrine": "other"}, ts="2026-05-04T11:00:00.000Z"),
        sample("gate", "summary", seq=4),
        sample("forge_write", "written", seq=5),
        sample("gate", "summary", seq=6, meta={"vinaya": "0.24.1"}),
        b'{"meta":{"schema":9}}',
        b"{}",
        b"no json",
        b"no json either",
    ]
    source = write_files(tmp_path / "in", {"a/7.ndjson": text_of(*lines)})
    convert([source], tmp_path / "out", FIXED)
    return tmp_path / "out"


def test_kept_lines_are_told_by_code_with_its_meaning_and_the_first_place(out: Path) -> None:
    rows = [line.split() for line in report(out).splitlines()]
    refused = {row[2]: (row[0], " ".join(row[3:-1]), row[-1]) for row in rows if row[1:2] == ["refused"]}
    assert refused["VB101"] == ("2", NOT_JSON.title, "a/7.ndjson:8")
    assert ["1", "unknown", "version", "VB119", *UNKNOWN_VERSION.title.split(), "a/7.ndjson:6"] in rows
    assert ["1", "conflict", "VB117", *CONFLICT.title.split(), "a/7.ndjson:2"] in rows


def test_gaps_are_told_per_process(out: Path) -> None:
    assert "gaps        proc-a lacks 1-3\n" in report(out)


def test_conflicts_are_told_with_both_places(out: Path) -> None:
    assert "conflicts   a/7.ndjson:2 is kept; a/7.ndjson:1 stays\n" in report(out)


def test_versions_trust_and_what_is_left_out_are_told(out: Path) -> None:
    text = report(out)
    assert "schemas     5 schema 3\n" in text
    assert "CLI         4 0.41.2, 1 0.24.1\n" in text
    assert "1 low" in text
    assert "unmapped    1 forge_write.written\n" in text


def test_json_is_the_report_as_it_stands(out: Path) -> None:
    assert report(out, "--json").encode() == (out / "report.json").read_bytes()


def test_the_conflict_of_an_earlier_call_is_still_told(out: Path, tmp_path: Path) -> None:
    convert(
        [write_files(tmp_path / "more", {"b.ndjson": text_of(sample("gate", "summary", seq=9))})], out, FIXED
    )
    assert overview(out).conflicts == [Conflict(("a/7.ndjson", 2), None)]
    assert "a/7.ndjson:2 is kept; the other one is of an earlier call" in report(out)


def test_a_tail_that_waits_says_how_many_lines_do(tmp_path: Path) -> None:
    lines = [sample("gate", "summary", seq=0), sample("gate", "summary", seq=5)]
    source = write_files(tmp_path / "in", {"7.ndjson": text_of(lines[0])})
    with Tail([source], tmp_path / "out", now=lambda: 1_900_000_000.0) as tail:
        tail.poll()
        with (source / "7.ndjson").open("ab") as stream:
            stream.write(text_of(lines[1]))
        tail.poll()
    assert "waiting     1 lines" in report(tmp_path / "out")


def test_nothing_of_a_log_acts_on_the_terminal(tmp_path: Path) -> None:
    line = sample("gate", "summary", process="\x1b[31mred\n", meta={"vinaya": "\x1b]0;x\x07" + "v" * 500})
    other = sample("gate", "summary", seq=5, process="\x1b[31mred\n")
    source = write_files(tmp_path / "in", {"7.ndjson": text_of(line, other)})
    convert([source], tmp_path / "out", FIXED)
    text = report(tmp_path / "out")
    assert "lacks 1-4" in text
    assert all(character.isprintable() or character == "\n" for character in text)
    assert max(map(len, text.splitlines())) < 200


def test_a_folder_without_a_report_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        overview(tmp_path)
    assert "name an output directory" in raised.value.remedy
