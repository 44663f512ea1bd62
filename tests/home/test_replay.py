"""Reading kept lines again with a version that has learned to read them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ethogram.rundir import run_directory_name
from tests.support.logs import WholeLog, spread, whole_logs, write_files
from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.errors import ConfigurationError
from vinaya_bridge.kept import INDEX_NAME, kept_rows
from vinaya_bridge.log import Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.output import Output
from vinaya_bridge.replay import replay
from vinaya_bridge.restore import restore
from vinaya_bridge.stored import stored_payloads
from vinaya_bridge.tail import Tail
from vinaya_bridge.verify import verify

FIXED = ConvertOptions(clock=lambda: "2031-02-03T04:05:06.789Z")
LATER = "2032-02-03T04:05:06.789Z"


class LearnedReader(Reader):
    """A reader of a later version: it knows schema 4, which is schema 3, and a field that was once refused."""

    def read(self, raw: bytes) -> Verdict:
        verdict = super().read(raw)
        if isinstance(verdict, UnknownVersion) and verdict.schema == 4:
            return super().read(raw.replace(b'"schema":4', b'"schema":3'))
        if isinstance(verdict, Refused):
            return super().read(raw.replace(b',"learned":true', b""))
        return verdict


def newer(line: Line) -> Line:
    """The line under schema 4."""
    meta = line["meta"]
    assert isinstance(meta, dict)
    return line | {"meta": meta | {"schema": 4}}


def loop(event: str, seq: int, **own: Json) -> Line:
    return sample("dev_review_loop", event, seq=seq) | {"loop_id": "run-a", "task": 7, **own}


def log_of(folder: Path, *lines: Line) -> Path:
    return write_files(folder, {"acme-lantern/7.ndjson": b"".join(dump(line) + b"\n" for line in lines)})


def again(out: Path) -> dict[str, int]:
    """Replay, and return the terms that are not zero."""
    report = replay(out, reader=LearnedReader(), clock=lambda: LATER)
    return {term: count for term, count in report.lines.items() if count}


def proven(out: Path, *inputs: Path) -> None:
    found = verify(out, inputs, reader=LearnedReader())
    assert [(finding.code.id, finding.place, finding.message) for finding in found.findings] == []


def events(out: Path, run: str) -> list[dict[str, Json]]:
    path = out / "runs" / run_directory_name(run) / "events.jsonl"
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def types(out: Path, run: str) -> list[Json]:
    return [event["type"] for event in events(out, run)]


def files_of(out: Path) -> list[tuple[Path, bytes]]:
    return sorted(
        (path, path.read_bytes()) for path in out.rglob("*") if path.suffix in {".jsonl", ".ndjson", ".json"}
    )


def test_a_line_of_a_schema_that_a_later_version_learns_goes_to_its_run(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", loop("loop_started", 0), newer(sample("gate", "summary", seq=1)))
    out = tmp_path / "out"
    convert([source], out, FIXED)
    before = types(out, "run-a")
    assert again(out) == {"read": 1, "converted": 1}
    assert types(out, "run-a") == [*before, "gate.evaluated"]
    assert events(out, "run-a")[-1]["ts"] == LATER
    first, second = kept_rows(out / "kept")
    assert (first.why, second.why) == ("unknown_version", "replayed")
    assert second.place() == first.place()
    assert "converted" in str(second.reason)
    proven(out, source)


def test_replaying_twice_adds_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert([log_of(tmp_path / "in", newer(sample("gate", "summary")))], out, FIXED)
    again(out)
    before = files_of(out)
    assert again(out) == {}
    assert files_of(out) == before


def test_what_cannot_be_read_stays_and_changes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = write_files(tmp_path / "in", {"7.ndjson": b'{"meta":{"schema":5}}\n{}\nno json\n'})
    convert([source], out, FIXED)
    before = files_of(out)
    assert again(out) == {"read": 3, "refused": 2, "unknown_version": 1}
    assert files_of(out) == before


def test_a_refused_line_that_is_valid_by_now_is_added(tmp_path: Path) -> None:
    source = log_of(
        tmp_path / "in",
        sample("gate", "summary", seq=0) | {"learned": True},
        sample("gate", "summary", seq=1),
    )
    convert([source], tmp_path / "out", FIXED)
    assert again(tmp_path / "out") == {"read": 1, "converted": 1}
    proven(tmp_path / "out", source)


def test_a_line_of_a_finished_run_goes_to_a_sitting_of_its_own(tmp_path: Path) -> None:
    source = log_of(
        tmp_path / "in",
        loop("loop_started", 0),
        newer(sample("gate", "summary", seq=1)),
        loop("driver_exited", 2, reason="finished"),
    )
    out = tmp_path / "out"
    convert([source], out, FIXED)
    before = events(out, "run-a")
    assert again(out) == {"read": 1, "converted": 1}
    assert events(out, "run-a") == before
    start, gate = events(out, "run-a~2")
    assert (start["type"], gate["type"]) == ("run.started", "gate.evaluated")
    payload = start["payload"]
    assert isinstance(payload, dict)
    assert payload["parentRunId"] == "run-a"
    assert isinstance(payload["vinaya"], dict)
    assert payload["vinaya"]["implied"] is True
    proven(out, source)


def test_an_end_that_is_read_at_last_ends_the_sitting_that_is_open(tmp_path: Path) -> None:
    source = log_of(
        tmp_path / "in", loop("loop_started", 0), newer(loop("driver_exited", 1, reason="finished"))
    )
    out = tmp_path / "out"
    convert([source], out, FIXED)
    assert again(out) == {"read": 1, "converted": 1}
    assert types(out, "run-a")[-1] == "run.finished"
    proven(out, source)


def test_a_line_of_a_finished_dispatch_goes_to_a_run_of_its_own(tmp_path: Path) -> None:
    def dispatch(event: str, seq: int) -> Line:
        return sample("dispatch", event, seq=seq, effect_id="eff", target_role="developer")

    source = log_of(
        tmp_path / "in",
        dispatch("dispatched", 0),
        dispatch("outcome_received", 1),
        newer(dispatch("outcome_received", 2)),
    )
    out = tmp_path / "out"
    convert([source], out, FIXED)
    assert again(out) == {"read": 1, "converted": 1}
    assert types(out, "run-a/eff~2")[0] == "run.started"
    assert types(out, "run-a/eff~2")[-1] == "run.finished"
    proven(out, source)


def test_copies_of_one_line_are_added_once_and_all_marked(tmp_path: Path) -> None:
    line = dump(newer(sample("gate", "summary")))
    source = write_files(tmp_path / "in", {"a/7.ndjson": line + b"\n", "a/7.1.ndjson": line + b"\n"})
    out = tmp_path / "out"
    convert([source], out, FIXED)
    assert again(out) == {"read": 2, "converted": 1, "duplicate": 1}
    assert sorted(row.why for row in kept_rows(out / "kept")) == ["replayed"] * 2 + ["unknown_version"] * 2
    proven(out, source)


def test_a_line_that_the_output_has_meanwhile_is_marked_and_not_added(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", newer(sample("gate", "summary")))
    old = log_of(tmp_path / "old", sample("gate", "summary"))
    convert([source], tmp_path / "out", FIXED)
    convert([old], tmp_path / "out", FIXED)
    before = types(tmp_path / "out", "run-a")
    assert again(tmp_path / "out") == {"read": 1, "duplicate": 1}
    assert types(tmp_path / "out", "run-a") == before
    proven(tmp_path / "out", source, old)


def test_what_the_mapping_leaves_out_is_counted_and_marked(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", newer(sample("forge_write", "written")))
    convert([source], tmp_path / "out", FIXED)
    assert again(tmp_path / "out") == {"read": 1, "unmapped": 1}
    assert [row.why for row in kept_rows(tmp_path / "out" / "kept")] == ["unknown_version", "replayed"]
    proven(tmp_path / "out", source)


def test_a_line_whose_identity_is_taken_is_a_conflict_told_once(tmp_path: Path) -> None:
    source = log_of(
        tmp_path / "in",
        sample("gate", "summary"),
        newer(sample("gate", "summary", meta={"doctrine": "other"})),
    )
    out = tmp_path / "out"
    convert([source], out, FIXED)
    for _ in range(2):
        assert again(out) == {"read": 1, "conflict": 1}
        assert [row.why for row in kept_rows(out / "kept")] == ["unknown_version", "conflict"]
        told = [event["payload"] for event in events(out, "vinaya-bridge")]
        assert [payload.get("cause") for payload in told if isinstance(payload, dict)] == [
            None,
            None,
            "duplicate",
        ]
    proven(out, source)


def test_a_mark_that_a_crash_prevented_is_made_up_for(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", newer(sample("gate", "summary")))
    out = tmp_path / "out"
    convert([source], out, FIXED)
    again(out)
    index = out / "kept" / INDEX_NAME
    index.write_bytes(index.read_bytes().splitlines(keepends=True)[0])
    before = types(out, "run-a")
    assert again(out) == {"read": 1, "duplicate": 1}
    assert types(out, "run-a") == before
    assert [row.why for row in kept_rows(out / "kept")] == ["unknown_version", "replayed"]
    proven(out, source)


def test_a_report_that_a_crash_prevented_is_made_up_for(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", newer(sample("gate", "summary")))
    out = tmp_path / "out"
    convert([source], out, FIXED)
    before = (out / "report.json").read_bytes()
    again(out)
    (out / "report.json").write_bytes(before)
    assert again(out) == {}
    proven(out, source)


def test_a_tail_goes_on_where_it_was_after_a_replay(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", loop("loop_started", 0), newer(sample("gate", "summary", seq=1)))
    out = tmp_path / "out"
    now = [1_900_000_000.0]
    with Tail([source], out, now=lambda: now[0]) as tail:
        tail.poll()
    again(out)
    with (source / "acme-lantern" / "7.ndjson").open("ab") as stream:
        stream.write(dump(loop("driver_exited", 2, reason="finished")) + b"\n")
    with Tail([source], out, now=lambda: now[0]) as tail:
        poll = tail.poll()
        assert poll.notices == []
        assert poll.gaps == []
        assert tail.status().lines["read"] == 0
        tail.settle()
    assert types(out, "run-a")[-2:] == ["gate.evaluated", "run.finished"]
    proven(out, source)


def test_a_tail_can_follow_what_was_converted_and_replayed(tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", newer(sample("gate", "summary")))
    out = tmp_path / "out"
    convert([source], out, FIXED)
    again(out)
    before = types(out, "run-a")
    with Tail([source], out, now=lambda: 1_900_000_000.0) as tail:
        poll = tail.poll()
        tail.settle()
    assert (poll.notices, poll.gaps, poll.new) == ([], [], [])
    assert types(out, "run-a") == before


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_line_is_added_to_the_sink_of_the_output(kind: str, tmp_path: Path) -> None:
    source = log_of(tmp_path / "in", sample("gate", "summary"), newer(sample("gate", "summary", seq=1)))
    out, sink = tmp_path / "out", f"{kind}:{tmp_path / 'events'}"
    with Tail([source], out, sink=sink, now=lambda: 1_900_000_000.0) as tail:
        tail.poll()
        tail.settle()
    assert again(out) == {"read": 1, "converted": 1}
    assert again(out) == {}
    identities = [payload["vinaya"] for run, payload in stored_payloads(Output(out)) if run == "run-a"]
    assert [block["eventId"] for block in identities if isinstance(block, dict) and "part" in block] == [
        "ev-run-a-proc-a-0",
        "ev-run-a-proc-a-1",
    ]
    with Tail([source], out, sink=sink, now=lambda: 1_900_000_000.0) as tail:
        poll = tail.poll()
    assert (poll.notices, poll.gaps, poll.new) == ([], [], [])


def test_a_replayed_line_is_kept_whole_where_the_output_keeps_lines_whole(tmp_path: Path) -> None:
    source = log_of(
        tmp_path / "in", newer(sample("gate", "summary")), newer(sample("forge_write", "written", seq=1))
    )
    out = tmp_path / "out"
    convert([source], out, ConvertOptions(clock=FIXED.clock, origin="full"))
    again(out)
    proven(out, source)
    found = restore(out, tmp_path / "logs", reader=LearnedReader())
    assert found.complete
    assert found.kept == {}
    assert orjson.loads((out / "report.json").read_bytes())["bridge"]["origin"] == "full"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=whole_logs(), data=st.data())
def test_no_line_is_lost_or_repeated_whatever_is_learned_late(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    lines = [
        line.replace(b'"schema":3', b'"schema":4') if data.draw(st.booleans()) else line for line in log.lines
    ]
    source = write_files(folder / "in", data.draw(spread(lines)))
    out = folder / "out"
    convert([source], out, FIXED)
    report = replay(out, reader=LearnedReader(), clock=lambda: LATER)
    assert report.lines["unknown_version"] == 0
    proven(out, source)
    before = files_of(out)
    assert set(again(out)) <= {"read", "conflict"}
    assert [each for each in files_of(out) if each[0].name != "report.json"] == [
        each for each in before if each[0].name != "report.json"
    ]


def test_an_output_without_a_report_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(ConfigurationError) as raised:
        replay(tmp_path / "out")
    assert "run the command that made it again" in raised.value.remedy


def test_the_command_says_what_became_of_each_line(tmp_path: Path) -> None:
    source = write_files(tmp_path / "in", {"7.ndjson": b'{"meta":{"schema":5}}\n{}\n'})
    convert([source], tmp_path / "out", FIXED)
    command = [sys.executable, "-m", "vinaya_bridge", "replay", os.fspath(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 read = 0 converted + 1 refused + 1 unknown version\n")
    assert "still kept" in done.stdout
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert orjson.loads(done.stdout)["lines"]["read"] == 2
