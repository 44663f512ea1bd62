"""The bytes of one file: opened without following links or waiting for pipes, and decompressed."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 1 << 17
"""How much of a stored file is read at once."""

_SLICE_BYTES: Final = (
    1 << 12
)  # zstd has no output limit a call, so a small input bounds what a hostile file becomes
_OPEN_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GZIP_WINDOW_BITS: Final = 31  # zlib's way to say: with a gzip header and trailer


_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISLNK, "a link"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Compression(Enum):
    """How a file is stored, by the end of its name."""

    NONE = ""
    GZIP = ".gz"
    ZSTD = ".zst"


class NotRegularError(Exception):
    """Raised for a path that is not a regular file; its text says what it is."""


class BrokenContentError(Exception):
    """Raised where compressed content is damaged or ends early; its text says which."""


def open_regular(path: Path) -> tuple[int, os.stat_result]:
    """
    Open a regular file for reading; never follow a link in the last place, never wait for a pipe.

    Vinaya files reference, hazard 38.

    Args:
        path: The file.

    Returns:
        A descriptor, which the caller closes, and its status.

    Raises:
        NotRegularError: When something else stands there.
        OSError: When it cannot be opened.
    """
    # Asked first, because opening a socket, a link or a device fails with an error that names something else.
    refuse_irregular(os.lstat(path).st_mode)
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        status = os.fstat(descriptor)
        refuse_irregular(status.st_mode)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def refuse_irregular(mode: int) -> None:
    """
    Refuse what is not a regular file.

    Args:
        mode: The mode of a file's status.

    Raises:
        NotRegularError: When it is something else.
    """
    if stat.S_ISREG(mode):
        return
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise NotRegularError(f"is {kind}, not a regular file")
    raise NotRegularError("is not a regular file")


def stored_blocks(descriptor: int, length: int | None = None) -> Iterator[bytes]:
    """
    Read a file from where its descriptor stands.

    Args:
        descriptor: An open file.

        length: How many bytes to read at most; None: to its end.

    Yields:
        Its bytes as they are stored, in blocks, none empty.

    Raises:
        OSError: When reading fails.
    """
    left = sys.maxsize if length is None else length
    while block := os.read(descriptor, min(BLOCK_BYTES, left)):
        left -= len(block)
        yield block


def read_at(descriptor: int, offset: int, length: int) -> bytes:
    """
    Read a part of a file, without moving its descriptor.

    Args:
        descriptor: An open file.

        offset: Where to start, in bytes.

        length: How many bytes.

    Returns:
        These bytes; fewer where the file ends before.

    Raises:
        OSError: When reading fails.
    """
    parts: list[bytes] = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):  # one call gives 2 GiB at most
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decompress(blocks: Iterable[bytes], compression: Compression) -> Iterator[bytes]:
    """
    Turn the stored bytes of a file into its content.

    A file of several gzip members or zstd frames is their contents one after the other. Zero bytes after
    the last gzip member are padding.

    Args:
        blocks: The stored bytes, in order, none empty.

        compression: How they are stored.

    Yields:
        The content in blocks, none empty.

    Raises:
        BrokenContentError: After all that could be read was given.
    """
    if compression is Compression.GZIP:
        return _gunzip(blocks)
    if compression is Compression.ZSTD:
        return _unzstd(blocks)
    return iter(blocks)


def _gunzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(_GZIP_WINDOW_BITS)
    begun = False  # whether the member has seen a byte
    first = True  # whether no member has ended yet
    for block in blocks:
        rest = block
        while rest:
            if not begun and not first:
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
            begun = True
            try:
                content = member.decompress(rest, BLOCK_BYTES)
            except zlib.error:
                raise BrokenContentError("is not intact gzip") from None
            if content:
                yield content
            rest = member.unconsumed_tail
            if member.eof:
                rest = member.unused_data
                member, begun, first = zlib.decompressobj(_GZIP_WINDOW_BITS), False, False
    if begun:
        try:
            content = member.flush()  # an output limit can leave some of it, and the end itself, inside zlib
        except zlib.error:
            raise BrokenContentError("is not intact gzip") from None
        if content:
            yield content
    if first if not begun else not member.eof:
        raise BrokenContentError("ends before the gzip content does")


def _unzstd(blocks: Iterable[bytes]) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415 - 30 ms that a run without such a file does not spend

    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    begun, first = False, True
    for block in blocks:
        for start in range(0, len(block), _SLICE_BYTES):
            rest = block[start : start + _SLICE_BYTES]
            while rest:
                begun = True
                try:
                    content = frame.decompress(rest)
                except zstandard.ZstdError:
                    raise BrokenContentError("is not intact zstd") from None
                if content:
                    yield content
                rest = b""
                if frame.eof:
                    rest = frame.unused_data
                    frame, begun, first = decompressor.decompressobj(), False, False
    if begun or first:
        raise BrokenContentError("ends before the zstd content does")


def reason(error: Exception) -> str:
    """
    Say why the system refused, without the path, which a message names in its own way.

    Args:
        error: What was raised.

    Returns:
        The system's words for it.
    """
    text = error.strerror if isinstance(error, OSError) else None
    return (text or type(error).__name__).lower()


def printable(path: str) -> str:
    """
    Turn a path into text that every output can hold.

    Args:
        path: As the system gave it; bytes that are not UTF-8 are surrogates in it.

    Returns:
        The same with such bytes spelled ``\\xff``.
    """
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
