"""Restore: the log's lines, given back from an output that keeps them whole (design, section 5)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, cast

import orjson
from attrs import frozen

from ethogram.canonical import canonical_payload, format_number
from vinaya_bridge import stored
from vinaya_bridge.errors import Code, ConfigurationError, SinkError
from vinaya_bridge.kept import REPLAYED, kept_rows
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.text import Json, parse
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import OUTPUT_UNWRITABLE, Output, writing
from vinaya_bridge.places import check_output_not_inside_inputs
from vinaya_bridge.reading import read_pieces
from vinaya_bridge.report import keeps_lines_whole
from vinaya_bridge.reread import kept_line
from vinaya_bridge.stored import stored_payloads

NOT_WHOLE = Code(
    "VB421",
    "the output does not keep its lines whole",
    "Events name their line and carry what the mapping takes from it; the rest of the line is in the log alone, unless "
    "convert or tail is told --origin full. Then one event of each line carries it whole, and lines without events are "
    "kept. Convert the log again with --origin full, into the same output or another one: what is missing is added.",
)
PLACE_TAKEN = Code(
    "VB422",
    "there is something where the log would be restored",
    "The lines are given back as a new directory, written whole or not at all, so that they are never mixed with the "
    "lines of a live log. Give a directory that does not exist, or an empty one.",
)
CODES = (NOT_WHOLE, PLACE_TAKEN, *stored.CODES)

_SEGMENT: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,198}[A-Za-z0-9])?", re.ASCII)
_COMMIT_EVERY: Final = 10_000
_SCHEMA: Final = """
CREATE TABLE lines (
  value BLOB NOT NULL UNIQUE,
  file TEXT NOT NULL,
  process TEXT NOT NULL,
  seq INTEGER NOT NULL,
  identity TEXT NOT NULL,
  text BLOB NOT NULL,
  redacted INTEGER NOT NULL
);
CREATE TABLE held (
  identity TEXT NOT NULL,
  digest TEXT NOT NULL,
  whole INTEGER NOT NULL,
  PRIMARY KEY (identity, digest)
) WITHOUT ROWID;
"""


@frozen
class Restoration:
    """
    What was given back, and what was not.

    Args:
        files: Name of each file that was written, under the directory, and how many lines it has.

        redacted: File and line number of each line of which a secret was cut out when it was converted: it is given
            back with ``<redacted>`` in the secret's place.

        missing: Identities of the lines whose events carry them in part only: they were converted without
            ``--origin full``. They cannot be given back.

        kept: How many lines are no events, by the reason why they are kept: they stay in ``OUT/kept``, byte for byte.

        waiting: How many lines a tail has read and not written: they are in its position, in ``OUT/state``.
    """

    files: list[tuple[str, int]]
    redacted: list[tuple[str, int]]
    missing: list[str]
    kept: dict[str, int]
    waiting: int

    @property
    def lines(self) -> int:
        """How many lines were given back."""
        return sum(lines for _, lines in self.files)

    @property
    def complete(self) -> bool:
        """Whether no line of the output was left out."""
        return not self.missing and not self.waiting

    def data(self) -> dict[str, JsonValue]:
        """Return it as JSON."""
        return {
            "complete": self.complete,
            "lines": self.lines,
            "files": [{"name": name, "lines": lines} for name, lines in self.files],
            "redacted": [[name, line] for name, line in self.redacted],
            "missing": list[JsonValue](self.missing),
            "kept": dict(self.kept),
            "waiting": self.waiting,
        }


def restore(out: str | Path, logs: str | Path, *, reader: Reader | None = None) -> Restoration:
    """
    Write the lines of an output that was made with ``--origin full`` as a directory of log files.

    A line stands in the file in which Vinaya would look for it, ``<owner>-<repo>/<issue>.ndjson``, by what it says of
    itself. In a file, lines are ordered by process, then seq, so the result depends on the lines alone. Every event
    line is given back once, conflicting, late and over-bound ones too, as the same JSON value: of a line that an event
    carries, key order and spacing are those of the canonical form. What is no event stays in ``OUT/kept``. Together
    they are the log, save repeats and blank lines. Memory does not grow with the output.

    Args:
        out: The output directory.

        logs: The directory to write; it must not exist, or be empty.

        reader: Reads kept lines; None is the one of this version.

    Returns:
        What was given back, and what was not.

    Raises:
        ConfigurationError: The output does not keep its lines whole, or something stands where they would go.

        SinkError: The directory cannot be written, or the output is not what this tool writes.
    """
    output, target = Output(Path(out)), Path(logs)
    report = output.read_report()
    if report is None or not keeps_lines_whole(report):
        raise ConfigurationError(
            NOT_WHOLE,
            "it was not made with --origin full"
            if report is not None
            else "it has no report of a call that ended",
            place=str(output.root),
            remedy="convert the log again with --origin full; what the output holds is not repeated",
        )
    check_output_not_inside_inputs(target, [output.root])
    _check_free(target)
    waiting = report.get("waiting")
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        with closing(_Lines(scratch / "lines.sqlite")) as lines:
            _collect_events(output, lines)
            kept = _collect_kept(output.kept, lines, reader or Reader())
            files, redacted = _write(lines, scratch / "logs")
            missing = lines.missing()
        with writing(target):
            (scratch / "logs").rename(target)
    except sqlite3.Error as fault:
        raise SinkError(
            OUTPUT_UNWRITABLE,
            f"SQLite: {fault}",
            place=str(target.parent),
            remedy="make room beside the directory that is written, then run the same command again",
        ) from fault
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Restoration(files, redacted, missing, kept, len(waiting) if isinstance(waiting, list) else 0)


def stream_of(line: dict[str, Json]) -> str:
    """
    Return the file in which Vinaya would look for a line, by what the line says of itself.

    Vinaya files reference, section 2: the repository with a hyphen for the slash, then the Issue.

    Args:
        line: A valid line as decoded JSON.
    """
    meta, subject = cast(dict[str, Json], line["meta"]), cast(dict[str, Json], line["subject"])
    repo, issue = meta.get("repo"), subject.get("issue")
    owner, slash, name = repo.partition("/") if isinstance(repo, str) else ("", "", "")
    folder = f"{owner}-{name}"
    is_named = bool(slash) and all(_SEGMENT.fullmatch(part) for part in (owner, name, folder))
    if not is_named or ".." in folder:
        folder = "unresolved"
    number = format_number(issue) if isinstance(issue, int | float) else "none"
    return f"{folder}/{number}.ndjson"


def _check_free(target: Path) -> None:
    if not (os.path.lexists(target)):
        return
    if target.is_symlink() or not target.is_dir() or any(target.iterdir()):
        raise ConfigurationError(
            PLACE_TAKEN,
            "something stands there already",
            place=str(target),
            remedy="give a directory that does not exist, or an empty one, with -o",
        )


class _Lines:
    """The lines that are given back, sorted and made distinct on disk."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; {_SCHEMA} BEGIN;")
        self._held: list[tuple[str, str, bool]] = []
        self._lines: list[tuple[object, ...]] = []

    def hold(self, identity: str, digest: str, *, is_whole: bool) -> None:
        """Note that the output has an event, or the whole, of a line."""
        self._held.append((identity, digest, is_whole))
        if len(self._held) >= _COMMIT_EVERY:
            self._flush()

    def add(
        self, line: dict[str, Json], text: bytes, *, exact: bytes, identity: str, is_redacted: bool = False
    ) -> None:
        """Take a line with its text, and one that is the same for the same value; a value is given back once."""
        value = hashlib.sha256(exact).digest()
        meta = cast(dict[str, Json], line["meta"])
        row = (value, stream_of(line), _process_of(line), _whole(meta["seq"]), identity, text, is_redacted)
        self._lines.append(row)
        if len(self._lines) >= _COMMIT_EVERY:
            self._flush()

    def _flush(self) -> None:
        self._database.executemany(
            "INSERT INTO held VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET whole = whole OR excluded.whole",
            self._held,
        )
        self._database.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?, ?, ?, ?, ?)", self._lines)
        self._held.clear()
        self._lines.clear()

    def ordered(self) -> Iterator[tuple[str, bytes, bool]]:
        """Yield file, text and whether it was redacted, of each line in the order in which they are written."""
        self._flush()
        query = "SELECT file, text, redacted FROM lines ORDER BY file, process, seq, identity, value"
        for file, text, redacted in self._database.execute(query):
            yield file, text, bool(redacted)

    def missing(self) -> list[str]:
        """Return the identities of the lines of which there are events, and not the whole."""
        self._flush()
        query = "SELECT DISTINCT identity FROM held WHERE NOT whole ORDER BY identity"
        return [identity for (identity,) in self._database.execute(query)]

    def close(self) -> None:
        """Close it; it is removed with its folder."""
        self._database.close()


