"""Runs as traces: one a tree, in the words of the GenAI conventions, taken by a receiver on loopback."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from ethogram.canonical import serialise_event
from ethogram.cli import cli
from ethogram.envelope import Event, parse_event_text
from ethogram.json_text import Json
from ethogram.overview import arrange, summarise
from ethogram.traces import Span, tree_spans

AT = 1_767_323_045  # 2026-01-02T03:04:05Z


def events(run_id: str, *steps: tuple[int, str, Json]) -> list[Event]:
    return [
        Event(type_name, run_id, seq, f"2026-01-02T03:04:{5 + second:02}.250Z", payload)
        for seq, (second, type_name, payload) in enumerate(steps, 1)
    ]


def started(kind: str, actor: str, **more: Json) -> Json:
    return {"kind": kind, "actor": actor, "harness": "harness", **more}


LOOP = events(
    "loop",
    (0, "run.started", started("loop", "driver")),
    (1, "gate.evaluated", {"green": True}),
    (20, "run.finished", {"outcome": "completed", "durationMs": 20_000}),
)
AGENT = events(
    "loop/a",
    (2, "run.started", started("subagent", "developer", parentRunId="loop", model="opus")),
    (3, "agent.started", {"stage": "code", "sessionId": "s1", "model": "opus"}),
    (4, "agent.tool_use", {"tool": "Task", "toolUseId": "t1", "inputExcerpt": "secret plan"}),
    (5, "agent.tool_use", {"tool": "Bash", "toolUseId": "t2", "parentToolUseId": "t1"}),
    (6, "agent.tool_result", {"tool": "Bash", "toolUseId": "t2", "isError": True, "resultExcerpt": "boom"}),
    (7, "agent.tool_result", {"tool": "Task", "toolUseId": "t1"}),
    (8, "agent.text", {"text": "thinking aloud"}),
    (
        9,
        "agent.completed",
        {
            "costUsd": 0.25,
            "turns": 3,
            "usage": {"inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 100, "cacheCreationTokens": 7},
        },
    ),
    (10, "run.finished", {"outcome": "timed-out", "durationMs": 8_000}),
)


def traced(*runs: Sequence[Event], narration: bool = False) -> dict[str, Span]:
    """Spans by name and, where one name comes twice, by the first."""
    roots = arrange(summarise(run[0].run_id, run) for run in runs)
    found: dict[str, Span] = {}
    for root in roots:
        for span in tree_spans(root, {run[0].run_id: run for run in runs}, narration=narration):
            assert span.end_ns >= span.start_ns
            found.setdefault(span.name, span)
    return found


def test_a_tree_of_runs_is_one_trace_of_nested_spans() -> None:
    spans = traced(LOOP, AGENT)
    assert list(spans) == [
        "invoke_workflow driver",
        "invoke_agent developer",
        "invoke_agent code",
        "execute_tool Task",
        "execute_tool Bash",
    ]
    assert len({span.trace_id for span in spans.values()}) == 1
    assert spans["invoke_workflow driver"].parent_id == b""
    for inner, outer in zip(list(spans)[1:], list(spans), strict=False):
        assert spans[inner].parent_id == spans[outer].span_id
    assert {len(span.trace_id) for span in spans.values()} == {16}
    assert len({span.span_id for span in spans.values()}) == len(spans)
    tool = spans["execute_tool Bash"]
    assert (tool.start_ns, tool.end_ns) == ((AT + 5) * 10**9 + 250_000_000, (AT + 6) * 10**9 + 250_000_000)


def test_attributes_are_those_of_the_conventions() -> None:
    spans = traced(LOOP, AGENT)
    agent = spans["invoke_agent code"]
    assert agent.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "code",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.model": "opus",
        "ethogram.agent.turns": 3,
        "ethogram.cost_usd": 0.25,
        "gen_ai.usage.input_tokens": 117,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.usage.cache_creation.input_tokens": 7,
    }
    assert spans["execute_tool Bash"].attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "t2",
    }
    loop = spans["invoke_workflow driver"].attributes
    assert (loop["gen_ai.workflow.name"], loop["ethogram.run.outcome"]) == ("driver", "completed")
    assert "ethogram.run.open" not in loop


def test_failures_are_errors_and_other_ends_are_not() -> None:
    spans = traced(LOOP, AGENT)
    assert {name: span.error for name, span in spans.items() if span.error} == {
        "invoke_agent developer": "timed-out",
        "execute_tool Bash": "tool_error",
    }
    blocked = events(
        "b",
        (0, "run.started", started("session", "a")),
        (1, "run.finished", {"outcome": "blocked", "durationMs": 1}),
    )
    assert traced(blocked)["invoke_agent a"].error == ""


def test_what_agents_said_is_sent_only_where_that_is_asked_for() -> None:
    def everything(spans: dict[str, Span]) -> str:
        return str([(span.attributes, span.events) for span in spans.values()])

    quiet, open_hearted = everything(traced(LOOP, AGENT)), everything(traced(LOOP, AGENT, narration=True))
    for words in ("secret plan", "boom", "thinking aloud"):
        assert words not in quiet
        assert words in open_hearted
    assert "green" in quiet


def test_what_never_ended_lasts_as_long_as_its_run_is_known_and_says_so() -> None:
    run = events(
        "r",
        (0, "run.started", started("session", "a")),
        (1, "agent.started", {}),
        (2, "agent.tool_use", {"tool": "Bash"}),
        (4, "agent.warning", {"message": "slow"}),
    )
    spans = traced(run)
    assert spans["invoke_agent a"].attributes["ethogram.run.open"] is True
    assert spans["execute_tool Bash"].attributes["ethogram.open"] is True
    assert spans["execute_tool Bash"].end_ns == (AT + 4) * 10**9 + 250_000_000


def test_ends_without_a_beginning_and_second_beginnings_do_no_harm() -> None:
    run = events(
        "r",
        (0, "agent.tool_result", {"tool": "Bash", "toolUseId": "t"}),
        (1, "agent.tool_result", {"tool": "Read"}),
        (2, "agent.completed", {"costUsd": 1}),
        (3, "agent.started", {"stage": "first"}),
        (4, "agent.started", {"stage": "second"}),
        (5, "agent.tool_result", {"tool": "Bash", "toolUseId": "t"}),
        (6, "x", None),
    )
    names = [span.name for span in tree_spans(arrange([summarise("r", run)])[0], {"r": run}, narration=False)]
    assert names == [
        "invoke_agent r",
        "execute_tool Bash",
        "execute_tool Read",
        "invoke_agent r",
        "invoke_agent first",
        "invoke_agent second",
        "execute_tool Bash",
    ]


def test_a_run_without_a_readable_time_has_no_span_and_one_time_is_enough() -> None:
    assert traced([Event("x", "r", 1, "noon", None)]) == {}
    late = [Event("x", "r", 1, "noon", None), Event("y", "r", 2, "2026-01-02T03:04:05Z", None)]
    assert [event.time_ns for event in traced(late)["invoke_agent r"].events] == [AT * 10**9] * 2


def test_exporting_again_gives_the_same_ids() -> None:
    first, second = traced(LOOP, AGENT), traced(LOOP, AGENT)
    assert [span.span_id for span in first.values()] == [span.span_id for span in second.values()]


def test_a_captured_session_is_one_trace(shared: Path) -> None:
    stream = shared / "ethogram" / "corpus" / "umwelt-golden" / "claude-subagent.expected.jsonl"
    run = [parse_event_text(line) for line in stream.read_bytes().splitlines()]
    spans = traced(run)
    shell, caller = (
        spans["execute_tool Bash"],
        next(span for name, span in spans.items() if name.endswith(("Agent", "Task"))),
    )
    assert shell.parent_id == caller.span_id


# ---- Sending -----------------------------------------------------------------------------------------------------


class Collector(HTTPServer):
    """A receiver on loopback that answers as it is told, and takes what it is sent apart."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def spans(self) -> list[Any]:
        service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        found = []
        for _, _, body in self.requests:
            request = service.ExportTraceServiceRequest.FromString(gzip.decompress(body))
            for resource in request.resource_spans:
                assert resource.resource.attributes[0].value.string_value == "harness"
                found += [span for scope in resource.scope_spans for span in scope.spans]
        return found


