"""The Vinaya Log: what a line is, and what it says."""

from vinaya_bridge.log.line import Blank, EventLine, Reader, Refused, UnknownVersion, Verdict
from vinaya_bridge.log.rules import ABSENT
from vinaya_bridge.log.shapes import PathInfo, paths

__all__ = [
    "ABSENT",
    "Blank",
    "EventLine",
    "PathInfo",
    "Reader",
    "Refused",
    "UnknownVersion",
    "Verdict",
    "paths",
]
