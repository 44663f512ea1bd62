"""Log directories that grow: every complete line once it is there, and every loss that can be known."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from vinaya_bridge.content import Compression
from vinaya_bridge.files import Bucket, Notice
from vinaya_bridge.followed import FollowedFiles
from vinaya_bridge.gaps import BAD_STATE, LOST, REWRITTEN, TORN, Gap, gap_at, loss
from vinaya_bridge.growing import Change, FollowedLine, GrowingFile
from vinaya_bridge.lines import MAX_LINE_BYTES
from vinaya_bridge.listing import Key, Listed, Roots
from vinaya_bridge.positions import (
    Mark,
    Position,
    SavedFile,
    StateError,
    decode_state,
    encode_state,
    end_position,
)
from vinaya_bridge.sealed import SealedFile

_DRAINING: Final = (Bucket.DRAINING, Bucket.SLOT_DRAINING)
_DRAINING_GRACE_SECONDS: Final = 120.0  # a sender may hold its lock so long (section 6)
_LEAST_READ_BYTES: Final = 1 << 16


@frozen
class Poll:
    """
    What one look at the files gave.

    Args:
        lines: Complete lines, stream by stream, within a stream the oldest file first.

        gaps: Losses found in this poll.

        notices: What is wrong with an input since this poll; a fault that stays is told once.

        more: Whether there is more to read at once, because this poll reached its limit.
    """

    lines: list[FollowedLine]
    gaps: list[Gap]
    notices: list[Notice]
    more: bool


@frozen
class Lag:
    """
    How far the follower is behind, as of the last poll.

    Args:
        streams: The number of streams that have a file.

        files: The number of files that are followed.

        bytes_behind: The bytes seen and not yet delivered, unfinished lines included.
    """

    streams: int
    files: int
    bytes_behind: int


class Follower:
    """
    Follows the log files under some roots, through rotation, rewriting, removal and restarts.

    Vinaya files reference, sections 12 and 13, as the design (section 7) corrects it. A file is known by its
    content: the marks of its first line and of the whole last line consumed. A descriptor stays open over a
    rename and, for a grace time, over a removal. Where content does not match, a file is read again from its
    start; dropping what came before is left to the identity of lines. Nothing is written and no time but an
    access time changes.

    What cannot be seen: content that came and went between two polls and left no trace; a change between the
    first and the last consumed line that moves neither.

    A line may come again, above all after a restart. A line that was once complete and can still be read
    comes at least once. A caller takes the lines of a poll, makes them durable, then saves `state`.

    Args:
        roots: Files and directories. They need not exist yet; what appears later is found.

        settle_seconds: How long a compressed file must not have changed before it is read, and how long all
            must have been quiet before `caught_up` says so.

        grace_seconds: How long a removed file is still read through its open descriptor; 120 at least for a
            file that is being sent.

        state: What `state` gave in an earlier run, or None for a first start. It is never trusted blindly:
            what is not usable leads to a notice and a start from the beginning.

        from_now: Whether a first start passes over the complete lines that are there.

        exclude: A directory that is not searched, such as the output.

        max_open: How many descriptors to hold: see `FollowedFiles`.

        poll_bytes: About how many bytes one poll reads.

        max_line_bytes: How long a line may be; a longer one is passed over, and is a gap.
    """

    def __init__(
        self,
        roots: Sequence[str | Path],
        *,
        settle_seconds: float,
        grace_seconds: float = 5.0,
        state: bytes | None = None,
        from_now: bool = False,
        exclude: Path | None = None,
        max_open: int = 256,
        poll_bytes: int = 4 << 20,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._roots = Roots(roots, exclude=exclude)
        self._settle_seconds = settle_seconds
        self._grace_seconds = grace_seconds
        self._poll_bytes = poll_bytes
        self._max_line_bytes = max_line_bytes
        self._skip_present = from_now and state is None
        self._files = FollowedFiles(max_open)
        self._sealed: dict[Key, SealedFile] = {}
        self._pending: list[SavedFile] = []  # of the saved state, and not yet found again
        self._state_fault: Notice | None = None
        self._more = False
        self._active_at: float | None = None
        if state is not None:
            try:
                self._pending = decode_state(state)
            except StateError as error:
                self._state_fault = Notice("state", BAD_STATE, f"the saved position {error}")

    def poll(self, now: float) -> Poll:
        """
        Look at all files once.

        Args:
            now: The time, in seconds; only differences matter.

        Returns:
            The complete lines that were not delivered before, the losses and the faults found. It never
            raises for what a file or directory does.
        """
        notices = [] if self._state_fault is None else [self._state_fault]
        self._state_fault = None
        listing, faults = self._roots.list_files()
        self._files.faults += faults
        live = {each.file.stream for each in self._files.growing.values() if each.is_linked_live}
        live |= {saved.stream for saved in self._pending if saved.bucket == Bucket.LIVE.value}
        vanished, new = self._match(listing, now)
        positions = self._files.known_positions(self._pending)
        gaps = self._identify(listing, positions)
        self._skip_present = False
        rotated_in = {
            each.file.stream for each in new if each.file.bucket is Bucket.SLOT and not each.is_resumed
        }
        gaps += self._vanished_gaps(vanished, new, rotated_in, live)
        gaps += self._drop_sealed(listing)
        gaps += self._pending_gaps(listing, rotated_in, live)
        lines = self._read(listing, positions, gaps, now)
        self._drop(gaps, now)
        self._files.faults += [each.fault for each in self._sealed.values() if each.fault is not None]
        if lines or self._active_at is None:
            self._active_at = now
        return Poll(lines, gaps, notices + self._files.take_new_faults(), self._more)

    def state(self) -> bytes:
        """
        Describe where the last poll ended.

        Returns:
            A JSON object for the ``state`` of a later follower.
        """
        kept = (each for each in self._files.growing.values() if each.missing_since is None or each.has_rest)
        return encode_state(
            [
                *(each.saved() for each in kept),
                *(each.saved() for each in self._sealed.values()),
                *self._pending,
            ]
        )

    def lag(self) -> Lag:
        """
        Count what is followed and what is not delivered yet.

        Returns:
            The figures as of the last poll.
        """
        files: list[GrowingFile | SealedFile] = [*self._files.growing.values(), *self._sealed.values()]
        return Lag(
            streams=len({each.file.stream for each in files}),
            files=len(files),
            bytes_behind=sum(each.rest_bytes for each in files),
        )

    def caught_up(self, now: float) -> bool:
        """
        Tell whether all that is there was delivered and the writers have been quiet.

        Args:
            now: The time, in seconds.

        Returns:
            Whether nothing readable was left by the last poll and no line came for the settle time.
        """
        if self._more or self._active_at is None or any(not each.done for each in self._sealed.values()):
            return False
        return now - self._active_at >= self._settle_seconds

    def close(self) -> None:
        """Give all descriptors back. The state stays available."""
        self._files.close()

    def _match(self, listing: dict[Key, Listed], now: float) -> tuple[list[GrowingFile], list[GrowingFile]]:
        """Bring names up to date; return the files whose names are gone, and those that were not there before."""
        vanished: list[GrowingFile] = []
        for key, growing in self._files.growing.items():
            if key in listing or growing.missing_since is not None:
                continue
            if not self._roots.is_hidden(growing.file.place):
                growing.missing_since = now
                vanished.append(growing)
        new: list[GrowingFile] = []
        for key, listed in listing.items():
            if key in self._files.growing:
                self._files.growing[key].file = listed.file
                self._files.growing[key].missing_since = None
            elif key in self._sealed:
                self._sealed[key].file = listed.file
                self._sealed[key].observe(listed.status, now)
            elif listed.file.compression is Compression.NONE:
                self._files.growing[key] = GrowingFile(listed.file, max_line_bytes=self._max_line_bytes)
                new.append(self._files.growing[key])
            else:
                self._sealed[key] = SealedFile(
                    listed.file,
                    listed.status,
                    now,
                    done=self._was_read(listed),
                    max_line_bytes=self._max_line_bytes,
                )
        return vanished, new

    def _was_read(self, listed: Listed) -> bool:
        status = listed.status
        now = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return self._skip_present or any(
            (saved.device, saved.inode, saved.size, saved.modified_ns) == now for saved in self._pending
        )

    def _identify(self, listing: dict[Key, Listed], positions: dict[Mark, list[Position]]) -> list[Gap]:
        """Find, for each file that is not known yet, the position up to which its content was consumed."""
        gaps: list[Gap] = []
        for key, growing in self._files.growing.items():
            listed = listing.get(key)
            if growing.fingerprint is not None or (listed is None and not growing.is_open):
                continue
            before = growing.saved()
            try:
                status = os.fstat(growing.descriptor) if listed is None else listed.status
                if not growing.is_due(status):
                    continue
                growing.note(status)
                # An empty file is opened too: it may be removed together with its first lines.
                descriptor = self._files.descriptor(growing)
                if self._skip_present:
                    position = end_position(descriptor, status.st_size)
                    growing.fingerprint = position.first
                    growing.restart(position)
                else:
                    self._files.resume(growing, positions)
                if (
                    before.part
                    and not before.part.is_at(descriptor, 0)
                    and not self._files.has_part(before.part)
                ):
                    gaps.append(gap_at(before, TORN))
            except OSError as error:
                self._files.fail(growing, error)
        return gaps

    def _vanished_gaps(
        self, vanished: list[GrowingFile], new: list[GrowingFile], rotated_in: set[str], live: set[str]
    ) -> Iterator[Gap]:
        for growing in vanished:
            if self._files.is_carried(growing.position, without=growing):
                continue
            replaced = any(
                each.file.name == growing.file.name and each.fingerprint == growing.fingerprint is not None
                for each in new
            )
            code = loss(growing.saved(), rotated_in, live, is_open=growing.is_open, is_replaced=replaced)
            if code is not None:
                yield gap_at(growing.saved(), code)

    def _pending_gaps(
        self, listing: dict[Key, Listed], rotated_in: set[str], live: set[str]
    ) -> Iterator[Gap]:
        """Judge the files of the saved state that were not found again, once they cannot be where they were."""
        pending, self._pending = self._pending, []
        for saved in pending:
            if self._is_found(saved, listing):
                continue
            if self._roots.may_come_back(saved.place):
                self._pending.append(saved)
                continue
            if saved.modified_ns is not None:
                continue
            code = loss(saved, rotated_in, live, is_open=False, is_replaced=False)
            if code is not None:
                yield gap_at(saved, code)
            self._files.remember(saved.position)

    def _is_found(self, saved: SavedFile, listing: dict[Key, Listed]) -> bool:
        if saved.position.first is not None:
            return self._files.is_carried(saved.position)
        if saved.part is not None:
            return self._files.has_part(saved.part)
        # By inode where nothing of its content is known (hazard 14).
        return (saved.device, saved.inode) in listing

    def _read(
        self,
        listing: dict[Key, Listed],
        positions: dict[Mark, list[Position]],
        gaps: list[Gap],
        now: float,
    ) -> list[FollowedLine]:
        """Read all files that changed, in order, up to the limit of a poll."""
        due: list[tuple[GrowingFile, os.stat_result] | SealedFile] = [
            *self._due_growing(listing),
            *(
                each
                for key, each in self._sealed.items()
                if (key in listing or each.behind) and each.is_due(now, self._settle_seconds)
            ),
        ]
        due.sort(key=_reading_order)
        lines: list[FollowedLine] = []
        rest = self._poll_bytes
        self._more = False
        for each in due:
            if isinstance(each, SealedFile):
                got = each.read(rest, now)
                gaps += each.take_gaps()
                behind = each.behind
            else:
                got = self._read_growing(*each, positions, gaps, max(rest, _LEAST_READ_BYTES))
                gaps += each[0].take_gaps()
                behind = each[0].behind
            lines += got
            rest -= sum(len(line.raw) + 1 for line in got)
            if behind or rest <= 0:  # nothing newer is read before the rest of this one
                self._more = True
                break
        return lines

    def _due_growing(self, listing: dict[Key, Listed]) -> Iterator[tuple[GrowingFile, os.stat_result]]:
        for key, growing in self._files.growing.items():
            listed = listing.get(key)
            if growing.fingerprint is None or (listed is None and not growing.is_open):
                continue
            try:
                status = os.fstat(growing.descriptor) if listed is None else listed.status
            except OSError as error:
                self._files.fail(growing, error)
                continue
            if growing.is_due(status):
                yield growing, status

    def _read_growing(
        self,
        growing: GrowingFile,
        status: os.stat_result,
        positions: dict[Mark, list[Position]],
        gaps: list[Gap],
        limit: int,
    ) -> list[FollowedLine]:
        growing.note(status)
        try:
            self._files.descriptor(growing)
            change = growing.check()
            if change is Change.CUT:
                gaps.append(gap_at(growing.saved(), TORN))
            elif change is Change.REWRITTEN:
                gaps += self._rewritten(growing, positions)
            return growing.read(limit) if growing.fingerprint is not None else []
        except OSError as error:
            self._files.fail(growing, error)
            return []

    def _rewritten(self, growing: GrowingFile, positions: dict[Mark, list[Position]]) -> list[Gap]:
        """Start over in a file whose content is another; say so unless it is known that nothing is lost."""
        before = growing.saved()
        self._files.resume(growing, positions)
        bucket = growing.file.bucket
        # The sender cuts what it has sent out of a draining file, and a newer copy may be put into a slot.
        is_usual = bucket in _DRAINING or (bucket is Bucket.SLOT and growing.is_resumed)
        was_consumed = before.size == before.position.offset
        if (is_usual and was_consumed) or self._files.is_carried(before.position, without=growing):
            return []
        return [gap_at(before, REWRITTEN)]

    def _drop_sealed(self, listing: dict[Key, Listed]) -> Iterator[Gap]:
        for key, sealed in list(self._sealed.items()):
            if key in listing or sealed.behind or self._roots.is_hidden(sealed.file.place):
                continue
            del self._sealed[key]
            if not sealed.done:
                yield gap_at(sealed.saved(), LOST)

    def _drop(self, gaps: list[Gap], now: float) -> None:
        """Let go of removed files whose grace time is over, once all was read."""
        if self._more:
            return
        for key, growing in list(self._files.growing.items()):
            if growing.missing_since is None:
                continue
            grace = self._grace_seconds
            if growing.file.bucket in _DRAINING:
                grace = max(grace, _DRAINING_GRACE_SECONDS)
            if growing.is_open and now - growing.missing_since < grace:
                continue
            if growing.is_open and growing.has_rest:
                gaps.append(gap_at(growing.saved(), TORN))
            self._files.drop(key)


def _reading_order(
    due: tuple[GrowingFile, os.stat_result] | SealedFile,
) -> tuple[str, bool, tuple[str, int, str]]:
    """The sort key of what is to be read: a removed file is older than what took its name."""
    if isinstance(due, SealedFile):
        return due.file.stream, True, due.file.order
    return due[0].file.stream, due[0].missing_since is None, due[0].file.order
