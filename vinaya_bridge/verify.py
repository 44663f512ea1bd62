"""Verify: the proof that an output is whole, by itself and against the log it was made from (design, section 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve, frozen

from vinaya_bridge.checkpoint import Checkpoint, decode_checkpoint
from vinaya_bridge.errors import Code, ConfigurationError
from vinaya_bridge.files import discover
from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.made_by import mapping_of, scan_options_of
from vinaya_bridge.output import Output
from vinaya_bridge.proof.against import Comparison
from vinaya_bridge.proof.findings import CODES, SINK_GONE, UNBALANCED, Finding
from vinaya_bridge.proof.held import HeldEvents
from vinaya_bridge.proof.kept_lines import KeptLines, check_told, read_kept
from vinaya_bridge.proof.stored import store_of
from vinaya_bridge.proof.totals import check_report, was_one_call
from vinaya_bridge.reading import read_pieces
from vinaya_bridge.report import bridge_version
from vinaya_bridge.reread import kept_line
from vinaya_bridge.scan import Scanner
from vinaya_bridge.sinks import SinkSpec, parse_sink, saved_checkpoint, sink_of

__all__ = ["CODES", "Finding", "Verification", "verify"]


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


def verify(
    out: str | Path,
    against: str | Path | Sequence[str | Path] = (),
    *,
    mapping: str | Path | None = None,
    max_line_bytes: int | None = None,
    reader: Reader | None = None,
) -> Verification:
    """
    Prove an output, by itself or against the log.

    By itself: every run gapless, canonical, valid, begun by run.started, with one terminal event at most and last, the
    lines of a process in order; no part of a line twice; kept lines byte for byte what their rows say, and each told
    by the bridge's own run; the report balanced. Against a log: every line of it has its disposition, every event its
    line, its run and the payload that the mapping gives; with ``--origin full``, no line is lost but for its form.
    The events are read from the sink that the report names. What it cannot see: an event moved to another sitting of
    its run, events that changed places and are of different processes, or of one instant of an output that more than
    one conversion made, and, where the log's files have changed since the last conversion, where a kept line
    lay. Memory grows with the number of lines, about 1.1 kB each.

    Args:
        out: The output directory.

        against: The inputs, or the one, as they were given to `convert` or `tail`.

        mapping: The mapping of the output, where the report does not name it by a name or a path that still holds.

        max_line_bytes: How long a line of the log may be; a longer one is pending. None: as in the last call.

        reader: Reads the log; None is the one of this version.

    Raises:
        ConfigurationError: The mapping or the report cannot be read, or the events went to standard output.
    """
    output = Output(Path(out))
    report = output.read_report()
    store = store_of(output, _sink_of(report, output))
    findings: list[Finding] = []

    def find(code: Code, place: str, message: str) -> None:
        findings.append(Finding(code, place, message))

    position = saved_checkpoint(output)
    held = HeldEvents(find, in_one_call=was_one_call(report) and position is None)
    held.read(store.read(find))
    is_gone = any(finding.code is SINK_GONE for finding in findings)
    kept = read_kept(output.kept, find)
    if not is_gone:
        check_told(kept, held.told, find)
    if report is None:
        find(UNBALANCED, "report.json", "there is none: the last call did not end")
    else:
        check_report(report, None if is_gone else held.named_lines, kept.counts(), find)
    terms: Counter[str] = Counter()
    if against and not is_gone:
        options = scan_options_of(report)
        reader = reader or Reader()
        comparison = Comparison(
            held,
            kept,
            kept_whole=_kept_whole(kept, reader) if options.whole_lines else None,
            pending=_pending(report, decode_checkpoint(position)),
            scanner=Scanner(reader, mapping_of(report, mapping), evolve(options, whole_lines=False)),
            find=find,
            max_line_bytes=max_line_bytes or options.max_line_bytes,
        )
        comparison.read(discover(against, exclude=output.root).files)
        comparison.finish(report, store, same_version=_bridge(report).get("version") == bridge_version())
        terms = comparison.terms
    return Verification(findings, held.runs, held.events, held.named_lines, len(kept.rows), dict(terms))


def _sink_of(report: dict[str, JsonValue] | None, output: Output) -> SinkSpec:
    """The sink that the report names; without a report, that which the state does."""
    if report is None:
        return sink_of(output)
    named = _bridge(report).get("sink")
    try:
        return parse_sink(named if isinstance(named, str) else None)
    except ConfigurationError:
        return sink_of(output)


def _bridge(report: dict[str, JsonValue] | None) -> dict[str, JsonValue]:
    """What the report says of how the output was made."""
    bridge = report.get("bridge") if report is not None else None
    return bridge if isinstance(bridge, dict) else {}


def _pending(report: dict[str, JsonValue] | None, saved: Checkpoint | None) -> set[str]:
    """The lines that a tail has read and not written out: they wait in its position."""
    waiting = report.get("waiting") if report is not None else None
    found = {str(identity) for identity in waiting} if isinstance(waiting, list) else set()
    if saved is not None:
        found.update(arrival.identity for arrival in saved.waiting)
        found.update(entry.identity for each in saved.held for entry in (*each.ends, *each.waiting))
    return found


def _kept_whole(kept: KeptLines, reader: Reader) -> set[tuple[str, str]]:
    """Identity and digest of the kept lines that are events."""
    return {
        (piece.verdict.identity, piece.verdict.digest)
        for _, row in kept.rows
        for piece in read_pieces(reader, kept_line(kept.folder, row))
        if isinstance(piece.verdict, EventLine)
    }
