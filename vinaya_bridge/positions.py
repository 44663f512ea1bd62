"""How far a growing file was consumed, proved by its content; and the same as bytes that survive a restart."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Final

import msgspec
import orjson
from attrs import frozen

from vinaya_bridge.content import BLOCK_BYTES, read_at
from vinaya_bridge.files import Bucket

STATE_VERSION: Final = 1
"""The version of the saved form; another one is not read."""

FINGERPRINT_BYTES: Final = 1 << 20
"""How much of a long first line its mark covers: so it does not depend on how long a line may be."""

_PART_BYTES: Final = 1 << 12
_BUCKETS: Final = frozenset(bucket.value for bucket in Bucket)


@frozen
class Mark:
    """
    The proof that some bytes are still those that were read.

    Args:
        length: How many bytes.

        sha256: The hex digest of all of them.
    """

    length: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> Mark:
        """
        Take the mark of some bytes.

        Args:
            content: The bytes, the final 0x0A of a line included.

        Returns:
            Their mark.
        """
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def is_at(self, descriptor: int, offset: int) -> bool:
        """
        Tell whether these bytes stand in a file.

        Args:
            descriptor: The open file.

            offset: Where they should start, in bytes.

        Returns:
            Whether they do; asking takes the memory of one block.

        Raises:
            OSError: When the file cannot be read.
        """
        digest = hashlib.sha256()
        left = self.length
        while left and (block := read_at(descriptor, offset, min(left, BLOCK_BYTES))):
            digest.update(block)
            offset += len(block)
            left -= len(block)
        return not left and digest.hexdigest() == self.sha256


@frozen
class Position:
    """
    Up to where a file was consumed: always the end of a complete line.

    Args:
        offset: The number of bytes consumed.

        line: The number of lines consumed, or None where it is not known.

        first: The mark of the file's first line: its fingerprint. None where nothing was consumed.

        last: The mark of the whole last consumed line; of one that was passed over because of its length, that of
            its last bytes. None where nothing was consumed.
    """

    offset: int = 0
    line: int | None = 0
    first: Mark | None = None
    last: Mark | None = None

    def holds(self, descriptor: int) -> bool:
        """
        Tell whether a file has, as far as can be seen, the content that was consumed.

        Its first line and the whole last consumed line are compared; a window of a fixed size would not do
        (design, section 7). What was changed between the two without moving the last is not seen.

        Args:
            descriptor: The open file.

        Returns:
            Whether reading may go on from here in this file.

        Raises:
            OSError: When the file cannot be read.
        """
        if self.first is None or self.last is None:
            return True
        if os.fstat(descriptor).st_size < self.offset:
            return False
        return self.last.is_at(descriptor, self.offset - self.last.length) and self.first.is_at(descriptor, 0)


START: Final = Position()
"""Where nothing of a file was consumed."""


def first_line_mark(descriptor: int) -> Mark | None:
    """
    Take the fingerprint of a file.

    Args:
        descriptor: The open file.

    Returns:
        The mark of its first line; None while that is not complete. Of a line of more than `FINGERPRINT_BYTES`
        it is that of its first bytes, complete or not.

    Raises:
        OSError: When the file cannot be read.
    """
    line = read_at(descriptor, 0, BLOCK_BYTES)
    if b"\n" not in line and len(line) == BLOCK_BYTES:
        line += read_at(descriptor, len(line), FINGERPRINT_BYTES - len(line))
    end = line.find(b"\n") + 1
    if end:
        return Mark.of(line[:end])
    return Mark.of(line) if len(line) == FINGERPRINT_BYTES else None


def first_mark(line: bytes) -> Mark:
    """
    Take the fingerprint of a file from its first line.

    Args:
        line: All of it with its 0x0A, or as much as `FINGERPRINT_BYTES` of it.
    """
    return Mark.of(line[:FINGERPRINT_BYTES])


def end_mark(descriptor: int, start: int, end: int) -> Mark:
    """
    Take the mark of the end of a line that is too long to be held.

    Args:
        descriptor: The open file.

        start: Where the line starts, in bytes.

        end: Where the next one starts.

    Raises:
        OSError: When the file cannot be read.
    """
    length = min(end - start, FINGERPRINT_BYTES)
    return Mark.of(read_at(descriptor, end - length, length))


def part_mark(descriptor: int) -> Mark | None:
    """
    Take what stands for the fingerprint of a file while it has no complete line.

    Args:
        descriptor: The open file.

    Returns:
        The mark of its first bytes, or None where it has none.

    Raises:
        OSError: When the file cannot be read.
    """
    part = read_at(descriptor, 0, _PART_BYTES)
    return Mark.of(part) if part else None


def end_position(descriptor: int, size: int) -> Position:
    """
    Find the end of the last complete line of a file, without reading all of it.

    Args:
        descriptor: The open file.

        size: Where to look backwards from, in bytes.

    Returns:
        The position there, its line number unknown; `START` where no line is complete.

    Raises:
        OSError: When the file cannot be read.
    """
    end = _after_line_feed(descriptor, size)
    if end == 0:
        return START
    start = _after_line_feed(descriptor, end - 1)
    return Position(end, None, first_line_mark(descriptor), end_mark(descriptor, start, end))


def _after_line_feed(descriptor: int, before: int) -> int:
    """Find the offset behind the last 0x0A in front of an offset; 0 where there is none."""
    while before > 0:
        start = max(0, before - BLOCK_BYTES)
        found = read_at(descriptor, start, before - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        before = start
    return 0


@frozen
class SavedFile:
    """
    What the saved state says of one file.

    Args:
        name: Its name when it was last seen.

        stream: Its stream.

        bucket: The value of its bucket.

        device: Its device number; a hint alone.

        inode: Its inode number; a hint alone.

        size: The size seen, in bytes, which is more than was consumed where lines were not yet read or
            complete.

        position: Up to where it was consumed.

        part: The mark of the first bytes of a file of which no line was complete, else None.

        modified_ns: The modification time in nanoseconds of a compressed file that was read to its end, else
            None.

        place: Where it was: see `LogFile`. Empty where that is not known.
    """

    name: str
    stream: str
    bucket: str
    device: int
    inode: int
    size: int
    position: Position
    part: Mark | None = None
    modified_ns: int | None = None
    place: str = ""


@frozen
class _State:
    version: int
    files: list[SavedFile]


class StateError(Exception):
    """Raised for saved state that cannot be used; its text says why, without content."""


def encode_state(files: Iterable[SavedFile]) -> bytes:
    """
    Turn positions into bytes.

    Args:
        files: What is known of each file.

    Returns:
        A JSON object with its version.
    """
    return orjson.dumps(msgspec.to_builtins(_State(STATE_VERSION, list(files))))


def decode_state(state: bytes) -> list[SavedFile]:
    """
    Turn bytes back into positions.

    Args:
        state: What `encode_state` gave, or anything else.

    Returns:
        What is known of each file.

    Raises:
        StateError: When these bytes are no such state, or of another version.
    """
    try:
        version = msgspec.json.decode(state, type=dict[str, object]).get("version")
        if version != STATE_VERSION:
            raise StateError("has another version or none")
        files = msgspec.json.decode(state, type=_State).files
    except msgspec.ValidationError:
        raise StateError("does not have the fields of a saved position") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise StateError("is not JSON, or only a part of it" if state else "is empty") from None
    if not all(_is_possible(file) for file in files):
        raise StateError("holds figures that no file can have")
    return files


def _is_possible(file: SavedFile) -> bool:
    position = file.position
    if not 0 <= position.offset <= file.size < 1 << 63 or file.bucket not in _BUCKETS:
        return False
    if file.part is not None and not 0 < file.part.length <= min(file.size, _PART_BYTES):
        return False
    marks = (position.first, position.last)
    return all((mark is None) == (position.offset == 0) for mark in marks) and all(
        0 < mark.length <= position.offset for mark in marks if mark is not None
    )
