"""
What a sink and a source promise, the faults they raise, and the sequencing rules that all sinks share.

A sink stamps drafts: gapless seq from 1 for each run, ``ts`` from its clock. Forwarded events keep theirs,
and a gap is refused rather than renumbered. A refusal writes nothing and uses no seq, and nothing follows
``run.finished``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from ethogram.canonical import canonical_payload
from ethogram.envelope import CanonicalDraft, Event, EventDraft
from ethogram.faults import Duplicate, Finished, Gap, Invalid
from ethogram.json_text import ParseError, check_representable, numbers_fit
from ethogram.validation import (
    ValidationError,
    validated_payload,
)
from ethogram.vocabulary import RUN_FINISHED


class RunState(NamedTuple):
    """
    What a sink knows of a run.

    Args:
        last_seq: The seq of its last event; 0 where it has none.

        finished: Whether that event is ``run.finished``.

        size_bytes: How many bytes its canonical lines take, newlines included.
    """

    last_seq: int = 0
    finished: bool = False
    size_bytes: int = 0


class Sink(Protocol):
    """Takes events of many runs. Implementations are safe to use from several threads."""

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """
        Stamp and store a draft.

        Args:
            run_id: The run it belongs to.

            draft: What the producer emitted.

        Returns:
            The stored event.

        Raises:
            Finished: The run is finished.
            Invalid: The payload breaks a rule.
            SinkUnavailable: It could not be stored, and nothing of it is.
        """

    def forward(self, event: Event) -> None:
        """
        Store an event that another sink has stamped, with its seq and ts.

        Args:
            event: The event.

        Raises:
            Finished: The run is finished.
            Invalid: The payload breaks a rule.
            Duplicate: Its seq is stored already.
            Gap: Events before it are missing.
            SinkUnavailable: It could not be stored, and nothing of it is.
        """

    def last_seq(self, run_id: str) -> int:
        """
        How far a run has come.

        Args:
            run_id: The run.

        Returns:
            The seq of its last event, 0 for a run that this sink does not know.
        """


class Source(Protocol):
    """Gives the events of a run back."""

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """
        Replay a run.

        Args:
            run_id: The run; one that is not known has no events.

            after: An exclusive cursor: the seq of the last event already handled, 0 for all.

        Yields:
            Events in order of seq.

        Raises:
            MalformedLog: What is stored is broken, before the cursor or after it.
            SinkUnavailable: It could not be read.
        """


class BulkSink(Protocol):
    """Takes many drafts of a run at once, already validated and written by their producer."""

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """
        Stamp and store drafts together, with one ``ts``. Their payloads are not validated.

        Args:
            run_id: The run.

            drafts: The drafts in order; none leaves the run as it is.

        Returns:
            The run's state afterwards.

        Raises:
            Finished: The run is finished, or a draft follows a ``run.finished`` among them. None is stored.
            SinkUnavailable: They could not be stored, and none of them is.
        """


class CheckpointedSink(Protocol):
    """Makes events and its caller's position durable together: what exactly-once needs."""

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """
        Stamp and store drafts, and the position that goes with them.

        Args:
            batch: Run ids and their drafts, in order; their payloads are not validated. It may be empty.

            checkpoint: Whatever the caller needs to go on after exactly these drafts.

        Raises:
            Finished: A run is finished, or a draft would follow ``run.finished``. Nothing is stored.
            SinkUnavailable: It could not be stored. All of it or none of it is there at the next opening.
        """

    def checkpoint(self) -> bytes | None:
        """
        The caller's position as of the last commit.

        Returns:
            What was given to it; None where there is none, or where the stored events are no longer those
            that it was given with.
        """

    def state(self, run_id: str) -> RunState:
        """
        What is stored of a run.

        Args:
            run_id: The run.

        Returns:
            Its state; zeros for a run that is not known.
        """

    def close(self) -> None:
        """Let go of files and locks."""


def check_open(run_id: str, state: RunState) -> None:
    """
    Refuse anything more for a finished run.

    Args:
        run_id: The run.

        state: Its state.

    Raises:
        Finished: It is finished.
    """
    if state.finished:
        raise Finished(run_id)


def check_next(event: Event, state: RunState) -> None:
    """
    Refuse a forwarded event that is not the next of its run.

    Args:
        event: The event.

        state: The state of its run.

    Raises:
        Duplicate: Its seq is stored already.
        Gap: Events before it are missing.
    """
    expected = state.last_seq + 1
    if event.seq < expected:
        raise Duplicate(event.run_id, expected, event.seq)
    if event.seq > expected:
        raise Gap(event.run_id, expected, event.seq)


def check_batch(run_id: str, state: RunState, drafts: Sequence[CanonicalDraft]) -> bool:
    """
    Refuse a batch of which any draft would follow ``run.finished``.

    Args:
        run_id: The run.

        state: Its state.

        drafts: The batch, in order.

    Returns:
        Whether the run is finished once the batch is stored.

    Raises:
        Finished: The run is finished, or a draft follows a ``run.finished`` in the batch.
    """
    if not drafts:
        return state.finished
    check_open(run_id, state)
    last = len(drafts) - 1
    for index, draft in enumerate(drafts):
        if draft.type == RUN_FINISHED:
            if index < last:
                raise Finished(run_id)
            return True
    return False


def storable_payload(run_id: str, draft: EventDraft | Event, *, validate: bool) -> bytes:
    """
    Write a payload as a sink stores it.

    Args:
        run_id: The run, for the fault.

        draft: The draft, or the event to forward.

        validate: Whether to refuse what breaks a rule or could not be parsed back. Otherwise everything that
            can be written is taken, as the protocol's in-memory sink does.

    Returns:
        The payload's canonical form.

    Raises:
        Invalid: The payload breaks a rule, or could not be read back.
    """
    try:
        if not validate:
            return canonical_payload(draft.payload)
        text = validated_payload(draft.type, draft.payload)
        # Universal validation takes what no parser would: an unsafe integer under an unknown type, say.
        # In canonical form only a lone surrogate is written `\ud`.
        if not numbers_fit(draft.payload) or b"\\ud" in text:
            check_representable(draft.payload)
        for text_field in (draft.type, run_id, draft.captured_at or ""):
            check_representable(text_field, "envelope")
    except (ValidationError, ParseError) as fault:
        raise Invalid(run_id, fault) from None
    return text
