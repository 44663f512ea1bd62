"""One file that grows: held open, checked before it is read on, read by whole lines."""

from __future__ import annotations

import os
from enum import Enum
from typing import Final, NamedTuple

from vinaya_bridge.content import BLOCK_BYTES, NotRegularError, open_regular, read_at
from vinaya_bridge.files import Bucket, LogFile
from vinaya_bridge.gaps import Gap, gap_of_long_line
from vinaya_bridge.lines import BOM, MAX_LINE_BYTES, LongLine, unwrap_rejected
from vinaya_bridge.positions import (
    FINGERPRINT_BYTES,
    START,
    Mark,
    Position,
    SavedFile,
    end_mark,
    first_mark,
)

_SEARCH_BYTES: Final = 64 << 20
"""How far one read looks for the end of a long line."""

_MARK_BYTES: Final = 1 << 12


class FollowedLine(NamedTuple):
    """
    One complete line of a file that is followed; a tuple, because one is made for each line.

    Attributes:
        name: The file's name at the time of reading.

        number: The line's number in that file, from 1, or None where reading began in its middle.

        offset: Where ``raw`` starts in the file's content, in bytes.

        raw: The bytes without the final 0x0A and, at the start of a file, without a byte-order mark.

        record: What to parse: ``raw``, or the line inside it where the file is of the REJECTED bucket.

        stream: The stream that the file belongs to.

        bucket: Which part of the stream the file holds.

        ended: Whether a 0x0A ended it; only the last line of a compressed file can lack it.
    """

    name: str
    number: int | None
    offset: int
    raw: bytes
    record: bytes
    stream: str
    bucket: Bucket
    ended: bool = True


class _Searched(NamedTuple):
    """Up to where a long line has no end, and the mark of what stands just before."""

    offset: int
    mark: Mark


class Change(Enum):
    """What a check of a file against what was consumed of it found."""

    NONE = "all that was consumed stands where it was"
    CUT = "all that was consumed stands where it was, and an unfinished line behind it is gone"
    REWRITTEN = "what was consumed does not stand where it was"


