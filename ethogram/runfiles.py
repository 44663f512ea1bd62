"""
The files beneath a directory of runs: opened, remembered, appended to, synced.

It knows bytes and lengths. Who may append what is for the sinks over it: `ethogram.rundir`,
`ethogram.journal`.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from ethogram.envelope import Event, parse_event_text
from ethogram.faults import system_faults
from ethogram.json_text import ParseError
from ethogram.runlog import EVENTS_FILE, LogScan, read_log, run_directory_name, run_id_of, scan_log
from ethogram.sink import RunState
from ethogram.vocabulary import RUN_FINISHED

_NEW = RunState()
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
# Above so many files one sync of the machine is cheaper than one for each of them.
_SYNC_EACH_UP_TO = 128


class RunFiles:
    """
    A directory of runs, as files. Several threads may read; one that writes holds its owner's lock.

    Args:
        root: The directory. It is made when the first run is.

        remembered_runs: How many runs' states are kept in memory.
    """

    def __init__(self, root: Path, *, remembered_runs: int = 16_384) -> None:
        self.root = root
        self._remembered_runs = remembered_runs
        self._states: OrderedDict[str, RunState] = OrderedDict()
        self._states_lock = Lock()
        self._root_fd: int | None = None
        self._unsynced: set[str] = set()
        self._unsynced_directories: set[str] = set()
        self._anything_unsynced = False

    def __enter__(self) -> Self:
        """Use as a context manager: it is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, as `close` does."""
        self.close()

    def close(self) -> None:
        """Let go of the root directory; nothing is synced."""
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

    def open(self, name: str) -> int | None:
        """
        Open a run's file to append to it.

        Args:
            name: The name of the run's directory.

        Returns:
            A descriptor, or None where there is no such file.

        Raises:
            OSError: The system refused.
        """
        try:
            return os.open(f"{name}/{EVENTS_FILE}", _APPEND, dir_fd=self._root())
        except FileNotFoundError:
            return None

    def create(self, name: str) -> int:
        """
        Open a run's file to append to it, and make it where it is not there.

        Args:
            name: The name of the run's directory.

        Returns:
            A descriptor.

        Raises:
            OSError: The system refused.
        """
        self._make_root()
        root_fd = self._root()
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=root_fd)
        fd = os.open(f"{name}/{EVENTS_FILE}", _APPEND | os.O_CREAT, 0o600, dir_fd=root_fd)
        self._unsynced_directories.add(name)
        return fd

    def adopt(self, folder: Path) -> None:
        """
        Take over the runs of another directory, none of which may be here.

        Args:
            folder: A directory of runs on the same file system; empty afterwards.

        Raises:
            OSError: The system refused, or a run is here already; those before it are taken over.
        """
        self._make_root()
        root_fd = self._root()
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            os.rename(folder / name, name, dst_dir_fd=root_fd)
        if names:
            self._anything_unsynced = True

    def scan(self, run_id: str, fd: int) -> LogScan:
        """
        Say where an open run stands: from memory while its length is what it was, else from its lines.

        Args:
            run_id: The run.

            fd: Its descriptor.

        Returns:
            The state, and how much is torn.

        Raises:
            MalformedLog: A line is broken.
            OSError: The system refused.
        """
        size = os.fstat(fd).st_size
        known = self._states.get(run_id) if size else _NEW
        if known is not None and known.size_bytes == size:
            return LogScan(known, 0)
        with open(fd, "rb", closefd=False) as stream:
            stream.seek(0)
            return scan_log(stream, run_id, size)

    def remember(self, run_id: str, state: RunState) -> None:
        """
        Keep a run's state, so that its file need not be read at the next write.

        Args:
            run_id: The run.

            state: Its state; its size must be the file's.
        """
        # Readers in other threads remember too.
        with self._states_lock:
            self._states.pop(run_id, None)
            self._states[run_id] = state
            if len(self._states) > self._remembered_runs:
                self._states.popitem(last=False)

    def forget(self, run_id: str) -> None:
        """
        Drop what is remembered of a run: its file may hold something else.

        Args:
            run_id: The run.
        """
        self._states.pop(run_id, None)

    def store(self, fd: int, name: str, text: bytes, size_before: int, *, sync: bool) -> None:
        """
        Append whole lines; on a failure the file is as long as before.

        Args:
            fd: The run's descriptor.

            name: The name of the run's directory.

            text: The lines, each with its newline.

            size_before: The file's length in bytes.

            sync: Whether to return only when they are on the disk.

        Raises:
            OSError: The system refused.
        """
        try:
            write_all(fd, text)
            if sync:
                os.fdatasync(fd)
        except OSError:
            # Half a line must not stay. If this fails too, the torn line is found at the next write.
            with suppress(OSError):
                os.ftruncate(fd, size_before)
                os.fdatasync(fd)
            raise
        if not sync:
            self._unsynced.add(name)
        elif name in self._unsynced_directories:
            self._sync_directories({name})
            self._unsynced_directories.discard(name)

    def cut(self, fd: int, name: str, size_bytes: int) -> None:
        """
        Cut a run's file: a torn last line goes.

        Args:
            fd: The run's descriptor.

            name: The name of the run's directory.

            size_bytes: The length to keep.

        Raises:
            OSError: The system refused.
        """
        os.ftruncate(fd, size_bytes)
        self._unsynced.add(name)

    def doubt(self, names: Iterable[str] | None) -> None:
        """
        Take runs for not yet synced: a process that is gone may have written to them.

        Args:
            names: The names of their directories; None for any run.
        """
        if names is None:
            self._anything_unsynced = True
        else:
            self._unsynced.update(names)

    def sync(self) -> None:
        """
        Make everything stored so far durable.

        Few files are synced one by one. Many are left to one sync of the whole machine, of which the system
        does not say whether the disk refused anything.

        Raises:
            OSError: The system could not write.
        """
        if self._anything_unsynced or len(self._unsynced) > _SYNC_EACH_UP_TO:
            os.sync()
        else:
            for name in self._unsynced:
                self._sync_path(f"{name}/{EVENTS_FILE}")
            self._sync_directories(self._unsynced_directories)
        self._anything_unsynced = False
        self._unsynced.clear()
        self._unsynced_directories.clear()

    def state(self, run_id: str) -> RunState:
        """
        Where a run stands, read without a descriptor of one's own; a torn last line is left out.

        Args:
            run_id: The run.

        Returns:
            Its state; zeros for a run that is not known.

        Raises:
            MalformedLog: A line is broken.
            SinkUnavailable: It could not be read.
        """
        path = self.path(run_id)
        with system_faults(path, run_id):
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
        Replay a run; every line is checked, also those before the cursor, unless it was checked before.

        Args:
            run_id: The run.

            after: The seq of the last event already handled, 0 for all.

        Yields:
            Events in order of seq; a torn last line is left out.

        Raises:
            MalformedLog: A line is broken.
            SinkUnavailable: It could not be read.
        """
        path = self.path(run_id)
        with system_faults(path, run_id):
            try:
                stream = path.open("rb")
            except FileNotFoundError:
                return
            with stream:
                known = self._states.get(run_id, _NEW)
                # What was read before is not read again for a cursor beyond it: a log only grows.
                if not known.last_seq <= after or os.fstat(stream.fileno()).st_size < known.size_bytes:
                    known = _NEW
                stream.seek(known.size_bytes)
                last_seq, finished, size_bytes = known
                for event, length in read_log(stream, run_id, known):
                    last_seq, finished = event.seq, event.type == RUN_FINISHED
                    size_bytes += length
                    if event.seq > after:
                        yield event
                if last_seq > known.last_seq:
                    self.remember(run_id, RunState(last_seq, finished, size_bytes))

    def sizes(self) -> Iterator[tuple[str, int]]:
        """
        The runs that have events, by directory.

        Yields:
            The name of each run's directory and the length of its log in bytes, in the order of the names.

        Raises:
            OSError: The root could not be read.
        """
        try:
            with os.scandir(self.root) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except FileNotFoundError:
            return
        for name in names:
            with suppress(FileNotFoundError):
                size = (self.root / name / EVENTS_FILE).stat().st_size
                if size:
                    yield name, size

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their directories' names. A directory that is no run is passed over.

        Raises:
            SinkUnavailable: The root, or the first line of a run with a hashed name, could not be read.
        """
        with system_faults(self.root):
            for name, _ in self.sizes():
                run_id = self.run_id(name)
                if run_id is not None:
                    yield run_id

    def run_id(self, name: str) -> str | None:
        """
        The run that a directory is of.

        Args:
            name: The directory's name.

        Returns:
            Its id; None where the directory is not named as that of a run.

        Raises:
            OSError: The name holds a hash, and the first line could not be read.
        """
        run_id = run_id_of(name)
        return _first_run_id(self.root / name / EVENTS_FILE, name) if run_id is None else run_id

    def _make_root(self) -> None:
        if self._root_fd is None:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _root(self) -> int:
        if self._root_fd is None:
            self._root_fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._root_fd

    def _sync_directories(self, names: set[str]) -> None:
        for name in names:
            self._sync_path(name)
        if names:
            os.fsync(self._root())

    def _sync_path(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._root())
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


def _first_run_id(path: Path, name: str) -> str | None:
    """The run id in the first line of a run whose directory's name holds a hash."""
    with path.open("rb") as stream:
        line = next(islice(stream, 1), b"")
    try:
        run_id = parse_event_text(line).run_id
    except ParseError:
        return None
    return run_id if run_directory_name(run_id) == name else None
