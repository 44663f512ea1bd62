"""Where a tail writes: a sink with its position, and what it already holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import orjson

from ethogram import CanonicalDraft
from ethogram.clock import Clock
from ethogram.faults import MalformedLog, SinkLocked, SinkUnavailable, StoreChanged
from ethogram.journal import JournaledRuns, stored_checkpoint
from vinaya_bridge.errors import Code, ConfigurationError, SinkError
from vinaya_bridge.index import OutputIndex
from vinaya_bridge.output import OUTPUT_BUSY, OUTPUT_FOREIGN, OUTPUT_UNWRITABLE, Output
from vinaya_bridge.runs import Known, RunFacts

UNKNOWN_SINK = Code(
    "VB404",
    "there is no such sink",
    "A sink is runs (a directory for each run, the default), sqlite:FILE, jsonl:FILE, or - for standard output.",
)
CODES = (UNKNOWN_SINK,)


class Index(Protocol):
    """Answers what a sink holds."""

    def known(self, identities: Iterable[str]) -> Mapping[str, Known]:
        """Return what is held of these lines."""

    def facts(self, main_run: str) -> Mapping[str, RunFacts]:
        """Return the facts of a main run's sittings and dispatches."""

    def told(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return which of these the bridge's own run has told."""

    def open_runs(self) -> int:
        """Return how many runs have no terminal event."""

    def lines(self) -> int:
        """Return how many lines have an event here."""


class TailSink(Protocol):
    """Takes the events of a poll and the position after it, both or neither."""

    @property
    def index(self) -> Index:
        """What it holds."""

    def checkpoint(self) -> bytes | None:
        """Return the position, or None where there is none that can be trusted."""

    def recovered(self) -> list[str]:
        """Return the identities of the lines whose first event was written by opening it, after a crash."""

    def commit(self, batch: Sequence[tuple[str, CanonicalDraft]], checkpoint: bytes) -> None:
        """Make events and position durable."""

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""

    def close(self) -> None:
        """Give back what is held."""


def open_sink(spec: str | None, output: Output, *, clock: Clock) -> TailSink:
    """
    Open a sink.

    Args:
        spec: ``runs`` or None, ``sqlite:FILE``, ``jsonl:FILE``, ``-``.

        output: The output directory; its state belongs to the sink.

        clock: Gives ``ts``.

    Raises:
        ConfigurationError: There is no such sink.

        SinkError: It cannot be opened.
    """
    if spec is None or spec == "runs":
        return RunsSink(output, clock=clock)
    raise ConfigurationError(
        UNKNOWN_SINK,
        "not the name of a sink",
        place="--sink",
        remedy="give runs, sqlite:FILE, jsonl:FILE or -",
    )


def saved_checkpoint(output: Output) -> bytes | None:
    """
    Return the position that lies in an output's state, without opening or trusting it.

    Args:
        output: The output directory.
    """
    return stored_checkpoint(output.state / "sink")


class RunsSink:
    """
    ``OUT/runs``, with a journal in ``OUT/state`` that makes events and position one.

    Args:
        output: The output directory.

        clock: Gives ``ts``.
    """

    def __init__(self, output: Output, *, clock: Clock) -> None:
        with sink_faults(str(output.root)):
            self._runs = JournaledRuns(output.runs, output.state / "sink", clock=clock)
            self._index = OutputIndex(output.state / "identities.sqlite", output.runs)
            self._index.refresh()

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
        with sink_faults(str(self._runs.root)):
            self._runs.commit(batch, checkpoint)
            if batch:
                self._index.refresh({self._runs.path(run_id).parent.name for run_id, _ in batch})

    def last_seq(self, run_id: str) -> int:
        """Return the seq of a run's last event, 0 where it has none."""
        with sink_faults(str(self._runs.root)):
            return self._runs.last_seq(run_id)

    def close(self) -> None:
        """Give back what is held."""
        self._index.close()
        with sink_faults(str(self._runs.root)):
            self._runs.close()


def first_identities(lines: Iterable[bytes]) -> Iterator[str]:
    """
    Yield the identities of the lines whose first event is among these.

    Args:
        lines: Stored events, as canonical text.
    """
    seen: set[str] = set()
    for line in lines:
        payload = orjson.loads(line)["payload"]
        block = payload.get("vinaya") if isinstance(payload, dict) else None
        if isinstance(block, dict) and "part" in block and block["eventId"] not in seen:
            seen.add(block["eventId"])
            yield block["eventId"]


@contextmanager
def sink_faults(place: str) -> Iterator[None]:
    """
    Turn a sink's faults into errors that say what to do.

    Args:
        place: The output.

    Raises:
        SinkError: A sink raised a fault.
    """
    try:
        yield
    except SinkLocked as fault:
        raise SinkError(
            OUTPUT_BUSY,
            fault.message,
            place=place,
            remedy="wait for that process or stop it, or give another directory with -o",
        ) from fault
    except SinkUnavailable as fault:
        raise SinkError(
            OUTPUT_UNWRITABLE,
            fault.message,
            place=place,
            remedy="make room or mend the rights, then run the same command again: it goes on where this one stopped",
        ) from fault
    except (MalformedLog, StoreChanged) as fault:
        raise SinkError(
            OUTPUT_FOREIGN,
            fault.message,
            place=place,
            remedy="move the output away, or give another directory with -o",
        ) from fault
