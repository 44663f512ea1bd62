"""What is kept byte for byte: lines that gave no events, and where each of them lay (design, section 5)."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import orjson
from attrs import asdict, evolve, field, frozen
from attrs.validators import instance_of

from vinaya_bridge.errors import SinkError
from vinaya_bridge.log.codes import CONFLICT, LATE
from vinaya_bridge.output import OUTPUT_FOREIGN, writing

INDEX_NAME = "index.jsonl"
_FILES = {
    "unknown_version": "unknown-version.ndjson",
    "refused": "refused.ndjson",
    "conflict": "refused.ndjson",
    "late": "refused.ndjson",
}
_ORIGIN_FILE = "origin.ndjson"

ORIGIN = "origin"
"""Why a line that gave events is kept: with ``--origin full``, none of them could carry it whole."""

SETTLED: Mapping[str, tuple[str, str]] = {
    "conflict": (CONFLICT.id, "another content stands under its identity"),
    "late": (LATE.id, "the run that it belongs to is finished"),
}
"""Code and reason of valid lines that are kept, by why."""

REPLAYED = "replayed"
"""Why there is a second row for kept bytes: they were read again, and what they say was added to the output."""


@frozen
class KeptRow:
    """
    Where a kept line lay and why it is kept.

    Args:
        file: Name of the input file, relative to the argument it was reached through.

        line: Number of the physical line, from 1; None where reading began in the middle of the file.

        offset: Of the line or piece in the uncompressed file, in bytes.

        length: In bytes, without the newline.

        sha256: Of these bytes, hex.

        why: ``refused``, ``conflict``, ``late`` or ``unknown_version``; with ``--origin full`` also ``unmapped``,
            ``self_test``, ``pending`` or ``origin``. ``replayed``: the row of the same file, offset and sha256 that
            stands before was read again, and added; it has no bytes of its own.

        code: Of the fault, or None.

        path: Of the field at fault, as ``$.path``, or None.

        reason: What is wrong, without any value; or None.

        kept_offset: Where the bytes stand in the kept file.

        identity: Of an event line that came too late: it stays late when it comes again.
    """

    file: str = field(validator=instance_of(str))
    line: int | None
    offset: int = field(validator=instance_of(int))
    length: int = field(validator=instance_of(int))
    sha256: str = field(validator=instance_of(str))
    why: str = field(validator=instance_of(str))
    code: str | None
    path: str | None
    reason: str | None
    kept_offset: int = field(validator=instance_of(int))
    identity: str | None = None

    def place(self) -> tuple[str, int, str]:
        """Return what tells the kept bytes from all others: file, offset and sha256."""
        return self.file, self.offset, self.sha256

    def key(self) -> bytes:
        """Return what makes two rows the same: the place, the bytes and the reason for keeping them."""
        place = f"{self.file}\0{self.offset}\0{self.sha256}\0{self.why}"
        return identity_mark(place)


def identity_mark(text: str) -> bytes:
    """Return twelve bytes that stand for *text*."""
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=12).digest()


def _row_text(row: KeptRow) -> bytes:
    fields = asdict(row)
    if row.identity is None:
        del fields["identity"]
    return orjson.dumps(fields) + b"\n"


def _foreign(path: Path, message: str) -> SinkError:
    return SinkError(
        OUTPUT_FOREIGN,
        message,
        place=str(path),
        remedy="put the file back, or give another directory with -o; nothing was changed",
    )


def kept_file_name(why: str) -> str:
    """Return the name of the file that holds the lines kept for this reason."""
    return _FILES.get(why, _ORIGIN_FILE)


class KeptStore:
    """
    The kept lines of an output directory; adding a line that is there already, from the same place, does nothing.

    Opening it mends what a killed process left, and that only: a torn last row, and bytes that no row names yet, are
    cut off; they are read again. Its memory grows by about a hundred bytes a kept line.

    Args:
        folder: ``OUT/kept``; made when the first line is added.

    Raises:
        SinkError: What is there cannot be read or mended, or this tool did not write it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._streams: dict[str, BinaryIO] = {}
        self._ends: dict[str, int] = {}
        self._known: set[bytes] = set()
        self._counts: Counter[str] = Counter()
        self._late: set[bytes] = set()
        with writing(folder):
            if folder.is_dir():
                self._mend()

    def _mend(self) -> None:
        names = {*_FILES.values(), _ORIGIN_FILE}
        sizes = {
            name: (self._folder / name).stat().st_size for name in names if (self._folder / name).exists()
        }
        index = self._folder / INDEX_NAME
        if any(sizes.values()) and not index.exists():
            raise _foreign(index, "it is missing, and lines are kept beside it")
        for row, end in _rows_with_end(index):
            if row.why != REPLAYED:
                name = kept_file_name(row.why)
                if row.kept_offset + row.length + 1 > sizes.get(name, 0):
                    break
                self._ends[name] = max(self._ends.get(name, 0), row.kept_offset + row.length + 1)
            self._remember(row)
            self._ends[INDEX_NAME] = end
        else:
            self._refuse_foreign_rows(index)
        for name in (INDEX_NAME, *sizes):
            path = self._folder / name
            end = self._ends.get(name, 0)
            if path.exists() and path.stat().st_size > end:
                os.truncate(path, end)

    def _refuse_foreign_rows(self, index: Path) -> None:
        """Stop at a whole line that is no row: nothing behind it may be cut."""
        if index.exists():
            with index.open("rb") as stream:
                stream.seek(self._ends.get(INDEX_NAME, 0))
                if stream.readline().endswith(b"\n"):
                    raise _foreign(index, "a line of it is no row of this tool")

    def _remember(self, row: KeptRow) -> None:
        self._known.add(row.key())
        self._counts[row.why] += 1
        if row.identity is not None:
            self._late.add(identity_mark(row.identity))

    @property
    def late(self) -> Set[bytes]:
        """The marks of the identities of lines that came too late before: see `identity_mark`."""
        return self._late

    def add(
        self,
        raw: bytes,
        *,
        file: str,
        line: int | None,
        offset: int,
        why: str,
        code: str | None = None,
        path: str | None = None,
        reason: str | None = None,
        identity: str | None = None,
    ) -> KeptRow | None:
        """
        Keep one line or piece of a line.

        Args:
            raw: Its bytes, without the newline.

            file: Name of the input file.

            line: Number of the physical line, from 1, where it is known.

            offset: In bytes, in the uncompressed file.

            why: See `KeptRow`.

            code: Of the fault.

            path: Of the field at fault.

            reason: What is wrong, without any value.

            identity: See `KeptRow`.

        Returns:
            The row, or None when this line was kept before.
        """
        name = kept_file_name(why)
        row = KeptRow(
            file=file,
            line=line,
            offset=offset,
            length=len(raw),
            sha256=hashlib.sha256(raw).hexdigest(),
            why=why,
            code=code,
            path=path,
            reason=reason,
            kept_offset=self._ends.get(name, 0),
            identity=identity,
        )
        if row.key() in self._known:
            return None
        self._write(name, raw + b"\n")
        self._add_row(row)
        return row

    def mark_replayed(self, row: KeptRow, reason: str) -> None:
        """
        Say of a kept line that it was read again and added to the output.

        Args:
            row: Its row.

            reason: By what, and what became of it.
        """
        marked = evolve(row, why=REPLAYED, code=None, path=None, reason=reason)
        if marked.key() not in self._known:
            self._add_row(marked)

    def _add_row(self, row: KeptRow) -> None:
        self._remember(row)
        self._write(INDEX_NAME, _row_text(row))

    @property
    def index_bytes(self) -> int:
        """How long the index is, with what was added."""
        return self._ends.get(INDEX_NAME, 0)

    def counts(self) -> dict[str, int]:
        """Return how many lines are kept, by the reason."""
        return dict(self._counts)

    def _write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        with writing(path):
            stream = self._streams.get(name)
            if stream is None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
                stream = self._streams[name] = os.fdopen(descriptor, "ab", buffering=1 << 16)
            stream.write(data)
        self._ends[name] = self._ends.get(name, 0) + len(data)

    def sync(self) -> None:
        """
        Make what was added durable, the bytes before the index that names them.

        Raises:
            SinkError: They could not be written; `add` raises it too.
        """
        for name, stream in self._bytes_first():
            with writing(self._folder / name):
                stream.flush()
                os.fdatasync(stream.fileno())

    def close(self) -> None:
        """
        Write out and close the files.

        Raises:
            SinkError: Something could not be written out; all files are closed nevertheless.
        """
        with ExitStack() as closing:
            for name, stream in reversed(self._bytes_first()):
                closing.enter_context(writing(self._folder / name))
                closing.callback(stream.close)
        self._streams.clear()

    def _bytes_first(self) -> list[tuple[str, BinaryIO]]:
        return sorted(self._streams.items(), key=lambda item: item[0] == INDEX_NAME)


