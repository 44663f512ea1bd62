"""A line that is too long is pending: counted, named, not copied, and read by a call with a greater limit."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from attrs import evolve

from tests.convert.outputs import content
from tests.support.commands import run
from tests.support.samples import sample
from tests.support.strategies import dump
from vinaya_bridge import collecting
from vinaya_bridge import convert as converting
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.files import TOO_LONG
from vinaya_bridge.inputs import Intake
from vinaya_bridge.kept import kept_rows
from vinaya_bridge.log import Reader
from vinaya_bridge.verify import verify

LIMIT = 2_000
NOW = "2031-02-03T04:05:06.789Z"
LIMITED = ConvertOptions(clock=lambda: NOW, jobs=1, max_line_bytes=LIMIT)
LINES = [dump(sample("dev_review_loop", "driver_heartbeat", seq=seq)) for seq in range(1, 5)]
MARK = b"MARK" * 1_000
HOLE_BYTES = 1 << 30
MOST_KIB = 150 << 10
CONVERT = """
from vinaya_bridge.convert import ConvertOptions, convert
lines = convert(["in"], "out", ConvertOptions(jobs=1, max_line_bytes=1 << 20)).lines
"""
TAIL = """
from vinaya_bridge.tail import Tail
with Tail(["in"], "out") as tail:
    while tail.poll().more:
        pass
    lines = tail.status().lines
