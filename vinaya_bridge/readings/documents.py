"""The readings as JSON: stable keys, sorted rows, null for what is not known, always with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from vinaya_bridge.readings.figures import Figure, Number, Term
from vinaya_bridge.readings.liveness import LoopStatus
from vinaya_bridge.readings.tokens import Observation
from vinaya_bridge.readings.usage import Attempt, By, UsageGroup, UsageReport, UsageRow

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LARGEST_SAFE: Final = 2**53 - 1
"""A whole number beyond this is printed as text: most readers of JSON would round it."""


def usage_document(report: UsageReport, by: By | None = None) -> dict[str, Json]:
    """
    Turn a usage report into JSON.

    Args:
        report: What `usage` returned.

        by: What to give totals by; None: no totals.

    Returns:
        ``observations`` (what counts), ``attempts``, ``all_observations`` (every usage line, with whether it counts),
        ``lines``, and ``groups`` where totals were asked for.
    """
    counted = report.counted()
    document: dict[str, Json] = {
        "observations": [_row(row) for row in report.rows],
        "attempts": [_attempt(attempt) for attempt in report.attempts],
        "all_observations": [
            _observation(each, counts=each.identity in counted) for each in report.observations
        ],
        "lines": {
            "duplicate": report.duplicates,
            "conflict": report.conflicts,
            "low_trust": report.low_trust_lines,
        },
    }
    if by is not None:
        document["groups"] = [_group(group, by) for group in report.grouped(by)]
    return document


def status_document(statuses: list[LoopStatus], now: str) -> dict[str, Json]:
    """
    Turn loop statuses into JSON.

    Args:
        statuses: What `liveness` returned.

        now: The time they were judged by, ISO 8601.

    Returns:
        ``now`` and ``loops``.
    """
    return {
        "now": now,
        "loops": [
            {
                "repo": each.repo,
                "issue": each.issue,
                "loop_id": each.loop_id,
                "state": each.state,
                "exit_reason": each.exit_reason,
                "event": each.event,
                "ts": each.ts,
                "age_ms": each.age_ms,
                "machine": each.machine,
                "round": each.round,
                "phase": each.phase,
                "pr": each.pr,
                "low_trust": each.low_trust,
                "notes": list(each.notes),
            }
            for each in statuses
        ],
    }


def _row(row: UsageRow) -> dict[str, Json]:
    return {
        "run": row.run,
        "model": row.model,
        "semantics": row.semantics,
        "low_trust": row.low_trust,
        "lines": row.lines,
        **_figures(row.figures),
    }


def _attempt(attempt: Attempt) -> dict[str, Json]:
    return {
        "effect_id": attempt.effect_id,
        "run": attempt.run,
        "model": attempt.model,
        "role": attempt.role,
        "issue": attempt.issue,
        "low_trust": attempt.low_trust,
        "lines": attempt.lines,
        "launches": attempt.launches,
        **_figures(attempt.figures),
    }


def _observation(each: Observation, *, counts: bool) -> dict[str, Json]:
    terms: dict[str, Term] = {"input": each.input, "output": each.output, "cache": each.cache}
    return {
        "event_id": each.identity,
        "ts": each.ts,
        "process": each.process,
        "seq": _safe(each.seq),
        "run": each.run,
        "model": each.model,
        "semantics": each.semantics,
        "source": each.source,
        "role": each.role,
        "issue": each.issue,
        "low_trust": each.low_trust,
        "counts": counts,
        **{name: _safe(term.value) for name, term in terms.items()},
        "unknown": {name: term.reason for name, term in terms.items() if term.value is None},
    }


def _group(group: UsageGroup, by: By) -> dict[str, Json]:
    return {
        "by": by,
        "key": group.key,
        "kind": group.kind,
        "low_trust": group.low_trust,
        **_figures(group.figures),
    }


def _figures(figures: Mapping[str, Figure]) -> dict[str, Json]:
    """The values, and under ``unknown`` why one is null and how many of its terms lacked."""
    return {
        **{name: _safe(figure.value) for name, figure in figures.items()},
        "unknown": {
            name: {"lacking": figure.lacking, "terms": figure.terms, "reasons": list(figure.reasons)}
            for name, figure in figures.items()
            if figure.value is None
        },
    }


def _safe(value: Number | None) -> Json:
    return str(value) if isinstance(value, int) and abs(value) > LARGEST_SAFE else value
