"""
What a sink and a source promise, the faults they raise, and the sequencing rules that all sinks share.

A sink stamps drafts: gapless seq from 1 for each run, ``ts`` from its clock. Forwarded events keep theirs,
and a gap is refused rather than renumbered. A refusal writes nothing and uses no seq, and nothing follows
``run.finished``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ethogram.canonical import canonical_payload, compose_line, compose_lines
from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, parse_event_text, stamp
from ethogram.errors import EthogramError
from ethogram.excerpts import excerpt
from ethogram.json_text import Json, ParseError, check_representable, numbers_fit
from ethogram.validation import (
    OverBound,
    PayloadTooLarge,
    ValidationDetails,
    ValidationError,
    validated_payload,
)
from ethogram.vocabulary import MAX_EXCERPT_SCALARS, RUN_FINISHED

LogFaultCause: TypeAlias = Literal["torn", "text", "run", "gap", "duplicate", "finished"]
"""Why a stored log is malformed: an unfinished last line, no event, a foreign run, a broken sequence."""


class SinkFault(EthogramError):  # noqa: N818  the protocol's word
    """
    The root of what a sink or source raises.

    Args:
        message: What is wrong, in names and types.

        run_id: The run that was asked for; empty where the fault is of no single run.
    """

    def __init__(self, message: str, run_id: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.run_id = run_id


class Finished(SinkFault):
    """Raised when something is submitted to a run that has its ``run.finished``."""

    def __init__(self, run_id: str) -> None:
        super().__init__("the run is finished: nothing follows run.finished", run_id)


class OutOfSequence(SinkFault):
    """
    Raised when a forwarded event is not the next of its run: see `Gap` and `Duplicate`.

    Args:
        run_id: The run.

        expected: The seq that would be next.

        received: The seq that came.
    """

    def __init__(self, run_id: str, expected: int, received: int) -> None:
        super().__init__(f"event {received} came where {expected} is next", run_id)
        self.expected = expected
        self.received = received


class Gap(OutOfSequence):
    """Raised when events before a forwarded one are missing."""


class Duplicate(OutOfSequence):
    """Raised when a forwarded event's seq is stored already, whatever its content."""


class Invalid(SinkFault):
    """
    Raised when a payload breaks the protocol's rules, or could not be read back.

    Args:
        run_id: The run.

        error: The fault, with its kind and path.
    """

    def __init__(self, run_id: str, error: ValidationError | ParseError) -> None:
        super().__init__(str(error), run_id)
        self.error = error

    @property
    def details(self) -> ValidationDetails | None:
        """The fault as one of the six kinds; None where the payload is valid and yet cannot be read back."""
        return self.error.details if isinstance(self.error, ValidationError) else None


class MalformedLog(SinkFault):
    """
    Raised when what a sink has stored cannot be trusted: it is never repaired in silence.

    Args:
        run_id: The run.

        line: The number of the line, from 1.

        cause: Why, as one of a closed set.

        message: Why, in words.
    """

    def __init__(self, run_id: str, line: int, cause: LogFaultCause, message: str) -> None:
        super().__init__(f"line {line} of the run's log: {message}", run_id)
        self.line = line
        self.cause = cause


class SinkUnavailable(SinkFault):
    """
    Raised when the operating system refused to store or read: a full disk, a lost mount, a missing right.

    Args:
        path: The file or directory.

        error_number: The system's ``errno``.

        message: What was being done and what the system said.

        run_id: The run, where there is one.
    """

    def __init__(self, path: str, error_number: int, message: str, run_id: str = "") -> None:
        super().__init__(f"{path}: {message}", run_id)
        self.path = path
        self.error_number = error_number


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


def refusal_payload(
    fault: SinkFault, *, source_seq: int | None = None, source_type: str | None = None
) -> dict[str, Json]:
    """
    Word a refusal as the payload of a ``capture.refused``, to be appended to the refusing runtime's own run.

    It never holds what was refused. Source: the ethogram specification, "Sink guide".

    Args:
        fault: Why a sink refused something.

        source_seq: The seq of the refused event, where it had one.

        source_type: Its type, where it is known.

    Returns:
        A valid payload.
    """
    payload: dict[str, Json] = {"cause": _cause(fault), "sourceRunId": fault.run_id}
    if source_seq is not None:
        payload["sourceSeq"] = source_seq
    if source_type is not None:
        payload["sourceType"] = source_type
    details = fault.details if isinstance(fault, Invalid) else None
    if isinstance(details, OverBound):
        return payload | {"field": details.path, "count": details.count, "max": details.max}
    if isinstance(details, PayloadTooLarge):
        return payload | {"field": "payload", "count": details.bytes, "max": details.max}
    if payload["cause"] == "malformed":
        detail, truncated = excerpt(fault.message, MAX_EXCERPT_SCALARS)
        payload["detail"] = detail
        if truncated:
            payload["truncated"] = True
    return payload


def _cause(fault: SinkFault) -> str:
    match fault:
        case Finished():
            return "finished"
        case Gap():
            return "gap"
        case Duplicate():
            return "duplicate"
        case Invalid(error=ValidationError(details=OverBound() | PayloadTooLarge())):
            return "over_bound"
        case _:
            return "malformed"


class MemorySink:
    """
    Keeps events in memory: for tests, and for what need not outlive the process.

    Args:
        clock: Gives the ``ts`` of each appended draft; it is not read for a refused one.

        validate: Whether to refuse payloads that break a rule.
    """

    def __init__(self, *, clock: Clock, validate: bool = True) -> None:
        self._clock = clock
        self._validate = validate
        self._lock = RLock()
        self._runs: dict[str, list[Event]] = {}
        self._states: dict[str, RunState] = {}

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store a draft: see `Sink.append`."""
        with self._lock:
            state = self.state(run_id)
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            self._store(event, state, payload_json)
            return event

    def forward(self, event: Event) -> None:
        """Store an event that another sink has stamped: see `Sink.forward`."""
        with self._lock:
            state = self.state(event.run_id)
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            self._store(event, state, payload_json)

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """Stamp and store drafts together: see `BulkSink.append_canonical`."""
        with self._lock:
            state = self.state(run_id)
            finished = check_batch(run_id, state, drafts)
            if not drafts:
                return state
            lines = compose_lines(run_id, state.last_seq + 1, self._clock(), drafts)
            events = [parse_event_text(line) for line in lines]
            size_bytes = state.size_bytes + sum(map(len, lines))
            after = RunState(state.last_seq + len(lines), finished, size_bytes)
            self._runs.setdefault(run_id, []).extend(events)
            self._states[run_id] = after
            return after

    def last_seq(self, run_id: str) -> int:
        """How far a run has come: see `Sink.last_seq`."""
        return self.state(run_id).last_seq

    def state(self, run_id: str) -> RunState:
        """
        What is known of a run.

        Args:
            run_id: The run.

        Returns:
            Its state; zeros for a run that is not known.
        """
        return self._states.get(run_id, _NEW)

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """Replay a run: see `Source.read_from`."""
        return iter(self._runs.get(run_id, [])[after:])

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their first event.
        """
        yield from list(self._runs)

    def _store(self, event: Event, state: RunState, payload_json: bytes) -> None:
        line = compose_line(
            event.type, event.run_id, event.seq, event.ts, payload_json, captured_at=event.captured_at
        )
        self._runs.setdefault(event.run_id, []).append(event)
        self._states[event.run_id] = RunState(
            event.seq, event.type == RUN_FINISHED, state.size_bytes + len(line) + 1
        )


_NEW = RunState()
