"""The watcher: a hint, nothing more."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

import pytest

from tests.support.samples import sample
from tests.support.strategies import dump
from vinaya_bridge.running import run
from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll
from vinaya_bridge.waking import Waker


def test_a_change_wakes_a_tail_long_before_its_next_look(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles", reason="the extra [watch] is not installed")
    log = tmp_path / "in"
    log.mkdir()
    stop = Event()
    seen: list[float] = []

    def tell(poll: TailPoll) -> None:
        if not seen and not poll.new:
            time.sleep(0.3)  # the watcher has begun
            (log / "7.ndjson").write_bytes(dump(sample("gate", "summary")) + b"\n")
        if poll.new:
            seen.append(time.monotonic())
            stop.set()

    began = time.monotonic()
    with Tail([log], tmp_path / "out") as tail:
        run(tail, stop=stop, poll_seconds=30.0, once=False, tell=tell, wait=Waker([log], stop).wait)
    assert seen
    assert seen[0] - began < 15.0


def test_without_a_hint_the_next_look_comes_all_the_same(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles", reason="the extra [watch] is not installed")
    stop = Event()
    waker = Waker([tmp_path / "nowhere"], stop)
    began = time.monotonic()
    waker.wait(0.05)
    assert time.monotonic() - began < 5.0
    stop.set()
