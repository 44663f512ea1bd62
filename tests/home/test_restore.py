"""Giving the log back from an output that was made with ``--origin full``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import mkdtemp

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.logs import WholeLog, spread, whole_logs, write_files
from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.errors import ConfigurationError, SinkError
from vinaya_bridge.kept import kept_bytes, kept_rows
from vinaya_bridge.restore import restore, stream_of
from vinaya_bridge.tail import Tail
from vinaya_bridge.verify import verify

CLOCK = "2031-02-03T04:05:06.789Z"
FULL = ConvertOptions(clock=lambda: CLOCK, origin="full")
IDS = ConvertOptions(clock=lambda: CLOCK)
TOKEN = "ghp_" + "a1B2" * 9


def value_of(text: bytes) -> str:
    """A JSON text as a value: equal for equal values, ``10.0`` and ``10`` among them."""
    return json.dumps(plain(json.loads(text)), sort_keys=True)


def plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def values(lines: Iterable[bytes]) -> set[str]:
    return {value_of(line) for line in lines}


def lines_of(logs: Path) -> list[bytes]:
    """The lines of all files of a log directory."""
    return [line for path in sorted(logs.rglob("*.ndjson")) for line in path.read_bytes().split(b"\n")[:-1]]


def values_in_order(file: Path) -> list[str]:
    return [value_of(line) for line in file.read_bytes().splitlines()]


def carried(out: Path) -> list[tuple[str, Json]]:
    """Identity and content of each line that an event carries."""
    found = []
    for path in sorted((out / "runs").glob("*/events.jsonl")):
        for event in map(orjson.loads, path.read_bytes().splitlines()):
            block = event["payload"]["vinaya"]
            if "line" in block:
                found.append((block["eventId"], block["line"]))
    return found


def log_of(folder: Path, *lines: Line) -> Path:
    return write_files(folder, {"acme-lantern/7.ndjson": b"".join(dump(line) + b"\n" for line in lines)})


def proven(out: Path, *inputs: Path) -> None:
    assert [(found.code.id, found.place, found.message) for found in verify(out, inputs).findings] == []


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=whole_logs(), data=st.data())
def test_what_is_restored_of_a_converted_log_is_that_log(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    source = write_files(folder / "in", data.draw(spread(list(log.lines))))
    convert([source], folder / "out", FULL)
    found = restore(folder / "out", folder / "logs")
    assert values(lines_of(folder / "logs")) == values(log.lines)
    assert found.complete
    assert found.kept == {}
    proven(folder / "out", source)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=whole_logs(), data=st.data())
def test_what_is_restored_of_a_tailed_log_is_that_log(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    source = write_files(folder / "in", data.draw(spread(list(log.lines))))
    with Tail([source], folder / "out", origin="full", now=lambda: 1_900_000_000.0) as tail:
        tail.poll()
        tail.settle()
    restore(folder / "out", folder / "logs")
    assert values(lines_of(folder / "logs")) == values(log.lines)
    proven(folder / "out", source)


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_what_went_to_a_file_is_restored_from_it(kind: str, repository: Path, tmp_path: Path) -> None:
    source = repository / "fixtures" / "pause-and-resume" / "in"
    file, out = tmp_path / "events", tmp_path / "out"
    with Tail([source], out, origin="full", sink=f"{kind}:{file}", now=lambda: 1_900_000_000.0) as tail:
        tail.poll()
        tail.settle()
    assert restore(out, tmp_path / "logs").complete
    assert values(lines_of(tmp_path / "logs")) == values(lines_of(source))
    file.unlink()
    with pytest.raises(SinkError, match="not there") as raised:
        restore(out, tmp_path / "again")
    assert raised.value.remedy
    assert not (tmp_path / "again").exists()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=whole_logs(), data=st.data())
def test_where_lines_lay_changes_nothing_of_what_is_restored(
    log: WholeLog, data: st.DataObject, tmp_path: Path
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    restored = []
    for name in ("one", "other"):
        source = write_files(folder / name, data.draw(spread(list(log.lines))))
        convert([source], folder / f"out-{name}", FULL)
        restore(folder / f"out-{name}", folder / f"logs-{name}")
        logs = folder / f"logs-{name}"
        files = sorted(logs.rglob("*.ndjson"))
        restored.append([(file.relative_to(logs), values_in_order(file)) for file in files])
    assert restored[0] == restored[1]


def test_every_reference_line_is_restored_or_kept_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    files = sorted((shared / "vinaya" / "lines").glob("*.ndjson"))
    assert len(files) == 11
    for file in files:
        out, logs = tmp_path / file.stem, tmp_path / f"{file.stem}-logs"
        convert([file], out, FULL)
        proven(out, file)
        found = restore(out, logs)
        assert found.complete
        given_back = values(lines_of(logs))
        kept = {kept_bytes(out / "kept", row) for row in kept_rows(out / "kept")}
        redacted = len(found.redacted)
        unseen = []
        for line in file.read_bytes().split(b"\n"):
            if not line.strip() or line in kept:
                continue
            try:
                unseen += [] if value_of(line) in given_back else [line]
            except ValueError:
                unseen.append(line)
        pieces = [line for line in unseen if not any(piece in line for piece in kept if piece.strip())]
        assert len(pieces) == redacted, file.name


def test_one_event_of_each_line_carries_it_whole(repository: Path, tmp_path: Path) -> None:
    for story in sorted((repository / "fixtures").glob("*/in")):
        out = tmp_path / story.parent.name
        report = convert([story], out, FULL)
        identities = [identity for identity, _ in carried(out)]
        assert len(identities) == len(set(identities)) == report.lines["converted"]


def test_without_the_option_no_event_carries_its_line(repository: Path, tmp_path: Path) -> None:
    convert([repository / "fixtures" / "pause-and-resume" / "in"], tmp_path / "out", IDS)
    assert carried(tmp_path / "out") == []


def test_an_output_without_whole_lines_is_refused_and_the_remedy_works(
    repository: Path, tmp_path: Path
) -> None:
    source = repository / "fixtures" / "green-in-two-rounds" / "in"
    out, logs = tmp_path / "out", tmp_path / "logs"
    convert([source], out, IDS)
    with pytest.raises(ConfigurationError, match="--origin full") as raised:
        restore(out, logs)
    assert "--origin full" in raised.value.remedy
    assert not logs.exists()
    before = sorted((path, path.read_bytes()) for path in (out / "runs").rglob("*.jsonl"))
    convert([source], out, FULL)
    assert sorted((path, path.read_bytes()) for path in (out / "runs").rglob("*.jsonl")) == before
    assert restore(out, logs).complete
    assert values(lines_of(logs)) == values(lines_of(source))
    proven(out, source)


def test_lines_converted_without_the_option_and_gone_since_are_named_as_missing(tmp_path: Path) -> None:
    first, second = sample("gate", "summary", seq=0), sample("gate", "summary", seq=1)
    convert([log_of(tmp_path / "first", first)], tmp_path / "out", IDS)
    convert([log_of(tmp_path / "second", second)], tmp_path / "out", FULL)
    found = restore(tmp_path / "out", tmp_path / "logs")
    assert found.missing == ["ev-run-a-proc-a-0"]
    assert not found.complete
    assert values(lines_of(tmp_path / "logs")) == values([dump(second)])


def test_a_secret_that_was_cut_out_is_listed_with_its_place(tmp_path: Path) -> None:
    line = sample("handoff", "raised", reason=f"stopped on {TOKEN}")
    source = log_of(tmp_path / "in", line, sample("gate", "summary", seq=1))
    convert([source], tmp_path / "out", FULL)
    found = restore(tmp_path / "out", tmp_path / "logs")
    assert found.redacted == [("acme-lantern/7.ndjson", 1)]
    (first, _) = lines_of(tmp_path / "logs")
    assert value_of(first) == value_of(dump(line).replace(TOKEN.encode(), b"<redacted>"))
    marked = [event for event in carried_blocks(tmp_path / "out") if "redacted" in event]
    assert [block["eventId"] for block in marked] == ["ev-run-a-proc-a-0"]
    proven(tmp_path / "out", source)


def carried_blocks(out: Path) -> list[dict[str, Json]]:
    return [
        orjson.loads(line)["payload"]["vinaya"]
        for path in sorted((out / "runs").glob("*/events.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def test_a_line_that_no_event_can_carry_is_kept_and_given_back(tmp_path: Path) -> None:
    long = sample("handoff", "raised", reason="r" * 17_000)
    exact = sample("usage", "observed", seq=1, units={"input": 2**53 + 1, "output": 1, "cache": 0})
    source = log_of(tmp_path / "in", long, exact)
    report = convert([source], tmp_path / "out", FULL)
    assert report.lines["converted"] == 2
    assert [row.why for row in kept_rows(tmp_path / "out" / "kept")] == ["origin", "origin"]
    restore(tmp_path / "out", tmp_path / "logs")
    assert values(lines_of(tmp_path / "logs")) == values([dump(long), dump(exact)])
    proven(tmp_path / "out", source)


def test_what_the_mapping_leaves_out_is_given_back(tmp_path: Path) -> None:
    lines = [
        sample("forge_write", "written", seq=0),
        sample("operation", "completed", seq=1, operation="log.selftest"),
        sample("gate", "summary", seq=2),
    ]
    source = log_of(tmp_path / "in", *lines)
    for _ in range(2):
        convert([source], tmp_path / "out", FULL)
    assert sorted(row.why for row in kept_rows(tmp_path / "out" / "kept")) == ["self_test", "unmapped"]
    restore(tmp_path / "out", tmp_path / "logs")
    assert values(lines_of(tmp_path / "logs")) == values(map(dump, lines))
    proven(tmp_path / "out", source)


def test_a_line_inside_a_wrapper_is_given_back_without_it(tmp_path: Path) -> None:
    mapped, unmapped = dump(sample("gate", "summary")), dump(sample("forge_write", "written", seq=1))
    wrappers = [orjson.dumps({"status": 400, "raw": line.decode()}) for line in (mapped, unmapped)]
    source = write_files(tmp_path / "in", {"a/7.rejected.ndjson": b"\n".join([*wrappers, b""])})
    convert([source], tmp_path / "out", FULL)
    restore(tmp_path / "out", tmp_path / "logs")
    assert values(lines_of(tmp_path / "logs")) == values([mapped, unmapped])
    proven(tmp_path / "out", source)


def test_an_unfinished_line_is_kept_and_counted(tmp_path: Path) -> None:
    whole = dump(sample("gate", "summary"))
    source = write_files(tmp_path / "in", {"a/7.ndjson": whole + b"\n" + whole[:40]})
    convert([source], tmp_path / "out", FULL)
    assert restore(tmp_path / "out", tmp_path / "logs").kept == {"pending": 1}
    assert [kept_bytes(tmp_path / "out" / "kept", row) for row in kept_rows(tmp_path / "out" / "kept")] == [
        whole[:40]
    ]
    proven(tmp_path / "out", source)


def test_lines_stand_by_process_and_seq_in_the_file_of_their_issue(tmp_path: Path) -> None:
    lines = [
        sample("gate", "summary", process="proc-b", seq=1),
        sample("gate", "summary", process="proc-b", seq=0),
        sample("gate", "summary", process="proc-a", seq=5),
        sample("gate", "summary", process="proc-a", seq=9, subject={"issue": None}),
        sample("gate", "summary", process="proc-a", seq=7, meta={"repo": None}),
    ]
    convert([log_of(tmp_path / "in", *lines)], tmp_path / "out", FULL)
    restore(tmp_path / "out", tmp_path / "logs")
    placed = {
        str(path.relative_to(tmp_path / "logs")): [
            (line["meta"]["process_id"], line["meta"]["seq"])
            for line in map(orjson.loads, path.read_bytes().splitlines())
        ]
        for path in (tmp_path / "logs").rglob("*.ndjson")
    }
    assert placed == {
        "acme-lantern/7.ndjson": [("proc-a", 5), ("proc-b", 0), ("proc-b", 1)],
        "acme-lantern/none.ndjson": [("proc-a", 9)],
        "unresolved/7.ndjson": [("proc-a", 7)],
    }


@pytest.mark.parametrize(
    "repo", ["../escape", "a/..", "a/b/c", "/b", "a/", ".a/b", "a/b\n", "a" * 300 + "/b", ""]
)
def test_a_repository_that_is_no_safe_name_names_no_folder(repo: str) -> None:
    assert stream_of(sample("gate", "summary", meta={"repo": repo})) == "unresolved/7.ndjson"


def test_nothing_is_written_over_or_among_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert([log_of(tmp_path / "in", sample("gate", "summary"))], out, FULL)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "a").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path)
    for target in (tmp_path / "taken", tmp_path / "taken" / "a", tmp_path / "link", out / "runs" / "x", out):
        with pytest.raises(ConfigurationError) as raised:
            restore(out, target)
        assert raised.value.remedy
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "link", "out", "taken"]
    (tmp_path / "empty").mkdir()
    assert restore(out, tmp_path / "empty").lines == 1


def test_restored_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    convert([log_of(tmp_path / "in", sample("gate", "summary"))], tmp_path / "out", FULL)
    restore(tmp_path / "out", tmp_path / "logs")
    for path in [tmp_path / "logs", *(tmp_path / "logs").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vinaya_bridge", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_says_what_it_gave_back(tmp_path: Path) -> None:
    line = sample("handoff", "raised", reason=f"stopped on {TOKEN}")
    source = write_files(tmp_path / "in", {"a/7.ndjson": dump(line) + b"\n{}\n"})
    convert([source], tmp_path / "out", FULL)
    done = run_command("restore", tmp_path / "out", "-o", tmp_path / "logs")
    assert done.returncode == 0, done.stderr
    assert "1 lines in 1 file" in done.stdout
    assert "acme-lantern/7.ndjson:1 has <redacted>" in done.stdout
    assert "1 refused: no events; byte for byte in" in done.stdout
    done = run_command("restore", tmp_path / "out", "-o", tmp_path / "again", "--json")
    assert orjson.loads(done.stdout)["redacted"] == [["acme-lantern/7.ndjson", 1]]


def test_the_command_refuses_an_output_without_whole_lines_with_the_remedy(tmp_path: Path) -> None:
    convert([log_of(tmp_path / "in", sample("gate", "summary"))], tmp_path / "out", IDS)
    done = run_command("restore", tmp_path / "out", "-o", tmp_path / "logs")
    assert done.returncode == 2
    assert done.stderr.startswith("VB421 ")
    assert "convert the log again with --origin full" in done.stderr


def test_the_command_exits_with_one_where_a_line_is_missing(tmp_path: Path) -> None:
    convert([log_of(tmp_path / "first", sample("gate", "summary"))], tmp_path / "out", IDS)
    convert([log_of(tmp_path / "second", sample("gate", "summary", seq=1))], tmp_path / "out", FULL)
    done = run_command("restore", tmp_path / "out", "-o", tmp_path / "logs")
    assert done.returncode == 1
    assert "missing     ev-run-a-proc-a-0: it was converted without --origin full" in done.stdout
