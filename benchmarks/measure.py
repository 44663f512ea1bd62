"""Interleaved rounds, ratios and the table."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles

from attrs import frozen

NOISE = 0.15
"""What two runs of the same code can differ by on a shared machine, as a part of the ratio."""


@frozen
class Outcome:
    """
    One measured run of a case.

    Args:
        seconds: How long it took.

        peak_mb: The most memory it took above a bare interpreter, in megabytes; None where it was not measured.
    """

    seconds: float
    peak_mb: float | None = None


@frozen
class Case:
    """
    What is measured.

    Args:
        name: What the table calls it.

        run: Does it once.

        target: The most it should cost in c, or None.

        known: What it is known to cost in c where the target is out of reach, or None. ``benchmarks/README.md`` says
            why.

        less: The name of a case whose cost is taken off, round by round, or None.
    """

    name: str
    run: Callable[[], Outcome | None]
    target: float | None = None
    known: float | None = None
    less: str | None = None


@frozen
class Row:
    """
    A row of the table.

    Args:
        name: Of the case.

        ratio: The median over the rounds, in c.

        spread: Half the distance between the quartiles, in c.

        target: The most it should be, in c, or None.

        known: What it is known to be, in c, where the target is out of reach; or None.

        lines_per_second: At the median; None for a difference.

        megabytes_per_second: Likewise.

        peak_mb: The most memory of all rounds, in megabytes, or None.
    """

    name: str
    ratio: float
    spread: float
    target: float | None
    known: float | None
    lines_per_second: float | None
    megabytes_per_second: float | None
    peak_mb: float | None


def timed(work: Callable[[], object]) -> float:
    """
    Run something once, without the cyclic garbage collector, and return how many seconds it took.

    Args:
        work: What to run.
    """
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start
    finally:
        gc.enable()


def measure(
    cases: Sequence[Case], *, floor: Callable[[], object], lines: int, size_bytes: int, rounds: int
) -> list[Row]:
    """
    Run the cases in turn, each round with the floor before and after.

    Args:
        cases: What to measure.

        floor: What the unit c is, over as many lines.

        lines: How many lines a case handles.

        size_bytes: How many bytes they are.

        rounds: How often.

    Returns:
        A row a case.
    """
    ratios: dict[str, list[float]] = {case.name: [] for case in cases}
    seconds: dict[str, list[float]] = {case.name: [] for case in cases}
    peaks: dict[str, list[float]] = {case.name: [] for case in cases}
    for _ in range(rounds):
        took: dict[str, float] = {}
        unit = timed(floor)
        for case in cases:
            found: list[Outcome | None] = []
            took[case.name] = timed(lambda run=case.run, found=found: found.append(run()))  # type: ignore[misc]
            outcome = found[0]
            if outcome is not None:
                took[case.name] = outcome.seconds
                if outcome.peak_mb is not None:
                    peaks[case.name].append(outcome.peak_mb)
        unit = (unit + timed(floor)) / 2
        for case in cases:
            cost = took[case.name] - (took[case.less] if case.less is not None else 0)
            ratios[case.name].append(cost / unit)
            seconds[case.name].append(cost)
    rows = []
    for case in cases:
        typical = median(seconds[case.name])
        per_second = 1 / typical if typical > 0 and case.less is None else None
        rows.append(
            Row(
                case.name,
                median(ratios[case.name]),
                _spread(ratios[case.name]),
                case.target,
                case.known,
                None if per_second is None else lines * per_second,
                None if per_second is None else size_bytes / 1e6 * per_second,
                max(peaks[case.name], default=None),
            )
        )
    return rows


def worse(row: Row) -> bool:
    """
    Whether a row costs more than its target, or than is known where the target is missed, by more than the noise.

    Args:
        row: The row.
    """
    most = row.target if row.known is None else row.known
    return most is not None and _is_over(row, most)


def _is_over(row: Row, most: float) -> bool:
    return row.ratio > most * (1 + NOISE) + row.spread


def table(rows: Sequence[Row]) -> str:
    """
    Return the rows as a table of text.

    Args:
        rows: The rows.
    """
    head = f"{'':44}{'c':>7}{'±':>6}{'target':>8}{'lines/s':>11}{'MB/s':>7}{'peak MB':>9}"
    note = f"A target is missed beyond {NOISE:.0%} and the spread. Why it is: benchmarks/README.md."
    return "\n".join([head, *map(_text, rows), note])


def _text(row: Row) -> str:
    verdict = "  missed" if row.target is not None and _is_over(row, row.target) else ""
    if worse(row) and row.known is not None:
        verdict = f"  worse than {row.known}, which is known"
    return (
        f"{row.name:44}{row.ratio:7.2f}{row.spread:6.2f}{_number(row.target, '.2f'):>8}"
        f"{_number(row.lines_per_second, ',.0f'):>11}{_number(row.megabytes_per_second, '.0f'):>7}"
        f"{_number(row.peak_mb, '.0f'):>9}{verdict}"
    )


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _spread(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = quantiles(values, n=4, method="inclusive")
    return (high - low) / 2
