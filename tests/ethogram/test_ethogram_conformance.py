"""The proof that this SDK agrees with the other two: their vectors and their corpus."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ethogram.canonical import serialise_event
from ethogram.conformance import answer
from ethogram.envelope import parse_event, parse_event_text
from ethogram.rundir import RunDirectory
from ethogram.validation import ValidationError, validate

# The protocol after the version that this SDK implements: the corpus holds a few of its events.
LATER_EVENTS = {"control-requested-answer.json"}
LATER_VALIDATION = {"wrong-type-control-applied-by.json"}


def test_every_vector_of_the_public_sdks_agrees(shared: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "ethogram.conformance"]
    replay = [sys.executable, str(shared / "ethogram" / "replay.py"), "--", *command]
    done = subprocess.run(replay, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    agreeing, _, total, *_ = done.stdout.split()
    assert agreeing == total
    assert int(total) > 1_000


@pytest.mark.parametrize("folder", ["v1", "agreement"])
def test_each_captured_event_reaches_a_fixed_point(shared: Path, folder: str) -> None:
    files = sorted((shared / "ethogram" / "corpus" / folder).glob("*.json"))
    assert files
    for file in files:
        event = parse_event(json.loads(file.read_bytes()))
        line = serialise_event(event)
        assert parse_event_text(line) == event, file.name
        assert serialise_event(parse_event_text(line)) == line, file.name


def test_each_captured_event_is_valid_unless_it_is_of_a_later_protocol(shared: Path) -> None:
    for file in sorted((shared / "ethogram" / "corpus" / "v1").glob("*.json")):
        event = parse_event_text(file.read_bytes())
        if file.name in LATER_EVENTS:
            with pytest.raises(ValidationError) as raised:
                validate(event.type, event.payload)
            assert raised.value.kind == "UnknownMember"
        else:
            validate(event.type, event.payload)


def test_each_invalid_input_fails_with_its_kind(shared: Path) -> None:
    files = sorted((shared / "ethogram" / "corpus" / "validation").glob("*.json"))
    assert files
    for file in files:
        case = json.loads(file.read_bytes())
        if file.name in LATER_VALIDATION:
            validate(case["type"], case["payload"])
            continue
        with pytest.raises(ValidationError) as raised:
            validate(case["type"], case["payload"])
        assert raised.value.kind == case["expectedKind"], file.name


def test_whole_streams_are_reproduced_byte_for_byte(shared: Path, tmp_path: Path) -> None:
    streams = sorted((shared / "ethogram" / "corpus" / "umwelt-golden").glob("*.jsonl"))
    assert streams
    for stream in streams:
        text = stream.read_bytes()
        lines = text.splitlines(keepends=True)
        assert [serialise_event(parse_event_text(line)) + b"\n" for line in lines] == lines
        with RunDirectory(tmp_path / stream.name, clock=lambda: "now") as runs:
            events = [parse_event_text(line) for line in lines]
            if [event.seq for event in events] == list(range(1, len(events) + 1)):
                for event in events:
                    runs.forward(event)
                assert runs.path(events[0].run_id).read_bytes() == text


def test_a_request_that_is_no_json_is_answered(shared: Path) -> None:
    assert answer({"op": "canonical", "text": "{"}) == {"ok": False, "error": "not JSON"}
