"""What a worker does in another process, perhaps on another machine: read extents, place partitions."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO

import msgspec
from attrs import evolve, frozen

from ethogram.rundir import RunDirectory
from vinaya_bridge.asides import Aside
from vinaya_bridge.errors import Code, SinkError
from vinaya_bridge.extents import Extent
from vinaya_bridge.gather import ExtentRow, Gatherer, Tally
from vinaya_bridge.log import Reader
from vinaya_bridge.mapping import CompiledMapping
from vinaya_bridge.mapping.load import mapping_from_text
from vinaya_bridge.output import write_atomically, writing
from vinaya_bridge.placing import Decided, Placed, Placer
from vinaya_bridge.scan import Scanner, ScanOptions
from vinaya_bridge.sinks.base import sink_faults
from vinaya_bridge.spill import Partition, Spill, Spilled
from vinaya_bridge.stamp import Stamp

NOT_SHARED = Code(
    "VB406",
    "a worker does not see what this process sees",
    "Work was handed to processes that may run elsewhere. They read the inputs themselves and write below OUT, so both "
    "must lie where every worker finds them under the same absolute path, on a shared file system say. One worker "
    "did not find them. Nothing of the log was lost, and no run was written in part.",
)
WORKER_LOST = Code(
    "VB407",
    "a worker ended before its work was done",
    "A process that read or placed lines was killed, ran out of memory, or could not be reached any more, and nobody "
    "took over its work. No run was written in part: what a worker writes is taken over only when it is whole. Run "
    "the same command again; where memory was short, give a smaller number with --jobs.",
)
CODES = (NOT_SHARED, WORKER_LOST)

MARK_NAME = "mark"
"""The file in the working folder that holds `Workplace.mark`."""

_ASIDES_AT_ONCE = 256
_LENGTH = 4


@frozen
class Workplace:
    """
    Where workers leave what they make.

    Args:
        folder: ``OUT/state/work``, absolute.

        mark: The content of `MARK_NAME`: a worker that does not find it sees another folder, or none.

        is_elsewhere: Whether workers may run on another machine: then they make durable what they write.
    """

    folder: Path
    mark: str
    is_elsewhere: bool

    def make(self) -> None:
        """
        Make the folder, which must not exist.

        Raises:
            SinkError: The system refused.
        """
        with writing(self.folder):
            self.folder.mkdir(mode=0o700, parents=True)
        write_atomically(self.folder / MARK_NAME, self.mark.encode())

    def check(self) -> None:
        """
        Look whether this process sees the folder.

        Raises:
            SinkError: It does not.
        """
        try:
            seen = (self.folder / MARK_NAME).read_text(encoding="ascii")
        except OSError:
            seen = ""
        if seen != self.mark:
            raise not_shared(str(self.folder))


@frozen
class GatherTask:
    """
    Some extents to read.

    Args:
        workplace: Where to leave the result.

        extents: What to read, each with what its lines' places name as their file.

        mapping: The name of the mapping, and its rules as text.

        options: What to make of lines that not everyone wants.

        partitions: Into how many partitions entries are spilled.

        budget_bytes: How much may be held in memory, roughly.
    """

    workplace: Workplace
    extents: Sequence[tuple[int, Extent]]
    mapping: tuple[str, str]
    options: ScanOptions
    partitions: int
    budget_bytes: int


@frozen
class Gathered:
    """
    What was read.

    Args:
        rows: One an extent.

        tally: What the lines say, beside their entries.

        spilled: Their entries.

        asides: A file with the lines that gave none, for `read_asides`.
    """

    rows: Sequence[ExtentRow]
    tally: Tally
    spilled: Spilled
    asides: Path


@frozen
class PlaceTask:
    """
    A partition to place in an output that holds nothing yet.

    Args:
        workplace: Where to leave the result.

        partition: The partition; all of it on disk.

        decided: What was settled over several main runs.

        now: The time.

        source_stamp: Whether ``ts`` is the time of the line instead.

        whole_lines: Whether what gives no events is kept too.
    """

    workplace: Workplace
    partition: Partition
    decided: Decided
    now: str
    source_stamp: bool
    whole_lines: bool


@frozen
class PlacedRuns:
    """
    What was placed.

    Args:
        placed: What became of the lines.

        runs: A folder with the runs, to be taken over by the output.
    """

    placed: Placed
    runs: Path


def gather(task: GatherTask) -> Gathered:
    """
    Read extents, map their lines and spill the entries.

    A pure function of the files: doing it twice gives the same, under another name.

    Args:
        task: What to read.

    Raises:
        SinkError: The worker sees other files than the process that gave the task, or cannot write.
    """
    task.workplace.check()
    with uncollected(), writing(task.workplace.folder), sink_faults(task.workplace.folder):
        folder = Path(mkdtemp(prefix="gathered-", dir=task.workplace.folder))
        reader, mapping = _tools(*task.mapping)
        spill = Spill(folder / "entries", partitions=task.partitions, budget_bytes=task.budget_bytes)
        asides_path = folder / "asides"
        with asides_path.open("wb") as stream:
            asides = _Asides(stream)
            gatherer = Gatherer(
                reader,
                Scanner(reader, mapping, task.options),
                spill,
                partitions=task.partitions,
                take_aside=asides.add,
                whole_lines=task.options.whole_lines,
                max_line_bytes=task.options.max_line_bytes,
            )
            rows = [
                gatherer.read(_as_seen_here(extent) if task.workplace.is_elsewhere else extent, source)
                for source, extent in task.extents
            ]
            asides.write_out()
        return Gathered(rows, gatherer.tally, spill.spilled(), asides_path)


def place(task: PlaceTask) -> PlacedRuns:
    """
    Place a partition into a folder of its own.

    A pure function of the partition: doing it twice gives the same, under another name.

    Args:
        task: What to place.

    Raises:
        SinkError: The worker sees another folder than the process that gave the task, or cannot write.
    """
    task.workplace.check()
    with uncollected(), writing(task.workplace.folder), sink_faults(task.workplace.folder):
        folder = Path(mkdtemp(prefix="placed-", dir=task.workplace.folder))
        stamp = Stamp(source=task.source_stamp)
        stamp.now = task.now
        with RunDirectory(folder, clock=stamp, durability="batch") as sink:
            placed = Placer(sink, stamp, task.workplace.folder, whole_lines=task.whole_lines).place(
                task.partition, task.decided
            )
            if task.workplace.is_elsewhere:
                sink.sync()
        return PlacedRuns(placed, folder)


def read_asides(path: Path) -> Iterator[Aside]:
    """
    Yield the lines that gave no entry, in order.

    Args:
        path: See `Gathered`.
    """
    decode = msgspec.msgpack.Decoder(list[Aside]).decode
    with path.open("rb") as stream:
        while head := stream.read(_LENGTH):
            yield from decode(stream.read(int.from_bytes(head, "big")))


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Do without the cyclic garbage collector for a while: a batch makes many objects and no cycles.

    It is switched on again where it was on.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def not_shared(place: str) -> SinkError:
    """
    Return the error of a worker that does not see what it should.

    Args:
        place: What it looked for.
    """
    return SinkError(
        NOT_SHARED,
        "a worker does not find it",
        place=place,
        remedy="give inputs and -o as paths that every worker has, on a shared file system, or use --jobs",
    )


@lru_cache(maxsize=1)
def _tools(mapping: str, text: str) -> tuple[Reader, CompiledMapping]:
    """A reader and a mapping: building their decoders and functions takes as long as reading ten thousand lines."""
    return Reader(), mapping_from_text(mapping, text)


def _as_seen_here(extent: Extent) -> Extent:
    """The extent with the device number that its file system has on this machine."""
    try:
        status = extent.file.path.stat()
    except OSError:
        raise not_shared(extent.file.name) from None
    if status.st_ino != extent.file.inode:
        return extent  # reading it will say that it was replaced
    return evolve(extent, file=evolve(extent.file, device=status.st_dev))


class _Asides:
    """Writes lines that gave no entry to a file, some at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._held: list[Aside] = []
        self._encode = msgspec.msgpack.Encoder().encode

    def add(self, aside: Aside) -> None:
        self._held.append(aside)
        if len(self._held) >= _ASIDES_AT_ONCE:
            self.write_out()

    def write_out(self) -> None:
        block = self._encode(self._held)
        self._stream.write(len(block).to_bytes(_LENGTH, "big"))
        self._stream.write(block)
        self._held.clear()