class _Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.path, dict(self.headers), body))
        status, headers, answer = self.server.answers.pop(0) if self.server.answers else (200, {}, b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.proto", reason="the extra otel is not installed")
    with Collector() as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def place(tmp_path: Path) -> str:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b"\n".join([*map(serialise_event, [*LOOP, *AGENT]), b""]))
    return str(file)


def export(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["export", *arguments])


def test_a_collector_is_sent_the_spans_of_a_place(collector: Collector, place: str) -> None:
    result = export(place, "--otlp", collector.url, "--header", "X-Who=me")
    assert (result.exit_code, result.stderr) == (0, "5 spans\n")
    ((path, headers, _),) = collector.requests
    assert (path, headers["X-Who"]) == ("/v1/traces", "me")
    assert headers["Content-Type"] == "application/x-protobuf"
    by_name = {span.name: span for span in collector.spans()}
    agent = by_name["invoke_agent code"]
    values = defaultdict(str, {each.key: each.value for each in agent.attributes})
    assert values["gen_ai.usage.input_tokens"].int_value == 117
    assert values["ethogram.cost_usd"].double_value == 0.25
    assert agent.parent_span_id == by_name["invoke_agent developer"].span_id
    failed = by_name["execute_tool Bash"]
    assert (failed.status.code, failed.status.message) == (2, "tool_error")
    assert [event.name for event in by_name["invoke_workflow driver"].events] == [
        "run.started",
        "gate.evaluated",
        "run.finished",
    ]


