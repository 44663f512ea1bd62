"""Ten writers of one log: ``python -m benchmarks.writing FOLDER LINES_A_SECOND SECONDS``; says when it begins."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from tests.support.corpus import corpus_lines

WRITERS = 10
_TS = slice(len(b'{"meta":{"schema":3,"ts":"'), len(b'{"meta":{"schema":3,"ts":"2026-08-02T06:00:00.000Z'))


def main(folder: Path, lines_a_second: int, seconds: float) -> None:
    """
    Append to ten files in turn, each line when its time has come and with that time in it.

    Args:
        folder: Where they lie.

        lines_a_second: Of all together.

        seconds: For how long.
    """
    count = int(seconds * lines_a_second)
    logs = [list(corpus_lines(count // WRITERS, random=Random(number), work=32)) for number in range(WRITERS)]
    streams = [(folder / f"{number}.ndjson").open("ab", buffering=0) for number in range(WRITERS)]
    print("begin", flush=True)
    start = time.monotonic()
    for number in range(count):
        wait = start + number / lines_a_second - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        line = logs[number % WRITERS][number // WRITERS]
        now = datetime.now(UTC).isoformat(timespec="milliseconds")[:-6].encode() + b"Z"
        streams[number % WRITERS].write(line[: _TS.start] + now + line[_TS.stop :])
    for stream in streams:
        stream.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
