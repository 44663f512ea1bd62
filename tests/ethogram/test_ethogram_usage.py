"""What runs used: a session's largest figure counts once, sessions are added, unlike units never."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ethogram.envelope import Event, parse_event, parse_event_text
from ethogram.json_text import Json
from ethogram.usage import Spending, UsageFold, fold_usage


def events(*pairs: tuple[str, dict[str, Json]], run_id: str = "r") -> list[Event]:
    return [Event(type_name, run_id, seq, "t", payload) for seq, (type_name, payload) in enumerate(pairs, 1)]


def completed(**payload: Json) -> tuple[str, dict[str, Json]]:
    return "agent.completed", payload


def tokens(**figures: Json) -> Json:
    return figures


def test_the_corpus_states_one_bill_twice_and_it_is_paid_once(shared: Path) -> None:
    corpus = shared / "ethogram" / "corpus" / "v1"
    files = ("agent-started.json", "agent-completed.json", "agent-completed-repeated-terminal.json")
    found = [parse_event(json.loads((corpus / name).read_bytes())) for name in files]
    bills = [event.payload["costUsd"] for event in found[1:] if isinstance(event.payload, dict)]
    assert bills == [0.09765190000000001, 0.09765190000000001]
    spending = fold_usage(found)
    assert (spending.cost_usd, spending.sessions) == (0.09765190000000001, 1)


def test_a_whole_stream_of_the_corpus_folds_to_the_figures_of_its_session(shared: Path) -> None:
    stream = shared / "ethogram" / "corpus" / "umwelt-golden" / "claude-subagent.expected.jsonl"
    spending = fold_usage(parse_event_text(line) for line in stream.read_bytes().splitlines())
    assert spending.cost_usd == 0.09765190000000001
    assert spending.usage == {
        "tokens": {
            "inputTokens": 29,
            "outputTokens": 829,
            "cacheReadTokens": 63_349,
            "cacheCreationTokens": 13_169,
        }
    }
    assert spending.total() == 29 + 829 + 63_349 + 13_169
    assert (spending.turns, spending.sessions, spending.lower_bound) == (4, 1, False)


def test_a_session_counts_its_maximum_and_sessions_are_added() -> None:
    spending = fold_usage(
        events(
            completed(sessionId="a", costUsd=0.5, usage=tokens(inputTokens=10), turns=2),
            completed(sessionId="b", costUsd=0.25, usage=tokens(inputTokens=1, outputTokens=4)),
            completed(sessionId="a", costUsd=0.75, usage=tokens(inputTokens=8, outputTokens=3), turns=1),
        )
    )
    assert spending.cost_usd == 1.0
    assert spending.usage == {"tokens": {"inputTokens": 11, "outputTokens": 7}}
    assert (spending.turns, spending.sessions) == (3, 2)


def test_a_completion_without_a_session_is_of_the_latest_one_that_started() -> None:
    start: tuple[str, dict[str, Json]] = ("agent.started", {"sessionId": "a"})
    spending = fold_usage(events(start, completed(costUsd=1), completed(costUsd=3, sessionId="a")))
    assert (spending.cost_usd, spending.sessions) == (3, 1)


def test_completions_without_any_session_are_each_their_own() -> None:
    spending = fold_usage(events(("agent.started", {}), completed(costUsd=1), completed(costUsd=3)))
    assert (spending.cost_usd, spending.sessions) == (4, 2)


def test_unlike_units_are_never_added() -> None:
    spending = fold_usage(
        events(
            completed(sessionId="a", usage=tokens(inputTokens=5)),
            completed(sessionId="a", usage=tokens(inputTokens=7, unit="characters")),
            completed(sessionId="b", usage=tokens(inputTokens=2, unit="characters")),
        )
    )
    assert spending.usage == {"characters": {"inputTokens": 9}, "tokens": {"inputTokens": 5}}
    assert (spending.total(), spending.total("characters"), spending.total("words")) == (5, 9, None)


def test_what_nothing_states_stays_unknown() -> None:
    assert fold_usage([]) == Spending()
    assert fold_usage([]).as_json() == {"sessions": 0, "lowerBound": False}
    spending = fold_usage(events(completed(durationMs=3), ("other", {"costUsd": 9}), ("note", {})))
    assert (spending.cost_usd, spending.usage, spending.turns, spending.total()) == (None, {}, None, None)
    assert fold_usage([Event("agent.completed", "r", 1, "t", None)]) == Spending()


def test_the_end_of_a_run_states_what_no_completion_did() -> None:
    finish = ("run.finished", {"costUsd": 2.5e-6, "usage": tokens(inputTokens=9), "durationMs": 1})
    assert fold_usage(events(finish)).cost_usd == 2.5e-6
    stated = fold_usage(events(completed(costUsd=1, usage=tokens(inputTokens=4)), finish))
    assert (stated.cost_usd, stated.total(), stated.lower_bound) == (1, 4, False)
    half = fold_usage(events(completed(usage=tokens(inputTokens=4)), finish))
    assert (half.cost_usd, half.total(), half.lower_bound) == (2.5e-6, 4, False)
    other_half = fold_usage(events(completed(costUsd=1), finish))
    assert (other_half.cost_usd, other_half.total(), other_half.lower_bound) == (1, 9, False)


def test_a_cost_is_a_lower_bound_where_it_was_estimated_or_a_session_states_none() -> None:
    assert fold_usage(events(completed(costUsd=1, estimated=True))).lower_bound
    assert fold_usage(events(completed(costUsd=1), completed(turns=1))).lower_bound
    assert not fold_usage(events(completed(costUsd=1))).lower_bound
    assert fold_usage(events(completed(costUsd=1))).as_json() == {
        "costUsd": 1,
        "sessions": 1,
        "lowerBound": False,
    }


def test_a_session_that_two_runs_name_is_counted_once() -> None:
    total = UsageFold()
    for run_id, cost in (("a", 2), ("b", 5)):
        fold = UsageFold()
        for event in events(completed(sessionId="s", costUsd=cost, turns=1), run_id=run_id):
            fold.take(event)
        total.merge(fold)
    assert (total.spending().cost_usd, total.spending().sessions, total.spending().turns) == (5, 1, 2)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 50), st.integers(0, 50)), max_size=12)
)
def test_repeating_completions_changes_no_total(rows: list[tuple[str, int, int]]) -> None:
    pairs = [
        completed(sessionId=name, costUsd=cost, usage=tokens(inputTokens=figure))
        for name, cost, figure in rows
    ]
    once, twice = fold_usage(events(*pairs)), fold_usage(events(*pairs, *pairs))
    assert (once.cost_usd, once.usage, once.sessions) == (twice.cost_usd, twice.usage, twice.sessions)
    biggest = {name: max(cost for other, cost, _ in rows if other == name) for name, _, _ in rows}
    assert (once.cost_usd or 0) == sum(biggest.values())
