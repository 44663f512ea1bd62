"""Hypothesis strategies for whole logs: loops, processes, copies and conflicts, spread over files."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import evolve, frozen
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.support.strategies import SHAPES, Json, Line, dump, line_objects, spelled, stamp
from vinaya_bridge.log.shapes import schemas_of

Step = tuple[str, str]
"""A kind and an event."""

_LOOP: Final = "dev_review_loop"
SCRIPTS: Final[tuple[tuple[Step, ...], ...]] = (
    (
        (_LOOP, "loop_started"),
        (_LOOP, "round_started"),
        ("dispatch", "dispatched"),
        ("role_attempt", "attempted"),
        ("dispatch", "outcome_received"),
        (_LOOP, "journal_finalized"),
        (_LOOP, "driver_exited"),
    ),
    ((_LOOP, "loop_started"), ("usage", "observed"), (_LOOP, "paused"), (_LOOP, "driver_exited")),
    ((_LOOP, "resumed"), ("handoff", "resolved"), (_LOOP, "driver_heartbeat"), (_LOOP, "driver_exited")),
    (
        ("dispatch", "dispatched"),
        ("usage", "observed"),
        ("dispatch", "dispatch_failed"),
        ("dispatch", "dispatched"),
    ),
    ((_LOOP, "cancelled"), ("operation", "completed"), (_LOOP, "loop_started")),
    (("gate", "checked"), ("gate", "summary"), ("effect", "verified")),
    ((_LOOP, "driver_exited"), (_LOOP, "gate_result_read"), (_LOOP, "driver_exited")),
)
"""What processes write: whole loops, second sittings, dispatches under one id, ends with lines behind."""

FILE_NAMES: Final = (
    "acme-lantern/7.ndjson",
    "acme-lantern/7.1.ndjson",
    "acme-lantern/7.draining.ndjson",
    "acme-lantern/none.ndjson",
    "acme-beacon/7.ndjson",
    "unresolved/none.ndjson",
)
"""Live files, a slot and a queue's bucket; no name says anything about what is inside."""


@frozen
class WholeLog:
    """
    A log as a set of lines.

    Args:
        lines: Every line, in the order written, copies and conflicting ones last; bytes without a newline.

        identities: The identities, in the order written; each has exactly one line that stays.

        duplicates: How many lines say the same as another one under the same identity.

        conflicts: How many lines lose against another line of the same identity.
    """

    lines: tuple[bytes, ...]
    identities: tuple[str, ...]
    duplicates: int
    conflicts: int


@frozen
class _Process:
    """What all lines of one generated process share."""

    name: str
    schema: int
    run: str
    loop: str
    host: str
    role: str


@st.composite
def whole_logs(draw: DrawFn, *, processes_at_most: int = 4, repeats_at_most: int = 4) -> WholeLog:
    """
    Logs of one to three loops, each the work of some processes.

    In a process `seq` counts from 0 with gaps, and time runs mostly forward. Under schema 1 every process
    has a run of its own, since processes that share one share their identities.

    Args:
        processes_at_most: The greatest number of processes.

        repeats_at_most: The greatest number of lines that come again, as a duplicate or as a conflict.

    Returns:
        The log and what a reader must count in it.
    """
    loops = draw(st.integers(1, 3))
    found: list[Line] = []
    for number in range(draw(st.integers(1, processes_at_most))):
        loop = draw(st.integers(1, loops))
        schema = draw(st.sampled_from([3, 3, 2, 1]))
        shared = draw(st.booleans()) and schema != 1
        process = _Process(
            name=f"proc-{number}",
            schema=schema,
            run=f"run-{loop}" if shared else f"run-{loop}.{number}",
            loop=draw(st.sampled_from([f"loop-{loop}", f"run-{loop}"])),
            host=draw(st.sampled_from(["loop", "cli", "ci", "hook"])),
            role=draw(st.sampled_from(["unattributed", "developer"])),
        )
        found += draw(_process_lines(process))
    identities = tuple(identity_of(line) for line in found)
    repeats: list[bytes] = []
    duplicates = conflicts = 0
    for number in range(draw(st.integers(0, repeats_at_most))):
        line = draw(st.sampled_from(found))
        if draw(st.booleans()):
            repeats.append(spelled(line, draw(st.integers(0, 3))))
            duplicates += 1
        else:
            repeats.append(dump(_edited(line, number)))
            conflicts += 1
    lines = tuple(dump(line) for line in found) + tuple(repeats)
    return WholeLog(lines, identities, duplicates, conflicts)


