"""Following files: one test for each hazard of the Vinaya files reference (section 12) that concerns files."""

from __future__ import annotations

import gzip
import json
import os
import resource
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from tests.support.modes import bound_by_modes
from vinaya_bridge.errors import Code
from vinaya_bridge.files import BAD_COMPRESSION, MISSING, NOT_A_LOG, UNREADABLE, Bucket
from vinaya_bridge.follow import Follower, Poll
from vinaya_bridge.gaps import BAD_STATE, CODES, LOST, REWRITTEN, ROTATED_PAST, TORN

SETTLE_SECONDS = 5.0
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


class Scene:
    """A log directory, a follower of it, and a clock that goes on by a second with each poll."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = 1000.0
        self.follower = self.new()
        self.last = Poll([], [], [], False)

    def new(
        self,
        *,
        state: bytes | None = None,
        from_now: bool = False,
        max_open: int = 256,
        poll_bytes: int = 1 << 20,
    ) -> Follower:
        return Follower(
            [self.root],
            settle_seconds=SETTLE_SECONDS,
            state=state,
            from_now=from_now,
            max_open=max_open,
            poll_bytes=poll_bytes,
        )

    def restart(self, *, state: bytes | None = None, max_open: int = 256, poll_bytes: int = 1 << 20) -> None:
        state = self.follower.state() if state is None else state
        self.follower.close()
        self.follower = self.new(state=state, max_open=max_open, poll_bytes=poll_bytes)

    def path(self, name: str) -> Path:
        path = self.root / f"{name}.ndjson"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def append(self, name: str, content: str) -> None:
        with self.path(name).open("ab") as file:
            file.write(content.encode())

    def write(self, name: str, content: str) -> None:
        """Cut a file and fill it again: the same inode."""
        with self.path(name).open("wb") as file:
            file.write(content.encode())

    def rotate(self, name: str = "7") -> None:
        self.path(name).replace(self.path(f"{name}.1"))

    def poll(self, seconds: float = 1.0) -> list[str]:
        self.now += seconds
        self.last = self.follower.poll(self.now)
        return [line.raw.decode() for line in self.last.lines]

    def poll_all(self, seconds: float = 1.0) -> tuple[list[str], int]:
        """Poll until there is no more; the lines, and how many polls it took."""
        lines, polls = self.poll(seconds), 1
        while self.last.more:
            lines += self.poll()
            polls += 1
        return lines, polls

    @property
    def gaps(self) -> list[Code]:
        return [gap.code for gap in self.last.gaps]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "logs")
    made.root.mkdir()
    yield made
    made.follower.close()


def descriptors(root: Path) -> list[Path]:
    """The files below a directory that this process holds open."""
    links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return [each.readlink() for each in links if each.readlink().is_relative_to(root)]


# --- framing


def test_hazard_1_an_unfinished_line_waits_for_its_end(scene: Scene) -> None:
    scene.append("7", "one\ntw")
    assert scene.poll() == ["one"]
    assert scene.poll() == []
    scene.append("7", "o")
    assert scene.poll() == []
    scene.append("7", "\nthree\n")
    assert scene.poll() == ["two", "three"]
    assert scene.gaps == []


def test_hazard_4_separators_of_unicode_do_not_cut_a_line(scene: Scene) -> None:
    text = "a\u2028b\u2029c\u0085d\ufeffe\u007f\r"
    scene.append("7", text + "\n")
    assert scene.poll() == [text]


def test_hazard_5_a_character_cut_by_a_poll_is_whole(scene: Scene) -> None:
    content = "😀\n".encode()
    scene.path("7").write_bytes(content[:2])
    assert scene.poll() == []
    scene.path("7").write_bytes(content)
    assert scene.poll() == ["😀"]


def test_hazard_6_a_line_longer_than_a_poll_is_whole_and_so_are_its_neighbours(scene: Scene) -> None:
    scene.restart(poll_bytes=1 << 10)
    scene.append("7", "one\n" + "x" * (9 << 20) + "\nthree\n")
    lines, _ = scene.poll_all()
    assert [len(line) for line in lines] == [3, 9 << 20, 5]


def test_hazard_6_a_long_line_that_grows_slowly_comes_when_it_ends(scene: Scene) -> None:
    scene.append("7", "x" * (9 << 20))
    assert scene.poll() == []
    for _ in range(3):
        scene.append("7", "y" * 100)
        assert scene.poll() == []
    scene.append("7", "\n")
    lines = scene.poll() + scene.poll()
    assert [len(line) for line in lines] == [(9 << 20) + 300]


def test_hazard_7_a_byte_order_mark_blank_lines_and_nul_bytes_stand_where_they_are(scene: Scene) -> None:
    scene.path("7").write_bytes(b"\xef\xbb\xbfone\r\n\n\0\0\n\xef\xbb\xbfx\n\0\0")
    scene.poll()
    assert [(line.number, line.offset, line.raw) for line in scene.last.lines] == [
        (1, 3, b"one\r"),
        (2, 8, b""),
        (3, 9, b"\0\0"),
        (4, 12, b"\xef\xbb\xbfx"),
    ]
    scene.restart()
    scene.append("7", "\n")
    scene.poll()
    assert [(line.number, line.offset, line.raw) for line in scene.last.lines] == [(5, 17, b"\0\0")]
    assert scene.gaps == []


# --- rotation and replacement


def test_hazard_8_a_rename_is_read_to_its_end_before_the_new_file(scene: Scene) -> None:
    scene.append("7", "one\n")
    assert scene.poll() == ["one"]
    scene.append("7", "two\n")
    scene.rotate()
    scene.append("7", "three\nfour\nfive\n")
    assert scene.poll() == ["two", "three", "four", "five"]
    assert [(line.name, line.number, line.bucket) for line in scene.last.lines[:2]] == [
        ("7.1.ndjson", 2, Bucket.SLOT),
        ("7.ndjson", 1, Bucket.LIVE),
    ]
    assert scene.gaps == []


def test_hazard_9_a_late_append_to_the_slot_is_read(scene: Scene) -> None:
    scene.append("7", "one\n")
    with scene.path("7").open("ab") as writer:
        assert scene.poll() == ["one"]
        scene.rotate()
        scene.append("7", "two\n")
        assert scene.poll() == ["two"]
        writer.write(b"late\n")
    assert scene.poll() == ["late"]
    assert scene.gaps == []


def test_hazard_9_a_late_append_to_a_removed_file_is_read_for_the_grace_time(scene: Scene) -> None:
    scene.append("7", "one\n")
    with scene.path("7").open("ab") as writer:
        assert scene.poll() == ["one"]
        scene.path("7").unlink()
        assert scene.poll() == []
        writer.write(b"late\n")
        writer.flush()
        assert scene.poll() == ["late"]
        assert scene.poll(seconds=60) == []
        writer.write(b"too late\n")
    assert scene.poll() == []
    assert scene.follower.lag().files == 0


def test_hazard_9_a_removed_queue_is_read_as_long_as_its_sender_may_hold_it(scene: Scene) -> None:
    scene.append("7.draining", "one\n")
    with scene.path("7.draining").open("ab") as writer:
        assert scene.poll() == ["one"]
        scene.path("7.draining").unlink()
        assert scene.poll() == []
        writer.write(b"late\n")
        writer.flush()
        assert scene.poll(seconds=100) == ["late"]
        assert scene.poll(seconds=100) == []
    assert (scene.follower.lag().files, scene.gaps) == (0, [])


def test_hazard_10_a_slot_that_is_there_at_the_first_start_is_read_before_the_live_file(scene: Scene) -> None:
    scene.append("7", "live\n")
    scene.append("7.1", "slot\n")
    scene.append("7.draining", "draining\n")
    scene.append("7.1.draining", "slot draining\n")
    scene.append("6", "other stream\n")
    assert scene.poll() == ["other stream", "slot draining", "draining", "slot", "live"]


def test_hazard_11_two_rotations_between_polls_lose_nothing_that_a_descriptor_holds_and_are_told(
    scene: Scene,
) -> None:
    scene.append("7", "a1\n")
    assert scene.poll() == ["a1"]
    scene.append("7", "a2\n")
    for content in ("b1\n", "c1\n"):
        scene.rotate()
        scene.append("7", content)
    assert scene.poll() == ["a2", "b1", "c1"]
    assert scene.gaps == [ROTATED_PAST]
    (gap,) = scene.last.gaps
    assert (gap.stream, gap.name, gap.offset, gap.line) == ("7", "7.ndjson", 3, 1)


def test_hazard_12_a_whole_generation_lost_between_polls_is_told(scene: Scene) -> None:
    scene.append("7", "a1\n")
    assert scene.poll() == ["a1"]
    for content in ("lost\n", "tiny\n", "d1\n"):
        scene.rotate()
        scene.append("7", content)
    assert scene.poll() == ["tiny", "d1"]
    assert scene.gaps == [ROTATED_PAST]


def test_hazard_12_a_generation_lost_while_there_was_no_live_file_is_told(scene: Scene) -> None:
    scene.append("7", "a1\n")
    assert scene.poll() == ["a1"]
    scene.rotate()
    assert scene.poll() == []
    for content in ("lost\n", "c1\n"):
        scene.append("7", content)
        scene.rotate()
    assert scene.poll() == ["c1"]
    assert scene.gaps == [ROTATED_PAST]


def test_one_rotation_after_another_with_polls_between_is_no_loss(scene: Scene) -> None:
    for number in range(5):
        scene.append("7", f"{number}\n")
        assert scene.poll() == [str(number)]
        scene.rotate()
        assert (scene.poll(), scene.gaps) == ([], [])


def test_hazard_13_a_new_file_with_an_old_inode_number_is_a_new_file(scene: Scene) -> None:
    for number in range(20):
        scene.append("7", f"{number} one\n{number} two\n")
        assert scene.poll() == [f"{number} one", f"{number} two"]
        scene.path("7").unlink()
        assert scene.poll() == []
        assert scene.poll(seconds=60) == []
        assert scene.gaps == []


def test_hazard_13_a_known_inode_under_another_name_with_other_content_is_another_file(scene: Scene) -> None:
    scene.append("7", "one\ntwo\n")
    assert scene.poll() == ["one", "two"]
    inode = scene.path("7").stat().st_ino
    scene.path("7").rename(scene.path("8"))
    scene.write("8", "eight\nnine\nten\n")
    scene.append("7", "one\ntwo\nthree\n")
    assert scene.path("8").stat().st_ino == inode
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["three", "eight", "nine", "ten"], [])


def test_hazard_14_a_file_whose_first_line_is_unfinished_is_told_from_another(scene: Scene) -> None:
    scene.append("7", "fir")
    assert scene.poll() == []
    scene.rotate()
    scene.append("7", "second\n")
    assert scene.poll() == ["second"]
    scene.append("7.1", "st\n")
    assert scene.poll() == ["first"]
    assert scene.gaps == []


@pytest.mark.parametrize("content", ["two\nthree\n", "two\nthree\nfour\nfive\nsix\n", "zero\n"])
def test_hazard_15_a_file_rewritten_in_place_is_read_again_and_told(scene: Scene, content: str) -> None:
    scene.append("7", "one\ntwo\nthree\n")
    assert scene.poll() == ["one", "two", "three"]
    scene.write("7", content)
    assert scene.poll() == content.split()
    assert scene.gaps == [REWRITTEN]
    assert scene.poll() == []
    assert scene.gaps == []


def test_hazard_15_a_rewrite_that_keeps_size_and_time_of_the_file_is_seen(scene: Scene) -> None:
    scene.append("7", "one\ntwo\n")
    before = scene.path("7").stat()
    assert scene.poll() == ["one", "two"]
    scene.write("7", "one\nsix\n")
    os.utime(scene.path("7"), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scene.poll() == ["one", "six"]
    assert scene.gaps == [REWRITTEN]


def test_hazard_15_the_whole_last_line_is_compared_however_long_it_is(scene: Scene) -> None:
    tail = "x" * 5000
    scene.append("7", f"one\na{tail}\n")
    scene.poll()
    scene.write("7", f"one\nb{tail}\nnew\n")
    assert scene.poll() == ["one", f"b{tail}", "new"]
    assert scene.gaps == [REWRITTEN]


def test_hazard_16_a_draining_file_that_is_cut_as_it_is_sent_is_no_loss(scene: Scene) -> None:
    scene.append("7.draining", "one\ntwo\nthree\n")
    assert scene.poll() == ["one", "two", "three"]
    scene.write("7.draining", "")
    assert (scene.poll(), scene.gaps) == ([], [])
    scene.write("7.draining", "two\nthree\n")
    assert (scene.poll(), scene.gaps) == (["two", "three"], [])
    scene.path("7.draining").unlink()
    assert (scene.poll(seconds=600), scene.gaps) == ([], [])


def test_hazard_16_an_empty_live_file_is_told_once_and_followed_on(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    scene.write("7", "")
    assert (scene.poll(), scene.gaps) == ([], [REWRITTEN])
    assert (scene.poll(), scene.gaps) == ([], [])
    scene.append("7", "two\n")
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_hazard_17_a_removed_file_is_drained_and_a_later_one_of_its_name_is_new(scene: Scene) -> None:
    scene.append("7", "one\n")
    assert scene.poll() == ["one"]
    scene.append("7", "two\n")
    scene.path("7").unlink()
    assert (scene.poll(), scene.gaps) == (["two"], [])
    scene.append("7", "three\n")
    assert (scene.poll(), scene.gaps) == (["three"], [])
    assert [(line.number, line.offset) for line in scene.last.lines] == [(1, 0)]


def test_hazard_18_roots_directories_and_files_that_appear_later_are_found(scene: Scene) -> None:
    shutil.rmtree(scene.root)
    assert scene.poll() == []
    assert [notice.code for notice in scene.last.notices] == [MISSING]
    assert scene.poll() == []
    assert scene.last.notices == []
    scene.append("acme-widget/7", "one\n")
    assert scene.poll() == ["one"]
    scene.append("other-repo/none", "two\n")
    assert scene.poll() == ["two"]


def test_hazard_19_a_rotation_while_stopped_is_read_on_in_the_slot(scene: Scene) -> None:
    scene.append("7", "one\n")
    assert scene.poll() == ["one"]
    scene.append("7", "two\n")
    scene.rotate()
    scene.append("7", "three\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["two", "three"], [])
    assert [line.number for line in scene.last.lines] == [2, 1]


def test_hazard_19_a_slot_overwritten_by_one_rotation_while_stopped_is_no_loss(scene: Scene) -> None:
    scene.append("7.1", "old\n")
    scene.append("7", "one\n")
    assert scene.poll() == ["old", "one"]
    scene.rotate()
    scene.append("7", "two\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_hazard_19_two_rotations_while_stopped_are_told_with_stream_and_last_position(scene: Scene) -> None:
    scene.append("7", "a1\na2\n")
    assert scene.poll() == ["a1", "a2"]
    for content in ("b1\n", "c1\n"):
        scene.rotate()
        scene.append("7", content)
    scene.restart()
    assert scene.poll() == ["b1", "c1"]
    (gap,) = scene.last.gaps
    assert (gap.stream, gap.name, gap.code, gap.offset, gap.line) == ("7", "7.ndjson", LOST, 6, 2)
    assert (scene.poll(), scene.gaps) == ([], [])


def test_hazard_19_a_live_file_removed_while_stopped_is_told(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    scene.path("7").unlink()
    scene.restart()
    assert (scene.poll(), scene.gaps) == ([], [LOST])


def test_hazard_20_a_file_larger_than_a_poll_is_read_in_order_and_before_newer_ones(scene: Scene) -> None:
    scene.restart(poll_bytes=1 << 16)
    expected = [f"{number:08}" for number in range(30_000)]
    scene.append("7.1", "".join(f"{line}\n" for line in expected))
    scene.append("7", "live\n")
    lines, polls = scene.poll_all()
    assert lines == [*expected, "live"]
    assert polls > 3
    assert scene.follower.lag().bytes_behind == 0


# --- copies, state, names


def test_a_copy_before_a_cut_is_read_on_and_nothing_is_lost_or_told(scene: Scene) -> None:
    for generation in range(3):
        scene.append("7", f"{generation} one\n")
        assert (scene.poll(), scene.gaps) == ([f"{generation} one"], [])
        scene.append("7", f"{generation} two\n")
        shutil.copyfile(scene.path("7"), scene.path("7.1"))
        scene.write("7", "")
        assert (scene.poll(), scene.gaps) == ([f"{generation} two"], [])


def test_a_copy_of_the_whole_tree_is_read_on_from_the_saved_position(scene: Scene) -> None:
    scene.append("a/7", "one\n")
    scene.append("a/7.1", "zero\n")
    scene.poll()
    copy = scene.root.with_name("copy")
    shutil.copytree(scene.root, copy)
    shutil.rmtree(scene.root)
    copy.rename(scene.root)
    scene.append("a/7", "two\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_a_file_system_that_was_away_for_a_while_is_read_on(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    away = scene.root.with_name("away")
    scene.root.rename(away)
    assert (scene.poll(), scene.gaps) == ([], [])
    assert (scene.poll(seconds=3600), scene.gaps) == ([], [])
    away.rename(scene.root)
    scene.append("7", "two\n")
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_an_unfinished_line_that_is_cut_off_is_told_and_never_joined_to_other_bytes(scene: Scene) -> None:
    scene.append("7", "one\nhalf")
    assert scene.poll() == ["one"]
    os.truncate(scene.path("7"), 4)
    assert (scene.poll(), scene.gaps) == ([], [TORN])
    scene.append("7", "two\n")
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_an_unfinished_first_line_that_is_replaced_is_told(scene: Scene) -> None:
    scene.append("7", "half")
    assert scene.poll() == []
    scene.write("7", "another line\n")
    assert (scene.poll(), scene.gaps) == (["another line"], [TORN])


def test_an_unfinished_first_line_is_found_again_after_a_restart(scene: Scene) -> None:
    scene.append("7", "half")
    scene.path("8").touch()
    assert scene.poll() == []
    scene.rotate()
    scene.append("7", "new\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["new"], [])
    scene.append("7.1", " and whole\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["half and whole"], [])


def test_an_unfinished_first_line_that_is_gone_after_a_restart_is_told(scene: Scene) -> None:
    scene.append("7", "half")
    scene.poll()
    scene.path("7").unlink()
    scene.append("7", "new\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["new"], [LOST])


def test_an_unfinished_line_of_a_removed_file_is_told_when_it_is_let_go(scene: Scene) -> None:
    scene.append("7", "one\nhalf")
    scene.poll()
    scene.path("7").unlink()
    assert (scene.poll(), scene.gaps) == ([], [])
    assert (scene.poll(seconds=60), scene.gaps) == ([], [TORN])
    assert scene.last.gaps[0].message == "an unfinished line of 4 bytes is gone"


def test_a_file_replaced_by_another_that_begins_alike_is_told(scene: Scene) -> None:
    scene.append("7", "one\ntwo\nsix\n")
    scene.poll()
    beside = scene.root / "7.tmp"
    beside.write_text("one\nsix\nten\n")
    beside.replace(scene.path("7"))
    assert (scene.poll(), scene.gaps) == (["one", "six", "ten"], [REWRITTEN])


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"{}",
        b'{"version":2,"files":[]}',
        b'{"version":1,"files":[{}]}',
        b'{"version":1,"files":[{"name":"7.ndjson","stream":"7","bucket":"","device":1,"inode":1,"size":9,'
        b'"position":{"offset":-5,"line":0,"first":null,"last":null}}]}',
        b'{"version":1,"files":[{"name":"7.ndjson","stream":"7","bucket":"?","device":1,"inode":1,"size":9,'
        b'"position":{"offset":0,"line":0,"first":null,"last":null}}]}',
        b'{"version":1,"files":[{"name":"7.ndjson","stream":"7","bucket":"","device":1,"inode":1,"size":9,'
        b'"position":{"offset":4,"line":1,"first":{"length":4,"sha256":""},"last":{"length":9,"sha256":""}}}]}',
    ],
)
def test_state_that_cannot_be_used_is_told_once_and_all_is_read_from_the_start(
    scene: Scene, state: bytes
) -> None:
    scene.append("7", "one\n")
    scene.poll()
    scene.restart(state=state)
    assert scene.poll() == ["one"]
    assert [notice.code for notice in scene.last.notices] == [BAD_STATE]
    assert scene.poll() == []
    assert scene.last.notices == []


def test_state_is_json_with_a_version_and_no_content_of_a_line(scene: Scene) -> None:
    scene.append("7", "a secret\n")
    scene.poll()
    state = scene.follower.state()
    assert json.loads(state)["version"] == 1
    assert b"secret" not in state


def test_an_older_state_gives_lines_again_and_misses_none(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    older = scene.follower.state()
    scene.append("7", "two\n")
    scene.rotate()
    scene.append("7", "three\n")
    assert scene.poll() == ["two", "three"]
    scene.restart(state=older)
    assert (scene.poll(), scene.gaps) == (["two", "three"], [])


def test_state_before_the_first_poll_is_the_state_that_was_given(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    scene.restart()
    scene.restart()
    assert scene.poll() == []


def test_state_survives_a_root_that_is_not_there_yet(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    away = scene.root.with_name("away")
    scene.root.rename(away)
    scene.restart()
    assert (scene.poll(), scene.gaps) == ([], [])
    scene.restart()
    away.rename(scene.root)
    scene.append("7", "two\n")
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_a_first_start_from_now_passes_over_what_is_there_and_nothing_later(scene: Scene) -> None:
    scene.append("7", "one\ntwo\nhal")
    scene.append("8", "unfinished")
    scene.path("9").touch()
    (scene.root / "10.ndjson.gz").write_bytes(gzip.compress(b"old\n"))
    scene.follower = scene.new(from_now=True)
    assert scene.poll(seconds=60) == []
    scene.append("7", "f\n")
    scene.append("8", "\n")
    scene.append("9", "nine\n")
    scene.append("11", "eleven\n")
    assert sorted(scene.poll()) == ["eleven", "half", "nine", "unfinished"]
    half = next(line for line in scene.last.lines if line.raw == b"half")
    assert (half.number, half.offset) == (None, 8)
    scene.append("7", "last\n")
    scene.restart()
    assert (scene.poll(), scene.gaps) == (["last"], [])


def test_hazard_31_a_rejected_file_gives_the_line_in_the_wrapper(scene: Scene) -> None:
    wrapper = json.dumps({"status": "invalid", "raw": '{"meta":1}'})
    scene.append("7.rejected", wrapper + "\n")
    assert scene.poll() == [wrapper]
    assert [line.record for line in scene.last.lines] == [b'{"meta":1}']


def test_hazard_38_what_is_no_regular_file_is_told_once_and_left_alone(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.path("link").symlink_to(scene.path("7"))
    os.mkfifo(scene.path("pipe"))
    scene.path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(scene.path("socket")))
        assert scene.poll() == ["one"]
    assert [(notice.name, notice.code) for notice in scene.last.notices] == [
        (f"{name}.ndjson", NOT_A_LOG) for name in ("folder", "link", "pipe", "socket")
    ]
    scene.poll()
    assert scene.last.notices == []


def test_hazard_44_nothing_in_the_tree_changes(scene: Scene) -> None:
    scene.append("a/7", "one\n")
    scene.append("a/7.1", "two\n")

    def tree() -> dict[str, tuple[int, int, int]]:
        found = sorted(scene.root.rglob("*"))
        return {
            os.fspath(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.stat().st_size)
            for path in found
        }

    before = tree()
    for _ in range(3):
        scene.poll()
        scene.restart()
    assert tree() == before


# --- what cannot be read for a while


@pytest.fixture
def shut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log directory, reached in a way that file modes below it decide over."""
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    Path("logs/a").mkdir(parents=True)
    return Path("logs")


