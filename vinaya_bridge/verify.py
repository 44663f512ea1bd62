"""Verify: the proof that an output is whole, by itself and against the log it was made from (design, section 5)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from attrs import Factory, define, evolve, frozen

from ethogram import EthogramError, canonical_payload, parse_event_text, serialise_event, validate
from ethogram.rundir import run_directory_name
from vinaya_bridge.entry import Act, Entry
from vinaya_bridge.errors import Code
from vinaya_bridge.files import discover
from vinaya_bridge.kept import INDEX_NAME, REPLAYED, kept_bytes, kept_file_name, kept_rows
from vinaya_bridge.ledger import JsonValue, Term, balances
from vinaya_bridge.lines import read_lines
from vinaya_bridge.log import Reader
from vinaya_bridge.log.identity import DIGEST_LENGTH
from vinaya_bridge.made_by import mapping_of, scan_options_of
from vinaya_bridge.naming import RELAY_RUN
from vinaya_bridge.output import Output
from vinaya_bridge.reread import kept_events
from vinaya_bridge.runs import Known, missing_emits
from vinaya_bridge.scan import Aside, Scanner

BROKEN_RUN = Code(
    "VB411",
    "a run's log breaks the protocol",
    "An event is not canonical or not valid, a seq is missing or repeated, something follows run.finished, or the "
    "directory is not that of its run. This tool writes none of these: the file was changed, or cut, afterwards.",
)
REPEATED = Code(
    "VB412",
    "an event stands twice",
    "The same part of the same line was found at two places of the output. This tool writes each once: the output "
    "was put together from several, or changed afterwards.",
)
BROKEN_KEPT = Code(
    "VB413",
    "a kept line is not what its row says",
    "The bytes of a kept line and its row in kept/index.jsonl do not agree, or bytes are there that no row names.",
)
UNBALANCED = Code(
    "VB414",
    "the report does not add up",
    "The lines read are not the sum of what became of them, or the output holds another number of lines than the "
    "report says were converted.",
)
LINE_LOST = Code(
    "VB415",
    "a line of the log has no disposition",
    "The log holds a line of which the output has neither an event nor a kept copy. Convert the log again: only "
    "what is missing is added.",
)
EVENT_EXTRA = Code(
    "VB416",
    "an event whose line is not in the log",
    "The output holds an event of a line that the given log does not hold. Give the whole log: lines rotate away, and "
    "an output can be older than the files that are left. Where the log is whole, the event was not made from it.",
)
EVENT_ALTERED = Code(
    "VB417",
    "an event is not what its line gives",
    "The mapping makes another event of this line than the output holds. Give the mapping with which the output was "
    "made; where that is the same, the output was changed afterwards.",
)
CODES = (BROKEN_RUN, REPEATED, BROKEN_KEPT, UNBALANCED, LINE_LOST, EVENT_EXTRA, EVENT_ALTERED)


class Finding(NamedTuple):
    """
    One thing that is not as it should be.

    Args:
        code: What kind of fault.

        place: Where.

        message: What, without any value of a log.
    """

    code: Code
    place: str
    message: str


@frozen
class Verification:
    """
    What a verification found.

    Args:
        findings: What is wrong; none means proven.

        runs: How many runs were read.

        events: How many events.

        identities: How many lines have events.

        kept: How many kept lines were checked.

        lines: What became of the lines that were read again; empty without a log to compare with.
    """

    findings: list[Finding]
    runs: int
    events: int
    identities: int
    kept: int
    lines: dict[str, int]

    @property
    def proven(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def data(self) -> dict[str, JsonValue]:
        """Return the verification as JSON."""
        return {
            "proven": self.proven,
            "runs": self.runs,
            "events": self.events,
            "identities": self.identities,
            "kept": self.kept,
            "lines": dict(self.lines),
            "findings": [
                {"code": finding.code.id, "place": finding.place, "message": finding.message}
                for finding in self.findings
            ],
        }


@define
class _Line:
    """What the output holds of one line."""

    digest: str
    parts: dict[int, str] = Factory(dict)
    prints: dict[int, bytes] = Factory(dict)
    is_whole: bool = False
    seen: bool = False


def verify(
    out: str | Path,
    against: Sequence[str | Path] = (),
    *,
    mapping: str | Path | None = None,
    reader: Reader | None = None,
) -> Verification:
    """
    Prove an output, by itself or against the log.

    By itself: every run gapless, canonical, valid, with one terminal event at most and last; no part of a line
    twice; kept lines byte for byte what their rows say; the report balanced. Against a log: every line of it has its
    disposition, every event its line and the payload that the mapping gives; with ``--origin full``, no line is lost
    but for its form. Memory grows with the number of lines, about 300 bytes each.

    Args:
        out: The output directory.

        against: The inputs, as they were given to `convert` or `tail`.

        mapping: The mapping of the output, where the report does not name it by a name or a path that still holds.

        reader: Reads the log; None is the one of this version.

    Raises:
        ConfigurationError: The mapping or the report cannot be read.
    """
    output = Output(Path(out))
    proof = _Proof(output)
    proof.read_runs()
    proof.read_kept()
    proof.read_report()
    lines: Counter[str] = Counter()
    if against:
        lines = proof.compare(against, mapping, reader or Reader())
    return Verification(
        proof.findings,
        proof.runs,
        proof.events,
        len(proof.lines),
        proof.kept,
        dict(lines),
    )


class _Proof:
    """One verification in the making."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.findings: list[Finding] = []
        self.lines: dict[str, _Line] = {}
        self.runs = self.events = self.kept = 0
        self._closed: set[str] = set()
        self._waiting: set[str] = set()
        self._kept_prints: dict[str, set[str]] = {}
        self._kept_whys: Counter[str] = Counter()
        self._kept_whole: set[tuple[str, str]] | None = None

    def _find(self, code: Code, place: str, message: str) -> None:
        self.findings.append(Finding(code, place, message))

    # ------------------------------------------------------------------------------------ by itself

    def read_runs(self) -> None:
        """Check each run's log and collect what it holds of each line."""
        if not self._output.runs.is_dir():
            return
        for folder in sorted(self._output.runs.iterdir()):
            path = folder / "events.jsonl"
            if path.is_file():
                self.runs += 1
                self._read_run(folder.name, path)

    def _read_run(self, name: str, path: Path) -> None:
        finished = False
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                place = f"runs/{name}/events.jsonl:{number}"
                if not raw.endswith(b"\n"):
                    self._find(BROKEN_RUN, place, "the last line is torn")
                    return
                try:
                    event = parse_event_text(raw[:-1])
                    validate(event.type, event.payload)
                except EthogramError as error:
                    self._find(BROKEN_RUN, place, str(error))
                    return
                if serialise_event(event) != raw[:-1]:
                    self._find(BROKEN_RUN, place, "the line is not canonical")
                if event.seq != number:
                    self._find(BROKEN_RUN, place, f"seq {event.seq} where {number} is next")
                if run_directory_name(event.run_id) != name:
                    self._find(BROKEN_RUN, place, "the directory is not that of this run")
                if finished:
                    self._find(BROKEN_RUN, place, "an event follows run.finished")
                finished = event.type == "run.finished"
                if finished:
                    self._closed.add(event.run_id)
                self.events += 1
                block = event.payload.get("vinaya") if isinstance(event.payload, dict) else None
                if event.run_id != RELAY_RUN and isinstance(block, dict) and "part" in block:
                    whole = block.pop("line", None)
                    block.pop("redacted", None)
                    payload = canonical_payload(event.payload)
                    if whole is not None:
                        self._note_whole(place, block, whole)
                    self._note(place, event.run_id, block, _print(event.type, event.captured_at, payload))
                elif event.run_id != RELAY_RUN and not (isinstance(block, dict) and block.get("implied")):
                    self._find(BROKEN_RUN, place, "the event does not name its line")

    def _note_whole(self, place: str, block: dict[str, JsonValue], whole: JsonValue) -> None:
        digest = hashlib.sha256(canonical_payload(whole)).hexdigest()[:DIGEST_LENGTH]
        if digest != block.get("digest"):
            self._find(BROKEN_RUN, place, "the line that it carries is not the one that it names")
        self.lines.setdefault(str(block.get("eventId")), _Line(digest)).is_whole = True

    def _note(self, place: str, run_id: str, block: dict[str, JsonValue], print_: bytes) -> None:
        identity, part = str(block.get("eventId")), block["part"]
        assert isinstance(part, int)  # noqa: S101 - this tool wrote it
        line = self.lines.setdefault(identity, _Line(str(block.get("digest"))))
        if part in line.parts:
            self._find(REPEATED, place, f"part {part} of this line is also in another place")
        if line.digest != block.get("digest"):
            self._find(REPEATED, place, "another part of this line has another content")
        line.parts[part] = run_id
        line.prints[part] = print_

    def read_kept(self) -> None:
        """Check that kept lines are what their rows say, and that there is nothing else."""
        ends: Counter[str] = Counter()
        places: set[tuple[str, int, str]] = set()
        for number, row in enumerate(kept_rows(self._output.kept), 1):
            place = f"kept/{INDEX_NAME}:{number}"
            if row.why == REPLAYED:
                if row.place() not in places:
                    self._find(BROKEN_KEPT, place, "it says that a line was replayed that is not kept")
                continue
            places.add(row.place())
            name = kept_file_name(row.why)
            raw = kept_bytes(self._output.kept, row)
            if hashlib.sha256(raw).hexdigest() != row.sha256 or row.kept_offset != ends[name]:
                self._find(BROKEN_KEPT, place, "the kept bytes are not those of the row")
            ends[name] = row.kept_offset + row.length + 1
            self.kept += 1
            self._kept_whys[row.why] += 1
            self._kept_prints.setdefault(row.why, set()).add(row.sha256)
        for name in {kept_file_name(why) for why in self._kept_whys}:
            size = (self._output.kept / name).stat().st_size
            if size != ends[name]:
                self._find(BROKEN_KEPT, f"kept/{name}", "bytes are there that no row names")

    def read_report(self) -> None:
        """Check that the report adds up, and that it says what the output holds."""
        report = self._output.read_report()
        if report is None:
            self._find(UNBALANCED, "report.json", "there is none: the last call did not end")
            return
        waiting = report.get("waiting")
        if isinstance(waiting, list):
            self._waiting.update(str(identity) for identity in waiting)
        for name in ("lines", "total"):
            terms = report.get(name)
            if not isinstance(terms, dict) or not balances(_numbers(terms)):
                self._find(UNBALANCED, f"report.json: {name}", "the terms do not add up to the lines read")
                continue
            if name == "total":
                numbers = _numbers(terms)
                if numbers["converted"] != len(self.lines):
                    self._find(
                        UNBALANCED,
                        "report.json: total",
                        f"{numbers['converted']:,} converted, but the output holds {len(self.lines):,} lines",
                    )
                for why in ("refused", "conflict", "late", "unknown_version"):
                    if self._kept_whys[why] > numbers[why]:
                        self._find(
                            UNBALANCED, "report.json: total", f"more lines are kept as {why} than it says"
                        )

    # ------------------------------------------------------------------------------------ against the log

    def compare(
        self, inputs: Sequence[str | Path], mapping: str | Path | None, reader: Reader
    ) -> Counter[str]:
        """Read the log again and hold each line against the output."""
        report = self._output.read_report()
        options = scan_options_of(report)
        scanner = Scanner(reader, mapping_of(report, mapping), evolve(options, whole_lines=False))
        if options.whole_lines:
            kept = kept_events(self._output.kept, reader)
            self._kept_whole = {(event.line.identity, event.line.digest) for event in kept}
        lines: Counter[str] = Counter()
        for index, file in enumerate(discover(inputs, exclude=self._output.root).files):
            for line in read_lines(file, digest=False):
                for outcome in scanner.scan(line, index):
                    lines["read"] += 1
                    place = f"{file.name}:{line.number}"
                    if isinstance(outcome, Aside):
                        lines[self._compare_aside(outcome, place)] += 1
                    else:
                        term = self._compare_event(outcome.entry, outcome.raw, place, ended=line.ended)
                        lines[term] += 1
        for held in self.lines.values():
            if not held.seen:
                run = next(iter(held.parts.values()))
                self._find(
                    EVENT_EXTRA,
                    f"runs/{run_directory_name(run)}",
                    "the line of one of its events is not in the log",
                )
        return lines

    def _compare_aside(self, aside: Aside, place: str) -> str:
        if aside.term in {Term.REFUSED, Term.UNKNOWN_VERSION}:
            print_ = hashlib.sha256(aside.raw).hexdigest()
            if print_ not in self._kept_prints.get(aside.term, ()):
                self._find(LINE_LOST, place, f"{aside.term} and not kept")
        return str(aside.term)

    def _compare_event(self, entry: Entry, raw: bytes, place: str, *, ended: bool) -> str:
        held = self.lines.get(entry.identity)
        is_whole = self._kept_whole is None or (entry.identity, entry.digest) in self._kept_whole
        if held is not None and held.digest == entry.digest:
            self._compare_parts(entry, held, place)
            if not is_whole and not held.is_whole:
                self._find(LINE_LOST, place, "none of its events carries it whole, and it is not kept")
            repeated, held.seen = held.seen, True
            return Term.DUPLICATE if repeated else Term.CONVERTED
        print_ = hashlib.sha256(raw).hexdigest()
        for why in (Term.CONFLICT, Term.LATE):
            if print_ in self._kept_prints.get(why, ()):
                return why
        if entry.act >= Act.UNMAPPED and is_whole:
            return Term.SELF_TEST if entry.act == Act.SELF_TEST else Term.UNMAPPED
        if not ended or entry.identity in self._waiting:
            return Term.PENDING  # a tail waits for its newline, or for what it belongs to
        self._find(LINE_LOST, place, "it has no event, and it is not kept")
        return "lost"

    def _compare_parts(self, entry: Entry, held: _Line, place: str) -> None:
        known = Known(held.digest, held.parts, frozenset(self._closed.intersection(held.parts.values())))
        for emit in missing_emits(entry, known):
            self._find(LINE_LOST, place, f"its event {emit.type} is missing")
        for emit in entry.emits:
            print_ = held.prints.get(emit.part)
            if print_ is None or emit.fill:
                continue
            if print_ != _print(emit.type, entry.ts, emit.payload):
                self._find(EVENT_ALTERED, place, f"its event {emit.type} is not what the mapping gives")


def _print(event_type: str, captured_at: str | None, payload: bytes) -> bytes:
    """A fingerprint of an event as its line gives it: without the sink's stamps."""
    head = f"{event_type}\0{captured_at}\0".encode()
    return hashlib.blake2b(head + payload, digest_size=8).digest()


def _numbers(terms: dict[str, JsonValue]) -> dict[str, int]:
    names = ["read", *(term.value for term in Term)]
    return {name: value if isinstance(value := terms.get(name), int) else -1 for name in names}
