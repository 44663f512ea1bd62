"""How long the command takes to start, as a ratio to what no command that uses click can do without."""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

_TARGET = 3.0
_ROUNDS = 11


def report() -> bool:
    """
    Print the ratio.

    Returns:
        Whether it meets its target.
    """
    ratios = []
    for _ in range(_ROUNDS):
        least = _seconds("-c", "import click")
        ratios.append(_seconds("-m", "vinaya_bridge", "--help") / least)
    ratio = median(ratios)
    print(
        f"vinaya-bridge --help takes {ratio:.1f} times as long as python -c 'import click' (target {_TARGET})."
    )
    return ratio <= _TARGET


def _seconds(*arguments: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start