def polled(follower: Follower, now: float) -> tuple[list[bytes], list[Code], list[Code]]:
    """The lines, gaps and notices of a poll by somebody whom file modes bind."""
    with bound_by_modes():
        poll = follower.poll(now)
    return (
        [line.raw for line in poll.lines],
        [gap.code for gap in poll.gaps],
        [notice.code for notice in poll.notices],
    )


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_hazard_39_a_file_without_permission_is_told_once_and_read_once_it_has_it(
    shut: Path, compress: Callable[[bytes], bytes]
) -> None:
    path = shut / ("7.ndjson" if compress is bytes else "7.ndjson.gz")
    path.write_bytes(compress(b"one\n"))
    path.chmod(0)
    follower = Follower([shut], settle_seconds=SETTLE_SECONDS)
    polls = [polled(follower, now) for now in (0, 10, 11, 20, 21)]
    assert [codes for _, _, codes in polls if codes] == [[UNREADABLE]]
    assert [poll[:2] for poll in polls] == [([], [])] * 5
    with bound_by_modes():
        state = follower.state()
    follower.close()
    path.chmod(0o644)
    follower = Follower([shut], settle_seconds=SETTLE_SECONDS, state=state)
    assert [line for now in (40, 50) for line in polled(follower, now)[0]] == [b"one"]
    follower.close()


