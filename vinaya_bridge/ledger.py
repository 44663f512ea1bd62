"""The ledger: every line accounted for (design, section 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

from attrs import Factory, define

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]


class Term(StrEnum):
    """What became of a line; every line read has exactly one."""

    CONVERTED = "converted"
    UNMAPPED = "unmapped"
    SELF_TEST = "self_test"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    REFUSED = "refused"
    LATE = "late"
    UNKNOWN_VERSION = "unknown_version"
    BLANK = "blank"
    PENDING = "pending"


@define
class Seqs:
    """
    The values of ``meta.seq`` seen of one process, as ranges.

    Lines of a process mostly come in order, so there is mostly one.

    Args:
        first: Of the latest range.

        last: Of the latest range, inclusive; less than `first` where nothing was seen.

        before: The ranges before it, both ends inclusive.
    """

    first: int = 0
    last: int = -1
    before: list[tuple[int, int]] | None = None

    def add(self, seqs: Sequence[int]) -> None:
        """Note some values, in any order; runs of them that follow on one another cost least."""
        first, last = seqs[0], seqs[-1]
        follows_on = first == self.last + 1 and first > self.first
        # The length comes first: a log can hold a seq of any size.
        if follows_on and last - first + 1 == len(seqs) and seqs == list(range(first, last + 1)):
            self.last = last
            return
        for seq in seqs:
            if seq == self.last + 1 and seq > self.first:
                self.last = seq
            elif not self.first <= seq <= self.last:
                self._open(seq, seq)

    def extend(self, other: Seqs) -> None:
        """Note what another has seen."""
        for first, last in other.ranges():
            self._open(first, last)

    def ranges(self) -> list[tuple[int, int]]:
        """Return what was seen, both ends inclusive, in no certain order."""
        latest = [(self.first, self.last)] if self.last >= self.first else []
        return [*(self.before or ()), *latest]

    def _open(self, first: int, last: int) -> None:
        if self.last >= self.first:
            if self.before is None:
                self.before = []
            self.before.append((self.first, self.last))
        self.first, self.last = first, last

    def missing(self) -> list[tuple[int, int]]:
        """Return the ranges between the least and the greatest value that were not seen, both ends inclusive."""
        gaps: list[tuple[int, int]] = []
        expected: int | None = None
        for first, last in sorted(self.ranges()):
            if expected is not None and first > expected:
                gaps.append((expected, first - 1))
            expected = last + 1 if expected is None else max(expected, last + 1)
        return gaps


@define
class Ledger:
    """
    Counts of what became of the lines of one call.

    The only way to be done with a line is `settle`: nothing is dropped without a name.
    """

    terms: Counter[str] = Factory(Counter)
    unmapped: Counter[str] = Factory(Counter)
    events: Counter[str] = Factory(Counter)
    headers: Counter[tuple[int, str, str | None]] = Factory(Counter)
    seqs: dict[str, Seqs] = Factory(dict)
    read: int = 0

    def settle(self, term: Term, lines: int = 1) -> None:
        """
        Record what became of *lines* lines.

        Args:
            term: Their disposition.

            lines: How many.
        """
        self.terms[term] += lines

    def saw(self, process: str, seqs: Sequence[int], header: tuple[int, str, str | None]) -> None:
        """
        Note that event lines of one process were read.

        Args:
            process: Of the lines.

            seqs: Of each its ``meta.seq``; where they are many, better sorted.

            header: Their schema, the version of the CLI that wrote them, and their trust (None: not known).
        """
        self.headers[header] += len(seqs)
        seen = self.seqs.get(process)
        if seen is None:
            seen = self.seqs[process] = Seqs()
        seen.add(seqs)

    def merge(self, other: Ledger) -> None:
        """Add the counts of another part of the same call."""
        self.read += other.read
        self.terms.update(other.terms)
        self.unmapped.update(other.unmapped)
        self.events.update(other.events)
        self.headers.update(other.headers)
        for process, seqs in other.seqs.items():
            self.seqs.setdefault(process, Seqs()).extend(seqs)

    def lines(self) -> dict[str, int]:
        """Return the equation's terms: ``read`` first, then each disposition."""
        return {"read": self.read, **{term.value: self.terms[term] for term in Term}}

    def balanced(self) -> bool:
        """Whether every line read has its disposition."""
        return balances(self.lines())

    def versions(self) -> dict[str, JsonValue]:
        """Return how many event lines there were by schema, by CLI version and by trust."""
        schemas: Counter[str] = Counter()
        clis: Counter[str] = Counter()
        trusts: Counter[str] = Counter()
        for (schema, cli, trust), lines in self.headers.items():
            schemas[str(schema)] += lines
            clis[cli] += lines
            trusts[trust or "unknown"] += lines
        return {"schemas": _sorted(schemas), "cli": _sorted(clis), "trust": _sorted(trusts)}

    def gaps(self) -> list[dict[str, JsonValue]]:
        """Return each process's missing ``seq`` ranges, processes in order."""
        return [
            {"process": process, "missing": [list(gap) for gap in missing]}
            for process, seqs in sorted(self.seqs.items())
            if (missing := seqs.missing())
        ]


def _sorted(counts: Counter[str]) -> dict[str, JsonValue]:
    return dict(sorted(counts.items()))


def balances(lines: Mapping[str, int]) -> bool:
    """Whether a report's terms add up to the lines read."""
    return lines["read"] == sum(lines[term.value] for term in Term)


def equation(lines: Mapping[str, int]) -> str:
    """
    Return the equation as a person reads it: ``4,310 read = 4,301 converted + 6 unmapped + 3 refused``.

    Terms that are zero are left out, save ``converted``.
    """
    terms = [
        f"{lines[term.value]:,} {term.value.replace('_', ' ')}"
        for term in Term
        if lines[term.value] or term is Term.CONVERTED
    ]
    return f"{lines['read']:,} read = " + " + ".join(terms)
