"""The journal: events and position together, whatever is killed when and whatever is put back."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ethogram.envelope import CanonicalDraft
from ethogram.faults import Finished, MalformedLog, SinkLocked, StoreChanged
from ethogram.journal import JournaledRuns, stored_checkpoint
from ethogram.rundir import RunDirectory
from ethogram.runlog import run_directory_name
from ethogram.testing import NOTE

NOTES = [CanonicalDraft("test.note", b'{"n":%d}' % number) for number in range(3)]
FIRST = [("a", NOTES[0]), ("b", NOTES[0])]
SECOND = [("a", NOTES[1]), ("c", NOTES[1]), ("a", NOTES[2])]


def open_runs(folder: Path, journal_bytes: int = 1) -> JournaledRuns:
    """By default a journal of one commit: each replaces the one before."""
    ticks = count(1)
    return JournaledRuns(
        folder / "runs",
        folder / "state",
        clock=lambda: f"tick-{next(ticks)}",
        journal_bytes=journal_bytes,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted((folder / "runs").glob("*/events.jsonl"))}


def put(folder: Path, files: dict[str, bytes]) -> None:
    shutil.rmtree(folder / "runs", ignore_errors=True)
    for name, text in files.items():
        (folder / "runs" / name).mkdir(parents=True)
        (folder / "runs" / name / "events.jsonl").write_bytes(text)


def journal(folder: Path) -> Path:
    return folder / "state" / "runs.journal"


@pytest.fixture
def committed(tmp_path: Path) -> tuple[Path, dict[str, bytes], dict[str, bytes], bytes]:
    """A folder after two commits, what its runs held before the second and after it, and the first journal."""
    with open_runs(tmp_path) as runs:
        runs.commit(FIRST, b"one")
        before, first = contents(tmp_path), journal(tmp_path).read_bytes()
        runs.commit(SECOND, b"two")
    return tmp_path, before, contents(tmp_path), first


def test_a_commit_cut_anywhere_between_its_journal_and_its_last_byte_is_finished_at_opening(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, before, after, _ = committed
    for cut_a in range(len(before["a"]), len(after["a"]) + 1, 3):
        put(folder, before | {"a": after["a"][:cut_a]})
        with open_runs(folder) as runs:
            assert runs.checkpoint() == b"two"
        assert contents(folder) == after
    for cut_c in range(0, len(after["c"]) + 1, 5):
        put(folder, after | {"c": after["c"][:cut_c]})
        with open_runs(folder) as runs:
            assert runs.checkpoint() == b"two"
            assert runs.last_seq("c") == 1
        assert contents(folder) == after


def test_pages_that_a_crash_left_as_zeros_are_written_again(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, before, after, _ = committed
    kept = len(before["a"]) + 5
    put(folder, after | {"a": after["a"][:kept] + b"\0" * (len(after["a"]) - kept)})
    with open_runs(folder) as runs:
        assert runs.checkpoint() == b"two"
    assert contents(folder) == after


def test_a_commit_whose_journal_never_got_its_name_is_not_there(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, before, _, first = committed
    second = journal(folder).read_bytes()
    put(folder, before)
    journal(folder).write_bytes(first)
    for length in (0, 10, len(second) - 1, len(second)):
        (folder / "state" / "runs.journal.new").write_bytes(second[:length])
        with open_runs(folder) as runs:
            assert runs.checkpoint() == b"one"
        assert contents(folder) == before


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"{}",
        b"ethogram-journal 2 0 ",
        b"ethogram-journal 1 99999999999999999 " + b"0" * 64 + b"\n",
        b"\0" * 99,
    ],
)
def test_a_journal_that_is_not_ours_whole_is_never_trusted(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes], text: bytes
) -> None:
    folder, _, after, _ = committed
    journal(folder).write_bytes(text)
    with open_runs(folder) as runs:
        assert runs.checkpoint() is None
        runs.commit([("d", NOTES[0])], b"three")
    assert contents(folder).items() > after.items()
    with open_runs(folder) as runs:
        assert runs.checkpoint() == b"three"


def test_a_journal_torn_anywhere_or_with_a_bit_turned_is_never_trusted(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, _, after, _ = committed
    whole = journal(folder).read_bytes()
    for length in range(0, len(whole), 11):
        journal(folder).write_bytes(whole[:length])
        with open_runs(folder) as runs:
            assert runs.checkpoint() is None
    for place in range(0, len(whole), 13):
        journal(folder).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with open_runs(folder) as runs:
            assert runs.checkpoint() is None
    assert contents(folder) == after


def changed_outputs(before: dict[str, bytes], after: dict[str, bytes]) -> Iterator[dict[str, bytes]]:
    yield {}
    yield {name: text for name, text in after.items() if name != "b"}
    yield before | {"a": before["a"][:-1]}
    yield after | {"b": b""}
    yield after | {"a": after["a"] + after["a"]}
    yield after | {"d": after["b"].replace(b'"runId":"b"', b'"runId":"d"')}
    yield after | {"a": b"x" * len(after["a"])}
    yield before | {"a": before["a"] + b"something else"}


def test_an_output_that_became_shorter_longer_or_other_is_noticed_and_left_as_it_is(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, before, after, _ = committed
    for files in changed_outputs(before, after):
        put(folder, files)
        with open_runs(folder) as runs:
            assert runs.checkpoint() is None
        # Torn last lines are cut; every whole line is as it was.
        whole = {name: text[: text.rfind(b"\n") + 1] for name, text in files.items()}
        assert contents(folder) == whole


def test_an_output_put_back_to_just_before_the_last_commit_is_brought_up_to_it(
    committed: tuple[Path, dict[str, bytes], dict[str, bytes], bytes],
) -> None:
    folder, before, after, _ = committed
    put(folder, before)
    with open_runs(folder) as runs:
        assert runs.checkpoint() == b"two"
    assert contents(folder) == after


def test_an_output_that_was_written_without_a_journal_has_no_position(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "runs", clock=lambda: "now") as runs:
        runs.append("a", NOTE)
    with (tmp_path / "runs" / "a" / "events.jsonl").open("ab") as stream:
        stream.write(b'{"torn')
    with open_runs(tmp_path) as journaled:
        assert journaled.checkpoint() is None
        journaled.commit([("a", NOTES[0])], b"one")
        assert journaled.last_seq("a") == 2
    with open_runs(tmp_path) as journaled:
        assert journaled.checkpoint() == b"one"


def test_a_torn_line_that_another_program_leaves_meanwhile_is_cut(tmp_path: Path) -> None:
    with open_runs(tmp_path) as runs:
        runs.commit(FIRST, b"one")
        with runs.path("a").open("ab") as stream:
            stream.write(b'{"torn')
        put_aside = runs.path("c")
        put_aside.parent.mkdir()
        put_aside.write_bytes(b"{")
        runs.commit(SECOND, b"two")
        assert [event.seq for event in runs.read_from("a")] == [1, 2, 3]


def test_a_second_process_is_refused_by_name(tmp_path: Path) -> None:
    with open_runs(tmp_path):
        with pytest.raises(SinkLocked) as raised:
            open_runs(tmp_path)
        assert raised.value.process_id == os.getpid()
        assert str(os.getpid()) in str(raised.value)
    with open_runs(tmp_path) as runs:
        runs.close()
        runs.close()


def test_a_lock_file_without_a_number_names_nobody(tmp_path: Path) -> None:
    with open_runs(tmp_path):
        (tmp_path / "state" / "runs.lock").write_text("who\n")
        with pytest.raises(SinkLocked, match="process unknown") as raised:
            open_runs(tmp_path)
        assert raised.value.process_id == 0


def test_a_lock_goes_with_its_process(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, JournaledRuns, utc_now\n"
        "folder = Path(sys.argv[1])\n"
        "runs = JournaledRuns(folder / 'runs', folder / 'state', clock=utc_now, journal_bytes=1)\n"
        "runs.commit([('a', CanonicalDraft('t.x', b'1'))], b'one')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    with open_runs(tmp_path) as runs:
        assert runs.checkpoint() == b"one"
        assert runs.last_seq("a") == 1


def test_a_run_that_another_writer_changed_is_never_written_over(tmp_path: Path) -> None:
    with open_runs(tmp_path) as runs:
        runs.commit(FIRST, b"one")
        path = runs.path("a")
        path.write_bytes(b"no event\n")
        with pytest.raises(MalformedLog):
            runs.commit([("a", NOTES[0])], b"two")
        assert runs.checkpoint() == b"one"
        assert path.read_bytes() == b"no event\n"


def test_a_full_disk_stores_nothing_by_halves_and_a_later_commit_goes_on(tmp_path: Path) -> None:
    # The limit hits the second half of a commit, after the journal: its runs are longer than the journal.
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, JournaledRuns, SinkUnavailable, utc_now\n"
        "folder = Path(sys.argv[1])\n"
        "def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "note = CanonicalDraft('t.x', b'\"' + b'x' * 500 + b'\"')\n"
        "runs = JournaledRuns(folder / 'runs', folder / 'state', clock=utc_now, journal_bytes=1)\n"
        "for n in range(9): runs.commit([('a', note)], b'%d' % n)\n"
        "size = runs.path('a').stat().st_size\n"
        "for limit_bytes in (100, size + 100):\n"
        "    limit(limit_bytes)\n"
        "    try: runs.commit([('b', note), ('a', note)], b'last')\n"
        "    except SinkUnavailable as fault: print(fault.error_number, Path(fault.path).name, runs.checkpoint())\n"
        "assert runs.path('a').stat().st_size == size\n"
        "if sys.argv[2] == 'reopen': sys.exit()\n"
        "limit(resource.RLIM_INFINITY)\n"
        "runs.commit([('a', note)], b'later')\n"
        "print(runs.last_seq('a'), runs.last_seq('b'), runs.checkpoint())\n"
    )
    for how, last in (("reopen", b"last"), ("go on", b"later")):
        folder = tmp_path / how
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder), how], capture_output=True, text=True, check=False
        )
        refused = [f"{errno.EFBIG} state b'8'", f"{errno.EFBIG} events.jsonl b'8'"]
        assert done.stdout.splitlines()[:2] == refused, done.stderr
        with open_runs(folder) as runs:
            assert runs.checkpoint() == last
            assert [event.seq for event in runs.read_from("b")] == [1]
            assert runs.last_seq("a") == (10 if last == b"last" else 11)


def test_a_commit_that_cannot_be_finished_says_so_until_the_sink_is_opened_again(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, JournaledRuns, SinkUnavailable, StoreChanged, utc_now\n"
        "folder = Path(sys.argv[1])\n"
        "def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "note = CanonicalDraft('t.x', b'\"' + b'x' * 900 + b'\"')\n"
        "runs = JournaledRuns(folder / 'runs', folder / 'state', clock=utc_now, journal_bytes=1)\n"
        "for n in range(3): runs.commit([('a', note)], b'%d' % n)\n"
        "limit(runs.path('a').stat().st_size + 100)\n"
        "try: runs.commit([('a', note)], b'last')\n"
        "except SinkUnavailable: limit(resource.RLIM_INFINITY)\n"
        "with runs.path('a').open('ab') as stream: stream.write(b'another program')\n"
        "for _ in range(2):\n"
        "    try: runs.commit([], b'later')\n"
        "    except StoreChanged as fault: print(fault.run_id)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["a", "a"], done.stderr
    with open_runs(tmp_path) as runs:
        assert runs.checkpoint() is None
        assert runs.last_seq("a") == 3
    assert issubclass(StoreChanged, Exception)


WHOLE_JOURNAL = 1 << 20


def test_a_journal_of_many_commits_counts_up_to_its_last_whole_frame(tmp_path: Path) -> None:
    with open_runs(tmp_path, WHOLE_JOURNAL) as runs:
        lengths, outputs = [0], [contents(tmp_path)]
        for number in range(1, 5):
            runs.commit([("a", NOTES[0]), (f"r{number}", NOTES[1])], b"%d" % number)
            lengths.append(journal(tmp_path).stat().st_size)
            outputs.append(contents(tmp_path))
        assert lengths == sorted(set(lengths))
    whole = journal(tmp_path).read_bytes()
    for number in range(1, 5):
        for length in (lengths[number], lengths[number] + 9, lengths[number] + 120):
            put(tmp_path, outputs[number])
            journal(tmp_path).write_bytes(whole[:length])
            with open_runs(tmp_path) as runs:
                assert runs.checkpoint() == b"%d" % min(number, 4)
                assert runs.recovered_lines == []
            # The commits before are borne out too, however much of them a crash of the machine took.
            put(tmp_path, {})
            with open_runs(tmp_path) as runs:
                assert runs.checkpoint() == b"%d" % number
                assert len(runs.recovered_lines) == 2 * number
            assert contents(tmp_path) == outputs[number]


def test_lost_pages_in_the_middle_of_a_log_are_written_again(tmp_path: Path) -> None:
    with open_runs(tmp_path, WHOLE_JOURNAL) as runs:
        for number in range(20):
            runs.commit([("a", NOTES[0])] * 5, b"%d" % number)
        path = runs.path("a")
    whole = path.read_bytes()
    path.write_bytes(whole[:1000] + b"\0" * 500 + whole[1500:-100])
    with open_runs(tmp_path) as runs:
        assert runs.checkpoint() == b"19"
        assert path.read_bytes() == whole
        assert runs.recovered_lines == whole[whole.rfind(b"\n", 0, 1000) + 1 :].splitlines()


def test_commits_that_do_not_follow_upon_each_other_are_not_trusted(tmp_path: Path) -> None:
    with open_runs(tmp_path, WHOLE_JOURNAL) as runs:
        runs.commit([("a", NOTES[0])], b"one")
        with RunDirectory(tmp_path / "runs", clock=lambda: "now") as other:
            other.append("a", NOTE)
        runs.commit([("a", NOTES[0])], b"two")
        assert runs.last_seq("a") == 3
        assert runs.checkpoint() == b"two"
    with open_runs(tmp_path) as runs:
        assert runs.checkpoint() is None
        assert runs.last_seq("a") == 3


def test_a_stored_position_can_be_read_without_opening_the_sink(tmp_path: Path) -> None:
    assert stored_checkpoint(tmp_path / "state") is None
    with open_runs(tmp_path, WHOLE_JOURNAL) as runs:
        runs.append("a", NOTE)
        assert stored_checkpoint(tmp_path / "state") is None
        runs.commit([], b"one")
        assert stored_checkpoint(tmp_path / "state") == b"one"
    journal(tmp_path).write_bytes(b"")
    assert stored_checkpoint(tmp_path / "state") is None


def test_a_full_disk_may_refuse_the_journal_and_the_next_commit_goes_on(tmp_path: Path) -> None:
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from ethogram import CanonicalDraft, JournaledRuns, SinkUnavailable, utc_now\n"
        "folder = Path(sys.argv[1])\n"
        "def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))\n"
        "note = CanonicalDraft('t.x', b'\"' + b'x' * 500 + b'\"')\n"
        "runs = JournaledRuns(folder / 'runs', folder / 'state', clock=utc_now)\n"
        "runs.commit([('a', note)], b'one')\n"
        "limit((folder / 'state' / 'runs.journal').stat().st_size + 50)\n"
        "try: runs.commit([('b', note)], b'two')\n"
        "except SinkUnavailable as fault: print(Path(fault.path).name)\n"
        "limit(resource.RLIM_INFINITY)\n"
        "print(runs.checkpoint(), runs.last_seq('b'))\n"
        "runs.commit([('b', note)], b'three')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["state", "b'one' 0"], done.stderr
    with open_runs(tmp_path) as runs:
        assert runs.checkpoint() == b"three"
        assert (runs.last_seq("a"), runs.last_seq("b")) == (1, 1)


batches = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(NOTES)), max_size=4), max_size=5
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches, st.sampled_from([1, 400, WHOLE_JOURNAL]), st.data())
def test_after_any_kill_the_runs_hold_exactly_the_commits_up_to_the_position(
    tmp_path: Path, commits: list[list[tuple[str, CanonicalDraft]]], journal_bytes: int, data: st.DataObject
) -> None:
    folder = tmp_path / str(next(FOLDERS))
    done = 0
    for number, batch in enumerate(commits, 1):
        with open_runs(folder, journal_bytes) as runs:
            before = contents(folder)
            runs.commit(batch, b"%d" % number)
        after = contents(folder)
        # A kill leaves of each run any part of what the commit appends.
        left = {
            name: text[: data.draw(st.integers(len(before.get(name, b"")), len(text)))]
            for name, text in after.items()
        }
        put(folder, left)
        done = number
    with open_runs(folder) as runs:
        assert runs.checkpoint() == (b"%d" % done if commits else None)
        for run_id in ("a", "b", "c"):
            expected = [draft for batch in commits for run, draft in batch if run == run_id]
            assert len(list(runs.read_from(run_id))) == len(expected)
            assert runs.last_seq(run_id) == len(expected)


FOLDERS: Iterator[int] = count()


def test_files_of_the_state_are_for_their_owner_alone(tmp_path: Path) -> None:
    with open_runs(tmp_path) as runs:
        runs.commit(FIRST, b"one")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "state").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["runs.journal", "runs.lock"]
    assert run_directory_name("a") in contents(tmp_path)


def test_a_finished_run_stays_finished_after_opening(tmp_path: Path) -> None:
    finish = CanonicalDraft("run.finished", b'{"durationMs":1,"outcome":"failed"}')
    with open_runs(tmp_path) as runs:
        runs.commit([("a", finish)], b"one")
    act: Callable[[JournaledRuns], None] = lambda runs: runs.commit([("a", NOTES[0])], b"two")  # noqa: E731
    with open_runs(tmp_path) as runs, pytest.raises(Finished):
        act(runs)
