"""The documents say what happens: their console blocks are run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = ("README.md", "docs/commands.md")


def console_blocks(text: str) -> list[list[tuple[str, str]]]:
    """Each console block as commands with the output that is promised."""
    blocks = []
    for block in BLOCK.findall(text):
        steps: list[tuple[str, str]] = []
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                steps.append((line[2:].rstrip("\n"), ""))
            elif steps:
                command, output = steps[-1]
                steps[-1] = (command, output + line)
        blocks.append(steps)
    return blocks


def as_pattern(output: str) -> str:
    """The promised output as a pattern: a line of ``...`` stands for any lines, ``…`` for any text in a line."""
    return "".join(
        "(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace("…", "[^\n]*")
        for line in output.splitlines(keepends=True)
    )


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_console_block_of_a_document_does_what_it_says(
    name: str, repository: Path, tmp_path: Path
) -> None:
    blocks = console_blocks((repository / name).read_text("utf-8"))
    assert sum(len(steps) for steps in blocks) >= 3
    shutil.copytree(repository / "fixtures", tmp_path / "fixtures")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
    }
    for command, promised in (step for steps in blocks for step in steps):
        if command.startswith("make "):
            continue  # what runs these tests
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert re.fullmatch(as_pattern(promised), done.stdout), f"$ {command}\n{done.stdout}"


def test_the_table_of_the_readme_is_what_the_mapping_makes(repository: Path) -> None:
    command = [sys.executable, "-m", "vinaya_bridge", "mapping", "coverage", "--markdown"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    text = (repository / "README.md").read_text("utf-8")
    assert text.partition("--markdown` -->\n")[2].partition("<!-- end of mapping table -->")[0] == made


def test_the_library_example_of_the_readme_runs(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(
        r"^```python\n(.*?)^```$", (repository / "README.md").read_text("utf-8"), re.M | re.S
    )
    shutil.copytree(repository / "fixtures" / "cancelled-loop" / "in", tmp_path / "logs")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - the example is ours
    assert len(capsys.readouterr().out.splitlines()) == 17
