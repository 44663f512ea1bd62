"""
Runs as directories of one file each: ``<root>/<encoded run id>/events.jsonl``.

The layout is the one that existing ethogram tools read and write, byte for byte: one canonical event a line.
Files are 0600 and directories 0700, since events carry what an agent said and did.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Literal, Self, TypeAlias

from ethogram.canonical import compose_line, compose_lines
from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, stamp
from ethogram.faults import Invalid, MalformedLog, system_faults
from ethogram.json_text import ParseError, is_unicode
from ethogram.runfiles import RunFiles
from ethogram.runlog import EVENTS_FILE, run_directory_name
from ethogram.sink import RunState, check_batch, check_next, check_open, storable_payload
from ethogram.vocabulary import RUN_FINISHED

__all__ = ["RunDirectory", "run_directory_name"]

_NEW = RunState()

_Build: TypeAlias = Callable[[RunState], tuple[bytes, RunState]]
"""Makes, of where a run stands, what is to be appended and where it stands then; or refuses."""


class RunDirectory:
    """
    A sink and source over a directory of runs.

    It holds no file open between calls, so that the number of runs is bounded by the disk alone. Each write
    holds a lock on the run's file and looks at its length first: a second writer, in this process or
    another, is seen and its events are read before the next seq is given. The lock is advisory: a writer
    that takes none (the existing ones do not) must not write to the same run at the same time.

    Args:
        root: The directory that holds the runs. It is made when the first event is stored.

        clock: Gives the ``ts`` of what is appended; it is not read for a refused draft.

        durability: ``event``: every call returns after its events are on the disk. ``batch``: only `sync`
            makes them so, and a crash of the machine may take or tear what came after the last one.

        validate: Whether `append` and `forward` refuse payloads that break a rule.

        repair_torn_tail: Whether a last line without its newline, left by a writer that was killed, is cut
            off before the next event is stored. Otherwise such a run is refused as malformed, as the
            reference sink does.

        remembered_runs: How many runs' states are kept in memory; a run beyond them is read again when it is
            next written to.
    """

    def __init__(
        self,
        root: Path,
        *,
        clock: Clock,
        durability: Literal["event", "batch"] = "event",
        validate: bool = True,
        repair_torn_tail: bool = False,
        remembered_runs: int = 16_384,
    ) -> None:
        self.root = root
        self._files = RunFiles(root, remembered_runs=remembered_runs)
        self._clock = clock
        self._sync_each_call = durability == "event"
        self._validate = validate
        self._repair_torn_tail = repair_torn_tail
        self._lock = RLock()

    def __enter__(self) -> Self:
        """Use as a context manager: it is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, as `close` does."""
        self.close()

    def close(self) -> None:
        """Let go of the root directory. With ``batch`` durability it does not sync: call `sync` first."""
        with self._lock:
            self._files.close()

    def path(self, run_id: str) -> Path:
        """
        Where a run's events are, or would be.

        Args:
            run_id: The run.

        Returns:
            The path of its ``events.jsonl``.
        """
        return self._files.path(run_id)

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store a draft: see `Sink.append`. A broken log raises MalformedLog."""
        stored: list[Event] = []

        def build(state: RunState) -> tuple[bytes, RunState]:
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            stored[:] = [event]
            return line_after(event, payload_json, state)

        self._write(run_id, build)
        return stored[0]

    def forward(self, event: Event) -> None:
        """Store a stamped event: see `Sink.forward`. A broken log raises MalformedLog."""

        def build(state: RunState) -> tuple[bytes, RunState]:
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            return line_after(event, payload_json, state)

        self._write(event.run_id, build)

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """
        Stamp and store drafts with one write: see `BulkSink.append_canonical`.

        Their payloads are not looked at: whoever made the drafts has validated them.

        Args:
            run_id: The run.

            drafts: The drafts, in order.

        Returns:
            The run's state afterwards.

        Raises:
            Finished: The run is finished, or a draft follows a ``run.finished`` among them. None is stored.
            MalformedLog: What is stored of the run is broken.
            SinkUnavailable: They could not be stored, and none of them is.
        """

        def build(state: RunState) -> tuple[bytes, RunState]:
            return lines_after(run_id, drafts, state, self._clock)

        return self._write(run_id, build)

    def adopt(self, folder: Path) -> None:
        """
        Take over whole runs that another `RunDirectory` wrote, each by renaming it: none is ever here in part.

        Args:
            folder: The root of the other one, on the same file system; nobody writes to it any more. It is
                empty afterwards.

        Raises:
            SinkUnavailable: The system refused, or a run is here already; those before it are taken over.
        """
        with self._lock, system_faults(self.root):
            self._files.adopt(folder)

    def last_seq(self, run_id: str) -> int:
        """How far a run has come: see `Sink.last_seq`. A broken log raises MalformedLog."""
        return self.state(run_id).last_seq

    def state(self, run_id: str) -> RunState:
        """
        What is stored of a run, a torn last line left out.

        Args:
            run_id: The run.

        Returns:
            Its state; zeros for a run that is not known.

        Raises:
            MalformedLog: What is stored is broken.
            SinkUnavailable: It could not be read.
        """
        with self._lock:
            return self._files.state(run_id)

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """
        Replay a run: see `Source.read_from`. A torn last line is left out.

        Every line is checked, also those before the cursor, so that a gap is never passed over. What this object
        has checked once it does not read again for a later cursor, since a log only grows.
        """
        return self._files.read_from(run_id, after)

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their directories' names. A directory that is no run is passed over.

        Raises:
            SinkUnavailable: The root, or the first line of a run with a hashed name, could not be read.
        """
        return self._files.runs()

    def sync(self) -> None:
        """
        Make everything written so far durable: what ``batch`` durability asks for before a position moves.

        Few files are synced one by one. Many are left to one sync of the whole machine, of which the system
        does not say whether the disk refused anything.

        Raises:
            SinkUnavailable: The system could not write.
        """
        with self._lock, system_faults(self.root):
            self._files.sync()

    def _write(self, run_id: str, build: _Build) -> RunState:
        """Open the run's file, bring its state up to date, and store what `build` makes of that state."""
        if not is_unicode(run_id):
            raise Invalid(run_id, ParseError("the run id holds a lone surrogate", path="runId"))
        name = run_directory_name(run_id)
        files = self._files
        with self._lock, system_faults(self.root / name / EVENTS_FILE, run_id):
            fd = files.open(name)
            built: tuple[bytes, RunState] | None = None
            if fd is None:
                # Everything is checked before anything is made: a refusal leaves no trace.
                built = build(_NEW)
                if not built[0]:
                    return built[1]
                fd = files.create(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                state = self._state_for_append(run_id, name, fd)
                if built is None or state != _NEW:
                    built = build(state)
                text, after = built
                if text:
                    files.store(fd, name, text, state.size_bytes, sync=self._sync_each_call)
                files.remember(run_id, after)
            except OSError:
                files.forget(run_id)
                raise
            finally:
                os.close(fd)
            return after

    def _state_for_append(self, run_id: str, name: str, fd: int) -> RunState:
        state, torn_bytes = self._files.scan(run_id, fd)
        if torn_bytes:
            if not self._repair_torn_tail:
                raise MalformedLog(run_id, state.last_seq + 1, "torn", "the last line has no newline")
            self._files.cut(fd, name, state.size_bytes)
        return state


def line_after(event: Event, payload_json: bytes, state: RunState) -> tuple[bytes, RunState]:
    """
    The line of an event, and where its run stands with it.

    Args:
        event: The event.

        payload_json: Its payload's canonical form.

        state: Where the run stood.

    Returns:
        The line with its newline, and the state after it.
    """
    line = compose_line(
        event.type, event.run_id, event.seq, event.ts, payload_json, captured_at=event.captured_at
    )
    finished = event.type == RUN_FINISHED
    return line + b"\n", RunState(event.seq, finished, state.size_bytes + len(line) + 1)


def lines_after(
    run_id: str, drafts: Sequence[CanonicalDraft], state: RunState, clock: Clock
) -> tuple[bytes, RunState]:
    """
    The lines of a batch of one run, and where the run stands with them.

    Args:
        run_id: The run.

        drafts: The drafts, in order.

        state: Where the run stands.

        clock: Gives their ``ts``; it is not read for an empty batch, nor for a refused one.

    Returns:
        The lines, each with its newline, and the state after them.

    Raises:
        Finished: The run is finished, or a draft follows a ``run.finished`` among them.
    """
    finished = check_batch(run_id, state, drafts)
    if not drafts:
        return b"", state
    text = compose_lines(run_id, state.last_seq + 1, clock(), drafts)
    return text, RunState(state.last_seq + len(drafts), finished, state.size_bytes + len(text))
