"""The report of one call: the ledger as data, and as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version

from attrs import define, frozen

from vinaya_bridge.errors import Code, ConfigurationError
from vinaya_bridge.files import LEFT_ALONE, Notice
from vinaya_bridge.ledger import JsonValue, Ledger, Term
from vinaya_bridge.mapping import CompiledMapping

REPORT_VERSION = 1
_ALWAYS_KEPT = (Term.REFUSED, Term.CONFLICT, Term.LATE, Term.UNKNOWN_VERSION)

OTHER_MAPPING = Code(
    "VB410",
    "the output was made with another mapping",
    "Events that one mapping made of a line and events that another makes of the next cannot be told apart later, and "
    "a line that was half written could not be completed. Convert into another directory, or give the mapping and the "
    "overlays that the output was begun with.",
)
CODES = (OTHER_MAPPING,)


@define
class RunCounts:
    """
    How many runs were opened and finished; the bridge's own run does not count.

    Args:
        open_before: Runs of the output that had no terminal event before this call.
    """

    open_before: int = 0
    opened: int = 0
    finished: int = 0

    def count(self, event_type: str) -> None:
        """Note an appended event by its type."""
        if event_type == "run.started":
            self.opened += 1
        elif event_type == "run.finished":
            self.finished += 1

    def data(self) -> dict[str, JsonValue]:
        """Return the counts of the report."""
        still_open = self.open_before + self.opened - self.finished
        return {"opened": self.opened, "finished": self.finished, "open": still_open}


@frozen
class Report:
    """
    What one call did.

    Args:
        data: The content of ``report.json``.
    """

    data: dict[str, JsonValue]

    @property
    def lines(self) -> dict[str, int]:
        """The equation's terms of this call."""
        return _terms(self.data["lines"])

    @property
    def nothing_valid(self) -> bool:
        """Whether lines were read and not one was valid."""
        lines = self.lines
        worthless = lines["refused"] + lines["blank"] + lines["pending"]
        return lines["read"] > lines["blank"] and lines["read"] == worthless

    @property
    def input_faults(self) -> bool:
        """Whether an input could not be read, or changed while it was; what is named and left alone is none."""
        notices = self.data["notices"]
        return isinstance(notices, list) and any(
            isinstance(notice, dict) and notice["code"] not in LEFT_ALONE for notice in notices
        )

    def exit_code(self, *, strict: bool) -> int:
        """
        Return the command's exit code (design, section 8).

        Args:
            strict: Whether a line that had to be kept counts as a failure.
        """
        lines = self.lines
        kept = lines["refused"] + lines["conflict"] + lines["late"] + lines["unknown_version"]
        return int(self.nothing_valid or self.input_faults or (strict and kept > 0))


def build_report(
    *,
    ledger: Ledger,
    before: Mapping[str, int],
    files: Sequence[Mapping[str, JsonValue]],
    pending: Iterable[tuple[str, int]],
    conflicts: Sequence[Mapping[str, JsonValue]],
    runs: RunCounts,
    notices: Iterable[Notice],
    mapping: CompiledMapping,
    made_by: Mapping[str, JsonValue],
    started_at: str,
    ended_at: str,
) -> Report:
    """
    Build a call's report.

    Args:
        ledger: What became of its lines.

        before: The terms of all calls before this one: see `total_before`.

        files: A row for each file read.

        pending: File and line of each unfinished last line.

        conflicts: A row for each conflicting line.

        runs: How many were opened and finished.

        notices: What a person has to know of the inputs.

        mapping: The mapping used.

        made_by: The options that a later call needs to know.

        started_at: ISO-8601.

        ended_at: ISO-8601.
    """
    lines = ledger.lines()
    total: dict[str, JsonValue] = {term: before.get(term, 0) + count for term, count in lines.items()}
    return Report(
        {
            "version": REPORT_VERSION,
            "lines": dict(lines),
            "total": total,
            "pending_lines": [[file, line] for file, line in pending],
            "files": [dict(row) for row in files],
            "unmapped": dict(sorted(ledger.unmapped.items())),
            "events": dict(sorted(ledger.events.items())),
            "runs": runs.data(),
            "gaps": list(ledger.gaps()),
            "conflicts": [dict(row) for row in conflicts],
            "versions": ledger.versions(),
            "notices": [
                {"name": notice.name, "code": notice.code.id, "message": notice.message} for notice in notices
            ],
            "bridge": {
                "version": bridge_version(),
                "mapping": {"name": mapping.name, "digest": mapping.digest},
                **made_by,
                "started": started_at,
                "ended": ended_at,
            },
        }
    )


def total_before(
    report: Mapping[str, JsonValue] | None, held: Mapping[str, int], saved: Mapping[str, int] | None = None
) -> dict[str, int]:
    """
    Return the terms of all calls that were made on an output before this one.

    A call that was killed left no report, and an output can have been put back to an older copy. So the converted
    lines are those that the output holds, and there are no fewer kept lines than it keeps, none where it keeps none;
    the lines read follow. A line that waited when a tail stopped is not done with: it counts when it is.

    Args:
        report: The output's last report.

        held: How many lines the output holds or keeps, by term.

        saved: The terms as a position has them, which can be newer than the report.
    """
    total = _terms(report.get("total")) if report is not None else {}
    waiting = report.get("waiting") if report is not None else None
    if isinstance(waiting, list):
        for name in ("read", Term.PENDING.value):
            total[name] = max(0, total.get(name, 0) - len(waiting))
    if saved is not None and saved.get("read", 0) > total.get("read", 0):
        total = dict(saved)
    for term in Term:
        before = total.get(term, 0)
        there = held.get(term, 0)
        is_held = term is Term.CONVERTED or (not there and term in _ALWAYS_KEPT)
        now = there if is_held else max(before, there)
        total[term] = now
        total["read"] = total.get("read", 0) + now - before
    return total


def keeps_lines_whole(report: Mapping[str, JsonValue] | None) -> bool:
    """
    Whether the last call on an output was made with ``--origin full``.

    Args:
        report: The output's last report.
    """
    bridge = report.get("bridge") if report is not None else None
    return isinstance(bridge, dict) and bridge.get("origin") == "full"


def check_same_mapping(
    previous: Mapping[str, JsonValue] | None, mapping: CompiledMapping, *, place: str
) -> None:
    """
    Refuse to add to an output with another mapping than the one it was begun with.

    Args:
        previous: The output's last report.

        mapping: The mapping that is to be applied.

        place: The output.

    Raises:
        ConfigurationError: The mapping is another one.
    """
    bridge = previous.get("bridge") if previous is not None else None
    begun = bridge.get("mapping") if isinstance(bridge, dict) else None
    if not isinstance(begun, dict) or begun.get("digest") in {None, mapping.digest}:
        return
    name = begun.get("name")
    other = (
        f"{mapping.name} was given" if name != mapping.name else "it has changed since, or its overlays have"
    )
    raise ConfigurationError(
        OTHER_MAPPING,
        f"it was begun with the mapping {name}, and {other}",
        place=place,
        remedy="give the same --mapping and overlays as before, or another directory with -o",
    )


def bridge_version() -> str:
    """Return the installed version of this package."""
    try:
        return version("vinaya-bridge")
    except PackageNotFoundError:
        return "unknown"


def _terms(value: JsonValue) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    names = ["read", *(term.value for term in Term)]
    return {name: count for name in names if isinstance(count := value.get(name), int)}
