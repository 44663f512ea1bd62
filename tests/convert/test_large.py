"""What does not fit in memory is settled and ordered as what does."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.convert.outputs import content
from vinaya_bridge import placing
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.entry import Act, Entry, Opening, Place
from vinaya_bridge.large import LargePartition
from vinaya_bridge.order import in_order
from vinaya_bridge.settle import settle
from vinaya_bridge.spill import BLOCK_LINES, Partition, Spill

IN_MEMORY = ConvertOptions(clock=lambda: "2031-02-03T04:05:06.789Z", jobs=1)
ON_DISK = evolve(IN_MEMORY, memory_budget_bytes=20_000)


@pytest.fixture
def all_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every partition that is on the disk for one that does not fit in memory."""
    monkeypatch.setattr(placing, "LARGE_BYTES", 0)


@pytest.mark.usefixtures("all_large")
@pytest.mark.parametrize("origin", ["ids", "full"])
def test_the_output_is_the_same_byte_for_byte(log: Path, tmp_path: Path, origin: Any) -> None:
    convert([log], tmp_path / "memory", evolve(IN_MEMORY, origin=origin))
    convert([log], tmp_path / "disk", evolve(ON_DISK, origin=origin))
    assert content(tmp_path / "disk") == content(tmp_path / "memory")


@pytest.mark.usefixtures("all_large")
def test_what_an_output_holds_already_is_not_repeated(log: Path, tmp_path: Path) -> None:
    for name, options in (("memory", IN_MEMORY), ("disk", ON_DISK)):
        convert([log / "1.ndjson"], tmp_path / name, options)
        convert([log], tmp_path / name, options)
        rmtree(tmp_path / name / "state")
    assert content(tmp_path / "disk") == content(tmp_path / "memory")


def entry(identity: str, digest: str, main_run: str, process: str, seq: int, instant_us: int | None) -> Entry:
    opening = Opening("loop", "developer", "vinaya")
    return Entry(
        identity,
        digest,
        main_run,
        process,
        seq,
        instant_us,
        "2026-08-02T06:00:00.000Z",
        "gate.summary",
        Act.OTHER,
        "",
        opening,
        [],
        Place(0, 1, 0, 10),
    )


entries_of_a_partition = st.lists(
    st.builds(
        entry,
        st.text("abcdefgh\xe9", min_size=1, max_size=2),
        st.sampled_from("xyz"),
        st.sampled_from(("m", "n")),
        st.sampled_from(("p", "q", "\U0001f600", "\uffff")),
        st.integers(0, 4),
        st.none() | st.integers(-5, 9),
    ),
    min_size=1,
    max_size=40,
)


@settings(deadline=None)
@given(
    entries_of_a_partition,
    st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("xyz"), max_size=3),
    st.sampled_from((0, 1 << 20)),
)
def test_settling_and_order_on_the_disk_are_those_in_memory(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry], known: dict[str, str], budget_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("large")
    spill = Spill(folder / "entries", partitions=1, budget_bytes=budget_bytes)
    for start in range(0, len(entries), 7):
        spill.add(entries[start : start + 7], 0)
    spilled = spill.spilled()
    partition = Partition([(spilled.path, spilled.segments[0])])
    assert partition.entries() == entries
    with LargePartition(
        partition,
        folder,
        lambda keys: {key.identity: known[key.identity] for key in keys if key.identity in known},
    ) as large:
        assert large.main_runs() == list(dict.fromkeys(entry.main_run for entry in entries))
        for main_run in large.main_runs():
            of_run = [entry for entry in entries if entry.main_run == main_run]
            identities = {entry.identity for entry in of_run}
            settled = settle(of_run, {key: value for key, value in known.items() if key in identities})
            assert list(large.in_order(main_run)) == in_order(settled.stay)
            assert large.duplicates(main_run) == len(settled.duplicates)
            conflicts = list(large.conflicts(main_run))
            assert [conflict.entry for conflict in conflicts] == settled.conflicts
            stays = {entry.identity: entry for entry in settled.stay}
            assert [conflict.stays for conflict in conflicts] == [
                stays.get(conflict.entry.identity) for conflict in conflicts
            ]
    assert [path.name for path in folder.iterdir()] == ["entries"]


@given(st.lists(st.integers(1, 300), min_size=1, max_size=12))
def test_a_block_holds_no_more_lines_than_it_may_however_entries_were_added(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("blocks")
    spill = Spill(folder / "entries", partitions=1, budget_bytes=1 << 30)
    entries = [entry(f"{number}", "x", "m", "p", number, None) for number in range(sum(sizes))]
    for size in sizes:
        spill.add(entries[:size], 0)
    added = [each for size in sizes for each in entries[:size]]
    assert spill.partitions()[0].entries() == added
    spilled = spill.spilled()
    partition = Partition([(spilled.path, spilled.segments[0])])
    assert partition.entries() == added
    decode = msgspec.msgpack.Decoder(list[Entry]).decode
    counts = [len(decode(block.read())) for block in partition.places()]
    assert max(counts) <= BLOCK_LINES
    assert len(counts) <= 2 * len(added) / BLOCK_LINES + 2
