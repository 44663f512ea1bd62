"""Events as a Parquet file, read back by another program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from ethogram.canonical import serialise_event
from ethogram.cli import cli
from ethogram.envelope import Event

pytest.importorskip("pyarrow", reason="the extra parquet is not installed")

EVENTS = [
    Event(
        "run.started",
        "r",
        1,
        "2026-01-02T03:04:05Z",
        {"kind": "loop", "actor": "a", "harness": "h", "ceilings": {"tokens": 5.0}},
    ),
    Event(
        "agent.completed",
        "r",
        2,
        "noon",
        {"costUsd": 1, "usage": {"inputTokens": 7}},
        "2026-01-02T04:04:05.678901+01:00",
    ),
    Event("songs.sung", "r", 3, "noon", {"kind": 3, "é": [1.5, None]}),
    Event("run.finished", "r", 4, "2026-01-02T03:04:06Z", {"outcome": "completed", "durationMs": 1_000}),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    lines = tmp_path / "events.jsonl"
    lines.write_bytes(b"\n".join([*map(serialise_event, EVENTS), b""]))
    result = CliRunner().invoke(cli, ["export", str(lines), "--parquet", str(tmp_path / "events.parquet")])
    assert (result.exit_code, result.stderr) == (0, f"{tmp_path / 'events.parquet'}: 4 events\n")
    return tmp_path / "events.parquet"


def ask(file: Path, query: str) -> list[tuple[Any, ...]]:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        rows: list[tuple[Any, ...]] = connection.execute(query, [str(file)]).fetchall()
        return rows


def test_duckdb_reads_each_event_as_a_row(file: Path) -> None:
    rows = ask(file, "SELECT run_id, seq, type, ts, captured_at FROM read_parquet(?) ORDER BY seq")
    assert rows == [(each.run_id, each.seq, each.type, each.ts, each.captured_at) for each in EVENTS]


def test_known_fields_have_typed_columns_and_the_payload_has_everything(file: Path) -> None:
    query = (
        "SELECT kind, cost_usd, usage_input_tokens, ceilings_tokens, outcome, duration_ms"
        " FROM read_parquet(?) ORDER BY seq"
    )
    assert ask(file, query) == [
        ("loop", None, None, 5, None, None),
        (None, 1.0, 7, None, None, None),
        (None, None, None, None, None, None),
        (None, None, None, None, "completed", 1_000),
    ]
    payloads = [json.loads(row[0]) for row in ask(file, "SELECT payload FROM read_parquet(?) ORDER BY seq")]
    assert payloads == [json.loads(json.dumps(each.payload)) for each in EVENTS]


def test_times_are_instants_and_unknown_ones_are_null(file: Path) -> None:
    rows = ask(file, "SELECT epoch_us(time) FROM read_parquet(?) ORDER BY seq")
    start = 1_767_323_045_000_000
    assert [row[0] for row in rows] == [start, start + 678_901, None, start + 1_000_000]


def test_the_file_is_for_its_owner_and_there_only_once_it_is_whole(tmp_path: Path, file: Path) -> None:
    assert file.stat().st_mode & 0o777 == 0o600
    before = file.read_bytes()
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(serialise_event(EVENTS[0]) + b"\nnonsense\n")
    assert CliRunner().invoke(cli, ["export", str(broken), "--parquet", str(file)]).exit_code == 1
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "broken.jsonl",
        "events.jsonl",
        "events.parquet",
    ]
    nowhere = tmp_path / "none" / "x.parquet"
    assert CliRunner().invoke(cli, ["export", str(broken), "--parquet", str(nowhere)]).exit_code == 1


def test_no_events_are_a_file_without_rows(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_bytes(b"")
    file = tmp_path / "none.parquet"
    assert (
        CliRunner().invoke(cli, ["export", str(tmp_path / "none.jsonl"), "--parquet", str(file)]).exit_code
        == 0
    )
    assert ask(file, "SELECT count(*) FROM read_parquet(?)") == [(0,)]
