"""The second table: how time and memory grow, and what the extremes take."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import orjson

from benchmarks.child import Took, convert
from benchmarks.measure import NOISE
from tests.support.corpus import corpus_lines, write_corpus_tree

_SIZES = (10_000, 50_000, 250_000)
_FULL_SIZES = (*_SIZES, 1_000_000, 4_000_000)
_WORK = 32
_MEMORY_TARGET_MB = 150
_GROWTH_TARGET = 4.4


def report(folder: Path, *, full: bool) -> bool:
    """
    Print the table.

    Args:
        folder: Where inputs and outputs lie.

        full: Whether to go to the sizes that are promised, which takes a quarter of an hour.

    Returns:
        Whether every target is met.
    """
    print(f"{'':44}{'seconds':>9}{'µs/line':>9}{'peak MB':>9}{'MB/M lines':>12}")
    source, out = folder / "in", folder / "grown"
    took: dict[int, Took] = {}
    for size in _FULL_SIZES if full else _SIZES:
        write_corpus_tree(source, size, random=Random(size), files=8, work=_WORK)
        took[size] = _row(f"{size:,} lines", source, out)
    scale = 1 if full else 10
    extremes: list[tuple[str, Callable[[Path], None]]] = [
        (f"one line of {200 // scale} MB", lambda path: _one_line(path, (200 << 20) // scale)),
        (f"one run of {1_000_000 // scale:,} lines", lambda path: _one_run(path, 1_000_000 // scale)),
        (f"{100_000 // scale:,} runs of one line", lambda path: _many_runs(path, 100_000 // scale)),
        (f"{50_000 // scale:,} files of two lines", lambda path: _many_files(path, 50_000 // scale)),
    ]
    for name, write in extremes:
        source.mkdir()
        write(source)
        _row(name, source, out)
    print(
        f"Targets: {_MEMORY_TARGET_MB} MB a million lines; {_GROWTH_TARGET} times the time for 4 times the lines."
    )
    if not full:
        return True
    small, large = took[1_000_000], took[4_000_000]
    is_linear = large.seconds <= _GROWTH_TARGET * (1 + NOISE) * small.seconds
    return is_linear and all(each.peak_mb <= _MEMORY_TARGET_MB * each.lines / 1e6 for each in (small, large))


def _row(name: str, source: Path, out: Path) -> Took:
    took = convert(source, out / name)
    shutil.rmtree(source)
    per_million = took.peak_mb / took.lines * 1e6
    shown = f"{per_million:12.0f}" if took.lines >= 1_000_000 else ""
    print(
        f"{name:44}{took.seconds:9.2f}{took.seconds / took.lines * 1e6:9.1f}{took.peak_mb:9.0f}{shown}",
        flush=True,
    )
    return took


def _template() -> dict[str, dict[str, object]]:
    """A line of schema 3 that any run can have."""
    lines = map(orjson.loads, corpus_lines(500, random=Random(4)))
    return next(line for line in lines if line["kind"] == "operation" and line["meta"]["schema"] == 3)


def _line(template: dict[str, dict[str, object]], number: int, run: str, process: str, seq: int) -> bytes:
    meta = template["meta"]
    meta["event_id"] = f"00000000-0000-4000-8000-{number:012x}"
    meta["process_id"], meta["seq"], meta["run_id"] = process, seq, run
    meta["lineage"] = {"run": run, "attempt": None, "parent": None}
    return orjson.dumps(template) + b"\n"


def _one_line(folder: Path, size_bytes: int) -> None:
    template = _template()
    template["target"] = "x" * size_bytes  # type: ignore[assignment]
    (folder / "1.ndjson").write_bytes(_line(template, 0, "run-0", "0" * 32, 0))


def _one_run(folder: Path, lines: int) -> None:
    template = _template()
    with (folder / "1.ndjson").open("wb") as stream:
        stream.writelines(_line(template, number, "run-0", "0" * 32, number) for number in range(lines))


def _many_runs(folder: Path, runs: int) -> None:
    template = _template()
    with (folder / "1.ndjson").open("wb") as stream:
        stream.writelines(_line(template, run, f"run-{run}", f"{run:032x}", 0) for run in range(runs))


def _many_files(folder: Path, files: int) -> None:
    template = _template()
    for file in range(files):
        lines = (_line(template, 2 * file + seq, "run-0", f"{file:032x}", seq) for seq in range(2))
        (folder / f"{file}.ndjson").write_bytes(b"".join(lines))
