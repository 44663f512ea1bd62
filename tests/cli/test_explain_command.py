"""The way back from an event to its line, wherever the sink put the event."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

from tests.support.commands import run

SINKS = ("runs", "sqlite", "jsonl")
LOOP = "loop-90-4a2b5957"
DISPATCH = f"{LOOP}/eff-e8627d24"


@pytest.fixture
def logs(repository: Path) -> Path:
    return repository / "fixtures" / "cancelled-loop" / "in"


def tailed(logs: Path, folder: Path, kind: str) -> Path:
    """An output of a tail with a sink of one kind; the sink's file lies beside it."""
    out = folder / f"out-{kind}"
    sink = kind if kind in {"runs", "-"} else f"{kind}:{folder / f'events.{kind}'}"
    assert run("tail", logs, "-o", out, "--sink", sink, "--once", "--quiet").returncode == 0
    return out


def test_an_event_is_explained_alike_from_every_sink(logs: Path, tmp_path: Path) -> None:
    for event in (f"{LOOP}:1", f"{LOOP}:3", f"{DISPATCH}:2"):
        said = [run("explain", tailed(logs, tmp_path, kind), event, logs) for kind in SINKS]
        assert {done.returncode for done in said} == {0}
        assert len({done.stdout for done in said}) == 1
        assert f"event {event.rpartition(':')[2]} of run" in said[0].stdout
        assert f"emitted as {event}\n" in said[0].stdout


def test_an_event_of_the_bridge_leads_to_the_kept_line_from_every_sink(
    repository: Path, tmp_path: Path
) -> None:
    torn = repository / "fixtures" / "torn-file" / "in"
    for kind in SINKS:
        done = run("explain", tailed(torn, tmp_path, kind), "vinaya-bridge:4")
        assert done.returncode == 0, done.stderr
        assert "    kept      acme-lantern/31.ndjson:3, refused: VB115" in done.stdout, kind


@pytest.mark.parametrize("kind", SINKS)
def test_an_event_that_is_not_there_is_named_with_what_is(kind: str, logs: Path, tmp_path: Path) -> None:
    out = tailed(logs, tmp_path, kind)
    done = run("explain", out, f"{LOOP}:99")
    assert done.returncode == 2
    assert done.stderr.startswith(f"VB425 {out}: the run's events are 1 to ")
    assert "\n  try: ethogram show " in done.stderr
    done = run("explain", out, "loop-90:1")
    assert done.stderr.startswith(f"VB425 {out}: there is no such run; near: ")
    done = run("explain", out, "\udcff:1")
    assert done.stderr.startswith(f"VB425 {out}: there is no such run among the 4 of the output")


def test_what_the_message_says_to_try_works(logs: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from ethogram.cli import cli

    for kind in SINKS:
        done = run("explain", tailed(logs, tmp_path, kind), f"{LOOP}:99")
        (tried,) = [line for line in done.stderr.splitlines() if "try: ethogram show" in line]
        shown = CliRunner().invoke(cli, tried.split()[2:])
        assert shown.exit_code == 0, tried
        assert "run.started" in shown.output


def test_events_that_cannot_be_read_again_are_refused_with_a_remedy(logs: Path, tmp_path: Path) -> None:
    done = run("explain", tailed(logs, tmp_path, "-"), f"{LOOP}:1")
    assert done.returncode == 3
    assert done.stderr.startswith("VB424 ")
    assert "  try: " in done.stderr
    for kind in ("sqlite", "jsonl"):
        out = tailed(logs, tmp_path, kind)
        (tmp_path / f"events.{kind}").unlink()
        done = run("explain", out, f"{LOOP}:1")
        assert done.returncode == 3
        assert done.stderr.startswith(
            f"VB424 {tmp_path / f'events.{kind}'}: the file of its sink is not there"
        )


def test_a_line_is_explained_with_the_mapping_of_the_output(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("convert", logs, "-o", out, "--mapping", "generic", "--quiet")
    done = run("explain", out, f"{LOOP}:2", logs)
    event = orjson.loads((out / "runs" / LOOP / "events.jsonl").read_bytes().splitlines()[1])
    assert f"{event['type']} on the main run" in done.stdout
    assert f"emitted as {LOOP}:2" in done.stdout


def test_a_folder_that_is_no_output_is_refused_with_a_remedy(logs: Path, tmp_path: Path) -> None:
    done = run("explain", logs, f"{LOOP}:1")
    assert done.returncode == 2
    assert done.stderr.startswith("VB403 ")
    shutil.rmtree(tmp_path, ignore_errors=True)
    assert run("explain", tmp_path, f"{LOOP}:1").returncode == 2


def test_a_number_of_any_length_is_only_a_line_or_an_event_that_is_not_there(
    logs: Path, tmp_path: Path
) -> None:
    for digits in ("9" * 18, "9" * 5_000):
        assert run("explain", f"{logs / 'acme-lantern' / '90.ndjson'}:{digits}").returncode == 2
        assert run("explain", tailed(logs, tmp_path, "runs"), f"{LOOP}:{digits}").returncode == 2
