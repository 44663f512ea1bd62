"""Lines that are longer than may be held: passed over in bounded memory, counted, named, and nothing else touched."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from vinaya_bridge import content
from vinaya_bridge.content import BLOCK_BYTES
from vinaya_bridge.files import LogFile, discover
from vinaya_bridge.follow import Follower
from vinaya_bridge.lines import BOM, LongLine, PhysicalLine, read_lines

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
STEPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from([b"a", b"bcd", b"\n", b"\n", BOM, b"\0" * 90, b"e" * 70_000]), max_size=4),
        st.booleans(),
    ),
    max_size=8,
)
CONTENTS = st.lists(
    st.sampled_from([b"a", b"bcd", b"\n", b"\r\n", b"\0" * 7, b"e" * 40, BOM]), max_size=40
).map(b"".join)


def log(directory: Path, text: bytes, name: str = "7.ndjson") -> LogFile:
    (directory / name).write_bytes(text)
    (file,) = discover([directory / name]).files
    return file


def read(file: LogFile, limit: int) -> tuple[list[PhysicalLine | LongLine], int]:
    """All lines in the order in which they are told, and how many the reader counts."""
    found: list[PhysicalLine | LongLine] = []
    reader = read_lines(file, max_line_bytes=limit, take_long=found.append)
    for line in reader:
        found.append(line)  # noqa: PERF402 - the reader appends to the list too
    return found, reader.lines


def bounded(lines: list[PhysicalLine | LongLine], limit: int) -> list[PhysicalLine | LongLine]:
    """What an unlimited reading gives, with the lines that are too long replaced."""
    expected: list[PhysicalLine | LongLine] = []
    for line in lines:
        assert isinstance(line, PhysicalLine)
        mark = len(BOM) if line.number == 1 and line.offset else 0
        is_long = len(line.raw) + mark > limit
        expected.append(LongLine(line.number, line.offset - mark, len(line.raw) + mark) if is_long else line)
    return expected


@pytest.mark.parametrize("suffix", COMPRESSORS)
@given(text=CONTENTS, limit=st.integers(1, 60), block_bytes=st.integers(1, 50))
@example(text=BOM + b"abc\nd", limit=5, block_bytes=50)
@example(text=BOM + b"abc\nd", limit=6, block_bytes=2)
@example(text=b"abc\nabcd\nabc\n", limit=3, block_bytes=4)
@example(text=b"abcd", limit=3, block_bytes=1)
def test_the_lines_given_are_those_of_the_unlimited_reading_that_are_not_longer(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, text: bytes, limit: int, block_bytes: int
) -> None:
    file = log(tmp_path_factory.mktemp("logs"), COMPRESSORS[suffix](text), "7.ndjson" + suffix)
    everything, count = read(file, len(text) + 1)
    with patch.object(content, "BLOCK_BYTES", block_bytes):
        assert read(file, limit) == (bounded(everything, limit), count)


@pytest.mark.parametrize("suffix", COMPRESSORS)
@pytest.mark.parametrize("length", [2_001, BLOCK_BYTES - 1, BLOCK_BYTES, 3 * BLOCK_BYTES + 5])
@pytest.mark.parametrize("ended", [b"\n", b""])
def test_a_long_line_is_passed_over_wherever_it_stands(
    tmp_path: Path, suffix: str, length: int, ended: bytes
) -> None:
    long, short = b"x" * length, b"y" * 2_000
    text = b"\n".join((long, short, long, b"", long)) + ended
    file = log(tmp_path, COMPRESSORS[suffix](text), "7.ndjson" + suffix)
    found, count = read(file, 2_000)
    assert found == [
        LongLine(1, 0, length),
        PhysicalLine(2, length + 1, short, True, short),
        LongLine(3, length + 2_002, length),
        PhysicalLine(4, 2 * length + 2_003, b"", True, b""),
        LongLine(5, 2 * length + 2_004, length),
    ]
    assert count == 5


@given(steps=STEPS, limit=st.sampled_from([1, 3, 80, 69_999, 70_000, 200_000]))
@example(steps=[([b"e" * 70_000], True), ([b"a"], False), ([b"\n", b"bcd", b"\n"], True)], limit=80)
@example(steps=[([BOM, b"e" * 70_000], False), ([b"e" * 70_000, b"\n"], False)], limit=200_000)
def test_a_follower_tells_of_a_growing_file_what_a_reader_tells_of_it_when_it_is_whole(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[list[bytes], bool]], limit: int
) -> None:
    root = tmp_path_factory.mktemp("logs")
    path = root / "7.ndjson"
    follower = Follower([root], settle_seconds=5, max_line_bytes=limit)
    lines: list[tuple[int | None, int, bytes]] = []
    gaps: list[tuple[int | None, int]] = []
    for now, (parts, restarts) in enumerate([*steps, ([b"\n"], False), ([], False)]):
        with path.open("ab") as stream:
            stream.write(b"".join(parts))
        more = True
        while more:
            poll = follower.poll(now)
            lines += [(line.number, line.offset, line.raw) for line in poll.lines]
            gaps += [(gap.line, gap.offset) for gap in poll.gaps]
            more = poll.more
        if restarts:
            state = follower.state()
            follower.close()
            follower = Follower([root], settle_seconds=5, max_line_bytes=limit, state=state)
    follower.close()
    (file,) = discover([path]).files
    found, _ = read(file, limit)
    assert lines == [(each.number, each.offset, each.raw) for each in found if isinstance(each, PhysicalLine)]
    assert gaps == [(each.number - 1, each.offset) for each in found if isinstance(each, LongLine)]
