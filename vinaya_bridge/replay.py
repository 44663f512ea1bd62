"""Replay: kept lines, read again by the version installed now; what it can read is added (design, section 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from attrs import Factory, define

from ethogram import CanonicalDraft
from ethogram.clock import Clock, utc_now
from vinaya_bridge.checkpoint import CHECKPOINT_VERSION, Checkpoint, decode_checkpoint
from vinaya_bridge.entry import Act, Entry
from vinaya_bridge.errors import Code, ConfigurationError
from vinaya_bridge.kept import (
    REPLAYED,
    KeptRow,
    KeptStore,
    kept_bytes,
    kept_row_at,
    kept_rows,
    kept_rows_at,
)
from vinaya_bridge.ledger import JsonValue, Ledger, Term
from vinaya_bridge.log import Reader
from vinaya_bridge.made_by import mapping_of, options_of, scan_options_of
from vinaya_bridge.mapping import CompiledMapping
from vinaya_bridge.naming import RELAY_RUN, dispatch_run_id
from vinaya_bridge.order import in_order
from vinaya_bridge.output import Output
from vinaya_bridge.positions import encode_state
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest, relay_drafts
from vinaya_bridge.report import Report, RunCounts, bridge_version, build_report, total_before
from vinaya_bridge.reread import kept_line
from vinaya_bridge.runs import Append, Known, MainRun, missing_emits
from vinaya_bridge.scan import Scanned, Scanner
from vinaya_bridge.settle import settle
from vinaya_bridge.sinks import TailSink, open_sink, sink_of

NO_REPORT = Code(
    "VB423",
    "the output has no report",
    "The report says how an output was made: with which mapping and which options. Without it kept lines cannot be "
    "added as they would have been then. The call that made the output was killed: run it again, then replay.",
)
CODES = (NO_REPORT,)

_READ_AGAIN: Final = frozenset({Term.UNKNOWN_VERSION.value, Term.REFUSED.value})
_COMMIT_BYTES: Final = 4 << 20
_ADDED: Final = frozenset({Term.CONVERTED, Term.UNMAPPED, Term.SELF_TEST, Term.DUPLICATE})
"""What becomes of a line that is replayed: nothing more is to be done for it."""


def replay(
    out: str | Path, *, reader: Reader | None = None, clock: Clock = utc_now, command: Sequence[str] = ()
) -> Report:
    """
    Read the kept unknown-version and refused lines again, and add what can be read today.

    Each goes where it would have gone; where its run is finished, to the next sitting of its main run, which starts
    by implication, and a dispatch's to a next run of that dispatch. Its row in ``kept/index.jsonl`` is followed by one
    that says ``replayed``; what cannot be read stays as it is. The mapping and the options are those of the output.
    A call that is killed is completed by the next one. Memory grows by about 200 bytes for each line that can be read,
    and holds the lines of one main run.

    Args:
        out: The output directory.

        reader: Reads a line; None is the one of this version.

        clock: Gives the sink's ``ts``.

        command: What was typed, for the report.

    Returns:
        What became of the kept lines that were read. It is also the output's report, unless nothing changed.

    Raises:
        ConfigurationError: The output has no report, or its mapping cannot be read.

        SinkError: The output cannot be written, or another process writes to it.
    """
    output = Output(Path(out))
    report = output.read_report()
    if report is None:
        raise ConfigurationError(
            NO_REPORT,
            "how it was made is not known",
            place=str(output.report),
            remedy="run the command that made it again, then replay",
        )
    mapping = mapping_of(report)
    scanner = Scanner(reader or Reader(), mapping, scan_options_of(report))
    with output.locked():
        sink = open_sink(sink_of(output), output, clock=clock)
        try:
            return _Replay(output, report, sink, scanner, clock, command).run(mapping)
        finally:
            sink.close()


class _Conflict(NamedTuple):
    """What the bridge's own run tells of a line whose identity is taken, or whose run is closed."""

    cause: str
    run: str
    name: str
    seq: int


