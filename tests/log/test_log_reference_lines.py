"""Every line of the reference corpus is what the public reader says it is, apart from the rulings that differ."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from vinaya_bridge.lines import PhysicalLine
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.codes import LONE_SURROGATE, NOT_UTF8, TORN_FRAGMENT
from vinaya_bridge.reading import read_pieces

STATUS: dict[str, type | tuple[type, ...]] = {
    "ok": EventLine,
    "unknown_version": UnknownVersion,
    "invalid": (Refused, Blank),
}

EXCEPTIONS = {
    "bytes that are not UTF-8 are refused": 2,
    "lone surrogates are refused": 1,
    "a number beyond double range is refused": 0,
    "a whole record behind a torn fragment is read": 3,
    "an id that is a secret leaves as its digest": 1,
}
"""Where this reader differs from the public one, rule by rule, with how often the corpus has it."""


def told(verdict: Verdict | None) -> tuple[str | None, float | None]:
    """The identity and the schema that a verdict gives."""
    if verdict is None or isinstance(verdict, Blank):
        return None, None
    return verdict.identity, verdict.schema


def pieces_of(reader: Reader, raw: bytes) -> list[Verdict | None]:
    """What each piece of a line is."""
    return [piece.verdict for piece in read_pieces(reader, PhysicalLine(1, 0, raw, ended=True, record=raw))]


def rule_of(pieces: list[Verdict | None], expected: dict[str, Any]) -> str | None:
    """The rule by which a line is read otherwise than expected; None where it is not."""
    first, schema = pieces[0], expected["schema"]
    wanted = (expected["identity"], float("inf") if schema == "Infinity" else schema)
    if len(pieces) == 1 and isinstance(first, STATUS[expected["status"]]):
        if told(first) == wanted:
            return None
        identity = told(first)[0] or ""
        return (
            "an id that is a secret leaves as its digest" if identity.startswith("redacted:") else "identity"
        )
    if isinstance(first, Refused) and expected["status"] == "ok" and told(first) == wanted:
        return {
            NOT_UTF8: "bytes that are not UTF-8 are refused",
            LONE_SURROGATE: "lone surrogates are refused",
        }.get(first.code, "refused")
    if [type(each) for each in pieces] == [Refused, EventLine] and getattr(
        first, "code", None
    ) is TORN_FRAGMENT:
        return "a whole record behind a torn fragment is read"
    return "status"


def test_every_line_has_the_status_identity_and_schema_of_the_public_reader_or_a_named_exception(
    shared: Path,
) -> None:
    reader, seen, lines = Reader(), Counter[str](), 0
    for file in sorted((shared / "vinaya" / "lines").glob("*.ndjson")):
        raws = file.read_bytes().split(b"\n")[:-1]
        rows = file.with_suffix(".expected.jsonl").read_text("utf-8").splitlines()
        for raw, row in zip(raws, rows, strict=True):
            lines += 1
            rule = rule_of(pieces_of(reader, raw), json.loads(row))
            seen.update([rule] if rule else [])
    assert lines == 7204
    assert seen == {rule: count for rule, count in EXCEPTIONS.items() if count}


def test_both_paths_agree_on_every_line_of_the_corpus(shared: Path) -> None:
    reader, quick = Reader(), 0
    for file in sorted((shared / "vinaya" / "lines").glob("*.ndjson")):
        for raw in file.read_bytes().split(b"\n")[:-1]:
            one, other = reader.read(raw), reader.read_precisely(raw)
            assert type(one) is type(other)
            assert told(one) == told(other)
            if isinstance(one, EventLine) and isinstance(other, EventLine):
                assert one.digest == other.digest
                quick += type(one.record) is not type(other.record)
    assert quick > 5000
