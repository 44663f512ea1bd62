"""Where an output's events are stored, and each of them as the line that it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

from ethogram import EthogramError
from ethogram.canonical import compose_line
from ethogram.rundir import run_directory_name
from ethogram.sqlite_source import SqliteSource
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.output import Output
from vinaya_bridge.proof.findings import BROKEN_RUN, NOT_PROVABLE, SINK_GONE, Find
from vinaya_bridge.sinks import SinkSpec

_SELECT = "SELECT run_id, seq, type, ts, captured_at, payload FROM events ORDER BY run_id, seq"


class StoredText(NamedTuple):
    """
    One event as it is stored.

    Args:
        place: Where.

        directory: Of its run, where each run has one; else None.

        text: The canonical line that it should be, without a newline.
    """

    place: str
    directory: str | None
    text: bytes


class Store(Protocol):
    """Where the events of an output lie."""

    def read(self, find: Find) -> Iterator[StoredText]:
        """Yield every event, those of a run in order; tell *find* what cannot be one."""

    def place_of_run(self, run_id: str) -> str:
        """Return where a run lies, for people."""


def store_of(output: Output, spec: SinkSpec) -> Store:
    """
    Return where the events of an output lie.

    Args:
        output: The output directory.

        spec: Its sink.

    Raises:
        ConfigurationError: They went to standard output.
    """
    if spec.kind == "-":
        raise ConfigurationError(
            NOT_PROVABLE,
            "its events went to standard output and cannot be read again",
            place=str(output.root),
            remedy="tail to another directory with the sink runs, sqlite:FILE or jsonl:FILE, and verify that",
        )
    if spec.file is None:
        return RunFolders(output.runs)
    return DatabaseFile(spec.file) if spec.kind == "sqlite" else LinesFile(spec.file)


class RunFolders:
    """
    A directory for each run.

    Args:
        root: ``OUT/runs``; it need not exist.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, find: Find) -> Iterator[StoredText]:
        """Yield every event, run by run."""
        for folder in sorted(self._root.iterdir()) if self._root.is_dir() else ():
            path = folder / "events.jsonl"
            if path.is_file():
                for place, text in _lines_of(path, f"runs/{folder.name}/events.jsonl", find):
                    yield StoredText(place, folder.name, text)

    def place_of_run(self, run_id: str) -> str:
        """Return the run's directory."""
        return f"runs/{run_directory_name(run_id)}"


class LinesFile:
    """
    One file of lines, all runs interleaved.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, find: Find) -> Iterator[StoredText]:
        """Yield every event, as the lines stand."""
        if not self._file.is_file():
            find(SINK_GONE, self._file.name, "the report names this file as the sink, and it is not there")
            return
        for place, text in _lines_of(self._file, self._file.name, find):
            yield StoredText(place, None, text)

    def place_of_run(self, run_id: str) -> str:
        """Return the file and the run."""
        return f"{self._file.name}: {run_directory_name(run_id)}"


class DatabaseFile:
    """
    One SQLite file (`ethogram.sqlite` states its tables); it is opened for reading alone.

    Args:
        file: The file.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, find: Find) -> Iterator[StoredText]:
        """Yield every event, run by run; what the table of the runs says has to agree."""
        if not self._file.is_file():
            find(SINK_GONE, self._file.name, "the report names this file as the sink, and it is not there")
            return
        try:
            SqliteSource(self._file).close()
        except EthogramError as fault:
            find(SINK_GONE, self._file.name, str(fault))
            return
        database = sqlite3.connect(f"file:{quote(str(self._file))}?mode=ro", uri=True, isolation_level=None)
        try:
            yield from self._read(database, find)
        except sqlite3.DatabaseError:
            find(BROKEN_RUN, self._file.name, "its tables cannot be read")
        finally:
            database.close()

    def _read(self, database: sqlite3.Connection, find: Find) -> Iterator[StoredText]:
        ends: dict[str, tuple[int, bool]] = {}
        for run_id, seq, type_name, ts, captured_at, payload in database.execute(_SELECT):
            if not (
                isinstance(run_id, str)
                and isinstance(seq, int)
                and isinstance(type_name, str)
                and isinstance(ts, str)
                and isinstance(captured_at, str | None)
                and isinstance(payload, str)
            ):
                find(BROKEN_RUN, self._file.name, "a row of the table events has a value of another type")
                continue
            ends[run_id] = (seq, type_name == "run.finished")
            text = compose_line(type_name, run_id, seq, ts, payload.encode(), captured_at=captured_at)
            yield StoredText(f"{self.place_of_run(run_id)}:{seq}", None, text)
        rows = database.execute("SELECT run_id, last_seq, finished FROM runs")
        said = {str(run_id): (last_seq, bool(finished)) for run_id, last_seq, finished in rows}
        for run_id in sorted(said.keys() | ends.keys()):
            if said.get(run_id) != ends.get(run_id):
                find(BROKEN_RUN, self.place_of_run(run_id), "the table runs says another end than its events")

    def place_of_run(self, run_id: str) -> str:
        """Return the file and the run."""
        return f"{self._file.name}: {run_directory_name(run_id)}"


def _lines_of(path: Path, name: str, find: Find) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            if not raw.endswith(b"\n"):
                find(BROKEN_RUN, f"{name}:{number}", "the last line is torn")
                return
            yield f"{name}:{number}", raw[:-1]