def _collect_events(output: Output, lines: _Lines) -> None:
    for run_id, payload in stored_payloads(output):
        block = payload.get("vinaya")
        if run_id == RELAY_RUN or not isinstance(block, dict) or "part" not in block:
            continue
        identity, line = str(block.get("eventId")), block.get("line")
        lines.hold(identity, str(block.get("digest")), is_whole=line is not None)
        if isinstance(line, dict):
            text = canonical_payload(line)
            lines.add(line, text, exact=text, identity=identity, is_redacted="redacted" in block)


def _collect_kept(folder: Path, lines: _Lines, reader: Reader) -> dict[str, int]:
    """Take the kept lines that are events; return how many are none, by the reason why they are kept."""
    others: Counter[str] = Counter()
    for row in kept_rows(folder):
        if row.why == REPLAYED:
            continue
        for piece in read_pieces(reader, kept_line(folder, row)):
            if isinstance(piece.verdict, EventLine):
                line = cast(dict[str, Json], parse(piece.raw.decode()))
                identity = piece.verdict.identity
                lines.hold(identity, piece.verdict.digest, is_whole=True)
                lines.add(line, piece.raw, exact=_exact_text(line), identity=identity)
            else:
                others[row.why] += 1
    return dict(sorted(others.items()))


def _write(lines: _Lines, folder: Path) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Write the files; return each with its number of lines, and the places of those that were redacted."""
    files: Counter[str] = Counter()
    redacted: list[tuple[str, int]] = []
    with writing(folder):
        folder.mkdir(mode=0o700)
        name, stream = "", None
        try:
            for file, text, is_redacted in lines.ordered():
                if file != name or stream is None:
                    if stream is not None:
                        stream.close()
                    name = file
                    (folder / name).parent.mkdir(mode=0o700, exist_ok=True)
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    stream = os.fdopen(os.open(folder / name, flags, 0o600), "wb", buffering=1 << 16)
                stream.write(text + b"\n")
                files[name] += 1
                if is_redacted:
                    redacted.append((name, files[name]))
        finally:
            if stream is not None:
                stream.close()
    return sorted(files.items()), redacted


def _exact_text(line: dict[str, Json]) -> bytes:
    """A text that is the same for the same JSON value, and for no other."""
    text = canonical_payload(line)
    if orjson.loads(text) == line:
        return text
    return json.dumps(line, sort_keys=True).encode()


def _process_of(line: dict[str, Json]) -> str:
    """What counts a line's seq, as `vinaya_bridge.log.identity.process_of` names it."""
    meta, subject = cast(dict[str, Json], line["meta"]), cast(dict[str, Json], line["subject"])
    if meta["schema"] == 1:
        return orjson.dumps([meta["run_id"], meta["host"], meta["machine"], subject["role"]]).decode()
    return str(meta["process_id"])


def _whole(number: Json) -> int:
    return min(int(cast(float, number)), 2**63 - 1)
