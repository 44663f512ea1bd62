"""The SQLite sink: its schema is a contract, readers never wait, and a foreign file is left alone."""

from __future__ import annotations

import errno
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from ethogram.envelope import CanonicalDraft, EventDraft
from ethogram.faults import MalformedLog, SinkUnavailable, WrongStore
from ethogram.rundir import RunDirectory
from ethogram.sqlite import SqliteSink
from ethogram.testing import NOTE, STARTED


def ticking() -> Callable[[], str]:
    ticks = count(1)
    return lambda: f"tick-{next(ticks)}"


def open_sink(folder: Path, identity_path: str = "$.vinaya.eventId") -> SqliteSink:
    return SqliteSink(folder / "events.db", clock=ticking(), identity_path=identity_path)


def rows(folder: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        return connection.execute(query).fetchall()


def test_the_tables_are_what_the_documentation_says(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink:
        sink.append("r", EventDraft("test.note", {"vinaya": {"eventId": "e1"}, "b": 1.0}, "c"))
        sink.append("r", STARTED)
        sink.commit([("q", CanonicalDraft("test.note", b'{"vinaya":{"eventId":"e2"}}'))], b"\0\xff")
    events = "SELECT run_id, seq, type, ts, captured_at, payload, identity FROM events ORDER BY run_id, seq"
    assert rows(tmp_path, events) == [
        ("q", 1, "test.note", "tick-3", None, '{"vinaya":{"eventId":"e2"}}', "e2"),
        ("r", 1, "test.note", "tick-1", "c", '{"b":1,"vinaya":{"eventId":"e1"}}', "e1"),
        ("r", 2, "run.started", "tick-2", None, '{"actor":"a","harness":"h","kind":"loop"}', None),
    ]
    assert rows(tmp_path, "SELECT run_id, last_seq, finished FROM runs ORDER BY run_id") == [
        ("q", 1, 0),
        ("r", 2, 0),
    ]
    assert rows(tmp_path, "SELECT checkpoint FROM position") == [(b"\0\xff",)]
    assert rows(tmp_path, "PRAGMA user_version") == [(1,)]
    plan = rows(tmp_path, "EXPLAIN QUERY PLAN SELECT * FROM events WHERE identity = 'e1'")
    assert "events_by_identity" in str(plan)


def test_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink:
        sink.append("r", NOTE)
        for path in tmp_path.iterdir():
            assert path.stat().st_mode & 0o777 == 0o600


def test_sizes_are_those_of_the_canonical_lines(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink, RunDirectory(tmp_path / "runs", clock=ticking()) as runs:
        for draft in (STARTED, NOTE):
            sink.append("é", draft)
            runs.append("é", draft)
        assert sink.state("é") == runs.state("é")


def test_a_reader_sees_whole_commits_and_never_waits(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink:
        sink.append("r", NOTE)
        with closing(sqlite3.connect(tmp_path / "events.db", timeout=0)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
            sink.append("r", NOTE)
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (1,)
            reader.execute("COMMIT")
            assert reader.execute("SELECT count(*) FROM events").fetchone() == (2,)


def test_two_writers_share_one_sequence(tmp_path: Path) -> None:
    with open_sink(tmp_path) as one, open_sink(tmp_path) as other:
        for seq in (1, 3, 5):
            assert one.append("r", NOTE).seq == seq
            assert other.append("r", NOTE).seq == seq + 1


def test_a_writer_that_waits_too_long_says_so(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink, closing(sqlite3.connect(tmp_path / "events.db")) as other:
        sink._connection.execute("PRAGMA busy_timeout = 10")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SinkUnavailable) as raised:
            sink.append("r", NOTE)
        assert raised.value.error_number == errno.EBUSY
        other.execute("ROLLBACK")
        assert sink.append("r", NOTE).seq == 1


def test_a_killed_writer_leaves_its_last_whole_commit(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, SqliteSink, utc_now\n"
        "sink = SqliteSink(Path(sys.argv[1]), clock=utc_now, identity_path='$.vinaya.eventId')\n"
        "sink.commit([('r', CanonicalDraft('t.x', b'1'))], b'one')\n"
        "with sink._transaction() as connection:\n"
        "    sink._store_drafts(connection, 'r', [CanonicalDraft('t.x', b'1')], 'ts')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "events.db")], check=False)
    with open_sink(tmp_path) as sink:
        assert (sink.checkpoint(), sink.last_seq("r")) == (b"one", 1)


def test_a_file_that_is_not_such_a_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    path.write_bytes(b"a file of somebody's, long enough to be taken for a database" * 20)
    before = path.read_bytes()
    with pytest.raises(WrongStore, match="no sound SQLite database"):
        open_sink(tmp_path)
    assert path.read_bytes() == before
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")
        other.commit()
    with pytest.raises(WrongStore, match="another kind or schema version"):
        open_sink(tmp_path)
    assert rows(tmp_path, "SELECT name FROM sqlite_master") == [("mine",)]


def test_a_later_schema_and_another_identity_path_are_refused(tmp_path: Path) -> None:
    open_sink(tmp_path).close()
    with pytest.raises(WrongStore, match="another identity path"):
        open_sink(tmp_path, "$.other")
    with pytest.raises(WrongStore, match="another identity path"):
        open_sink(tmp_path, "")
    with pytest.raises(WrongStore, match="no JSON path"):
        open_sink(tmp_path, "'); DROP TABLE events; --")
    rows(tmp_path, "PRAGMA user_version = 2")
    with pytest.raises(WrongStore, match="schema version"):
        open_sink(tmp_path)


def test_an_identity_path_with_quotes_is_one_path(tmp_path: Path) -> None:
    path = '$."it\'s {an} id; really"'
    for _ in range(2):
        with open_sink(tmp_path, path) as sink:
            sink.append("r", EventDraft("test.note", {"it's {an} id; really": 7}))
    assert rows(tmp_path, "SELECT identity FROM events") == [("7",), ("7",)]


def test_a_directory_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(SinkUnavailable) as raised:
        SqliteSink(tmp_path / "none" / "events.db", clock=ticking())
    assert raised.value.error_number == errno.ENOENT


@pytest.mark.parametrize(
    ("damage", "after", "cause"),
    [
        ("DELETE FROM events WHERE seq = 2", 0, "gap"),
        ("DELETE FROM events WHERE seq = 2", 3, "gap"),
        ("DELETE FROM events WHERE seq = 4", 0, "gap"),
        ("UPDATE events SET payload = '{' WHERE seq = 3", 0, "text"),
    ],
)
def test_damage_by_another_program_is_reported(tmp_path: Path, damage: str, after: int, cause: str) -> None:
    with open_sink(tmp_path, "") as sink:
        for _ in range(4):
            sink.append("r", NOTE)
        with closing(sqlite3.connect(tmp_path / "events.db")) as other:
            other.execute(damage)
            other.commit()
        with pytest.raises(MalformedLog) as raised:
            list(sink.read_from("r", after))
        assert raised.value.cause == cause


def test_a_long_run_is_read_in_pages(tmp_path: Path) -> None:
    with open_sink(tmp_path) as sink:
        sink.append_canonical("r", [CanonicalDraft("test.note", b"%d" % n) for n in range(2_500)])
        assert [event.payload for event in sink.read_from("r", 999)] == list(range(999, 2_500))


def test_a_closed_sink_says_so(tmp_path: Path) -> None:
    sink = open_sink(tmp_path)
    sink.close()
    with pytest.raises(SinkUnavailable, match="closed"):
        sink.append("r", NOTE)
