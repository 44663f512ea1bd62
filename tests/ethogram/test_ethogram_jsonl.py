"""One file of lines: whatever is left on the disk, a commit is there wholly or not at all."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path

import pytest

from ethogram.canonical import canonical_payload
from ethogram.envelope import CanonicalDraft
from ethogram.faults import MalformedLog, SinkLocked, StoreChanged
from ethogram.jsonl import JournaledLines


def opened(folder: Path, journal_bytes: int = 1 << 20) -> JournaledLines:
    ticks = count(1)
    return JournaledLines(
        folder / "events.jsonl",
        folder / "state",
        clock=lambda: f"tick-{next(ticks)}",
        journal_bytes=journal_bytes,
    )


def drafts(*named: str) -> list[tuple[str, CanonicalDraft]]:
    return [(name, CanonicalDraft("x.y", canonical_payload({"of": name}), None)) for name in named]


def seqs(lines: JournaledLines) -> dict[str, list[int]]:
    return {run_id: [event.seq for event in lines.read_from(run_id)] for run_id in lines.runs()}


def test_runs_stand_interleaved_in_the_order_of_the_commit(tmp_path: Path) -> None:
    with opened(tmp_path) as lines:
        lines.commit(drafts("a", "b", "a"), b"one")
        lines.commit(drafts("b"), b"two")
        assert seqs(lines) == {"a": [1, 2], "b": [1, 2]}
    text = (tmp_path / "events.jsonl").read_text()
    assert [line.split('"runId":"')[1][0] for line in text.splitlines()] == ["a", "b", "a", "b"]


def test_a_commit_that_was_cut_anywhere_is_completed_at_the_next_opening(tmp_path: Path) -> None:
    with opened(tmp_path) as lines:
        lines.commit(drafts("a"), b"one")
        before = (tmp_path / "events.jsonl").stat().st_size
        lines.commit(drafts("a", "b"), b"two")
    whole = (tmp_path / "events.jsonl").read_bytes()
    for cut in range(before, len(whole), 11):
        (tmp_path / "events.jsonl").write_bytes(whole[:cut])
        with opened(tmp_path) as lines:
            assert lines.checkpoint() == b"two"
            assert len(lines.recovered_lines) == 1 + (cut - before < (len(whole) - before) // 2)
        assert (tmp_path / "events.jsonl").read_bytes() == whole


def test_a_commit_whose_journal_was_cut_is_not_there(tmp_path: Path) -> None:
    with opened(tmp_path) as lines:
        lines.commit(drafts("a"), b"one")
    folder = tmp_path / "state"
    shutil.copytree(tmp_path / "state", tmp_path / "old")
    size = (tmp_path / "events.jsonl").stat().st_size
    with opened(tmp_path) as lines:
        lines.commit(drafts("a"), b"two")
    journal = next(folder.iterdir())
    text = journal.read_bytes()
    for cut in (0, 10, len(text) - 1):
        (tmp_path / "events.jsonl").write_bytes((tmp_path / "events.jsonl").read_bytes()[:size])
        journal.write_bytes(text[:cut])
        with opened(tmp_path) as lines:
            assert lines.checkpoint() is None
            assert lines.last_seq("a") == 1


def test_a_file_that_is_longer_or_shorter_than_its_position_says_has_none(tmp_path: Path) -> None:
    with opened(tmp_path) as lines:
        lines.commit(drafts("a", "a", "a"), b"one")
        lines.commit(drafts("a"), b"two")
    whole = (tmp_path / "events.jsonl").read_bytes()
    with opened(tmp_path) as lines:  # a journal of its own, with the last commit alone
        lines.commit(drafts("a"), b"three")
    (tmp_path / "events.jsonl").write_bytes(whole[: whole.index(b"\n") + 20])
    with opened(tmp_path) as lines:
        assert lines.checkpoint() is None
        assert lines.last_seq("a") == 1


def test_a_small_journal_starts_anew_and_loses_nothing(tmp_path: Path) -> None:
    for number in range(5):
        with opened(tmp_path, journal_bytes=1) as lines:
            lines.commit(drafts("a"), b"%d" % number)
            lines.commit(drafts("b"), b"%d" % number)
    with opened(tmp_path) as lines:
        assert lines.checkpoint() == b"4"
        assert seqs(lines) == {"a": [1, 2, 3, 4, 5], "b": [1, 2, 3, 4, 5]}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (b"not json\n", "text"),
        (b'{"v":1,"type":"x.y","runId":"a","seq":2,"ts":"t","payload":{}}\n', "gap"),
        (b'{"v":1,"type":"x.y","runId":"a","seq":1,"ts":"t","payload":{}}\n' * 2, "duplicate"),
    ],
)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: bytes, cause: str) -> None:
    (tmp_path / "events.jsonl").write_bytes(text)
    with pytest.raises(MalformedLog) as refused:
        opened(tmp_path)
    assert refused.value.cause == cause
    assert (tmp_path / "events.jsonl").read_bytes() == text


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path), pytest.raises(SinkLocked):
        opened(tmp_path)
    opened(tmp_path).close()


def test_a_file_that_another_program_writes_to_is_noticed(tmp_path: Path) -> None:
    with opened(tmp_path) as lines:
        lines.commit(drafts("a"), b"one")
        with (tmp_path / "events.jsonl").open("ab") as other:
            other.write(b"{}\n")
        with pytest.raises(StoreChanged):
            lines.commit(drafts("a"), b"two")
