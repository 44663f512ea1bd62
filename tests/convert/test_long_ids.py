"""Ids come from logs: whatever they are, they neither leave the output nor break an event of it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.verify import verify

FIXED = ConvertOptions(clock=lambda: "2031-02-03T04:05:06.789Z")


def with_meta(line: Line, **changes: Json) -> Line:
    meta = line["meta"]
    assert isinstance(meta, dict)
    return {**line, "meta": {**meta, **changes}}


def in_run(run: str, kind: str = "gate", event: str = "summary", effect_id: str | None = None) -> Line:
    line = sample(kind, event) if effect_id is None else sample(kind, event, effect_id=effect_id)
    return with_meta(line, lineage={"run": run, "attempt": None, "parent": None})


def convert_lines(folder: Path, *lines: Line) -> tuple[dict[str, int], set[str]]:
    """Convert, prove, and return the equation with the ids of the runs."""
    source = folder / "in" / "7.ndjson"
    source.parent.mkdir()
    numbered = (with_meta(line, seq=number, event_id=f"ev-{number}") for number, line in enumerate(lines))
    source.write_bytes(b"".join(dump(line) + b"\n" for line in numbered))
    report = convert([source], folder / "out", FIXED)
    assert verify(folder / "out", [source]).findings == []
    logs = list((folder / "out" / "runs").rglob("events.jsonl"))
    assert all(path.parent.parent == folder / "out" / "runs" for path in logs)
    assert {path.relative_to(folder / "out").parts[0] for path in (folder / "out").rglob("*")} <= {
        "runs",
        "kept",
        "state",
        "report.json",
    }
    return report.lines, {orjson.loads(path.read_bytes().splitlines()[0])["runId"] for path in logs}


@pytest.mark.parametrize(
    "run", ["..", ".", "/etc/passwd", "a\0b", "%", "~2", "x" * 10_000, "é" * 300, "../../up"]
)
def test_an_odd_run_id_stays_inside_the_output_and_is_a_run_of_its_own(run: str, tmp_path: Path) -> None:
    lines, runs = convert_lines(tmp_path, in_run(run), in_run(run + "2"), in_run("other"))
    assert lines["converted"] == 3
    assert len(runs) == 3


def test_a_main_run_called_like_the_bridges_own_is_told_apart(tmp_path: Path) -> None:
    _, runs = convert_lines(tmp_path, in_run("vinaya-bridge"))
    assert runs == {"%76inaya-bridge"}


def test_a_line_whose_run_no_event_could_name_is_refused_before_anything_is_appended(tmp_path: Path) -> None:
    long = "x" * 20_000
    lines, runs = convert_lines(
        tmp_path,
        in_run(long, "dispatch", "dispatched"),
        in_run("short", "dispatch", "dispatched", effect_id="y" * 16_380),
        in_run("short"),
    )
    assert (lines["refused"], lines["converted"]) == (2, 1)
    assert runs == {"short", "vinaya-bridge"}


def test_a_name_too_long_for_an_implied_start_is_left_out_of_it_never_cut(tmp_path: Path) -> None:
    line = with_meta(in_run("run"), actor_id="a" * 17_000, repo="r" * 17_000)
    lines, _ = convert_lines(tmp_path, line)
    assert lines["converted"] == 1
    (log,) = (tmp_path / "out" / "runs").rglob("events.jsonl")
    started = orjson.loads(log.read_bytes().splitlines()[0])
    subject = line["subject"]
    assert isinstance(subject, dict)
    assert started["payload"]["actor"] == subject["role"]
    assert "repository" not in started["payload"]
