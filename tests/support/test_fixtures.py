"""The small logs under fixtures/ are what their stories say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.strategies import dump
from vinaya_bridge.inputs import Intake
from vinaya_bridge.log import Reader
from vinaya_bridge.log.families import FAMILIES

STORIES = {
    "cancelled-loop": (18, 0, 0, 0),
    "child-process": (17, 0, 0, 0),
    "custom-events": (7, 0, 0, 0),
    "green-in-two-rounds": (40, 0, 0, 0),
    "pause-and-resume": (33, 0, 0, 0),
    "rotated-queue": (14, 1, 0, 0),
    "schema-1-log": (15, 0, 0, 0),
    "torn-file": (7, 3, 1, 1),
    "usage-limits": (33, 0, 0, 0),
}
"""Each story with its events, refused pieces, unknown versions and unfinished lines."""


def read(folder: Path) -> Intake:
    intake = Intake([folder / "in"], Reader())
    assert all(line.identity for line in intake)
    return intake


@pytest.mark.parametrize("story", STORIES)
def test_a_story_holds_the_lines_that_it_tells_of(repository: Path, story: str) -> None:
    intake = read(repository / "fixtures" / story)
    assert (intake.events, intake.refused, intake.unknown_versions, intake.pending) == STORIES[story]
    assert intake.notices == []


def test_every_story_says_what_it_shows(repository: Path) -> None:
    folders = {path.name for path in (repository / "fixtures").iterdir() if (path / "in").is_dir()}
    assert folders >= STORIES.keys()
    assert all((repository / "fixtures" / name / "README.md").read_text(encoding="utf-8") for name in folders)


@pytest.mark.parametrize("story", sorted(STORIES.keys() - {"torn-file", "rotated-queue"}))
def test_the_lines_of_a_story_are_written_as_the_producer_writes_them(repository: Path, story: str) -> None:
    for path in (repository / "fixtures" / story / "in").rglob("*.ndjson"):
        lines = path.read_bytes().split(b"\n")
        assert lines.pop() == b""
        for line in lines:
            value = json.loads(line)
            assert list(value)[:3] == ["meta", "subject", "kind"]
            assert dump(value).replace(b"1.5e-06", b"0.0000015") == line


def test_the_stories_together_tell_of_nearly_every_event(repository: Path) -> None:
    told = {(line.kind, line.event) for line in Intake([repository / "fixtures"], Reader())}
    assert set(FAMILIES) - told == {("effect", "attempted"), ("effect", "observed")}
