"""One file that grows: held open, checked before it is read on, read by whole lines."""

from __future__ import annotations

import os
from enum import Enum
from typing import Final, NamedTuple

from vinaya_bridge.content import NotRegularError, open_regular, read_at
from vinaya_bridge.files import Bucket, LogFile
from vinaya_bridge.lines import BOM, unwrap_rejected
from vinaya_bridge.positions import START, Mark, Position, SavedFile

_LONG_LINE_BYTES: Final = 8 << 20
"""An unfinished line from this length on is looked at again only when it grew by an eighth, or stopped growing."""


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
    again with the rest of the line, so they are never joined to other content.

    Args:
        file: The file as it was listed.

        position: Where reading starts.

    Attributes:
        file: The file under its present name.

        position: Up to where it was consumed.

        size: The size seen, in bytes.

        fingerprint: The mark of its first line, or None while that is not complete; only then may it be read.

        part: The mark of its first bytes while no line of it is complete, else None.

        missing_since: When its name was first found gone, in seconds, or None.

        behind: Whether the last read reached its limit, so that more can be read at once.
    """

    def __init__(self, file: LogFile, position: Position = START) -> None:
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
        self._searched = 0  # up to where there was no end of the unfinished line

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
        self._searched = 0

    def read(self, limit: int) -> list[FollowedLine]:
        """
        Read on by complete lines.

        Args:
            limit: About how many bytes to read; a line that is longer is read whole.

        Returns:
            The lines; the position then stands behind them.

        Raises:
            OSError: When the file cannot be read; the position stays.
        """
        start = self.position.offset
        if self._is_growing_line(start):
            return []
        descriptor = self.descriptor
        chunk = read_at(descriptor, start, limit)
        whole = len(chunk) < limit
        while not whole and b"\n" not in chunk:
            rest = read_at(descriptor, start + len(chunk), len(chunk))
            whole = len(rest) < len(chunk)
            chunk += rest
        # A file that was cut and refilled while it was read gives bytes of two contents: then nothing is
        # taken.
        if self.position.last is not None and not self.position.last.is_at(
            descriptor, start - self.position.last.length
        ):
            self._again = True
            return []
        self.size = max(self.size, start + len(chunk))
        self.behind = not whole
        end = chunk.rfind(b"\n") + 1
        self._searched = start + len(chunk)
        return self._take(chunk[:end]) if end else []

    def _is_growing_line(self, start: int) -> bool:
        """Tell whether an unfinished line is so long, and grows so, that looking again would cost its square."""
        if not self._again or self._signature is None or self.behind:
            return False
        seen = self._searched - start
        return seen > _LONG_LINE_BYTES and self._signature[0] < self._searched + seen // 8

    def _take(self, content: bytes) -> list[FollowedLine]:
        """Cut complete lines and move behind them."""
        offset, number = self.position.offset, self.position.line
        raws = content.split(b"\n")
        raws.pop()
        self.position = Position(
            offset=offset + len(content),
            line=None if number is None else number + len(raws),
            first=self.position.first or Mark.of(raws[0] + b"\n"),
            last=Mark.of(raws[-1] + b"\n"),
        )
        if offset == 0 and raws[0].startswith(BOM):
            raws[0] = raws[0][len(BOM) :]
            offset = len(BOM)
        name, stream, bucket = self.file.name, self.file.stream, self.file.bucket
        lines: list[FollowedLine] = []
        for raw in raws:
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
