"""The instant of a line is read from ISO 8601 text, and from nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vinaya_bridge.log.moment import instant_us, timestamp


@pytest.mark.parametrize(
    ("ts", "instant"),
    [
        ("1970-01-01T00:00:00.000Z", 0),
        ("1970-01-01T00:00:00.001Z", 1_000),
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01", 0),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("2026-08-02T06:00:00.000Z", 1_785_650_400_000_000),
        ("2026-08-02T06:00:00.1234567Z", 1_785_650_400_123_456),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999_000),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140_000_000),
    ],
)
def test_a_time_is_so_many_microseconds_after_1970(ts: str, instant: int) -> None:
    assert instant_us(ts) == instant


@pytest.mark.parametrize(
    "ts",
    [
        "",
        "yesterday",
        "2026-13-01T00:00:00Z",
        "2026-02-30",
        "1e9",
        "\u0662026-01-01",
        "2026-01-01T00:00:60Z",
        "\ud800",
    ],
)
def test_other_text_has_no_instant(ts: str) -> None:
    assert instant_us(ts) is None


@given(st.text())
def test_no_text_crashes_it(ts: str) -> None:
    assert instant_us(ts) is None or isinstance(instant_us(ts), int)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_timestamp_reads_back_as_its_instant(milliseconds: int) -> None:
    text = timestamp(milliseconds * 1000)
    assert len(text) == 24
    assert instant_us(text) == milliseconds * 1000


def test_a_timestamp_cuts_what_is_below_a_millisecond() -> None:
    assert timestamp(1_785_650_400_000_999) == "2026-08-02T06:00:00.000Z"
