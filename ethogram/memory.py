"""A sink and source in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import RLock

from ethogram.canonical import compose_line, compose_lines
from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, parse_event_text, stamp
from ethogram.sink import RunState, check_batch, check_next, check_open, storable_payload
from ethogram.vocabulary import RUN_FINISHED

_NEW = RunState()


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
            text = compose_lines(run_id, state.last_seq + 1, self._clock(), drafts)
            events = [parse_event_text(line) for line in text.split(b"\n")[:-1]]
            after = RunState(state.last_seq + len(events), finished, state.size_bytes + len(text))
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
