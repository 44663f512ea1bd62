"""What was used, by the Log's own rule. Source: Vinaya Log reference, Reading rules: Usage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias, TypeVar

from attrs import frozen

from vinaya_bridge.log import EventLine
from vinaya_bridge.order import in_order
from vinaya_bridge.readings.figures import Figure, Term, add_up
from vinaya_bridge.readings.survivors import Survivors
from vinaya_bridge.readings.tokens import Observation, Semantics, Statement, usage_part

By: TypeAlias = Literal["run", "model", "role", "issue"]
"""What totals can be grouped by."""

_NO_OUTCOME: Final = "no line tells how the turn ended"
_NO_TOKENS: Final = "its lines state no tokens"


@frozen
class UsageRow:
    """
    What one run used of one model, by observations of one kind.

    Args:
        run: ``meta.run_id``.

        model: The model; None where the lines do not know it.

        semantics: ``cumulative``: the figures are those of the last observation; ``delta``: they are sums.

        low_trust: Whether these lines are of low trust; such lines make a row of their own.

        lines: How many observations there are.

        input: Input tokens.

        output: Output tokens.

        cache: Cache tokens.

        counted: The observations whose figures count.
    """

    run: str
    model: str | None
    semantics: Semantics
    low_trust: bool
    lines: int
    input: Figure
    output: Figure
    cache: Figure
    counted: tuple[Observation, ...]

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by name."""
        return {"input": self.input, "output": self.output, "cache": self.cache}


@frozen
class Attempt:
    """
    One attempt of a role: everything that dispatch and role_attempt lines say under one effect id.

    Args:
        effect_id: The attempt's id.

        run: ``meta.run_id`` of the line that counts.

        model: The model it names.

        role: The role that was dispatched; else ``subject.role``.

        issue: ``subject.issue``.

        low_trust: Whether the line that counts is of low trust.

        lines: How many lines speak of it.

        launches: How many ``dispatched`` lines there are; more than one means that the id was used again.

        input: Input tokens, of the first line that states any.

        output: Output tokens, of the same line.
    """

    effect_id: str
    run: str
    model: str | None
    role: str
    issue: int | None
    low_trust: bool
    lines: int
    launches: int
    input: Figure
    output: Figure

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by name."""
        return {"input": self.input, "output": self.output}


@frozen
class UsageGroup:
    """
    Totals of one run, model, role or issue. The three kinds describe the same tokens: they are never added.

    Args:
        key: The run, model, role or issue; None where the lines do not know it.

        kind: What the figures come from.

        low_trust: Whether the lines are of low trust.

        input: Input tokens.

        output: Output tokens.

        cache: Cache tokens; None for attempts, which do not state them.
    """

    key: str | int | None
    kind: Literal["cumulative", "delta", "attempts"]
    low_trust: bool
    input: Figure
    output: Figure
    cache: Figure | None

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by name; of attempts without the cache."""
        figures = {"input": self.input, "output": self.output}
        return figures if self.cache is None else figures | {"cache": self.cache}


@frozen
class UsageReport:
    """
    The answer of `usage`.

    Args:
        rows: What counts, by run, model, kind of observation and trust.

        attempts: The attempts, by effect id.

        observations: Every usage line, by run, in order.

        low_trust_lines: How many usage, dispatch and role_attempt lines are of low trust.

        duplicates: How many lines of any kind repeated another.

        conflicts: How many lines of any kind lost against other content under their identity.
    """

    rows: tuple[UsageRow, ...]
    attempts: tuple[Attempt, ...]
    observations: tuple[Observation, ...]
    low_trust_lines: int
    duplicates: int
    conflicts: int

    def counted(self) -> frozenset[str]:
        """
        Which observations count.

        Returns:
            The identities of the last cumulative observation of each row and of all deltas.
        """
        return frozenset(each.identity for row in self.rows for each in row.counted)

    def grouped(self, by: By) -> list[UsageGroup]:
        """
        Add up what counts.

        Args:
            by: What to group by.

        Returns:
            Totals by key, kind and trust; keys that are not known come last.
        """
        observed = [(row.semantics, each) for row in self.rows for each in row.counted]
        groups = [
            UsageGroup(
                key,
                kind,
                low_trust,
                add_up(each.input for _, each in members),
                add_up(each.output for _, each in members),
                add_up(each.cache for _, each in members),
            )
            for (key, kind, low_trust), members in _grouped(
                observed, lambda pair: (_key(pair[1], by), pair[0], pair[1].low_trust)
            ).items()
        ]
        groups += [
            UsageGroup(
                key,
                "attempts",
                low_trust,
                add_up(_term(each.input) for each in attempts),
                add_up(_term(each.output) for each in attempts),
                None,
            )
            for (key, low_trust), attempts in _grouped(
                self.attempts, lambda attempt: (_key(attempt, by), attempt.low_trust)
            ).items()
        ]
        return sorted(
            groups, key=lambda group: (_last_if_none(group.key), _KINDS[group.kind], group.low_trust)
        )


