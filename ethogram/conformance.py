"""
``python -m ethogram.conformance``: answers the requests of the shared conformance vectors.

One JSON request a line on standard input, one JSON answer a line on standard output. It shows that this SDK
agrees with the TypeScript and Rust ones; it is no part of a product's path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import orjson

from ethogram.canonical import canonical_payload, format_number, serialise_event
from ethogram.decision import check_answer
from ethogram.envelope import EventDraft, parse_event, parse_event_text
from ethogram.errors import EthogramError
from ethogram.excerpts import excerpt
from ethogram.faults import OutOfSequence, SinkFault
from ethogram.fold import fold_run
from ethogram.json_text import ParseError, check_representable
from ethogram.memory import MemorySink
from ethogram.validation import ValidationError, serialise_validation_error, validate

# Requests and answers are whatever the vectors hold: this one boundary is untyped.
Request = dict[str, Any]
Answer = dict[str, Any]

_LONGEST_INTEGER_DIGITS = 310


def answer(request: Request) -> Answer:
    """
    Answer one request.

    Args:
        request: ``op`` and what that operation needs.

    Returns:
        ``ok`` and the result; a refusal has ``details`` or ``error``.
    """
    for token, (unit, times) in request.pop("expand", {}).items():
        request = _expanded(request, token, unit * times)
    try:
        return {"ok": True, **_OPERATIONS[request["op"]](request)}
    except ValidationError as fault:
        details = orjson.loads(serialise_validation_error(fault))
        return {"ok": False, "details": details, "message": str(fault)}
    except EthogramError as fault:
        return {"ok": False, "error": str(fault)}


def serve(lines: Iterable[bytes]) -> Iterator[bytes]:
    """
    Answer requests.

    Args:
        lines: One JSON request a line, cut at 0x0A.

    Yields:
        One JSON answer a line, with its newline.
    """
    for line in lines:
        yield json.dumps(answer(json.loads(line))).encode() + b"\n"


def _expanded(value: Any, token: str, text: str) -> Any:
    """A request in which each occurrence of a token is replaced: the vectors keep long strings short."""
    if isinstance(value, str):
        return value.replace(token, text)
    if isinstance(value, list):
        return [_expanded(item, token, text) for item in value]
    if isinstance(value, dict):
        return {key: _expanded(item, token, text) for key, item in value.items()}
    return value


def _lenient(text: str) -> Any:
    """Decode as JavaScript does: lone surrogates are kept, a number out of range has no end."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(text, parse_int=_double_if_long)
    except ValueError:
        raise ParseError("not JSON") from None


def _double_if_long(digits: str) -> int | float:
    return int(digits) if len(digits) < _LONGEST_INTEGER_DIGITS else float(digits)


def _roundtrip(request: Request) -> Answer:
    return {"out": serialise_event(parse_event_text(request["text"])).decode()}


def _validate(request: Request) -> Answer:
    value = _lenient(request["text"])
    validate(value["type"], value["payload"])
    return {}


def _canonical(request: Request) -> Answer:
    return {"out": canonical_payload(_lenient(request["text"])).decode()}


def _number(request: Request) -> Answer:
    number = _lenient(request["text"])
    try:
        check_representable(number)
    except ParseError:
        return {"literal": format_number(number), "parse_ok": False}
    return {"literal": format_number(number), "parse_ok": True}


def _excerpt(request: Request) -> Answer:
    return excerpt(request["text"], request["max"])._asdict()


def _answer_vs_request(request: Request) -> Answer:
    check_answer(request["request"], request["answer"])
    return {}


def _sink(request: Request) -> Answer:
    ticks = count(1)
    sink = MemorySink(clock=lambda: f"clock-{next(ticks)}", validate=False)
    return {"results": [_step(sink, step) for step in request["steps"]]}


def _step(sink: MemorySink, step: Request) -> Answer:
    try:
        match step["do"]:
            case "draft":
                draft = step["draft"]
                event = sink.append(
                    step["runId"], EventDraft(draft["type"], draft["payload"], draft.get("capturedAt"))
                )
            case "event":
                event = parse_event(step["event"])
                sink.forward(event)
            case _:
                return {"ok": True, "seqs": [event.seq for event in sink.read_from(step["runId"])]}
    except OutOfSequence as fault:
        return {"ok": False, "runId": fault.run_id, "expected": fault.expected, "received": fault.received}
    except SinkFault as fault:
        return {"ok": False, "runId": fault.run_id}
    except ParseError as fault:
        return {"ok": False, "error": str(fault)}
    return {"ok": True, "out": serialise_event(event).decode()}


def _fold(request: Request) -> Answer:
    # The reference fold looks at two types only: other events need not even parse.
    lifecycle = [event for event in request["events"] if event["type"] in {"run.started", "run.finished"}]
    run = fold_run(parse_event(event) for event in lifecycle)
    if run is None:
        return {"run": None}
    folded: Answer = {"runId": run.run_id, "kind": run.kind, "actor": run.actor, "harness": run.harness}
    optional = {"parentRunId": run.parent_run_id, "outcome": run.outcome, "durationMs": run.duration_ms}
    return {"run": folded | {k: v for k, v in optional.items() if v is not None} | {"open": run.open}}


_OPERATIONS: dict[str, Callable[[Request], Answer]] = {
    "roundtrip": _roundtrip,
    "validate": _validate,
    "canonical": _canonical,
    "number": _number,
    "excerpt": _excerpt,
    "answer_vs_request": _answer_vs_request,
    "sink": _sink,
    "fold": _fold,
}


def main() -> None:
    """Answer standard input on standard output until it ends."""
    for reply in serve(sys.stdin.buffer):
        sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
