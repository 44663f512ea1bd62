"""What a report says of an output, against what is there."""

from __future__ import annotations

from collections.abc import Mapping

from vinaya_bridge.ledger import JsonValue, Term, balances
from vinaya_bridge.proof.findings import UNBALANCED, Find
from vinaya_bridge.proof.kept_lines import TOLD_WHYS

_TOTAL = "report.json: total"
_NAMES = ("read", *(term.value for term in Term))


def check_report(
    report: Mapping[str, JsonValue], held_lines: int | None, kept: Mapping[str, int], find: Find
) -> None:
    """
    Check that a report adds up, and that it says what the output holds.

    Args:
        report: The report.

        held_lines: How many lines have an event in the output; None where the events are not there at all.

        kept: How many lines are kept, by the reason.

        find: Told of each fault.
    """
    lines, total = _terms(report.get("lines")), _terms(report.get("total"))
    for name, terms in (("lines", lines), ("total", total)):
        if terms is None:
            find(UNBALANCED, f"report.json: {name}", "a term is missing, or is no whole number from 0")
        elif not balances(terms):
            find(UNBALANCED, f"report.json: {name}", "the terms do not add up to the lines read")
    if total is None:
        return
    if lines is not None:
        for name in _NAMES:
            if lines[name] > total[name]:
                find(UNBALANCED, _TOTAL, f"{name}: less than of the last call alone")
    if held_lines is not None and total["converted"] != held_lines:
        find(
            UNBALANCED,
            _TOTAL,
            f"{total['converted']:,} converted, but the output holds {held_lines:,} lines",
        )
    for why in TOLD_WHYS:
        if kept.get(why, 0) > total[why]:
            find(UNBALANCED, _TOTAL, f"more lines are kept as {why} than it says")
        elif total[why] and not kept.get(why, 0):
            find(UNBALANCED, _TOTAL, f"{total[why]:,} {why}, but no such line is kept")


def was_one_call(report: Mapping[str, JsonValue] | None) -> bool:
    """
    Whether a report says that one conversion alone made its output.

    Args:
        report: The report.
    """
    if report is None:
        return False
    bridge = report.get("bridge")
    return report.get("lines") == report.get("total") and isinstance(bridge, dict) and "sink" not in bridge


def _terms(value: JsonValue) -> dict[str, int] | None:
    """The terms of the equation; None where one is missing or no whole number from 0."""
    if not isinstance(value, dict):
        return None
    terms: dict[str, int] = {}
    for name in _NAMES:
        count = value.get(name)
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return None
        terms[name] = count
    return terms
