"""Where runs are read from, as a person names it: a directory, a SQLite file, a file of lines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ethogram.envelope import Event, parse_event_text
from ethogram.errors import EthogramError
from ethogram.faults import MalformedLog, system_faults
from ethogram.json_text import ParseError
from ethogram.runfiles import RunFiles
from ethogram.runlog import EVENTS_FILE
from ethogram.sqlite_source import SqliteSource

_SQLITE = "sqlite:"
_LINES = "jsonl:"
_STANDARD_INPUT = "-"
_SQLITE_MAGIC = b"SQLite format 3\0"


class RunStore(Protocol):
    """A source that can list its runs, and is closed in the end."""

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in any stable order.
        """

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """Replay a run: see `ethogram.sink.Source.read_from`."""

    def close(self) -> None:
        """Let go of files."""

    def __enter__(self) -> Self:
        """Use as a context manager: it is closed at the end."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close, as `close` does."""


class NoSuchPlace(EthogramError):  # noqa: N818  what it says
    """
    Raised when a place holds no runs that could be read.

    Args:
        place: As it was given.

        message: What is wrong with it.
    """

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place


class NoSuchRun(EthogramError):  # noqa: N818  what it says
    """
    Raised when what a person asks for is no run, or may be several.

    Args:
        place: Where the runs are.

        fitting: The ids that fit.

        known: How many runs there are.
    """

    def __init__(self, place: str, fitting: list[str], known: int) -> None:
        super().__init__(
            f"{place}: {len(fitting)} of {known} runs fit; name one" if fitting else f"{place}: no such run"
        )
        self.fitting = fitting


class LineSource:
    """
    Events of any number of runs out of lines, held in memory.

    The lines may be a part of what happened: events are put in the order of their seq, gaps stay, and of a
    repeated seq the first stays. A last line without a newline that is no event is left out: it is still being
    written.

    Args:
        lines: One event each, with a newline or without.

        name: What a fault calls them.

    Raises:
        MalformedLog: A line is no event.
    """

    def __init__(self, lines: Iterable[bytes], name: str) -> None:
        self._runs: dict[str, dict[int, Event]] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                event = parse_event_text(line)
            except ParseError as fault:
                if not line.endswith(b"\n"):
                    break
                raise MalformedLog(name, number, "text", fault.message) from None
            self._runs.setdefault(event.run_id, {}).setdefault(event.seq, event)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is open."""

    def close(self) -> None:
        """Nothing is open."""

    def runs(self) -> Iterator[str]:
        """
        The runs that have events.

        Yields:
            Run ids, in the order of their first line.
        """
        yield from self._runs

    def read_from(self, run_id: str, after: int = 0) -> Iterator[Event]:
        """
        Give a run's events.

        Args:
            run_id: The run.

            after: The seq of the last event already handled, 0 for all.

        Yields:
            Events in order of seq.
        """
        events = self._runs.get(run_id, {})
        yield from (events[seq] for seq in sorted(events) if seq > after)


def open_runs(place: str) -> RunStore:
    """
    Open a place for reading. Nothing in it is changed.

    Args:
        place: A directory of runs, or one whose ``runs`` is; the directory of one run; ``sqlite:FILE``;
            ``jsonl:FILE``; a file of either kind without its prefix; ``-`` for lines on standard input.

    Returns:
        The runs, to be closed by the caller.

    Raises:
        NoSuchPlace: There is nothing of that name, or it is of another kind.
        MalformedLog: A file of lines holds one that is no event.
        WrongStore: A SQLite file holds something else.
        SinkUnavailable: It could not be read.
    """
    if place == _STANDARD_INPUT:
        return LineSource(sys.stdin.buffer, "standard input")
    if place.startswith(_SQLITE):
        return SqliteSource(_file(place, place.removeprefix(_SQLITE)))
    if place.startswith(_LINES):
        return _lines(_file(place, place.removeprefix(_LINES)))
    path = Path(place)
    if (path / EVENTS_FILE).is_file():
        return _lines(path / EVENTS_FILE)
    if path.is_dir():
        return RunFiles(root_of(path))
    with system_faults(_file(place, place)), path.open("rb") as stream:
        is_database = stream.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
    return SqliteSource(path) if is_database else _lines(path)


def open_growing_runs(place: str) -> RunStore:
    """
    Open a place whose runs are still being written, so that later reads see what was added since.

    Args:
        place: As for `open_runs`, but for files of lines, which are read once.

    Returns:
        The runs, to be closed by the caller.

    Raises:
        NoSuchPlace: As for `open_runs`; also for a file of lines.
        WrongStore: A SQLite file holds something else.
        SinkUnavailable: It could not be read.
    """
    path = Path(place)
    if (path / EVENTS_FILE).is_file():
        return RunFiles(path.parent)
    store = RunFiles(root_of(path)) if path.is_dir() else open_runs(place)
    if isinstance(store, LineSource):
        raise NoSuchPlace(place, "only a directory of runs or a SQLite file can be followed")
    return store


def choose_run(store: RunStore, place: str, wanted: str | None) -> str:
    """
    Find the run that a person means.

    Args:
        store: The runs.

        place: What they are called, for the fault.

        wanted: A run's id, or a part of it that no other run has; None for the only run there is.

    Returns:
        The id.

    Raises:
        NoSuchRun: No run, or more than one, fits.
    """
    known = list(store.runs())
    if wanted is None:
        fitting = known
    else:
        fitting = [run_id for run_id in known if run_id == wanted] or [
            run_id for run_id in known if wanted in run_id
        ]
    if len(fitting) == 1:
        return fitting[0]
    raise NoSuchRun(place, fitting, len(known))


def root_of(directory: Path) -> Path:
    """
    The directory that holds the runs: tools that keep more than runs keep these in ``runs``.

    Args:
        directory: What a person names.

    Returns:
        The directory itself, or its ``runs`` where it has one and no run of its own.
    """
    inside = directory / "runs"
    if inside.is_dir() and not any(directory.glob(f"*/{EVENTS_FILE}")):
        return inside
    return directory


def _file(place: str, name: str) -> Path:
    path = Path(name)
    if not path.exists():
        raise NoSuchPlace(place, "there is no such file or directory")
    if path.is_dir():
        raise NoSuchPlace(place, "it is a directory, and a file is asked for")
    return path


def _lines(path: Path) -> LineSource:
    with system_faults(path), path.open("rb") as stream:
        return LineSource(stream, str(path))
