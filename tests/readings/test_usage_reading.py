"""Vinaya Log reference, Reading rules: Usage, Unknown never zero, Low trust, Identity, Order, Self-test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.logs import WholeLog, whole_logs, without_repeats
from tests.support.samples import read, sample
from tests.support.strategies import Json, Line
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.readings import By, UsageReport, liveness, usage
from vinaya_bridge.readings.documents import usage_document
from vinaya_bridge.readings.figures import Term, add_up

SLOW = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None, max_examples=30
)
Figures = tuple[Json, Json, Json]


def observed(
    seq: int,
    figures: Figures,
    *,
    model: str | None = "opus",
    semantics: str = "cumulative",
    why: str | None = None,
    run: str = "run-a",
    process: str = "proc-a",
    ts: str | None = None,
    vinaya: str = "0.41.2",
    subject: dict[str, Json] | None = None,
) -> Line:
    """A usage line."""
    return sample(
        "usage",
        "observed",
        seq=seq,
        run=run,
        process=process,
        ts=ts,
        meta={"vinaya": vinaya},
        subject=subject,
        model=model,
        source="claude",
        semantics=semantics,
        units=dict(zip(("input", "output", "cache"), figures, strict=True)),
        unknown_reason=why,
    )


def outcome(seq: int, effect: str, tokens: tuple[int, int] | None, *, role: str = "developer") -> Line:
    """A dispatch line that ends a turn."""
    return sample(
        "dispatch",
        "outcome_received",
        seq=seq,
        target_role=role,
        model="opus",
        effect_id=effect,
        outcome={"type": "completed"},
        usage=None if tokens is None else {"input": tokens[0], "output": tokens[1]},
    )


def attempted(seq: int, effect: str, tokens: tuple[int, int] | None) -> Line:
    """A role_attempt line."""
    usage_field: Json = None if tokens is None else {"input": tokens[0], "output": tokens[1]}
    return sample("role_attempt", "attempted", seq=seq, effect_id=effect, model="opus", usage=usage_field)


def rows(report: UsageReport) -> dict[tuple[str, str | None, str, bool], Figures]:
    """What counts, by run, model, kind and trust."""
    return {
        (row.run, row.model, row.semantics, row.low_trust): (
            row.input.value,
            row.output.value,
            row.cache.value,
        )
        for row in report.rows
    }


def answer(*lines: Line) -> UsageReport:
    return usage(read(*lines))


def test_only_the_last_cumulative_observation_counts_whatever_the_order_of_lines() -> None:
    report = answer(observed(2, (250, 40, 7)), observed(0, (100, 20, 5)), observed(1, (100, 20, 5)))
    assert rows(report) == {("run-a", "opus", "cumulative", False): (250, 40, 7)}
    assert [each.seq for each in report.observations] == [0, 1, 2]
    assert report.counted() == {"ev-run-a-proc-a-2"}


def test_the_last_observation_is_the_last_by_time_over_all_processes_of_the_run() -> None:
    report = answer(
        observed(0, (500, 50, None)),
        observed(0, (80, 8, None), process="proc-b", ts="2026-05-04T10:09:00.000Z"),
    )
    assert rows(report) == {("run-a", "opus", "cumulative", False): (80, 8, None)}


def test_inside_a_process_seq_decides_even_where_a_clock_was_set_back() -> None:
    report = answer(
        observed(0, (100, 1, 0), ts="2026-05-04T12:00:00.000Z"),
        observed(1, (200, 2, 0), ts="2026-05-04T10:00:00.000Z"),
    )
    assert rows(report) == {("run-a", "opus", "cumulative", False): (200, 2, 0)}


def test_deltas_add_up_and_equal_deltas_are_two_deltas() -> None:
    report = answer(observed(0, (10, 2, 0), semantics="delta"), observed(1, (10, 2, 0), semantics="delta"))
    assert rows(report) == {("run-a", "opus", "delta", False): (20, 4, 0)}


def test_a_delta_is_never_added_to_a_running_total() -> None:
    report = answer(observed(0, (100, 20, 5)), observed(1, (10, 2, 1), semantics="delta"))
    assert rows(report) == {
        ("run-a", "opus", "cumulative", False): (100, 20, 5),
        ("run-a", "opus", "delta", False): (10, 2, 1),
    }


def test_models_and_runs_are_kept_apart_and_an_unknown_model_is_no_name() -> None:
    report = answer(
        observed(0, (1, 1, 1)),
        observed(1, (2, 2, 2), model=None),
        observed(2, (3, 3, 3), model="null"),
        observed(0, (4, 4, 4), run="run-b"),
    )
    assert [(row.run, row.model) for row in report.rows] == [
        ("run-a", "null"),
        ("run-a", "opus"),
        ("run-a", None),
        ("run-b", "opus"),
    ]


def test_a_null_is_unknown_with_its_reason_and_a_stated_zero_is_zero() -> None:
    report = answer(
        observed(0, (None, None, None), model="gemini", why="the vendor reports none"),
        observed(1, (0, 0, None), model="opus"),
    )
    gemini, opus = report.rows
    assert (gemini.input.value, gemini.input.reasons) == (None, ("the vendor reports none",))
    assert (opus.input.value, opus.output.value, opus.cache.value) == (0, 0, None)
    assert opus.cache.reason == "1 of 1 not known: the line gives no reason"


def test_a_sum_with_one_unknown_term_is_unknown_and_says_how_many_lacked() -> None:
    (row,) = answer(
        observed(0, (5, 2, 0), semantics="delta"),
        observed(1, (6, None, 0), semantics="delta", why="the transcript was cut"),
    ).rows
    assert (row.input.value, row.output.value, row.cache.value) == (11, None, 0)
    assert row.output.reason == "1 of 2 not known: the transcript was cut"


def test_the_cache_figure_is_neither_split_nor_added_to_the_input() -> None:
    report = answer(observed(0, (5, 90, 130_208), model="c"), observed(1, (1000, 40, 900), model="o"))
    assert list(rows(report).values()) == [(5, 90, 130_208), (1000, 40, 900)]


def test_lines_of_low_trust_make_rows_of_their_own() -> None:
    report = answer(observed(0, (9, 9, 9), vinaya="0.32.99"), observed(1, (1, 1, 1)))
    assert rows(report) == {
        ("run-a", "opus", "cumulative", False): (1, 1, 1),
        ("run-a", "opus", "cumulative", True): (9, 9, 9),
    }
    assert report.low_trust_lines == 1


def test_a_dispatch_and_a_role_attempt_with_one_effect_id_are_one_attempt() -> None:
    report = answer(
        sample("dispatch", "dispatched", seq=0, target_role="security", model="opus", effect_id="eff-1"),
        attempted(1, "eff-1", (120, 30)),
        outcome(2, "eff-1", (120, 30), role="security"),
    )
    (attempt,) = report.attempts
    assert (attempt.effect_id, attempt.input.value, attempt.output.value) == ("eff-1", 120, 30)
    assert (attempt.role, attempt.lines, attempt.launches) == ("security", 3, 1)


def test_the_first_line_of_an_attempt_that_states_figures_counts() -> None:
    report = answer(
        attempted(3, "eff-1", (7, 7)), attempted(1, "eff-1", None), outcome(2, "eff-1", (120, 30))
    )
    (attempt,) = report.attempts
    assert (attempt.input.value, attempt.output.value) == (120, 30)


def test_an_attempt_without_figures_is_unknown_and_says_why() -> None:
    report = answer(
        sample("dispatch", "dispatched", seq=0, effect_id="eff-1"),
        sample("dispatch", "dispatched", seq=1, effect_id="eff-2"),
        outcome(2, "eff-2", None),
    )
    assert [(each.input.value, each.input.reasons) for each in report.attempts] == [
        (None, ("no line tells how the turn ended",)),
        (None, ("its lines state no tokens",)),
    ]


def test_a_repeated_line_counts_once_and_of_two_contents_the_least_stays() -> None:
    first = observed(0, (10, 1, 0), semantics="delta")
    edited = observed(0, (99, 1, 0), semantics="delta", ts="2026-05-04T11:00:00.000Z")
    for lines in ([first, first, edited], [edited, first, first], [first, edited, first]):
        report = answer(*lines)
        assert rows(report) == {("run-a", "opus", "delta", False): (10, 1, 0)}
        assert report.duplicates + report.conflicts == 2
        assert report.conflicts >= 1


def test_a_line_of_another_kind_holds_its_identity_too() -> None:
    gate = sample("gate", "summary", schema=1, seq=0, ts="2026-05-04T09:00:00.000Z")
    told = sample("usage", "observed", schema=1, seq=0, process="proc-b", source="claude", semantics="delta")
    for lines in ([gate, told], [told, gate]):
        report = answer(*lines)
        assert (report.rows, report.conflicts) == ((), 1)


def test_the_self_test_is_no_use_of_anything() -> None:
    report = answer(sample("operation", "completed", operation="log.selftest"))
    assert (report.rows, report.attempts, report.observations) == ((), (), ())


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("run", ["run-a", "run-a", "run-b"]),
        ("model", ["opus", "opus", "sonnet"]),
        ("role", ["developer", "security", "unattributed"]),
        ("issue", [7, 12]),
    ],
)
def test_totals_are_given_by_run_model_role_or_issue(by: By, keys: list[Json]) -> None:
    report = answer(
        observed(0, (100, 10, 1), subject={"role": "unattributed", "issue": 12}),
        observed(0, (50, 5, None), run="run-b", model="sonnet", subject={"role": "security", "issue": 12}),
        outcome(1, "eff-1", (100, 10)),
    )
    groups = report.grouped(by)
    assert [group.key for group in groups] == keys
    assert sum(group.input.value or 0 for group in groups if group.kind == "attempts") == 100


def test_the_three_views_of_the_same_tokens_are_never_added() -> None:
    report = answer(
        observed(0, (100, 10, 1)), observed(1, (7, 7, 7), semantics="delta"), outcome(2, "eff-1", (100, 10))
    )
    assert [(group.kind, group.input.value) for group in report.grouped("model")] == [
        ("cumulative", 100),
        ("delta", 7),
        ("attempts", 100),
    ]


def test_an_unknown_key_of_totals_comes_last() -> None:
    report = answer(
        observed(0, (1, 1, 1), subject={"issue": None}),
        observed(0, (2, 2, 2), subject={"issue": 70}, run="run-b"),
        observed(0, (3, 3, 3), subject={"issue": 8}, run="run-c"),
    )
    assert [group.key for group in report.grouped("issue")] == [8, 70, None]


def as_printed(report: UsageReport) -> Any:
    """The document as a reader of its JSON sees it."""
    return orjson.loads(orjson.dumps(usage_document(report)))


def test_the_document_gives_null_for_unknown_with_the_reason_beside_it() -> None:
    document = as_printed(answer(observed(0, (None, 4, 2**60), why="no reason but this")))
    (row,) = document["observations"]
    assert row["input"] is None
    assert row["unknown"] == {"input": {"lacking": 1, "terms": 1, "reasons": ["no reason but this"]}}
    (observation,) = document["all_observations"]
    assert observation["counts"] is True
    assert observation["unknown"] == {"input": "no reason but this"}


def test_a_whole_number_beyond_what_json_readers_keep_is_text_in_the_document() -> None:
    document = as_printed(answer(observed(0, (2**53 - 1, 2**53, 0))))
    (row,) = document["observations"]
    assert (row["input"], row["output"]) == (2**53 - 1, "9007199254740992")


def events(log: WholeLog) -> list[EventLine]:
    reader = Reader()
    return [line for line in map(reader.read, log.lines) if isinstance(line, EventLine)]


@SLOW
@given(whole_logs(), st.randoms(use_true_random=False))
def test_readings_depend_on_the_set_of_lines_alone(log: WholeLog, random: Random) -> None:
    lines = events(log)
    shuffled = list(lines)
    random.shuffle(shuffled)
    one, other = usage(lines), usage(shuffled)
    assert (one.rows, one.attempts, one.observations) == (other.rows, other.attempts, other.observations)
    assert one.duplicates + one.conflicts == other.duplicates + other.conflicts
    now = datetime(2026, 3, 2, tzinfo=UTC)
    assert liveness(lines, now=now) == liveness(shuffled, now=now)


@SLOW
@given(whole_logs())
def test_copies_of_lines_change_no_reading(log: WholeLog) -> None:
    once = events(without_repeats(log))
    assert usage(once + once).rows == usage(once).rows
    assert usage(once + once).attempts == usage(once).attempts
    assert usage(once + once).duplicates == len(once)


@given(st.lists(st.one_of(st.integers(0, 2**60), st.floats(0, 1e12)), min_size=1))
def test_a_sum_does_not_depend_on_the_order_of_its_terms(values: list[float]) -> None:
    assert add_up(map(Term, values)) == add_up(map(Term, reversed(values)))


@given(st.lists(st.one_of(st.none(), st.integers(0, 100)), min_size=1))
def test_a_sum_is_known_exactly_where_every_term_is(values: list[int | None]) -> None:
    figure = add_up(map(Term, values))
    assert (figure.value is None) == (None in values)
    assert (figure.reason is None) == (None not in values)
    assert (figure.terms, figure.lacking) == (len(values), values.count(None))
    assert figure.value is None or figure.value == sum(value for value in values if value is not None)


@pytest.mark.parametrize("whole", [float, int])
def test_whole_numbers_are_counted_exactly_whatever_their_spelling(whole: Callable[[int], float]) -> None:
    assert add_up([Term(whole(3)), Term(4)]) == add_up([Term(7 - 4), Term(4)])
