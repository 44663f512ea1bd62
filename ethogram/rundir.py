"""
Runs as directories of one file each: ``<root>/<encoded run id>/events.jsonl``.

The layout is the one that existing ethogram tools read and write, byte for byte: one canonical event a line.
Files are 0600 and directories 0700, since events carry what an agent said and did.
"""

from __future__ import annotations

import fcntl
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Literal, Self

from ethogram.canonical import compose_line, compose_lines
from ethogram.clock import Clock
from ethogram.envelope import CanonicalDraft, Event, EventDraft, parse_event_text, stamp
from ethogram.json_text import ParseError, is_unicode
from ethogram.runlog import EVENTS_FILE, read_log, run_directory_name, run_id_of, scan_log
from ethogram.sink import (
    Invalid,
    MalformedLog,
    RunState,
    SinkUnavailable,
    check_batch,
    check_next,
    check_open,
    storable_payload,
)
from ethogram.vocabulary import RUN_FINISHED

_NEW = RunState()
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
# Above so many files one sync of the machine is cheaper than one for each of them.
_SYNC_EACH_UP_TO = 128

Build = Callable[[RunState], tuple[bytes, RunState]]


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
        self._clock = clock
        self._sync_each_call = durability == "event"
        self._validate = validate
        self._repair_torn_tail = repair_torn_tail
        self._remembered_runs = remembered_runs
        self._lock = RLock()
        self._states: OrderedDict[str, RunState] = OrderedDict()
        self._root_fd: int | None = None
        self._unsynced: set[str] = set()
        self._unsynced_directories: set[str] = set()

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
            if self._root_fd is not None:
                os.close(self._root_fd)
                self._root_fd = None

    def path(self, run_id: str) -> Path:
        """
        Where a run's events are, or would be.

        Args:
            run_id: The run.

        Returns:
            The path of its ``events.jsonl``.
        """
        return self.root / run_directory_name(run_id) / EVENTS_FILE

    def append(self, run_id: str, draft: EventDraft) -> Event:
        """Stamp and store a draft: see `Sink.append`. A broken log raises MalformedLog."""
        stored: list[Event] = []

        def build(state: RunState) -> tuple[bytes, RunState]:
            check_open(run_id, state)
            payload_json = storable_payload(run_id, draft, validate=self._validate)
            event = stamp(draft, run_id=run_id, seq=state.last_seq + 1, ts=self._clock())
            stored[:] = [event]
            return _stored(event, payload_json, state)

        self._write(run_id, build)
        return stored[0]

    def forward(self, event: Event) -> None:
        """Store a stamped event: see `Sink.forward`. A broken log raises MalformedLog."""

        def build(state: RunState) -> tuple[bytes, RunState]:
            check_open(event.run_id, state)
            payload_json = storable_payload(event.run_id, event, validate=self._validate)
            check_next(event, state)
            return _stored(event, payload_json, state)

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
            finished = check_batch(run_id, state, drafts)
            if not drafts:
                return b"", state
            text = b"".join(compose_lines(run_id, state.last_seq + 1, self._clock(), drafts))
            return text, RunState(state.last_seq + len(drafts), finished, state.size_bytes + len(text))

        return self._write(run_id, build)

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
        path = self.path(run_id)
        with self._lock, _faults(path, run_id):
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                return _NEW
            known = self._states.get(run_id)
            if known is not None and known.size_bytes == size:
                return known
            with path.open("rb") as stream:
                return scan_log(stream, run_id, size).state

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """
        Replay a run: see `Source.read_from`. A torn last line is left out.

        Every line is checked, also those before the cursor, so that a gap is never passed over.
        """
        path = self.path(run_id)
        with _faults(path, run_id):
            try:
                stream = path.open("rb")
            except FileNotFoundError:
                return
            with stream:
                for event, _ in read_log(stream, run_id):
                    if event.seq > after:
                        yield event

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their directories' names. A directory that is no run is passed over.

        Raises:
            SinkUnavailable: The root, or the first line of a run with a hashed name, could not be read.
        """
        with _faults(self.root):
            try:
                names = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
            except FileNotFoundError:
                return
            for name in names:
                path = self.root / name / EVENTS_FILE
                try:
                    if path.stat().st_size == 0:
                        continue
                except FileNotFoundError:
                    continue
                run_id = run_id_of(name)
                if run_id is None:
                    run_id = _first_run_id(path, name)
                if run_id is not None:
                    yield run_id

    def sync(self) -> None:
        """
        Make everything written so far durable: what ``batch`` durability asks for before a position moves.

        Few files are synced one by one. Many are left to one sync of the whole machine, of which the system
        does not say whether the disk refused anything.

        Raises:
            SinkUnavailable: The system could not write.
        """
        with self._lock:
            if len(self._unsynced) > _SYNC_EACH_UP_TO:
                os.sync()
            else:
                for name in self._unsynced:
                    self._sync_path(f"{name}/{EVENTS_FILE}")
                self._sync_directories(self._unsynced_directories)
            self._unsynced.clear()
            self._unsynced_directories.clear()

    def _write(self, run_id: str, build: Build) -> RunState:
        """Open the run's file, bring its state up to date, and store what `build` makes of that state."""
        if not is_unicode(run_id):
            raise Invalid(run_id, ParseError("the run id holds a lone surrogate", path="runId"))
        name = run_directory_name(run_id)
        with self._lock, _faults(self.root / name / EVENTS_FILE, run_id):
            fd = self._open(name)
            built: tuple[bytes, RunState] | None = None
            if fd is None:
                # Everything is checked before anything is made: a refusal leaves no trace.
                built = build(_NEW)
                if not built[0]:
                    return built[1]
                fd = self._create(name)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                state = self._state_for_append(run_id, fd)
                if built is None or state != _NEW:
                    built = build(state)
                text, after = built
                if text:
                    self._store(fd, name, text, state.size_bytes)
                self._remember(run_id, after)
            except OSError:
                self._states.pop(run_id, None)
                raise
            finally:
                os.close(fd)
            return after

    def _open(self, name: str) -> int | None:
        """The run's file, or None where it is not there yet."""
        try:
            return os.open(f"{name}/{EVENTS_FILE}", _APPEND, dir_fd=self._root())
        except FileNotFoundError:
            return None

    def _create(self, name: str) -> int:
        if self._root_fd is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        root_fd = self._root()
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=root_fd)
        fd = os.open(f"{name}/{EVENTS_FILE}", _APPEND | os.O_CREAT, 0o600, dir_fd=root_fd)
        self._unsynced_directories.add(name)
        return fd

    def _root(self) -> int:
        if self._root_fd is None:
            self._root_fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._root_fd

    def _state_for_append(self, run_id: str, fd: int) -> RunState:
        size = os.fstat(fd).st_size
        if size == 0:
            return _NEW
        known = self._states.get(run_id)
        if known is not None and known.size_bytes == size:
            return known
        with open(fd, "rb", closefd=False) as stream:
            state, torn_bytes = scan_log(stream, run_id, size)
        if torn_bytes:
            if not self._repair_torn_tail:
                raise MalformedLog(run_id, state.last_seq + 1, "torn", "the last line has no newline")
            os.ftruncate(fd, state.size_bytes)
        return state

    def _store(self, fd: int, name: str, text: bytes, size_before: int) -> None:
        try:
            write_all(fd, text)
            if self._sync_each_call:
                os.fdatasync(fd)
        except OSError:
            # Half a line must not stay. If this fails too, the torn line is found at the next write.
            with suppress(OSError):
                os.ftruncate(fd, size_before)
                os.fdatasync(fd)
            raise
        if not self._sync_each_call:
            self._unsynced.add(name)
        elif name in self._unsynced_directories:
            self._sync_directories({name})
            self._unsynced_directories.discard(name)

    def _remember(self, run_id: str, state: RunState) -> None:
        self._states[run_id] = state
        self._states.move_to_end(run_id)
        if len(self._states) > self._remembered_runs:
            self._states.popitem(last=False)

    def _sync_directories(self, names: set[str]) -> None:
        for name in names:
            self._sync_path(name)
        if names:
            os.fsync(self._root())

    def _sync_path(self, name: str) -> None:
        with _faults(self.root / name):
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._root())
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def write_all(fd: int, text: bytes) -> None:
    """
    Write the whole of a text, however little the system takes at a time.

    Args:
        fd: An open descriptor.

        text: What to write.

    Raises:
        OSError: The system refused; a part of it may be written.
    """
    written = os.write(fd, text)
    while written < len(text):
        written += os.write(fd, memoryview(text)[written:])


@contextmanager
def _faults(path: Path, run_id: str = "") -> Iterator[None]:
    """Name what the system refuses as a sink's fault."""
    try:
        yield
    except OSError as fault:
        message = os.strerror(fault.errno) if fault.errno else "the system refused"
        raise SinkUnavailable(str(path), fault.errno or 0, message, run_id) from fault


def _stored(event: Event, payload_json: bytes, state: RunState) -> tuple[bytes, RunState]:
    line = compose_line(
        event.type, event.run_id, event.seq, event.ts, payload_json, captured_at=event.captured_at
    )
    finished = event.type == RUN_FINISHED
    return line + b"\n", RunState(event.seq, finished, state.size_bytes + len(line) + 1)


def _first_run_id(path: Path, name: str) -> str | None:
    """The run id in the first line of a run whose directory's name holds a hash."""
    with path.open("rb") as stream:
        line = next(islice(stream, 1), b"")
    try:
        run_id = parse_event_text(line).run_id
    except ParseError:
        return None
    return run_id if run_directory_name(run_id) == name else None
