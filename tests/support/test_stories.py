"""What each story must become."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_story_becomes_byte_for_byte_what_it_must(repository: Path) -> None:
    command = [sys.executable, "-m", "vinaya_bridge", "mapping", "test", str(repository / "fixtures")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert sum(line.startswith("ok ") for line in done.stdout.splitlines()) == 9
