"""
Mapping cases: a folder with a log and what must come out of it, compared byte for byte.

A case is a folder with files ``input*.ndjson`` or a folder ``in``, perhaps an overlay ``mapping.toml``, and
``expected/``: ``runs/<run>/events.jsonl`` as raw bytes, ``counts.json`` and ``kept/index.jsonl``. The sink's clock is
that of the lines, so nothing in it depends on when, where or in which order it was made.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from attrs import frozen

from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.mapping.load import read_mapping
from vinaya_bridge.mapping.table import Table
from vinaya_bridge.mapping.visible import differing_lines, line_difference

OVERLAY = "mapping.toml"
EXPECTED = "expected"
COUNTS = "counts.json"


@frozen
class Case:
    """
    One case.

    Args:
        name: Its path from the folder that was named.

        folder: Where it lies.
    """

    name: str
    folder: Path

    @property
    def inputs(self) -> list[Path]:
        """The logs: files ``input*.ndjson``, or the folder ``in``."""
        files = sorted(self.folder.glob("input*.ndjson"))
        return files or [self.folder / "in"]

    @property
    def overlays(self) -> list[Path]:
        """The overlay, where there is one."""
        overlay = self.folder / OVERLAY
        return [overlay] if overlay.is_file() else []


@frozen
class Difference:
    """
    One way in which a case's output is not what it must be.

    Args:
        file: The file, from ``expected/``.

        line: The line in it, from 1; 0 for the file as a whole.

        rule: ``file:line:column`` of the rule that made the event; empty where none did.

        changes: What differs, for a person: everything in it is visible.
    """

    file: str
    line: int
    rule: str
    changes: tuple[str, ...]


@frozen
class CaseResult:
    """
    What came of a case.

    Args:
        case: The case.

        differences: How its output differs; none: it passed.

        updated: Whether its expectation was written anew.
    """

    case: Case
    differences: tuple[Difference, ...]
    updated: bool = False


def find_cases(folders: Sequence[Path]) -> list[Case]:
    """
    Find the cases in some folders.

    Args:
        folders: Folders that are cases or hold cases, at any depth.

    Returns:
        The cases by path.
    """
    found: dict[Path, Case] = {}
    for folder in folders:
        for inner in sorted([folder, *(each for each in folder.rglob("*") if each.is_dir())]):
            if any(inner.glob("input*.ndjson")) or (inner / "in").is_dir():
                name = inner.resolve().name if inner == folder else inner.relative_to(folder).as_posix()
                found.setdefault(inner.resolve(), Case(name, inner))
    return list(found.values())


def run_case(case: Case, mapping: str | Path, *, update: bool = False) -> CaseResult:
    """
    Convert a case's log and compare what comes out with what must.

    Args:
        case: The case.

        mapping: The mapping under its overlay.

        update: Whether to write what came out as what must come out, where the two differ.

    Returns:
        The differences.

    Raises:
        ConfigurationError: The mapping or the overlay is wrong.
    """
    actual = outcome(case.inputs, mapping, case.overlays)
    expected = _read_files(case.folder / EXPECTED)
    table, _ = read_mapping(mapping, case.overlays)
    differences = tuple(_compare(expected, actual, table))
    if update and differences:
        _write_files(case.folder / EXPECTED, actual)
        return CaseResult(case, (), updated=True)
    return CaseResult(case, differences)


def outcome(inputs: Sequence[Path], mapping: str | Path, overlays: Sequence[Path] = ()) -> dict[str, bytes]:
    """
    Convert logs and take of the output what does not depend on the machine or the moment.

    Args:
        inputs: Files and folders.

        mapping: The mapping.

        overlays: Its overlays.

    Returns:
        Path from ``expected/`` to content.

    Raises:
        ConfigurationError: The mapping or an overlay is wrong.
    """
    with TemporaryDirectory(prefix="vinaya-bridge-case-") as scratch:
        out = Path(scratch) / "out"
        options = ConvertOptions(mapping=mapping, overlays=tuple(overlays), stamp="source")
        report = convert(list(inputs), out, options).data
        counts = {key: report[key] for key in ("lines", "events", "unmapped")}
        found = {COUNTS: orjson.dumps(counts, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"}
        for file in sorted(out.glob("runs/*/events.jsonl")):
            found[file.relative_to(out).as_posix()] = file.read_bytes()
        index = out / "kept" / "index.jsonl"
        if index.is_file() and index.stat().st_size:
            found["kept/index.jsonl"] = index.read_bytes()
        return found


def _read_files(folder: Path) -> dict[str, bytes]:
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def _write_files(folder: Path, files: dict[str, bytes]) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _compare(expected: dict[str, bytes], actual: dict[str, bytes], table: Table) -> Iterator[Difference]:
    if not expected:
        yield Difference(
            EXPECTED, 0, "", ("there is no expectation: look at the output, then give --update",)
        )
        return
    for name in sorted({*expected, *actual}):
        if name not in actual:
            yield Difference(name, 0, "", ("expected, and not there",))
        elif name not in expected:
            yield Difference(name, 0, "", ("there, and not expected",))
        elif expected[name] != actual[name]:
            for number, old, new in differing_lines(expected[name], actual[name]):
                yield Difference(name, number, _rule_of(new or old, table), tuple(line_difference(old, new)))


def _rule_of(line: bytes | None, table: Table) -> str:
    """Where the rule stands that made an event, as its ``vinaya`` block names it."""
    try:
        block = orjson.loads(line or b"")["payload"]["vinaya"]
        rule = table.rules.get((block["kind"], block["event"]))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return ""
    return "" if rule is None else str(rule.place)