def _signature(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


class GrowingFile:
    """
    A file, the descriptor it is read through and the position in it.

    Its memory is one block and the longest line. Bytes of an unfinished line are not kept: they are read
    again with the rest of the line, so they are never joined to other content. A line that is longer than may
    be held is passed over when its end is there.

    Args:
        file: The file as it was listed.

        position: Where reading starts.

        max_line_bytes: How long a line may be, without its 0x0A; a byte-order mark counts.

    Attributes:
        file: The file under its present name.

        position: Up to where it was consumed.

        size: The size seen, in bytes.

        fingerprint: What `vinaya_bridge.positions.first_line_mark` gives: None while the first line is not complete;
            the file is not read before.

        part: The mark of its first bytes while no line of it is complete, else None.

        missing_since: When its name was first found gone, in seconds, or None.

        behind: Whether the last read reached its limit, so that more can be read at once.
    """

    def __init__(
        self, file: LogFile, position: Position = START, *, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self.file = file
        self.position = position
        self.size = 0
        self.fingerprint: Mark | None = None
        self.part: Mark | None = None
        self.missing_since: float | None = None
        self.behind = False
        self._descriptor: int | None = None
        self._signature: tuple[int, int, int] | None = None
        self._again = False
        self._max_line_bytes = max_line_bytes
        self._searched: _Searched | None = None  # where the line at the position is long, and has no end yet
        self._gaps: list[Gap] = []

    @property
    def is_open(self) -> bool:
        """Whether it holds a descriptor."""
        return self._descriptor is not None

    @property
    def is_linked_live(self) -> bool:
        """Whether it stands under the name of its stream's live file."""
        return self.file.bucket is Bucket.LIVE and self.missing_since is None

    @property
    def is_resumed(self) -> bool:
        """Whether reading goes on where the same content was consumed before."""
        return self.position.offset > 0

    @property
    def has_rest(self) -> bool:
        """Whether bytes were seen that are not delivered."""
        return self.size > self.position.offset

    @property
    def rest_bytes(self) -> int:
        """How many bytes were seen that are not delivered."""
        return max(0, self.size - self.position.offset)

    @property
    def descriptor(self) -> int:
        """
        The descriptor it is read through; opened on the first use.

        Raises:
            OSError: When the file cannot be opened, or its name leads to another file by now.
        """
        if self._descriptor is None:
            try:
                descriptor, status = open_regular(self.file.path)
            except NotRegularError as error:
                raise FileNotFoundError(str(error)) from None
            if (status.st_dev, status.st_ino) != (self.file.device, self.file.inode):
                os.close(descriptor)
                raise FileNotFoundError("another file has this name")
            self._descriptor = descriptor
        return self._descriptor

    def close(self) -> None:
        """Give the descriptor back; the position stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_due(self, status: os.stat_result) -> bool:
        """
        Tell whether the file has to be looked at.

        Sizes decide, and times beside them: a time alone can be set back, and a rewrite can keep the size. A
        file that changed is looked at once more in the next poll, since two changes can fall in one tick of
        the file system's clock.

        Args:
            status: Its status now.

        Returns:
            Whether it may have changed since `note` was called last.
        """
        return self._again or self.behind or self._signature != _signature(status)

    def note(self, status: os.stat_result) -> None:
        """
        Remember that the file was looked at.

        Args:
            status: Its status as of just before.
        """
        signature = _signature(status)
        self._again = signature != self._signature
        self._signature = signature

    def look_again(self) -> None:
        """Have it looked at in the next poll, changed or not."""
        self.behind = False
        self._again = True

    def check(self) -> Change:
        """
        Compare the file with what was consumed of it.

        Returns:
            What was found.

        Raises:
            OSError: When the file cannot be read.
        """
        if not self.position.holds(self.descriptor):
            return Change.REWRITTEN
        size = os.fstat(self.descriptor).st_size
        if size < self.size:
            self.size = size
            self._searched = None
            return Change.CUT
        return Change.NONE

    def restart(self, position: Position) -> None:
        """
        Go to another position, since the content is not the one that was consumed.

        Args:
            position: Where to read on.

        Raises:
            OSError: When the file cannot be read.
        """
        self.position = position
        self.size = os.fstat(self.descriptor).st_size
        self._again = self._again or self.fingerprint is not None
        self._searched = None

    def take_gaps(self) -> list[Gap]:
        """
        Empty the list of lines that were passed over.

        Returns:
            What reading has passed over since it was last emptied.
        """
        gaps, self._gaps = self._gaps, []
        return gaps

    def read(self, limit: int) -> list[FollowedLine]:
        """
        Read on by complete lines.

        Args:
            limit: About how many bytes to read; a line that is longer is read whole.

        Returns:
            The lines; the position then stands behind them, and behind what was passed over.

        Raises:
            OSError: When the file cannot be read; the position stays.
        """
        start = self.position.offset
        descriptor = self.descriptor
        if self._searched is not None:
            return self._read_long(descriptor, self._searched)
        chunk = read_at(descriptor, start, limit)
        whole = len(chunk) < limit
        end = chunk.rfind(b"\n") + 1
        if not end and (not whole or len(chunk) > self._max_line_bytes):
            return self._read_long(descriptor, _Searched(start + len(chunk), Mark.of(chunk[-_MARK_BYTES:])))
        if not self._is_still_there(descriptor):
            return []
        self.size = max(self.size, start + len(chunk))
        self.behind = not whole
        return self._take(chunk[:end]) if end else []

    def _is_still_there(self, descriptor: int) -> bool:
        """Tell whether what was just read is of one content: of a file that was cut and refilled nothing is taken."""
        position = self.position
        if position.last is None or position.last.is_at(descriptor, position.offset - position.last.length):
            return True
        self._again = True
        return False

    def _read_long(self, descriptor: int, searched: _Searched) -> list[FollowedLine]:
        """Look for the end of a long line, each byte once; then read it, or pass over it."""
        start, at = self.position.offset, searched.offset
        end = 0
        block = b""
        while not end and at < searched.offset + _SEARCH_BYTES:
            block = read_at(descriptor, at, BLOCK_BYTES)
            end = at + block.find(b"\n") + 1 if b"\n" in block else 0
            at += len(block)
            if len(block) < BLOCK_BYTES:
                break
        content = b""
        if end and end - start - 1 <= self._max_line_bytes:
            content = read_at(descriptor, start, end - start)
        is_same = searched.mark.is_at(descriptor, searched.offset - searched.mark.length)
        if not self._is_still_there(descriptor) or not is_same or (content and content[-1:] != b"\n"):
            self._searched, self._again = None, True
            return []
        self.size = max(self.size, at)
        self.behind = bool(end) or len(block) == BLOCK_BYTES
        if not end:
            before = max(start, at - _MARK_BYTES)
            self._searched = _Searched(at, Mark.of(read_at(descriptor, before, at - before)))
            return []
        self._searched = None
        if content:
            return self._take(content)
        position = self.position
        self.position = Position(
            offset=end,
            line=self._pass_over(position.line, start, end - start - 1),
            first=position.first or first_mark(read_at(descriptor, 0, min(end, FINGERPRINT_BYTES))),
            last=end_mark(descriptor, start, end),
        )
        self.part = None
        return []

    def _pass_over(self, number: int | None, offset: int, length: int) -> int | None:
        """Note that a line is too long; return its number, given that of the line before it."""
        line = LongLine((number or 0) + 1, offset, length)
        self._gaps.append(
            gap_of_long_line(self.file, line, self._max_line_bytes, is_counted=number is not None)
        )
        return None if number is None else line.number

    def _take(self, content: bytes) -> list[FollowedLine]:
        """Cut complete lines and move behind them."""
        offset, number = self.position.offset, self.position.line
        raws = content.split(b"\n")
        raws.pop()
        self.position = Position(
            offset=offset + len(content),
            line=None if number is None else number + len(raws),
            first=self.position.first or first_mark(raws[0] + b"\n"),
            last=Mark.of(raws[-1] + b"\n"),
        )
        self.part = None
        may_be_long = len(content) > self._max_line_bytes
        name, stream, bucket = self.file.name, self.file.stream, self.file.bucket
        lines: list[FollowedLine] = []
        for stored in raws:
            raw = stored
            if may_be_long and len(raw) > self._max_line_bytes:
                number = self._pass_over(number, offset, len(raw))
                offset += len(raw) + 1
                continue
            if offset == 0 and raw.startswith(BOM):
                raw = raw[len(BOM) :]
                offset = len(BOM)
            record = unwrap_rejected(raw) if bucket is Bucket.REJECTED else raw
            if number is not None:
                number += 1
            lines.append(FollowedLine(name, number, offset, raw, record, stream, bucket))
            offset += len(raw) + 1
        return lines

    def saved(self) -> SavedFile:
        """
        Describe the file for a restart.

        Returns:
            Its position and what it is called.
        """
        return SavedFile(
            name=self.file.name,
            stream=self.file.stream,
            bucket=self.file.bucket.value,
            device=self.file.device,
            inode=self.file.inode,
            size=max(self.size, self.position.offset),
            position=self.position,
            part=self.part,
            place=self.file.place,
        )
