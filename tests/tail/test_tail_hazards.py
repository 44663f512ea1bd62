"""Hazards of the Vinaya files reference (section 12) from the log to the output; the numbers are its own."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.support.samples import sample
from tests.support.strategies import Line, dump
from tests.tail.tailing import (
    LIVE,
    SLOT,
    Desk,
    beat,
    converted,
    edited,
    exited,
    facts,
    gate,
    identity_of,
    report_of,
    started,
    stored,
    text_of,
    told,
)
from vinaya_bridge.kept import kept_rows
from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll

FRAGMENT = b'{"meta":{"schema":3,"ts":"'
DRAINING = "acme-lantern/7.draining.ndjson"
TOKEN = "ghp_" + "A1b2" * 9


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def terms(desk: Desk) -> dict[str, int]:
    """The terms of the report that are not zero."""
    return {term: count for term, count in report_of(desk.out)["total"].items() if count}


def once(desk: Desk, content: bytes, name: str = LIVE) -> list[str]:
    """Append, read to the end and prove the output; the identities that are new."""
    desk.append(content, name)
    with desk.tail() as tail:
        new = [*desk.poll(tail).new, *tail.settle().new]
    desk.check()
    return new


def identities(*lines: Line) -> list[str]:
    return [identity_of(line) for line in lines]


# ---------------------------------------------------------------------------------------- framing


@pytest.mark.parametrize("rotated", [False, True])
def test_hazard_2_what_never_ends_waits_in_a_file_and_no_other_line_with_it(
    desk: Desk, rotated: bool
) -> None:
    desk.append(text_of([started()]) + FRAGMENT)
    with desk.tail() as tail:
        desk.poll(tail)
        if rotated:
            desk.rotate()
        desk.append([beat(1)], "acme-lantern/8.ndjson")
        assert desk.poll(tail, after=3600).new == identities(beat(1))
        assert tail.status().lag.bytes_behind == len(FRAGMENT)
        if rotated:
            desk.append([beat(2)])
            assert desk.poll(tail).new == identities(beat(2))
            desk.rotate()
            gaps = [*desk.poll(tail).gaps, *desk.poll(tail, after=60).gaps]
            assert [gap.code.id for gap in gaps] == ["VB324"]


def test_hazard_2_a_whole_last_line_is_an_event_in_a_batch_and_a_fragment_is_pending(desk: Desk) -> None:
    desk.append(text_of([started()]) + FRAGMENT)
    desk.append(dump(beat(1)), "acme-lantern/8.ndjson")
    report = report_of(converted(desk))
    assert (report["lines"]["converted"], report["lines"]["pending"]) == (2, 1)
    assert report["pending_lines"] == [[LIVE, 2]]


@pytest.mark.parametrize("whole", [True, False])
def test_hazard_2_the_last_line_of_a_compressed_file_counts_without_its_newline(
    desk: Desk, whole: bool
) -> None:
    (desk.log / "acme-lantern").mkdir(parents=True)
    content = text_of([started(), beat(1)])[: -1 if whole else -9]
    (desk.log / "acme-lantern" / "7.1.ndjson.gz").write_bytes(gzip.compress(content))
    with desk.tail() as tail:
        desk.poll(tail)
        assert desk.poll(tail, after=60).new == identities(started(), beat(1))[: 2 if whole else 1]
    assert terms(desk) == {"read": 2, "converted": 2} if whole else {"read": 2, "converted": 1, "pending": 1}


@pytest.mark.parametrize(
    ("before", "refused"), [(FRAGMENT, 1), (FRAGMENT * 2, 1), (dump(beat(1)), 0), (b"\0" * 4096, 1)]
)
def test_hazard_3_a_record_behind_a_fragment_or_another_record_is_recovered(
    desk: Desk, before: bytes, refused: int
) -> None:
    lines = [started(), *([] if refused else [beat(1)]), beat(2)]
    assert once(desk, dump(started()) + b"\n" + before + dump(beat(2)) + b"\n") == identities(*lines)
    assert [row.length for row in kept_rows(desk.out / "kept")] == [len(before)] * refused


def test_hazard_4_separators_of_unicode_stand_in_an_event_as_they_stood_in_its_line(desk: Desk) -> None:
    text = "a\u2028b\u2029c\u0085d\ufeffe\u007ff"
    line = sample("handoff", "raised", reason=text)
    raw = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
    assert once(desk, raw + b"\n") == identities(line)
    assert text in {each.event["payload"].get("reason") for each in stored(desk.out)}


def test_hazard_5_bytes_that_are_not_utf8_cost_their_own_line_alone(desk: Desk) -> None:
    content = dump(started()) + b"\n\xff\n" + dump(beat(1)).replace(b"acme", b"\xc3(cme") + b"\n"
    assert once(desk, content + dump(beat(2)) + b"\n") == identities(started(), beat(2))
    assert [row.code for row in kept_rows(desk.out / "kept")] == ["VB102"] * 2


def test_hazard_6_a_line_of_many_mebibytes_is_kept_whole_and_its_neighbours_are_read(desk: Desk) -> None:
    long = b'{"meta":' + b"x" * (9 << 20)
    content = dump(started()) + b"\n" + long + b"\n" + dump(beat(1)) + b"\n"
    assert once(desk, content) == identities(started(), beat(1))
    assert (desk.out / "kept" / "refused.ndjson").read_bytes() == long + b"\n"


def test_hazard_7_what_editors_and_power_cuts_leave_costs_no_line(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append(b"\xef\xbb\xbf" + dump(started()) + b"\r\n\n\r\n" + b"\0" * 100 + b"\n")
        assert desk.poll(tail).new == identities(started())
        desk.append(dump(beat(1)) + b"\r\n" + b"\0" * 4096 + b"\n" + dump(beat(2)) + b"\n")
        assert desk.poll(tail).new == identities(beat(1), beat(2))
    assert terms(desk) == {"read": 7, "converted": 3, "blank": 2, "refused": 2}
    desk.check()


# ---------------------------------------------------------------------------------------- files


def test_hazard_11_what_was_rotated_away_unseen_is_told_and_a_copy_of_it_can_be_added(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(1)])
        desk.poll(tail)
        for line in (beat(2), beat(3), beat(4)):
            desk.rotate()
            desk.append([line])
            if line == beat(2):
                shutil.copyfile(desk.log / LIVE, desk.root / "copy.ndjson")
        poll = desk.poll(tail)
        assert poll.new == identities(beat(3), beat(4))
        assert [gap.code.id for gap in poll.gaps] == ["VB322"]
        assert told(desk.out) == [("log.lines_lost", None)]
        desk.append((desk.root / "copy.ndjson").read_bytes())
        assert desk.poll(tail).new == identities(beat(2))


def test_hazard_16_a_queue_that_is_sent_piece_by_piece_gives_each_line_once_and_no_loss(desk: Desk) -> None:
    lines = [started(), *(beat(seq) for seq in range(1, 10))]
    live, draining = desk.log / LIVE, desk.log / DRAINING
    polls: list[TailPoll] = []

    def rewrite(content: bytes) -> None:
        """As the sender cuts out what was accepted: the same inode, empty for an instant."""
        draining.write_bytes(b"")
        polls.append(desk.poll(tail))
        draining.write_bytes(content)

    with desk.tail() as tail:
        desk.append(lines[:4])
        polls.append(desk.poll(tail))
        live.rename(draining)
        for step in (
            lambda: desk.append(lines[4:6]),
            lambda: rewrite(text_of(lines[2:4])),
            lambda: rewrite(text_of(lines[3:4])),
            draining.unlink,
            lambda: live.rename(draining),
            lambda: desk.append(lines[6:]),
            draining.unlink,
            live.unlink,
        ):
            step()
            polls.append(desk.poll(tail))
        polls.append(desk.poll(tail, after=600))
    assert [identity for poll in polls for identity in poll.new] == identities(*lines)
    assert [gap for poll in polls for gap in poll.gaps] == []
    assert told(desk.out) == []


def test_hazard_17_a_folder_that_is_moved_to_the_queue_gives_each_line_once_and_no_loss(desk: Desk) -> None:
    lines = [started(), *(beat(seq) for seq in range(1, 7))]
    outbox = desk.root / "outbox" / "acme-lantern"
    outbox.mkdir(parents=True)
    desk.append(lines[:2], SLOT)
    desk.append(lines[2:4])
    with Tail([desk.log, desk.root / "outbox"], desk.out, now=desk.now) as tail:
        polls = [desk.poll(tail)]
        desk.append(lines[4:5])
        (outbox / "7.ndjson").write_bytes(text_of(lines[:5]))
        (desk.log / SLOT).unlink()
        (desk.log / LIVE).unlink()
        polls.append(desk.poll(tail))
        desk.append(lines[5:])
        (outbox / "7.ndjson").rename(outbox / "7.draining.ndjson")
        polls.append(desk.poll(tail))
        (outbox / "7.draining.ndjson").unlink()
        polls += [desk.poll(tail), desk.poll(tail, after=600)]
    assert [identity for poll in polls for identity in poll.new] == identities(*lines)
    assert [gap for poll in polls for gap in poll.gaps] == []


# ---------------------------------------------------------------------------------------- identity


def wrapped(raw: bytes, reason: str = "invalid") -> bytes:
    """A line that the sender set aside."""
    wrapper = {"rejected_at": "2026-05-04T10:00:00.000Z", "status": reason, "bytes": len(raw)}
    return orjson.dumps({**wrapper, "raw": raw.decode()}) + b"\n"


def test_hazard_21_one_event_in_every_place_where_lines_lie_is_one_event(desk: Desk) -> None:
    lines = [started(), beat(1)]
    outbox = desk.root / "outbox"
    for root in (desk.log, outbox):
        for mark in ("", ".1", ".draining", ".1.draining"):
            path = root / f"acme-lantern/7{mark}.ndjson"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text_of(lines))
    (outbox / "acme-lantern/7.rejected.ndjson").write_bytes(b"".join(wrapped(dump(each)) for each in lines))
    with Tail([desk.log, outbox], desk.out, now=desk.now) as tail:
        assert desk.poll(tail).new == identities(*lines)
    assert terms(desk) == {"read": 18, "converted": 2, "duplicate": 16}


def shuffled(line: Line) -> bytes:
    return json.dumps(dict(reversed(line.items())), separators=(" , ", " : ")).encode()


def redacted(line: Line) -> bytes:
    return dump(line).replace(TOKEN.encode(), b"<redacted>")


@pytest.mark.parametrize("copy", [shuffled, redacted])
def test_hazard_22_copies_that_say_the_same_are_duplicates_whatever_their_bytes(
    desk: Desk, copy: Callable[[Line], bytes]
) -> None:
    line = sample("handoff", "raised", seq=1, reason=f"needs {TOKEN} to go on")
    assert once(desk, dump(line) + b"\n" + copy(line) + b"\n") == identities(line)
    assert once(desk, copy(line) + b"\n") == []
    assert terms(desk) == {"read": 3, "converted": 1, "duplicate": 2}


def test_hazard_22_two_contents_under_one_identity_are_one_event_and_one_kept_line(desk: Desk) -> None:
    assert once(desk, text_of([started(), edited(started())])) == identities(started())
    assert [row.why for row in kept_rows(desk.out / "kept")] == ["conflict"]
    assert told(desk.out) == [("capture.refused", "duplicate")]


def test_hazard_23_two_events_of_schema_1_under_one_identity_are_a_conflict(desk: Desk) -> None:
    parent = sample("dev_review_loop", "driver_heartbeat", schema=1, seq=1)
    child = sample("gate", "checked", schema=1, seq=1)
    assert once(desk, text_of([parent])) == ["run-a:1"]
    assert once(desk, text_of([child, parent])) == []
    assert terms(desk) == {"read": 3, "converted": 1, "duplicate": 1, "conflict": 1}


def test_hazard_24_missing_numbers_and_counting_anew_are_no_loss_and_told_by_process(desk: Desk) -> None:
    lines = [started(), beat(1), gate(0, process="child"), beat(5), gate(0, process="other"), gate(3)]
    desk.append(text_of(lines[:3]))
    desk.append(text_of(lines[3:]), "acme-lantern/none.ndjson")
    with desk.tail() as tail:
        polls = [desk.poll(tail), tail.settle()]
    assert {identity for poll in polls for identity in poll.new} == set(identities(*lines))
    assert [gap for poll in polls for gap in poll.gaps] == []
    assert report_of(desk.out)["gaps"] == [{"process": "proc-a", "missing": [[2, 2], [4, 4]]}]
    desk.check()


def test_hazard_26_a_run_goes_on_in_other_files_and_no_end_of_a_file_ends_it(desk: Desk) -> None:
    places = ["acme-lantern/7.ndjson", "acme-lantern/none.ndjson", "unresolved/none.ndjson"]
    with desk.tail() as tail:
        for seq, name in enumerate(places * 2):
            desk.append([beat(seq)], name)
            poll = desk.poll(tail, after=86_400)
            assert (poll.new, poll.finished) == (identities(beat(seq)), [])
    assert {each.directory for each in stored(desk.out)} == {"run-a"}
    desk.check()


def test_hazard_27_a_line_that_stands_twice_in_one_file_is_one_event(desk: Desk) -> None:
    assert once(desk, text_of([started(), beat(1)] * 2)) == identities(started(), beat(1))
    twice = wrapped(b"{broken") + wrapped(b"{broken", "unknown_version")
    assert once(desk, twice, "acme-lantern/7.rejected.ndjson") == []
    assert told(desk.out) == [("capture.refused", "malformed")]
    assert terms(desk) == {"read": 6, "converted": 2, "duplicate": 2, "refused": 2}


def test_hazard_28_what_comes_hours_later_is_read_while_its_run_is_open(desk: Desk) -> None:
    with desk.tail() as tail:
        desk.append([started(), beat(3)])
        desk.poll(tail)
        desk.poll(tail, after=60)
        desk.append([beat(1)], "acme-lantern/7.rejected.ndjson")
        assert desk.poll(tail, after=36_000).new == identities(beat(1))
        desk.append([beat(2)], DRAINING)
        assert desk.poll(tail, after=36_000).new == identities(beat(2))
    assert facts(desk.out) == facts(converted(desk))


# ---------------------------------------------------------------------------------------- content and names


def test_hazard_29_a_header_of_another_version_is_kept_and_stops_nothing(desk: Desk) -> None:
    odd = [b'{"meta":{"schema":4}}', b'{"meta":{"schema":"3"}}', b'{"meta":{}}']
    content = dump(started()) + b"\n" + b"\n".join(odd) + b"\n" + dump(beat(1)) + b"\n"
    assert once(desk, content) == identities(started(), beat(1))
    assert [row.why for row in kept_rows(desk.out / "kept")] == ["unknown_version", "refused", "refused"]


def test_hazard_31_a_set_aside_line_is_read_out_of_its_wrapper_and_no_other_file_is_read(desk: Desk) -> None:
    desk.append([started()])
    for name in ("driver.log", "7.ndjson.flush-lock", "7.ndjson.flush-lock.claimed-1", "x.json", "c.sqlite"):
        desk.append(b"no log\n", f"acme-lantern/{name}")
    content = wrapped(dump(beat(1))) + wrapped(b'{"meta":{"schema":9}}') + b"no wrapper\n"
    assert once(desk, content, "acme-lantern/7.rejected.ndjson") == identities(started(), beat(1))
    assert terms(desk) == {"read": 4, "converted": 2, "unknown_version": 1, "refused": 1}


@pytest.mark.parametrize("name", ["-5", "0", "1e+21", "none", "7.1.draining", "-5.1", "1e+21.draining"])
def test_hazard_33_a_log_is_known_by_its_suffix_and_not_by_a_number(desk: Desk, name: str) -> None:
    assert once(desk, text_of([started()]), f"acme-lantern/{name}.ndjson") == identities(started())


def test_hazard_34_a_line_belongs_where_it_says_whatever_its_file_is_called(desk: Desk) -> None:
    repositories = {"run-a": "a-b/c", "run-b": "a/b-c", "run-c": None}
    lines = [
        gate(0, run=run, meta={"repo": repo, "doctrine": "unknown"}) for run, repo in repositories.items()
    ]
    once(desk, text_of(lines), "unresolved/none.ndjson")
    starts = {
        each.directory: each.event["payload"].get("repository")
        for each in stored(desk.out)
        if each.event["type"] == "run.started"
    }
    assert starts == repositories


def test_hazard_35_a_secret_of_an_old_line_stays_where_it_was(desk: Desk) -> None:
    line = sample("handoff", "raised", schema=1, reason=f"needs {TOKEN}")
    once(desk, text_of([line, sample("forge_write", "validated", schema=1, seq=1)]))
    assert desk.identities() == ["run-a:0"]
    assert terms(desk) == {"read": 2, "converted": 1, "unmapped": 1}
    assert not [
        path for path in desk.out.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


def test_hazard_36_a_self_test_is_counted_and_gives_no_event(desk: Desk) -> None:
    probe = sample("operation", "completed", seq=1, operation="log.selftest")
    assert once(desk, text_of([started(), probe])) == identities(started())
    assert terms(desk) == {"read": 2, "converted": 1, "self_test": 1}


@pytest.mark.parametrize("ts", ["2099-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000Z"])
def test_hazard_42_a_clock_that_is_years_off_delays_no_line_and_no_end(desk: Desk, ts: str) -> None:
    lines = [started(), beat(1, ts=ts), exited(2), gate(0, process="other")]
    with desk.tail() as tail:
        desk.append(lines)
        assert set(desk.poll(tail).new) == set(identities(lines[0], lines[1], lines[3]))
        assert desk.poll(tail, after=60).finished == ["run-a"]
    desk.check()


def test_hazard_43_bytes_of_two_writers_in_each_other_cost_no_other_line(desk: Desk) -> None:
    one, two = dump(beat(1)), dump(beat(2))
    content = dump(started()) + b"\n" + one[:200] + two + b"\n" + one[200:] + b"\n" + dump(beat(3)) + b"\n"
    assert once(desk, content) == identities(started(), beat(2), beat(3))
    assert [row.length for row in kept_rows(desk.out / "kept")] == [200, len(one) - 200]
