"""A path that is given alone is one input, wherever inputs are taken."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.support.corpus import corpus_lines
from vinaya_bridge import Reader, Tail
from vinaya_bridge.convert import ConvertOptions, convert
from vinaya_bridge.files import discover
from vinaya_bridge.inputs import event_lines
from vinaya_bridge.verify import verify


@pytest.mark.parametrize("kind", [str, Path])
def test_one_path_alone_is_one_input(tmp_path: Path, kind: type[str] | type[Path]) -> None:
    """A text is a sequence of letters: none of them is an input."""
    log = tmp_path / "log"
    log.mkdir()
    (log / "7.ndjson").write_bytes(b"".join(corpus_lines(20, random=Random(1))))
    report = convert(kind(log), tmp_path / "converted", ConvertOptions(jobs=1))
    with Tail(kind(log), tmp_path / "tailed") as tail:
        tail.settle()
    assert report.lines["read"] == 20
    for out in ("converted", "tailed"):
        assert verify(tmp_path / out, kind(log)).proven
    assert len(discover(kind(log)).files) == 1
    assert len(list(event_lines(kind(log), Reader()))) == 20
