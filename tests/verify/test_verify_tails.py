"""`verify` of what a tail wrote: every sink, and lines that wait."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.samples import sample
from tests.support.strategies import Line
from tests.tail.tailing import Desk, beat, edited, exited, gate, started
from vinaya_bridge.cli.verify import verify as command
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.verify import verify

TURN: dict[str, Any] = {"effect_id": "eff-1", "target_role": "developer"}
LINES: list[Line] = [
    started(),
    beat(1),
    sample("dispatch", "dispatched", seq=2, **TURN),
    sample("dispatch", "outcome_received", seq=3, **TURN),
    gate(4),
    edited(gate(4)),
    {"no": "line"},
    exited(5),
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def tailed(desk: Desk, kind: str, lines: Iterable[Line] = tuple(LINES)) -> Path:
    """Tail lines into a file, and return it."""
    file = desk.root / "events"
    desk.append(lines)
    desk.once(sink=f"{kind}:{file}")
    return file


def messages(desk: Desk) -> list[str]:
    return [finding.message for finding in verify(desk.out, [desk.log]).findings]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_sink_in_one_file_is_proven(desk: Desk, kind: str) -> None:
    tailed(desk, kind)
    found = verify(desk.out, [desk.log])
    assert found.findings == []
    assert (found.runs, found.identities, found.kept) == (3, 6, 2)


def test_a_changed_line_of_a_file_of_lines_is_found(desk: Desk) -> None:
    file = tailed(desk, "jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(line for line in lines if b'"heartbeat.recorded"' not in line))
    assert any("is next" in message for message in messages(desk))
    file.write_bytes(b"".join(lines)[:-3])
    assert "the last line is torn" in messages(desk)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("UPDATE events SET payload = replace(payload, 'developer', 'other')", "mapping gives"),
        ("DELETE FROM events WHERE type = 'heartbeat.recorded'", "is next"),
        ("UPDATE events SET payload = ' ' || payload WHERE seq = 2", "not canonical"),
        ("UPDATE events SET ts = x'00' WHERE seq = 2", "another type"),
        ("UPDATE runs SET finished = 1 - finished", "another end"),
        ("DELETE FROM runs", "another end"),
        ("DROP TABLE events", "cannot be read"),
    ],
)
def test_a_changed_database_is_found(desk: Desk, statement: str, word: str) -> None:
    database = sqlite3.connect(tailed(desk, "sqlite"))
    database.execute(statement)
    database.commit()
    database.close()
    assert any(word in message for message in messages(desk))


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_sink_that_is_not_there_is_one_finding(desk: Desk, kind: str) -> None:
    tailed(desk, kind).unlink()
    (finding,) = verify(desk.out, [desk.log]).findings
    assert finding.code.id == "VB419"


def test_a_file_that_is_no_database_is_one_finding(desk: Desk) -> None:
    file = tailed(desk, "sqlite")
    file.write_bytes(b"not a database, but long enough to be looked at" * 9)
    (finding,) = verify(desk.out).findings
    assert finding.code.id == "VB419"


def test_what_went_to_standard_output_cannot_be_proven(desk: Desk) -> None:
    tailed(desk, "jsonl")
    report = desk.out / "report.json"
    text = report.read_text().replace(f'"jsonl:{desk.root / "events"}"', '"-"')
    report.write_text(text)
    with pytest.raises(ConfigurationError) as fault:
        verify(desk.out)
    assert fault.value.code.id == "VB418"
    assert fault.value.remedy


@pytest.mark.parametrize("kind", ["runs", "sqlite", "jsonl"])
def test_a_line_that_waits_is_pending_and_not_lost(desk: Desk, kind: str) -> None:
    desk.append(LINES)
    with desk.tail(sink=kind if kind == "runs" else f"{kind}:{desk.root / 'events'}") as tail:
        desk.poll(tail)
    assert messages(desk) == []
    desk.append([gate(9), beat(12)])
    desk.once(sink=kind if kind == "runs" else f"{kind}:{desk.root / 'events'}")
    assert messages(desk) == []


def test_an_end_that_is_held_alone_is_pending(desk: Desk) -> None:
    desk.append([exited(0)])
    with desk.tail() as tail:
        desk.poll(tail)
    found = verify(desk.out, [desk.log])
    assert found.findings == []
    assert found.lines == {"read": 1, "pending": 1}


def test_of_two_events_that_exclude_each_other_one_is_named_as_missing(desk: Desk) -> None:
    desk.append(LINES)
    desk.once()
    path = desk.out / "runs" / "run-a%2Feff-1" / "events.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert messages(desk) == ["its event run.finished is missing"]


# ---------------------------------------------------------------------------------------- the command


def test_many_findings_that_say_the_same_are_one_line_and_json_has_all(desk: Desk) -> None:
    desk.append([started(), *(beat(seq) for seq in range(1, 60))])
    desk.once()
    other = desk.root / "other.ndjson"
    other.write_bytes(b"\n")
    said = CliRunner().invoke(command, [str(desk.out), "--against", str(other)])
    assert said.exit_code == 1
    lines = said.stdout.splitlines()
    assert lines[0] == "VB416 runs/run-a: the line of one of its events is not in the log (60 times)"
    assert "more logs" in lines[1]
    assert "gone since" in lines[2]
    assert len(lines) < 8
    told = CliRunner().invoke(command, [str(desk.out), "--against", str(other), "--json"])
    assert told.stdout.count('"VB416"') == 60


def test_findings_at_many_places_name_the_first_few(desk: Desk) -> None:
    desk.append([started()])
    desk.once()
    desk.append([beat(seq) for seq in range(1, 30)])
    said = CliRunner().invoke(command, [str(desk.out), "--against", str(desk.log)]).stdout.splitlines()
    assert said[0] == "VB415 acme-lantern/7.ndjson:2: it has no event, and it is not kept (29 times)"
    assert said[1].endswith("acme-lantern/7.ndjson:4 and 26 more")


def test_the_lines_read_again_are_counted_in_json_too(desk: Desk) -> None:
    desk.append(LINES)
    desk.once()
    told = CliRunner().invoke(command, [str(desk.out), "--against", str(desk.log), "--json"])
    assert told.exit_code == 0
    assert '"conflict": 1' in told.stdout
