"""``vinaya-bridge report``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click
import orjson

from vinaya_bridge.cli.table import table
from vinaya_bridge.cli.words import counts, printable, row, say_notices
from vinaya_bridge.codes import find_code
from vinaya_bridge.ledger import JsonValue, Term, equation
from vinaya_bridge.output import Output
from vinaya_bridge.overview import Conflict, KeptGroup, Overview
from vinaya_bridge.overview import overview as read_overview
from vinaya_bridge.terminal import escape_in_json

_MOST_SHOWN = 20
_LONGEST_NAME = 60
_PART_LENGTH = 20


@click.command()
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print report.json as it stands.")
def report(out: Path, *, as_json: bool) -> None:
    """
    Say what became of the lines of OUT: what was kept and why, gaps, conflicts, versions, what is left out.

    The first line is of the last call, the second of all calls on OUT. What is kept is that of all calls; gaps,
    versions and what is unmapped are those of the last call.
    """
    found = read_overview(out)
    if as_json:
        click.echo(escape_in_json(Output(out).report.read_text("utf-8")), nl=False)
        return
    data = found.report
    say_notices(data.get("notices"))
    _say_lines("last call", data.get("lines"))
    _say_lines("all calls", data.get("total"))
    _say_made_by(data.get("bridge"))
    _say_runs(data.get("runs"))
    _say_counts("events", data.get("events"))
    _say_kept(found.kept)
    _say_counts("unmapped", data.get("unmapped"))
    _say_gaps(data.get("gaps"))
    _say_conflicts(found.conflicts)
    _say_versions(data.get("versions"))
    _say_pending(found)


def _say_lines(label: str, lines: JsonValue) -> None:
    if isinstance(lines, dict):
        names = ["read", *(term.value for term in Term)]
        row(label, equation({name: n if isinstance(n := lines.get(name), int) else 0 for name in names}))


def _say_made_by(bridge: JsonValue) -> None:
    if not isinstance(bridge, dict):
        return
    mapping = bridge.get("mapping")
    named = (
        f"mapping {mapping.get('name')} {str(mapping.get('digest'))[:12]}"
        if isinstance(mapping, dict)
        else ""
    )
    row("made by", f"vinaya-bridge {bridge.get('version')}, {named}, origin {bridge.get('origin')}")
    row("", f"from {bridge.get('started')} to {bridge.get('ended')}")


def _say_runs(runs: JsonValue) -> None:
    if isinstance(runs, dict):
        row("runs", counts(runs))


def _say_counts(label: str, numbers: JsonValue) -> None:
    if isinstance(numbers, dict):
        known = {name: number for name, number in numbers.items() if isinstance(number, int)}
        ordered = sorted(known.items(), key=lambda item: (-item[1], item[0]))
        _say_some(label, [f"{number:,} {_short(name)}" for name, number in ordered], per_row=4)


def _say_kept(groups: list[KeptGroup]) -> None:
    if not groups:
        row("kept", "nothing")
        return
    rows = []
    for group in groups:
        code = None if group.code is None else find_code(group.code)
        title = "" if code is None else code.title
        if group.replayed:
            title = f"{title}; {group.replayed:,} replayed since".removeprefix("; ")
        file, line = group.first
        where = file if line is None else f"{file}:{line}"
        rows.append([f"{group.lines:,}", group.why.replace("_", " "), group.code or "", title, where])
    for text in table(("KEPT", "WHY", "CODE", "MEANING", "FIRST"), rows, right=("KEPT",)):
        click.echo(text)


def _say_gaps(gaps: JsonValue) -> None:
    if not isinstance(gaps, list) or not gaps:
        row("gaps", "none")
        return
    texts = []
    for gap in gaps:
        missing = gap.get("missing") if isinstance(gap, dict) else None
        if isinstance(gap, dict) and isinstance(missing, list):
            ranges = [each for each in missing if isinstance(each, list)]
            texts.append(f"{_process(str(gap.get('process')))} lacks {_ranges(ranges)}")
    _say_some("gaps", texts)


def _process(name: str) -> str:
    """A process as it fits in a line; under schema 1 it is named by a list of three, of which each keeps its start."""
    try:
        parts = orjson.loads(name)
    except orjson.JSONDecodeError:
        return _short(name)
    if not isinstance(parts, list):
        return _short(name)
    return " ".join(text[:_PART_LENGTH] for text in map(str, parts))


def _ranges(ranges: list[list[JsonValue]]) -> str:
    texts = [f"{first}" if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_SHOWN]]
    more = f" and {len(ranges) - _MOST_SHOWN:,} more ranges" if len(ranges) > _MOST_SHOWN else ""
    return ", ".join(texts) + more


def _say_conflicts(conflicts: list[Conflict]) -> None:
    if not conflicts:
        row("conflicts", "none")
        return
    texts = []
    for one in conflicts:
        other = "the other one is of an earlier call" if one.stays is None else f"{_place(one.stays)} stays"
        texts.append(f"{_place(one.kept)} is kept; {other}")
    _say_some("conflicts", texts)


def _place(place: tuple[str, int | None]) -> str:
    file, line = place
    return file if line is None else f"{file}:{line}"


def _say_versions(versions: JsonValue) -> None:
    if isinstance(versions, dict):
        schemas = versions.get("schemas")
        named = {f"schema {name}": n for name, n in schemas.items()} if isinstance(schemas, dict) else {}
        _say_counts("schemas", dict[str, JsonValue](named))
        _say_counts("CLI", versions.get("cli"))
        _say_counts("trust", versions.get("trust"))


def _say_pending(found: Overview) -> None:
    pending = found.report.get("pending_lines")
    if isinstance(pending, list) and pending:
        _say_some("pending", [":".join(map(str, each)) for each in pending if isinstance(each, list)])
    waiting = found.report.get("waiting")
    if isinstance(waiting, list) and waiting:
        row("waiting", f"{len(waiting):,} lines: a tail has read them and not written them yet")


def _short(text: str) -> str:
    """A name as it fits in a line; a log can hold one of any length, and an empty one."""
    if not text:
        return "(empty)"
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _say_some(label: str, texts: Iterable[str], per_row: int = 1) -> None:
    """Print some texts under one label, and how many more there are."""
    all_texts = [printable(text) for text in texts]
    shown = all_texts[: _MOST_SHOWN * per_row]
    for start in range(0, len(shown), per_row):
        row(label if start == 0 else "", ", ".join(shown[start : start + per_row]))
    if len(all_texts) > len(shown):
        row("", f"and {len(all_texts) - len(shown):,} more: see --json")
