"""
A model of writers, of what happens to their files, and of what happens to the output, against a tail on real files.

``SOAK=1`` runs it for longer.

Before it was trusted it had to find faults that were put in by hand, one at a time, each within 400 examples: a file
that is trusted by its size alone; lines that wait, and ends that are held, left out of the position; processes seen
left out of it; no dedupe by identity; no wait for a hole; a position that is believed although the runs are others; an
index that is not emptied of a run that was put back; a commit that loses its last event; a run that is closed at once;
a record that is emitted before its newline is there. A position that is believed although kept lines are gone it finds
too seldom: `test_tail_recovery.py` holds that one.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from attrs import define, field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.support.samples import sample
from tests.support.strategies import Json, Line, dump
from tests.tail.tailing import (
    SETTLE_SECONDS,
    Desk,
    Stored,
    converted,
    edited,
    identity_of,
    lines_of,
    process_order,
    stored,
    text_of,
)
from vinaya_bridge.errors import SinkError
from vinaya_bridge.kept import kept_file_name, kept_rows
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.stamp import timestamp
from vinaya_bridge.tail import Tail
from vinaya_bridge.verify import Finding, verify

SOAK = bool(os.environ.get("SOAK"))
STREAMS = ("acme-lantern/7", "acme-lantern/none", "acme-beacon/9")
FIRST_SECOND = 1_790_000_000

WRITTEN = (
    "beat",
    "of a child",
    "of a child",
    "dispatch",
    "dispatch, failed",
    "end",
    "end, cancelled",
    "held back",
    "half",
    "half, all but its end",
)
NO_LINES = (b"{}", b'{"meta":{"schema":9}}', b"\xff")
"""What is kept: refused twice, and of an unknown version."""

HAPPENINGS = (
    "rotate",
    "rotate twice",
    "truncate",
    "cut what was sent",
    "copy and truncate",
    "remove",
    "append to the slot",
    "crash in a line",
)

streams = st.sampled_from(STREAMS)
runs = st.integers(0, 1)
STEPS = st.lists(st.tuples(st.sampled_from(WRITTEN), st.booleans()), min_size=1, max_size=6)


@define
class _Process:
    """One sink of the producer: its seq counts from 0."""

    name: str
    seq: int = 0


@define
class _Run:
    """A main run: one driver at a time writes its loop lines, and a child writes others."""

    name: str
    driver: _Process | None = None
    child: _Process | None = None
    sittings: int = 0
    effects: int = 0
    open_effect: str | None = None
    is_closed: bool = False
    held_back: list[tuple[str, Line]] = field(factory=list)


class Tailing(RuleBasedStateMachine):
    """
    What the model promises: a line that stood whole in a file at a poll that succeeded is accounted for, once.

    In half of the examples old states and old outputs are put back, and the output is torn. Then only what the output
    holds at that moment, and what can still be read, is promised: each line once, with all its events.

    In the other half more is promised. Lines are written in the order of their time, but for single ones that are held
    back; a next driver of a run begins only when the run is quiet. So the output must be what `convert` makes of the
    lines that are accounted for, in the order of each process, but for what depends on the moment: implied starts, late
    lines, and the survivor of a conflict.
    """

    @initialize(is_put_back=st.booleans())
    def begin(self, is_put_back: bool) -> None:
        self.is_put_back = is_put_back
        self.scratch = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self.scratch.name))
        self.desk.log.mkdir()
        self.tail: Tail | None = None
        self.clock = 0
        self.processes = 0
        self.runs = [_Run(f"run-{number}") for number in range(2)]
        self.halves: dict[str, tuple[Line, bytes]] = {}
        self.written: dict[str, Line] = {}
        self.nearly_written: dict[str, Line] = {}  # whole but for the newline, which any writer may add
        self.contested: set[str] = set()
        self.required: set[str] = set()
        self.required_kept: set[bytes] = set()
        self.disordered: set[str] = set()
        self.may_be_late: set[str] = set()
        self.saved: dict[str, Path] = {}
        self.halved: set[str] = set()  # of which an event was torn off

    def teardown(self) -> None:
        if not hasattr(self, "desk"):
            return
        try:
            self.rest()
            self.reopen(killed=False)
            self.compare()
        finally:
            self.reopen(killed=True)
            self.scratch.cleanup()

    # ------------------------------------------------------------------------------------ files

    def live(self, stream: str) -> Path:
        return self.desk.log / f"{stream}.ndjson"

    def slot(self, stream: str) -> Path:
        return self.desk.log / f"{stream}.1.ndjson"

    def put(self, stream: str, content: bytes, path: Path | None = None) -> None:
        path = path or self.live(stream)
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.write(content)

    def write(self, stream: str, line: Line) -> None:
        """Append one line, behind the rest of a half one."""
        self.finish_half(stream)
        self.put(stream, dump(line) + b"\n")
        self.written[identity_of(line)] = line

    def finish_half(self, stream: str) -> None:
        half = self.halves.pop(stream, None)
        if half is not None:
            line, rest = half
            self.put(stream, rest)
            self.written[identity_of(line)] = line

    def disturb(self, stream: str) -> None:
        """Whoever was in the middle of a line is gone: no rest of it will come."""
        self.halves.pop(stream, None)

    # ------------------------------------------------------------------------------------ lines

    def made(self, run: _Run, process: _Process, kind: str, event: str, **own: Any) -> Line:
        self.clock += 1
        line = sample(
            kind,
            event,
            run=run.name,
            process=process.name,
            seq=process.seq,
            ts=timestamp((FIRST_SECOND + self.clock) * 1_000_000),
            **own,
        )
        process.seq += 1
        return line

    def process(self) -> _Process:
        self.processes += 1
        return _Process(f"proc-{self.processes}")

    def driver(self, run: _Run, stream: str) -> _Process:
        """The run's driver; a new one starts with its own line, once the run is quiet."""
        if run.driver is None:
            if run.sittings:
                self.rest()
            run.sittings += 1
            run.driver = self.process()
            run.open_effect = None
            self.write(stream, self.made(run, run.driver, "dev_review_loop", "loop_started"))
        return run.driver

    def flush(self, run: _Run) -> None:
        for stream, line in run.held_back:
            self.write(stream, line)
        run.held_back.clear()

    @rule(number=runs, stream=streams, other=streams, steps=STEPS)
    def write_some(self, number: int, stream: str, other: str, steps: list[tuple[str, bool]]) -> None:
        """Lines of one run, some with a poll behind them."""
        for what, then_poll in steps:
            self.write_one(what, number, stream, other)
            if then_poll:
                self.poll()

    def write_one(self, what: str, number: int, stream: str, other: str) -> None:
        if what == "beat":
            self.beat(number, stream, 2)
        elif what == "held back":
            self.hold_a_line_back(number, stream, other)
        elif what == "of a child":
            self.write(stream, self.made_by_child(self.runs[number]))
        elif what.startswith("dispatch"):
            self.dispatch_line(number, stream, failed=what == "dispatch, failed")
        elif what.startswith("end"):
            self.end(number, stream, cancelled=what == "end, cancelled")
        else:
            self.half_a_line(number, stream, only_its_end=what == "half, all but its end")

    def beat(self, number: int, stream: str, count: int) -> None:
        run = self.runs[number]
        driver = self.driver(run, stream)
        for _ in range(count):
            self.write(stream, self.made(run, driver, "dev_review_loop", "driver_heartbeat"))
        self.flush(run)

    def hold_a_line_back(self, number: int, stream: str, other: str) -> None:
        """A line is written after one that has a higher seq, perhaps to another file, perhaps after a poll."""
        run = self.runs[number]
        driver = self.driver(run, stream)
        self.flush(run)
        first = self.made(run, driver, "dev_review_loop", "driver_heartbeat")
        run.held_back.append((other, first))
        self.write(stream, self.made(run, driver, "dev_review_loop", "driver_heartbeat"))

    def made_by_child(self, run: _Run) -> Line:
        if run.child is None:
            run.child = self.process()
        line = self.made(run, run.child, "gate", "checked")
        if run.is_closed:
            self.may_be_late.add(identity_of(line))
        return line

    def dispatch_line(self, number: int, stream: str, *, failed: bool) -> None:
        run = self.runs[number]
        driver = self.driver(run, stream)
        if run.open_effect is None:
            run.effects += 1
            run.open_effect = f"eff-{run.effects}"
            event = "dispatched"
            effect = run.open_effect
        else:
            event = "dispatch_failed" if failed else "outcome_received"
            effect, run.open_effect = run.open_effect, None
        own: dict[str, Json] = {"effect_id": effect, "target_role": "security"}
        self.write(stream, self.made(run, driver, "dispatch", event, **own))
        self.flush(run)

    def end(self, number: int, stream: str, *, cancelled: bool) -> None:
        run = self.runs[number]
        driver = self.driver(run, stream)
        self.flush(run)
        self.write(stream, self.made(run, driver, "dev_review_loop", "driver_exited"))
        if cancelled:
            self.write(stream, self.made(run, driver, "dev_review_loop", "cancelled"))
        run.driver = None

    def half_a_line(self, number: int, stream: str, *, only_its_end: bool) -> None:
        run = self.runs[number]
        driver = self.driver(run, stream)
        self.flush(run)
        self.finish_half(stream)
        line = self.made(run, driver, "dev_review_loop", "driver_heartbeat")
        text = dump(line) + b"\n"
        cut = len(text) - 1 if only_its_end else len(text) // 2
        self.put(stream, text[:cut])
        self.halves[stream] = (line, text[cut:])
        if only_its_end:
            self.nearly_written[identity_of(line)] = line

    @precondition(lambda self: self.required)
    @rule(stream=streams, data=st.data(), other=st.booleans())
    def repeat(self, stream: str, data: st.DataObject, other: bool) -> None:
        """A line that was read before comes again, or comes again with other content."""
        line = self.written[data.draw(st.sampled_from(sorted(self.required)))]
        if other and line["kind"] == "gate":
            self.contested.add(identity_of(line))
            line = edited(line)
        self.finish_half(stream)
        self.put(stream, dump(line) + b"\n")

    @rule(stream=streams, content=st.sampled_from([b"\n", *(raw + b"\n" for raw in NO_LINES)]))
    def no_line(self, stream: str, content: bytes) -> None:
        self.finish_half(stream)
        self.put(stream, content)

    def crash_in_a_line(self, stream: str) -> None:
        """A writer is killed within a line: the next line stands behind the fragment."""
        self.finish_half(stream)
        self.put(stream, b'{"meta":{"schema":3,"ts":"20')

    # ------------------------------------------------------------------------------------ what happens to files

    @rule(what=st.sampled_from(HAPPENINGS), stream=streams, refill=st.booleans(), then_poll=st.booleans())
    def something_happens(self, what: str, stream: str, refill: bool, then_poll: bool) -> None:
        if what == "append to the slot":
            self.append_to_the_slot(stream)
        elif what == "crash in a line":
            self.crash_in_a_line(stream)
        elif self.live(stream).exists():
            self.disturb(stream)
            live = self.live(stream)
            if what.startswith("rotate"):
                live.replace(self.slot(stream))
            elif what == "truncate":
                live.write_bytes(b"")
            elif what == "cut what was sent":
                live.write_bytes(live.read_bytes().split(b"\n", 1)[-1])
            elif what == "copy and truncate":
                shutil.copyfile(live, self.slot(stream))
                live.write_bytes(b"")
            else:
                live.unlink()
            if refill:
                self.beat(0, stream, 3)
            if what == "rotate twice" and live.exists():
                live.replace(self.slot(stream))
        if then_poll:
            self.poll()

    def append_to_the_slot(self, stream: str) -> None:
        """A writer had the file open before it was renamed."""
        if self.slot(stream).exists():
            line = self.made_by_child(self.runs[1])
            self.put(stream, dump(line) + b"\n", self.slot(stream))
            self.written[identity_of(line)] = line

    # ------------------------------------------------------------------------------------ the tail

    def opened(self) -> Tail:
        if self.tail is None:
            self.tail = self.desk.tail()
        return self.tail

    def reopen(self, *, killed: bool) -> None:
        if self.tail is not None:
            if killed:
                with suppress(SinkError):
                    self.tail._closing.close()  # as a kill: no report is written
            else:
                self.tail.close()
            self.tail = None

    def readable(self) -> tuple[set[str], set[bytes]]:
        """The lines that stand whole in a file, and what stands there and is no line."""
        texts = {
            text for path in self.desk.log.rglob("*.ndjson") for text in path.read_bytes().split(b"\n")[:-1]
        }
        ends = {text.rpartition(b'{"meta"')[2] for text in texts}
        lines = {
            identity
            for identity, line in self.written.items()
            if dump(line).rpartition(b'{"meta"')[2] in ends
        }
        return lines, texts.intersection(NO_LINES)

    def kept(self) -> dict[str, set[bytes]]:
        """The kept lines by the reason."""
        found: dict[str, set[bytes]] = {}
        for row in kept_rows(self.desk.out / "kept"):
            with (self.desk.out / "kept" / kept_file_name(row.why)).open("rb") as file:
                file.seek(row.kept_offset)
                found.setdefault(row.why, set()).add(file.read(row.length))
        return found

    @rule()
    def poll(self) -> None:
        lines, no_lines = self.readable()
        tail = self.opened()
        has_gap = False
        more = True
        while more:
            poll = self.desk.poll(tail, after=0.01)
            has_gap = has_gap or bool(poll.gaps)
            more = poll.more
        # Of a process that was never seen, no line waits for another.
        self.disordered |= self.unfinished() - {process_of(self.written[each]) for each in self.required}
        self.required |= lines
        self.required_kept |= no_lines
        for run in self.runs:  # a driver of which nothing was read yet, or ever will be, has opened nothing
            if run.driver is not None and self.is_read(run.driver):
                run.is_closed = False
        if has_gap:  # then a hole is not waited for
            self.forget_order()

    def is_read(self, process: _Process) -> bool:
        return any(process_of(self.written[each]) == process.name for each in self.required)

    def unfinished(self) -> set[str]:
        """The processes of which a line is still to come."""
        held_back = {process_of(line) for run in self.runs for _, line in run.held_back}
        return held_back | {process_of(line) for line, _ in self.halves.values()}

    def forget_order(self) -> None:
        """The lines that are still to come may come too late for their place."""
        self.disordered |= self.unfinished()

    @rule()
    def rest(self) -> None:
        """Everybody finishes what was begun, and the time passes after which nothing is waited for."""
        for run in self.runs:
            self.flush(run)
        for stream in STREAMS:
            self.finish_half(stream)
        self.poll()
        for _ in range(2):  # a line waits for a hole, then the run that it ends must be quiet
            self.desk.seconds += SETTLE_SECONDS
            self.poll()
        for run in self.runs:
            run.is_closed = run.driver is None

    @rule(killed=st.booleans())
    def stop(self, killed: bool) -> None:
        self.reopen(killed=killed)

    @rule(limit_bytes=st.sampled_from([0, 500, 4_000, 40_000]))
    def fill_the_disk(self, limit_bytes: int) -> None:
        tail = self.opened()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
        try:
            self.desk.poll(tail, after=0.01)
        except SinkError:
            self.forget_order()
            self.reopen(killed=True)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        if self.tail is not None:
            self.poll()

    # ------------------------------------------------------------------------------------ old copies

    @precondition(lambda self: self.is_put_back and (self.desk.out / "state").exists())
    @rule(what=st.sampled_from(["state", "output"]))
    def save(self, what: str) -> None:
        place = self.desk.root / f"saved-{what}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name in ("state",) if what == "state" else ("runs", "kept"):
            if (self.desk.out / name).exists():
                shutil.copytree(self.desk.out / name, place / name)
        self.saved[what] = place

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        what = data.draw(st.sampled_from(sorted(self.saved)))
        self.reopen(killed=True)
        for name in ("state",) if what == "state" else ("runs", "kept"):
            shutil.rmtree(self.desk.out / name, ignore_errors=True)
            if (self.saved[what] / name).exists():
                shutil.copytree(self.saved[what] / name, self.desk.out / name)
        self.forget_promises()

    @precondition(lambda self: self.is_put_back)
    @rule(cut_bytes=st.sampled_from([1, 40, 700]))
    def tear_the_output(self, cut_bytes: int) -> None:
        self.reopen(killed=True)
        logs = sorted(
            (self.desk.out / "runs").glob("*/events.jsonl"), key=lambda path: path.stat().st_mtime_ns
        )
        if logs:
            whole = logs[-1].read_bytes()
            logs[-1].write_bytes(whole[:-cut_bytes])
            kept_bytes = whole.rfind(b"\n", 0, -cut_bytes) + 1
            self.halved |= identities_in(whole[kept_bytes:])
            self.forget_promises()

    def forget_promises(self) -> None:
        """Only what the output holds now is still promised, and what can still be read at the next poll."""
        whole = [
            Stored(path.parent.name, orjson.loads(line))
            for path in (self.desk.out / "runs").glob("*/events.jsonl")
            for line in path.read_bytes().split(b"\n")[:-1]
        ]
        self.required &= {each.block["eventId"] for each in lines_of(whole)}
        self.required_kept &= {raw for raws in self.kept().values() for raw in raws}

    # ------------------------------------------------------------------------------------ the comparison

    def is_excused(self, finding: Finding, accounted: list[str]) -> bool:
        """
        Tell whether a finding is due to the model.

        What is no line stood among others: a fragment alone is refused for another reason. And an end that was held
        in a position is gone with it, and an event that was torn off, where its line is gone from the files too.
        """
        if finding.place.startswith(("kept/", "the bridge's")):
            return True
        if not self.is_put_back or not finding.message.endswith(" is missing"):
            return False
        if finding.message == "its event run.finished is missing":
            return True
        identity = accounted[int(finding.place.rpartition(":")[2]) - 1]
        return identity in self.halved - self.readable()[0]

    def compare(self) -> None:
        held = {each.block["eventId"] for each in lines_of(stored(self.desk.out))}
        aside = self.kept()
        late = {identity_of(orjson.loads(raw)) for raw in aside.get("late", ())}
        kept = late | {identity_of(orjson.loads(raw)) for raw in aside.get("conflict", ())}
        assert self.required_kept <= {raw for raws in aside.values() for raw in raws}, "kept lines are lost"
        written = self.nearly_written | self.written
        assert held <= written.keys(), "events of lines that nobody wrote"
        assert self.required <= held | kept, "lines that were read are lost"
        assert self.is_put_back or late <= self.may_be_late, "a run was closed before it was quiet"
        # Of a line that was torn off, the start that it implied may still be there.
        told = {each.event["payload"].get("vinaya", {}).get("eventId") for each in stored(self.desk.out)}
        accounted = held | kept | (self.halved & told)
        lines = {identity: line for identity, line in written.items() if identity in accounted}
        log = self.desk.root / "accounted"
        log.mkdir()
        (log / "7.ndjson").write_bytes(text_of(lines.values()))
        if not self.contested:
            found = verify(self.desk.out, [log]).findings
            assert not [each for each in found if not self.is_excused(each, list(lines))], found
        out = converted(self.desk, log)
        left_out = late | self.contested
        # A line of which a stranger wrote the end, however much later, falls where its run is by then.
        strays = (self.nearly_written.keys() - self.written.keys()) & lines.keys()
        self.disordered |= {process_of(lines[each]) for each in strays}
        stray_runs = {run_of(lines[each]) for each in strays}
        left_out |= {identity for identity, line in lines.items() if run_of(line) in stray_runs}
        effects = {(run_of(lines[each]), lines[each].get("effect_id")) for each in left_out & lines.keys()}
        left_out |= {
            identity
            for identity, line in lines.items()
            if "effect_id" in line and (run_of(line), line["effect_id"]) in effects
        }
        if self.is_put_back:
            return
        assert comparable(stored(self.desk.out), left_out) == comparable(stored(out), left_out)
        for (run_id, process), seqs in process_order(self.desk.out, log).items():
            if process.rpartition("/")[2] not in self.disordered:
                assert seqs == sorted(seqs), (run_id, process, seqs)


