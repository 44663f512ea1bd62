"""One compressed file: read once, from start to end, when it has stopped changing."""

from __future__ import annotations

import os
from collections.abc import Iterator

from vinaya_bridge.files import BAD_COMPRESSION, LogFile, Notice
from vinaya_bridge.gaps import Gap, gap_of_long_line
from vinaya_bridge.growing import FollowedLine
from vinaya_bridge.lines import MAX_LINE_BYTES, LineBatch, LineReader, LongLine, read_lines
from vinaya_bridge.positions import START, SavedFile


class SealedFile:
    """
    A compressed file that is followed.

    It cannot be read on from its middle, so it is read as a whole, and again as a whole when it changes.

    Args:
        file: The file as it was listed.

        status: Its status then.

        now: The time, in seconds.

        done: Whether it was read to its end before.

        max_line_bytes: How long a line may be; a longer one is passed over.

    Attributes:
        file: The file under its present name.

        size: Its size as it is stored, in bytes.

        done: Whether it was read to its end.

        fault: What ended its last reading early, or None.
    """

    def __init__(
        self,
        file: LogFile,
        status: os.stat_result,
        now: float,
        *,
        done: bool,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.file = file
        self.size = status.st_size
        self.done = done
        self.fault: Notice | None = None
        self._modified_ns = status.st_mtime_ns
        self._changed_at = now
        self._max_line_bytes = max_line_bytes
        self._long_lines: list[LongLine] = []
        self._reader: LineReader | None = None
        self._batches: Iterator[LineBatch] = iter(())

    @property
    def rest_bytes(self) -> int:
        """How many stored bytes were not read."""
        return 0 if self.done else self.size

    @property
    def behind(self) -> bool:
        """Whether it is partly read, so that more can be read at once."""
        return self._reader is not None

    def observe(self, status: os.stat_result, now: float) -> None:
        """
        Note a change, after which it has to be read again.

        Args:
            status: Its status now.

            now: The time, in seconds.
        """
        if (status.st_size, status.st_mtime_ns) != (self.size, self._modified_ns):
            self.size, self._modified_ns = status.st_size, status.st_mtime_ns
            self._changed_at = now
            self.done, self._reader = False, None

    def is_due(self, now: float, settle_seconds: float) -> bool:
        """
        Tell whether it is to be read.

        Args:
            now: The time, in seconds.

            settle_seconds: How long it must not have changed.

        Returns:
            Whether it is complete, as far as can be told, and not read to its end.
        """
        return not self.done and (self.behind or now - self._changed_at >= settle_seconds)

    def read(self, limit: int, now: float) -> list[FollowedLine]:
        """
        Read on.

        Args:
            limit: About how many bytes of content to give.

            now: The time, in seconds.

        Returns:
            The lines. A last line without 0x0A is given too: the file will not grow. What could not be read,
            and may be later, is tried again after the settle time.
        """
        if self._reader is None:
            self._long_lines = []
            self._reader = read_lines(
                self.file,
                digest=False,
                max_line_bytes=self._max_line_bytes,
                take_long=self._long_lines.append,
            )
            self._batches = self._reader.read_batches()
        lines: list[FollowedLine] = []
        file = self.file
        for batch in self._batches:
            lines += (
                FollowedLine(
                    file.name,
                    each.number,
                    each.offset,
                    each.raw,
                    each.record,
                    file.stream,
                    file.bucket,
                    each.ended,
                )
                for each in batch.lines()
            )
            limit -= sum(map(len, batch.raws))
            if limit <= 0:
                return lines
        self.fault, self._reader = self._reader.fault, None
        self.done = self.fault is None or self.fault.code is BAD_COMPRESSION
        self._changed_at = now
        return lines

    def take_gaps(self) -> list[Gap]:
        """
        Empty the list of lines that were passed over.

        Returns:
            Those of a reading that came to its end: only then is it not done again after a restart.
        """
        if not self.done or not self._long_lines:
            return []
        lines, self._long_lines = self._long_lines, []
        return [gap_of_long_line(self.file, line, self._max_line_bytes) for line in lines]

    def saved(self) -> SavedFile:
        """
        Describe the file for a restart.

        Returns:
            What it is called, and its modification time if it was read to its end.
        """
        return SavedFile(
            name=self.file.name,
            stream=self.file.stream,
            bucket=self.file.bucket.value,
            device=self.file.device,
            inode=self.file.inode,
            size=self.size,
            position=START,
            modified_ns=self._modified_ns if self.done else None,
            place=self.file.place,
        )
