"""What a person meets in the first minutes: the README's commands, and inputs that are not what was meant."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_readme_says_how_its_commands_come_on_the_path(repository: Path) -> None:
    text = (repository / "README.md").read_text("utf-8")
    section = text.partition("## Two commands\n")[2].partition("\n## ")[0]
    assert "\n    . .venv/bin/activate\n" in section
    assert "`pip install .`" in section


def test_git_ignores_what_the_commands_of_the_readme_write(repository: Path) -> None:
    text = (repository / "README.md").read_text("utf-8")
    written = set(re.findall(r"^\$ vinaya-bridge .* -o (\S+)", text, re.MULTILINE))
    ignored = (repository / ".gitignore").read_text("utf-8").splitlines()
    assert written
    assert {f"/{name}/" for name in written} <= set(ignored)
