"""`check` says of every line what it is, and of a refused one where and why, without a value of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.log.log_lines import line_of
from tests.support.strategies import dump
from vinaya_bridge.check import check_lines
from vinaya_bridge.cli.check import check
from vinaya_bridge.lines import PhysicalLine
from vinaya_bridge.log import Reader

GOOD = dump(line_of("gate", "summary"))
BAD = dump(line_of("gate", "summary", ran="hunter2"))
UNKNOWN = b'{"meta":{"schema":1e400,"event_id":"e"}}'


def physical(number: int, offset: int, raw: bytes) -> PhysicalLine:
    return PhysicalLine(number, offset, raw, ended=True, record=raw)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "7.ndjson"
    file.write_bytes(b"\n".join([GOOD, BAD, b"", UNKNOWN, b"\0\0" + GOOD, BAD]) + b"\n")
    return file


def test_every_line_has_a_row_and_every_piece_of_one(reader: Reader) -> None:
    lines = [
        physical(1, 0, GOOD),
        physical(2, 900, b"\0\0" + GOOD),
        physical(3, 1900, b" "),
        physical(4, 1902, UNKNOWN),
    ]
    rows = list(check_lines(reader, "f", lines))
    assert [(row.line, row.offset, row.status) for row in rows] == [
        (1, 0, "event"),
        (2, 900, "refused"),
        (2, 902, "event"),
        (3, 1900, "blank"),
        (4, 1902, "unknown_version"),
    ]
    assert rows[4].schema == "Infinity"


def test_a_row_of_a_refused_line_has_code_path_and_reason(reader: Reader) -> None:
    (row,) = check_lines(reader, "f", [physical(3, 5, BAD)])
    assert row.to_json() == {
        "file": "f",
        "line": 3,
        "offset": 5,
        "status": "refused",
        "identity": "x",
        "schema": 3,
        "kind": "gate",
        "event": "summary",
        "code": "VB107",
        "path": "$.ran",
        "reason": "expected an integer, found a string",
    }


def test_the_command_prints_only_what_is_wrong_and_a_summary(log: Path) -> None:
    result = CliRunner().invoke(check, [str(log)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "7.ndjson:2: VB107 $.ran: expected an integer, found a string (gate summary)",
        "  a value of the wrong type; try: vinaya-bridge explain VB107",
        "7.ndjson:4: unknown version: kept byte for byte, not interpreted",
        "7.ndjson:5: VB115 $: the rest of this record was never written",
        "  a torn fragment; try: vinaya-bridge explain VB115",
        "7.ndjson:6: VB107 $.ran: expected an integer, found a string (gate summary)",
        "7 read = 2 event + 1 unknown version + 3 refused + 1 blank, in 1 file",
        f"for programs: vinaya-bridge check --json {log}",
    ]
    assert "hunter2" not in result.output


def test_the_command_prints_one_object_a_line_for_programs(log: Path) -> None:
    result = CliRunner().invoke(check, ["--json", str(log)])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["status"] for row in rows] == [
        "event",
        "refused",
        "blank",
        "unknown_version",
        "refused",
        "event",
        "refused",
    ]


def test_strict_and_a_file_without_a_valid_line_exit_with_1(log: Path, tmp_path: Path) -> None:
    assert CliRunner().invoke(check, ["--strict", str(log)]).exit_code == 1
    nothing = tmp_path / "8.ndjson"
    nothing.write_bytes(BAD + b"\n")
    assert CliRunner().invoke(check, [str(nothing)]).exit_code == 1
    nothing.write_bytes(b"\n")
    assert CliRunner().invoke(check, [str(nothing)]).exit_code == 0


def test_an_input_that_does_not_exist_is_named_and_exits_with_1(tmp_path: Path) -> None:
    result = CliRunner().invoke(check, [str(tmp_path / "gone.ndjson")])
    assert result.exit_code == 1
    assert "VB301" in result.stderr


def test_no_control_character_of_a_name_reaches_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "a\x1b[31m.ndjson"
    file.write_bytes(BAD + b"\n")
    result = CliRunner().invoke(check, [str(file)], color=True)
    assert "a\\u001b[31m.ndjson:1: VB107" in result.stdout
    assert "\x1b" not in result.output


def test_an_unfinished_end_of_a_file_is_neither_wrong_nor_an_event(log: Path) -> None:
    log.write_bytes(GOOD + b"\n" + GOOD[:40])
    result = CliRunner().invoke(check, ["--strict", str(log)])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "7.ndjson:2: pending: the unfinished end of the file, which may become a record",
        "2 read = 1 event + 1 pending, in 1 file",
    ]