_KINDS: Final = {"cumulative": 0, "delta": 1, "attempts": 2}


def usage(lines: Iterable[EventLine]) -> UsageReport:
    """
    Read what was used.

    For each run and model only the last cumulative observation counts: the last by time, process and seq over
    all processes of the run. Deltas are added up. One kind is never added to the other. Dispatch and
    role_attempt lines with one effect id are one attempt, whose figures are those of the first line that states
    any. Lines of low trust are counted apart: they make rows and totals of their own.

    A run is a ``run_id``. A child process that counts its own total under its parent's run is overtaken by
    whoever observes last, as the rule says. An effect id that was used for two turns counts as one attempt;
    `Attempt.launches` tells.

    Source: Vinaya Log reference, Reading rules: Usage, Identity, Order, Unknown never zero, Low trust, Self-test.

    Args:
        lines: Event lines in any order, copies among them.

    Returns:
        The report; equal for equal sets of lines.
    """
    kept: Survivors[Observation | Statement] = Survivors(usage_part)
    for line in lines:
        kept.add(line)
    items = kept.items()
    observations = [item for item in items if isinstance(item, Observation)]
    statements = [item for item in items if isinstance(item, Statement)]
    rows = [_row(members) for members in _grouped(observations, _row_key).values()]
    attempts = [_attempt(members) for members in _grouped(statements, lambda each: each.effect_id).values()]
    return UsageReport(
        rows=tuple(sorted(rows, key=_row_order)),
        attempts=tuple(sorted(attempts, key=lambda each: each.effect_id)),
        observations=tuple(
            each
            for _, members in sorted(_grouped(observations, lambda each: each.run).items())
            for each in in_order(members)
        ),
        low_trust_lines=sum(item.low_trust for item in items),
        duplicates=kept.duplicates,
        conflicts=kept.conflicts,
    )


def _row_order(row: UsageRow) -> tuple[str, tuple[bool, int, str], str, bool]:
    return row.run, _last_if_none(row.model), row.semantics, row.low_trust


def _row_key(each: Observation) -> tuple[str, str | None, Semantics, bool]:
    return each.run, each.model, each.semantics, each.low_trust


def _row(observations: list[Observation]) -> UsageRow:
    ordered = in_order(observations)
    last = ordered[-1]
    counted = [last] if last.semantics == "cumulative" else ordered
    return UsageRow(
        run=last.run,
        model=last.model,
        semantics=last.semantics,
        low_trust=last.low_trust,
        lines=len(ordered),
        input=add_up(each.input for each in counted),
        output=add_up(each.output for each in counted),
        cache=add_up(each.cache for each in counted),
        counted=tuple(counted),
    )


def _attempt(statements: list[Statement]) -> Attempt:
    ordered = in_order(statements)
    counts = next((each for each in ordered if each.tokens is not None), ordered[0])
    if counts.tokens is not None:
        stated_in, stated_out = Term(counts.tokens[0]), Term(counts.tokens[1])
    else:
        stated_in = stated_out = Term(
            None, _NO_OUTCOME if all(each.is_launch for each in ordered) else _NO_TOKENS
        )
    target_role = next((each.target_role for each in ordered if each.target_role is not None), None)
    return Attempt(
        effect_id=counts.effect_id,
        run=counts.run,
        model=counts.model,
        role=target_role or counts.role,
        issue=counts.issue,
        low_trust=counts.low_trust,
        lines=len(ordered),
        launches=sum(each.is_launch for each in ordered),
        input=add_up([stated_in]),
        output=add_up([stated_out]),
    )


def _term(figure: Figure) -> Term:
    return Term(figure.value, "; ".join(figure.reasons))


def _key(item: Observation | Attempt, by: By) -> str | int | None:
    match by:
        case "run":
            return item.run
        case "model":
            return item.model
        case "role":
            return item.role
        case "issue":
            return item.issue


def _last_if_none(key: str | int | None) -> tuple[bool, int, str]:
    """A sort key: numbers by size, text by code points, what is not known last."""
    return key is None, key if isinstance(key, int) else 0, key if isinstance(key, str) else ""


_Item = TypeVar("_Item")
_Key = TypeVar("_Key")


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    """Items with one key together."""
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
