"""All event lines of some files: what a question about the Log reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vinaya_bridge.files import LEFT_ALONE, LogFile, Notice, discover, too_long
from vinaya_bridge.lines import MAX_LINE_BYTES, LongLine, PhysicalLine, read_lines
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.codes import NOT_JSON, NOT_UTF8
from vinaya_bridge.log.pieces import split_pieces

_UNREADABLE = (NOT_JSON, NOT_UTF8)


class Intake:
    """
    Reads every event line of some inputs once, and counts what is none.

    Copies of a line are given as often as they are met: removing them is the question's part. A line that
    holds a torn fragment and a whole record gives the record. A last line without a newline counts where it is
    one whole record; else it is pending. So is a line that is too long to be read, and a notice names it.

    Args:
        inputs: Files and directories.

        reader: Reads a line.

        max_line_bytes: How long a line may be.

    Attributes:
        notices: What could not be read, and why.

        files: How many files were read.

        events: How many event lines were given.

        unknown_versions: How many lines have a header version that is not known.

        refused: How many lines, or pieces of lines, are not valid.

        pending: How many last lines are not finished, and how many lines are too long.
    """

    def __init__(
        self,
        inputs: str | Path | Sequence[str | Path],
        reader: Reader,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.notices: list[Notice] = []
        self.files = 0
        self.events = 0
        self.unknown_versions = 0
        self.refused = 0
        self.pending = 0
        self._inputs = inputs
        self._max_line_bytes = max_line_bytes
        self._read = reader.read

    def __iter__(self) -> Iterator[EventLine]:
        """
        Read all files, in the order in which `discover` lists them.

        Yields:
            Every event line.
        """
        found = discover(self._inputs)
        self.notices += found.notices
        for file in found.files:
            yield from self._file(file)

    @property
    def lines(self) -> int:
        """How many lines, or pieces of lines, hold anything."""
        return self.events + self.unknown_versions + self.refused + self.pending

    @property
    def exit_code(self) -> int:
        """1 where an input could not be read, or where there were lines and not one was an event; else 0."""
        faults = any(notice.code.id not in LEFT_ALONE for notice in self.notices)
        return 1 if faults or (self.lines and not self.events) else 0

    def _file(self, file: LogFile) -> Iterator[EventLine]:
        self.files += 1

        def take_long(line: LongLine) -> None:
            self.pending += 1
            self.notices.append(too_long(file.name, line.number, line.length, self._max_line_bytes))

        reader = read_lines(file, digest=False, max_line_bytes=self._max_line_bytes, take_long=take_long)
        for batch in reader.read_batches():
            if batch.ended:
                for record in batch.records:
                    verdict = self._read(record)
                    if type(verdict) is EventLine:
                        self.events += 1
                        yield verdict
                    else:
                        yield from self._other(verdict, record)
            else:
                for line in batch.lines():
                    yield from self._line(line)
        if reader.fault is not None:
            self.notices.append(reader.fault)

    def _line(self, line: PhysicalLine) -> Iterator[EventLine]:
        verdict = self._read(line.record)
        if line.ended or isinstance(verdict, EventLine | Blank):
            yield from self._other(verdict, line.record)
        else:
            self.pending += 1

    def _other(self, verdict: Verdict, record: bytes) -> Iterator[EventLine]:
        if isinstance(verdict, Refused) and verdict.code in _UNREADABLE:
            pieces = split_pieces(record)
            if len(pieces) > 1:
                for piece in pieces:
                    yield from self._whole(self._read(record[piece.start : piece.start + piece.length]))
                return
        yield from self._whole(verdict)

    def _whole(self, verdict: Verdict) -> Iterator[EventLine]:
        if isinstance(verdict, EventLine):
            self.events += 1
            yield verdict
        elif isinstance(verdict, UnknownVersion):
            self.unknown_versions += 1
        elif isinstance(verdict, Refused):
            self.refused += 1


def event_lines(inputs: str | Path | Sequence[str | Path], reader: Reader) -> Iterator[EventLine]:
    """
    Read every event line of some inputs; use `Intake` to learn of the lines that are none.

    Args:
        inputs: Files and directories.

        reader: Reads a line.

    Yields:
        Every event line, copies among them.
    """
    yield from Intake(inputs, reader)
