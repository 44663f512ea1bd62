"""Every command has a place on the page of commands, with an example, and is completed by a shell."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

PROGRAMS = ("vinaya-bridge", "ethogram")
SHELLS = ("bash", "zsh", "fish")


def program(name: str) -> click.Group:
    """The group of commands that a program starts with."""
    (script,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    started = script.load()
    if isinstance(started, click.Group):
        return started
    group = sys.modules[started.__module__].__dict__["cli"]
    assert isinstance(group, click.Group)
    return group


def commands(name: str) -> list[str]:
    group = program(name)
    return group.list_commands(click.Context(group))


def sections(repository: Path) -> dict[str, str]:
    """The text under each heading of the page."""
    parts = re.split(
        r"^##? (.+)$", (repository / "docs" / "commands.md").read_text("utf-8"), flags=re.MULTILINE
    )
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_command_has_an_example_under_its_own_heading(name: str, repository: Path) -> None:
    found = sections(repository)
    assert commands(name)
    for command in commands(name):
        example = rf"^(\$ |.* \| |.* && ){name} {command}\b"
        assert re.search(example, found.get(f"{name} {command}", ""), re.MULTILINE), f"{name} {command}"


def test_every_subcommand_of_mapping_has_an_example(repository: Path) -> None:
    group = program("vinaya-bridge")
    mapping = group.get_command(click.Context(group), "mapping")
    assert isinstance(mapping, click.Group)
    for command in mapping.commands:
        assert f"$ vinaya-bridge mapping {command}" in sections(repository)["vinaya-bridge mapping"]


def run(name: str, **variables: str) -> str:
    """What a program says to a shell that asks it."""
    done = subprocess.run(
        [Path(sys.executable).parent / name],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def variable(name: str) -> str:
    return f"_{name.upper().replace('-', '_')}_COMPLETE"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_program_says_how_a_shell_completes_it(name: str, shell: str) -> None:
    assert name in run(name, **{variable(name): f"{shell}_source"})


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_command_is_completed(name: str) -> None:
    said = run(name, COMP_WORDS=f"{name} ", COMP_CWORD="1", **{variable(name): "bash_complete"})
    assert {line.removeprefix("plain,") for line in said.splitlines()} >= set(commands(name))


def test_the_options_of_a_command_are_completed() -> None:
    words = {"COMP_WORDS": "vinaya-bridge convert --or", "COMP_CWORD": "2"}
    assert run("vinaya-bridge", **words, _VINAYA_BRIDGE_COMPLETE="bash_complete") == "plain,--origin\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_page_says_how_completion_is_set_up(name: str, repository: Path) -> None:
    assert f"{variable(name)}=bash_source {name}" in sections(repository)["Shell completion"]
