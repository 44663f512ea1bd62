"""Runs that one directory takes over from another."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethogram.faults import SinkUnavailable
from ethogram.rundir import RunDirectory
from ethogram.testing import FINISHED, STARTED


def directory(root: Path) -> RunDirectory:
    return RunDirectory(root, clock=lambda: "2031-02-03T04:05:06.789Z", durability="batch")


def write(root: Path, *run_ids: str) -> dict[str, bytes]:
    """Write a whole run for each id; return the bytes of each."""
    with directory(root) as runs:
        for run_id in run_ids:
            runs.append(run_id, STARTED)
            runs.append(run_id, FINISHED)
        return {run_id: runs.path(run_id).read_bytes() for run_id in run_ids}


def test_runs_are_taken_over_whole_and_nothing_is_left(tmp_path: Path) -> None:
    written = write(tmp_path / "made", "a", "a/b", "%")
    with directory(tmp_path / "runs") as runs:
        runs.adopt(tmp_path / "made")
        runs.sync()
        assert {run_id: runs.path(run_id).read_bytes() for run_id in runs.runs()} == written
        assert runs.state("a").finished
    assert list((tmp_path / "made").iterdir()) == []


def test_a_run_that_is_here_already_is_not_replaced(tmp_path: Path) -> None:
    written = write(tmp_path / "runs", "b")
    write(tmp_path / "made", "a", "b")
    with directory(tmp_path / "runs") as runs:
        with pytest.raises(SinkUnavailable):
            runs.adopt(tmp_path / "made")
        assert sorted(runs.runs()) == ["a", "b"]
        assert runs.path("b").read_bytes() == written["b"]
