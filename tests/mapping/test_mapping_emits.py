"""What the shipped mappings emit: only events that the protocol takes, for every line that the Log allows."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from hypothesis import HealthCheck, given, settings

from ethogram.canonical import canonical_payload
from ethogram.validation import validate
from tests.mapping.coverage_lines import coverage_lines
from tests.support.strategies import SHAPES, Line, dump, lines
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.mapping import CompiledMapping, Emit, Fill, Only, OverBound, fill_payload, load_mapping
from vinaya_bridge.mapping.emit import COMPLEMENTS, over_bound
from vinaya_bridge.mapping.load import SHIPPED

PATIENT = settings(
    max_examples=1_500,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@pytest.fixture(scope="module")
def mappings() -> list[CompiledMapping]:
    return [load_mapping(name) for name in SHIPPED]


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


def event_line(reader: Reader, line: Line) -> EventLine:
    verdict = reader.read(dump(line))
    assert isinstance(verdict, EventLine), verdict
    return verdict


def filled(emit: Emit) -> bytes:
    """The payload as the engine emits it."""
    payload = emit.payload
    if emit.fill & Fill.ELAPSED:
        payload = fill_payload(payload, elapsed_ms=1_500)
    if emit.fill & Fill.PARENT:
        payload = fill_payload(payload, parent="loop-1")
    return payload


def nulls_of(value: object) -> Iterator[None]:
    if value is None:
        yield None
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from nulls_of(inner)


def check_events(emits: list[Emit]) -> None:
    """Each event as the engine will emit it passes validation, is canonical, and holds no null."""
    for emit in emits:
        for payload in (emit.payload, filled(emit)):
            assert canonical_payload(orjson.loads(payload)) == payload
        validate(emit.type, orjson.loads(filled(emit)))
        assert not list(nulls_of(orjson.loads(payload)))


def test_every_event_of_every_generated_line_is_valid(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    @PATIENT
    @given(line=lines())
    def holds(line: Line) -> None:
        for mapping in mappings:
            emits = mapping.drafts(event_line(reader, line))
            assert not isinstance(emits, OverBound) or emits.count is not None
            check_events([] if isinstance(emits, OverBound) else emits)

    holds()


def test_every_event_is_valid_for_each_member_null_and_absence(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    shapes = set()
    seen = 0
    for line in coverage_lines():
        seen += 1
        event = event_line(reader, line)
        shapes.add((event.kind, event.event, event.schema))
        for mapping in mappings:
            emits = mapping.drafts(event)
            assert not isinstance(emits, OverBound)
            check_events(emits)
    assert shapes == set(SHAPES)
    assert seen > 3_000


def test_a_mapped_line_gives_an_event_whatever_the_engine_answers(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    for line in coverage_lines():
        event = event_line(reader, line)
        for mapping in mappings:
            emits = mapping.drafts(event)
            assert not isinstance(emits, OverBound)
            asked = {emit.only for emit in emits}
            is_mapped = mapping.unmapped(event.kind, event.event) is None
            assert is_mapped == (Only.ALWAYS in asked or any(set(pair) <= asked for pair in COMPLEMENTS))


def test_both_paths_of_the_reader_give_the_same_events(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    for line in coverage_lines():
        precise = reader.read_precisely(dump(line))
        assert isinstance(precise, EventLine)
        for mapping in mappings:
            assert mapping.drafts(event_line(reader, line)) == mapping.drafts(precise)


def test_every_payload_names_its_line(mappings: list[CompiledMapping], reader: Reader) -> None:
    for line in coverage_lines():
        event = event_line(reader, line)
        meta = event.record.meta
        for mapping in mappings:
            emits = mapping.drafts(event)
            assert not isinstance(emits, OverBound)
            assert [emit.part for emit in emits] == list(range(len(emits)))
            for emit in emits:
                block = orjson.loads(emit.payload)["vinaya"]
                assert block["eventId"] == event.identity
                assert block["digest"] == event.digest
                assert (block["kind"], block["event"], block["schema"]) == (
                    event.kind,
                    event.event,
                    event.schema,
                )
                assert (block["runId"], block["seq"], block["part"]) == (meta.run_id, meta.seq, emit.part)
                assert block.get("processId") == getattr(meta, "process_id", None)
                assert block.get("trust") == event.trust
                assert (event.trust is None) == ("trust" in block.get("unknown", {}))


def test_an_event_over_a_bound_takes_the_whole_line_with_it(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    line = next(line for line in coverage_lines() if line["event"] == "outcome_received")
    line["model"] = "m" * 16_385
    for mapping in mappings:
        broken = mapping.drafts(event_line(reader, line))
        assert isinstance(broken, OverBound)
        assert (broken.path, broken.count, broken.max) == ("payload.model", 16_385, 16_384)


def test_a_short_payload_is_not_checked_and_a_long_one_is() -> None:
    assert over_bound("x.happened", b'{"a":"' + b"x" * 4_000 + b'"}') is None
    broken = over_bound("x.happened", b'{"a":"' + b"x" * 17_000 + b'"}')
    assert broken is not None
    assert broken.count == 17_000


def test_a_long_payload_whose_duration_the_engine_adds_is_not_over_a_bound(
    mappings: list[CompiledMapping], reader: Reader
) -> None:
    line = next(line for line in coverage_lines() if line["event"] == "outcome_received")
    del line["duration_ms"]
    line["model"] = "m" * 8_000
    for mapping in mappings:
        emits = mapping.drafts(event_line(reader, line))
        assert not isinstance(emits, OverBound)
        check_events(emits)