"""
PEAK = """
import json
status = open("/proc/self/status").read()
print(json.dumps([lines["converted"], lines["pending"], int(status.split("VmHWM:")[1].split()[0])]))
"""


def folder(tmp_path: Path, text: bytes, name: str = "7.ndjson") -> Path:
    root = tmp_path / "in"
    root.mkdir(exist_ok=True)
    (root / name).write_bytes(text)
    return root


@pytest.mark.parametrize("origin", ["ids", "full"])
@pytest.mark.parametrize(
    ("pack", "name"), [(bytes, "7.ndjson"), (gzip.compress, "7.ndjson.gz")], ids=["plain", "gzip"]
)
def test_a_long_line_is_pending_and_named_wherever_it_stands(
    tmp_path: Path, origin: Any, pack: Callable[[bytes], bytes], name: str
) -> None:
    text = b"\n".join((MARK, LINES[0], MARK, LINES[1], MARK))
    log = folder(tmp_path, pack(text), name)
    report = convert([log], tmp_path / "out", evolve(LIMITED, origin=origin))
    assert {term: count for term, count in report.lines.items() if count} == {
        "read": 5,
        "converted": 2,
        "pending": 3,
    }
    assert report.data["pending_lines"] == [[name, 1], [name, 3], [name, 5]]
    message = "has 4,000 bytes, more than the 2,000 of --max-line-bytes, and was not read"
    assert report.data["notices"] == [
        {"name": f"{name}:{line}", "code": TOO_LONG.id, "message": message} for line in (1, 3, 5)
    ]
    assert report.exit_code(strict=False) == 1
    assert not any(b"MARK" in each for each in content(tmp_path / "out").values())
    assert list(kept_rows(tmp_path / "out" / "kept")) == []
    verification = verify(tmp_path / "out", [log])
    assert verification.proven, verification.findings
    assert verification.lines == {"read": 5, "converted": 2, "pending": 3}


def test_a_greater_limit_adds_what_was_pending_and_repeats_nothing(tmp_path: Path) -> None:
    log = folder(tmp_path, b"\n".join((LINES[0], LINES[1] + b" " * LIMIT, LINES[2], b"")))
    assert convert([log], tmp_path / "out", LIMITED).lines["pending"] == 1
    report = convert([log], tmp_path / "out", evolve(LIMITED, max_line_bytes=2 * LIMIT))
    assert (report.lines["converted"], report.lines["duplicate"], report.lines["pending"]) == (1, 2, 0)
    assert report.exit_code(strict=True) == 0
    assert verify(tmp_path / "out", [log]).proven
    too_little = verify(tmp_path / "out", [log], max_line_bytes=LIMIT)
    assert too_little.lines == {"read": 3, "converted": 2, "pending": 1}
    assert not too_little.proven


def test_several_processes_name_the_same_lines_in_the_same_order(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converting, "WORTH_IT_BYTES", 1)
    monkeypatch.setattr(collecting, "extent_bytes_for", lambda _total_bytes, _jobs: 50_000)
    options = evolve(LIMITED, max_line_bytes=1_000)
    one = convert([log], tmp_path / "one", options)
    convert([log], tmp_path / "two", evolve(options, jobs=2))
    notices = one.data["notices"]
    assert isinstance(notices, list)
    assert len(notices) > 20
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert verify(tmp_path / "two", [log]).findings == []


def test_questions_count_a_long_line_as_not_finished_and_name_it(tmp_path: Path) -> None:
    log = folder(tmp_path, b"\n".join((LINES[0], MARK, LINES[1], b"")))
    intake = Intake([log], Reader(), max_line_bytes=LIMIT)
    assert len(list(intake)) == 2
    assert (intake.pending, intake.exit_code) == (1, 1)
    assert [(notice.name, notice.code) for notice in intake.notices] == [("7.ndjson:2", TOO_LONG)]


@pytest.mark.parametrize("command", ["convert", "check", "usage", "status"])
def test_every_command_that_reads_logs_takes_the_limit_and_names_the_line(
    tmp_path: Path, command: str
) -> None:
    log = folder(tmp_path, b"\n".join((LINES[0], MARK, LINES[1], b"")))
    words: list[str | Path] = [command, log]
    if command == "convert":
        words += ["-o", tmp_path / "out"]
    done = run(*words, "--max-line-bytes", "2000")
    assert done.returncode == 1
    assert done.stderr.count("VB310 7.ndjson:2: has 4,000 bytes") == 1
    assert run(*words, "--max-line-bytes", "0").returncode == 2


def test_tail_takes_the_limit_and_names_the_line_as_a_gap(tmp_path: Path) -> None:
    log = folder(tmp_path, b"\n".join((LINES[0], MARK, LINES[1], b"")))
    done = run("tail", log, "-o", tmp_path / "out", "--once", "--max-line-bytes", "2000")
    assert done.returncode == 0
    assert f"VB310 7.ndjson, byte {len(LINES[0]) + 1:,}: the line that starts here has 4,000" in done.stderr
    assert run("verify", tmp_path / "out", "--against", log).returncode == 0
    assert run("verify", tmp_path / "out", "--against", log, "--max-line-bytes", "9000").returncode == 1


def test_check_gives_a_long_line_its_row_in_order(tmp_path: Path) -> None:
    log = folder(tmp_path, b"\n".join((LINES[0], MARK, LINES[1], b"")))
    done = run("check", log, "--json", "--max-line-bytes", "2000")
    rows = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert [(row["line"], row["status"], row["code"]) for row in rows] == [
        (1, "event", None),
        (2, "pending", TOO_LONG.id),
        (3, "event", None),
    ]
    assert rows[1]["offset"] == len(LINES[0]) + 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("act", [CONVERT, TAIL], ids=["convert", "tail"])
def test_a_hole_of_a_gigabyte_takes_no_memory(tmp_path: Path, act: str) -> None:
    path = folder(tmp_path, LINES[0] + b"\n") / "7.ndjson"
    with path.open("ab") as stream:
        stream.truncate(stream.tell() + HOLE_BYTES)
        stream.seek(0, 2)
        stream.write(b"\n" + LINES[1] + b"\n")
    done = subprocess.run(
        [sys.executable, "-c", act + PEAK], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    converted, pending, peak_kib = json.loads(done.stdout)
    assert (converted, pending) == (2, 1)
    assert peak_kib < MOST_KIB
