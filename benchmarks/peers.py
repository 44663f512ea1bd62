"""What else a user would run over the same file, without any mapping: parse each line and print it again."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import orjson

from benchmarks.measure import Case

_NODE = """
const lines = require("fs").readFileSync(process.argv[1], "utf8").split("\\n");
let bytes = 0;
for (const line of lines) if (line) bytes += JSON.stringify(JSON.parse(line)).length;
"""


def cases(source: Path, folder: Path) -> list[Case]:
    """
    Return a case for each peer that is installed.

    Args:
        source: The folder of log files.

        folder: Where to put them together.
    """
    joined = folder / "joined.ndjson"
    joined.write_bytes(b"".join(path.read_bytes() for path in sorted(source.rglob("*.ndjson"))))
    lines = joined.read_bytes().splitlines()
    text = [line.decode() for line in lines]

    def run(*command: str) -> None:
        subprocess.run([*command, str(joined)], check=True, stdout=subprocess.DEVNULL)

    found = [
        Case("peer: orjson.loads alone", lambda: _each(orjson.loads, lines)),
        Case("peer: json.loads + json.dumps", lambda: _each(lambda line: json.dumps(json.loads(line)), text)),
    ]
    if shutil.which("node") is not None:
        found.append(Case("peer: node, parse + stringify", lambda: run("node", "-e", _NODE)))
    if shutil.which("jq") is not None:
        found.append(Case("peer: jq -c", lambda: run("jq", "-c", ".")))
    return found


def _each(work: object, lines: list[bytes] | list[str]) -> None:
    assert callable(work)
    for line in lines:
        work(line)
