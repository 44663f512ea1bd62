"""Figures that can be unknown. Source: Vinaya Log reference, Reading rules: Unknown, never zero."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from attrs import frozen

Number = int | float

NO_REASON: Final = "the line gives no reason"


@frozen
class Term:
    """
    One part of a sum.

    Args:
        value: The figure; None where it is not known.

        reason: Why it is not known.
    """

    value: Number | None
    reason: str | None = None


@frozen
class Figure:
    """
    A sum that is known only where each of its terms is.

    Args:
        value: The sum; None where a term is not known. Never 0 in place of what is not known.

        terms: How many figures were asked for.

        lacking: How many of them are not known.

        reasons: Why, each reason once, in alphabetical order.
    """

    value: Number | None
    terms: int
    lacking: int = 0
    reasons: tuple[str, ...] = ()

    @property
    def reason(self) -> str | None:
        """Why the sum is not known, and how many terms lack; None where it is known."""
        if self.value is not None:
            return None
        return f"{self.lacking} of {self.terms} not known: {'; '.join(self.reasons)}"


def add_up(terms: Iterable[Term]) -> Figure:
    """
    Add terms up.

    Args:
        terms: At least one.

    Returns:
        Their sum, exact for whole numbers and independent of the order; unknown where one of them is.
    """
    values: list[Number] = []
    reasons = set()
    count = 0
    for term in terms:
        count += 1
        if term.value is None:
            reasons.add(term.reason or NO_REASON)
        else:
            values.append(term.value)
    lacking = count - len(values)
    return Figure(None if lacking else _sum(values), count, lacking, tuple(sorted(reasons)))


def _sum(values: list[Number]) -> Number:
    """The sum; a whole number is an int."""
    whole = sum(int(value) for value in values if float(value).is_integer())
    fractions = [value for value in values if not float(value).is_integer()]
    return math.fsum([whole, *fractions]) if fractions else whole
