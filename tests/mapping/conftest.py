"""The mapping tests use the plugin that the package offers to everyone."""

from vinaya_bridge.testing import convert_lines, raw_snapshot

__all__ = ["convert_lines", "raw_snapshot"]