def test_a_busy_collector_is_asked_again_when_it_says(collector: Collector, place: str) -> None:
    from ethogram.otlp import ExportFault, send_spans

    waits: list[float] = []
    spans = list(traced(LOOP).values())
    collector.answers = [(503, {"Retry-After": "7"}, b""), (429, {}, b""), (200, {}, b"\xff")]
    assert send_spans(spans, collector.url + "/own/path?q=1", sleep=waits.append) == 1
    assert waits == [7.0, 2.0]
    assert {path for path, _, _ in collector.requests} == {"/own/path?q=1"}
    collector.answers = [(503, {}, b"")] * 5
    with pytest.raises(ExportFault, match="answered 503"):
        send_spans(spans, collector.url, sleep=waits.append)
    collector.answers = [(400, {}, b"")]
    with pytest.raises(ExportFault, match="answered 400"):
        send_spans(spans, collector.url, sleep=waits.append)


def test_what_a_collector_refuses_is_told(collector: Collector, place: str) -> None:
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    refusal = service.ExportTraceServiceResponse()
    refusal.partial_success.rejected_spans = 2
    collector.answers = [(200, {}, refusal.SerializeToString())]
    from ethogram.errors import EthogramError

    result = export(place, "--otlp", collector.url)
    assert isinstance(result.exception, EthogramError)
    assert str(result.exception) == "the collector refused 2 of 5 spans; 3 were taken"


def test_many_spans_go_in_several_requests(collector: Collector) -> None:
    from ethogram.otlp import MAX_SPANS, send_spans

    (span,) = traced(LOOP).values()
    assert send_spans([span] * (MAX_SPANS + 1), collector.url, sleep=lambda _: None) == MAX_SPANS + 1
    assert len(collector.requests) == 2
    assert send_spans([], collector.url, sleep=lambda _: None) == 0


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost", "must be a URL"),
        ("ftp://x", "must be a URL"),
        ("http://x:y", "must be a URL"),
        ("http://127.0.0.1:9", "could not be reached"),
    ],
)
def test_a_collector_that_is_none_is_named(url: str, said: str, place: str) -> None:
    pytest.importorskip("opentelemetry.proto", reason="the extra otel is not installed")
    assert said in str(export(place, "--otlp", url).exception)


@pytest.mark.parametrize("header", ["no-equals", "=x", "a=\x01"])
def test_a_header_that_is_none_is_refused(header: str, place: str) -> None:
    assert export(place, "--otlp", "http://127.0.0.1:9", "--header", header).exit_code == 2


def test_one_export_at_a_time(place: str) -> None:
    assert export(place, "--otlp", "http://127.0.0.1:9", "--cloudevents").exit_code == 2