def identities_in(log: bytes) -> set[str]:
    """The lines of which there is an event in a part of a run's log."""
    return {text.decode() for text in re.findall(rb'"eventId":"([^"]+)"', log)}


def process_of(line: Line) -> str:
    meta = line["meta"]
    assert isinstance(meta, dict)
    return str(meta["process_id"])


def run_of(line: Line) -> str:
    meta = line["meta"]
    assert isinstance(meta, dict)
    return str(meta["run_id"])


def comparable(events: list[Stored], left_out: set[str]) -> Counter[tuple[str, str, bytes]]:
    """Every event of a line but for what depends on the moment at which it was read."""
    found: Counter[tuple[str, str, bytes]] = Counter()
    for each in lines_of(events):
        event = each.event
        if each.block["eventId"] in left_out or event["runId"] == RELAY_RUN:
            continue
        payload = dict(event["payload"])
        for name in ("durationMs", "estimated"):  # since the run's first line
            payload.pop(name, None)
        kind = event["type"]
        if kind in {"run.started", "loop.started"} and each.block["event"] == "loop_started":
            kind, payload = "start", {"vinaya": {"eventId": each.block["eventId"]}}
        found[event["runId"], kind, orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)] += 1
    return found


TestTailing = Tailing.TestCase
TestTailing.settings = settings(
    max_examples=1500 if SOAK else 80,
    stateful_step_count=50 if SOAK else 30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
