"""An output against the log it was made from: each line has its disposition, and each event its line."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import orjson

from ethogram import canonical_payload
from vinaya_bridge.asides import Aside
from vinaya_bridge.entry import Act, Entry
from vinaya_bridge.files import LogFile
from vinaya_bridge.kept import SETTLED, KeptRow
from vinaya_bridge.ledger import JsonValue, Term
from vinaya_bridge.lines import LongLine, read_lines
from vinaya_bridge.mapping.emit import COMPLEMENTS, Emit, Fill, Only, Run
from vinaya_bridge.naming import dispatch_run_id
from vinaya_bridge.proof.findings import BROKEN_KEPT, BROKEN_RUN, EVENT_ALTERED, EVENT_EXTRA, LINE_LOST, Find
from vinaya_bridge.proof.held import HeldEvents, HeldLine, Standing, fingerprint, main_run_of
from vinaya_bridge.proof.kept_lines import KeptLines, place_of
from vinaya_bridge.proof.stored import Store
from vinaya_bridge.relay import REFUSED_TYPE, Refusal, line_digest
from vinaya_bridge.runs import Known, MainRun, missing_emits
from vinaya_bridge.scan import Scanner

_READ_AGAIN = (Term.REFUSED, Term.UNKNOWN_VERSION)
_ENDS = (Only.ENDS_RUN, Only.NOT_ENDS_RUN)
_PAIR_OF = {only: pair for pair in COMPLEMENTS for only in pair}


class _SetAside(NamedTuple):
    """What reading the log again gives of a line that has no events."""

    file: str
    offset: int
    line: int
    why: str
    code: str | None
    path: str | None


class Comparison:
    """
    Holds the lines of a log against an output, one after another.

    Args:
        held: The events of the output.

        kept: Its kept lines.

        kept_whole: Identity and digest of the lines that are kept whole; None: lines need not be.

        pending: Identities of the lines that a tail has read and that wait.

        scanner: Reads and maps a line.

        find: Told of each fault.

        max_line_bytes: How long a line may be; a longer one is pending, as it is to who converts.
    """

    def __init__(
        self,
        held: HeldEvents,
        kept: KeptLines,
        *,
        kept_whole: Collection[tuple[str, str]] | None,
        pending: Collection[str],
        scanner: Scanner,
        find: Find,
        max_line_bytes: int,
    ) -> None:
        self._held = held
        self._kept = kept
        self._kept_prints = kept.prints()
        self._kept_whole = kept_whole
        self._pending = pending
        self._scanner = scanner
        self._find = find
        self._max_line_bytes = max_line_bytes
        self._aside: defaultdict[str, list[_SetAside]] = defaultdict(list)
        self._readable: set[str] = set()
        self._told: defaultdict[tuple[str, str], set[bytes]] = defaultdict(set)
        self._processes: defaultdict[tuple[str, str], list[tuple[int, int, Standing, str]]] = defaultdict(
            list
        )
        self._digests: dict[str, str] = {}
        self.terms: Counter[str] = Counter()

    def read(self, files: Iterable[LogFile]) -> None:
        """
        Read the log again.

        Args:
            files: All of it.
        """
        needs_digests = bool(self._kept.rows)
        for index, file in enumerate(files):
            lines = read_lines(
                file,
                digest=needs_digests,
                max_line_bytes=self._max_line_bytes,
                take_long=self._pass_over,
            )
            for line in lines:
                place = f"{file.name}:{line.number}"
                for outcome in self._scanner.scan(line, index):
                    self.terms["read"] += 1
                    if isinstance(outcome, Aside):
                        term: str = self._take_aside(outcome, file.name, place)
                    else:
                        record = outcome.raw if line.record is line.raw else line.record
                        term = self._take_event(outcome.entry, outcome.raw, record, place, ended=line.ended)
                    self.terms[str(term)] += 1
            self._digests[file.name] = lines.sha256

    def _pass_over(self, _line: LongLine) -> None:
        self.terms["read"] += 1
        self.terms[Term.PENDING.value] += 1

    def _take_aside(self, aside: Aside, file: str, place: str) -> Term:
        if aside.term in _READ_AGAIN:
            print_ = hashlib.sha256(aside.raw).hexdigest()
            where = aside.place
            self._aside[print_].append(
                _SetAside(file, where.offset, where.line, aside.term, aside.code, aside.path)
            )
            if print_ not in self._kept_prints.get(aside.term, ()):
                self._find(LINE_LOST, place, f"{aside.term} and not kept")
        if aside.refusal is not None:
            self._tell(aside.refusal)
        return aside.term

    def _tell(self, refusal: Refusal) -> None:
        draft = refusal.draft()
        payload = canonical_payload(orjson.loads(draft.payload_json))
        self._told[refusal.key()].add(fingerprint(draft.type, None, payload))

    def _take_event(self, entry: Entry, raw: bytes, record: bytes, place: str, *, ended: bool) -> str:
        held = self._held.lines.get(entry.identity)
        is_whole = self._kept_whole is None or (entry.identity, entry.digest) in self._kept_whole
        if held is not None and held.digest == entry.digest and held.parts:
            repeated, held.seen = held.seen, True
            if repeated:
                return Term.DUPLICATE
            self._compare_parts(entry, held, place)
            if not is_whole and not held.is_whole:
                self._find(LINE_LOST, place, "none of its events carries it whole, and it is not kept")
            return Term.CONVERTED
        print_ = hashlib.sha256(raw).hexdigest()
        for why, cause in ((Term.CONFLICT, "duplicate"), (Term.LATE, "finished")):
            if print_ in self._kept_prints.get(why, ()):
                self._readable.add(print_)
                self._tell_settled(entry, {raw, record}, why, cause)
                return why
        if entry.act >= Act.UNMAPPED and is_whole:
            return Term.SELF_TEST if entry.act == Act.SELF_TEST else Term.UNMAPPED
        if held is not None and held.digest == entry.digest and entry.identity in self._pending:
            held.seen = True  # the start that it implies is there; the line itself is its run's end, and held
            self._compare_implied(entry, held, place)
            return Term.PENDING
        if not ended or entry.identity in self._pending:
            return Term.PENDING  # a tail waits for its newline, or for what it belongs to
        for why in _READ_AGAIN:
            if print_ in self._kept_prints.get(why, ()):
                self._readable.add(print_)
                message = f"it is kept as {why}, but it can be read: vinaya-bridge replay adds it"
                self._find(BROKEN_KEPT, place, message)
                return why
        self._find(LINE_LOST, place, "it has no event, and it is not kept")
        return "lost"

    def _tell_settled(self, entry: Entry, texts: Iterable[bytes], why: Term, cause: str) -> None:
        """What may be told of a line that is not the one that stays: not every writer names the code."""
        run = dispatch_run_id(entry.main_run, entry.effect, 1) if entry.effect else entry.main_run
        for text in texts:
            for code in (None, SETTLED[why][0]):
                digest = line_digest(text)
                self._tell(
                    Refusal(
                        REFUSED_TYPE, cause, digest, run, source_type=entry.name, code=code, seq=entry.seq
                    )
                )

    # ------------------------------------------------------------------------------------ one line

    def _compare_parts(self, entry: Entry, held: HeldLine, place: str) -> None:
        known = Known(held.digest, held.parts, frozenset(self._held.closed.intersection(held.parts.values())))
        named: set[tuple[int, tuple[Only, Only]]] = set()
        for emit in missing_emits(entry, known):
            if emit.only in _ENDS and entry.identity in self._pending:
                continue
            pair = _PAIR_OF.get(Only(emit.only))
            if pair is None or (emit.run, pair) not in named:
                self._find(LINE_LOST, place, f"its event {emit.type} is missing")
            if pair is not None:
                named.add((emit.run, pair))
        for emit in entry.emits:
            if emit.part in held.parts:
                self._compare_part(entry, emit, held, place)
        if held.parts.keys() - {emit.part for emit in entry.emits}:
            self._find(EVENT_ALTERED, place, "it has an event that the mapping does not give")
        for one, other in COMPLEMENTS:
            there = [
                {emit.run for emit in entry.emits if emit.only == only and emit.part in held.parts}
                for only in (one, other)
            ]
            if there[0] & there[1]:
                self._find(EVENT_ALTERED, place, "it has both of two events that exclude each other")
        self._compare_implied(entry, held, place)
        for part, standing in (held.standing or {}).items():
            key = (held.parts[part], entry.process)
            self._processes[key].append((entry.seq, part, standing, place))

    def _compare_part(self, entry: Entry, emit: Emit, held: HeldLine, place: str) -> None:
        print_ = held.prints[emit.part]
        if emit.fill:
            print_ = (held.unfilled or {}).get((emit.part, emit.fill), print_)
        if print_ != fingerprint(emit.type, entry.ts, emit.payload):
            self._find(EVENT_ALTERED, place, f"its event {emit.type} is not what the mapping gives")
        misfilled = held.misfilled or ()
        if emit.fill & Fill.ELAPSED and (emit.part, Fill.ELAPSED) in misfilled:
            message = f"the durationMs of its event {emit.type} is not the time since the run's first line"
            self._find(EVENT_ALTERED, place, message)
        if emit.fill & Fill.PARENT and (emit.part, Fill.PARENT) in misfilled:
            message = f"the parentRunId of its event {emit.type} is not the run before it"
            self._find(EVENT_ALTERED, place, message)
        effect = entry.effect if emit.run == Run.DISPATCH else None
        if main_run_of(held.parts[emit.part]) != (entry.main_run, effect):
            self._find(EVENT_ALTERED, place, f"its event {emit.type} stands in a run of other lines")

    def _compare_implied(self, entry: Entry, held: HeldLine, place: str) -> None:
        """Hold the starts that a line implied against those that it implies in a run that has not begun."""
        if held.implied is None:
            return
        appends = MainRun(entry.main_run).take(entry) or []
        due: dict[tuple[str, str | None], bytes] = {}
        for append in appends:
            if append.identity is None:
                payload = orjson.loads(append.payload)
                payload.pop("parentRunId", None)
                print_ = fingerprint(append.type, append.captured_at, canonical_payload(payload))
                due[main_run_of(append.run_id)] = print_
        for run_id, print_ in held.implied:
            if due.get(main_run_of(run_id)) != print_:
                self._find(EVENT_ALTERED, place, "the run.started that it implies is not what the line gives")

    # ------------------------------------------------------------------------------------ all lines

    def finish(self, report: Mapping[str, JsonValue] | None, store: Store, *, same_version: bool) -> None:
        """
        Say what the output holds and the log does not, and what depends on all lines.

        Args:
            report: The output's report.

            store: Where its events lie.

            same_version: Whether the version that made the output is this one: then what the bridge's own run tells
                has to be the same word for word.
        """
        for held in self._held.lines.values():
            if not held.seen:
                run = next(iter(held.parts.values()), None) or (held.implied or [("", b"")])[0][0]
                self._find(
                    EVENT_EXTRA, store.place_of_run(run), "the line of one of its events is not in the log"
                )
        for same_process in self._processes.values():
            ordered = sorted(same_process, key=lambda each: each[2].number)
            for (seq, part, standing, _), (next_seq, next_part, later, place) in pairwise(ordered):
                if (next_seq, next_part) < (seq, part) and self._held.is_out_of_order(standing, later):
                    self._find(BROKEN_RUN, place, "its event stands behind a later event of its process")
        for key, prints in self._told.items() if same_version else ():
            print_ = self._held.told_prints.get(key)
            if print_ is not None and print_ not in prints:
                self._find(EVENT_ALTERED, "the bridge's own run", "it tells something else of a line")
        same_files = self._unchanged_files(report)
        for number, row in self._kept.rows:
            if row.place() not in self._kept.replayed:
                self._compare_row(place_of(number), row, same_files)

    def _unchanged_files(self, report: Mapping[str, JsonValue] | None) -> set[str]:
        """The files that are as the last conversion read them: a line of theirs lies where it lay."""
        rows = report.get("files") if report is not None else None
        return {
            str(row["path"])
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict)
            and row.get("sha256")
            and self._digests.get(str(row.get("path"))) == row["sha256"]
        }

    def _compare_row(self, place: str, row: KeptRow, same_files: set[str]) -> None:
        if row.why in {Term.CONFLICT, Term.LATE}:
            if row.sha256 not in self._readable:
                self._find(EVENT_EXTRA, place, "the kept line is not in the log")
            return
        if row.why not in _READ_AGAIN or row.sha256 in self._readable:
            return
        found = self._aside.get(row.sha256)
        if found is None:
            self._find(EVENT_EXTRA, place, "the kept line is not in the log")
            return
        alike = [each for each in found if (each.why, each.code, each.path) == (row.why, row.code, row.path)]
        if not alike:
            self._find(BROKEN_KEPT, place, "reading the line again gives another reason, code or path")
        elif (row.file in same_files or same_files >= self._digests.keys()) and not any(
            (each.file, each.offset, each.line) == (row.file, row.offset, row.line) for each in alike
        ):
            self._find(BROKEN_KEPT, place, "the line lies at another place of the log")