def test_hazard_39_a_directory_that_cannot_be_listed_for_a_while_is_no_loss(shut: Path) -> None:
    for number in range(4):
        (shut / "a" / f"{number}.ndjson").write_bytes(b"one\nhalf")
    (shut / "a" / "5.ndjson.gz").write_bytes(gzip.compress(b"five\n"))
    follower = Follower([shut], settle_seconds=SETTLE_SECONDS, max_open=2)
    assert polled(follower, 0) == ([b"one"] * 4, [], [])
    (shut / "a").chmod(0)
    assert polled(follower, 1) == ([], [], [UNREADABLE])
    assert polled(follower, 600) == ([], [], [])
    for number in range(4):
        with (shut / "a" / f"{number}.ndjson").open("ab") as file:
            file.write(b" whole\n")
    (shut / "a").chmod(0o755)
    assert polled(follower, 601) == ([b"half whole"] * 4 + [b"five"], [], [])
    follower.close()


def test_hazard_43_a_descriptor_that_went_bad_is_told_and_the_file_is_opened_anew(scene: Scene) -> None:
    scene.append("7", "one\n")
    assert scene.poll() == ["one"]
    (growing,) = scene.follower._files.growing.values()
    cannot_be_read = os.open(scene.root / "other", os.O_WRONLY | os.O_CREAT)
    os.dup2(cannot_be_read, growing.descriptor)
    os.close(cannot_be_read)
    scene.append("7", "two\n")
    assert scene.poll() == []
    assert [notice.code for notice in scene.last.notices] == [UNREADABLE]
    assert (scene.poll(), scene.gaps) == (["two"], [])


