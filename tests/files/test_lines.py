"""Lines are cut at 0x0A and nowhere else, from plain and compressed files, and faults end them quietly."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.content import BLOCK_BYTES
from vinaya_bridge.errors import InputError
from vinaya_bridge.files import BAD_COMPRESSION, CHANGED, CUT_SHORT, NOT_A_LOG, UNREADABLE, LogFile, discover
from vinaya_bridge.lines import LineReader, PhysicalLine, read_lines, read_slice, unwrap_rejected

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


def log(directory: Path, content: bytes, name: str = "7.ndjson") -> LogFile:
    (directory / name).write_bytes(content)
    (file,) = discover([directory / name]).files
    return file


def read(file: LogFile) -> tuple[list[PhysicalLine], LineReader]:
    reader = read_lines(file)
    return list(reader), reader


def raws(file: LogFile) -> list[bytes]:
    return [line.raw for line in read_lines(file)]


def test_a_line_has_its_number_and_the_offset_of_its_first_byte(tmp_path: Path) -> None:
    lines, reader = read(log(tmp_path, b"one\n\nthree\r\nfour"))
    assert lines == [
        PhysicalLine(1, 0, b"one", True, b"one"),
        PhysicalLine(2, 4, b"", True, b""),
        PhysicalLine(3, 5, b"three\r", True, b"three\r"),
        PhysicalLine(4, 12, b"four", False, b"four"),
    ]
    assert (reader.lines, reader.bytes_read, reader.fault) == (4, 16, None)


@pytest.mark.parametrize("suffix", COMPRESSORS)
@given(content=st.binary(max_size=200) | st.lists(st.sampled_from([b"a", b"\n", b"\r"])).map(b"".join))
def test_lines_joined_by_line_feeds_are_the_content(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, content: bytes
) -> None:
    stored = COMPRESSORS[suffix](b"x" + content)
    file = log(tmp_path_factory.mktemp("logs"), stored, "7.ndjson" + suffix)
    lines, reader = read(file)
    assert b"".join(line.raw + b"\n" * line.ended for line in lines) == b"x" + content
    assert [read_slice(file, line.offset, len(line.raw)) for line in lines] == [line.raw for line in lines]
    assert [line.number for line in lines] == list(range(1, reader.lines + 1))
    assert reader.sha256 == hashlib.sha256(stored).hexdigest()
    assert reader.bytes_read == len(stored)


def test_an_empty_file_has_no_line(tmp_path: Path) -> None:
    assert raws(log(tmp_path, b"")) == []


def test_separators_of_unicode_do_not_cut_a_line(tmp_path: Path) -> None:
    content = "a\u2028b\u2029c\u0085d\ufeffe\u007ff\x0bg\x0ch\x1ei\rj".encode()
    assert raws(log(tmp_path, content + b"\n")) == [content]


def test_bytes_that_are_not_utf8_come_as_they_are(tmp_path: Path) -> None:
    assert raws(log(tmp_path, b"\xd0 \n\xff\xfe\n\0\0")) == [b"\xd0 ", b"\xff\xfe", b"\0\0"]


def test_a_byte_order_mark_is_removed_at_the_start_of_a_file_alone(tmp_path: Path) -> None:
    bom = b"\xef\xbb\xbf"
    file = log(tmp_path, bom + b"one\n" + bom + b"two\n")
    lines, _ = read(file)
    assert [(line.offset, line.raw) for line in lines] == [(3, b"one"), (7, bom + b"two")]
    assert read_slice(file, 3, 3) == b"one"


def test_lines_longer_than_a_block_are_whole(tmp_path: Path) -> None:
    expected = [b"short", b"x" * (9 << 20), b"y" * (BLOCK_BYTES - 1), b"z" * BLOCK_BYTES, b"end"]
    file = log(tmp_path, b"\n".join(expected) + b"\n")
    lines, _ = read(file)
    assert [line.raw for line in lines] == expected
    assert read_slice(file, lines[3].offset, BLOCK_BYTES) == expected[3]


def test_the_cost_of_a_long_line_grows_with_its_length_and_not_with_its_square(tmp_path: Path) -> None:
    def seconds(mebibytes: int) -> float:
        file = log(tmp_path, b"x" * (mebibytes << 20))
        start = time.process_time()
        assert [len(raw) for raw in raws(file)] == [mebibytes << 20]
        return time.process_time() - start

    seconds(1)
    assert seconds(64) < 100 * max(seconds(2), 0.005)  # 32 times as long; its square would be 1024


def test_a_rejected_bucket_gives_the_line_inside_the_wrapper(tmp_path: Path) -> None:
    inner = '{"meta":{"text":"\u2028 ü"}}'
    wrapper = json.dumps({"rejected_at": "t", "status": "invalid", "bytes": 1, "raw": inner}).encode()
    (line,) = read_lines(log(tmp_path, wrapper + b"\n", "7.rejected.ndjson"))
    assert (line.raw, line.record) == (wrapper, inner.encode())


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b"{}", b'{"raw":1}', b'{"raw":"\\ud800"}', b"\xff"])
def test_what_is_no_wrapper_stands_for_itself(broken: bytes) -> None:
    assert unwrap_rejected(broken) == broken


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_several_compressed_parts_are_one_content(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESSORS[suffix]
    stored = compress(b"one\ntw") + compress(b"") + compress(b"o\n")
    lines, reader = read(log(tmp_path, stored, "7.ndjson" + suffix))
    assert ([line.raw for line in lines], reader.fault) == ([b"one", b"two"], None)


def test_zero_bytes_behind_gzip_are_padding(tmp_path: Path) -> None:
    lines, reader = read(log(tmp_path, gzip.compress(b"one\n") + bytes(BLOCK_BYTES + 1), "7.ndjson.gz"))
    assert ([line.raw for line in lines], reader.fault) == ([b"one"], None)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_content_of_any_size_comes_whole_in_blocks_of_bounded_size(
    tmp_path: Path, suffix: str
) -> None:
    content = b"".join(b"%d\n" % number for number in range(200_000)) + b"0" * (3 * BLOCK_BYTES)
    lines, reader = read(log(tmp_path, COMPRESSORS[suffix](content), "7.ndjson" + suffix))
    assert b"\n".join(line.raw for line in lines) == content
    assert reader.fault is None


@pytest.mark.parametrize("size", range(BLOCK_BYTES - 2, BLOCK_BYTES + 3))
def test_gzip_content_that_ends_at_a_block_is_whole(tmp_path: Path, size: int) -> None:
    lines, reader = read(log(tmp_path, gzip.compress(b"x" * size), "7.ndjson.gz"))
    assert ([len(line.raw) for line in lines], reader.fault) == ([size], None)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("lost", [1, 5, 200])
def test_compressed_content_that_ends_early_gives_what_there_is_and_says_so(
    tmp_path: Path, suffix: str, lost: int
) -> None:
    content = b"".join(hashlib.sha256(b"%d" % number).hexdigest().encode() + b"\n" for number in range(9000))
    stored = COMPRESSORS[suffix](content)[:-lost]
    lines, reader = read(log(tmp_path, stored, "7.ndjson" + suffix))
    assert content.startswith(b"\n".join(line.raw for line in lines))
    assert len(lines) > 1000
    assert reader.fault is not None
    assert (reader.fault.name, reader.fault.code) == ("7.ndjson" + suffix, BAD_COMPRESSION)
    assert reader.sha256 == hashlib.sha256(stored).hexdigest()


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize(
    "stored", [b"", b'{"meta":1}\n', b"\x1f\x8b", b"\x28\xb5\x2f\xfd\xff\xff\xff\xff\xff"]
)
def test_what_is_not_compressed_as_its_name_says_is_a_fault(
    tmp_path: Path, suffix: str, stored: bytes
) -> None:
    lines, reader = read(log(tmp_path, stored, "7.ndjson" + suffix))
    assert lines == []
    assert reader.fault is not None
    assert reader.fault.code is BAD_COMPRESSION
    assert reader.bytes_read == len(stored)


def test_rubbish_behind_compressed_content_is_a_fault_after_the_content(tmp_path: Path) -> None:
    lines, reader = read(log(tmp_path, gzip.compress(b"one\n") + b"rubbish", "7.ndjson.gz"))
    assert [line.raw for line in lines] == [b"one"]
    assert reader.fault is not None


def test_a_damaged_gzip_checksum_is_a_fault_after_the_content(tmp_path: Path) -> None:
    stored = bytearray(gzip.compress(b"one\n"))
    stored[-8] ^= 1
    lines, reader = read(log(tmp_path, bytes(stored), "7.ndjson.gz"))
    assert reader.fault is not None
    assert [line.raw for line in lines] in ([], [b"one"])


def test_a_file_removed_after_listing_has_no_line_and_a_fault(tmp_path: Path) -> None:
    file = log(tmp_path, b"one\n")
    file.path.unlink()
    lines, reader = read(file)
    assert lines == []
    assert reader.fault is not None
    assert reader.fault.code is CHANGED


def test_a_file_replaced_after_listing_is_read_and_told(tmp_path: Path) -> None:
    file = log(tmp_path, b"one\n")
    file.path.rename(tmp_path / "7.1.ndjson")
    file.path.write_bytes(b"two\n")
    lines, reader = read(file)
    assert [line.raw for line in lines] == [b"two"]
    assert reader.fault is not None
    assert reader.fault.code is CHANGED


def test_a_file_cut_while_it_is_read_is_told(tmp_path: Path) -> None:
    file = log(tmp_path, b"one\n" * BLOCK_BYTES)
    reader = read_lines(file)
    batches = reader.read_batches()
    next(batches)
    os.truncate(file.path, 4)
    assert sum(len(batch.raws) for batch in batches) < BLOCK_BYTES
    assert reader.fault is not None
    assert reader.fault.code is CHANGED


def test_a_pipe_put_in_the_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    file = log(tmp_path, b"one\n")
    file.path.unlink()
    os.mkfifo(file.path)
    lines, reader = read(file)
    assert lines == []
    assert reader.fault is not None
    assert reader.fault.code is NOT_A_LOG
    with pytest.raises(InputError, match="is a pipe"):
        read_slice(file, 0, 1)


def test_reading_that_fails_is_a_fault_and_not_an_exception() -> None:
    (file,) = discover(["/proc/self/mem"]).files  # can be opened, and its first page cannot be read
    lines, reader = read(file)
    assert lines == []
    assert reader.fault is not None
    assert (reader.fault.code, reader.fault.message) == (CUT_SHORT, "input/output error")
    with pytest.raises(InputError) as raised:
        read_slice(file, 0, 1)
    assert raised.value.code is UNREADABLE


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_slice_beyond_the_end_is_refused(tmp_path: Path, suffix: str) -> None:
    file = log(tmp_path, COMPRESSORS[suffix](b"one\n"), "7.ndjson" + suffix)
    with pytest.raises(InputError) as raised:
        read_slice(file, 2, 9)
    assert raised.value.code is CHANGED


def test_a_slice_of_another_file_under_the_name_is_refused(tmp_path: Path) -> None:
    file = log(tmp_path, b"one\n")
    file.path.rename(tmp_path / "7.1.ndjson")
    with pytest.raises(InputError, match="removed"):
        read_slice(file, 0, 3)
    file.path.write_bytes(b"one\n")
    with pytest.raises(InputError, match="replaced"):
        read_slice(file, 0, 3)


def test_a_slice_of_broken_compressed_content_is_refused(tmp_path: Path) -> None:
    file = log(tmp_path, zlib.compress(b"one\n"), "7.ndjson.gz")
    with pytest.raises(InputError) as raised:
        read_slice(file, 0, 3)
    assert raised.value.code is BAD_COMPRESSION


def test_no_digest_is_computed_where_none_is_asked_for(tmp_path: Path) -> None:
    reader = read_lines(log(tmp_path, b"one\n"), digest=False)
    assert [line.raw for line in reader] == [b"one"]
    assert reader.sha256 == ""
