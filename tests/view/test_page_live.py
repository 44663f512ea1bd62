"""``ethogram view --live``: on loopback alone, with events as they come, resumed where a reader was, ended cleanly."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from ethogram.cli import cli
from ethogram.envelope import EventDraft
from ethogram.page.feed import Feed
from ethogram.places import open_growing_runs
from ethogram.rundir import RunDirectory
from ethogram.sqlite import SqliteSink
from ethogram.testing import FINISHED, NOTE, STARTED
from tests.view.browser import Browser

CHILD = EventDraft("run.started", {"kind": "subagent", "actor": "a", "harness": "h", "parentRunId": "r"})


def clock() -> str:
    return "2026-01-02T03:04:05.000Z"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[RunDirectory]:
    with RunDirectory(tmp_path / "runs", clock=clock) as found:
        found.append("r", STARTED)
        yield found


@contextmanager
def served(place: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command as a process, and the address that it says."""
    command = [sys.executable, "-c", "from ethogram.cli import main; main()", "view", "--live", place]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


@contextmanager
def stream(address: str, last: int | None = None, **headers: str) -> Iterator[Iterator[dict[str, str]]]:
    """The messages of a server-sent stream, each as its fields."""
    split = urlsplit(address)
    connection = http.client.HTTPConnection(split.netloc, timeout=20)
    sent = headers if last is None else {**headers, "Last-Event-ID": str(last)}
    connection.request("GET", f"{split.path}?{split.query}", headers=sent)
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("Content-Type")) == (200, "text/event-stream")

    def messages() -> Iterator[dict[str, str]]:
        fields: dict[str, str] = {}
        while line := answer.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in {"id", "event", "data"}:
                fields[name] = value
            elif fields:
                yield fields
                fields = {}

    try:
        yield messages()
    finally:
        connection.close()


def page_at(address: str) -> tuple[str, dict[str, Any]]:
    page = urllib.request.urlopen(address, timeout=20).read().decode()  # noqa: S310 - our own address
    shown = page.split('id="content">', 1)[1].split("</script>", 1)[0]
    return page, json.loads(shown)


def test_a_page_and_then_each_event_as_it_is_written(runs: RunDirectory) -> None:
    with served(str(runs.root)) as (address, process):
        assert urlsplit(address).hostname == "127.0.0.1"
        page, shown = page_at(address)
        assert [len(run["rows"]) for run in shown["runs"]] == [1]
        assert "connect-src 'self'" in page
        with stream(address + shown["live"]["events"]) as messages:
            runs.append("r", NOTE)
            first = next(messages)
            runs.append("r/child", CHILD)
            second = next(messages)
        assert (first["event"], int(second["id"])) == ("event", int(first["id"]) + 1)
        data = json.loads(first["data"])
        assert (data["overview"]["runId"], data["row"][:2]) == ("r", [2, "test.note"])
        assert json.loads(second["data"])["root"]["runId"] == "r"
        # A reader that comes back goes on behind the last one it had.
        with stream(address + shown["live"]["events"], last=int(first["id"])) as messages:
            assert next(messages) == second
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_one_run_is_sent_by_its_seq_and_the_stream_ends_with_it(runs: RunDirectory) -> None:
    runs.append("r", NOTE)
    with served(str(runs.root)) as (address, process):
        with stream(f"{address}events?run=r", last=1) as messages:
            second = next(messages)
            assert (second["id"], json.loads(second["data"])["seq"]) == ("2", 2)
            runs.append("r", FINISHED)
            third = next(messages)
            assert (third["id"], json.loads(third["data"])["type"]) == ("3", "run.finished")
            assert next(messages)["event"] == "end"
            assert list(messages) == []
        with stream(f"{address}events?run=r&after=2") as messages:
            assert next(messages)["id"] == "3"
        process.terminate()
        assert process.wait(timeout=20) == 0


def test_a_reader_of_another_feed_is_told_to_begin_anew(runs: RunDirectory) -> None:
    with served(str(runs.root)) as (address, _):
        for query in ("feed=other&after=0", "after=0", "feed={}&after=999"):
            secret = urlsplit(address).path.strip("/")
            with stream(f"{address}events?{query.format(secret)}") as messages:
                assert next(messages)["event"] == "reset"


