"""Runs the command as a person types it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(*words: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run the command; assert that no traceback reached the person."""
    command = [sys.executable, "-m", "vinaya_bridge", *map(str, words)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=60)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in err
    return subprocess.CompletedProcess(command, done.returncode, out, err)
