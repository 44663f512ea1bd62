"""What the tests of `verify` share: an output of many parts, and ways to change it behind its back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
from attrs import frozen

from ethogram import parse_event_text, serialise_event
from tests.support.samples import sample
from tests.support.strategies import Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.verify import verify

Event = dict[str, Any]
RELAY = "vinaya-bridge"
NOON = ConvertOptions(clock=lambda: "2031-02-03T12:00:00.000Z")


@frozen
class Case:
    """A log and what was made of it."""

    log: Path
    out: Path

    def run(self, name: str) -> Path:
        """The log of a run, by the name of its directory."""
        return self.out / "runs" / name / "events.jsonl"

    def events(self, name: str) -> list[Event]:
        """The events of a run."""
        return [orjson.loads(line) for line in self.run(name).read_bytes().splitlines()]

    def store(self, name: str, events: Iterable[Event]) -> None:
        """Write a run as this tool would: canonical, and gapless."""
        texts = []
        for seq, event in enumerate(events, 1):
            texts.append(serialise_event(parse_event_text(orjson.dumps({**event, "seq": seq}))) + b"\n")
        self.run(name).parent.mkdir(exist_ok=True)
        self.run(name).write_bytes(b"".join(texts))

    def edit(self, name: str, event_type: str, change: Callable[[Event], object]) -> None:
        """Change the payload of the first event of a type."""
        events = self.events(name)
        change(next(event for event in events if event["type"] == event_type)["payload"])
        self.store(name, events)

    def report(self) -> dict[str, Any]:
        """The report."""
        found: dict[str, Any] = orjson.loads((self.out / "report.json").read_bytes())
        return found

    def edit_report(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the report."""
        report = self.report()
        change(report)
        (self.out / "report.json").write_bytes(orjson.dumps(report))

    @property
    def index(self) -> Path:
        """The index of the kept lines."""
        return self.out / "kept" / "index.jsonl"

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the kept lines."""
        return [orjson.loads(line) for line in self.index.read_bytes().splitlines()]

    def edit_row(self, reason: str, **fields: object) -> None:
        """Change fields of the first row of a reason."""
        rows = self.rows()
        next(row for row in rows if row["why"] == reason).update(fields)
        self.index.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))

    def codes(self, *, against: bool) -> set[str]:
        """The codes of what `verify` finds."""
        return {finding.code.id for finding in verify(self.out, [self.log] if against else []).findings}

    def said(self, *, against: bool) -> str:
        """What `verify` finds, in words."""
        found = verify(self.out, [self.log] if against else [])
        return "\n".join(f"{finding.code.id} {finding.message}" for finding in found.findings)


def log_lines() -> list[Line]:
    """A loop with a dispatch, and a line that contradicts another."""
    loop = "dev_review_loop"
    turn: dict[str, Any] = {"effect_id": "eff-1", "target_role": "developer"}
    gate = sample("gate", "checked", seq=4)
    meta = gate["meta"]
    assert isinstance(meta, dict)
    return [
        sample(loop, "loop_started", seq=0),
        sample(loop, "round_started", seq=1),
        sample("dispatch", "dispatched", seq=2, **turn),
        sample("dispatch", "outcome_received", seq=3, **turn),
        gate,
        sample("gate", "summary", seq=5),
        sample("usage", "observed", seq=6),
        sample(loop, "driver_heartbeat", seq=7),
        sample(loop, "driver_exited", seq=8),
        {**gate, "meta": {**meta, "doctrine": "other"}},
    ]


def made(root: Path) -> Case:
    """Convert a log that has a refused, a conflicting, and an unknown line."""
    case = Case(root / "log", root / "out")
    file = case.log / "acme-lantern" / "7.ndjson"
    file.parent.mkdir(parents=True)
    refused = dump({**sample("gate", "summary", seq=20), "secret": "hunter2"})
    others = [refused, b"no json", b'{"meta":{"schema":9,"event_id":"later"}}']
    file.write_bytes(b"".join(text + b"\n" for text in [*map(dump, log_lines()), *others]))
    convert([case.log], case.out, NOON)
    return case
