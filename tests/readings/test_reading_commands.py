"""The commands usage and status, and what they read."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.cli.status import status
from vinaya_bridge.cli.usage import usage
from vinaya_bridge.inputs import Intake, event_lines
from vinaya_bridge.log import Reader


def usage_line(seq: int, *, model: str = "opus", tokens: int | None = 5, why: str | None = None) -> Line:
    """A running total; None: the vendor states nothing."""
    units: Json = {"input": tokens, "output": tokens, "cache": tokens}
    line = sample("usage", "observed", seq=seq, source="claude", semantics="cumulative", model=model)
    return line | {"units": units, "unknown_reason": why}


def log_file(folder: Path, *lines: bytes, name: str = "7.ndjson") -> Path:
    path = folder / "acme-lantern" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def run_usage(*arguments: str | Path, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(usage, [str(each) for each in arguments], input=stdin, catch_exceptions=False)


def run_status(*arguments: str | Path) -> Result:
    return CliRunner().invoke(status, [str(each) for each in arguments], catch_exceptions=False)


def answered(result: Result) -> Any:
    return orjson.loads(result.stdout)


def test_usage_of_a_story_is_what_its_lines_say(repository: Path) -> None:
    answer = answered(run_usage(repository / "fixtures" / "green-in-two-rounds" / "in", "--json"))
    assert [(row["model"], row["input"], row["lines"]) for row in answer["observations"]] == [
        ("opus", 24911, 2),
        ("sonnet", 11807, 4),
    ]
    assert len(answer["attempts"]) == 6
    assert sum(attempt["input"] for attempt in answer["attempts"]) == 85121
    assert len(answer["all_observations"]) == 6
    assert answer["lines"] == {"conflict": 0, "duplicate": 0, "low_trust": 0}


def test_a_rotated_queue_counts_every_line_once(repository: Path) -> None:
    answer = answered(run_usage(repository / "fixtures" / "rotated-queue" / "in", "--json"))
    assert answer["lines"] == {"conflict": 1, "duplicate": 4, "low_trust": 0}


def test_usage_prints_one_aligned_row_for_each_run_and_model(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0, tokens=1234)) + b"\n")
    result = run_usage(tmp_path)
    assert result.stdout.splitlines() == [
        "RUN    MODEL  KIND        LINES  INPUT  OUTPUT  CACHE",
        "run-a  opus   cumulative      1  1,234   1,234  1,234",
        "",
        "no attempt was logged",
    ]
    assert (result.stderr, result.exit_code) == ("", 0)


def test_an_unknown_figure_is_printed_as_unknown_with_its_reason_below(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0, tokens=None, why="the vendor reports none")) + b"\n")
    printed = run_usage(tmp_path, "--by", "model").stdout.splitlines()
    assert printed == [
        "MODEL  KIND        TERMS    INPUT   OUTPUT    CACHE",
        "opus   cumulative      1  unknown  unknown  unknown",
        "",
        "unknown, and why:",
        "  opus cumulative input, output, cache: 1 of 1 not known: the vendor reports none",
    ]


def test_text_of_a_log_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0, model="\x1b[31mred\u2028", tokens=None, why="\x07\nbell")) + b"\n")
    printed = run_usage(tmp_path).stdout
    assert "\\u001b[31mred\\u2028" in printed
    assert all(character.isprintable() or character == "\n" for character in printed)
    assert len(printed.splitlines()) == 7


def test_totals_are_part_of_the_document_where_they_are_asked_for(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0)) + b"\n")
    assert "groups" not in answered(run_usage(tmp_path, "--json"))
    (group,) = answered(run_usage(tmp_path, "--json", "--by", "issue"))["groups"]
    assert (group["by"], group["key"], group["kind"], group["input"]) == ("issue", 7, "cumulative", 5)


def test_standard_input_is_read_where_it_is_named(tmp_path: Path) -> None:
    result = run_usage("-", "--json", stdin=dump(usage_line(0)) + b"\n")
    assert answered(result)["observations"][0]["input"] == 5


def test_an_input_that_is_not_there_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0)) + b"\n")
    result = run_usage(tmp_path, tmp_path / "nowhere", "--json")
    assert answered(result)["observations"][0]["input"] == 5
    assert "VB301" in result.stderr
    assert result.exit_code == 1


def test_lines_that_are_no_events_are_counted_on_standard_error(tmp_path: Path) -> None:
    future = dump(usage_line(1)).replace(b'"schema":3', b'"schema":4')
    log_file(tmp_path, dump(usage_line(0)) + b"\n", future + b"\n", b"{}\n\n", dump(usage_line(2))[:50])
    result = run_usage(tmp_path, "--json")
    assert (
        result.stderr
        == "not counted: 1 refused, 1 of an unknown version, 1 not finished; see vinaya-bridge check\n"
    )
    assert result.exit_code == 0


def test_an_input_without_one_event_fails_and_an_empty_one_does_not(tmp_path: Path) -> None:
    log_file(tmp_path, b"{}\n")
    assert run_usage(tmp_path).exit_code == 1
    log_file(tmp_path, b"")
    empty = run_usage(tmp_path)
    assert (empty.exit_code, empty.stdout) == (0, "no usage was observed\n\nno attempt was logged\n")


def test_status_of_the_stories_is_what_they_tell(repository: Path) -> None:
    answer = answered(run_status(repository / "fixtures", "--now", "2026-10-18T01:39:00Z", "--json"))
    found = {loop["issue"]: (loop["state"], loop["exit_reason"]) for loop in answer["loops"]}
    assert found == {
        12: ("stale", None),
        31: ("stale", None),
        58: ("exited", "error"),
        77: ("finished", "finished"),
        90: ("stale", None),
        91: ("exited", "signal"),
        310: ("finished", "finished"),
        415: ("running", None),
        1204: ("finished", "finished"),
    }


def test_status_of_one_issue_is_one_aligned_row(repository: Path) -> None:
    story = repository / "fixtures" / "pause-and-resume"
    printed = run_status(story, "--issue", "77", "--now", "2026-10-13T15:00:00+01:00").stdout.splitlines()
    assert printed[0].split() == [
        "REPOSITORY",
        "ISSUE",
        "STATE",
        "ROUND",
        "PHASE",
        "AGE",
        "LAST",
        "LINE",
        "MACHINE",
    ]
    assert printed[1].split()[:5] == ["acme/lantern", "77", "finished", "2", "dispatch_developer"]
    assert len(printed) == 3
    assert run_status(story, "--issue", "78").stdout == "no loop was logged\n"


@pytest.mark.parametrize(
    ("age", "shown"),
    [("00.250", "250 ms"), ("59.000", "59 s"), ("01:00.000", "1 min"), ("01:02:00.000", "1 h")],
)
def test_an_age_is_shown_in_its_greatest_unit(tmp_path: Path, age: str, shown: str) -> None:
    line = sample("dev_review_loop", "loop_started", ts="2026-05-04T00:00:00.000Z")
    log_file(tmp_path, dump(line) + b"\n")
    now = "2026-05-04T" + ("00:00:00.000"[: -len(age)] + age)
    assert shown in run_status(tmp_path, "--now", now).stdout


def test_a_time_that_is_none_is_refused_as_an_option(tmp_path: Path) -> None:
    result = run_status(tmp_path, "--now", "yesterday")
    assert result.exit_code == 2
    assert "is not a time such as" in result.stderr


def test_a_whole_last_line_counts_without_its_newline_and_any_other_is_pending(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0)) + b"\n", dump(usage_line(1)))
    log_file(tmp_path, dump(usage_line(2)) + b"\n", dump(usage_line(3))[:-1], name="8.ndjson")
    intake = Intake([tmp_path], Reader())
    assert [line.record.meta.seq for line in intake] == [0, 1, 2]
    assert (intake.files, intake.events, intake.pending, intake.refused) == (2, 3, 1, 0)


def test_a_whole_record_behind_a_torn_one_is_read_and_the_fragment_is_refused(tmp_path: Path) -> None:
    log_file(tmp_path, dump(usage_line(0))[:90] + dump(usage_line(1)) + dump(usage_line(2)) + b"\n")
    intake = Intake([tmp_path], Reader())
    assert [line.record.meta.seq for line in intake] == [1, 2]
    assert (intake.events, intake.refused, intake.lines) == (2, 1, 3)


def test_lines_that_were_set_aside_are_unwrapped_and_compressed_files_are_read(tmp_path: Path) -> None:
    raw = dump(usage_line(0))
    wrapper: Json = {"rejected_at": "now", "status": "invalid", "reason": "x", "raw": raw.decode()}
    log_file(tmp_path, dump(wrapper) + b"\n", name="7.rejected.ndjson")
    log_file(tmp_path, gzip.compress(dump(usage_line(1)) + b"\n"), name="8.ndjson.gz")
    assert [line.record.meta.seq for line in event_lines([tmp_path], Reader())] == [0, 1]


def test_the_commands_run_as_a_module_and_end_with_data_on_standard_output_alone(repository: Path) -> None:
    story = repository / "fixtures" / "torn-file"
    done = subprocess.run(
        [sys.executable, "-m", "vinaya_bridge", "usage", str(story), "--json"],
        cwd=repository,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert orjson.loads(done.stdout)["attempts"][0]["input"] == 4100
    assert io.BytesIO(done.stderr).readline().startswith(b"not counted: ")


@pytest.mark.parametrize("number", ["33", "40", "42", "44"])
def test_the_usage_cases_of_the_reference_data_hold(shared: Path, number: str) -> None:
    (case,) = (shared / "cases").glob(f"{number}-*")
    expected = orjson.loads((case / "expect.json").read_bytes())["usage"]
    answer = answered(run_usage(case / "in", "--json"))
    found = {
        f"{row['run']}/{'?' if row['model'] is None else row['model']}/{row['semantics']}": {
            name: row[name] for name in ("input", "output", "cache")
        }
        for row in answer["observations"]
    }
    assert found == expected


def test_a_child_that_inherits_the_run_overtakes_its_parent_and_nothing_is_added(shared: Path) -> None:
    (case,) = (shared / "cases").glob("46-*")
    answer = answered(run_usage(case / "in", "--json"))
    assert [(row["input"], row["lines"]) for row in answer["observations"]] == [(80, 2)]
    assert [(each["input"], each["counts"]) for each in answer["all_observations"]] == [
        (500, False),
        (80, True),
    ]
