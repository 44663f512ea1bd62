"""A tail of what `benchmarks.writing` writes: ``python -m benchmarks.tailing FOLDER OUT SECONDS``."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from pathlib import Path
from statistics import quantiles

import orjson

from vinaya_bridge.tail import Tail

_POLL_SECONDS = 0.02
_AFTERWARDS_SECONDS = 2.0


def main(folder: Path, out: Path, seconds: float) -> None:
    """
    Follow for a while, then print how long after it was written a line's event was durable.

    Args:
        folder: The log.

        out: The output.

        seconds: How long lines are written.
    """
    durable: dict[str, float] = {}
    busy = time.process_time()
    end = time.monotonic() + seconds + _AFTERWARDS_SECONDS
    with Tail([folder], out, settle_seconds=1.0) as tail:
        while time.monotonic() < end:
            found = tail.poll()
            now = time.time()
            durable.update((identity, now) for identity in found.new)
            if not found.more:
                time.sleep(_POLL_SECONDS)
    busy = time.process_time() - busy
    waits = [
        (durable[meta["event_id"]] - datetime.fromisoformat(meta["ts"]).timestamp()) * 1000
        for path in sorted(folder.glob("*.ndjson"))
        for line in path.read_bytes().splitlines()
        if (meta := orjson.loads(line)["meta"]).get("event_id") in durable
    ]
    cuts = quantiles(waits, n=100)
    print(f"{cuts[49]:9.0f}{cuts[98]:9.0f}   ({busy / (seconds + _AFTERWARDS_SECONDS):.0%} of a core)")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
