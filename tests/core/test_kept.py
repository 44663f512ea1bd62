"""What is kept byte for byte."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vinaya_bridge.errors import SinkError
from vinaya_bridge.kept import INDEX_NAME, KeptStore, identity_mark, kept_rows

LINES = [b'{"torn', b"", b"\xff\x00 not text", "ünïcode\u2028".encode(), b"x" * 5000]


def keep(folder: Path, lines: list[bytes], *, why: str = "refused") -> int:
    store = KeptStore(folder)
    added = [
        store.add(raw, file="a/7.ndjson", line=number, offset=10 * number, why=why, code="VB101", path="$")
        for number, raw in enumerate(lines, 1)
    ]
    store.sync()
    store.close()
    return sum(row is not None for row in added)


def test_kept_bytes_are_those_of_the_line_and_the_row_says_where(tmp_path: Path) -> None:
    keep(tmp_path, LINES)
    stored = (tmp_path / "refused.ndjson").read_bytes()
    rows = list(kept_rows(tmp_path))
    assert [stored[row.kept_offset : row.kept_offset + row.length] for row in rows] == LINES
    assert [row.sha256 for row in rows] == [hashlib.sha256(raw).hexdigest() for raw in LINES]
    assert [(row.line, row.offset) for row in rows] == [(n, 10 * n) for n in range(1, 6)]


def test_a_line_from_the_same_place_is_kept_once(tmp_path: Path) -> None:
    assert keep(tmp_path, LINES) == 5
    before = (tmp_path / "refused.ndjson").read_bytes()
    assert keep(tmp_path, LINES) == 0
    assert (tmp_path / "refused.ndjson").read_bytes() == before


def test_equal_lines_from_two_places_are_both_kept(tmp_path: Path) -> None:
    assert keep(tmp_path, [b"same", b"same"]) == 2


def test_unknown_versions_lie_in_a_file_of_their_own(tmp_path: Path) -> None:
    keep(tmp_path, [b"{}"], why="unknown_version")
    assert (tmp_path / "unknown-version.ndjson").read_bytes() == b"{}\n"
    assert not (tmp_path / "refused.ndjson").exists()


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    keep(tmp_path / "kept", LINES)
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "kept" / INDEX_NAME).stat().st_mode & 0o777 == 0o600


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut_kept=st.integers(0, 200), cut_index=st.integers(0, 400))
def test_whatever_a_crash_cut_off_opening_again_gives_rows_that_have_their_bytes(
    tmp_path: Path, cut_kept: int, cut_index: int
) -> None:
    folder = Path(mkdtemp(dir=tmp_path))
    keep(folder, LINES[:4])
    for name, cut in (("refused.ndjson", cut_kept), (INDEX_NAME, cut_index)):
        path = folder / name
        os.truncate(path, max(0, path.stat().st_size - cut))
    keep(folder, LINES[:4])
    stored = (folder / "refused.ndjson").read_bytes()
    rows = list(kept_rows(folder))
    assert sorted(stored[row.kept_offset : row.kept_offset + row.length] for row in rows) == sorted(LINES[:4])
    assert sum(row.length + 1 for row in rows) == len(stored)


def test_a_missing_or_foreign_index_is_refused_and_nothing_is_cut(tmp_path: Path) -> None:
    keep(tmp_path / "foreign", LINES)
    index = tmp_path / "foreign" / INDEX_NAME
    index.write_bytes(b'{"a":"row of another tool"}\n' + index.read_bytes())
    keep(tmp_path / "missing", LINES)
    (tmp_path / "missing" / INDEX_NAME).unlink()
    for name in ("foreign", "missing"):
        before = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        with pytest.raises(SinkError) as raised:
            KeptStore(tmp_path / name)
        assert raised.value.remedy
        assert {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} == before


def test_a_row_of_wrong_types_is_no_row(tmp_path: Path) -> None:
    keep(tmp_path, LINES)
    index = tmp_path / INDEX_NAME
    index.write_bytes(index.read_bytes().replace(b'"length":6', b'"length":"6"'))
    with pytest.raises(SinkError):
        KeptStore(tmp_path)


def test_a_line_that_was_late_is_known_again(tmp_path: Path) -> None:
    store = KeptStore(tmp_path)
    store.add(b"{}", file="a", line=1, offset=0, why="late", identity="ev-1")
    store.sync()
    store.close()
    again = KeptStore(tmp_path)
    assert again.late == {identity_mark("ev-1")}
