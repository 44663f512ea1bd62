"""The public list of cases, over every sink of the package."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from pathlib import Path

import pytest

from ethogram.journal import JournaledRuns
from ethogram.jsonl import JournaledLines
from ethogram.memory import MemorySink
from ethogram.rundir import RunDirectory
from ethogram.sqlite import SqliteSink
from ethogram.testing import (
    BULK_CASES,
    CHECKPOINT_CASES,
    SINK_CASES,
    BulkCase,
    BulkSinkAndSource,
    CheckpointCase,
    CheckpointedSinkAndSource,
    SinkCase,
)

Openers = dict[str, Callable[[], AbstractContextManager[BulkSinkAndSource]]]
CheckpointedOpeners = dict[str, Callable[[], AbstractContextManager[CheckpointedSinkAndSource]]]

SINKS = ("memory", "rundir", "rundir_batch", "journal", "sqlite", "jsonl")


def clock() -> Callable[[], str]:
    ticks = count(1)
    return lambda: f"tick-{next(ticks)}"


def openers(folder: Path) -> Openers:
    now = clock()
    memory = MemorySink(clock=now)
    return {
        "memory": lambda: nullcontext(memory),
        "rundir": lambda: RunDirectory(folder / "runs", clock=now),
        "rundir_batch": lambda: RunDirectory(
            folder / "runs", clock=now, durability="batch", remembered_runs=2, repair_torn_tail=True
        ),
        "journal": lambda: JournaledRuns(folder / "runs", folder / "state", clock=now, remembered_runs=2),
        "sqlite": lambda: SqliteSink(folder / "events.db", clock=now, identity_path="$.n"),
        "jsonl": lambda: JournaledLines(folder / "events.jsonl", folder / "state", clock=now),
    }


def checkpointed_openers(folder: Path) -> CheckpointedOpeners:
    now = clock()
    return {
        "journal": lambda: JournaledRuns(folder / "runs", folder / "state", clock=now),
        "sqlite": lambda: SqliteSink(folder / "events.db", clock=now),
        "jsonl": lambda: JournaledLines(folder / "events.jsonl", folder / "state", clock=now),
    }


@pytest.mark.parametrize("name", SINKS)
@pytest.mark.parametrize("case", SINK_CASES, ids=str)
def test_each_sink_does_what_every_sink_must(case: SinkCase, name: str, tmp_path: Path) -> None:
    case.check(openers(tmp_path)[name])


@pytest.mark.parametrize("name", SINKS)
@pytest.mark.parametrize("case", BULK_CASES, ids=str)
def test_each_sink_takes_batches(case: BulkCase, name: str, tmp_path: Path) -> None:
    case.check(openers(tmp_path)[name])


@pytest.mark.parametrize("name", ["journal", "sqlite", "jsonl"])
@pytest.mark.parametrize("case", CHECKPOINT_CASES, ids=str)
def test_each_checkpointed_sink_keeps_a_position(case: CheckpointCase, name: str, tmp_path: Path) -> None:
    case.check(checkpointed_openers(tmp_path)[name])