def status(address: str, **headers: str) -> int:
    request = urllib.request.Request(address, headers=headers)  # noqa: S310 - our own address
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        with fault:
            return fault.code


def test_only_who_knows_the_address_reads_the_page(runs: RunDirectory) -> None:
    with served(str(runs.root)) as (address, _):
        origin = address.rsplit("/", 2)[0]
        assert status(address) == 200
        assert status(address, Host="localhost:80") == 200
        assert status(address, Host="evil.example") == 403
        assert status(origin + "/") == 404
        assert status(f"{origin}/wrong/") == 404
        assert status(f"{address}other") == 404


def test_ctrl_c_ends_it_while_readers_wait(runs: RunDirectory) -> None:
    with (
        served(str(runs.root)) as (address, process),
        stream(f"{address}events?run=r&after=1") as messages,
    ):
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert list(messages) == []


def test_a_database_can_be_followed_too(tmp_path: Path) -> None:
    with SqliteSink(tmp_path / "events.db", clock=clock) as sink:
        sink.append("r", STARTED)
        with (
            served(f"sqlite:{tmp_path / 'events.db'}") as (address, _),
            stream(f"{address}events?run=r&after=1") as messages,
        ):
            sink.append("r", NOTE)
            assert next(messages)["id"] == "2"


def test_an_open_page_draws_what_comes(runs: RunDirectory, chromium: Browser) -> None:
    with served(str(runs.root)) as (address, process):
        chromium.open(address)
        chromium.wait_for("document.getElementById('live').textContent === 'live'")
        runs.append("r", EventDraft("songs.sung", {"verses": 3}))
        runs.append("r/child", CHILD)
        chromium.wait_for("document.getElementById('rows').textContent.includes('songs.sung')")
        chromium.wait_for("document.getElementById('glance').textContent.includes('3 events in 2 runs')")
        runs.append("r", FINISHED)
        chromium.wait_for("document.getElementById('run-outcome').textContent === 'completed'")
        assert chromium.complaints == []
        assert all(each.startswith(address) for each in chromium.requests)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        chromium.wait_for("document.getElementById('live').textContent.startsWith('connection lost')")
        chromium.open("about:blank#", ready=False)


def test_a_feed_keeps_so_many_messages_and_no_more(runs: RunDirectory) -> None:
    with open_growing_runs(str(runs.root)) as store:
        feed = Feed(store, kept_messages=2)
        for _ in range(3):
            runs.append("r", NOTE)
        assert feed.poll() == 4
        assert feed.poll() == 0
        assert feed.after(0, 0.01) is None
        assert feed.after(1, 0.01) is None
        kept = feed.after(2, 0.01)
        assert kept is not None
        assert [message.position for message in kept] == [3, 4]
        assert feed.after(4, 0.01) == []
        assert feed.after(5, 0.01) is None
        feed.close()
        assert feed.closed
        assert feed.after(4, 60) == []


def test_a_run_that_breaks_is_told_and_the_others_go_on(runs: RunDirectory) -> None:
    with open_growing_runs(str(runs.root)) as store:
        feed = Feed(store)
        feed.poll()
        with runs.path("r").open("ab") as file:
            file.write(b"nonsense\n")
        runs.append("other", STARTED)
        assert feed.poll() == 1
        shown, position = feed.page_runs()
        assert position == 2
        assert [len(run.rows) for run in shown] == [1, 1]


@pytest.mark.parametrize("arguments", [["a", "b"], ["a", "-o", "page.html"]])
def test_live_takes_one_place_and_no_file(arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["view", "--live", *arguments]).exit_code == 2


def test_a_port_that_is_taken_is_an_error_without_a_traceback(runs: RunDirectory) -> None:
    with served(str(runs.root)) as (address, _):
        result = CliRunner().invoke(
            cli, ["view", "--live", str(runs.root), "--port", str(urlsplit(address).port)]
        )
        assert (result.exit_code, "in use" in result.output) == (1, True)
