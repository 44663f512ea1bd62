"""The ledger: every line accounted for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.ledger import Ledger, Seqs, Term, balances, equation


def test_a_ledger_balances_only_when_every_line_has_its_disposition() -> None:
    ledger = Ledger(read=3)
    ledger.settle(Term.CONVERTED, 2)
    assert not ledger.balanced()
    ledger.settle(Term.REFUSED)
    assert ledger.balanced()
    assert balances(ledger.lines())


def test_the_equation_names_each_term_that_occurred() -> None:
    ledger = Ledger(read=4310)
    ledger.settle(Term.CONVERTED, 4301)
    ledger.settle(Term.SELF_TEST, 6)
    ledger.settle(Term.UNKNOWN_VERSION, 3)
    assert equation(ledger.lines()) == "4,310 read = 4,301 converted + 6 self test + 3 unknown version"


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=8), max_size=12))
def test_missing_seqs_are_those_between_the_least_and_the_greatest_that_were_not_seen(
    batches: list[list[int]],
) -> None:
    seqs = Seqs()
    for batch in batches:
        seqs.add(batch)
    seen = [seq for batch in batches for seq in batch]
    missing = {seq for first, last in seqs.missing() for seq in range(first, last + 1)}
    assert missing == (set(range(min(seen), max(seen))) - set(seen) if seen else set())


def test_a_process_whose_lines_come_in_order_is_one_range() -> None:
    seqs = Seqs()
    for first in range(0, 900, 30):
        seqs.add(list(range(first, first + 30)))
    assert seqs.ranges() == [(0, 899)]


def test_a_seq_far_ahead_costs_what_any_other_does() -> None:
    seqs = Seqs()
    seqs.add([0, 1])
    seqs.add([2, 3, 2**53 - 1])
    assert seqs.missing() == [(4, 2**53 - 2)]


@given(st.lists(st.integers(0, 20), max_size=20), st.lists(st.integers(0, 20), max_size=20))
def test_two_ledgers_merged_know_what_each_saw(one: list[int], other: list[int]) -> None:
    ledgers = Ledger(), Ledger()
    for ledger, seqs in zip(ledgers, (one, other), strict=True):
        for seq in seqs:
            ledger.saw("p", [seq], (3, "0.38.0", None))
    together = Ledger()
    for seq in one + other:
        together.saw("p", [seq], (3, "0.38.0", None))
    ledgers[0].merge(ledgers[1])
    assert ledgers[0].gaps() == together.gaps()
    assert ledgers[0].versions() == together.versions()
