"""The order of lines, and which of several under one identity stays."""

from __future__ import annotations

from random import Random

from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.order import in_order
from vinaya_bridge.settle import Spread, fingerprints, run_fingerprint, settle


@frozen
class Line:
    identity: str
    process: str = "p"
    seq: int = 0
    instant_us: int | None = 0
    digest: str = "d"


def ids(lines: list[Line]) -> list[str]:
    return [line.identity for line in lines]


def test_a_process_leaves_by_seq_whatever_its_times_say() -> None:
    lines = [Line("b", seq=1, instant_us=5), Line("a", seq=0, instant_us=9), Line("c", seq=2, instant_us=1)]
    assert ids(in_order(lines)) == ["a", "b", "c"]


def test_processes_are_merged_by_time() -> None:
    lines = [
        Line("a0", "a", 0, 10),
        Line("a1", "a", 1, 30),
        Line("b0", "b", 0, 20),
        Line("b1", "b", 1, 40),
    ]
    assert ids(in_order(lines)) == ["a0", "b0", "a1", "b1"]


def test_time_never_runs_backwards_inside_a_process() -> None:
    lines = [Line("a0", "a", 0, 50), Line("a1", "a", 1, 10), Line("b0", "b", 0, 20)]
    assert ids(in_order(lines)) == ["b0", "a0", "a1"]


def test_a_line_without_a_readable_time_counts_as_the_latest_of_its_process() -> None:
    lines = [Line("a0", "a", 0, 30), Line("a1", "a", 1, None), Line("b0", "b", 0, 31), Line("b1", "b", 1, 29)]
    assert ids(in_order(lines)) == ["a0", "a1", "b0", "b1"]


lines_of_a_run = st.lists(
    st.builds(
        Line,
        identity=st.text("abcdef", min_size=1, max_size=3),
        process=st.sampled_from("pqr"),
        seq=st.integers(0, 5),
        instant_us=st.none() | st.integers(0, 9),
        digest=st.sampled_from("xyz"),
    ),
    max_size=12,
)


@given(lines_of_a_run, st.randoms(use_true_random=False))
def test_order_does_not_depend_on_how_the_lines_came(lines: list[Line], random: Random) -> None:
    distinct = list({line.identity: line for line in lines}.values())
    shuffled = distinct[:]
    random.shuffle(shuffled)
    assert in_order(shuffled) == in_order(distinct)
    for process in "pqr":
        seqs = [line.seq for line in in_order(distinct) if line.process == process]
        assert seqs == sorted(seqs)


@given(lines_of_a_run, st.randoms(use_true_random=False))
def test_settling_does_not_depend_on_how_the_lines_came(lines: list[Line], random: Random) -> None:
    shuffled = lines[:]
    random.shuffle(shuffled)
    one, two = settle(lines, {}), settle(shuffled, {})
    assert {(line.identity, line.digest) for line in one.stay} == {
        (line.identity, line.digest) for line in two.stay
    }
    assert len(one.conflicts) == len(two.conflicts)
    assert len(one.stay) + len(one.duplicates) + len(one.conflicts) == len(lines)
    assert len({line.identity for line in one.stay}) == len(one.stay)


def test_of_two_contents_the_earlier_stays() -> None:
    early, late = Line("x", instant_us=1, digest="late-name"), Line("x", instant_us=2, digest="early-name")
    settled = settle([late, early, evolve(late)], {})
    assert settled.stay == [early]
    assert settled.conflicts == [late, late]


def test_what_the_output_holds_stays_against_an_earlier_line() -> None:
    held, early = Line("x", instant_us=2, digest="held"), Line("x", instant_us=1, digest="early")
    settled = settle([early, held], {"x": "held"})
    assert settled.stay == [held]
    assert settled.conflicts == [early]


def test_an_identity_under_two_main_runs_is_suspected_and_no_other() -> None:
    spread, other = Spread(), Spread()
    for each, identity, run in (
        (spread, "a", "m"),
        (spread, "b", "m"),
        (other, "a", "m"),
        (other, "b", "n"),
    ):
        each.add([identity], run_fingerprint(run))
    assert spread.suspects() == other.suspects() == frozenset()
    spread.merge(other)
    assert spread.suspects() == set(fingerprints(["b"]))


def test_a_fingerprint_is_the_same_in_every_process() -> None:
    assert list(fingerprints(["a-b"])) == [0x35C2_229E_01E2_00F1]
    assert run_fingerprint("loop-1") == 0xDFF0_74BD_5A0D_B548
