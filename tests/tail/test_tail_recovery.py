"""What a tail makes of what a crash, a full disk or a person left: nothing lost, nothing twice."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.support.corpus import corpus_lines
from tests.support.samples import sample
from tests.tail.tailing import (
    LIVE,
    Desk,
    beat,
    converted,
    exited,
    facts,
    gate,
    identity_of,
    report_of,
    started,
    told,
)
from vinaya_bridge.checkpoint import decode_checkpoint
from vinaya_bridge.convert import convert
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.gaps import BAD_STATE
from vinaya_bridge.standing import standing
from vinaya_bridge.verify import verify

JOURNAL = "sink/runs.journal"
CACHE = "identities.sqlite"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def killed(desk: Desk) -> None:
    """Poll in a process of its own that is killed before it can close anything."""
    child = os.fork()
    if child == 0:
        desk.tail().poll()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def some_lines(desk: Desk, count: int = 60, seed: int = 1) -> None:
    desk.append(b"".join(corpus_lines(count, random=Random(seed))))


def finish_and_check(desk: Desk) -> None:
    desk.once()
    assert facts(desk.out) == facts(converted(desk))
    desk.check()


# ---------------------------------------------------------------------------------------- killed


def test_a_killed_tail_leaves_totals_that_add_up(desk: Desk) -> None:
    some_lines(desk)
    desk.append([beat(0), beat(0), gate(1)])
    desk.append(b"{}\n")
    killed(desk)
    assert not (desk.out / "report.json").exists()
    desk.once()
    total = report_of(desk.out)["total"]
    assert (total["read"], total["duplicate"], total["refused"]) == (64, 1, 1)
    assert facts(desk.out) == facts(converted(desk))
    desk.check()


def test_a_killed_tail_without_its_state_leaves_totals_that_add_up(desk: Desk) -> None:
    some_lines(desk)
    desk.append(b"{}\n")
    killed(desk)
    shutil.rmtree(desk.out / "state")
    finish_and_check(desk)


def test_a_killed_conversion_leaves_totals_that_add_up(desk: Desk) -> None:
    some_lines(desk)
    convert([desk.log], desk.out)
    (desk.out / "report.json").unlink()
    convert([desk.log], desk.out)
    desk.check()


# ---------------------------------------------------------------------------------------- state


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.write_bytes(b'{"cursor": 12}\n')


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("name", [JOURNAL, CACHE])
@pytest.mark.parametrize("broken", [truncated, emptied, foreign, removed])
def test_a_broken_state_leads_to_no_loss_and_no_duplicate(
    desk: Desk, name: str, broken: Callable[[Path], None]
) -> None:
    some_lines(desk)
    desk.append([started(), beat(1), beat(3)])
    with desk.tail() as tail:
        desk.poll(tail)
    broken(desk.out / "state" / name)
    desk.append([beat(2), exited(4)])
    finish_and_check(desk)


def test_a_position_of_another_version_is_told_and_all_is_read_again(desk: Desk) -> None:
    desk.append([started(), beat(1)])
    with desk.tail() as tail:
        desk.poll(tail)
        tail._sink.commit([], b"another version's position")
    desk.append([beat(2)])
    with desk.tail() as tail:
        poll = desk.poll(tail)
        assert [notice.code for notice in poll.notices] == [BAD_STATE]
        assert poll.new == [identity_of(beat(2))]
    desk.check()


def test_an_older_state_leads_to_no_loss_and_no_duplicate(desk: Desk) -> None:
    some_lines(desk, 30, 1)
    with desk.tail() as tail:
        desk.poll(tail)
    shutil.copytree(desk.out / "state", desk.root / "state")
    some_lines(desk, 30, 2)
    with desk.tail() as tail:
        desk.poll(tail)
    shutil.rmtree(desk.out / "state")
    (desk.root / "state").rename(desk.out / "state")
    some_lines(desk, 30, 3)
    finish_and_check(desk)


def test_an_older_output_is_completed(desk: Desk) -> None:
    some_lines(desk, 50, 1)
    with desk.tail() as tail:
        desk.poll(tail)
    for name in ("runs", "kept"):
        if (desk.out / name).exists():
            shutil.copytree(desk.out / name, desk.root / name)
    some_lines(desk, 50, 2)
    desk.append(b"{}\n")
    with desk.tail() as tail:
        desk.poll(tail)
    for name in ("runs", "kept"):
        shutil.rmtree(desk.out / name)
        if (desk.root / name).exists():
            (desk.root / name).rename(desk.out / name)
    finish_and_check(desk)


def test_what_is_cut_off_the_output_of_a_running_tail_comes_with_the_next_start(desk: Desk) -> None:
    desk.append([started(), beat(1)])
    with desk.tail() as tail:
        desk.poll(tail)
        path = desk.out / "runs" / "run-a" / "events.jsonl"
        path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
        desk.append([beat(2)])
        desk.poll(tail)
    finish_and_check(desk)


def test_kept_lines_that_are_lost_are_kept_again(desk: Desk) -> None:
    desk.append(b"{}\n")
    desk.once()
    shutil.rmtree(desk.out / "kept")
    finish_and_check(desk)
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == b"{}\n"
    assert told(desk.out) == [("capture.refused", "malformed")]


def test_kept_lines_that_are_lost_with_their_log_are_not_counted(desk: Desk) -> None:
    desk.append(b'{"meta":{"schema":9}}\n')
    desk.append([started()])
    desk.once()
    shutil.rmtree(desk.out / "kept")
    (desk.log / LIVE).unlink()
    desk.append([beat(1)], "acme-lantern/8.ndjson")
    desk.once()
    assert report_of(desk.out)["total"]["unknown_version"] == 0
    assert {finding.code.id for finding in verify(desk.out).findings} == {"VB413"}


def test_an_output_that_is_removed_is_made_again(desk: Desk) -> None:
    some_lines(desk)
    desk.once()
    shutil.rmtree(desk.out / "runs")
    finish_and_check(desk)


# ---------------------------------------------------------------------------------------- torn output


def logs_of(desk: Desk) -> list[Path]:
    return sorted((desk.out / "runs").glob("*/events.jsonl"))


@pytest.mark.parametrize("keep_state", [True, False])
def test_a_torn_last_event_is_completed(desk: Desk, keep_state: bool) -> None:
    some_lines(desk)
    desk.once()
    for path in logs_of(desk):
        path.write_bytes(path.read_bytes()[:-30])
    if not keep_state:
        shutil.rmtree(desk.out / "state")
    finish_and_check(desk)


def test_a_crash_between_the_events_of_a_line_is_completed(desk: Desk) -> None:
    """Every possible cut of one run's log, with no journal left that could help."""
    lines = [
        started(),
        sample("dispatch", "dispatched", seq=1, target_role="security", effect_id="eff-1"),
        sample("dispatch", "outcome_received", seq=2, target_role="security", effect_id="eff-1"),
        sample("dev_review_loop", "cancelled", seq=3),
    ]
    desk.append(lines)
    desk.once()
    whole = {path: path.read_bytes() for path in logs_of(desk)}
    assert {len(content.splitlines()) for content in whole.values()} == {4}
    for path, content in whole.items():
        ends = [number for number, byte in enumerate(content, 1) if byte == 0x0A]
        for cut in [0, 17, *ends[:-1], ends[-1] - 1]:
            for each, text in whole.items():
                each.write_bytes(text)
            path.write_bytes(content[:cut])
            shutil.rmtree(desk.out / "state")
            finish_and_check(desk)


