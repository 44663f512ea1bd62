"""
Runs as traces: one trace a tree of runs, in the words of the OpenTelemetry GenAI semantic conventions.

A run is a span (``invoke_workflow`` for a loop or relay, else ``invoke_agent``), each stretch from
``agent.started`` to ``agent.completed`` an ``invoke_agent`` span in it, each tool call an ``execute_tool`` span
beneath whoever called; every other event is a span event of its run. Ids are worked out from run ids and seqs, so
that exporting again gives the same spans. Source: OpenTelemetry semantic conventions for generative AI, 1.41.

Times are those at which events happened. An event whose time cannot be read has that of the one before it, and a
run of which none can be read has no span.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TypeAlias

from attrs import define, field, frozen

from ethogram.canonical import canonical_payload
from ethogram.envelope import Event
from ethogram.json_text import Json
from ethogram.moment import happened, instant_ms
from ethogram.overview import RunTree
from ethogram.usage import Spending, fold_usage
from ethogram.vocabulary import EVENT_TYPES, RUN_FINISHED, RUN_STARTED

AttributeValue: TypeAlias = str | bool | int | float

FAILED_OUTCOMES = frozenset(("failed", "timed-out", "permission-denied", "unstarted"))
"""The outcomes that are errors of their run. ``blocked``, ``capped`` and ``no-op`` are not."""

_WORKFLOWS = frozenset(("loop", "relay"))
_NARRATION = frozenset(("text", "inputExcerpt", "resultExcerpt"))
_CONTENT = "ethogram.payload"


@frozen
class SpanEvent:
    """
    Something that happened within a span.

    Args:
        name: The event's type.

        time_ns: Nanoseconds since 1970 UTC.

        attributes: What it says.
    """

    name: str
    time_ns: int
    attributes: Mapping[str, AttributeValue]


@define
class Span:
    """
    A stretch of a run.

    Args:
        trace_id: 16 bytes, the same for a whole tree.

        span_id: 8 bytes.

        parent_id: The span around it; empty for the root of its tree.

        name: What is done, and by whom.

        start_ns: Nanoseconds since 1970 UTC.

        end_ns: Nanoseconds since 1970 UTC, never before the start.

        service: The harness: what OpenTelemetry calls ``service.name``.

        attributes: What is known of it.

        events: What happened within it.

        error: What went wrong; empty where nothing did.
    """

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    start_ns: int
    end_ns: int
    service: str
    attributes: dict[str, AttributeValue] = field(factory=dict)
    events: list[SpanEvent] = field(factory=list)
    error: str = ""


def tree_spans(tree: RunTree, events: Mapping[str, Sequence[Event]], *, narration: bool) -> Iterator[Span]:
    """
    Make the trace of a tree.

    Args:
        tree: The tree.

        events: The events of each of its runs, by run id.

        narration: Whether what agents said and what tools were given and gave is exported too.

    Yields:
        Spans, those of a run before those of the runs beneath it.
    """
    trace_id = _id(16, "trace", tree.run.run_id)
    spans_of: dict[str, bytes] = {}
    for _, each in tree.walk():
        run_id = each.run.run_id
        parent = spans_of.get(each.run.parent_run_id or "", b"")
        found = _RunTrace(each, trace_id, parent, narration=narration).spans(events.get(run_id, ()))
        if found:
            spans_of[run_id] = found[0].span_id
        yield from found


class _RunTrace:
    """The spans of one run, made event by event."""

    def __init__(self, tree: RunTree, trace_id: bytes, parent_id: bytes, *, narration: bool) -> None:
        self._run = tree.run
        self._trace_id = trace_id
        self._parent_id = parent_id
        self._narration = narration
        self._spans: list[Span] = []
        self._agent: Span | None = None
        self._tools: dict[str, Span] = {}

    def spans(self, events: Sequence[Event]) -> list[Span]:
        timed = list(_timed(events))
        if not timed:
            return []
        run = self._span("run", timed[0][1], *self._run_name())
        run.end_ns = max(time_ns for _, time_ns in timed)
        run.attributes |= self._run_attributes(events)
        for event, time_ns in timed:
            self._take(run, event, time_ns)
        for span in self._spans:
            if span.end_ns < span.start_ns:
                # It never ended: it lasts as long as anything of its run is known, and says so.
                span.end_ns = run.end_ns
                span.attributes["ethogram.open"] = True
        return self._spans

    def _span(self, key: str, start_ns: int, name: str, operation: str, parent: Span | None = None) -> Span:
        """A span that has not ended yet: its end lies before its start."""
        span = Span(
            self._trace_id,
            _id(8, self._run.run_id, key),
            parent.span_id if parent is not None else self._parent_id,
            name,
            start_ns,
            -1,
            self._run.harness or "ethogram",
            {"gen_ai.operation.name": operation},
        )
        self._spans.append(span)
        return span

    def _run_name(self) -> tuple[str, str]:
        actor = self._run.actor or self._run.run_id
        operation = "invoke_workflow" if self._run.kind in _WORKFLOWS else "invoke_agent"
        return f"{operation} {actor}", operation

    def _run_attributes(self, events: Sequence[Event]) -> dict[str, AttributeValue]:
        run = self._run
        name = "gen_ai.workflow.name" if run.kind in _WORKFLOWS else "gen_ai.agent.name"
        stated: dict[str, AttributeValue | None] = {
            name: run.actor,
            "gen_ai.request.model": run.model,
            "ethogram.run.id": run.run_id,
            "ethogram.run.kind": run.kind,
            "ethogram.run.parent_id": run.parent_run_id,
            "ethogram.run.outcome": run.outcome,
            "ethogram.run.duration_ms": run.duration_ms,
            "ethogram.run.open": True if run.open else None,
        }
        found = {key: value for key, value in stated.items() if value is not None}
        return found | _usage_attributes(fold_usage(events))

    def _take(self, run: Span, event: Event, time_ns: int) -> None:
        payload = event.payload if isinstance(event.payload, dict) else {}
        if event.type == "agent.started":
            self._start_agent(run, event, payload, time_ns)
        elif event.type == "agent.completed":
            self._end_agent(run, event, payload, time_ns)
        elif event.type == "agent.tool_use":
            self._start_tool(run, event, payload, time_ns)
        elif event.type == "agent.tool_result":
            self._end_tool(run, event, payload, time_ns)
        else:
            if event.type == RUN_FINISHED and payload.get("outcome") in FAILED_OUTCOMES:
                run.error = str(payload["outcome"])
            holder = run
            if event.type.startswith("agent."):
                holder = self._agent or run
            holder.events.append(SpanEvent(event.type, time_ns, self._said(event)))

    def _start_agent(self, run: Span, event: Event, payload: Mapping[str, Json], time_ns: int) -> None:
        if self._agent is not None:
            self._agent.end_ns = time_ns
        name = _text(payload, "stage") or self._run.actor or self._run.run_id
        span = self._span(str(event.seq), time_ns, f"invoke_agent {name}", "invoke_agent", run)
        span.attributes["gen_ai.agent.name"] = name
        _copy(payload, span, sessionId="gen_ai.conversation.id", model="gen_ai.request.model")
        self._agent = span

    def _end_agent(self, run: Span, event: Event, payload: Mapping[str, Json], time_ns: int) -> None:
        span = self._agent
        if span is None:
            self._start_agent(run, event, payload, time_ns)
            span = self._agent
            assert span is not None  # noqa: S101 - it has just been started
        span.end_ns = time_ns
        _copy(payload, span, sessionId="gen_ai.conversation.id", model="gen_ai.response.model")
        turns = payload.get("turns")
        if isinstance(turns, int):
            span.attributes["ethogram.agent.turns"] = turns
        span.attributes |= _usage_attributes(fold_usage([event]))
        self._agent = None

    def _start_tool(self, run: Span, event: Event, payload: Mapping[str, Json], time_ns: int) -> None:
        tool = _text(payload, "tool")
        caller = self._tools.get(_text(payload, "parentToolUseId")) or self._agent or run
        span = self._span(str(event.seq), time_ns, f"execute_tool {tool}", "execute_tool", caller)
        span.attributes |= {"gen_ai.tool.name": tool, "gen_ai.tool.type": "function"}
        _copy(payload, span, toolUseId="gen_ai.tool.call.id")
        if self._narration:
            _copy(payload, span, inputExcerpt="gen_ai.tool.call.arguments")
        self._tools[_text(payload, "toolUseId") or f"{event.seq} {tool}"] = span

    def _end_tool(self, run: Span, event: Event, payload: Mapping[str, Json], time_ns: int) -> None:
        call = _text(payload, "toolUseId")
        span = self._tools.get(call)
        if span is None or span.end_ns >= span.start_ns:
            # A result without a use: it is kept where it came.
            self._start_tool(run, event, payload, time_ns)
            span = self._tools[call or f"{event.seq} {_text(payload, 'tool')}"]
        span.end_ns = max(time_ns, span.start_ns)
        if payload.get("isError") is True:
            span.error = "tool_error"
        if self._narration:
            _copy(payload, span, resultExcerpt="gen_ai.tool.call.result")

    def _said(self, event: Event) -> dict[str, AttributeValue]:
        said: dict[str, AttributeValue] = {"ethogram.seq": event.seq}
        if event.type in (RUN_STARTED, RUN_FINISHED):
            return said
        payload = event.payload
        if not self._narration and event.type in EVENT_TYPES and isinstance(payload, dict):
            payload = {name: value for name, value in payload.items() if name not in _NARRATION}
        return said | {_CONTENT: canonical_payload(payload).decode()}


def _timed(events: Iterable[Event]) -> Iterator[tuple[Event, int]]:
    """Events with their times in nanoseconds; those before the first that has one have that."""
    waiting: list[Event] = []
    before: int | None = None
    for event in events:
        instant = instant_ms(happened(event))
        if instant is not None and instant >= 0:
            before = round(instant * 1_000) * 1_000
        waiting.append(event)
        if before is not None:
            for each in waiting:
                yield each, before
            waiting = []


def _usage_attributes(spending: Spending) -> dict[str, AttributeValue]:
    found: dict[str, AttributeValue] = {}
    if spending.cost_usd is not None:
        found["ethogram.cost_usd"] = float(spending.cost_usd)
    tokens = spending.usage.get("tokens", {})
    reading, creating = tokens.get("cacheReadTokens"), tokens.get("cacheCreationTokens")
    if "inputTokens" in tokens:
        # The conventions count what a cache gave as input; ethogram's inputTokens does not.
        found["gen_ai.usage.input_tokens"] = tokens["inputTokens"] + (reading or 0) + (creating or 0)
    if "outputTokens" in tokens:
        found["gen_ai.usage.output_tokens"] = tokens["outputTokens"]
    if reading is not None:
        found["gen_ai.usage.cache_read.input_tokens"] = reading
    if creating is not None:
        found["gen_ai.usage.cache_creation.input_tokens"] = creating
    return found


def _copy(payload: Mapping[str, Json], span: Span, **attributes: str) -> None:
    """Take texts of a payload over under the names that the conventions give them."""
    for name, attribute in attributes.items():
        text = _text(payload, name)
        if text:
            span.attributes[attribute] = text


def _text(payload: Mapping[str, Json], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _id(size: int, *parts: str) -> bytes:
    """An id of so many bytes, the same for the same parts and other for others."""
    digest = sha256()
    for part in parts:
        text = part.encode()
        digest.update(b"%d:" % len(text) + text)
    return digest.digest()[:size]
