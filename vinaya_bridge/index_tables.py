"""What an index says of stored events: its tables, what fills them, and the questions that placing asks."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from attrs import Factory, define

from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.relay import told_key
from vinaya_bridge.runs import Known, RunFacts

SCHEMA = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  log TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  first_captured_at TEXT,
  agent_started INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_by_log ON runs (log);
CREATE TABLE parts (
  identity TEXT NOT NULL,
  part INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (identity, part)
) WITHOUT ROWID;
CREATE TABLE told (
  cause TEXT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (cause, digest)
) WITHOUT ROWID;
"""
"""The tables; the file's owner adds its own."""

_AT_ONCE = 400

Row = tuple[Any, ...]


@define
class _RunSummary:
    """What the events of one run say of it."""

    first_captured_at: str | None
    last_seq: int = 0
    finished: bool = False
    agent_started: bool = False


@define
class Summary:
    """What some events, in order, say of their runs and of the lines that they come from."""

    runs: dict[str, _RunSummary] = Factory(dict)
    parts: list[tuple[str, int, str, str]] = Factory(list)
    told: list[tuple[str, str]] = Factory(list)

    def add(self, raw: bytes) -> None:
        """
        Take the next event.

        Args:
            raw: Canonical text, with or without its newline.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is no event of this tool.
        """
        event = orjson.loads(raw)
        run_id, event_type, payload = event["runId"], event["type"], event["payload"]
        run = self.runs.get(run_id)
        if run is None:
            run = self.runs[run_id] = _RunSummary(event.get("capturedAt"))
        run.last_seq = event["seq"]
        run.finished = event_type == "run.finished"
        run.agent_started = run.agent_started or event_type == "agent.started"
        block = payload.get("vinaya") if isinstance(payload, dict) else None
        if not isinstance(block, dict):
            return
        if run_id == RELAY_RUN:
            if "digest" in block:
                self.told.append(told_key(event_type, payload))
        elif "part" in block:
            self.parts.append((block["eventId"], block["part"], run_id, block["digest"]))

    def write(self, database: sqlite3.Connection, log: str) -> None:
        """
        Add to the tables what was taken.

        Args:
            database: In a transaction.

            log: The log that holds these events.
        """
        database.executemany("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", self.parts)
        database.executemany("INSERT OR REPLACE INTO told VALUES (?, ?)", self.told)
        database.executemany(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
            " last_seq = excluded.last_seq, finished = excluded.finished,"
            " agent_started = agent_started OR excluded.agent_started",
            [
                (run_id, log, run.last_seq, run.finished, run.first_captured_at, run.agent_started)
                for run_id, run in self.runs.items()
            ],
        )


def forget(database: sqlite3.Connection, logs: Collection[str]) -> None:
    """
    Take out of the tables what came from some logs.

    Args:
        database: In a transaction.

        logs: The logs, all at once: the largest table is gone through once.
    """
    if not logs:
        return
    database.execute("CREATE TEMP TABLE gone (run_id TEXT PRIMARY KEY) WITHOUT ROWID")
    for log in logs:
        database.execute("INSERT INTO gone SELECT run_id FROM runs WHERE log = ?", (log,))
        database.execute("DELETE FROM runs WHERE log = ?", (log,))
    database.execute("DELETE FROM parts WHERE run_id IN (SELECT run_id FROM gone)")
    if database.execute("SELECT 1 FROM gone WHERE run_id = ?", (RELAY_RUN,)).fetchone():
        database.execute("DELETE FROM told")
    database.execute("DROP TABLE gone")


class TableIndex(ABC):
    """Answers from these tables what is stored of lines and runs."""

    @abstractmethod
    def _all(self, query: str, values: Sequence[object] | Mapping[str, object] = ()) -> list[Row]:
        """Return the rows of a query."""

    def lines(self) -> int:
        """Return how many lines have an event here."""
        return int(self._all("SELECT count(DISTINCT identity) FROM parts")[0][0])

    def open_runs(self) -> int:
        """Return how many runs have no terminal event, the bridge's own left out."""
        query = "SELECT count(*) FROM runs WHERE NOT finished AND run_id <> ?"
        return int(self._all(query, (RELAY_RUN,))[0][0])

    def known(self, identities: Iterable[str]) -> dict[str, Known]:
        """
        Return what is stored of these lines; a line of which nothing is has no entry.

        Args:
            identities: As they leave.
        """
        query = "SELECT identity, part, run_id, digest, finished FROM parts JOIN runs USING (run_id)"
        return known_of(
            row
            for marks, some in in_pieces(identities)
            for row in self._all(f"{query} WHERE identity IN ({marks})", some)
        )

    def facts(self, main_run: str) -> dict[str, RunFacts]:
        """
        Return the facts of a main run's sittings and dispatches that are stored.

        Args:
            main_run: Run id of the first sitting.
        """
        rows = self._all(
            f"SELECT run_id, finished, first_captured_at, agent_started FROM runs WHERE {OF_MAIN_RUN}",  # noqa: S608
            {"main": main_run},
        )
        return facts_of(rows)

    def told(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """
        Return which of these keys the bridge's own run has told already.

        Args:
            keys: See `vinaya_bridge.relay.Refusal.key`.
        """
        query = "SELECT 1 FROM told WHERE cause = ? AND digest = ?"
        return frozenset(key for key in keys if self._all(query, key))


OF_MAIN_RUN = (
    "(run_id = :main OR (run_id >= :main || '/' AND run_id < :main || '0')"
    " OR (run_id >= :main || '~' AND run_id < :main || char(127)))"
)
"""Which runs belong to a main run: an id of the log never holds `/` or `~` here (design, section 4: Names)."""


def in_pieces(values: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """
    Cut values into lists that a query can take.

    Args:
        values: In any order; repeats are left out.

    Yields:
        The parameters' marks, and the values.
    """
    wanted = list(dict.fromkeys(values))
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        yield ",".join("?" * len(some)), some


def known_of(rows: Iterable[Row]) -> dict[str, Known]:
    """
    Put together what is stored of each line.

    Args:
        rows: Identity, part, run, digest, and whether the run is finished.
    """
    parts: dict[str, dict[int, str]] = defaultdict(dict)
    digests: dict[str, str] = {}
    closed: dict[str, set[str]] = defaultdict(set)
    for identity, part, run_id, digest, finished in rows:
        parts[identity][part] = run_id
        digests[identity] = digest
        if finished:
            closed[identity].add(run_id)
    return {
        identity: Known(digests[identity], held, frozenset(closed[identity]))
        for identity, held in parts.items()
    }


def facts_of(rows: Iterable[Row]) -> dict[str, RunFacts]:
    """
    Put together the facts of each run.

    Args:
        rows: Run, whether it is finished, the first event's ``capturedAt``, and whether an agent started.
    """
    return {
        run_id: RunFacts(
            finished=bool(finished),
            first_instant_us=None if captured_at is None else instant_us(captured_at),
            agent_started=bool(agent_started),
        )
        for run_id, finished, captured_at, agent_started in rows
    }
