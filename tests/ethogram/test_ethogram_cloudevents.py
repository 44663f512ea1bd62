"""Events as CloudEvents: what that format asks is kept, and nothing is lost on the way there and back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ethogram.canonical import serialise_event
from ethogram.cli import cli
from ethogram.cloudevents import from_cloudevent, to_cloudevent
from ethogram.envelope import Event, parse_event_text
from ethogram.json_text import ParseError
from tests.ethogram.event_strategies import json_values, texts

ATTRIBUTE_NAME = re.compile("[a-z0-9]{1,20}")
NONCHARACTERS = {chr(plane << 16 | low) for plane in range(17) for low in (0xFFFE, 0xFFFF)}
ANY_EVENT = st.builds(
    Event,
    type=texts.map(lambda text: f"x.{text}"),
    run_id=texts,
    seq=st.integers(1, 2**53 - 1),
    ts=texts,
    payload=json_values,
    captured_at=st.none() | texts | st.just("2026-01-02T03:04:05.678Z"),
)


@given(ANY_EVENT)
def test_an_event_comes_back_as_it_was(event: Event) -> None:
    back = from_cloudevent(to_cloudevent(event))
    assert serialise_event(back) == serialise_event(event)


@given(ANY_EVENT)
def test_each_attribute_is_what_the_format_allows(event: Event) -> None:
    attributes = json.loads(to_cloudevent(event))
    del attributes["data"]
    assert attributes["specversion"] == "1.0"
    for name, value in attributes.items():
        assert ATTRIBUTE_NAME.fullmatch(name)
        assert isinstance(value, str)
        assert value or name.startswith("ethogram")
        assert not re.search("[\x00-\x1f\x7f-\x9f]", value)
        assert not NONCHARACTERS & set(value)
    assert re.fullmatch(r"urn:ethogram:run:[\w.~%-]*", attributes["source"], re.ASCII)


def test_a_cloudevent_reads_as_one() -> None:
    event = Event(
        "agent.text", "loop/1", 7, "2026-01-02T03:04:05.000Z", {"text": "hi"}, "2026-01-02T03:04:04Z"
    )
    assert to_cloudevent(event).decode() == (
        '{"specversion":"1.0","id":"7","source":"urn:ethogram:run:loop%2F1","type":"ethogram.agent.text",'
        '"datacontenttype":"application/json","time":"2026-01-02T03:04:04Z",'
        '"ethogramts":"2026-01-02T03:04:05.000Z","ethogramcapturedat":"2026-01-02T03:04:04Z",'
        '"data":{"text":"hi"}}'
    )
    for ts in ("noon", "2026-01-02", "2026-13-02T03:04:05Z"):
        assert "time" not in json.loads(to_cloudevent(Event("x", "r", 1, ts, None)))


def test_the_corpus_goes_there_and_back_unchanged(shared: Path) -> None:
    for file in sorted((shared / "ethogram" / "corpus" / "umwelt-golden").glob("*.jsonl")):
        for line in file.read_bytes().splitlines():
            event = parse_event_text(line)
            assert serialise_event(from_cloudevent(to_cloudevent(event))) == serialise_event(event)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"specversion": "0.3"}, "specversion"),
        ({"id": "0"}, "id"),
        ({"id": "9" * 40}, "seq"),
        ({"id": 1}, "id"),
        ({"source": "urn:other"}, "source"),
        ({"source": "urn:ethogram:run:%FF"}, "source"),
        ({"type": "x"}, "type"),
        ({"ethogramts": None}, "ethogramts"),
        ({"ethogramcapturedat": 5}, "ethogramcapturedat"),
        ({"type": "ethogram.agent.text"}, "payload.text"),
    ],
)
def test_what_is_no_event_of_ours_is_refused_with_its_place(changes: dict[str, object], path: str) -> None:
    good = json.loads(to_cloudevent(Event("x", "r", 1, "t", {}, "c")))
    with pytest.raises(ParseError) as fault:
        from_cloudevent(json.dumps(good | changes))
    assert fault.value.path == path


def test_an_object_with_data_is_asked_for() -> None:
    good = json.loads(to_cloudevent(Event("x", "r", 1, "t", {})))
    del good["data"]
    for value in (good, [good], None):
        with pytest.raises(ParseError):
            from_cloudevent(json.dumps(value))


def test_the_command_writes_one_cloudevent_a_line(tmp_path: Path) -> None:
    events = [Event("x", run_id, seq, "t", {"n": seq}) for run_id in ("a", "b") for seq in (1, 2)]
    lines = tmp_path / "events.jsonl"
    lines.write_bytes(b"\n".join([*map(serialise_event, events), b""]))
    result = CliRunner().invoke(cli, ["export", str(lines), "--cloudevents"])
    assert (result.exit_code, result.stderr) == (0, "4 events\n")
    assert [from_cloudevent(line) for line in result.stdout.splitlines()] == events
    file = tmp_path / "out.jsonl"
    assert CliRunner().invoke(cli, ["export", str(lines), "--cloudevents", "-o", str(file)]).exit_code == 0
    assert file.read_text() == result.stdout
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_command_that_does_not_say_where_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"")
    result = CliRunner().invoke(cli, ["export", str(tmp_path / "events.jsonl")])
    assert result.exit_code == 2
    nowhere = str(tmp_path / "none" / "file")
    result = CliRunner().invoke(cli, ["export", str(tmp_path), "--cloudevents", "-o", nowhere])
    assert (result.exit_code, "No such file" in result.stderr) == (1, True)
