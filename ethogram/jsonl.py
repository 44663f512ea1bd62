"""
One file of canonical lines, all runs interleaved, whose events become durable together with their caller's
position, whatever is killed when.

As `ethogram.journal`: a commit goes into a journal first, which is synced, and only then to the file, which
is not. At opening, whatever of it the file lacks is written again.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, parse_event_text, stamp
from ethogram.faults import Invalid, LogFaultCause, MalformedLog, SinkLocked, StoreChanged, system_faults
from ethogram.journal_file import Chunk, JournalFile, Record, kept_bytes, whole_bytes
from ethogram.json_text import ParseError, is_unicode
from ethogram.rundir import line_after, lines_after
from ethogram.runfiles import write_all
from ethogram.sink import RunState, check_next, check_open, storable_payload
from ethogram.vocabulary import RUN_FINISHED

_NEW = RunState()


class JournaledLines:
    """
    A checkpointed sink and a source in one file of lines, for one process at a time.

    The lines stand in the order in which they were stored. Where each run stands is kept in memory, about 200
    bytes a run, and the whole file is read at opening; a run is read back by reading the file. A position is
    given back only while the file has the length that the last commit left.

    Args:
        path: The file; it is made, 0600, where it is not there. Its directory must be.

        state_dir: The directory for the journal; it is made. It must outlive the process and be on a file
            system that can rename and sync.

        clock: Gives the ``ts`` of what is stored, one for each commit.

        validate: Whether `append` and `forward` refuse payloads that break a rule.

        journal_bytes: From which length on the journal starts anew.

    Attributes:
        recovered_lines: The events that opening wrote, because a crash had kept the last commits from the
            file.

    Raises:
        SinkLocked: Another process writes to this file.
        MalformedLog: The file holds something else than gapless runs.
        SinkUnavailable: The system refused to read or write.
    """

    def __init__(
        self,
        path: Path,
        state_dir: Path,
        *,
        clock: Clock,
        validate: bool = True,
        journal_bytes: int = 16_777_216,
    ) -> None:
        self.path = path
        self._state_dir = state_dir
        self._clock = clock
        self._validate = validate
        self._lock = RLock()
        self._journal = JournalFile(state_dir)
        self._journal_bytes = journal_bytes
        self._unapplied: Record | None = None
        self._checkpoint: bytes | None = None
        self._size_bytes = 0
        self._states: dict[str, RunState] = {}
        self.recovered_lines: list[bytes] = []
        with system_faults(path):
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._take_lock()
            with system_faults(state_dir):
                state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            with system_faults(path):
                self._recover()
                self._read_states()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        """Use as a context manager: it is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, as `close` does."""
        self.close()

    def close(self) -> None:
        """Sync the file and let go of it. A second call does nothing."""
        with self._lock:
            if self._fd < 0:
                return
            try:
                with system_faults(self.path):
                    os.fdatasync(self._fd)
            finally:
                self._journal.close()
                os.close(self._fd)
                self._fd = -1

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """
        Stamp and store drafts, and the position that goes with them: see `CheckpointedSink.commit`.

        Args:
            batch: Run ids and their drafts, in order; their payloads are not validated. It may be empty.

            checkpoint: Whatever the caller needs to go on after exactly these drafts.

        Raises:
            Finished: A run is finished, or a draft would follow ``run.finished``. Nothing is stored.
            StoreChanged: Another writer changed the file meanwhile. Open the sink again.
            SinkUnavailable: The system refused. All of it or none of it is there at the next opening.
        """
        with self._lock:
            self._finish_last()
            ts = self._clock() if batch else ""
            texts: list[bytes] = []
            states: dict[str, RunState] = {}
            for run_id, group in groupby(batch, key=lambda each: each[0]):
                _check_run_id(run_id)
                drafts = [draft for _, draft in group]
                state = states.get(run_id) or self.state(run_id)
                text, states[run_id] = lines_after(run_id, drafts, state, lambda: ts)
                texts.append(text)
            self._store(b"".join(texts), states, checkpoint)

    def checkpoint(self) -> bytes | None:
        """
        The caller's position as of the last commit.

        Returns:
            What was given to `commit`; None where there is none, or where the file no longer has the length
            that that commit left.
        """
        with self._lock:
            return self._checkpoint

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store one draft: see `Sink.append`. The position stays as it is."""
        with self._lock:
            self._finish_last()
            _check_run_id(run_id)
            state = self.state(run_id)
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            text, after = line_after(event, payload_json, state)
            self._store(text, {run_id: after}, self._checkpoint)
            return event

    def forward(self, event: Event) -> None:
        """Store a stamped event: see `Sink.forward`. The position stays as it is."""
        with self._lock:
            self._finish_last()
            _check_run_id(event.run_id)
            state = self.state(event.run_id)
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            text, after = line_after(event, payload_json, state)
            self._store(text, {event.run_id: after}, self._checkpoint)

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """Stamp and store drafts together: see `BulkSink.append_canonical`. The position stays as it is."""
        with self._lock:
            self._finish_last()
            _check_run_id(run_id)
            text, after = lines_after(run_id, drafts, self.state(run_id), self._clock)
            if text:
                self._store(text, {run_id: after}, self._checkpoint)
            return after

    def last_seq(self, run_id: str) -> int:
        """How far a run has come: see `Sink.last_seq`."""
        return self.state(run_id).last_seq

    def state(self, run_id: str) -> RunState:
        """What is stored of a run: see `CheckpointedSink.state`."""
        with self._lock:
            return self._states.get(run_id, _NEW)

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their first events.
        """
        with self._lock:
            run_ids = list(self._states)
        yield from run_ids

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """Replay a run: see `Source.read_from`. The whole file is read."""
        expected = 1
        with system_faults(self.path, run_id), self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    return
                event = _parsed(line, number)
                if event.run_id != run_id:
                    continue
                if event.seq != expected:
                    message = f"event {event.seq} came where {expected} is next"
                    raise MalformedLog(run_id, number, "gap", message)
                expected += 1
                if event.seq > after:
                    yield event

    def _take_lock(self) -> None:
        """Keep other processes from writing: each knows only its own last seq."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SinkLocked(str(self.path), 0) from None

    def _store(self, text: bytes, states: dict[str, RunState], checkpoint: bytes | None) -> None:
        chunks = (Chunk("", self._size_bytes, text),) if text else ()
        record = Record(chunks, checkpoint, len(chunks), self._size_bytes + len(text))
        with system_faults(self._state_dir):
            if 0 < self._journal.length_bytes < self._journal_bytes:
                self._journal.add(record)
            else:
                # What the old journal holds must be on the disk in the file before it goes.
                os.fdatasync(self._fd)
                self._journal.replace(record)
        self._unapplied = record
        self._states.update(states)
        self._finish_last()

    def _finish_last(self) -> None:
        """Bring the file up to the journal: also after a commit whose second half the system refused."""
        record = self._unapplied
        if record is None:
            return
        with system_faults(self.path):
            for chunk in record.chunks:
                if not self._apply(chunk):
                    raise StoreChanged("")
        self._unapplied = None
        self._checkpoint = record.checkpoint
        self._size_bytes = record.total_bytes

    def _apply(self, chunk: Chunk) -> bool:
        """Write what the file lacks of a commit. False where it is not what the commit was made for."""
        there = kept_bytes(self._fd, chunk)
        if there is None:
            return False
        end = chunk.base_bytes + there
        if os.fstat(self._fd).st_size > end:
            os.ftruncate(self._fd, end)
        try:
            write_all(self._fd, chunk.text[there:])
        except OSError:
            os.ftruncate(self._fd, end)
            raise
        return True

    def _recover(self) -> None:
        """Trust the journal as far as the file bears it out, and finish its last commits."""
        record = self._journal.read()
        if record is not None and all(self._restored(chunk) for chunk in record.chunks):
            self._size_bytes = os.fstat(self._fd).st_size
            if self._size_bytes == record.total_bytes:
                self._checkpoint = record.checkpoint
                return
        size = os.fstat(self._fd).st_size
        self._size_bytes = whole_bytes(self._fd, size)
        if self._size_bytes < size:
            os.ftruncate(self._fd, self._size_bytes)

    def _restored(self, chunk: Chunk) -> bool:
        there = kept_bytes(self._fd, chunk)
        if chunk.run_id or there is None:
            return False
        self.recovered_lines += chunk.text[chunk.text.rfind(b"\n", 0, there) + 1 :].split(b"\n")[:-1]
        return self._apply(chunk)

    def _read_states(self) -> None:
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                event = _parsed(line, number)
                state = self._states.get(event.run_id, _NEW)
                if state.finished:
                    raise MalformedLog(event.run_id, number, "finished", "an event follows run.finished")
                if event.seq != state.last_seq + 1:
                    message = f"event {event.seq} came where {state.last_seq + 1} is next"
                    cause: LogFaultCause = "gap" if event.seq > state.last_seq else "duplicate"
                    raise MalformedLog(event.run_id, number, cause, message)
                self._states[event.run_id] = RunState(
                    event.seq, event.type == RUN_FINISHED, state.size_bytes + len(line)
                )


def _parsed(line: bytes, number: int) -> Event:
    try:
        return parse_event_text(line)
    except ParseError as fault:
        raise MalformedLog("", number, "text", fault.message) from None


def _check_run_id(run_id: str) -> None:
    if not is_unicode(run_id):
        raise Invalid(run_id, ParseError("the run id holds a lone surrogate", path="runId"))
