"""One conversion in an interpreter of its own: ``python -m benchmarks.child IN OUT JOBS``; prints what it took."""

from __future__ import annotations

import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import orjson
from attrs import frozen

_PEAK_CODE = "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"


@frozen
class Took:
    """
    What a conversion took.

    Args:
        seconds: From the call to its report, without the start of the interpreter.

        peak_mb: The most memory, above a bare interpreter, in megabytes; with several jobs, of the first process alone.

        lines: How many lines were read.
    """

    seconds: float
    peak_mb: float
    lines: int


def convert(source: Path, out: Path, jobs: int = 1) -> Took:
    """
    Convert in a process of its own.

    Args:
        source: The input.

        out: The output; it stays, since a file system is slow to use again what was removed a moment ago.

        jobs: As the option of the command.

    Returns:
        What it took.
    """
    command = [sys.executable, "-m", "benchmarks.child", str(source), str(out), str(jobs)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    told = orjson.loads(done.stdout)
    return Took(told["seconds"], told["peak_kb"] / 1024 - _bare_mb(), told["lines"])


@cache
def _bare_mb() -> float:
    """The memory of an interpreter that does nothing, in megabytes."""
    done = subprocess.run([sys.executable, "-c", _PEAK_CODE], check=True, stdout=subprocess.PIPE)
    return int(done.stdout) / 1024


def _peak_kb() -> int:
    """The most memory that this process had; ``ru_maxrss`` would count what its parent had when it started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0])


def _main(source: str, out: str, jobs: str) -> None:
    from vinaya_bridge.convert import ConvertOptions  # noqa: PLC0415 - the parent needs none of it
    from vinaya_bridge.convert import convert as convert_logs  # noqa: PLC0415

    start = time.perf_counter()
    report = convert_logs([source], out, ConvertOptions(jobs=int(jobs)))
    seconds = time.perf_counter() - start
    peak_kb = _peak_kb()
    told = {"seconds": seconds, "peak_kb": peak_kb, "lines": report.lines["read"]}
    sys.stdout.buffer.write(orjson.dumps(told))


if __name__ == "__main__":
    _main(*sys.argv[1:4])
