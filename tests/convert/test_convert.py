"""Converting a closed set of files."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.logs import WholeLog, spread, whole_logs, write_files
from tests.support.samples import sample
from tests.support.strategies import dump
from vinaya_bridge.convert import Conversion, ConvertOptions, convert
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.kept import kept_rows
from vinaya_bridge.ledger import balances
from vinaya_bridge.output import Output
from vinaya_bridge.report import Report
from vinaya_bridge.verify import verify

FIXED = ConvertOptions(clock=lambda: "2031-02-03T04:05:06.789Z")
STORIES = (
    "cancelled-loop",
    "child-process",
    "custom-events",
    "green-in-two-rounds",
    "pause-and-resume",
    "rotated-queue",
    "schema-1-log",
    "torn-file",
    "usage-limits",
)


def events(out: Path) -> dict[str, bytes]:
    """The bytes of each run's log."""
    return {path.parent.name: path.read_bytes() for path in sorted((out / "runs").glob("*/events.jsonl"))}


def proven(out: Path, *inputs: Path) -> None:
    """Assert that an output proves itself, alone and against its log."""
    found = verify(out, inputs)
    assert [(finding.code.id, finding.place, finding.message) for finding in found.findings] == []


def converted(source: Path, out: Path, **changes: object) -> Report:
    report = convert([source], out, FIXED)
    assert balances(report.lines)
    return report


@pytest.mark.parametrize("story", STORIES)
def test_every_story_converts_and_the_result_is_proven(story: str, repository: Path, tmp_path: Path) -> None:
    source = repository / "fixtures" / story / "in"
    report = converted(source, tmp_path / "out")
    assert report.lines["converted"] > 0
    proven(tmp_path / "out", source)


@pytest.mark.parametrize("story", STORIES)
def test_converting_the_same_again_adds_nothing(story: str, repository: Path, tmp_path: Path) -> None:
    source = repository / "fixtures" / story / "in"
    converted(source, tmp_path / "out")
    before = events(tmp_path / "out"), list(kept_rows(tmp_path / "out" / "kept"))
    report = converted(source, tmp_path / "out")
    assert (events(tmp_path / "out"), list(kept_rows(tmp_path / "out" / "kept"))) == before
    assert report.lines["converted"] == report.lines["late"] == 0
    proven(tmp_path / "out", source)


def lines_files(shared: Path) -> list[Path]:
    return sorted((shared / "vinaya" / "lines").glob("*.ndjson"))


def test_every_file_of_reference_lines_converts_and_is_proven(shared: Path, tmp_path: Path) -> None:
    files = lines_files(shared)
    assert len(files) == 11
    for file in files:
        out = tmp_path / file.stem
        converted(file, out)
        proven(out, file)


def test_where_the_reference_lines_lie_changes_not_one_byte(shared: Path, tmp_path: Path) -> None:
    random = Random(7)
    for file in lines_files(shared):
        whole = tmp_path / f"{file.stem}-whole"
        converted(file, whole)
        lines = file.read_bytes().split(b"\n")[:-1]
        random.shuffle(lines)
        scattered = tmp_path / f"{file.stem}-in"
        scattered.mkdir()
        streams = [scattered / f"{name}.ndjson" for name in ("10", "2", "2.1", "none", "7.draining")]
        for line in lines:
            with random.choice(streams).open("ab") as stream:
                stream.write(line + b"\n")
        other = tmp_path / f"{file.stem}-scattered"
        convert([scattered], other, FIXED)
        assert events(other) == events(whole), file.name


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=whole_logs(), data=st.data())
def test_order_and_place_of_lines_do_not_matter(log: WholeLog, data: st.DataObject, tmp_path: Path) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    lines = list(log.lines)
    one = write_files(folder / "one", data.draw(spread(lines)))
    other = write_files(folder / "other", data.draw(spread(data.draw(st.permutations(lines)))))
    convert([one], folder / "out-one", FIXED)
    convert([other], folder / "out-other", FIXED)
    assert events(folder / "out-one") == events(folder / "out-other")
    proven(folder / "out-one", one)
    proven(folder / "out-one", other)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=whole_logs(), data=st.data())
def test_twice_is_once(log: WholeLog, data: st.DataObject, tmp_path: Path) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    source = write_files(folder / "in", data.draw(spread(list(log.lines))))
    convert([source], folder / "out", FIXED)
    before = events(folder / "out")
    report = convert([source, source], folder / "out", FIXED)
    assert events(folder / "out") == before
    assert report.lines["converted"] == 0
    proven(folder / "out", source)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=whole_logs(), data=st.data())
def test_a_log_in_two_halves_loses_and_repeats_nothing(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    lines = list(log.lines)
    cut = data.draw(st.integers(0, len(lines)))
    halves = [
        write_files(folder / str(n), {"a/7.ndjson": b"".join(part)})
        for n, part in enumerate((lines[:cut], lines[cut:]))
    ]
    for half in halves:
        report = convert([half], folder / "out", FIXED)
        assert balances(report.lines)
    proven(folder / "out", *halves)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=whole_logs(), data=st.data())
