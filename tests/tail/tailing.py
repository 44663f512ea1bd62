"""What the tests of the tail share: a log folder, an output and a clock that only moves when it is told to."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from attrs import define, field

from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.inputs import Intake
from vinaya_bridge.log import Reader
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.tail import Tail
from vinaya_bridge.tail_poll import TailPoll
from vinaya_bridge.verify import verify

LIVE = "acme-lantern/7.ndjson"
SLOT = "acme-lantern/7.1.ndjson"
SETTLE_SECONDS = 5.0


class Stored(NamedTuple):
    """One event of an output, and the directory of its run."""

    directory: str
    event: dict[str, Any]

    @property
    def block(self) -> dict[str, Any]:
        """The block that names the event's line."""
        payload = self.event["payload"]
        block: dict[str, Any] = payload.get("vinaya", {})
        return block


@define
class Desk:
    """
    A place to tail at.

    Args:
        root: An empty folder.

        seconds: The time.
    """

    root: Path
    seconds: float = 1_800_000_000.0
    options: dict[str, Any] = field(factory=dict)

    @property
    def log(self) -> Path:
        """The log folder."""
        return self.root / "log"

    @property
    def out(self) -> Path:
        """The output."""
        return self.root / "out"

    def now(self) -> float:
        """The time."""
        return self.seconds

    def tail(self, **options: Any) -> Tail:
        """Open a tail of the log folder."""
        options = {"settle_seconds": SETTLE_SECONDS, "now": self.now, **self.options, **options}
        return Tail([self.log], self.out, **options)

    def poll(self, tail: Tail, *, after: float = 0.1) -> TailPoll:
        """Let time pass and poll."""
        self.seconds += after
        return tail.poll()

    def once(self, **options: Any) -> TailPoll:
        """Do what ``tail --once`` does."""
        with self.tail(**options) as tail:
            while tail.poll().more:
                pass
            return tail.settle()

    def append(self, content: bytes | Iterable[Line], name: str = LIVE) -> None:
        """Append text, or lines with their newlines."""
        path = self.log / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, bytes) else text_of(content)
        with path.open("ab") as stream:
            stream.write(text)

    def rotate(self) -> None:
        """Rename the live file to the slot, as the producer does."""
        (self.log / LIVE).replace(self.log / SLOT)

    def identities(self) -> list[str]:
        """The identities that the output holds, in no order that means anything."""
        return list(dict.fromkeys(each.block["eventId"] for each in lines_of(stored(self.out))))

    def check(self, against: Path | None = None) -> None:
        """The output is proven by itself and against the log."""
        verification = verify(self.out, [against or self.log])
        assert verification.proven, verification.findings


def text_of(lines: Iterable[Line]) -> bytes:
    """Lines with their newlines."""
    return b"".join(dump(line) + b"\n" for line in lines)


def identity_of(line: Line) -> str:
    """The identity of a line under schema 2 or 3."""
    meta = line["meta"]
    assert isinstance(meta, dict)
    return str(meta["event_id"])


def stored(out: Path) -> list[Stored]:
    """Every event of an output's runs, run by run."""
    return [
        Stored(path.parent.name, orjson.loads(line))
        for path in sorted((out / "runs").glob("*/events.jsonl"))
        for line in path.read_bytes().splitlines()
    ]


def lines_of(events: Iterable[Stored]) -> list[Stored]:
    """The events that come from a line: neither implied nor the bridge's own."""
    return [each for each in events if each.event["runId"] != RELAY_RUN and "part" in each.block]


def told(out: Path) -> list[tuple[str, str | None]]:
    """Type and cause of what the bridge's own run tells, after its start."""
    return [
        (each.event["type"], each.event["payload"].get("cause"))
        for each in stored(out)
        if each.event["runId"] == RELAY_RUN and each.event["type"] != "run.started"
    ]


def facts(out: Path) -> Counter[tuple[str, str, bytes, str | None]]:
    """What conversions of the same lines agree in (design, section 7); the bridge's own run included."""
    return Counter(
        (
            each.event["runId"],
            each.event["type"],
            orjson.dumps(each.event["payload"], option=orjson.OPT_SORT_KEYS),
            each.event.get("capturedAt"),
        )
        for each in stored(out)
    )


def process_order(out: Path, log: Path) -> dict[tuple[str, str], list[int]]:
    """By run and process, the seq of each event's line in order; a run's end is held, so it has no place."""
    counted = {line.identity: (line.process, int(line.record.meta.seq)) for line in Intake([log], Reader())}
    order: dict[tuple[str, str], list[int]] = defaultdict(list)
    for each in lines_of(stored(out)):
        if each.event["type"] != "run.finished":
            process, seq = counted[each.block["eventId"]]
            order[each.event["runId"], process].append(seq)
    return order


def converted(desk: Desk, log: Path | None = None) -> Path:
    """What `convert` makes of the log."""
    out = desk.root / "converted"
    convert([log or desk.log], out, ConvertOptions(clock=lambda: "2027-01-15T08:00:00.000Z"))
    return out


def fingerprint(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Names, bytes, modes and modification times below a folder."""
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mode,
            path.stat().st_mtime_ns,
        )
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def report_of(out: Path) -> dict[str, Any]:
    """The output's report."""
    report: dict[str, Any] = orjson.loads((out / "report.json").read_bytes())
    return report


# ---------------------------------------------------------------------------------------------- lines


def beat(seq: int, **more: Any) -> Line:
    """A line of a loop that starts and ends nothing."""
    return sample("dev_review_loop", "driver_heartbeat", seq=seq, **more)


def started(seq: int = 0, **more: Any) -> Line:
    """The line that starts a loop."""
    return sample("dev_review_loop", "loop_started", seq=seq, **more)


def exited(seq: int, **more: Any) -> Line:
    """The line that ends a loop."""
    return sample("dev_review_loop", "driver_exited", seq=seq, **more)


def gate(seq: int, **more: Any) -> Line:
    """A line that is no loop's own."""
    return sample("gate", "checked", seq=seq, **more)


def edited(line: Line, doctrine: str = "edited") -> Line:
    """The same identity with other content."""
    meta = line["meta"]
    assert isinstance(meta, dict)
    changed: dict[str, Json] = {**meta, "doctrine": doctrine}
    return {**line, "meta": changed}
