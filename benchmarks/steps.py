"""The steps of a conversion, each alone, and the whole of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path

import msgspec
import orjson

from benchmarks.child import convert
from benchmarks.measure import Case, Outcome
from ethogram import CanonicalDraft
from ethogram.canonical import compose_lines
from ethogram.rundir import RunDirectory
from ethogram.sink import BulkSink, RunState
from vinaya_bridge.entry import Entry, Place
from vinaya_bridge.extents import whole_files
from vinaya_bridge.files import discover
from vinaya_bridge.gather import Gatherer, Tally
from vinaya_bridge.lines import LineReader
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.headers import HeaderFacts, KnownHeaders
from vinaya_bridge.log.identity import digests_of
from vinaya_bridge.log.redaction import find_in_bytes
from vinaya_bridge.mapping import load_mapping
from vinaya_bridge.placing import Decided, Placer
from vinaya_bridge.scan import Scanner, ScanOptions
from vinaya_bridge.settle import run_fingerprint
from vinaya_bridge.spill import Partition, Spill, partition_of
from vinaya_bridge.stamp import Stamp

_PARTITIONS = 16
_BATCH_LINES = 120
_ONE_JOB = 2.4
_ONE_JOB_KNOWN = 8.4
_REFUSED_ADDS = 0.15


class _Composing:
    """A sink that makes the lines of events and keeps none."""

    def append_canonical(self, run_id: str, drafts: Sequence[CanonicalDraft]) -> RunState:
        compose_lines(run_id, 1, "2026-08-02T06:00:00.000Z", drafts)
        return RunState()


def _grouped(lines: Sequence[EventLine], entries: Sequence[Entry]) -> list[tuple[HeaderFacts, list[Entry]]]:
    """The entries by batch and header, as `vinaya_bridge.gather` groups them."""
    groups: list[tuple[HeaderFacts, list[Entry]]] = []
    for first in range(0, len(lines), _BATCH_LINES):
        last = first + _BATCH_LINES
        batch: defaultdict[HeaderFacts, list[Entry]] = defaultdict(list)
        for line, entry in zip(lines[first:last], entries[first:last], strict=True):
            batch[line.header].append(entry)
        groups.extend(batch.items())
    return groups


class Steps:
    """
    The steps over a sample that is held in memory.

    Args:
        source: The folder of log files.

        out: Where runs are written; each round has a folder of its own.
    """

    def __init__(self, source: Path, out: Path) -> None:
        self._out = out
        self._numbers = count()
        self._extents = whole_files(discover([source]).files)
        self.lines = [raw for extent in self._extents for raw in extent.file.path.read_bytes().splitlines()]
        self.size_bytes = sum(map(len, self.lines)) + len(self.lines)
        self.mean_bytes = self.size_bytes / len(self.lines)
        self._mapping = load_mapping("core")
        self._reader = Reader()
        self._scanner = Scanner(self._reader, self._mapping, ScanOptions())
        self._events = [
            verdict for raw in self.lines if isinstance(verdict := self._reader.read(raw), EventLine)
        ]
        places = [Place(0, number, 0, len(raw)) for number, raw in enumerate(self.lines)]
        found = self._scanner.events(
            [(line, place, b"", b"") for line, place in zip(self._events, places, strict=True)]
        )
        entries = [entry for entry in found if isinstance(entry, Entry)]
        self._groups = _grouped(self._events, entries)
        self._partitions = self._encode()
        self._payloads = [orjson.loads(emit.payload) for entry in entries for emit in entry.emits]
        self._searched, self._decoded = self._texts()

    def _texts(self) -> tuple[list[bytes], list[tuple[Callable[[bytes], object], bytes]]]:
        """What is searched for secrets, and decoded: a line, or what is left of it without a header met before."""
        headers = KnownHeaders()
        decoders: dict[type, Callable[[bytes], object]] = {}
        searched, decoded = [], []
        for raw, line in zip(self.lines, self._events, strict=True):
            shortened = headers.shorten(raw)
            if shortened is None:
                headers.learn(raw, line.record, line.header)
            text = raw if shortened is None else shortened[1]
            kind = line.record.__class__
            if kind not in decoders:
                decoders[kind] = msgspec.json.Decoder(kind).decode
            searched.append(text)
            decoded.append((decoders[kind], text))
        return searched, decoded

    def floor(self) -> None:
        """The unit c."""
        loads, dumps, option = orjson.loads, orjson.dumps, orjson.OPT_SORT_KEYS
        for raw in self.lines:
            dumps(loads(raw), None, option)

    def cases(self) -> list[Case]:
        """Return a case a step."""
        return [
            Case("lines cut, and the file's sha256", self._cut),
            Case("redaction: the search for secrets", self._search, 0.5),
            Case(
                "reading and strict validation",
                self._read,
                0.9,
                1.3,
                less="redaction: the search for secrets",
            ),
            Case("digest of each line's content", self._digest),
            Case("mapping and canonical text", self._map, 0.6),
            Case("ledger, and which main runs share identities", self._account),
            Case("entries encoded, to be spilled", self._spill),
            Case("decoded, identities, order, runs, envelopes", self._place),
            Case("the same, and runs written", self._write),
            Case("all of reading and mapping, as convert does it", self._gather),
            Case("the calls into C of all this, alone", self._c_alone),
        ]

    def _c_alone(self) -> None:
        """What no order of the steps can save: the libraries' own work, with nothing of ours around it."""
        self._cut()
        self._search()
        for decode, text in self._decoded:
            decode(text)
        encode = msgspec.json.Encoder(order="deterministic").encode
        for line in self._events:
            sha256(encode(line.record)).hexdigest()
        for payload in self._payloads:
            orjson.dumps(payload)
        encode_entries, decode_entries = (
            msgspec.msgpack.Encoder().encode,
            msgspec.msgpack.Decoder(list[Entry]).decode,
        )
        for _, entries in self._groups:
            decode_entries(encode_entries(entries))

    def _cut(self) -> None:
        for extent in self._extents:
            for batch in LineReader(extent.file).read_batches():
                assert batch.raws

    def _read(self) -> None:
        for first in range(0, len(self.lines), _BATCH_LINES):
            self._reader.read_all(self.lines[first : first + _BATCH_LINES])

    def _search(self) -> None:
        for text in self._searched:
            find_in_bytes(text)

    def _digest(self) -> None:
        for first in range(0, len(self._events), _BATCH_LINES):
            digests_of([line.record for line in self._events[first : first + _BATCH_LINES]])

    def _map(self) -> None:
        drafter = self._mapping.drafter
        for line in self._events:
            drafter(line)(line)

    def _account(self) -> None:
        tally = Tally()
        for header, entries in self._groups:
            tally.ledger.saw(header.process, [entry.seq for entry in entries], header.version)
            tally.spread.add([entry.identity for entry in entries], run_fingerprint(entries[0].main_run))
        tally.spread.suspects()

    def _spill(self) -> None:
        self._encode()

    def _encode(self) -> list[Partition]:
        spill = Spill(self._out / "spilled", partitions=_PARTITIONS, budget_bytes=1 << 40)
        for _, entries in self._groups:
            spill.add(entries, partition_of(entries[0].main_run, _PARTITIONS))
        return spill.partitions()

    def _place(self) -> None:
        self._place_into(_Composing())

    def _write(self) -> None:
        out = self._out / f"{next(self._numbers)}"
        with RunDirectory(out, clock=Stamp(source=False), durability="batch") as sink:
            self._place_into(sink)

    def _place_into(self, sink: BulkSink) -> None:
        placer = Placer(sink, Stamp(source=False), self._out)
        for partition in self._partitions:
            placer.place(partition, Decided())

    def _gather(self) -> None:
        spill = Spill(self._out / "entries", partitions=_PARTITIONS, budget_bytes=1 << 40)
        reader = Reader()
        gatherer = Gatherer(
            reader,
            Scanner(reader, self._mapping, ScanOptions()),
            spill,
            partitions=_PARTITIONS,
            take_aside=lambda _aside: None,
            whole_lines=False,
        )
        for source, extent in enumerate(self._extents):
            gatherer.read(extent, source)