def test_whatever_of_the_runs_is_lost_the_next_call_makes_up_for(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    source = write_files(folder / "in", data.draw(spread(list(log.lines))))
    convert([source], folder / "out", FIXED)
    for path in sorted((folder / "out" / "runs").glob("*/events.jsonl")):
        if data.draw(st.booleans()):
            os.truncate(path, data.draw(st.integers(0, path.stat().st_size)))
    if data.draw(st.booleans()):
        (folder / "out" / "report.json").unlink()
    convert([source], folder / "out", FIXED)
    proven(folder / "out", source)


def story_lines(repository: Path, story: str) -> list[bytes]:
    """All lines of a story."""
    files = sorted((repository / "fixtures" / story / "in").rglob("*.ndjson"))
    return [line for file in files for line in file.read_bytes().splitlines(keepends=True)]


def write(path: Path, lines: Iterable[bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def test_a_straggler_of_a_finished_run_is_late_kept_and_told_once(repository: Path, tmp_path: Path) -> None:
    lines = story_lines(repository, "green-in-two-rounds")
    straggler = next(
        line for line in lines if b'"kind":"gate","event":"summary"' in line or b'"kind":"usage"' in line
    )
    rest = [line for line in lines if line is not straggler]
    out = tmp_path / "out"
    converted(write(tmp_path / "first" / "7.ndjson", rest), out)
    second = write(tmp_path / "second" / "7.ndjson", [straggler])
    for _ in range(2):
        report = converted(second, out)
        assert report.lines["late"] == 1
    assert [row.why for row in kept_rows(out / "kept")] == ["late"]
    relay = [orjson.loads(line) for line in events(out)["vinaya-bridge"].splitlines()]
    assert [(event["type"], event["payload"].get("cause")) for event in relay] == [
        ("run.started", None),
        ("capture.refused", "finished"),
    ]
    proven(out, tmp_path / "first", tmp_path / "second")


def test_compressed_copies_are_duplicates(repository: Path, tmp_path: Path) -> None:
    lines = story_lines(repository, "cancelled-loop")
    write(tmp_path / "in" / "7.ndjson", lines)
    (tmp_path / "in" / "7.1.ndjson.gz").write_bytes(gzip.compress(b"".join(lines)))
    report = converted(tmp_path / "in", tmp_path / "out")
    assert report.lines["duplicate"] == len(lines)
    assert report.lines["read"] == 2 * len(lines)
    proven(tmp_path / "out", tmp_path / "in")


def test_the_input_is_left_as_it_was(repository: Path, tmp_path: Path) -> None:
    source = tmp_path / "in"
    shutil.copytree(repository / "fixtures" / "rotated-queue" / "in", source)
    before = [(path, path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(source.rglob("*"))]
    converted(source, tmp_path / "out")
    assert [
        (path, path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(source.rglob("*"))
    ] == before


def test_an_output_inside_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigurationError) as raised:
        convert([tmp_path / "in"], tmp_path / "in" / "out", FIXED)
    assert raised.value.remedy
    assert not (tmp_path / "in" / "out").exists()


def test_an_output_that_another_process_writes_to_is_refused_naming_it(
    repository: Path, tmp_path: Path
) -> None:
    with Output(tmp_path / "out").locked(), pytest.raises(SinkError, match=str(os.getpid())):
        convert([repository / "fixtures" / "torn-file" / "in"], tmp_path / "out", FIXED)


def test_files_of_the_output_are_for_their_owner_alone(repository: Path, tmp_path: Path) -> None:
    converted(repository / "fixtures" / "torn-file" / "in", tmp_path / "out")
    for path in (tmp_path / "out").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_source_time_makes_the_whole_output_a_function_of_the_log(repository: Path, tmp_path: Path) -> None:
    source = repository / "fixtures" / "rotated-queue" / "in"
    for name, clock in (("one", "a"), ("two", "b")):
        convert([source], tmp_path / name, ConvertOptions(clock=partial(str, clock), stamp="source"))
    assert events(tmp_path / "one") == events(tmp_path / "two")
    first = orjson.loads(next(iter(events(tmp_path / "one").values())).splitlines()[0])
    assert first["ts"] == first["capturedAt"]


def test_spilling_to_disk_changes_nothing_and_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    sources = [repository / "fixtures" / story / "in" for story in STORIES]
    convert(sources, tmp_path / "memory", FIXED)
    convert(sources, tmp_path / "disk", ConvertOptions(clock=FIXED.clock, memory_budget_bytes=20_000))
    assert events(tmp_path / "disk") == events(tmp_path / "memory")
    assert not (tmp_path / "disk" / "state" / "spill").exists()


def test_what_a_killed_call_left_is_cleaned_and_completed(tmp_path: Path) -> None:
    from tests.support.corpus import write_corpus

    source = tmp_path / "in" / "7.ndjson"
    source.parent.mkdir()
    write_corpus(source, 8_000, random=Random(3))
    command = [
        sys.executable,
        "-m",
        "vinaya_bridge",
        "convert",
        str(source),
        "-o",
        str(tmp_path / "out"),
        "--quiet",
    ]
    for pause in (0.3, 0.6, 0.9, 1.2):
        process = subprocess.Popen(command)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert subprocess.run(command, check=False).returncode == 0
    proven(tmp_path / "out", source)
    convert([source], tmp_path / "at-once", FIXED)
    assert set(events(tmp_path / "out")) == set(events(tmp_path / "at-once"))


def test_a_line_that_was_late_stays_late_when_it_comes_again(tmp_path: Path) -> None:
    def line(kind: str, event: str, seq: int) -> bytes:
        return dump(sample(kind, event, seq=seq)) + b"\n"

    out = tmp_path / "out"
    ended = write(
        tmp_path / "a" / "7.ndjson",
        [line("dev_review_loop", "loop_started", 0), line("dev_review_loop", "cancelled", 1)],
    )
    converted(ended, out)
    later = write(
        tmp_path / "b" / "7.ndjson",
        [line("operation", "completed", 2), line("dev_review_loop", "resumed", 3)],
    )
    first = converted(later, out)
    assert (first.lines["late"], first.lines["converted"]) == (1, 1)
    before = events(out)
    again = converted(later, out)
    assert (again.lines["late"], again.lines["converted"], again.lines["duplicate"]) == (1, 0, 1)
    assert events(out) == before
    assert [row.why for row in kept_rows(out / "kept")] == ["late"]
    proven(out, tmp_path / "a", tmp_path / "b")


def test_an_output_made_with_another_mapping_is_refused_and_left_alone(
    repository: Path, tmp_path: Path
) -> None:
    source = repository / "fixtures" / "cancelled-loop" / "in"
    convert([source], tmp_path / "out", ConvertOptions(mapping="generic"))
    before = events(tmp_path / "out")
    with pytest.raises(ConfigurationError, match="generic"):
        convert([source], tmp_path / "out", FIXED)
    assert events(tmp_path / "out") == before


def test_the_bridge_tells_the_same_whatever_the_files_are_called(tmp_path: Path) -> None:
    whole = dump(sample("gate", "summary"))
    fragment = whole[:40]
    for name, files in (
        ("one", {"a": fragment + b"\n", "b": fragment + whole + b"\n"}),
        ("two", {"b": fragment + b"\n", "a": fragment + whole + b"\n"}),
    ):
        for file, content in files.items():
            write(tmp_path / name / f"{file}.ndjson", [content])
        converted(tmp_path / name, tmp_path / f"out-{name}")
    assert events(tmp_path / "out-one") == events(tmp_path / "out-two")


def test_a_bad_line_in_two_wrappers_is_told_once(tmp_path: Path) -> None:
    wrappers = [
        orjson.dumps({"rejected_at": at, "status": 400, "raw": '{"meta":{"schema":3}}'}) + b"\n"
        for at in ("x", "y")
    ]
    write(tmp_path / "in" / "7.rejected.ndjson", wrappers)
    report = converted(tmp_path / "in", tmp_path / "out")
    assert report.lines["refused"] == 2
    assert len(events(tmp_path / "out")["vinaya-bridge"].splitlines()) == 2
    proven(tmp_path / "out", tmp_path / "in")


@pytest.mark.parametrize("packed", [False, True])
def test_conflicts_in_one_file_cost_one_pass_over_it(packed: bool, tmp_path: Path) -> None:
    lines = [dump(sample("gate", "summary", ran=number)) + b"\n" for number in range(6_000)]
    source = tmp_path / "in" / ("7.ndjson.gz" if packed else "7.ndjson")
    source.parent.mkdir()
    source.write_bytes(gzip.compress(b"".join(lines)) if packed else b"".join(lines))
    report = converted(tmp_path / "in", tmp_path / "out")
    assert report.lines["conflict"] == 5_999
    rows = list(kept_rows(tmp_path / "out" / "kept"))
    assert len(rows) == 5_999
    assert {(row.why, row.code) for row in rows} == {("conflict", "VB117")}


def test_a_line_that_changed_before_it_could_be_kept_is_named_not_invented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (dump(sample("gate", "summary", ran=number)) + b"\n" for number in (1, 2))
    file = write(tmp_path / "in" / "7.ndjson", [first, second])
    place = Conversion.place

    def edit_then_place(conversion: Conversion) -> None:
        file.write_bytes(first.replace(b"proc-a", b"proc-x") + second.replace(b"proc-a", b"proc-x"))
        place(conversion)

    monkeypatch.setattr(Conversion, "place", edit_then_place)
    report = converted(tmp_path / "in", tmp_path / "out")
    assert report.input_faults
    assert list(kept_rows(tmp_path / "out" / "kept")) == []
