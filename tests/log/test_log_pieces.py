"""A line that is not one JSON value is taken apart, so that no whole record is lost with a torn one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.log.log_lines import line_of
from tests.support.strategies import dump
from vinaya_bridge.log import EventLine, Reader
from vinaya_bridge.log.pieces import Piece, split_pieces

WHOLE = dump(line_of("handoff", "raised", reason='}{"meta":{"schema":3} \\" {"meta":'))
OTHER = dump(line_of("gate", "summary"))


def parts(raw: bytes) -> list[bytes]:
    return [raw[piece.start : piece.start + piece.length] for piece in split_pieces(raw)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (WHOLE, [WHOLE]),
        (WHOLE + OTHER, [WHOLE, OTHER]),
        (WHOLE + b" \t" + OTHER + b"\r", [WHOLE, b" \t" + OTHER + b"\r"]),
        (b"\0" * 512 + WHOLE, [b"\0" * 512, WHOLE]),
        (WHOLE + b"\0" * 64, [WHOLE, b"\0" * 64]),
        (WHOLE[:26] + OTHER, [WHOLE[:26], OTHER]),
        (WHOLE[:26] + OTHER[:300] + WHOLE, [WHOLE[:26] + OTHER[:300], WHOLE]),
        (WHOLE + OTHER[:99], [WHOLE, OTHER[:99]]),
        (WHOLE + OTHER[:99] + WHOLE, [WHOLE, OTHER[:99], WHOLE]),
        (b'{"meta":' + WHOLE, [b'{"meta":', WHOLE]),
        (b'{"meta":{"ts":' + WHOLE + OTHER, [b'{"meta":{"ts":', WHOLE, OTHER]),
        (b'{"meta":{"ts":"a\\' + WHOLE, [b'{"meta":{"ts":"a\\', WHOLE]),
        (b"\xef\xbb\xbf" + WHOLE, [b"\xef\xbb\xbf", WHOLE]),
        (b'{"meta":{"ts":"\xe2\x82' + WHOLE, [b'{"meta":{"ts":"\xe2\x82', WHOLE]),
        (WHOLE + b" x", [WHOLE + b" x"]),
        (WHOLE + b",", [WHOLE + b","]),
        (b"nope", [b"nope"]),
        (b"{}{}", [b"{}{}"]),
        (b"", [b""]),
    ],
)
def test_a_line_is_taken_apart_at_its_whole_records(raw: bytes, expected: list[bytes]) -> None:
    assert parts(raw) == expected


def test_every_cut_of_a_record_before_a_whole_one_leaves_the_whole_one(reader: Reader) -> None:
    for end in range(1, len(WHOLE)):
        found = parts(WHOLE[:end] + OTHER)
        assert found[-1] == OTHER
        assert b"".join(found[:-1]) == WHOLE[:end]


def test_a_valid_line_that_holds_the_look_of_a_record_is_one_event(reader: Reader) -> None:
    assert isinstance(reader.read(WHOLE), EventLine)
    assert split_pieces(WHOLE) == [Piece(0, len(WHOLE))]


BITS = st.sampled_from(
    [
        WHOLE,
        OTHER,
        WHOLE[:40],
        OTHER[30:],
        b"\0",
        b" ",
        b"{",
        b"}",
        b'"',
        b"\\",
        b'{"meta":',
        b"[",
        b",",
        b"\xff",
    ]
)


@given(st.lists(BITS, max_size=8).map(b"".join))
def test_the_pieces_cover_the_line_without_gap_or_overlap(raw: bytes) -> None:
    pieces = split_pieces(raw)
    assert b"".join(parts(raw)) == raw
    assert pieces
    assert all(piece.length for piece in pieces) or raw == b""


@given(st.lists(BITS, max_size=6).map(b"".join), st.lists(BITS, max_size=3).map(b"".join))
def test_a_piece_that_is_whole_stays_whole_by_itself(before: bytes, behind: bytes) -> None:
    for part in parts(before + WHOLE + behind):
        assert part == parts(part)[0] or len(parts(part)) > 1


@pytest.mark.parametrize(
    ("unit", "most"),
    [
        (b'{"meta":', 1),
        (b'{"meta":"\\"', 1),
        (b'{"meta":{"a":"', 1),
        (b'{"meta":"a\x01', 1),
        (b'{"meta":[', 1),
        (b"{}", 1),
        (b"[", 1),
        (b'"', 1),
        (b'\\"', 1),
        (b'{"meta":1}', 20_000),
    ],
)
def test_hostile_lines_take_linear_time(unit: bytes, most: int) -> None:
    # Quadratic work on 200 kB would be 10^10 steps and not end within the test's time.
    raw = unit * (200_000 // len(unit))
    assert len(split_pieces(raw)) == most
