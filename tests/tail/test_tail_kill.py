"""
Real processes: tails that are killed at random moments while others write through rotations.

``SOAK=1`` kills 200 times for each sink.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from tests.support.corpus import corpus_lines
from tests.tail.tailing import (
    LIVE,
    Desk,
    beat,
    converted,
    report_of,
    started,
    stored,
)
from tests.tail.test_tail_sinks import events_in
from vinaya_bridge.kept import kept_rows
from vinaya_bridge.verify import verify

SOAK = bool(os.environ.get("SOAK"))
KILLS = {"runs": 14, "sqlite": 8, "jsonl": 4}
SETTLE = "4s"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def tail_command(desk: Desk, *options: str) -> list[str]:
    command = [sys.executable, "-m", "vinaya_bridge", "tail", str(desk.log), "-o", str(desk.out)]
    return [*command, "--settle", SETTLE, "--poll-ms", "10", *options]


class Writers:
    """Three writers: two in one stream, of which one rotates it, and one in another that rotates too."""

    def __init__(self, root: Path) -> None:
        self.copies = root / "copies"
        self.copies.mkdir()
        folder = root / "log" / "acme-lantern"
        folder.mkdir(parents=True)
        self._stop = root / "stop"
        self._permits = [root / "permit-7", root / "permit-8"]
        self._seen_gone = [False, False]
        self.rotations = 0
        places = [("7.ndjson", self._permits[0]), ("8.ndjson", self._permits[1]), ("7.ndjson", None)]
        self._processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.tail.writer", str(folder / name)),
                    *(str(self.copies / f"{number}.ndjson"), str(permit or ""), str(self._stop), str(number)),
                ],
                cwd=ROOT,
            )
            for number, (name, permit) in enumerate(places, 1)
        ]

    def caught_up(self) -> None:
        """
        Permit a rotation of each stream of which the last rotation is known to have been read.

        A tail that says twice, after a permit was used, that it is not behind has looked at the files since.
        """
        for index, permit in enumerate(self._permits):
            if permit.exists():
                continue
            if not self._seen_gone[index]:
                self._seen_gone[index] = True
                continue
            self._seen_gone[index] = False
            permit.touch()
            self.rotations += 1

    def stop(self) -> None:
        self._stop.touch()
        for process in self._processes:
            assert process.wait(timeout=60) == 0


@contextmanager
def tailing(
    desk: Desk, writers: Writers, *options: str
) -> Iterator[tuple[subprocess.Popen[bytes], threading.Event]]:
    """A running tail, and what is set once it has polled; what it tells grants rotations."""
    process = subprocess.Popen(
        tail_command(desk, "--json", *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    running = threading.Event()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if not line.endswith(b"\n"):
                return
            row = orjson.loads(line)
            if row["tell"] == "status":
                running.set()
                if row["bytes_behind"] == 0:
                    writers.caught_up()

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield process, running
    finally:
        process.kill()
        listener.join()
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
        process.stderr.close()
        process.wait()
        assert b"Traceback" not in stderr, stderr.decode()


@pytest.mark.parametrize("kind", KILLS)
def test_a_tail_that_is_killed_again_and_again_loses_and_repeats_nothing(desk: Desk, kind: str) -> None:
    random = Random(kind)
    options = [] if kind == "runs" else ["--sink", f"{kind}:{desk.root / 'events'}"]
    writers = Writers(desk.root)
    try:
        for _ in range(200 if SOAK else KILLS[kind]):
            with tailing(desk, writers, *options) as (process, running):
                if random.random() < 0.7:
                    running.wait(timeout=20)
                time.sleep(random.random() * 0.7)
                process.send_signal(signal.SIGKILL)
    finally:
        writers.stop()
    done = subprocess.run(
        tail_command(desk, "--once", *options), capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr.count("gap ")) == (0, 0), done.stderr[-2000:]
    out = converted(desk, writers.copies)
    # Which sitting a line falls in, and what is late, depends on when it was read: every line is there all the same.
    events = [each.event for each in stored(desk.out)] if kind == "runs" else events_in(desk, kind)
    late = {row.identity for row in kept_rows(desk.out / "kept") if row.why == "late"}
    identities = identities_of(events)
    assert not late & identities
    assert identities | late == identities_of([each.event for each in stored(out)])
    verification = verify(desk.out, [writers.copies])
    assert verification.proven, verification.findings[:5]
    total, expected = report_of(desk.out)["total"], report_of(out)["total"]
    assert total["converted"] + len(late) == expected["converted"]
    assert writers.rotations > KILLS[kind] // 2


def identities_of(events: list[Any]) -> set[str | None]:
    """The lines of which there is an event."""
    blocks = (event["payload"].get("vinaya", {}) for event in events)
    return {block["eventId"] for block in blocks if "part" in block}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_tail_soon_and_all_that_was_read_is_durable(
    desk: Desk, number: signal.Signals
) -> None:
    desk.append([started(), beat(1)])
    process = subprocess.Popen(tail_command(desk, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert orjson.loads(process.stdout.readline())["tell"] == "started"
    desk.append([beat(2)])
    while orjson.loads(process.stdout.readline()).get("lines", {}).get("converted") != 3:
        pass
    begin = time.monotonic()
    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)
    assert time.monotonic() - begin < 2
    assert (process.returncode, stderr) == (0, b"")
    assert report_of(desk.out)["lines"]["converted"] == 3
    desk.check()


def test_a_signal_ends_a_tail_soon_although_there_is_much_to_read(desk: Desk) -> None:
    desk.append(b"".join(corpus_lines(20_000, random=Random(1))))
    process = subprocess.Popen(tail_command(desk, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    begin = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert time.monotonic() - begin < (10 if SOAK else 4)
    before = report_of(desk.out)["lines"]["read"]
    assert 0 < before < 20_000
    assert (desk.log / LIVE).stat().st_size > 4 << 20
    desk.once()
    desk.check()
