"""
The events of a growing store in the order in which they were found, for pages that stay open.

The order has no meaning beyond this process: positions count from the feed's start. Of one run the seq is the
lasting cursor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator
from itertools import islice
from threading import Condition

import orjson
from attrs import define, frozen

from ethogram.envelope import Event
from ethogram.errors import EthogramError
from ethogram.json_text import Json
from ethogram.overview import RunSummary, arrange
from ethogram.page.content import PageRun, page_run, row_of
from ethogram.places import RunStore
from ethogram.vocabulary import RUN_FINISHED

KEPT_MESSAGES = 20_000
"""How many messages are kept for pages that come back; one that was away for longer loads itself anew."""


@frozen
class Message:
    """
    One event as an open page takes it.

    Args:
        position: Its place in the feed, from 1.

        data: JSON in one line: ``row``, the run's ``overview`` after it, and ``root``: the tree's root with what
            all of it used, or null where that is not told anew.
    """

    position: int
    data: bytes


@define
class _Run:
    """How far a run has been read."""

    summary: RunSummary
    cursor: int = 0
    finished: bool = False


class Feed:
    """
    Reads what is added to a store, and wakes who waits for it.

    Args:
        store: The runs. Only `poll` and `page_runs` read them.

        kept_messages: How many messages to keep for readers that come late.
    """

    def __init__(self, store: RunStore, *, kept_messages: int = KEPT_MESSAGES) -> None:
        self._store = store
        self._runs: dict[str, _Run] = {}
        self._messages: deque[Message] = deque(maxlen=kept_messages)
        self._position = 0
        self._changed = Condition()
        self._closed = False

    @property
    def position(self) -> int:
        """How many events have been found."""
        with self._changed:
            return self._position

    def poll(self) -> int:
        """
        Read what is new.

        Returns:
            How many events were found. A run that cannot be read is told in its overview, and tried again.
        """
        with self._changed:
            found = [pair for run_id in self._known() for pair in self._read(run_id)]
            if found:
                self._add(found)
                self._changed.notify_all()
            return len(found)

    def page_runs(self) -> tuple[list[PageRun], int]:
        """
        Everything found so far, for a page.

        Returns:
            The runs, and the position that goes with them.
        """
        with self._changed:
            runs = [
                page_run(run_id, islice(self._store.read_from(run_id), run.cursor))
                for run_id, run in self._runs.items()
            ]
            return runs, self._position

    def after(self, position: int, timeout_seconds: float) -> list[Message] | None:
        """
        Wait for messages.

        Args:
            position: The position of the last message already handled.

            timeout_seconds: How long to wait for one.

        Returns:
            The messages behind the position, none where the time was up; None where they are no longer kept, or
            the position was never reached.
        """
        with self._changed:
            if not self._position - len(self._messages) <= position <= self._position:
                return None
            if position == self._position and not self._closed:
                self._changed.wait(timeout_seconds)
            new = self._position - position
            return list(islice(self._messages, max(0, len(self._messages) - new), None)) if new else []

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether no more will come."""
        return self._closed

    def _known(self) -> list[str]:
        try:
            for run_id in self._store.runs():
                if run_id not in self._runs:
                    self._runs[run_id] = _Run(RunSummary(run_id))
        except EthogramError:
            pass  # what cannot be listed now may be at the next poll
        # Nothing follows the end of a run.
        return [run_id for run_id, run in self._runs.items() if not run.finished]

    def _read(self, run_id: str) -> Iterator[tuple[Event, dict[str, Json]]]:
        run = self._runs[run_id]
        try:
            for event in self._store.read_from(run_id, run.cursor):
                run.summary.take(event)
                run.cursor = event.seq
                run.finished = event.type == RUN_FINISHED
                yield event, run.summary.overview().as_json()
        except EthogramError as fault:
            run.summary.stop(fault)

    def _add(self, found: list[tuple[Event, dict[str, Json]]]) -> None:
        last = {event.run_id: index for index, (event, _) in enumerate(found)}
        roots = self._roots_of(last)
        for index, (event, overview) in enumerate(found):
            self._position += 1
            root = roots.get(event.run_id) if last[event.run_id] == index else None
            data = orjson.dumps({"row": row_of(event), "overview": overview, "root": root})
            self._messages.append(Message(self._position, data))

    def _roots_of(self, run_ids: Container[str]) -> dict[str, Json]:
        """What whole trees used, by each of some runs in them: for the root of a tree stands the figure."""
        roots: dict[str, Json] = {}
        for tree in arrange(run.summary.overview() for run in self._runs.values()):
            inside = [each.run.run_id for _, each in tree.walk() if each.run.run_id in run_ids]
            if inside and tree.children:
                root: Json = {"runId": tree.run.run_id, "withChildren": tree.spending().as_json()}
                roots |= dict.fromkeys(inside, root)
        return roots
