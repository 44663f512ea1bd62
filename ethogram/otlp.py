"""
Traces sent to an OpenTelemetry collector: OTLP over HTTP, in its protobuf form. Needs the extra ``otel``.

Source: OpenTelemetry Protocol specification 1.x, OTLP/HTTP.
"""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from ethogram.errors import EthogramError
from ethogram.traces import AttributeValue, Span

MAX_SPANS = 512
"""How many spans go into one request."""

_PATH = "/v1/traces"
_TIMEOUT_SECONDS = 30.0
_TRIES = 5
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 30.0
# What the specification says may be tried again.
_AGAIN = frozenset((429, 502, 503, 504))


class ExportFault(EthogramError):  # noqa: N818  what it says
    """
    Raised when a collector could not be reached, or refused spans.

    Args:
        message: What is wrong. It names the host, and never a span.
    """


def send_spans(
    spans: Iterable[Span],
    url: str,
    *,
    sleep: Callable[[float], object],
    headers: Mapping[str, str] | None = None,
) -> int:
    """
    Send spans to a collector, some at a time.

    A request that a collector is too busy for is tried again, five times in all, and later if the collector
    says when. What was sent before a fault stays sent; ids are the same the next time.

    Args:
        spans: The spans.

        url: The collector: ``http://HOST:4318``. Without a path it is ``/v1/traces``.

        sleep: Waits so many seconds: ``time.sleep``.

        headers: More headers, such as one that says who asks.

    Returns:
        How many spans the collector took.

    Raises:
        ExportFault: The address is none, the collector could not be reached, or it refused something.
    """
    sent = 0
    for batch in _batches(spans):
        body = gzip.compress(_request(batch).SerializeToString())
        answer = _post(url, body, headers or {}, sleep)
        refused = _refused(answer)
        sent += len(batch) - refused
        if refused:
            raise ExportFault(f"the collector refused {refused} of {len(batch)} spans; {sent} were taken")
    return sent


def _batches(spans: Iterable[Span]) -> Iterator[list[Span]]:
    batch: list[Span] = []
    for span in spans:
        batch.append(span)
        if len(batch) == MAX_SPANS:
            yield batch
            batch = []
    if batch:
        yield batch


def _request(spans: list[Span]) -> ExportTraceServiceRequest:
    by_service: dict[str, list[ProtoSpan]] = {}
    for span in spans:
        by_service.setdefault(span.service, []).append(_proto(span))
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(
                resource=Resource(attributes=_attributes({"service.name": service})),
                scope_spans=[ScopeSpans(scope=InstrumentationScope(name="ethogram"), spans=found)],
            )
            for service, found in by_service.items()
        ]
    )


def _proto(span: Span) -> ProtoSpan:
    attributes = span.attributes | ({"error.type": span.error} if span.error else {})
    status = Status(code=Status.STATUS_CODE_ERROR, message=span.error) if span.error else Status()
    return ProtoSpan(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_id,
        name=span.name,
        kind=ProtoSpan.SPAN_KIND_INTERNAL,
        start_time_unix_nano=span.start_ns,
        end_time_unix_nano=span.end_ns,
        attributes=_attributes(attributes),
        events=[
            ProtoSpan.Event(
                name=event.name, time_unix_nano=event.time_ns, attributes=_attributes(event.attributes)
            )
            for event in span.events
        ],
        status=status,
    )


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: AttributeValue) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)


def _refused(answer: bytes) -> int:
    response = ExportTraceServiceResponse()
    try:
        response.ParseFromString(answer)
    except DecodeError:
        return 0  # a collector may answer in other words; what counts is its status
    return int(response.partial_success.rejected_spans)


def _post(url: str, body: bytes, headers: Mapping[str, str], sleep: Callable[[float], object]) -> bytes:
    host, path, connect = _target(url)
    sent = {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "gzip",
        "User-Agent": "ethogram",
        **headers,
    }
    wait = _FIRST_WAIT_SECONDS
    for left in range(_TRIES - 1, -1, -1):
        connection = connect()
        try:
            connection.request("POST", path, body, sent)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, HTTPException) as fault:
            raise ExportFault(f"{host}: the collector could not be reached") from fault
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return answer
        if response.status not in _AGAIN or not left:
            raise ExportFault(f"{host}: the collector answered {response.status}")
        asked = response.getheader("Retry-After", "")
        sleep(min(float(asked) if asked.isdigit() else wait, _LONGEST_WAIT_SECONDS))
        wait *= 2
    raise AssertionError  # the last try returns or raises


def _target(url: str) -> tuple[str, str, Callable[[], HTTPConnection]]:
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        host, port = None, None
    if host is None or split.scheme not in ("http", "https"):
        raise ExportFault("the collector's address must be a URL such as http://localhost:4318")
    path = split.path if split.path not in ("", "/") else _PATH
    if split.query:
        path = f"{path}?{split.query}"
    name = host

    def connect() -> HTTPConnection:
        if split.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(name, port, timeout=_TIMEOUT_SECONDS, context=context)
        return HTTPConnection(name, port, timeout=_TIMEOUT_SECONDS)

    return host, path, connect
