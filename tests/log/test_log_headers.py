"""A header that was met before is not read again, and nothing is different for it."""

from __future__ import annotations

import json
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corpus import corpus_lines
from vinaya_bridge.log import EventLine, Reader, Verdict
from vinaya_bridge.log.headers import KnownHeaders
from vinaya_bridge.log.precise import unstructure

LINES = [raw.rstrip(b"\n") for raw in corpus_lines(60, random=Random(11))]
SPLICES = (
    b"",
    b"0",
    b"-",
    b".0",
    b'"',
    b"\\",
    b"\\n",
    b'\\"',
    b",",
    b"]",
    b"}",
    b"\xff",
    b"ghp_0123456789abcdefghij",
    b'","seq":7,"x":"',
    b'"meta":["\\n","t",1,"e"],',
)


def met(reader: Reader, raw: bytes) -> Reader:
    """The reader, once it has read the line."""
    assert isinstance(reader.read(raw), EventLine)
    return reader


def assert_as_precise(reader: Reader, raw: bytes) -> None:
    assert_is_precise(reader.read(raw), raw)


def assert_is_precise(one: Verdict, raw: bytes) -> None:
    other = Reader().read_precisely(raw)
    if not isinstance(one, EventLine) or not isinstance(other, EventLine):
        assert one == other
        return
    plain = msgspec.json.encode(one.record) if isinstance(one.record, msgspec.Struct) else None
    content = unstructure(one.record) if plain is None else json.loads(plain)
    assert content == unstructure(other.record)
    assert (one.identity, one.digest, one.main_run, one.process, one.trust, one.instant_us) == (
        other.identity,
        other.digest,
        other.main_run,
        other.process,
        other.trust,
        other.instant_us,
    )


def test_every_line_of_a_process_is_read_as_if_it_were_the_first() -> None:
    reader = Reader()
    for raw in LINES:
        assert_as_precise(reader, raw)


def test_the_second_line_of_a_process_is_shortened() -> None:
    headers = KnownHeaders()
    process = b'"process_id":"'
    first = next(raw for raw in LINES if process in raw and b'"round":1},"kind"' in raw)
    name = first[first.index(process) : first.index(b'},"kind"')]
    second = next(raw for raw in LINES if name in raw and raw != first)
    found = Reader().read(first)
    assert isinstance(found, EventLine)
    assert headers.shorten(second) is None
    headers.learn(first, found.record, found.header)
    shortened = headers.shorten(second)
    assert shortened is not None
    assert len(shortened[1]) < len(second) / 2
    assert headers.shorten(second.replace(b'"acme/lantern"', b'"acme/lamp"')) is None
    assert headers.shorten(second.replace(b'"round":1},"kind"', b'"round":2},"kind"')) is None


def test_the_second_line_of_a_run_under_schema_1_is_shortened() -> None:
    headers = KnownHeaders()
    of_schema_1 = [raw for raw in LINES if b'"schema":1' in raw]
    rests = [raw[raw.index(b'"repo":') : raw.index(b'},"kind"')] for raw in of_schema_1]
    first, second = next(
        (of_schema_1[index], of_schema_1[rests.index(rest, index + 1)])
        for index, rest in enumerate(rests)
        if rest in rests[index + 1 :]
    )
    found = Reader().read(first)
    assert isinstance(found, EventLine)
    headers.learn(first, found.record, found.header)
    shortened = headers.shorten(second)
    assert shortened is not None
    assert len(shortened[1]) < len(second) / 2
    assert headers.shorten(second.replace(b'"acme/lantern"', b'"acme/lamp"')) is None


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(LINES), st.data())
def test_a_damaged_line_is_what_it_is_however_well_its_header_is_known(
    raw: bytes, data: st.DataObject
) -> None:
    splice = data.draw(st.sampled_from(SPLICES))
    at = data.draw(st.integers(0, len(raw)))
    damaged = raw[:at] + splice + raw[at + data.draw(st.sampled_from((0, 1, len(splice)))) :]
    assert_as_precise(met(Reader(), raw), damaged)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LINES), st.data())
def test_what_varies_is_checked_on_every_line(raw: bytes, data: st.DataObject) -> None:
    def put(text: bytes, key: bytes, value: bytes) -> bytes:
        if key not in text:  # schema 1 has no ids of events
            return text
        start = text.index(key) + len(key)
        return text[:start] + value + text[text.index(b"," if key == b'"seq":' else b'"', start) :]

    reader = met(Reader(), raw)
    pieces = st.sampled_from((b"a", b"9", b"\\", b'"', b",", b" ", b"\n", b"\\u0061", b"sk-", b"\xc3\xa4"))
    for key, length in ((b'"ts":"', 24), (b'"event_id":"', 36), (b'"seq":', 0)):
        value = b"".join(data.draw(st.lists(pieces, max_size=40)))
        if data.draw(st.booleans()):
            value = value[:length].ljust(length, b"x")
        assert_as_precise(reader, put(raw, key, value))


def damaged(raw: bytes, splice: bytes, part: float) -> bytes:
    at = int(part * len(raw))
    return raw[:at] + splice + raw[at:]


some_lines = st.lists(
    st.sampled_from(LINES)
    | st.builds(damaged, st.sampled_from(LINES), st.sampled_from(SPLICES), st.floats(0, 1)),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(some_lines, some_lines)
def test_lines_read_together_are_read_as_each_alone(first: list[bytes], second: list[bytes]) -> None:
    reader = Reader()
    for raws in (first, second):
        verdicts = reader.read_all(raws)
        events = [verdict for verdict in verdicts if isinstance(verdict, EventLine)]
        EventLine.digest_all(events)
        for verdict, raw in zip(verdicts, raws, strict=True):
            assert_is_precise(verdict, raw)


@pytest.mark.parametrize(
    "secret", [b"ghp_0123456789abcdefghij", b"sk-0123456789abcdefghijk"], ids=["github", "key"]
)
def test_a_secret_behind_a_known_header_is_found(secret: bytes) -> None:
    raw = next(raw for raw in LINES if b'"finding' in raw or b'"target":"check"' in raw)
    reader = met(Reader(), raw)
    found = reader.read(raw.replace(b'"target":"check"', b'"target":"' + secret + b'"'))
    assert isinstance(found, EventLine)
    assert found.is_redacted
    assert secret not in msgspec.json.encode(unstructure(found.record))


def test_a_repeated_subject_counts_as_the_last_of_them() -> None:
    raw = next(raw for raw in LINES if b'"process_id"' in raw)
    reader = met(Reader(), raw)
    for subject in (b'{"issue":7,"role":"reviewer"}', b"{}", b"null", b'["\n"]'):
        assert_as_precise(reader, raw[:-1] + b',"subject":' + subject + b"}")


def test_a_repeated_header_counts_as_the_last_of_them() -> None:
    raw = next(raw for raw in LINES if b'"process_id"' in raw)
    reader = met(Reader(), raw)
    for meta in (b'["\\n","t",1,"e"]', b'["t",1,"e"]', b"{}", raw[8 : raw.index(b'},"subject"') + 1]):
        assert_as_precise(reader, raw[:-1] + b',"meta":' + meta + b"}")
