"""What the tests of conversions share."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

from tests.support.corpus import corpus_lines

SEQ = re.compile(rb'"seq":[0-9]+')


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with all that can be wrong with one, in files of different sizes."""
    random = Random(8)
    files: list[list[bytes]] = [[], [], []]
    for line in corpus_lines(2_000, random=random):
        lines = files[random.randrange(3)]
        chance = random.random()
        if chance < 0.02:
            lines.append(line[: len(line) // 2] + b"\n")
        elif chance < 0.04:
            lines += [line, line]
        elif chance < 0.06:
            lines += [line, line.replace(b'"acme/lantern"', b'"acme/lamp"')]
        elif chance < 0.07:
            lines += [line, line.replace(b'"lineage":{"run":"loop', b'"lineage":{"run":"other')]
        elif chance < 0.075:
            lines.append(SEQ.sub(b'"seq":9007199254740993', line, count=1))
        elif chance < 0.08:
            lines += [b"\n", line[: len(line) // 2] + line]
        else:
            lines.append(line)
    folder = tmp_path / "in"
    folder.mkdir()
    for number, lines in enumerate(files):
        (folder / f"{number}.ndjson").write_bytes(b"".join(lines))
    with (folder / "0.ndjson").open("ab") as stream:
        stream.write(b'{"meta":{"sch')
    for number in range(20):
        (folder / f"small-{number}.ndjson").write_bytes(files[0][number])
    return folder