def test_a_loss_is_told_also_while_another_root_is_missing(scene: Scene, tmp_path: Path) -> None:
    roots = [scene.root, tmp_path / "outbox"]
    scene.append("7", "one\n")
    follower = Follower(roots, settle_seconds=5)
    follower.poll(0)
    follower.close()
    scene.path("7").unlink()
    follower = Follower(roots, settle_seconds=5, state=follower.state())
    assert [(gap.name, gap.code) for gap in follower.poll(1).gaps] == [("7.ndjson", LOST)]
    follower.close()


def test_state_does_not_grow_with_every_start_while_a_root_is_missing(scene: Scene, tmp_path: Path) -> None:
    scene.append("7", "one\n")
    scene.append("8", "unfinished")
    (scene.root / "9.ndjson.gz").write_bytes(gzip.compress(b"nine\n"))
    state: bytes | None = None
    sizes = []
    for start in range(4):
        follower = Follower([scene.root, tmp_path / "outbox"], settle_seconds=0, state=state)
        follower.poll(start)
        state = follower.state()
        follower.close()
        sizes.append(len(json.loads(state)["files"]))
    assert sizes == [3] * 4


def test_more_files_than_the_process_may_open_are_all_followed(scene: Scene) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    names = [f"{number:03}" for number in range(100)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        scene.restart()
        for content in ("one", "two"):
            for name in names:
                scene.append(name, f"{content}\n")
            assert scene.poll() == [content] * 100
            assert scene.last.notices == []
        assert len(descriptors(scene.root)) == 32
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- compressed files, descriptors, lag


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_compressed_file_is_read_once_when_it_has_settled(scene: Scene, suffix: str) -> None:
    compress = COMPRESSORS[suffix]
    path = scene.root / f"7.1.ndjson{suffix}"
    stored = compress(b"one\ntwo")
    path.write_bytes(stored[:10])
    assert (scene.poll(), scene.poll()) == ([], [])
    path.write_bytes(stored)
    assert (scene.poll(), scene.poll()) == ([], [])
    assert not scene.follower.caught_up(scene.now + 60)
    assert scene.poll(seconds=SETTLE_SECONDS) == ["one", "two"]
    assert [(line.number, line.ended) for line in scene.last.lines] == [(1, True), (2, False)]
    assert scene.poll(seconds=SETTLE_SECONDS) == []
    scene.restart()
    assert (scene.poll(), scene.poll(seconds=SETTLE_SECONDS)) == ([], [])
    path.write_bytes(compress(b"three\n"))
    assert (scene.poll(), scene.poll(seconds=SETTLE_SECONDS)) == ([], ["three"])


def test_a_compressed_file_larger_than_a_poll_is_read_in_parts(scene: Scene) -> None:
    expected = [f"{number:08}" for number in range(100_000)]
    path = scene.root / "7.ndjson.gz"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in expected).encode()))
    scene.restart(poll_bytes=1 << 17)
    scene.poll()
    lines = scene.poll(seconds=SETTLE_SECONDS)
    path.unlink()
    rest, polls = scene.poll_all()
    assert (lines + rest, scene.gaps) == (expected, [])
    assert polls > 1
    scene.poll()
    assert scene.follower.lag().files == 0


