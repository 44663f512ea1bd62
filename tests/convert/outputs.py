"""What the tests of conversions look at."""

from __future__ import annotations

from pathlib import Path


def content(out: Path) -> dict[str, bytes]:
    """Every file of an output with its bytes, save the lock, which names a process."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "lock"
    }
