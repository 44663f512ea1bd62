"""Excerpts, decisions, folds, the clock and the vocabulary as data."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ethogram.clock import utc_now
from ethogram.decision import DecisionError, check_answer
from ethogram.envelope import Event
from ethogram.excerpts import excerpt
from ethogram.fold import FoldError, fold_run
from ethogram.json_text import Json, ParseError
from ethogram.vocabulary import EVENT_TYPES, KNOWN_TYPES, FieldKind


@given(st.text(), st.integers(-3, 20))
def test_an_excerpt_is_a_prefix_within_its_bound_and_says_whether_it_was_cut(text: str, bound: int) -> None:
    kept, truncated = excerpt(text, bound)
    assert len(kept) == min(len(text), max(bound, 0))
    assert truncated == (len(text) > len(kept))
    kept.encode()


def test_a_lone_surrogate_in_an_excerpt_becomes_the_replacement_character() -> None:
    assert excerpt("a\ud800b", 3) == ("a\ufffdb", False)
    assert excerpt("ab\ud800", 2) == ("ab", True)


def test_an_excerpt_may_have_a_bound_that_is_no_whole_number() -> None:
    assert excerpt("abc", 1.2) == ("ab", True)


REQUEST: dict[str, Json] = {"decisionId": "d", "options": [{"id": "allow"}, 3], "onTimeout": "deny"}


@pytest.mark.parametrize(
    "answer", [{"optionId": "allow"}, {"optionId": "deny", "byTimeout": True}, {"optionId": "allow", "x": 1}]
)
def test_an_answer_that_chooses_an_offered_option_or_the_timeouts_fits(answer: dict[str, Json]) -> None:
    check_answer(REQUEST, {**answer, "decisionId": "d"})


@pytest.mark.parametrize(
    ("answer", "path"),
    [
        ({"decisionId": "e", "optionId": "allow"}, "payload.decisionId"),
        ({"decisionId": "d", "optionId": "xyzzy"}, "payload.optionId"),
        ({"decisionId": "d", "optionId": "deny"}, "payload.optionId"),
        ({"decisionId": "d", "optionId": "deny", "byTimeout": 1}, "payload.optionId"),
        ({"decisionId": "d"}, "payload.optionId"),
    ],
)
def test_an_answer_that_does_not_fit_names_its_field_and_no_value(answer: dict[str, Json], path: str) -> None:
    with pytest.raises(DecisionError) as raised:
        check_answer(REQUEST, answer)
    assert raised.value.path == path
    assert "xyzzy" not in str(raised.value)


def _event(type_name: str, payload: Json, run_id: str = "r") -> Event:
    return Event(type_name, run_id, 1, "t", payload)


STARTED = _event("run.started", {"kind": "novel", "actor": "a", "harness": "h", "parentRunId": "p"})
FINISHED = _event("run.finished", {"outcome": "blocked", "durationMs": 9.0})


def test_a_run_is_open_until_it_finishes_and_keeps_a_kind_that_is_not_known() -> None:
    run = fold_run([_event("x", 1), STARTED, _event("agent.text", {"text": 5}, "other")])
    assert run is not None
    assert (run.kind, run.parent_run_id, run.open, run.outcome) == ("novel", "p", True, None)
    closed = fold_run([STARTED, FINISHED])
    assert closed is not None
    assert (closed.open, closed.outcome, closed.duration_ms) == (False, "blocked", 9)


def test_no_start_folds_to_nothing() -> None:
    assert fold_run([_event("agent.text", {"text": "t"})]) is None


@pytest.mark.parametrize(
    "events",
    [
        [STARTED, STARTED],
        [FINISHED],
        [STARTED, _event("run.finished", FINISHED.payload, "other")],
        [STARTED, FINISHED, STARTED],
    ],
)
def test_a_lifecycle_that_contradicts_itself_is_an_error(events: list[Event]) -> None:
    with pytest.raises(FoldError):
        fold_run(events)


def test_a_malformed_start_is_a_parse_error() -> None:
    with pytest.raises(ParseError, match="actor is required"):
        fold_run([_event("run.started", {"kind": "x"})])


def test_the_clock_gives_utc_milliseconds() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", utc_now())


def test_the_vocabulary_is_consistent_with_itself() -> None:
    assert len(KNOWN_TYPES) == 13
    for name, known in EVENT_TYPES.items():
        assert known.name == name
        assert known.domain == name.split(".")[0]
        assert known.meaning.endswith(".")
        assert known.payload.kind is FieldKind.OBJECT
        for field in known.payload.fields:
            assert known.payload.field(field.name) is field
            assert bool(field.members) == (field.kind is FieldKind.UNION)
            assert bool(field.fields) == (field.kind is FieldKind.OBJECT)
            assert (field.item is not None) == (field.kind is FieldKind.LIST)
            if field.truncated_by:
                flag = known.payload.field(field.truncated_by)
                assert flag is not None
                assert flag.kind is FieldKind.BOOLEAN
        assert known.payload.field("no such field") is None
