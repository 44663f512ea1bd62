"""What an output already holds, by identity: a cache beside the runs that can always be made again from them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import orjson

from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.relay import told_key
from vinaya_bridge.runs import Known, RunFacts

_VERSION = 1
_TAIL_BYTES = 512
_AT_ONCE = 400
_SCHEMA = """
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  directory TEXT NOT NULL UNIQUE,
  size INTEGER NOT NULL,
  tail BLOB NOT NULL,
  finished INTEGER NOT NULL,
  first_captured_at TEXT,
  agent_started INTEGER NOT NULL
) WITHOUT ROWID;
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

T = TypeVar("T")


class OutputIndex:
    """
    Answers what the runs of an output hold, without keeping it in memory.

    It is a cache: a file that is torn, foreign or of another version is made anew, and what it says of a run counts
    only while that run's log has the size and the last bytes that it had.

    Args:
        path: ``OUT/state/identities.sqlite``; made where it does not exist.

        runs: ``OUT/runs``.
    """

    def __init__(self, path: Path, runs: Path) -> None:
        self._path = path
        self._runs = runs
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._database = self._open()

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            if database.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                database.execute("SELECT count(*) FROM runs").fetchone()
                return database
        except sqlite3.DatabaseError:
            pass
        database.close()
        self._path.unlink(missing_ok=True)
        database = sqlite3.connect(self._path, isolation_level=None)
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        database.executescript(_SCHEMA)
        database.execute(f"PRAGMA user_version = {_VERSION}")
        self._path.chmod(0o600)
        return database

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Put a question; where the cache turns out to be broken, make it anew and ask again."""
        try:
            return question(self._database)
        except sqlite3.DatabaseError:
            self._database.close()
            self._path.unlink(missing_ok=True)
            self._database = self._open()
            self.refresh()
            return question(self._database)

    # ------------------------------------------------------------------------------------ catching up

    def refresh(self, directories: Collection[str] | None = None) -> None:
        """
        Catch up with the runs: read what was appended since, and anew what is no longer what it was.

        Args:
            directories: The names of those that changed; None looks at all.
        """
        database = self._database
        query = "SELECT run_id, directory, size, tail FROM runs"
        if directories is None:
            rows = database.execute(query).fetchall()
        else:
            rows = [
                row
                for name in directories
                for row in database.execute(f"{query} WHERE directory = ?", (name,)).fetchall()
            ]
        recorded = {directory: (run_id, size, tail) for run_id, directory, size, tail in rows}
        database.execute("BEGIN")
        for directory in _directories(self._runs) if directories is None else sorted(directories):
            before = recorded.pop(directory, None)
            path = self._runs / directory / "events.jsonl"
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                size = 0
            if before is not None and size == before[1] and _tail(path, size) == before[2]:
                continue
            start = 0
            if before is not None:
                if size > before[1] and _tail(path, before[1]) == before[2]:
                    start = before[1]
                else:
                    self._forget([before[0]])
            if size:
                self._read(directory, path, start)
        self._forget([run_id for run_id, _, _ in recorded.values()])
        database.execute("COMMIT")

    def _forget(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            self._database.execute("DELETE FROM runs WHERE run_id = ?", (run_id,))
            self._database.execute("DELETE FROM parts WHERE run_id = ?", (run_id,))
            if run_id == RELAY_RUN:
                self._database.execute("DELETE FROM told")

    def _read(self, directory: str, path: Path, start: int) -> None:
        with path.open("rb") as stream:
            stream.seek(start)
            end = start
            run_id: str | None = None
            finished = agent_started = False
            first_captured_at: str | None = None
            parts: list[tuple[str, int, str, str]] = []
            told: list[tuple[str, str]] = []
            for raw in stream:
                if not raw.endswith(b"\n"):
                    break
                event = orjson.loads(raw)
                end += len(raw)
                if run_id is None:
                    run_id = event["runId"]
                    first_captured_at = event.get("capturedAt")
                finished = event["type"] == "run.finished"
                agent_started = agent_started or event["type"] == "agent.started"
                payload = event["payload"]
                block = payload.get("vinaya") if isinstance(payload, dict) else None
                if not isinstance(block, dict):
                    continue
                if run_id == RELAY_RUN:
                    if "digest" in block:
                        told.append(told_key(event["type"], payload))
                elif "part" in block:
                    parts.append((block["eventId"], block["part"], run_id, block["digest"]))
        if run_id is None:
            return
        database = self._database
        database.executemany("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?)", parts)
        database.executemany("INSERT OR REPLACE INTO told VALUES (?, ?)", told)
        database.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET"
            " size = excluded.size, tail = excluded.tail, finished = excluded.finished,"
            " agent_started = agent_started OR excluded.agent_started",
            (run_id, directory, end, _tail(path, end), finished, first_captured_at, agent_started),
        )

    # ------------------------------------------------------------------------------------ asking

    def open_runs(self) -> int:
        """Return how many runs have no terminal event, the bridge's own left out."""
        query = "SELECT count(*) FROM runs WHERE NOT finished AND run_id <> ?"
        return int(self._ask(lambda database: database.execute(query, (RELAY_RUN,)).fetchone()[0]))

    def known(self, identities: Iterable[str]) -> dict[str, Known]:
        """
        Return what the output holds of these lines; a line it does not hold has no entry.

        Args:
            identities: As they leave.
        """
        wanted = list(dict.fromkeys(identities))
        found: dict[str, dict[int, str]] = defaultdict(dict)
        digests: dict[str, str] = {}
        closed: dict[str, set[str]] = defaultdict(set)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = (
                "SELECT identity, part, run_id, digest, finished FROM parts JOIN runs USING (run_id)"  # noqa: S608
                f" WHERE identity IN ({marks})"
            )
            for identity, part, run_id, digest, finished in self._ask(
                lambda database, query=query, some=some: database.execute(query, some).fetchall()
            ):
                found[identity][part] = run_id
                digests[identity] = digest
                if finished:
                    closed[identity].add(run_id)
        return {
            identity: Known(digests[identity], parts, frozenset(closed[identity]))
            for identity, parts in found.items()
        }

    def facts(self, main_run: str) -> dict[str, RunFacts]:
        """
        Return the facts of a main run's sittings and dispatches that the output holds.

        Args:
            main_run: Run id of the first sitting.
        """
        query = (
            "SELECT run_id, finished, first_captured_at, agent_started FROM runs WHERE run_id = :main"
            " OR (run_id >= :main || '/' AND run_id < :main || '0')"
            " OR (run_id >= :main || '~' AND run_id < :main || char(127))"
        )
        rows = self._ask(lambda database: database.execute(query, {"main": main_run}).fetchall())
        return {
            run_id: RunFacts(
                finished=bool(finished),
                first_instant_us=None if captured_at is None else instant_us(captured_at),
                agent_started=bool(agent_started),
            )
            for run_id, finished, captured_at, agent_started in rows
        }

    def told(self, keys: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """
        Return which of these keys the bridge's own run has told already.

        Args:
            keys: See `Refusal.key`.
        """
        query = "SELECT 1 FROM told WHERE cause = ? AND digest = ?"
        return frozenset(
            key
            for key in keys
            if self._ask(lambda database, key=key: database.execute(query, key).fetchone()) is not None
        )

    def close(self) -> None:
        """Close the cache."""
        self._database.close()


def _directories(runs: Path) -> Iterator[str]:
    if runs.is_dir():
        yield from sorted(entry.name for entry in runs.iterdir() if entry.is_dir())


def _tail(path: Path, end: int) -> bytes:
    """A fingerprint of the bytes just before *end*."""
    if not end:
        return b""
    with path.open("rb") as stream:
        stream.seek(max(0, end - _TAIL_BYTES))
        return hashlib.sha256(stream.read(min(end, _TAIL_BYTES))).digest()
