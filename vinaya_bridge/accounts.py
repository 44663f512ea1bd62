"""What became of the lines that a tail read, as its report and its position say it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from vinaya_bridge.ledger import JsonValue, Ledger, Term
from vinaya_bridge.mapping import CompiledMapping
from vinaya_bridge.output import Output
from vinaya_bridge.report import RunCounts, build_report
from vinaya_bridge.runs import Append


class Accounts:
    """
    The ledger of one tail, on top of what all calls before it did.

    A line counts as read when it is done with: a line that waits is ``pending`` as long as it does.

    Args:
        output: Where the report goes.

        mapping: The mapping used.

        made_by: The options that a later call needs to know.

        before: The terms of all calls before.

        open_before: How many runs had no terminal event.

        started_at: ISO-8601.
    """

    def __init__(
        self,
        output: Output,
        mapping: CompiledMapping,
        made_by: Mapping[str, JsonValue],
        *,
        before: Mapping[str, int],
        open_before: int,
        started_at: str,
    ) -> None:
        self._output = output
        self._mapping = mapping
        self._made_by = made_by
        self._before = before
        self._runs = RunCounts(open_before=open_before)
        self._started_at = started_at
        self._reported_lines = 0
        self.ledger = Ledger()
        self.last_event: tuple[str, str] | None = None

    def count(self, term: Term, lines: int = 1) -> None:
        """
        Record what became of lines that were read.

        Args:
            term: Their disposition.

            lines: How many.
        """
        self.ledger.read += lines
        self.ledger.settle(term, lines)

    def appended(self, appends: Iterable[Append]) -> None:
        """
        Note what became durable.

        Args:
            appends: The events of lines.
        """
        for append in appends:
            self._runs.count(append.type)
            self.ledger.events[append.type] += 1
            self.last_event = (append.type, append.captured_at)

    def total(self) -> dict[str, int]:
        """Return the terms of all calls, this one included; what waits is not counted."""
        return {name: self._before.get(name, 0) + lines for name, lines in self.ledger.lines().items()}

    @property
    def is_reported(self) -> bool:
        """Whether the last report has all lines that were read."""
        return self.ledger.read == self._reported_lines

    def report(self, *, waiting: Collection[str], ended_at: str) -> None:
        """
        Write the report.

        Args:
            waiting: Identities of the lines that were read and wait: they are pending.

            ended_at: ISO-8601.

        Raises:
            SinkError: It cannot be written.
        """
        # All but the terms is shared: a copy of what was seen of each process would grow with the time it runs.
        ledger = evolve(self.ledger, terms=self.ledger.terms.copy(), read=self.ledger.read + len(waiting))
        ledger.settle(Term.PENDING, len(waiting))
        report = build_report(
            ledger=ledger,
            before=self._before,
            files=[],
            pending=[],
            conflicts=[],
            runs=self._runs,
            notices=[],
            mapping=self._mapping,
            made_by=self._made_by,
            started_at=self._started_at,
            ended_at=ended_at,
        )
        self._output.write_report({**report.data, "waiting": list[JsonValue](sorted(waiting))})
        self._reported_lines = self.ledger.read
