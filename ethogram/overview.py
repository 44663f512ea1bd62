"""What there is to say of a run at a glance, and runs as trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define, field, frozen

from ethogram.envelope import Event
from ethogram.errors import EthogramError
from ethogram.fold import FoldedRun, fold_event
from ethogram.json_text import Json
from ethogram.moment import happened, instant_ms
from ethogram.places import RunStore
from ethogram.usage import Spending, UsageFold
from ethogram.vocabulary import RUN_STARTED


@frozen
class RunOverview:
    """
    One run at a glance. A text that the run does not state is None.

    Args:
        run_id: The run.

        events: How many events it has.

        types: How many of each type.

        kind: Its kind, as it was sent.

        actor: Who or what acts.

        harness: The harness that ran it.

        model: The model it was started with.

        parent_run_id: The run that started it.

        outcome: How it ended, as it was sent; None while it is open.

        duration_ms: What its end says it took, in milliseconds.

        first_time: When its first event happened, as the event has it.

        last_time: When its last event happened.

        fault: Why its events could not be folded or read to their end; None where they could.

        usage: The fold of what it used.
    """

    run_id: str
    events: int
    types: Mapping[str, int]
    kind: str | None = None
    actor: str | None = None
    harness: str | None = None
    model: str | None = None
    parent_run_id: str | None = None
    outcome: str | None = None
    duration_ms: int | None = None
    first_time: str | None = None
    last_time: str | None = None
    fault: str | None = None
    usage: UsageFold = field(factory=UsageFold, eq=False, repr=False)

    @property
    def open(self) -> bool:
        """Whether no ``run.finished`` has been seen."""
        return self.outcome is None

    @property
    def spending(self) -> Spending:
        """What it used itself, without its children."""
        return self.usage.spending()

    @property
    def elapsed_ms(self) -> float | None:
        """From its first event to its last, in milliseconds; None where a time cannot be read."""
        first = instant_ms(self.first_time or "")
        last = instant_ms(self.last_time or "")
        return None if first is None or last is None else last - first

    def as_json(self) -> dict[str, Json]:
        """
        The overview as a JSON object.

        Returns:
            The fields in the protocol's spelling; what the run does not state is left out.
        """
        stated: dict[str, Json] = {
            "kind": self.kind,
            "actor": self.actor,
            "harness": self.harness,
            "model": self.model,
            "parentRunId": self.parent_run_id,
            "outcome": self.outcome,
            "durationMs": self.duration_ms,
            "firstTime": self.first_time,
            "lastTime": self.last_time,
            "fault": self.fault,
        }
        return {
            "runId": self.run_id,
            "open": self.open,
            "events": self.events,
            "types": dict(self.types),
            **{name: value for name, value in stated.items() if value is not None},
            **self.spending.as_json(),
        }


@define
class RunTree:
    """
    A run with the runs that it started.

    Args:
        run: The run.

        children: Its children, in the order of their first event.

        orphan: Whether it names a parent that is not there.
    """

    run: RunOverview
    children: list[RunTree] = field(factory=list)
    orphan: bool = False

    def walk(self, depth: int = 0) -> Iterator[tuple[int, RunTree]]:
        """
        This run and all beneath it.

        Args:
            depth: How deep this run is.

        Yields:
            Depth and tree, parents before children.
        """
        # An explicit stack: a chain of runs may be longer than Python's own.
        waiting = [(depth, self)]
        while waiting:
            level, tree = waiting.pop()
            yield level, tree
            waiting += [(level + 1, child) for child in reversed(tree.children)]

    def spending(self) -> Spending:
        """
        What the run and all beneath it used. A session that several of them name is counted once.

        Returns:
            The figures. A harness that puts its children's cost into its own total has it counted twice.
        """
        fold = UsageFold()
        for _, tree in self.walk():
            fold.merge(tree.run.usage)
        return fold.spending()


class RunSummary:
    """
    Looks at a run's events as they come.

    Args:
        run_id: The run.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._types: dict[str, int] = {}
        self._usage = UsageFold()
        self._run: FoldedRun | None = None
        self._model: str | None = None
        self._first: str | None = None
        self._last: str | None = None
        self._fault: str | None = None

    def take(self, event: Event) -> None:
        """
        Take an event into account. One that cannot be folded is counted, and the fault is told.

        Args:
            event: The run's next event.
        """
        self._types[event.type] = self._types.get(event.type, 0) + 1
        self._usage.take(event)
        self._last = happened(event)
        self._first = self._last if self._first is None else self._first
        if event.type == RUN_STARTED and isinstance(event.payload, dict):
            stated = event.payload.get("model")
            self._model = stated if isinstance(stated, str) else None
        try:
            self._run = fold_event(self._run, event)
        except EthogramError as fault:
            self._fault = self._fault or str(fault)

    def stop(self, fault: EthogramError) -> None:
        """
        Take note that no more events can be read.

        Args:
            fault: Why.
        """
        self._fault = str(fault)

    def overview(self) -> RunOverview:
        """
        What there is to say so far.

        Returns:
            The overview.
        """
        run = self._run
        lifecycle = {} if run is None else {name: getattr(run, name) for name in _LIFECYCLE}
        return RunOverview(
            self._run_id,
            sum(self._types.values()),
            dict(self._types),
            model=self._model,
            first_time=self._first,
            last_time=self._last,
            fault=self._fault,
            usage=self._usage,
            **lifecycle,
        )