class Whole:
    """
    Whole conversions, each in a process of its own.

    Args:
        source: The folder of log files.

        out: Where outputs are written, each in a folder of its own.

        floor: The unit c over the sample.

        sample: How many lines the sample has.
    """

    def __init__(self, source: Path, out: Path, *, floor: Callable[[], object], sample: int) -> None:
        self._source = source
        self._out = out
        self._numbers = count()
        self._refused = source.parent / "refused"
        files = [path.read_bytes() for path in sorted(source.rglob("*.ndjson"))]
        self.size_bytes = sum(map(len, files))
        self._times = round(sum(data.count(b"\n") for data in files) / sample)
        self._sample_floor = floor
        self._write_refused(files)

    def _write_refused(self, files: Sequence[bytes]) -> None:
        """The same lines, of which one in a hundred lacks its end."""
        self._refused.mkdir()
        for number, data in enumerate(files):
            lines = data.splitlines()
            lines[::100] = [line[: len(line) // 2] for line in lines[::100]]
            (self._refused / f"{number}.ndjson").write_bytes(b"\n".join(lines) + b"\n")

    def floor(self) -> None:
        """The unit c over as many lines: the sample, as often as it takes."""
        for _ in range(self._times):
            self._sample_floor()

    def cases(self) -> list[Case]:
        """Return a case for each number of jobs, and one for a log with refused lines."""
        return [
            Case("convert --jobs 1", lambda: self._convert(self._source, 1), _ONE_JOB, _ONE_JOB_KNOWN),
            Case("convert --jobs 2", lambda: self._convert(self._source, 2), 1.3, 5.2),
            Case(
                "  what one refused line in 100 adds to it",
                lambda: self._convert(self._refused, 1),
                _ONE_JOB_KNOWN * _REFUSED_ADDS,
                less="convert --jobs 1",
            ),
        ]

    def _convert(self, source: Path, jobs: int) -> Outcome:
        took = convert(source, self._out / f"{next(self._numbers)}", jobs)
        return Outcome(took.seconds, took.peak_mb if jobs == 1 else None)