@define
class _Batch:
    """What is about to become durable together."""

    appends: list[Append] = Factory(list)
    digests: dict[str, str] = Factory(dict)
    size_bytes: int = 0


class _Replay:
    """One call."""

    def __init__(
        self,
        output: Output,
        report: dict[str, JsonValue],
        sink: TailSink,
        scanner: Scanner,
        clock: Clock,
        command: Sequence[str],
    ) -> None:
        self._output = output
        self._report = report
        self._sink = sink
        self._scanner = scanner
        self._clock = clock
        self._command = command
        self._started_at = clock()
        self._ledger = Ledger()
        self._outcomes: dict[int, Term] = {}
        self._taken: dict[int, _Conflict] = {}
        self._batch = _Batch()
        self._position = sink.checkpoint() or _nothing_followed()
        saved = decode_checkpoint(self._position)
        held = (
            [] if saved is None else [entry for each in saved.held for entry in (*each.ends, *each.waiting)]
        )
        held += [] if saved is None else [arrival.entry for arrival in saved.waiting]
        self._waiting = {entry.identity: entry.digest for entry in held}
        self._saved_total = None if saved is None else saved.total
        self._counts = RunCounts(open_before=sink.index.open_runs())

    def run(self, mapping: CompiledMapping) -> Report:
        """Do it."""
        kept = KeptStore(self._output.kept)
        try:
            held = {Term.CONVERTED.value: self._sink.index.lines(), **kept.counts()}
            before = total_before(self._report, held, self._saved_total)
            for main_run, places in self._readable().items():
                self._place_main_run(main_run, [self._entry(at) for at in places])
                if self._batch.size_bytes > _COMMIT_BYTES:
                    self._commit()
            self._commit()
            conflicts = self._mark(kept)
        finally:
            kept.close()
        report = build_report(
            ledger=self._ledger,
            before=before,
            files=[],
            pending=[],
            conflicts=conflicts,
            runs=self._counts,
            notices=[],
            mapping=mapping,
            made_by={**options_of(self._report), "command": list[JsonValue](self._command)},
            started_at=self._started_at,
            ended_at=self._clock(),
        )
        if self._outcomes or before != self._report.get(
            "total"
        ):  # else a killed call wrote all but its report
            waiting = self._report.get("waiting")
            self._output.write_report(report.data if waiting is None else {**report.data, "waiting": waiting})
        return report

    # ------------------------------------------------------------------------------------ reading

    def _readable(self) -> dict[str, list[int]]:
        """The rows that can be read now, by main run: each as its place in the index, in bytes."""
        folder = self._output.kept
        done = {row.place() for row in kept_rows(folder) if row.why == REPLAYED}
        found: dict[str, list[int]] = {}
        for at, row in kept_rows_at(folder):
            if row.why in _READ_AGAIN and row.place() not in done:
                self._ledger.read += 1
                scanned = self._scan(row)
                if scanned is None:
                    self._ledger.settle(Term(row.why))
                else:
                    entry, line, *_ = scanned
                    header = (line.schema, line.record.meta.vinaya, line.trust)
                    self._ledger.saw(entry.process, [entry.seq], header)
                    found.setdefault(entry.main_run, []).append(at)
        return found

    def _scan(self, row: KeptRow, at: int = 0) -> Scanned | None:
        """Read a row's line. A kept line is one piece: where it has become several, it is left to a person."""
        outcomes = list(self._scanner.scan(kept_line(self._output.kept, row), at))
        return outcomes[0] if len(outcomes) == 1 and isinstance(outcomes[0], Scanned) else None

    def _entry(self, at: int) -> Entry:
        scanned = self._scan(kept_row_at(self._output.kept, at), at)
        assert scanned is not None  # noqa: S101 - it was read a moment ago
        return scanned.entry

    # ------------------------------------------------------------------------------------ placing

    def _place_main_run(self, main_run: str, entries: Sequence[Entry]) -> None:
        known = self._sink.index.known(entry.identity for entry in entries)
        there = {**self._waiting, **{identity: line.digest for identity, line in known.items()}}
        settled = settle(entries, {**there, **self._batch.digests})
        for entry in settled.conflicts:
            self._set_aside(entry, Term.CONFLICT, "duplicate")
        for entry in settled.duplicates:
            self._settle(entry, Term.DUPLICATE)
        run = MainRun(main_run, self._sink.index.facts(main_run), reopens=True)
        for entry in in_order(settled.stay):
            self._place(run, entry, known.get(entry.identity))
        self._add(run.finish())

    def _place(self, run: MainRun, entry: Entry, known: Known | None) -> None:
        if entry.act >= Act.UNMAPPED:
            self._settle(entry, Term.SELF_TEST if entry.act == Act.SELF_TEST else Term.UNMAPPED)
            return
        is_whole = known is not None and not missing_emits(entry, known)
        if is_whole or entry.identity in self._waiting or entry.identity in self._batch.digests:
            self._settle(entry, Term.DUPLICATE)
            return
        appends = run.take(entry, known)
        if appends is None:
            self._set_aside(entry, Term.LATE, "finished")
            return
        self._settle(entry, Term.CONVERTED if known is None else Term.DUPLICATE)
        self._batch.digests[entry.identity] = entry.digest
        self._add(appends)

    def _settle(self, entry: Entry, term: Term) -> None:
        self._ledger.settle(term)
        if term is Term.UNMAPPED:
            self._ledger.unmapped[entry.name] += 1
        self._outcomes[entry.place.file] = term

    def _set_aside(self, entry: Entry, term: Term, cause: str) -> None:
        self._settle(entry, term)
        run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
        self._taken[entry.place.file] = _Conflict(cause, run, entry.name, entry.seq)

    def _add(self, appends: Sequence[Append]) -> None:
        self._batch.appends += appends
        self._batch.size_bytes += sum(len(append.payload) for append in appends)

    def _commit(self) -> None:
        batch, self._batch = self._batch, _Batch()
        if not batch.appends:
            return
        self._sink.commit(
            [
                (append.run_id, CanonicalDraft(append.type, append.payload, append.captured_at))
                for append in batch.appends
            ],
            self._position,
        )
        for append in batch.appends:
            self._counts.count(append.type)
            self._ledger.events[append.type] += 1

    # ------------------------------------------------------------------------------------ telling

    def _mark(self, kept: KeptStore) -> list[dict[str, JsonValue]]:
        """Say in the index what became of each line; what it says is durable by now. Return the conflicts."""
        conflicts: list[dict[str, JsonValue]] = []
        refusals: list[Refusal] = []
        for at, term in sorted(self._outcomes.items()):
            row = kept_row_at(self._output.kept, at)
            if term in _ADDED:
                kept.mark_replayed(row, f"vinaya-bridge {bridge_version()} reads it: {term}")
            else:
                raw, taken = kept_bytes(self._output.kept, row), self._taken[at]
                kept.add(raw, file=row.file, line=row.line, offset=row.offset, why=term)
                refusals.append(
                    Refusal(
                        REFUSED_TYPE,
                        taken.cause,
                        line_digest(raw),
                        taken.run,
                        source_type=taken.name,
                        seq=taken.seq,
                    )
                )
                conflicts.append({"stays": None, "kept": [row.file, row.line]})
        kept.sync()
        told = self._sink.index.told([refusal.key() for refusal in refusals])
        drafts = relay_drafts(refusals, already=told, opened=self._sink.last_seq(RELAY_RUN) > 0)
        if drafts:
            self._sink.commit([(RELAY_RUN, draft) for draft in drafts], self._position)
            self._ledger.events.update(draft.type for draft in drafts)
        return conflicts


def _nothing_followed() -> bytes:
    """The position of an output that no tail has written to: a tail reads everything."""
    return msgspec.msgpack.encode(Checkpoint(CHECKPOINT_VERSION, encode_state([]), [], [], [], {}, 0))
