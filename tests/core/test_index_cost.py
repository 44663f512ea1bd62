"""What is asked of an output costs what its own runs cost, not what all runs do: counted in SQLite's own steps."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ethogram import CanonicalDraft, SqliteSink
from ethogram.rundir import RunDirectory
from ethogram.sink import BulkSink
from vinaya_bridge.index import LogIndex, OneLog, OutputIndex
from vinaya_bridge.index_tables import TableIndex
from vinaya_bridge.sinks.database import DatabaseIndex

Index = DatabaseIndex | LogIndex
ASKED = "loop-7"


def noon() -> str:
    return "2026-08-02T12:00:00.000Z"


def payload(identity: str) -> bytes:
    return b'{"vinaya":{"digest":"00","eventId":"%b","part":0}}' % identity.encode()


def fill(sink: BulkSink, runs: int) -> None:
    for number in range(runs):
        for part, name in enumerate(("run.started", "agent.started", "vinaya.beat")):
            draft = CanonicalDraft(name, payload(f"{number}-{part}"), "2026-08-02T06:00:00.000Z")
            if (f"loop-{number}", name) != (ASKED, "agent.started"):
                sink.append_canonical(f"loop-{number}", [draft])


def steps(index: Index, ask: Callable[[], object]) -> int:
    """How many instructions of SQLite's machine a question takes, to the nearest ten."""
    database: sqlite3.Connection = index._database
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 10
        return 0

    database.set_progress_handler(count, 10)
    ask()
    database.set_progress_handler(None, 0)
    return counted


def opened(kind: str, folder: Path, runs: int) -> Index:
    folder.mkdir()
    if kind == "sqlite":
        with SqliteSink(folder / "events", clock=noon, identity_path="$.vinaya.eventId") as sink:
            fill(sink, runs)
        return DatabaseIndex(folder / "events")
    with RunDirectory(folder / "runs", clock=noon, durability="batch") as sink:
        fill(sink, runs)
    index = OutputIndex(folder / "index", folder / "runs")
    index.refresh()
    return index


@pytest.mark.parametrize("kind", ["sqlite", "runs"])
def test_a_question_about_one_run_costs_no_more_where_there_are_many(kind: str, tmp_path: Path) -> None:
    took = {}
    for runs in (20, 600):
        index = opened(kind, tmp_path / f"{kind}-{runs}", runs)
        assert not index.facts(ASKED)[ASKED].agent_started
        assert index.known(["7-2"])["7-2"].parts == {0: ASKED}
        took[runs] = (
            steps(index, lambda index=index: index.facts(ASKED)),  # type: ignore[misc]
            steps(index, lambda index=index: index.known(["7-2"])),  # type: ignore[misc]
            steps(index, lambda index=index: index.told([("malformed", "00")])),  # type: ignore[misc]
        )
        index.close()
    assert all(many <= 2 * few + 20 for few, many in zip(took[20], took[600], strict=True)), took


def test_reading_a_log_anew_costs_what_is_in_it_once(tmp_path: Path) -> None:
    took = {}
    for runs in (50, 400):
        with RunDirectory(tmp_path / f"{runs}", clock=noon, durability="batch") as sink:
            fill(sink, runs)
        log = tmp_path / f"{runs}.jsonl"
        logs = sorted((tmp_path / f"{runs}").glob("*/events.jsonl"))
        log.write_bytes(b"".join(path.read_bytes() for path in logs))
        index: TableIndex = LogIndex(tmp_path / f"index-{runs}", OneLog(log))
        assert isinstance(index, LogIndex)
        index.refresh()
        held = index.lines()
        log.write_bytes(log.read_bytes()[:-1] + b" \n")
        took[runs] = steps(index, index.refresh)
        assert index.lines() == held == 3 * runs - 1
        index.close()
    assert took[400] < 12 * took[50], took