@st.composite
def _process_lines(draw: DrawFn, process: _Process) -> list[Line]:
    steps = [step for step in draw(st.sampled_from(SCRIPTS)) if process.schema in schemas_of(*step)]
    extra = draw(st.lists(st.sampled_from(SHAPES), max_size=2))
    steps += [(kind, event) for kind, event, schema in extra if schema == process.schema]
    seq, now_ms = 0, draw(st.integers(0, 10**7))
    written = []
    for kind, event in steps:
        line = copy.deepcopy(draw(line_objects(kind, event, process.schema, plain=True)))
        now_ms += draw(st.sampled_from([1, 20, 4000, 700_000, 0, -5000]))
        readable = draw(st.integers(0, 9)) > 0
        _place(line, process, seq, stamp(max(now_ms, 0)) if readable else "no time")
        if "effect_id" in line:
            line["effect_id"] = draw(st.sampled_from(["eff-1", "eff-2", "eff/~%3"]))
        written.append(line)
        seq += draw(st.sampled_from([1, 1, 1, 3]))
    return written


def _place(line: Line, process: _Process, seq: int, ts: str) -> None:
    """Give a line its process's header fields."""
    meta, subject = line["meta"], line["subject"]
    assert isinstance(meta, dict)
    assert isinstance(subject, dict)
    meta |= {
        "ts": ts,
        "run_id": process.run,
        "seq": seq,
        "host": process.host,
        "machine": f"machine-{process.name}",
    }
    subject["role"] = process.role
    if process.schema > 1:
        meta |= {
            "event_id": f"ev-{process.name}-{seq}",
            "process_id": process.name,
            "lineage": {"run": process.loop, "attempt": None, "parent": None},
        }


def _edited(line: Line, number: int) -> Line:
    """The same identity with other content; each number gives another one."""
    edited = copy.deepcopy(line)
    meta = edited["meta"]
    assert isinstance(meta, dict)
    meta["doctrine"] = f"edited-{number}"
    return edited


def identity_of(line: Line) -> str:
    """
    The identity of a valid line. Source: Vinaya Log reference, Reading rules: Identity.

    Args:
        line: A valid line as decoded JSON.

    Returns:
        The event id; under schema 1 the run id and the `seq`.
    """
    meta = line["meta"]
    assert isinstance(meta, dict)
    identity = meta.get("event_id")
    return identity if isinstance(identity, str) else f"{meta['run_id']}:{_whole(meta['seq'])}"


def _whole(number: Json) -> int:
    assert isinstance(number, int | float)
    return int(number)


@st.composite
def spread(draw: DrawFn, lines: Sequence[bytes]) -> dict[str, bytes]:
    """
    Lay lines out over files, in any order, as rotation, queues and several writers do.

    Args:
        lines: Lines without a newline.

    Returns:
        File names relative to a log folder, with contents in which every line ends in a newline.
    """
    files: dict[str, bytes] = {}
    for line in draw(st.permutations(lines)):
        name = draw(st.sampled_from(FILE_NAMES))
        files[name] = files.get(name, b"") + line + b"\n"
    return files


def spread_logs() -> SearchStrategy[tuple[WholeLog, dict[str, bytes]]]:
    """
    Whole logs with one way to lay each out.

    Returns:
        The log and its files.
    """
    return whole_logs().flatmap(lambda log: st.tuples(st.just(log), spread(log.lines)))


def write_files(root: Path, files: dict[str, bytes]) -> Path:
    """
    Write files under a folder.

    Args:
        root: The folder; made if absent.

        files: Names relative to it, with contents.

    Returns:
        The folder.
    """
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def without_repeats(log: WholeLog) -> WholeLog:
    """
    Leave out what comes again.

    Args:
        log: A log.

    Returns:
        The same with one line for each identity, the one that was written first.
    """
    return evolve(log, lines=log.lines[: len(log.identities)], duplicates=0, conflicts=0)
