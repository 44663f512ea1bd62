"""The lines of one log file, cut at 0x0A, from disk or from inside a compressed file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import orjson
from attrs import frozen

from vinaya_bridge.content import (
    BrokenContentError,
    Compression,
    NotRegularError,
    decompress,
    open_regular,
    read_at,
    reason,
    stored_blocks,
)
from vinaya_bridge.errors import Code, InputError
from vinaya_bridge.files import (
    BAD_COMPRESSION,
    CHANGED,
    CUT_SHORT,
    NOT_A_LOG,
    UNREADABLE,
    Bucket,
    LogFile,
    Notice,
    parse_name,
)

BOM: Final = b"\xef\xbb\xbf"

MAX_LINE_BYTES: Final = 256 << 20
"""How long a line may be where nothing else is said: a longer one is passed over."""


class PhysicalLine(NamedTuple):
    """
    One line as it lies in a file; a tuple, because one is made for each line.

    Attributes:
        number: Its number in the file, from 1; blank lines count.

        offset: Where ``raw`` starts in the uncompressed content, in bytes.

        raw: The bytes without the final 0x0A and, at the start of a file, without a byte-order mark.

        ended: Whether a 0x0A ended it; only the last line of a file can lack it.

        record: What to parse: ``raw``, or the line inside it where the file is of the REJECTED bucket.
    """

    number: int
    offset: int
    raw: bytes
    ended: bool
    record: bytes


@frozen
class LineBatch:
    """
    Consecutive lines of a file: the form for a hot loop.

    Args:
        number: The number of the first line, from 1.

        offset: Where the first of ``raws`` starts in the uncompressed content, in bytes. Each later one
            starts ``len(raw) + 1`` bytes after the one before it.

        raws: The lines as in `PhysicalLine`; never empty.

        records: What to parse, one for each line; the same list as ``raws`` save in the REJECTED bucket.

        ended: Whether a 0x0A ended the last line; all others have one.
    """

    number: int
    offset: int
    raws: list[bytes]
    records: list[bytes]
    ended: bool

    def lines(self) -> Iterator[PhysicalLine]:
        """
        Take the batch apart.

        Yields:
            Its lines in order.
        """
        offset, last = self.offset, self.number + len(self.raws) - 1
        for number, (raw, record) in enumerate(zip(self.raws, self.records, strict=True), self.number):
            yield PhysicalLine(number, offset, raw, number != last or self.ended, record)
            offset += len(raw) + 1


class LongLine(NamedTuple):
    """
    A line that is not given because of its length.

    Attributes:
        number: Its number in the file, from 1.

        offset: Where it starts in the uncompressed content, in bytes.

        length: How many bytes it has, without the final 0x0A.
    """

    number: int
    offset: int
    length: int


TakeLong = Callable[[LongLine], object]
"""Told of each line that is passed over: after all lines before it were given, and before the next."""


class LineReader:
    """
    Reads one file line by line, once, with memory for the longest line and one block.

    Lines are cut at 0x0A and nowhere else. It never raises for what a file does: a fault ends the lines,
    and what was read before it is given. A file that grows is read to the end that is met. Of a line that is
    longer than may be held, bytes are dropped as they come; it counts as a line, and is not given.

    Args:
        file: What to read.

        digest: Whether to compute `sha256`, which costs about as much as cutting the lines.

        start: The first byte to read: of a line. Only a file that is not compressed can be read in parts.

        end: Where to stop, likewise; None: at the end of the file.

        max_line_bytes: How long a line may be, without its 0x0A; a byte-order mark counts.

        take_long: Told of each line that is longer.

    Attributes:
        file: What is read.

        bytes_read: How many bytes of the file as it is stored were read so far.

        lines: How many lines were given or passed over so far.

        fault: What ended the reading early, or None.
    """

    def __init__(
        self,
        file: LogFile,
        *,
        digest: bool = True,
        start: int = 0,
        end: int | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        take_long: TakeLong | None = None,
    ) -> None:
        self.file = file
        self._max_line_bytes = max_line_bytes
        self._take_long = take_long
        self._start = start
        self._end = end
        self.bytes_read = 0
        self.lines = 0
        self.fault: Notice | None = None
        self._opened = False
        self._hash = hashlib.sha256() if digest else None

    @property
    def sha256(self) -> str:
        """The hex digest of the bytes read so far, as they are stored; empty where none was asked for."""
        return self._hash.hexdigest() if self._hash is not None else ""

    def __iter__(self) -> Iterator[PhysicalLine]:
        """
        Read the file as single lines.

        Yields:
            Its lines in order.
        """
        for batch in self.read_batches():
            yield from batch.lines()

    def read_batches(self) -> Iterator[LineBatch]:
        """
        Read the file as batches of lines, about twice as fast as single lines.

        Yields:
            Its lines in order.
        """
        position = self._start
        offset = self._start
        pending: list[bytes] = []
        for block in self._content():
            begun = position - offset  # of a line that is too long, more than is pending
            position += len(block)
            raws = block.split(b"\n")
            rest = raws.pop()
            if begun + len(block) > self._max_line_bytes:  # only then can one of its lines be too long
                yield from self._short_lines(offset, pending, begun, raws)
                if raws:
                    pending.clear()
                    offset = position - len(rest)
                if position - offset > self._max_line_bytes:
                    pending.clear()
                elif rest:
                    pending.append(rest)
                continue
            if not raws:
                pending.append(block)  # joined once, when the line ends: a long line costs linear time
                continue
            if pending:
                pending.append(raws[0])
                raws[0] = b"".join(pending)
            pending = [rest] if rest else []
            yield self._batch(offset, raws, ended=True)
            offset = position - len(rest)
        if position - offset > self._max_line_bytes:
            self._pass_over(offset, position - offset)
        elif pending:
            yield self._batch(offset, [b"".join(pending)], ended=False)

    def _short_lines(
        self, offset: int, pending: list[bytes], begun: int, raws: list[bytes]
    ) -> Iterator[LineBatch]:
        """Yield the lines of a block that are not too long; the first began before it, *begun* bytes ago."""
        start = offset
        short: list[bytes] = []
        for raw in raws:
            length = begun + len(raw)
            if length <= self._max_line_bytes:
                short.append(b"".join((*pending, raw)) if begun else raw)
            else:
                if short:
                    yield self._batch(start, short, ended=True)
                    short = []
                self._pass_over(offset, length)
                start = offset + length + 1
            offset += length + 1
            begun = 0
        if short:
            yield self._batch(start, short, ended=True)

    def _pass_over(self, offset: int, length: int) -> None:
        self.lines += 1
        if self._take_long is not None:
            self._take_long(LongLine(self.lines, offset, length))

    def _batch(self, offset: int, raws: list[bytes], *, ended: bool) -> LineBatch:
        if offset == 0 and raws[0].startswith(BOM):
            raws[0] = raws[0][len(BOM) :]
            offset = len(BOM)
        records = [unwrap_rejected(raw) for raw in raws] if self.file.bucket is Bucket.REJECTED else raws
        number = self.lines + 1
        self.lines += len(raws)
        return LineBatch(number, offset, raws, records, ended)

    def _content(self) -> Iterator[bytes]:
        """Yield the uncompressed content; note a fault instead of raising it."""
        try:
            stored = self._stored()
            try:
                yield from decompress(stored, self.file.compression)
            except BrokenContentError as error:
                self._fail(BAD_COMPRESSION, str(error))
                for _ in stored:  # the digest covers the file as it is
                    pass
        except NotRegularError as error:
            self._fail(NOT_A_LOG, str(error))
        except FileNotFoundError:
            self._fail(CHANGED, "was removed after the files were listed")
        except OSError as error:
            self._fail(CUT_SHORT if self._opened else UNREADABLE, reason(error))

    def _stored(self) -> Iterator[bytes]:
        """Yield the bytes of the file as they lie on disk."""
        descriptor, status = open_regular(self.file.path)
        self._opened = True
        try:
            if self._start:
                os.lseek(descriptor, self._start, os.SEEK_SET)
            length = None if self._end is None else self._end - self._start
            for block in stored_blocks(descriptor, length):
                self.bytes_read += len(block)
                if self._hash is not None:
                    self._hash.update(block)
                yield block
            if (status.st_dev, status.st_ino) != (self.file.device, self.file.inode):
                self._fail(CHANGED, "was replaced by another file after the files were listed")
            elif os.fstat(descriptor).st_size < max(self._start + self.bytes_read, self._end or 0):
                self._fail(CHANGED, "became shorter while it was read")
        finally:
            os.close(descriptor)

    def _fail(self, code: Code, message: str) -> None:
        if self.fault is None:
            self.fault = Notice(self.file.name, code, message)


def read_lines(
    file: LogFile,
    *,
    digest: bool = True,
    max_line_bytes: int = MAX_LINE_BYTES,
    take_long: TakeLong | None = None,
) -> LineReader:
    """
    Read the lines of a file.

    Args:
        file: One that `discover` found.

        digest: Whether `LineReader.sha256` is wanted.

        max_line_bytes: As in `LineReader`.

        take_long: Likewise.

    Returns:
        What gives the lines, and afterwards how many there were and what went wrong.
    """
    return LineReader(file, digest=digest, max_line_bytes=max_line_bytes, take_long=take_long)


def digest_of_file(file: LogFile) -> str:
    """
    Compute the digest of a file that is read in parts.

    Args:
        file: One that `discover` found.

    Returns:
        The hex sha256 of its bytes as they are stored; of what could be read, where reading fails.
    """
    digest = hashlib.sha256()
    with suppress(OSError, NotRegularError):
        descriptor, _ = open_regular(file.path)
        try:
            for block in stored_blocks(descriptor):
                digest.update(block)
        finally:
            os.close(descriptor)
    return digest.hexdigest()


def record_of(name: str, raw: bytes) -> bytes:
    """
    Return what there is to parse of a line.

    Args:
        name: Of the file that it lies in.

        raw: Its bytes.

    Returns:
        The line inside, where the file is of the REJECTED bucket; else *raw*.
    """
    return unwrap_rejected(raw) if parse_name(name)[1] is Bucket.REJECTED else raw


def unwrap_rejected(raw: bytes) -> bytes:
    """
    Take the log line out of a wrapper of the REJECTED bucket.

    Vinaya files reference, section 2: an object whose field ``raw`` holds the line as a string.

    Args:
        raw: One line of such a file.

    Returns:
        The line inside, or ``raw`` itself where it is no such wrapper.
    """
    try:
        wrapper = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return raw
    inner = wrapper.get("raw") if isinstance(wrapper, dict) else None
    return inner.encode() if isinstance(inner, str) else raw


def read_slice(file: LogFile, offset: int, length: int) -> bytes:
    """
    Read a part of a file's content again.

    A compressed file is decompressed from its start, so this is for single lines, not for many.

    Args:
        file: One that `discover` found.

        offset: Where to start in the uncompressed content, in bytes.

        length: How many bytes.

    Returns:
        Exactly that many bytes.

    Raises:
        InputError: When the file was removed, replaced or cut since it was listed, or cannot be read.
            Content that was overwritten in place by as many bytes is not noticed: compare its digest.
    """
    remedy = "read the input again from its start"
    try:
        descriptor, status = open_regular(file.path)
        try:
            if (status.st_dev, status.st_ino) != (file.device, file.inode):
                raise InputError(CHANGED, "was replaced by another file", place=file.name, remedy=remedy)
            if file.compression is Compression.NONE:
                content = read_at(descriptor, offset, length)
            else:
                content = _slice(decompress(stored_blocks(descriptor), file.compression), offset, length)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise InputError(CHANGED, "was removed", place=file.name, remedy=remedy) from None
    except NotRegularError as error:
        raise InputError(CHANGED, str(error), place=file.name, remedy=remedy) from None
    except BrokenContentError as error:
        raise InputError(BAD_COMPRESSION, str(error), place=file.name, remedy=remedy) from None
    except OSError as error:
        raise InputError(UNREADABLE, reason(error), place=file.name, remedy="make it readable") from None
    if len(content) < length:
        raise InputError(CHANGED, "became shorter", place=file.name, remedy=remedy)
    return content


def _slice(blocks: Iterator[bytes], offset: int, length: int) -> bytes:
    parts: list[bytes] = []
    end = offset + length
    position = 0
    for block in blocks:
        parts.append(block[max(0, offset - position) : max(0, end - position)])
        position += len(block)
        if position >= end:
            break
    return b"".join(parts)
