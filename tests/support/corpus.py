"""
A large, deterministic log for benchmarks and for tests that need many lines.

The lines tell of loops as the producer runs them: rounds of turns, gates, verdicts, pauses and ends, from
several processes at once, under all three header schemas. Lines are assembled as text, not through a
serialiser, so that a million of them cost a few seconds. Every identity is distinct: no duplicates.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

from tests.support.corpus_loop import MILLISECONDS_A_DAY, loop_lines

LOOPS_AT_ONCE = 6
BURST_LINES = 5
"""How many lines of one loop stand together before another loop's come."""


def corpus_lines(count: int, *, random: Random, first_day: int = 20_600, work: int = 1) -> Iterator[bytes]:
    """
    Make lines of a log, in the order in which a tailer would meet them.

    Args:
        count: How many lines.

        random: The source of every choice: equal states give equal lines.

        first_day: The day of the first line, in days since 1970-01-01.

        work: How much longer runs are than the shortest ones, of about nine lines.

    Yields:
        Lines as bytes, each with its newline; about 1.1 kB on average.
    """
    for text in islice(_interleaved(random, first_day * MILLISECONDS_A_DAY, work), count):
        yield text.encode()


def write_corpus(file: Path, count: int, *, random: Random, work: int = 1) -> int:
    """
    Write a log of one file.

    Args:
        file: Where to; its folder must exist.

        count: How many lines.

        random: The source of every choice.

        work: As `corpus_lines`.

    Returns:
        The size of the file in bytes.
    """
    with file.open("wb", buffering=1 << 20) as out:
        out.writelines(corpus_lines(count, random=random, work=work))
        return out.tell()


def write_corpus_tree(
    root: Path, count: int, *, random: Random, files: int = 16, work: int = 1
) -> list[Path]:
    """
    Write a log folder of several streams, laid out as the producer lays it out.

    Args:
        root: The folder; made if absent.

        count: How many lines over all files.

        random: The source of every choice.

        files: Over how many streams they are spread, burst by burst.

        work: As `corpus_lines`.

    Returns:
        The files that were written, in name order.
    """
    folder = root / "acme-lantern"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{1000 + number}.ndjson" for number in range(files)]
    streams = [path.open("wb") for path in paths]
    try:
        lines = corpus_lines(count, random=random, work=work)
        turn = 0
        while burst := list(islice(lines, 64)):
            streams[turn % files].writelines(burst)
            turn += 1
    finally:
        for stream in streams:
            stream.close()
    return paths


def _interleaved(random: Random, now_ms: int, work: int) -> Iterator[str]:
    """Lines of several loops at once, without end."""
    number = 0
    running: list[Iterator[str]] = []
    while True:
        while len(running) < LOOPS_AT_ONCE:
            running.append(loop_lines(random, number, now_ms + number * 420_000, work=work))
            number += 1
        index = number + random.randrange(LOOPS_AT_ONCE)
        loop = running[index % LOOPS_AT_ONCE]
        burst = list(islice(loop, BURST_LINES))
        if not burst:
            running.remove(loop)
        yield from burst
