"""
Reads the Vinaya Log and emits ethogram events.

The functions have the names of their modules: `vinaya_bridge.convert.convert`, `vinaya_bridge.verify.verify`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vinaya_bridge.log import Reader
    from vinaya_bridge.mapping import load_mapping
    from vinaya_bridge.tail import Tail
    from vinaya_bridge.tail_poll import TailPoll

__all__ = ["Reader", "Tail", "TailPoll", "load_mapping"]

_HOMES = {"Reader": "log", "Tail": "tail", "TailPoll": "tail_poll", "load_mapping": "mapping"}


def __getattr__(name: str) -> object:
    """Import a public name when it is used: the command's start costs nothing that it does not need."""
    if name not in _HOMES:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
