"""Sinks of lines: a directory for each run, or one file for all. A journal in ``OUT/state`` holds the position."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethogram import CanonicalDraft
from ethogram.clock import Clock
from ethogram.journal import JournaledRuns
from ethogram.jsonl import JournaledLines
from vinaya_bridge.index import LogIndex, OneLog, OutputIndex
from vinaya_bridge.output import Output
from vinaya_bridge.sinks.base import Index, first_identities, sink_faults

JOURNAL = "sink"
"""The directory of the journal, in ``OUT/state``."""

_INDEX = "identities.sqlite"


class RunsSink:
    """
    ``OUT/runs``: a directory for each run.

    Args:
        output: The output directory.

        clock: Gives ``ts``.

    Raises:
        SinkError: It cannot be opened.
    """

    def __init__(self, output: Output, *, clock: Clock) -> None:
        with sink_faults(output.root):
            self._runs = JournaledRuns(output.runs, output.state / JOURNAL, clock=clock)
            try:
                self._index = OutputIndex(output.state / _INDEX, output.runs)
                self._index.refresh()
            except BaseException:
                self._runs.close()
                raise

    @property
    def index(self) -> Index:
        """What it holds."""
        return self._index

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none that can be trusted."""
        return self._runs.checkpoint()

    def recovered(self) -> list[str]:
        """Return the identities of the lines whose first event was written by opening it, after a crash."""
        return list(first_identities(self._runs.recovered_lines))

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """Make events and position durable."""
        with sink_faults(self._runs.root):
            self._runs.commit(batch, checkpoint)
            if batch:
                self._index.refresh({self._runs.path(run_id).parent.name for run_id, _ in batch})

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""
        with sink_faults(self._runs.root):
            return self._runs.last_seq(run_id)

    def close(self) -> None:
        """Give back what is held."""
        self._index.close()
        with sink_faults(self._runs.root):
            self._runs.close()


class LinesSink:
    """
    One file of lines, all runs interleaved in the order in which they became durable.

    Args:
        file: The file.

        output: The output directory, for the journal.

        clock: Gives ``ts``.

    Raises:
        SinkError: It cannot be opened.
    """

    def __init__(self, file: Path, output: Output, *, clock: Clock) -> None:
        with sink_faults(file):
            self._lines = JournaledLines(file, output.state / JOURNAL, clock=clock)
            try:
                self._index = LogIndex(output.state / _INDEX, OneLog(file))
                self._index.refresh()
            except BaseException:
                self._lines.close()
                raise

    @property
    def index(self) -> Index:
        """What it holds."""
        return self._index

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none that can be trusted."""
        return self._lines.checkpoint()

    def recovered(self) -> list[str]:
        """Return the identities of the lines whose first event was written by opening it, after a crash."""
        return list(first_identities(self._lines.recovered_lines))

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """Make events and position durable."""
        with sink_faults(self._lines.path):
            self._lines.commit(batch, checkpoint)
            if batch:
                self._index.refresh()

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""
        return self._lines.last_seq(run_id)

    def close(self) -> None:
        """Give back what is held."""
        self._index.close()
        with sink_faults(self._lines.path):
            self._lines.close()
