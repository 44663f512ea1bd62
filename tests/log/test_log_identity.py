"""Identity, content digest, process and trust: what tells lines apart, and how far to believe them."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.log.log_lines import line_of
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.identity import identity_of, is_low_trust, run_of


def event(reader: Reader, line: Line) -> EventLine:
    verdict = reader.read(dump(line))
    assert isinstance(verdict, EventLine), verdict
    return verdict


def with_meta(line: Line, **changed: Json) -> Line:
    meta = line["meta"]
    assert isinstance(meta, dict)
    return line | {"meta": meta | changed}


@pytest.mark.parametrize(
    ("meta", "identity"),
    [
        ({"event_id": "e", "run_id": "r", "seq": 1}, "e"),
        ({"event_id": "", "run_id": "r", "seq": 1}, "r:1"),
        ({"event_id": 7, "run_id": "r", "seq": 1.0}, "r:1"),
        ({"run_id": "a b", "seq": -0.0}, "a b:0"),
        ({"run_id": "r", "seq": 2**53 + 1}, "r:9007199254740992"),
        ({"run_id": "r", "seq": 1e21}, "r:1e+21"),
        ({"run_id": "r", "seq": -5}, "r:-5"),
        ({"run_id": "r", "seq": 1.5}, None),
        ({"run_id": "r", "seq": True}, None),
        ({"run_id": "r", "seq": float("inf")}, None),
        ({"run_id": "", "seq": 1}, None),
        ({"event_id": "\ud800"}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_any_line_that_is_json_has_the_identity_of_the_reading_rules(
    meta: Json, identity: str | None
) -> None:
    assert identity_of(meta) == identity


@pytest.mark.parametrize(
    ("meta", "run"),
    [
        ({"run_id": "r", "lineage": {"run": "l"}}, "l"),
        ({"run_id": "r", "lineage": {"run": None}}, "r"),
        ({"run_id": "r", "lineage": {"run": ""}}, "r"),
        ({"run_id": "r", "lineage": []}, "r"),
        ({"run_id": 7}, None),
        ("x", None),
    ],
)
def test_the_run_of_a_line_is_its_lineage_run_else_its_run_id(meta: Json, run: str | None) -> None:
    assert run_of(meta) == run


def test_the_digest_is_the_sha256_of_the_canonical_text(reader: Reader) -> None:
    line = line_of("usage", "observed", duration_ms=10)
    text = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert event(reader, line).digest == hashlib.sha256(text).hexdigest()[:16]
    assert event(reader, line | {"duration_ms": 10.0}).digest == event(reader, line).digest


def test_the_digest_tells_absent_from_null_and_one_text_from_another(reader: Reader) -> None:
    line = line_of("operation", "completed")
    others: list[Line] = [
        with_meta(line, input_versions={"objectives_version": "x", "brief_hash": None}),
        line | {"target": None},
        line | {"target": ""},
        line | {"duration_ms": 0},
        line | {"field_names": []},
    ]
    assert len({event(reader, each).digest for each in (line, *others)}) == 1 + len(others)


def test_every_outcome_of_a_dispatch_has_a_digest_of_its_sorted_keys(reader: Reader) -> None:
    outcomes: tuple[Json, ...] = (
        {"type": "archive", "provenance_comment_id": 1},
        {"type": "plan", "issues": [2, 1]},
        {"type": "escalation", "class": "product", "comment_id": 1},
        {"type": "completed"},
    )
    for outcome in outcomes:
        line = line_of("dispatch", "outcome_received", outcome=outcome)
        text = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert event(reader, line).digest == hashlib.sha256(text).hexdigest()[:16]


def test_the_main_run_is_the_lineage_run_else_the_run_id(reader: Reader) -> None:
    line = line_of("gate", "summary")
    for run, main in (("loop-1", "loop-1"), (None, "a.b"), ("", "a.b")):
        lineage: Json = {"run": run, "attempt": None, "parent": None}
        assert event(reader, with_meta(line, lineage=lineage)).main_run == main
    assert event(reader, line_of("gate", "summary", 1)).main_run == "a.b"


def test_a_process_is_its_process_id_and_under_schema_1_what_comes_closest(reader: Reader) -> None:
    assert event(reader, with_meta(line_of("gate", "summary"), process_id="p-1")).process == "p-1"
    line = line_of("gate", "summary", 1)
    names = {
        event(reader, with_meta(line, **change)).process
        for change in ({}, {"host": "ci"}, {"machine": "m"}, {"run_id": "r"})
    }
    assert len(names) == 4
    one = event(reader, with_meta(line, run_id="r", machine='c","x'))
    other = event(reader, with_meta(line, run_id="r", machine="c"))
    assert one.process != other.process


@pytest.mark.parametrize(
    ("version", "low"),
    [
        ("0.4.0", True),
        ("0.9.12", True),
        ("0.32.99", True),
        ("0.33.0-rc.1", True),
        ("0.33.0", False),
        ("0.33.0+build.5", False),
        ("0.33.0-rc.1+b", True),
        ("0.34.0-rc.1", False),
        ("0.100.0", False),
        ("1.0.0-beta.2", False),
        ("v0.41.0", False),
        ("v0.32.0", True),
        (" 0.35.0 ", False),
        ("\ufeff0.35.0\u2003", False),
        ("unknown", True),
        ("", True),
        ("0.33", True),
        ("0.33.0.1", True),
        ("0.33.\u0660", True),
        ("0.33.0\n", False),
        ("0.33.0-", True),
        ("9" * 5000 + ".0.0", True),
    ],
)
def test_a_version_before_0_33_0_or_an_unreadable_one_is_of_low_trust(version: str, low: bool) -> None:
    assert is_low_trust(version) is low


def test_trust_is_low_else_the_provenance_else_unknown_with_a_reason(reader: Reader) -> None:
    line = with_meta(line_of("gate", "summary"), provenance="self_reported")
    assert (event(reader, line).trust, event(reader, line).trust_unknown) == ("self_reported", None)
    assert event(reader, with_meta(line, vinaya="0.32.0")).trust == "low"
    first = line_of("gate", "summary", 1)
    assert event(reader, first).trust is None
    assert event(reader, first).trust_unknown == "a schema 1 header declares no provenance"
    assert event(reader, with_meta(first, vinaya="0.1.0")).trust_unknown is None


def test_a_reader_forgets_and_still_reads(reader: Reader) -> None:
    line = line_of("gate", "summary")
    for number in range(4200):
        read = event(reader, with_meta(line, run_id=f"r{number}", vinaya=f"0.41.{number}"))
        assert (read.trust, read.record.meta.run_id) == ("parent_attributed", f"r{number}")
