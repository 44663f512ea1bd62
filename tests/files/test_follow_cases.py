"""The tail cases of the reference data, as far as they concern reading: what each poll adds, and what it reports."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import orjson
import pytest

from vinaya_bridge.follow import Follower

CASES = [
    "01-rotated-and-already-bigger",
    "03-copytruncate-regrown",
    "05-slot-matches-the-glob",
    "07-fragment-welded-to-next-file",
    "09-poll-cuts-a-utf8-character",
    "13-empty-or-broken-state-file",
    "15-history-rewritten-in-place",
    "20-change-not-seen-by-the-watcher",
]


class Player:
    """Plays steps on real files; lines that come again are dropped by identity, as the tail does."""

    def __init__(self, case: Path, scene: Path) -> None:
        self.case, self.scene = case, scene
        self.state: bytes | None = None
        self.follower: Follower | None = None
        self.delivered: set[str] = set()
        self.now = 0.0
        (scene / "log").mkdir()

    def play(self, step: dict[str, object]) -> None:
        getattr(self, str(step["op"]))(step)

    def path(self, step: dict[str, object], key: str = "file") -> Path:
        path = self.scene / str(step[key])
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def data(self, step: dict[str, object]) -> bytes:
        return (self.case / str(step["data"])).read_bytes()

    def start(self, step: dict[str, object]) -> None:
        self.follower = Follower([self.scene / "log"], settle_seconds=5, state=self.state)

    def stop(self, step: dict[str, object]) -> None:
        assert self.follower is not None
        self.follower.close()

    def put(self, step: dict[str, object]) -> None:
        self.state = self.data(step)

    def write(self, step: dict[str, object]) -> None:
        with self.path(step).open("wb") as file:
            file.write(self.data(step))

    def append(self, step: dict[str, object]) -> None:
        with self.path(step).open("ab") as file:
            file.write(self.data(step))

    def append_keep_mtime(self, step: dict[str, object]) -> None:
        before = self.path(step).stat()
        self.append(step)
        os.utime(self.path(step), ns=(before.st_atime_ns, before.st_mtime_ns))

    def replace(self, step: dict[str, object]) -> None:
        beside = self.path(step).with_suffix(".tmp")
        beside.write_bytes(self.data(step))
        beside.replace(self.path(step))

    def rename(self, step: dict[str, object]) -> None:
        self.path(step, "src").replace(self.path(step, "dst"))

    def copy(self, step: dict[str, object]) -> None:
        shutil.copyfile(self.path(step, "src"), self.path(step, "dst"))

    def poll(self, step: dict[str, object]) -> None:
        assert self.follower is not None
        self.now += 1
        got = self.follower.poll(self.now)
        identities = [orjson.loads(line.record)["meta"]["event_id"] for line in got.lines]
        new = [each for each in dict.fromkeys(identities) if each not in self.delivered]
        assert new == step["new"]
        if step.get("gap"):
            assert got.gaps
        else:
            assert got.gaps == []
        self.delivered.update(new)
        self.state = self.follower.state()


@pytest.mark.parametrize("name", CASES)
def test_a_case_adds_what_is_right_in_each_poll(shared: Path, tmp_path: Path, name: str) -> None:
    case = shared / "cases" / name
    player = Player(case, tmp_path)
    for step in json.loads((case / "steps.json").read_bytes()):
        player.play(step)
    assert player.delivered
