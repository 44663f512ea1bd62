"""What an output keeps: the bytes, the row of each, and what the bridge's own run tells of it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Final

import orjson
from attrs import Factory, define

from vinaya_bridge.files import Bucket, parse_name
from vinaya_bridge.kept import INDEX_NAME, ORIGIN, REPLAYED, KeptRow, kept_file_name
from vinaya_bridge.ledger import Term
from vinaya_bridge.log.codes import OVER_BOUND
from vinaya_bridge.proof.findings import BROKEN_KEPT, Find
from vinaya_bridge.relay import UNKNOWN_VERSION_TYPE, line_digest
from vinaya_bridge.reread import kept_line

TOLD_WHYS: Final = (
    Term.REFUSED.value,
    Term.CONFLICT.value,
    Term.LATE.value,
    Term.UNKNOWN_VERSION.value,
)
"""Why a line is kept of which the bridge's own run tells."""

_WHYS: Final = frozenset(
    {*TOLD_WHYS, Term.UNMAPPED.value, Term.SELF_TEST.value, Term.PENDING.value, ORIGIN, REPLAYED}
)
_KEPT_FILES: Final = sorted({kept_file_name(why) for why in _WHYS - {REPLAYED}})
_WHYS_OF_CAUSE: Final[Mapping[str, str]] = {
    "malformed": Term.REFUSED,
    "over_bound": Term.REFUSED,
    "duplicate": Term.CONFLICT,
    "finished": Term.LATE,
    UNKNOWN_VERSION_TYPE: Term.UNKNOWN_VERSION,
}
_TEXTS: Final = ("file", "sha256", "why")
_NUMBERS: Final = ("offset", "length", "kept_offset")
_TEXTS_OR_NULL: Final = ("code", "path", "reason", "identity")


@define
class KeptLines:
    """
    The kept lines of an output.

    Memory grows by about 300 bytes a kept line.

    Args:
        folder: ``OUT/kept``.

        rows: The rows that are sound, each with the number of its line in the index.

        replayed: The places of those that were read again and added.
    """

    folder: Path
    rows: list[tuple[int, KeptRow]] = Factory(list)
    replayed: set[tuple[str, int, str]] = Factory(set)

    def counts(self) -> Counter[str]:
        """Return how many lines are kept, by the reason."""
        return Counter(row.why for _, row in self.rows)

    def prints(self) -> dict[str, set[str]]:
        """Return the sha256 of the kept lines, by the reason."""
        found: dict[str, set[str]] = {}
        for _, row in self.rows:
            found.setdefault(row.why, set()).add(row.sha256)
        return found


def read_kept(folder: Path, find: Find) -> KeptLines:
    """
    Check that kept lines are what their rows say, and that there is nothing else.

    Args:
        folder: ``OUT/kept``; it need not exist.

        find: Told of each fault.

    Returns:
        What is sound enough to be compared further.
    """
    kept = KeptLines(folder)
    ends: Counter[str] = Counter()
    with ExitStack() as opened:
        streams = {
            name: opened.enter_context((folder / name).open("rb"))
            for name in _KEPT_FILES
            if (folder / name).is_file()
        }
        places: set[tuple[str, int, str]] = set()
        for number, row in _rows(folder / INDEX_NAME, find):
            place = place_of(number)
            if row.why == REPLAYED:
                if row.place() not in places:
                    find(BROKEN_KEPT, place, "it says that a line was replayed that is not kept")
                kept.replayed.add(row.place())
                continue
            places.add(row.place())
            kept.rows.append((number, row))
            name = kept_file_name(row.why)
            if row.kept_offset != ends[name] or not _has_bytes(streams.get(name), row):
                find(BROKEN_KEPT, place, "the kept bytes are not those of the row")
            ends[name] = row.kept_offset + row.length + 1
        for name, stream in streams.items():
            if stream.seek(0, 2) != ends[name]:
                find(BROKEN_KEPT, f"kept/{name}", "bytes are there that no row names")
    return kept


def place_of(number: int) -> str:
    """Return the place of a row, for people."""
    return f"kept/{INDEX_NAME}:{number}"


def check_told(kept: KeptLines, told: Mapping[tuple[str, str], int], find: Find) -> None:
    """
    Check that the bridge's own run tells of each kept line, and of no other.

    Args:
        kept: The kept lines.

        told: What it tells: the cause, or the type of an event without one, and the digest of the line.

        find: Told of each fault.
    """
    expected: set[tuple[str, str]] = set()
    for number, row in kept.rows:
        if row.why in TOLD_WHYS:
            digests = _digests_of(kept, row)
            expected.update((row.why, digest) for digest in digests)
            if not any((_cause_of(row), digest) in told for digest in digests):
                find(BROKEN_KEPT, place_of(number), "the bridge's own run does not tell of this line")
    for cause, digest in told:
        if (_WHYS_OF_CAUSE.get(cause, ""), digest) not in expected:
            find(BROKEN_KEPT, "the bridge's own run", "it tells of a line that is not kept")


def _digests_of(kept: KeptLines, row: KeptRow) -> set[str]:
    """By what a line can be told: its own bytes, or where it lay in a wrapper, those of the line inside."""
    digests = {row.sha256[:16]}
    if parse_name(row.file)[1] is Bucket.REJECTED:
        digests.add(line_digest(kept_line(kept.folder, row).record))
    return digests


def _cause_of(row: KeptRow) -> str:
    if row.why == Term.REFUSED:
        return "over_bound" if row.code == OVER_BOUND.id else "malformed"
    return next(cause for cause, why in _WHYS_OF_CAUSE.items() if why == row.why)


def _has_bytes(stream: BinaryIO | None, row: KeptRow) -> bool:
    if stream is None:
        return False
    stream.seek(row.kept_offset)
    raw = stream.read(row.length + 1)
    return raw[-1:] == b"\n" and hashlib.sha256(raw[:-1]).hexdigest() == row.sha256


def _rows(path: Path, find: Find) -> Iterator[tuple[int, KeptRow]]:
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            row = _row(raw)
            if row is None:
                find(BROKEN_KEPT, place_of(number), "it is no row of kept lines")
            else:
                yield number, row


def _row(raw: bytes) -> KeptRow | None:
    """A row whose fields have their types; None for anything else."""
    try:
        fields = orjson.loads(raw) if raw.endswith(b"\n") else None
        if not isinstance(fields, dict):
            return None
        row = KeptRow(**fields)
    except (orjson.JSONDecodeError, TypeError):
        return None
    sound = (
        all(isinstance(fields[name], str) for name in _TEXTS)
        and all(_is_count(fields[name]) for name in _NUMBERS)
        and all(isinstance(fields.get(name), str | None) for name in _TEXTS_OR_NULL)
        and (row.line is None or _is_count(row.line))
        and row.why in _WHYS
    )
    return row if sound else None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
