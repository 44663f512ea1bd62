"""A tail of what `benchmarks.writing` writes: ``python -m benchmarks.tailing FOLDER OUT SECONDS``, and its table."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path
from statistics import quantiles

import msgspec
import orjson

from vinaya_bridge.tail import Tail
from vinaya_bridge.verify import verify

_POLL_SECONDS = 0.1
"""The command's default."""

_SETTLE_SECONDS = 1.0
_AFTERWARDS_SECONDS = 3.0
_MEDIAN_TARGET_MS = 150
_CORE_TARGET = 0.10


class Followed(msgspec.Struct, frozen=True):
    """
    How a tail kept up.

    Args:
        written: How many lines there were.

        proven: Whether `vinaya_bridge.verify` found that every one has its disposition, and every event its line.

        median_ms: How long after a line was written its event was durable, in milliseconds.

        most_ms: The same for 99 of 100 lines; an end waits for its run to be quiet.

        core: The part of a core that the tail took.
    """

    written: int
    proven: bool
    median_ms: float
    most_ms: float
    core: float


def report(folder: Path, *, seconds: int) -> bool:
    """
    Print the table.

    Args:
        folder: Where inputs and outputs lie.

        seconds: For how long each log is written.

    Returns:
        Whether every target is met.
    """
    head = f"{'lines':>9}{'proven':>8}{'median ms':>11}{'99 % ms':>9}{'core':>7}"
    print(f"{'a log that is written, followed by tail':44}{head}")
    busy = _follow(folder / "busy", 1000, seconds)
    idle = _follow(folder / "idle", 10, seconds)
    _print("ten writers, 1,000 lines a second in total", busy)
    _print("ten writers, 10 lines a second in total", idle)
    print(
        f"Targets: all proven, median {_MEDIAN_TARGET_MS} ms, {_CORE_TARGET:.0%} of a core at 10 lines a second."
    )
    return busy.proven and idle.proven and busy.median_ms < _MEDIAN_TARGET_MS and idle.core < _CORE_TARGET


def _print(name: str, found: Followed) -> None:
    proven = "yes" if found.proven else "NO"
    delays = f"{found.median_ms:11.0f}{found.most_ms:9.0f}"
    print(f"{name:44}{found.written:9,}{proven:>8}{delays}{found.core:7.1%}", flush=True)


def _follow(folder: Path, lines_a_second: int, seconds: int) -> Followed:
    source, out = folder / "in", folder / "out"
    source.mkdir(parents=True)
    command = [sys.executable, "-m", "benchmarks.writing", str(source), str(lines_a_second), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()  # it has its lines, and begins
        command = [sys.executable, "-m", "benchmarks.tailing", str(source), str(out), str(seconds)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    shutil.rmtree(source)
    return msgspec.json.decode(done.stdout, type=Followed)


def follow(folder: Path, out: Path, seconds: float) -> Followed:
    """
    Follow for a while, as the command does.

    Args:
        folder: The log.

        out: The output.

        seconds: How long lines are written.

    Returns:
        How it kept up.
    """
    durable: dict[str, float] = {}
    busy = time.process_time()
    end = time.monotonic() + seconds + _AFTERWARDS_SECONDS
    with Tail([folder], out, settle_seconds=_SETTLE_SECONDS) as tail:
        while time.monotonic() < end:
            found = tail.poll()
            now = time.time()
            durable.update((identity, now) for identity in found.new)
            if not found.more:
                time.sleep(_POLL_SECONDS)
        tail.settle()
    core = (time.process_time() - busy) / (seconds + _AFTERWARDS_SECONDS)
    written = {
        _identity(meta): datetime.fromisoformat(meta["ts"]).timestamp()
        for path in sorted(folder.glob("*.ndjson"))
        for meta in (orjson.loads(line)["meta"] for line in path.read_bytes().splitlines())
    }
    waits = [(durable[identity] - at) * 1000 for identity, at in written.items() if identity in durable]
    cuts = quantiles(waits, n=100)
    return Followed(len(written), verify(out, [folder]).proven, cuts[49], cuts[98], core)


def _identity(meta: dict[str, str]) -> str:
    return meta.get("event_id") or f"{meta['run_id']}:{meta['seq']}"


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.encode(follow(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
    )
