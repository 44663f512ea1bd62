"""The mapping language: tables that say what becomes of each event of the Log, checked and compiled."""

from vinaya_bridge.mapping.emit import Emit, Fill, Only, OverBound, Run, fill_payload, over_bound
from vinaya_bridge.mapping.load import CompiledMapping, load_mapping

__all__ = [
    "CompiledMapping",
    "Emit",
    "Fill",
    "Only",
    "OverBound",
    "Run",
    "fill_payload",
    "load_mapping",
    "over_bound",
]
