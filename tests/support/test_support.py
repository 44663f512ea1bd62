"""The generators keep their word: valid lines are events, mutated ones are not, logs hold what they say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings

from tests.support.corpus import corpus_lines, write_corpus, write_corpus_tree
from tests.support.logs import WholeLog, spread_logs, whole_logs, without_repeats, write_files
from tests.support.mutations import Mutation, mutations
from tests.support.strategies import SHAPES, Line, dump, lines, raw_lines, spelled
from vinaya_bridge.log import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.families import FAMILIES

STATUSES = {EventLine: "event", Refused: "refused", UnknownVersion: "unknown_version", Blank: "blank"}
SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)


def status(verdict: Verdict) -> str:
    return STATUSES[type(verdict)]


def event(raw: bytes) -> EventLine:
    verdict = Reader().read(raw)
    assert isinstance(verdict, EventLine), verdict
    return verdict


def test_every_event_has_a_shape_under_every_schema_that_has_it() -> None:
    assert len(SHAPES) == 3 * 31 + 1
    assert {(kind, event) for kind, event, _ in SHAPES} == set(FAMILIES)


@SLOW
@given(lines())
def test_every_generated_line_is_an_event(line: Line) -> None:
    read = event(dump(line))
    assert (read.kind, read.event) == (line["kind"], line["event"])


@SLOW
@given(raw_lines())
def test_a_line_is_an_event_however_its_json_is_spelled(raw: bytes) -> None:
    assert status(Reader().read(raw)) == "event"


@SLOW
@given(lines(plain=True))
def test_all_spellings_of_a_line_have_one_identity_and_one_digest(line: Line) -> None:
    found = {(read.identity, read.digest) for read in (event(spelled(line, way)) for way in range(4))}
    assert len(found) == 1


@settings(SLOW, max_examples=300)
@given(mutations())
def test_no_mutated_line_is_an_event(mutation: Mutation) -> None:
    assert status(Reader().read(mutation.raw)) == mutation.status, mutation


@settings(SLOW, max_examples=40)
@given(whole_logs())
def test_a_whole_log_holds_the_identities_duplicates_and_conflicts_that_it_names(log: WholeLog) -> None:
    read = [event(raw) for raw in log.lines]
    contents: dict[str, set[str]] = {}
    for each in read:
        contents.setdefault(each.identity, set()).add(each.digest)
    assert set(contents) == set(log.identities)
    assert len(log.identities) == len(set(log.identities))
    assert len(read) == len(log.identities) + log.duplicates + log.conflicts
    assert sum(len(digests) - 1 for digests in contents.values()) == log.conflicts
    assert len(without_repeats(log).lines) == len(contents)


@settings(SLOW, max_examples=25)
@given(spread_logs())
def test_spreading_a_log_over_files_loses_and_adds_nothing(pair: tuple[WholeLog, dict[str, bytes]]) -> None:
    log, files = pair
    assert Counter(cut(b"".join(files.values()))) == Counter(log.lines)


def cut(content: bytes) -> list[bytes]:
    return content.split(b"\n")[:-1]


def test_every_line_of_the_corpus_is_an_event_with_an_identity_of_its_own() -> None:
    reader = Reader()
    read = [reader.read(raw) for raw in corpus_lines(4000, random=Random(5))]
    events = [each for each in read if isinstance(each, EventLine)]
    assert len(events) == len(read)
    assert len({each.identity for each in events}) == len(events)
    assert {each.schema for each in events} == {1, 2, 3}
    assert {(each.kind, each.event) for each in events} == set(FAMILIES)


def test_the_corpus_depends_on_the_random_state_alone(tmp_path: Path) -> None:
    size = write_corpus(tmp_path / "once.ndjson", 500, random=Random(9))
    write_corpus(tmp_path / "again.ndjson", 500, random=Random(9))
    write_corpus(tmp_path / "other.ndjson", 500, random=Random(10))
    once, again, other = ((tmp_path / f"{name}.ndjson").read_bytes() for name in ("once", "again", "other"))
    assert once == again != other
    assert size == len(once)
    assert 900 < size / 500 < 1300


def test_a_corpus_tree_holds_the_lines_of_the_flat_corpus(tmp_path: Path) -> None:
    paths = write_corpus_tree(tmp_path, 1000, random=Random(3), files=5)
    assert len(paths) == 5
    spread = [line for path in paths for line in cut(path.read_bytes())]
    assert Counter(spread) == Counter(line[:-1] for line in corpus_lines(1000, random=Random(3)))


def test_files_are_written_below_a_folder(tmp_path: Path) -> None:
    root = write_files(tmp_path / "logs", {"a-b/7.ndjson": b"{}\n", "none.ndjson": b""})
    assert (root / "a-b" / "7.ndjson").read_bytes() == b"{}\n"
    assert (root / "none.ndjson").read_bytes() == b""
