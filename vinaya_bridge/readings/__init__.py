"""The Log's reading rules that answer questions. Source: Vinaya Log reference, Reading rules."""

from vinaya_bridge.readings.liveness import LoopStatus, liveness
from vinaya_bridge.readings.tokens import Observation
from vinaya_bridge.readings.usage import Attempt, By, UsageGroup, UsageReport, UsageRow, usage

__all__ = [
    "Attempt",
    "By",
    "LoopStatus",
    "Observation",
    "UsageGroup",
    "UsageReport",
    "UsageRow",
    "liveness",
    "usage",
]
