"""A run folded from its events: what a viewer shows of it."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from ethogram.envelope import Event
from ethogram.errors import EthogramError
from ethogram.payload import check_payload
from ethogram.vocabulary import RUN_FINISHED, RUN_STARTED


class FoldError(EthogramError):
    """Raised when lifecycle events contradict each other: two starts, a finish first, a foreign finish."""


@frozen
class FoldedRun:
    """
    One run's lifecycle.

    Args:
        run_id: The run.

        kind: What kind of run it is; a kind that this version does not know is kept as it was sent.

        actor: Who or what acts.

        harness: The harness that ran it.

        parent_run_id: The run that started this one, where it said so.

        outcome: How it ended; None while it is open.

        duration_ms: How long it took, in milliseconds; None while it is open.
    """

    run_id: str
    kind: str
    actor: str
    harness: str
    parent_run_id: str | None = None
    outcome: str | None = None
    duration_ms: int | None = None

    @property
    def open(self) -> bool:
        """Whether no ``run.finished`` has been seen."""
        return self.outcome is None


def fold_run(events: Iterable[Event]) -> FoldedRun | None:
    """
    Fold the events of one run.

    Only ``run.started`` and ``run.finished`` are read. A second finish overwrites the first, as in the other
    SDKs; no conforming sink stores one.

    Args:
        events: The run's events, in order.

    Returns:
        The run, or None where no start was seen.

    Raises:
        FoldError: Two starts, a finish before the start, or a finish of another run.
        ParseError: A start or finish lacks a required field.
    """
    run: FoldedRun | None = None
    for event in events:
        run = fold_event(run, event)
    return run


def fold_event(run: FoldedRun | None, event: Event) -> FoldedRun | None:
    """
    Fold one event more: for a run whose events are still coming.

    Args:
        run: The run so far; None where no start was seen.

        event: Its next event.

    Returns:
        The run with the event, or None while no start was seen.

    Raises:
        FoldError: As for `fold_run`.
        ParseError: As for `fold_run`.
    """
    if event.type == RUN_STARTED:
        if run is not None:
            raise FoldError("a run has more than one run.started")
        return _started(event)
    if event.type != RUN_FINISHED:
        return run
    if run is None:
        raise FoldError("a run has run.finished before run.started")
    if event.run_id != run.run_id:
        raise FoldError("a run.finished is of another run")
    payload = _payload(event)
    duration_ms = payload["durationMs"]
    assert isinstance(duration_ms, int | float)  # noqa: S101  check_payload requires a count
    return evolve(run, outcome=str(payload["outcome"]), duration_ms=int(duration_ms))


def _started(event: Event) -> FoldedRun:
    payload = _payload(event)
    parent = payload.get("parentRunId")
    return FoldedRun(
        event.run_id,
        str(payload["kind"]),
        str(payload["actor"]),
        str(payload["harness"]),
        parent if isinstance(parent, str) else None,
    )


def _payload(event: Event) -> dict[str, object]:
    check_payload(event.type, event.payload)
    assert isinstance(event.payload, dict)  # noqa: S101  check_payload has just refused everything else
    return dict(event.payload)
