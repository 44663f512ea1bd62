"""
A process that writes a log as the producer does: one write a line, rotation by rename above a small cap.

Vinaya files reference, sections 3 and 4. Unlike the producer it rotates only when it is permitted to, by a file that
it takes away: else a rotation could outrun a tail that is being killed, and what is lost could not be told from what
was never read. It keeps a copy of every line that it writes.

Usage: ``python -m tests.tail.writer LIVE COPY PERMIT STOP NUMBER``; an empty PERMIT rotates never.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

from tests.support.corpus_loop import loop_lines

CAP_BYTES = 40_000
PAUSE_SECONDS = 0.004


def lines(number: int, random: Random) -> Iterator[bytes]:
    """Loops without end, with lines that come again, lines out of order, and what is no line at all."""
    earlier: list[bytes] = []
    for loop in count(number * 10_000):
        held: bytes | None = None
        for text in loop_lines(random, loop, 1_780_000_000_000 + loop * 60_000):
            line = text.encode()
            earlier.append(line)
            if held is None and random.random() < 0.05:
                held = line  # written at exit time, after a later one
                continue
            yield line
            if held is not None:
                yield held
                held = None
            if random.random() < 0.03:
                yield random.choice(earlier[-200:])
            if random.random() < 0.01:
                yield b'{"meta":{"schema":3},"garbage":%d}\n' % random.getrandbits(40)
        if held is not None:
            yield held


def append(live: Path, line: bytes, *, in_two: bool) -> None:
    """Open, write, close; sometimes the line reaches the disk in two parts."""
    descriptor = os.open(live, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    if in_two:
        os.write(descriptor, line[: len(line) // 2])
        time.sleep(0.02)
        line = line[len(line) // 2 :]
    os.write(descriptor, line)
    os.close(descriptor)


def main(live: Path, copy: Path, permit: Path | None, stop: Path, number: int) -> None:
    """Write until the file *stop* is there."""
    random = Random(number)
    for line in lines(number, random):
        if stop.exists():
            return
        with copy.open("ab") as stream:
            stream.write(line)
        if permit is not None and permit.exists() and live.exists() and live.stat().st_size > CAP_BYTES:
            live.replace(live.with_name(f"{live.stem}.1.ndjson"))
            permit.unlink()
        append(live, line, in_two=permit is not None and number % 2 == 0 and random.random() < 0.02)
        time.sleep(random.random() * 2 * PAUSE_SECONDS)


if __name__ == "__main__":
    _, live_name, copy_name, permit_name, stop_name, writer_number = sys.argv
    main(
        Path(live_name),
        Path(copy_name),
        Path(permit_name) if permit_name else None,
        Path(stop_name),
        int(writer_number),
    )