def test_a_compressed_file_that_is_broken_or_gone_before_it_is_read_is_told(scene: Scene) -> None:
    (scene.root / "7.ndjson.gz").write_bytes(gzip.compress(b"one\n")[:-3])
    (scene.root / "8.ndjson.gz").write_bytes(gzip.compress(b"one\n"))
    scene.poll()
    (scene.root / "8.ndjson.gz").unlink()
    assert scene.poll(seconds=SETTLE_SECONDS) == ["one"]
    assert [notice.code for notice in scene.last.notices] == [BAD_COMPRESSION]
    assert [(gap.name, gap.code) for gap in scene.last.gaps] == [("8.ndjson.gz", LOST)]


def test_a_compressed_file_gone_while_stopped_is_a_loss_only_where_it_was_not_read(scene: Scene) -> None:
    (scene.root / "7.ndjson.gz").write_bytes(gzip.compress(b"one\n"))
    scene.poll()
    assert scene.poll(seconds=SETTLE_SECONDS) == ["one"]
    (scene.root / "8.ndjson.gz").write_bytes(gzip.compress(b"one\n"))
    scene.poll()
    for name in ("7", "8"):
        (scene.root / f"{name}.ndjson.gz").unlink()
    scene.restart()
    scene.poll()
    assert [(gap.name, gap.code) for gap in scene.last.gaps] == [("8.ndjson.gz", LOST)]