def kept_rows(folder: Path) -> Iterator[KeptRow]:
    """
    Yield the rows of a folder of kept lines; a torn last row is left out.

    Args:
        folder: ``OUT/kept``; it need not exist.
    """
    for row, _ in _rows_with_end(folder / INDEX_NAME):
        yield row


def kept_rows_at(folder: Path) -> Iterator[tuple[int, KeptRow]]:
    """
    Yield the rows of a folder of kept lines, each with where it stands in the index, in bytes.

    Args:
        folder: ``OUT/kept``; it need not exist.
    """
    start = 0
    for row, end in _rows_with_end(folder / INDEX_NAME):
        yield start, row
        start = end


def kept_row_at(folder: Path, at: int) -> KeptRow:
    """
    Return one row.

    Args:
        folder: ``OUT/kept``.

        at: Where it stands in the index, as `kept_rows_at` says it.
    """
    with (folder / INDEX_NAME).open("rb") as stream:
        stream.seek(at)
        return KeptRow(**orjson.loads(stream.readline()))


def kept_bytes(folder: Path, row: KeptRow) -> bytes:
    """
    Return the bytes of a kept line; fewer, where the kept file is shorter than the row says.

    Args:
        folder: ``OUT/kept``.

        row: Its row; not one that says ``replayed``.
    """
    try:
        with (folder / kept_file_name(row.why)).open("rb") as stream:
            stream.seek(row.kept_offset)
            return stream.read(row.length)
    except FileNotFoundError:
        return b""


def _rows_with_end(path: Path) -> Iterator[tuple[KeptRow, int]]:
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        end = 0
        for raw in stream:
            if not raw.endswith(b"\n"):
                return
            end += len(raw)
            try:
                row = KeptRow(**orjson.loads(raw))
            except (orjson.JSONDecodeError, TypeError):
                return
            yield row, end