def test_the_first_event_that_a_recovery_writes_is_new(desk: Desk) -> None:
    """A commit that reached the journal and not the run: the next start writes it and says so."""
    desk.append([started()])
    with desk.tail() as tail:
        desk.poll(tail)
    path = desk.out / "runs" / "run-a" / "events.jsonl"
    before = path.read_bytes()
    desk.append([beat(1)])
    with desk.tail() as tail:
        assert desk.poll(tail).new == [identity_of(beat(1))]
    path.write_bytes(before)
    with desk.tail() as tail:
        assert desk.poll(tail).new == [identity_of(beat(1))]
        assert desk.poll(tail).new == []
    desk.check()


def test_a_run_that_this_tool_did_not_write_is_refused_and_left_alone(desk: Desk) -> None:
    path = desk.out / "runs" / "run-a" / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not an event\n")
    desk.append([started()])
    with pytest.raises(SinkError) as refused:
        desk.once()
    assert refused.value.code.id == "VB403"
    assert path.read_bytes() == b"not an event\n"


def test_an_identity_cache_that_lies_about_its_pages_is_made_anew(desk: Desk) -> None:
    some_lines(desk)
    desk.once()
    cache = desk.out / "state" / CACHE
    content = bytearray(cache.read_bytes())
    content[4096:] = Random(1).randbytes(len(content) - 4096)
    cache.write_bytes(content)
    some_lines(desk, 20, 2)
    shutil.rmtree(desk.out / "state" / "sink")
    finish_and_check(desk)