def test_more_files_than_descriptors_are_all_followed(scene: Scene) -> None:
    scene.restart(max_open=3)
    names = [f"{number:02}" for number in range(20)]
    for _ in range(3):
        for name in names:
            scene.append(name, f"{name}\n")
        assert scene.poll() == names
        assert len(descriptors(scene.root)) == 3
    for name in names:
        scene.rotate(name)
        scene.append(name, f"{name} new\n")
    assert scene.poll() == [f"{name} new" for name in names]
    assert scene.gaps == []
    scene.path("00").unlink()
    scene.path("00.1").unlink()
    scene.poll()
    assert scene.gaps == [LOST]


def test_closing_gives_every_descriptor_back(scene: Scene) -> None:
    scene.append("7", "one\n")
    scene.poll()
    assert len(descriptors(scene.root)) == 1
    scene.follower.close()
    assert descriptors(scene.root) == []


def test_lag_counts_streams_files_and_bytes_that_are_not_delivered(scene: Scene) -> None:
    scene.append("7", "one\nhalf")
    scene.append("7.1", "zero\n")
    scene.append("8", "x\n")
    scene.poll()
    lag = scene.follower.lag()
    assert (lag.streams, lag.files, lag.bytes_behind) == (2, 3, 4)


def test_a_follower_has_caught_up_when_no_line_came_for_the_settle_time(scene: Scene) -> None:
    assert not scene.follower.caught_up(scene.now)
    scene.append("7", "one\n")
    scene.poll()
    assert not scene.follower.caught_up(scene.now)
    scene.poll(seconds=SETTLE_SECONDS)
    assert scene.follower.caught_up(scene.now)
    scene.append("7", "two\n")
    scene.poll()
    assert not scene.follower.caught_up(scene.now)


def test_equal_names_under_two_roots_are_two_streams(scene: Scene, tmp_path: Path) -> None:
    for place in ("x", "y"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "7.ndjson").write_text(f"{place}\n")
    follower = Follower([tmp_path / "x", tmp_path / "y"], settle_seconds=5)
    lines = follower.poll(0).lines
    follower.close()
    assert [(line.name, line.stream, line.raw) for line in lines] == [
        ("7.ndjson", "7", b"x"),
        ("y/7.ndjson", "y/7", b"y"),
    ]


def test_a_root_that_is_a_file_is_followed_over_a_rotation(scene: Scene) -> None:
    scene.append("7", "one\n")
    follower = Follower([scene.path("7")], settle_seconds=5)
    assert [line.raw for line in follower.poll(0).lines] == [b"one"]
    scene.append("7", "two\n")
    scene.rotate()
    scene.append("7", "three\n")
    assert [line.raw for line in follower.poll(1).lines] == [b"two", b"three"]
    follower.close()


def test_every_code_of_a_loss_has_a_page() -> None:
    assert len({code.id for code in CODES}) == len(CODES)
    assert all(code.id.startswith("VB32") and len(code.page) > 80 for code in CODES)
