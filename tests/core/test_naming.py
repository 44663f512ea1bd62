"""Run ids on the wire."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.naming import RELAY_RUN, dispatch_run_id, escape, main_run_id, sitting_run_id, split_run_id

source_ids = st.text(max_size=12) | st.text("%/~2", max_size=6)


def test_a_main_run_named_like_the_bridge_is_told_apart() -> None:
    assert main_run_id("vinaya-bridge") == "%76inaya-bridge"
    assert main_run_id("vinaya-bridge") != RELAY_RUN


def test_the_marks_that_join_ids_are_escaped_inside_them() -> None:
    assert main_run_id("a/b~2%") == "a%2Fb%7E2%25"


@given(source_ids, source_ids, st.integers(1, 9), st.booleans())
def test_a_run_id_can_be_taken_apart_again(main: str, effect: str, number: int, dispatch: bool) -> None:
    main_run = main_run_id(main)
    if dispatch:
        run_id = dispatch_run_id(main_run, escape(effect), number)
        assert split_run_id(run_id) == (main_run, escape(effect), number)
    else:
        assert split_run_id(sitting_run_id(main_run, number)) == (main_run, None, number)


@given(source_ids, source_ids)
def test_two_main_runs_never_share_a_run_id(one: str, other: str) -> None:
    assert (main_run_id(one) == main_run_id(other)) == (one == other)