def test_an_identity_cache_that_is_behind_the_runs_catches_up(desk: Desk) -> None:
    some_lines(desk, 40, 1)
    desk.once()
    old = (desk.out / "state" / CACHE).read_bytes()
    some_lines(desk, 40, 2)
    desk.once()
    (desk.out / "state" / CACHE).write_bytes(old)
    shutil.rmtree(desk.out / "state" / "sink")
    finish_and_check(desk)
    with sqlite3.connect(desk.out / "state" / CACHE) as database:
        held = database.execute("SELECT count(DISTINCT identity) FROM parts").fetchone()[0]
    database.close()
    assert held == len(desk.identities())


# ---------------------------------------------------------------------------------------- a full disk


TAIL_UNDER_A_LIMIT = """
import resource, signal, sys
from vinaya_bridge.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[1:] = sys.argv[2:]
main()
"""


@pytest.mark.parametrize("limit_bytes", [100, 3_000, 20_000, 45_000, 90_000])
def test_a_full_disk_ends_with_exit_3_and_the_next_start_goes_on(desk: Desk, limit_bytes: int) -> None:
    some_lines(desk, 120)
    desk.append(b"{}\n" * 40)
    command = [sys.executable, "-c", TAIL_UNDER_A_LIMIT, str(limit_bytes)]
    done = subprocess.run(
        [*command, "tail", str(desk.log), "-o", str(desk.out), "--once"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3, done.stderr
    assert "VB402" in done.stderr
    assert "try: " in done.stderr
    assert "Traceback" not in done.stderr
    finish_and_check(desk)


def test_a_tail_that_could_not_write_goes_on_only_when_it_is_opened_again(desk: Desk) -> None:
    some_lines(desk)
    tail = desk.tail()
    tail.poll()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    some_lines(desk, 60, 2)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
        with pytest.raises(SinkError):
            tail.poll()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    with pytest.raises(SinkError):
        tail.poll()
    tail.close()
    finish_and_check(desk)


# ---------------------------------------------------------------------------------------- standing


def test_where_a_tail_stands_is_told_from_its_state_alone(desk: Desk) -> None:
    with pytest.raises(ConfigurationError) as refused:
        standing(desk.out)
    assert refused.value.code.id == "VB403"
    (desk.out / "state").mkdir(parents=True)
    (desk.out / "state" / "lock").touch()
    assert standing(desk.out).data() == {
        "writer": None,
        "tailed": False,
        "saved": False,
        "files": [],
        "waiting": 0,
        "held": 0,
    }
    desk.append([started(), exited(1), beat(3)])
    size = (desk.log / LIVE).stat().st_size
    with desk.tail() as tail:
        desk.poll(tail)
        assert standing(desk.out).writer == os.getpid()
    found = standing(desk.out)
    assert (found.writer, found.saved, found.waiting, found.held) == (None, True, 1, 1)
    assert [(offset, length) for _, offset, length in found.files] == [(size, size)]


def test_a_position_with_another_version_is_none() -> None:
    assert decode_checkpoint(None) is None
    assert decode_checkpoint(b"") is None
    assert decode_checkpoint(b"\x97\x01\xc4\x00\x90\x90\x90\x80\x00") is None


def test_a_kept_line_whose_poll_was_never_committed_is_kept_once(desk: Desk) -> None:
    desk.append(b"{}\n")
    with desk.tail() as tail:
        desk.poll(tail)
    for name in ("runs", "state"):
        shutil.copytree(desk.out / name, desk.root / name)
    desk.append([started()])
    desk.append(b'{"x":1}\n')
    with desk.tail() as tail:
        desk.poll(tail)
    for name in ("runs", "state"):
        shutil.rmtree(desk.out / name)
        (desk.root / name).rename(desk.out / name)
    finish_and_check(desk)
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == b'{}\n{"x":1}\n'
    assert told(desk.out) == [("capture.refused", "malformed")] * 2
