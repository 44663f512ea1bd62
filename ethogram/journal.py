"""
A directory of runs whose events become durable together with their caller's position, whatever is killed
when.

How: the lines of a commit and the position go into a journal first, which is synced, and only then to the
    runs,
which are not. When the journal has grown, the runs are synced and it starts anew. At opening, whatever of
it the runs lack is written again. So a commit is there wholly or not at all, for one sync, and the runs are
at every moment plain files that any ethogram tool reads.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Self

from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, stamp
from ethogram.faults import Invalid, SinkLocked, StoreChanged, system_faults
from ethogram.journal_file import Chunk, JournalFile, Record, kept_bytes, whole_bytes
from ethogram.json_text import ParseError, is_unicode
from ethogram.rundir import line_after, lines_after
from ethogram.runfiles import RunFiles
from ethogram.runlog import run_directory_name
from ethogram.sink import RunState, check_next, check_open, storable_payload

_LOCK = "runs.lock"
_NEW = RunState()


class JournaledRuns:
    """
    A checkpointed sink over the layout of `ethogram.rundir.RunDirectory`, for one process at a time.

    A position is given back only while the stored events are those it was given with: the number of runs
    and the length of all logs must be what the last commit left. An edit that keeps every length is not
    noticed.

    Args:
        root: The directory that holds the runs. It is made when the first event is stored.

        state_dir: The directory for the journal and the lock; it is made. It must outlive the process and
            be on a file system that can rename and sync.

        clock: Gives the ``ts`` of what is stored, one for each commit.

        validate: Whether `append` and `forward` refuse payloads that break a rule.

        remembered_runs: How many runs' states are kept in memory; a run beyond them is read again when it is
            next written to.

    Attributes:
        recovered_lines: The events that opening wrote, because a crash had kept the last commit from the
            runs.

    Raises:
        SinkLocked: Another process writes here.
        SinkUnavailable: The system refused to read or write.
    """

    def __init__(
        self,
        root: Path,
        state_dir: Path,
        *,
        clock: Clock,
        validate: bool = True,
        remembered_runs: int = 16_384,
        journal_bytes: int = 16_777_216,
    ) -> None:
        self.root = root
        self._state_dir = state_dir
        self._clock = clock
        self._validate = validate
        self._lock = RLock()
        self._files = RunFiles(root, remembered_runs=remembered_runs)
        self._journal = JournalFile(state_dir)
        self._journal_bytes = journal_bytes
        self._unapplied: Record | None = None
        self._checkpoint: bytes | None = None
        self.recovered_lines: list[bytes] = []
        with system_faults(state_dir):
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = _locked(state_dir / _LOCK)
            try:
                self._recover()
            except BaseException:
                os.close(self._lock_fd)
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
        """Sync the runs that were written to, and let go of the lock. A second call does nothing."""
        with self._lock:
            if self._lock_fd < 0:
                return
            try:
                if self._journal.length_bytes:
                    with system_faults(self.root):
                        self._files.sync()
            finally:
                self._files.close()
                self._journal.close()
                os.close(self._lock_fd)
                self._lock_fd = -1

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """
        Stamp and store drafts, and the position that goes with them: see `CheckpointedSink.commit`.

        Args:
            batch: Run ids and their drafts, in order; their payloads are not validated. It may be empty.

            checkpoint: Whatever the caller needs to go on after exactly these drafts.

        Raises:
            Finished: A run is finished, or a draft would follow ``run.finished``. Nothing is stored.
                MalformedLog: What is stored of a run is broken. Nothing is stored. StoreChanged: Another
                writer changed a run meanwhile. Open the sink again. SinkUnavailable: The system refused.
                All of it or none of it is there at the next opening, and also at the next call that works.
        """
        drafts_by_run: dict[str, list[CanonicalDraft]] = {}
        for run_id, draft in batch:
            drafts_by_run.setdefault(run_id, []).append(draft)
        with self._lock, system_faults(self._state_dir):
            self._finish_last()
            ts = self._clock() if batch else ""
            chunks: list[Chunk] = []
            states: dict[str, RunState] = {}
            for run_id, drafts in drafts_by_run.items():
                state = self._state_for_append(run_id)
                text, states[run_id] = lines_after(run_id, drafts, state, lambda: ts)
                chunks.append(Chunk(run_id, state.size_bytes, text))
            self._store(tuple(chunks), states, checkpoint)

    def checkpoint(self) -> bytes | None:
        """
        The caller's position as of the last commit.

        Returns:
            What was given to `commit`; None where there is none, or where the runs are no longer what that
            commit left: shorter, longer, fewer or more.
        """
        with self._lock:
            return self._checkpoint

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store one draft: see `Sink.append`. The position stays as it is."""
        with self._lock, system_faults(self._state_dir, run_id):
            self._finish_last()
            state = self._state_for_append(run_id)
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            self._store_event(event, payload_json, state)
            return event

    def forward(self, event: Event) -> None:
        """Store a stamped event: see `Sink.forward`. The position stays as it is."""
        with self._lock, system_faults(self._state_dir, event.run_id):
            self._finish_last()
            state = self._state_for_append(event.run_id)
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            self._store_event(event, payload_json, state)

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        """Stamp and store drafts together: see `BulkSink.append_canonical`. The position stays as it is."""
        with self._lock, system_faults(self._state_dir, run_id):
            self._finish_last()
            state = self._state_for_append(run_id)
            text, after = lines_after(run_id, drafts, state, self._clock)
            if text:
                self._store((Chunk(run_id, state.size_bytes, text),), {run_id: after}, self._checkpoint)
            return after

    def last_seq(self, run_id: str) -> int:
        """How far a run has come: see `Sink.last_seq`. A broken log raises MalformedLog."""
        return self.state(run_id).last_seq

    def state(self, run_id: str) -> RunState:
        """What is stored of a run: see `CheckpointedSink.state`. A broken log raises MalformedLog."""
        with self._lock:
            return self._files.state(run_id)

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """Replay a run: see `Source.read_from`."""
        return self._files.read_from(run_id, after)

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their directories' names.
        """
        return self._files.runs()

    def path(self, run_id: str) -> Path:
        """
        Where a run's events are, or would be.

        Args:
            run_id: The run.

        Returns:
            The path of its ``events.jsonl``.
        """
        return self._files.path(run_id)

    def _store_event(self, event: Event, payload_json: bytes, state: RunState) -> None:
        text, after = line_after(event, payload_json, state)
        chunk = Chunk(event.run_id, state.size_bytes, text)
        self._store((chunk,), {event.run_id: after}, self._checkpoint)

    def _store(
        self, chunks: tuple[Chunk, ...], states: dict[str, RunState], checkpoint: bytes | None
    ) -> None:
        record = Record(
            chunks,
            checkpoint,
            self._run_count + sum(chunk.base_bytes == 0 for chunk in chunks),
            self._total_bytes + sum(len(chunk.text) for chunk in chunks),
        )
        if 0 < self._journal.length_bytes < self._journal_bytes:
            self._journal.add(record)
        else:
            # What the old journal holds must be on the disk in the runs before it goes.
            with system_faults(self.root):
                self._files.sync()
            self._journal.replace(record)
        self._unapplied = record
        self._finish_last()
        for run_id, state in states.items():
            self._files.remember(run_id, state)

    def _finish_last(self) -> None:
        """Bring the runs up to the journal: also after a commit whose second half the system refused."""
        record = self._unapplied
        if record is None:
            return
        for chunk in record.chunks:
            with system_faults(self.path(chunk.run_id), chunk.run_id):
                if not self._apply(chunk):
                    raise StoreChanged(chunk.run_id)
        self._unapplied = None
        self._checkpoint = record.checkpoint
        self._run_count, self._total_bytes = record.run_count, record.total_bytes

    def _recover(self) -> None:
        """Trust the journal as far as the runs bear it out, and finish its last commits."""
        record = self._journal.read()
        if record is not None and all(self._bears_out(chunk) for chunk in record.chunks):
            for chunk in record.chunks:
                self.recovered_lines += self._lacking(chunk)
                self._apply(chunk)
            # They may be whole and yet in memory alone: the next journal must not replace this one before that is so.
            self._files.doubt(run_directory_name(chunk.run_id) for chunk in record.chunks)
            self._measure()
            if (self._run_count, self._total_bytes) == (record.run_count, record.total_bytes):
                self._checkpoint = record.checkpoint
                return
        self._cut_torn_lines()
        self._files.doubt(None)
        self._measure()

    def _measure(self) -> None:
        sizes = [size for _, size in self._files.sizes()]
        self._run_count, self._total_bytes = len(sizes), sum(sizes)

    def _bears_out(self, chunk: Chunk) -> bool:
        """Whether a run's file can be what a commit left, or what it left unfinished. Nothing is changed."""
        name = run_directory_name(chunk.run_id)
        fd = self._files.open(name)
        if fd is None:
            return chunk.base_bytes == 0
        try:
            return kept_bytes(fd, chunk) is not None
        finally:
            os.close(fd)

    def _lacking(self, chunk: Chunk) -> list[bytes]:
        """The lines of a commit that a run does not hold whole."""
        fd = self._files.open(run_directory_name(chunk.run_id))
        if fd is None:
            return chunk.text.split(b"\n")[:-1]
        try:
            there = kept_bytes(fd, chunk) or 0
        finally:
            os.close(fd)
        return chunk.text[chunk.text.rfind(b"\n", 0, there) + 1 :].split(b"\n")[:-1]

    def _apply(self, chunk: Chunk) -> bool:
        """Write what a run lacks of a commit. False where its file is not what the commit was made for."""
        name = run_directory_name(chunk.run_id)
        files = self._files
        fd = files.open(name) if chunk.base_bytes else files.create(name)
        if fd is None:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            there = kept_bytes(fd, chunk)
            if there is None:
                return False
            if there < len(chunk.text):
                end = chunk.base_bytes + there
                if os.fstat(fd).st_size > end:
                    files.cut(fd, name, end)
                files.store(fd, name, chunk.text[there:], end, sync=False)
        except OSError:
            files.forget(chunk.run_id)
            raise
        finally:
            os.close(fd)
        return True

    def _state_for_append(self, run_id: str) -> RunState:
        if not is_unicode(run_id):
            raise Invalid(run_id, ParseError("the run id holds a lone surrogate", path="runId"))
        name = run_directory_name(run_id)
        fd = self._files.open(name)
        if fd is None:
            return _NEW
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            state, torn_bytes = self._files.scan(run_id, fd)
            if torn_bytes:
                self._files.cut(fd, name, state.size_bytes)
                self._total_bytes -= torn_bytes
                self._run_count -= state.size_bytes == 0
            return state
        finally:
            os.close(fd)

    def _cut_torn_lines(self) -> None:
        for name, size in list(self._files.sizes()):
            fd = self._files.create(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                whole = whole_bytes(fd, size)
                if whole < size:
                    self._files.cut(fd, name, whole)
            finally:
                os.close(fd)


def stored_checkpoint(state_dir: Path) -> bytes | None:
    """
    Give the position that lies in a state directory, without opening the sink or holding it against the runs.

    Args:
        state_dir: As it was given to `JournaledRuns`.

    Returns:
        The position of the last commit; None where there is none that can be read.

    Raises:
        SinkUnavailable: The system refused to read.
    """
    with system_faults(state_dir):
        record = JournalFile(state_dir).read()
    return None if record is None else record.checkpoint


def _locked(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(fd, 20, 0).strip()
        os.close(fd)
        raise SinkLocked(str(path), int(holder) if holder.isdigit() else 0) from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd
