"""Carrying a line whole: on which event, in which bytes, and when not."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import canonical_payload
from ethogram.validation import validate
from ethogram.vocabulary import MAX_PAYLOAD_BYTES
from tests.support.samples import read, sample
from tests.support.strategies import SHAPES, Line, dump, line_objects
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.identity import exact_text
from vinaya_bridge.mapping import load_mapping
from vinaya_bridge.mapping.emit import Emit, Only, OverBound, with_origin

MAPPING = load_mapping("core")


def emits_of(line: EventLine) -> list[Emit]:
    emits = MAPPING.drafts(line)
    assert not isinstance(emits, OverBound)
    return emits


def carriers(emits: list[Emit]) -> list[Emit]:
    return [emit for emit in emits if "line" in orjson.loads(emit.payload)["vinaya"]]


def carried(line: Line) -> list[Emit]:
    """The events that carry a line."""
    (event,) = read(line)
    text = exact_text(event.record)
    assert text is not None
    found = with_origin(emits_of(event), text)
    assert found is not None
    return carriers(found)


@given(st.data())
def test_an_event_that_carries_its_line_is_canonical_valid_and_otherwise_the_same(
    data: st.DataObject,
) -> None:
    kind, event, schema = data.draw(st.sampled_from(SHAPES))
    verdict = Reader().read(dump(data.draw(line_objects(kind, event, schema))))
    if not isinstance(verdict, EventLine) or isinstance(MAPPING.drafts(verdict), OverBound):
        return
    emits, text = emits_of(verdict), exact_text(verdict.record)
    is_redacted = data.draw(st.booleans())
    found = None if text is None else with_origin(emits, text, is_redacted=is_redacted)
    if found is None or text is None:
        return
    assert len(found) == len(emits)
    for before, after in zip(emits, found, strict=True):
        fields = orjson.loads(after.payload)
        assert canonical_payload(fields) == after.payload
        if not after.fill:
            validate(after.type, fields)
        if "line" in fields["vinaya"]:
            assert fields["vinaya"].pop("line") == orjson.loads(text)
            assert fields["vinaya"].pop("redacted", False) is is_redacted
        assert canonical_payload(fields) == before.payload


def test_the_first_event_that_is_certain_carries_the_line() -> None:
    dispatched = sample("dispatch", "dispatched", effect_id="e", target_role="security")
    (carrier,) = carried(dispatched)
    assert (carrier.type, carrier.only) == ("agent.started", Only.ALWAYS)


@pytest.mark.parametrize(
    ("event", "own", "pair"),
    [
        ("loop_started", {}, [Only.STARTS_RUN, Only.NOT_STARTS_RUN]),
        ("driver_exited", {"reason": "finished"}, [Only.ENDS_RUN, Only.NOT_ENDS_RUN]),
    ],
)
def test_where_none_is_certain_both_of_a_pair_carry_it(event: str, own: Line, pair: list[Only]) -> None:
    assert [carrier.only for carrier in carried(sample("dev_review_loop", event) | own)] == pair


def test_text_that_looks_like_a_block_moves_nothing() -> None:
    look = '"vinaya":{"digest":"x","part":0,"runId":1'
    fields: Line = {"vinaya": look, "part": look, "line": 1, "digest": look}
    line = sample("custom", "recorded") | {"name": "acme.deploy", "fields": fields}
    (carrier,) = carried(line)
    payload = orjson.loads(carrier.payload)
    assert canonical_payload(payload) == carrier.payload
    assert payload["vinaya"]["line"]["fields"] == fields
    assert payload["fields"] == fields


def test_a_line_over_a_bound_is_carried_by_none() -> None:
    (event,) = read(sample("handoff", "raised", reason="r" * 17_000))
    text = exact_text(event.record)
    assert text is not None
    assert with_origin(emits_of(event), text) is None
    (event,) = read(sample("handoff", "raised", reason="r" * 9_000))
    text = exact_text(event.record)
    assert text is not None
    assert with_origin(emits_of(event), text) is not None
    assert with_origin(emits_of(event), text, spare_bytes=MAX_PAYLOAD_BYTES) is None


@pytest.mark.parametrize("figure", [2**53, 2**53 + 1, 10**17, 1e300, -(2**53)])
def test_a_number_that_the_protocol_does_not_have_has_no_exact_text(figure: float) -> None:
    least = 0 if figure > 0 else figure
    line = sample("usage", "observed", units={"input": max(figure, 0), "output": None, "cache": None})
    if least:
        line = sample("gate", "summary", subject={"issue": figure})
    (event,) = read(line)
    assert exact_text(event.record) is None


@pytest.mark.parametrize("figure", [0, 1.5, 10.0, 1e-7, 2**53 - 1])
def test_any_other_number_has_one(figure: float) -> None:
    units: Line = {"input": figure, "output": None, "cache": None}
    (event,) = read(sample("usage", "observed", units=units))
    text = exact_text(event.record)
    assert text is not None
    assert orjson.loads(text)["units"] == units