_LIFECYCLE = ("kind", "actor", "harness", "parent_run_id", "outcome", "duration_ms")


def summarise(run_id: str, events: Iterable[Event]) -> RunOverview:
    """
    Look at a run's events once.

    Args:
        run_id: The run.

        events: Its events, in order. A fault that they raise ends them, and is told in the overview.

    Returns:
        The overview.
    """
    summary = RunSummary(run_id)
    try:
        for event in events:
            summary.take(event)
    except EthogramError as fault:
        summary.stop(fault)
    return summary.overview()


def overviews(store: RunStore) -> Iterator[RunOverview]:
    """
    Look at every run of a store once.

    Args:
        store: The runs.

    Yields:
        One overview a run, in the store's order.
    """
    for run_id in store.runs():
        yield summarise(run_id, store.read_from(run_id))


def arrange(runs: Iterable[RunOverview]) -> list[RunTree]:
    """
    Put runs beneath the runs that started them.

    Args:
        runs: The runs, each once.

    Returns:
        The roots, in the order of their first events. A run whose parent is not among them is a root, and so
        is the earliest of runs that name each other in a circle.
    """
    trees = {run.run_id: RunTree(run) for run in sorted(runs, key=_start)}
    roots: list[RunTree] = []
    cut: set[str] = set()
    for run_id, tree in trees.items():
        parent = _parent(tree, trees)
        if parent is not None and _in_circle(run_id, trees, cut):
            cut.add(run_id)
            parent = None
        elif parent is None:
            tree.orphan = tree.run.parent_run_id is not None
        (roots if parent is None else parent.children).append(tree)
    return roots


def _in_circle(run_id: str, trees: Mapping[str, RunTree], cut: set[str]) -> bool:
    """Whether the parents of a run lead back to it, with the circles left out that are cut already."""
    seen: set[str] = set()
    at: RunTree | None = trees[run_id]
    while at is not None and at.run.run_id not in seen and at.run.run_id not in cut:
        seen.add(at.run.run_id)
        at = _parent(at, trees)
        if at is trees[run_id]:
            return True
    return False


def _parent(tree: RunTree, trees: Mapping[str, RunTree]) -> RunTree | None:
    # The empty text is a run id like any other.
    return None if tree.run.parent_run_id is None else trees.get(tree.run.parent_run_id)


def _start(run: RunOverview) -> tuple[bool, float, str]:
    first = instant_ms(run.first_time or "")
    return (first is None, first or 0.0, run.run_id)
