"""The command: ``python -m benchmarks [--quick] [--lines N] [--rounds N]``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from benchmarks import growth, peers, starting, steps, tailing
from benchmarks.measure import Row, measure, table, worse
from tests.support.corpus import write_corpus_tree

WORK = 32
"""How much longer the runs of the corpus are than its shortest ones: about 100 lines a run."""


def main() -> int:
    """
    Print the tables.

    Returns:
        The exit code: 1 where a figure is worse than its target, or than what is known and explained in
        ``benchmarks/README.md`` where that target is missed, by more than the noise.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--lines", type=int, default=250_000, help="lines of the whole conversions")
    parser.add_argument("--sample", type=int, default=25_000, help="lines of the single steps")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds of each")
    parser.add_argument(
        "--quick", action="store_true", help="grow to 250,000 lines alone, tail for 5 seconds"
    )
    parser.add_argument("--costs", action="store_true", help="print the first table alone")
    arguments = parser.parse_args()
    now = datetime.now(UTC)
    print(f"{now:%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, {platform.system()},", end=" ")
    print(f"Python {platform.python_version()}\n")
    with tempfile.TemporaryDirectory(prefix="vinaya-bench-") as name:
        folder = Path(name)
        rows = _costs(folder, arguments.lines, arguments.sample, arguments.rounds)
        is_good = not any(map(worse, rows))
        print()
        is_good &= starting.report()
        if not arguments.costs:
            print()
            is_good &= growth.report(folder, full=not arguments.quick)
            print()
            is_good &= tailing.report(folder, seconds=5 if arguments.quick else 60)
    return int(not is_good)


def _costs(folder: Path, lines: int, sample: int, rounds: int) -> list[Row]:
    large, small = folder / "large", folder / "small"
    write_corpus_tree(large, lines, random=Random(1), files=8, work=WORK)
    write_corpus_tree(small, sample, random=Random(2), files=8, work=WORK)
    bench = steps.Steps(small, folder / "step-out")
    print(
        f"{lines:,} lines in the whole conversions, {sample:,} in the steps, {bench.mean_bytes:,.0f} bytes a line;"
    )
    print("c = orjson.loads + orjson.dumps(sorted) of the same lines in the same round.\n")
    rows = measure(bench.cases(), floor=bench.floor, lines=sample, size_bytes=bench.size_bytes, rounds=rounds)
    rows += measure(
        peers.cases(small, folder),
        floor=bench.floor,
        lines=sample,
        size_bytes=bench.size_bytes,
        rounds=rounds,
    )
    whole = steps.Whole(large, folder / "out", floor=bench.floor, sample=sample)
    rows += measure(whole.cases(), floor=whole.floor, lines=lines, size_bytes=whole.size_bytes, rounds=rounds)
    print(table(rows))
    return rows


sys.exit(main())
