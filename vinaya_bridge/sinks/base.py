"""What a tail needs of a sink: events and position as one, and what it already holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import orjson

from ethogram import CanonicalDraft
from ethogram.faults import MalformedLog, SinkLocked, SinkUnavailable, StoreChanged, WrongStore
from vinaya_bridge.errors import Code, SinkError
from vinaya_bridge.output import OUTPUT_BUSY, OUTPUT_FOREIGN, OUTPUT_UNWRITABLE
from vinaya_bridge.runs import Known, RunFacts

UNKNOWN_SINK = Code(
    "VB404",
    "there is no such sink",
    "A sink is runs (a directory for each run, the default), sqlite:FILE, jsonl:FILE, or - for standard output.",
)
OTHER_SINK = Code(
    "VB405",
    "the output belongs to another sink",
    "An output directory keeps the lines, the report and the position that go with one sink. Written to another one, "
    "they would speak of events that are not there. Give the sink that the output was begun with, or another "
    "directory with -o.",
)
CODES = (UNKNOWN_SINK, OTHER_SINK)


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
def sink_faults(place: Path | str) -> Iterator[None]:
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
            place=str(place),
            remedy="wait for that process or stop it, or give another directory with -o",
        ) from fault
    except SinkUnavailable as fault:
        raise SinkError(
            OUTPUT_UNWRITABLE,
            fault.message,
            place=str(place),
            remedy="make room or mend the rights, then run the same command again: it goes on where this one stopped",
        ) from fault
    except (MalformedLog, StoreChanged, WrongStore) as fault:
        raise SinkError(
            OUTPUT_FOREIGN,
            fault.message,
            place=str(place),
            remedy="move the output away, or give another directory with -o",
        ) from fault
