"""How an output was made, as its report says it: what a later call on it has to go by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vinaya_bridge.ledger import JsonValue
from vinaya_bridge.lines import MAX_LINE_BYTES
from vinaya_bridge.mapping import CompiledMapping, load_mapping
from vinaya_bridge.scan import ScanOptions

_OF_ONE_CALL = frozenset({"version", "mapping", "started", "ended"})


def options_of(report: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    """
    Return the options that an output was made with, for the report of the next call.

    Args:
        report: The output's last report.
    """
    return {name: value for name, value in _bridge(report).items() if name not in _OF_ONE_CALL}


def scan_options_of(report: Mapping[str, JsonValue] | None) -> ScanOptions:
    """
    Return how the lines of an output are read.

    Args:
        report: The output's last report.
    """
    bridge = _bridge(report)
    max_line_bytes = bridge.get("max_line_bytes")
    return ScanOptions(
        include_selftest=bool(bridge.get("include_selftest")),
        whole_lines=bridge.get("origin") == "full",
        max_line_bytes=max_line_bytes if isinstance(max_line_bytes, int) else MAX_LINE_BYTES,
    )


def mapping_of(report: Mapping[str, JsonValue] | None, mapping: str | Path | None = None) -> CompiledMapping:
    """
    Load the mapping of an output with its overlays, as it is now.

    Args:
        report: The output's last report.

        mapping: Its name or path, where the report does not name it by one that still holds.

    Raises:
        ConfigurationError: It cannot be read.
    """
    bridge = _bridge(report)
    named, overlays = bridge.get("mapping"), bridge.get("overlays")
    name = named.get("name") if isinstance(named, dict) else None
    return load_mapping(
        mapping or (name if isinstance(name, str) else "core"),
        overlays=[Path(str(each)) for each in overlays] if isinstance(overlays, list) else [],
    )


def _bridge(report: Mapping[str, JsonValue] | None) -> dict[str, JsonValue]:
    bridge = report.get("bridge") if report is not None else None
    return bridge if isinstance(bridge, dict) else {}
