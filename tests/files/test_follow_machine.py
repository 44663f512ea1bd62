"""A model of writers and of what may happen to their files, against the follower, on real files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vinaya_bridge.follow import Follower

GRACE_SECONDS = 5.0
COUNTS = st.integers(min_value=1, max_value=3)


def act(number: st.SearchStrategy[int]) -> Callable[[Callable[[Files, int], None]], Callable[..., None]]:
    """Make a rule of something that happens with some number, and with a poll right behind it or not."""

    def decorate(function: Callable[[Files, int], None]) -> Callable[..., None]:
        @wraps(function)
        def happen(self: Files, *, number: int, look: bool) -> None:
            function(self, number)
            if look:
                self.every_whole_line_is_noted()
                self.poll(1.0)

        return rule(number=number, look=st.booleans())(happen)

    return decorate


class Files(RuleBasedStateMachine):
    """
    One stream with its live file and its slot.

    The model knows every line that ever stood whole in a file. After a poll, each of them has been delivered, or
    cannot be read any more and a gap was reported with it, or was lost without a trace (``untraceable``): in a file
    that no poll had seen, or in one that nothing was consumed of.
    """

    @initialize()
    def begin(self) -> None:
        self.scratch = tempfile.TemporaryDirectory()
        self.root = Path(self.scratch.name)
        self.live = self.root / "7.ndjson"
        self.slot = self.root / "7.1.ndjson"
        self.counter = 0
        self.now = 0.0
        self.whole: set[bytes] = set()
        self.delivered: set[bytes] = set()
        self.untraceable: set[bytes] = set()
        self.told: set[bytes] = set()
        self.held: set[bytes] = set()  # of removed files, by nothing but a descriptor
        self.seen: dict[int, bool] = {}  # inode seen by the last poll: whether a line of it was consumed
        self.is_stream_known = False  # whether a generation that is passed over would be missed
        self.states: list[bytes] = []
        self.was_restarted = self.was_copied = False
        self.follower = Follower([self.root], settle_seconds=5, grace_seconds=GRACE_SECONDS)

    def teardown(self) -> None:
        if hasattr(self, "follower"):
            self.follower.close()
            self.scratch.cleanup()

    # --- what is on disk

    def lines_in(self, path: Path) -> set[bytes]:
        return set(path.read_bytes().split(b"\n")[:-1]) if path.exists() else set()

    def new_lines(self, count: int) -> bytes:
        made = [b"%06d" % number for number in range(self.counter, self.counter + count)]
        self.counter += count
        return b"".join(line + b"\n" for line in made)

    def append(self, path: Path, content: bytes) -> None:
        with path.open("ab") as file:
            file.write(content)

    def lose(self, path: Path, *, is_removed: bool) -> None:
        """Note what is about to vanish and could not be missed by anyone who looks only at polls."""
        if not path.exists():
            return
        inode = path.stat().st_ino
        is_known = inode in self.seen if is_removed else self.seen.get(inode, False)
        if is_removed:
            self.seen.pop(inode, None)  # the number may be given to another file
        # A descriptor would have held these, but a restart loses it: late lines of a slot, whose removal is usual,
        # and a file that was cut behind a copy, since the copy stands for it.
        unheld = self.lines_in(path) if path == self.slot or self.was_copied else set()
        if not is_known or (is_removed and self.was_restarted):
            self.untraceable |= (unheld if is_known else self.lines_in(path)) - self.delivered
        elif is_removed:
            self.held |= unheld
        if not is_known and path == self.slot and is_removed:
            # It was the only trace of the generations that were rotated away before it.
            self.untraceable |= self.whole - self.delivered - self.lines_in(self.live)

    # --- what writers and others do

    @act(COUNTS)
    def append_lines(self, count: int) -> None:
        self.append(self.live, self.new_lines(count))

    @act(st.just(0))
    def append_a_part_of_a_line(self, _: int) -> None:
        self.append(self.live, b"%06d-par" % self.counter)
        self.counter += 1

    @act(st.just(0))
    def end_the_line(self, _: int) -> None:
        self.append(self.live, b"-" + self.new_lines(1))

    @precondition(lambda self: self.slot.exists())
    @act(COUNTS)
    def append_late_to_the_slot(self, count: int) -> None:
        self.append(self.slot, self.new_lines(count))

    @precondition(lambda self: self.live.exists())
    @act(st.integers(min_value=0, max_value=3))
    def rotate(self, count: int) -> None:
        self.rotate_once(count)

    @precondition(lambda self: self.live.exists())
    @act(COUNTS)
    def rotate_several_times(self, count: int) -> None:
        for _ in range(1 + count):
            self.rotate_once(count)

    def rotate_once(self, count: int) -> None:
        # A slot that no poll saw is missed all the same, save in a stream of which nothing was ever seen.
        if not self.is_stream_known or (self.slot.exists() and self.slot.stat().st_ino in self.seen):
            self.lose(self.slot, is_removed=True)
        self.live.replace(self.slot)
        self.every_whole_line_is_noted()
        if count:
            self.append(self.live, self.new_lines(count))

    @precondition(lambda self: self.live.exists())
    @act(st.integers(min_value=0, max_value=4))
    def cut_and_refill(self, count: int) -> None:
        self.lose(self.live, is_removed=False)
        with self.live.open("wb") as file:
            file.write(self.new_lines(count))

    @precondition(lambda self: self.live.exists())
    @act(COUNTS)
    def copy_and_cut(self, count: int) -> None:
        # Copied to a temporary name first: a copy over the slot would be a second event on the same inode.
        self.lose(self.slot, is_removed=True)
        self.untraceable |= self.lines_in(self.slot) - self.delivered
        beside = self.root / "7.tmp"
        shutil.copyfile(self.live, beside)
        beside.replace(self.slot)
        with self.live.open("wb") as file:
            file.write(self.new_lines(count))
        self.was_copied = True
        if self.live.stat().st_ino in self.seen:
            self.seen[self.live.stat().st_ino] = False  # a content of its own, of which nothing was consumed

    @precondition(lambda self: len(self.lines_in(self.live)) > 2)
    @act(st.integers(min_value=0, max_value=5))
    def rewrite_without_one_line(self, count: int) -> None:
        self.lose(self.live, is_removed=False)
        lines = self.live.read_bytes().splitlines(keepends=True)
        dropped = lines.pop(count % 2)
        self.untraceable |= {
            dropped.rstrip(b"\n")
        } - self.delivered  # it may stand behind all that was consumed
        with self.live.open("wb") as file:
            file.write(b"".join(lines) + self.new_lines(count))

    @precondition(lambda self: self.live.exists())
    @act(COUNTS)
    def replace_by_another_file(self, count: int) -> None:
        self.lose(self.live, is_removed=True)
        beside = self.root / "7.tmp"
        beside.write_bytes(self.new_lines(count))
        beside.replace(self.live)

    @precondition(lambda self: self.live.exists() or self.slot.exists())
    @act(st.integers(min_value=0, max_value=1))
    def remove(self, is_slot: int) -> None:
        path = self.slot if is_slot and self.slot.exists() else self.live
        self.lose(path, is_removed=True)
        path.unlink(missing_ok=True)

    # --- what the follower does

    @act(st.integers(min_value=0, max_value=1))
    def restart(self, old: int) -> None:
        state = (self.states[0] if old else self.states[-1]) if self.states else None
        self.untraceable |= self.held - self.delivered
        if old or state is None:
            present = self.lines_in(self.live) | self.lines_in(self.slot)
            self.untraceable |= self.whole - self.delivered - present
            self.seen = {}
            self.is_stream_known = False
            self.states = self.states[:1]
        elif self.live.exists():
            # Of an empty file nothing but its inode number is known, and that may be given to another.
            self.is_stream_known &= self.seen.get(self.live.stat().st_ino, False)
        self.follower.close()
        self.follower = Follower([self.root], settle_seconds=5, grace_seconds=GRACE_SECONDS, state=state)
        self.was_restarted = True

    @rule(seconds=st.sampled_from([1.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.poll(seconds)

    def poll(self, seconds: float) -> None:
        self.now += seconds
        got = self.follower.poll(self.now)
        assert not got.more
        assert got.notices == []
        lines = {line.raw for line in got.lines}
        assert lines <= self.whole
        self.delivered |= lines
        present = self.lines_in(self.live) | self.lines_in(self.slot)
        assert present <= self.delivered
        lost = self.whole - self.delivered - self.untraceable - self.told
        assert got.gaps or not lost
        self.told |= lost
        self.seen = {
            path.stat().st_ino: bool(self.lines_in(path)) for path in (self.live, self.slot) if path.exists()
        }
        self.is_stream_known = bool(self.seen)
        self.held = set()
        self.states.append(self.follower.state())
        self.was_restarted = self.was_copied = False

    @invariant()
    def every_whole_line_is_noted(self) -> None:
        if hasattr(self, "root"):
            self.whole |= self.lines_in(self.live) | self.lines_in(self.slot)


TestFiles = Files.TestCase
TestFiles.settings = settings(max_examples=200, stateful_step_count=25, deadline=None)
