"""
A pytest plugin for people who test mappings in Python: convert some lines, and snapshot what comes out byte for byte.

Say ``pytest_plugins = ["vinaya_bridge.testing"]`` in a ``conftest.py``. Snapshots need syrupy. Example::

    def test_a_deploy_becomes_an_event(convert_lines, raw_snapshot):
        converted = convert_lines([line], overlays=["deploy.toml"])
        assert converted.runs["run-1"] == raw_snapshot
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import orjson
import pytest
from attrs import frozen
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension
from syrupy.types import SerializableData

from vinaya_bridge.mapping.cases import outcome


@frozen
class Converted:
    """
    What came of some lines.

    Args:
        runs: Run id to its events, one canonical line each, as raw bytes.

        counts: ``lines``, ``events`` and ``unmapped``, as the report has them.

        kept: The index of the lines that were kept, as raw bytes.
    """

    runs: Mapping[str, bytes]
    counts: Mapping[str, Mapping[str, int]]
    kept: bytes


class ConvertLines(Protocol):
    """Converts lines of the Log under a clock that is that of the lines."""

    def __call__(
        self,
        lines: Iterable[bytes | Mapping[str, object]],
        *,
        mapping: str | Path = "core",
        overlays: Sequence[str | Path] = (),
    ) -> Converted:
        """
        Convert lines.

        Args:
            lines: Each as bytes without the newline, or as decoded JSON.

            mapping: ``core``, ``generic``, or a file.

            overlays: Files whose rules replace single ones.

        Returns:
            What came of them.

        Raises:
            ConfigurationError: The mapping or an overlay is wrong.
        """


@pytest.fixture
def convert_lines(tmp_path: Path) -> ConvertLines:
    """Convert lines of the Log with a mapping; see `ConvertLines`."""

    def convert(
        lines: Iterable[bytes | Mapping[str, object]],
        *,
        mapping: str | Path = "core",
        overlays: Sequence[str | Path] = (),
    ) -> Converted:
        file = tmp_path / "input.ndjson"
        file.write_bytes(b"".join(_raw(line) + b"\n" for line in lines))
        files = outcome([file], mapping, [Path(overlay) for overlay in overlays])
        logs = [content for name, content in files.items() if name.startswith("runs/")]
        runs = {orjson.loads(log.partition(b"\n")[0])["runId"]: log for log in logs}
        return Converted(runs, orjson.loads(files["counts.json"]), files.get("kept/index.jsonl", b""))

    return convert


class RawSnapshotExtension(SingleFileSnapshotExtension):
    """Keeps a snapshot as the bytes themselves, one file each: no line end or control character is ever changed."""

    file_extension = "jsonl"

    def serialize(self, data: SerializableData, **_: object) -> bytes:
        """
        Take the bytes as they are.

        Args:
            data: Bytes.

        Returns:
            The same bytes.
        """
        if not isinstance(data, bytes):
            raise TypeError("a raw snapshot is taken of bytes")
        return data


@pytest.fixture
def raw_snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """A syrupy snapshot of raw bytes."""
    return snapshot.use_extension(RawSnapshotExtension)


def _raw(line: bytes | Mapping[str, object]) -> bytes:
    return line if isinstance(line, bytes) else orjson.dumps(line)
