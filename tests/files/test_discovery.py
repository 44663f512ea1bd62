"""What is a log, what is named and left alone, and in which order files come."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.modes import bound_by_modes
from vinaya_bridge.content import Compression
from vinaya_bridge.files import (
    CODES,
    MISSING,
    NOT_A_LOG,
    UNREADABLE,
    Bucket,
    discover,
    parse_name,
)


def put(path: Path, content: bytes = b"{}\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(*inputs: Path) -> list[str]:
    return [file.name for file in discover(inputs).files]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a/7.ndjson", ("a/7", Bucket.LIVE, Compression.NONE)),
        ("a/7.1.ndjson", ("a/7", Bucket.SLOT, Compression.NONE)),
        ("a/7.draining.ndjson", ("a/7", Bucket.DRAINING, Compression.NONE)),
        ("a/7.1.draining.ndjson", ("a/7", Bucket.SLOT_DRAINING, Compression.NONE)),
        ("a/7.rejected.ndjson", ("a/7", Bucket.REJECTED, Compression.NONE)),
        ("a/7.1.ndjson.gz", ("a/7", Bucket.SLOT, Compression.GZIP)),
        ("a/7.ndjson.zst", ("a/7", Bucket.LIVE, Compression.ZSTD)),
        ("-5.ndjson", ("-5", Bucket.LIVE, Compression.NONE)),
        ("1e+21.ndjson", ("1e+21", Bucket.LIVE, Compression.NONE)),
        ("1.ndjson", ("1", Bucket.LIVE, Compression.NONE)),
        ("a/.1.ndjson", ("a/.1", Bucket.LIVE, Compression.NONE)),
        ("notes.txt", ("notes.txt", Bucket.LIVE, Compression.NONE)),
        ("notes.gz", ("notes.gz", Bucket.LIVE, Compression.GZIP)),
    ],
)
def test_a_name_says_stream_bucket_and_compression(
    name: str, expected: tuple[str, Bucket, Compression]
) -> None:
    assert parse_name(name) == expected


def test_a_directory_is_searched_at_any_depth_for_logs_alone(tmp_path: Path) -> None:
    for name in ("7.ndjson", "a/b/c/d/none.ndjson", "a/7.ndjson.gz", "a/8.ndjson.zst"):
        put(tmp_path / name)
    for name in (
        "driver.log",
        "x.json",
        "cache.sqlite",
        "7.ndjson.flush-lock",
        "7.ndjson.flush-lock.claimed-1",
    ):
        put(tmp_path / "a" / name)
    found = discover([tmp_path])
    assert [file.name for file in found.files] == [
        "7.ndjson",
        "a/7.ndjson.gz",
        "a/8.ndjson.zst",
        "a/b/c/d/none.ndjson",
    ]
    assert found.notices == []


def test_the_buckets_of_a_stream_come_oldest_first(tmp_path: Path) -> None:
    for name in ("7", "7.1", "7.draining", "7.1.draining", "7.rejected", "6"):
        put(tmp_path / f"{name}.ndjson")
    assert names(tmp_path) == [
        "6.ndjson",
        "7.1.draining.ndjson",
        "7.draining.ndjson",
        "7.1.ndjson",
        "7.ndjson",
        "7.rejected.ndjson",
    ]


def test_a_file_that_is_an_argument_is_taken_whatever_its_name(tmp_path: Path) -> None:
    assert names(put(tmp_path / "export.txt")) == ["export.txt"]


def test_a_directory_below_the_interpreters_depth_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    levels = [Path("/".join("d" * depth)) for depth in range(1, 1500)]
    for level in levels:
        level.mkdir()
    log = put(levels[-1] / "7.ndjson")
    assert names(Path()) == [os.fspath(log)]
    log.unlink()  # what pytest removes its scratch directories with would recurse
    for level in reversed(levels):
        level.rmdir()


def test_what_is_no_regular_file_is_named_and_never_followed_or_waited_for(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    outside = put(tmp_path / "elsewhere" / "9.ndjson")
    put(logs / "7.ndjson")
    (logs / "link.ndjson").symlink_to(outside)
    (logs / "nowhere.ndjson").symlink_to("absent")
    (logs / "up").symlink_to("..")
    (logs / "round.ndjson").symlink_to("round.ndjson")
    (logs / "readme").symlink_to(outside)
    os.mkfifo(logs / "pipe.ndjson")
    put(logs / "folder.ndjson" / "8.ndjson")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(logs / "socket.ndjson"))
        found = discover([logs])
    assert [file.name for file in found.files] == ["7.ndjson"]
    assert {notice.name: notice.message.split(",")[0] for notice in found.notices} == {
        "link.ndjson": "is a link",
        "nowhere.ndjson": "is a link",
        "up": "is a link",
        "round.ndjson": "is a link",
        "pipe.ndjson": "is a pipe",
        "folder.ndjson": "is a directory",
        "socket.ndjson": "is a socket",
    }
    assert {notice.code for notice in found.notices} == {NOT_A_LOG}


def test_a_pipe_or_device_that_is_an_argument_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = discover([tmp_path / "pipe", os.devnull])
    assert found.files == []
    assert [notice.message for notice in found.notices] == [
        "is a pipe, not a regular file",
        "is a device, not a regular file",
    ]


@pytest.mark.parametrize("argument", ["absent", "", "nul\0byte", "dangling"])
def test_an_argument_that_does_not_exist_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "7.ndjson")
    Path("dangling").symlink_to("absent")
    found = discover([argument])
    assert found.files == []
    assert [(notice.name, notice.code) for notice in found.notices] == [(argument, MISSING)]


def test_an_argument_that_is_a_link_is_followed_since_a_person_named_it(tmp_path: Path) -> None:
    put(tmp_path / "real" / "7.ndjson")
    (tmp_path / "alias").symlink_to("real")
    assert names(tmp_path / "alias") == ["7.ndjson"]


def test_an_argument_whose_link_goes_round_is_named(tmp_path: Path) -> None:
    (tmp_path / "round").symlink_to("round")
    assert [notice.code for notice in discover([tmp_path / "round"]).notices] == [UNREADABLE]


def test_a_file_reached_twice_is_taken_once(tmp_path: Path) -> None:
    log = put(tmp_path / "acme-widget" / "7.ndjson")
    os.link(log, log.with_name("hard.ndjson"))
    found = discover([tmp_path, log.parent, log, tmp_path])
    assert [file.name for file in found.files] == ["acme-widget/7.ndjson"]
    assert found.notices == []


def test_equal_names_of_several_arguments_are_told_apart_and_streams_stay_together(tmp_path: Path) -> None:
    for place in ("x/logs", "y/logs", "z/logs"):
        put(tmp_path / place / "a" / "7.ndjson")
        put(tmp_path / place / "a" / "7.1.ndjson")
    put(tmp_path / "y/logs/a/8.ndjson")
    found = discover([tmp_path / "x/logs", tmp_path / "y/logs", tmp_path / "z/logs"])
    assert [(file.stream, file.name) for file in found.files] == [
        ("a/7", "a/7.1.ndjson"),
        ("a/7", "a/7.ndjson"),
        ("a/8", "a/8.ndjson"),
        ("logs/a/7", "logs/a/7.1.ndjson"),
        ("logs/a/7", "logs/a/7.ndjson"),
        ("logs~2/a/7", "logs~2/a/7.1.ndjson"),
        ("logs~2/a/7", "logs~2/a/7.ndjson"),
    ]


def test_an_excluded_directory_is_not_searched_however_it_is_spelled(tmp_path: Path) -> None:
    put(tmp_path / "7.ndjson")
    put(tmp_path / "out" / "kept" / "refused.ndjson")
    (tmp_path / "alias").symlink_to("out")
    found = discover([tmp_path], exclude=tmp_path / "alias")
    assert [file.name for file in found.files] == ["7.ndjson"]


def test_an_unreadable_file_is_named_and_the_others_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    put(Path("logs/6.ndjson")).chmod(0o644)
    put(Path("logs/7.ndjson")).chmod(0)
    Path("logs/hidden").mkdir(mode=0)
    with bound_by_modes():
        found = discover(["logs"])
    assert [file.name for file in found.files] == ["6.ndjson"]
    assert [(notice.name, notice.code, notice.message) for notice in found.notices] == [
        ("7.ndjson", UNREADABLE, "permission denied"),
        ("hidden", UNREADABLE, "permission denied"),
    ]


def test_a_directory_that_can_be_listed_and_not_searched_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    put(Path("logs/acme-lantern/7.ndjson"))
    put(Path("logs/8.ndjson"))
    put(Path("logs/readme"))
    Path("logs").chmod(0o444)
    with bound_by_modes():
        found = discover(["logs"])
    Path("logs").chmod(0o755)
    assert [(notice.name, notice.code) for notice in found.notices] == [
        ("8.ndjson", UNREADABLE),
        ("acme-lantern", UNREADABLE),
    ]


def test_a_name_that_is_not_utf8_becomes_text_that_can_be_written(tmp_path: Path) -> None:
    put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.ndjson")))
    assert names(tmp_path) == ["\\xff.ndjson"]


def test_finding_files_changes_no_name_mode_or_time(tmp_path: Path) -> None:
    put(tmp_path / "a" / "7.ndjson")
    before = {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")}
    discover([tmp_path])
    assert {path: (path.stat().st_mode, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")} == before


@given(st.permutations(["7.ndjson", "7.1.ndjson", "a/7.ndjson", "b/none.ndjson", "b/none.rejected.ndjson"]))
def test_the_order_of_files_does_not_depend_on_the_order_they_were_made(
    tmp_path_factory: pytest.TempPathFactory, order: list[str]
) -> None:
    root = tmp_path_factory.mktemp("logs")
    for name in order:
        put(root / name)
    assert names(root) == ["7.1.ndjson", "7.ndjson", "a/7.ndjson", "b/none.ndjson", "b/none.rejected.ndjson"]


def test_every_code_of_the_inputs_is_in_the_three_hundreds_and_has_a_page() -> None:
    assert len({code.id for code in CODES}) == len(CODES)
    assert all(code.id.startswith("VB3") and len(code.page) > 80 for code in CODES)
