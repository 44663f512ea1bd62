"""Lines that were left out, read again to be kept: each file once, each line held against what it was."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vinaya_bridge.content import BrokenContentError, Compression, decompress, open_regular, stored_blocks
from vinaya_bridge.errors import InputError
from vinaya_bridge.files import CHANGED, Bucket, LogFile
from vinaya_bridge.lines import read_slice, unwrap_rejected
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.placing import LeftOut


class Again(NamedTuple):
    """
    A line that was read again.

    Args:
        left: What was left out.

        raw: Its bytes as they lie in the file.

        record: Its bytes alone, where they lie in a wrapper; else *raw*.
    """

    left: LeftOut
    raw: bytes
    record: bytes


def read_again(file: LogFile, left_out: Iterable[LeftOut], reader: Reader) -> Iterator[Again | InputError]:
    """
    Read lines of a file again, in one pass over it.

    Args:
        file: The file.

        left_out: Lines of it, in any order.

        reader: Reads a line: what is found must be the line that was read before.

    Yields:
        Each line; in place of one that is not there any more an error that says so.
    """
    ordered = sorted(left_out, key=lambda left: left.place.offset)
    for left, raw in zip(ordered, _slices(file, ordered), strict=True):
        if isinstance(raw, InputError):
            yield raw
            continue
        record = unwrap_rejected(raw) if file.bucket is Bucket.REJECTED else raw
        line = reader.read(record)
        if isinstance(line, EventLine) and (line.identity, line.digest) == (left.identity, left.digest):
            yield Again(left, raw, record)
        else:
            yield _changed(file)


def _slices(file: LogFile, ordered: Sequence[LeftOut]) -> Iterator[bytes | InputError]:
    if file.compression is not Compression.NONE:
        yield from _unpacked_slices(file, ordered)
        return
    for left in ordered:
        try:
            yield read_slice(file, left.place.offset, left.place.length)
        except InputError as error:
            yield error


def _unpacked_slices(file: LogFile, ordered: Sequence[LeftOut]) -> Iterator[bytes | InputError]:
    """The same of a compressed file, which can only be read from its start."""
    window, start, done = b"", 0, 0
    try:
        descriptor, _ = open_regular(file.path)
        with os.fdopen(descriptor, "rb", buffering=0):
            blocks = decompress(stored_blocks(descriptor), file.compression)
            for left in ordered:
                begin, end = left.place.offset, left.place.offset + left.place.length
                while True:
                    passed = min(begin - start, len(window))
                    window, start = window[passed:], start + passed
                    if start + len(window) >= end or (block := next(blocks, None)) is None:
                        break
                    window += block
                piece = window[: end - begin]
                yield piece if start == begin and len(piece) == end - begin else _changed(file)
                done += 1
    except (OSError, BrokenContentError):
        for _ in ordered[done:]:
            yield _changed(file)


def _changed(file: LogFile) -> InputError:
    return InputError(
        CHANGED,
        "changed while it was read: a line that had to be kept is not there any more",
        place=file.name,
        remedy="read the input again from its start",
    )
