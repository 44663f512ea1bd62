"""
The generic families that the Log's events map to, and which of them the Log's reference states.

Source: Vinaya Log reference, Generic mapping. The reference's table lost rows; where it says nothing, a mapping may
name a family of its own reading, marked ``inferred``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vinaya_bridge.mapping.table import EventName

STATED: Mapping[EventName, tuple[str, ...]] = MappingProxyType(
    {
        ("dispatch", "dispatched"): ("execution.started", "review.requested"),
        ("dispatch", "outcome_received"): ("execution.completed",),
        ("dispatch", "dispatch_failed"): ("execution.failed",),
        ("dev_review_loop", "loop_started"): ("run.started",),
        ("dev_review_loop", "round_started"): ("decision.recorded",),
        ("gate", "checked"): ("gate.evaluated",),
        ("usage", "observed"): ("execution.usage",),
        ("handoff", "raised"): ("handoff.raised", "human.intervened"),
        ("handoff", "resolved"): ("handoff.resolved", "human.intervened"),
        ("effect", "verified"): ("effect.committed", "effect.reconciled"),
        ("custom", "recorded"): ("process.event",),
    }
)
"""What the reference states, event by event."""

STATED_AS_NOT_MAPPED: frozenset[EventName] = frozenset(
    {
        ("dev_review_loop", "unpushed_work_resume"),
        ("forge_write", "validated"),
        ("forge_write", "refused"),
        ("forge_write", "written"),
        ("effect", "attempted"),
        ("effect", "observed"),
    }
)
"""The events that the reference says are not in the mapping."""

INFERRED_FAMILIES: tuple[str, ...] = (
    "execution.retried",
    "operation.completed",
    "process.exited",
    "review.completed",
    "run.cancelled",
    "run.completed",
    "run.heartbeat",
    "run.paused",
    "run.resumed",
    "run.stopped",
)
"""Families that the reference does not name, in the shape of those that it does."""

FAMILIES: frozenset[str] = frozenset(name for names in STATED.values() for name in names) | frozenset(
    INFERRED_FAMILIES
)
"""Every family that a mapping may name."""
