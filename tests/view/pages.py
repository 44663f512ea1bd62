"""Runs to look at: what the browser tests draw."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ethogram.canonical import serialise_event
from ethogram.envelope import Event, EventDraft, stamp
from ethogram.json_text import Json
from ethogram.page.build import build_page
from ethogram.page.content import content, page_run

Step = tuple[float, str, Json]
"""Seconds after the start, a type, a payload."""


def moment(seconds: float) -> str:
    """A time on the day of the tests, with milliseconds."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"2026-03-04T{8 + whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{milliseconds:03}Z"


def events(run_id: str, steps: Iterable[Step]) -> list[Event]:
    """Events of a run, stamped much later than they happened, as a conversion stamps them."""
    return [
        stamp(
            EventDraft(type_name, payload, moment(seconds)),
            run_id=run_id,
            seq=seq,
            ts="2027-01-01T00:00:00.000Z",
        )
        for seq, (seconds, type_name, payload) in enumerate(steps, 1)
    ]


def started(kind: str, actor: str, parent: str | None = None, **more: Json) -> Json:
    """The payload of a ``run.started``."""
    stated: dict[str, Json] = {"kind": kind, "actor": actor, "harness": "h", **more}
    return stated if parent is None else {**stated, "parentRunId": parent}


def finished(outcome: str, milliseconds: int) -> Json:
    """The payload of a ``run.finished``."""
    return {"outcome": outcome, "durationMs": milliseconds}


def loop() -> dict[str, list[Event]]:
    """A loop of two rounds with everything that a person looks for, and a type that nobody knows."""
    main: list[Step] = [
        (0, "run.started", started("loop", "driver", model="opus")),
        (1, "decision.recorded", {"decision": "round_started", "round": 1}),
        (100, "gate.evaluated", {"green": False, "round": 1, "check": "typecheck"}),
        (101, "review.requested", {"reviewer": "reader", "round": 1}),
        (160, "review.completed", {"allApprove": False, "round": 1}),
        (161, "loop.paused", {"reason": "escalation"}),
        (4_000, "loop.resumed", {"by": "a person"}),
        (4_001, "human.intervened", {"action": "answered"}),
        (4_002, "decision.recorded", {"decision": "round_started", "round": 2}),
        (4_100, "gate.evaluated", {"green": True, "round": 2}),
        (4_150, "songs.sung", {"verses": 3, "by": "nobody"}),
        (4_200, "review.completed", {"allApprove": True, "round": 2}),
        (4_210, "run.finished", finished("completed", 4_210_000)),
    ]
    child: list[Step] = [
        (2, "run.started", started("subagent", "developer", "main", model="opus")),
        (3, "agent.started", {"stage": "developer", "sessionId": "s"}),
        (40, "agent.tool_use", {"tool": "Bash", "toolUseId": "t1"}),
        (60, "agent.tool_result", {"tool": "Bash", "toolUseId": "t1", "isError": True}),
        (
            95,
            "agent.completed",
            {"costUsd": 0.5, "sessionId": "s", "usage": {"inputTokens": 1_000, "outputTokens": 500}},
        ),
        (96, "run.finished", finished("failed", 94_000)),
    ]
    grandchild: list[Step] = [(41, "run.started", started("subagent", "helper", "main/child"))]
    other: list[Step] = [(10, "run.started", started("session", "elsewhere", "gone"))]
    runs = {"main": main, "main/child": child, "main/child/deep": grandchild, "other": other}
    return {run_id: events(run_id, steps) for run_id, steps in runs.items()}


def many(number: int) -> dict[str, list[Event]]:
    """A session of very many events, as an agent of a long day leaves them."""
    steps: list[Step] = [(0, "run.started", started("session", "agent"))]
    steps.append((0.5, "agent.started", {"sessionId": "6f0c8a54-2f0b-4d53-9f5e-0a1b2c3d4e5f"}))
    tools = ("Bash", "Read", "Edit", "Grep")
    for turn in range((number - 4) // 3):
        at = 1 + turn * 2.5
        call = f"toolu_{turn * 2654435761 % 2**64:016x}"
        said = f"Looking at module {turn % 97} for what the {tools[turn % 4]} of turn {turn} left behind."
        asked = f'{{"path":"src/part_{turn * 7919 % 1000}/module_{turn % 50}.py","lines":{turn % 400}}}'
        steps += [
            (at, "agent.text", {"text": said, "truncated": False}),
            (at + 0.4, "agent.tool_use", {"tool": tools[turn % 4], "toolUseId": call, "inputExcerpt": asked}),
            (
                at + 1.9,
                "agent.tool_result",
                {
                    "tool": tools[turn % 4],
                    "toolUseId": call,
                    "isError": turn % 61 == 0,
                    "resultExcerpt": f"{turn * 48271 % 2**31} matches in {turn % 13} files; exit {turn % 61 == 0}",
                },
            ),
        ]
    last = steps[-1][0]
    while len(steps) < number - 1:
        steps.append((last, "agent.warning", {"message": "slow"}))
    steps.append((last + 1, "run.finished", finished("completed", int(last * 1000))))
    return {"long": events("long", steps)}


def page_of(runs: dict[str, list[Event]], title: str = "t", max_bytes: int | None = None) -> bytes:
    """The page of some runs."""
    shown = [page_run(run_id, found) for run_id, found in runs.items()]
    return build_page(content(shown, made="2027-01-01T00:00:00.000Z", max_bytes=max_bytes), title=title)


def write_lines(file: Path, runs: dict[str, list[Event]]) -> Path:
    """The events of some runs as one file of lines."""
    lines = [serialise_event(event) for found in runs.values() for event in found]
    file.write_bytes(b"\n".join([*lines, b""]))
    return file
