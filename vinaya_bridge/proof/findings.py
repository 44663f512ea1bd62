"""What a verification can find, and how findings that say the same are told as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from attrs import frozen

from vinaya_bridge.errors import Code

BROKEN_RUN = Code(
    "VB411",
    "a run's log breaks the protocol",
    "An event is not canonical or not valid, a seq is missing or repeated, a run does not begin with run.started, "
    "something follows run.finished, the events of a process stand in another order than it wrote them, or an event is "
    "none that this tool writes. The file was changed, or cut, afterwards.",
)
REPEATED = Code(
    "VB412",
    "an event stands twice",
    "The same part of the same line was found at two places of the output. This tool writes each once: the output "
    "was put together from several, or changed afterwards.",
)
BROKEN_KEPT = Code(
    "VB413",
    "a kept line is not what its row says",
    "The bytes of a kept line and its row in kept/index.jsonl do not agree, bytes are there that no row names, a row "
    "says something else of a line than reading it again gives, or the bridge's own run does not tell of the line.",
)
UNBALANCED = Code(
    "VB414",
    "the report does not add up",
    "The lines read are not the sum of what became of them, or the output holds another number of lines than the "
    "report says.",
)
LINE_LOST = Code(
    "VB415",
    "a line of the log has no disposition",
    "The log holds a line of which the output has neither an event nor a kept copy. Convert the log again: only "
    "what is missing is added.",
)
EVENT_EXTRA = Code(
    "VB416",
    "an event whose line is not in the log",
    "The output holds an event, or a kept line, of a line that the given log does not hold. Give the whole log: lines "
    "rotate away, and an output can be older than the files that are left, or made from more inputs. Where the log is "
    "whole, the event was not made from it.",
)
EVENT_ALTERED = Code(
    "VB417",
    "an event is not what its line gives",
    "The mapping makes another event of this line than the output holds, or the event stands in a run to which the "
    "line does not belong. Give the mapping with which the output was made; where that is the same, the output was "
    "changed afterwards.",
)
NOT_PROVABLE = Code(
    "VB418",
    "what went to standard output cannot be proven",
    "A tail with the sink - leaves no events that could be read again. Save its standard output to a file and check "
    "that with ethogram check; or tail to another directory with the sink runs, sqlite:FILE or jsonl:FILE.",
)
SINK_GONE = Code(
    "VB419",
    "the events of the output are not there",
    "The report names the file that the tail wrote its events to, and there is no such file, or it cannot be read. "
    "Put it back to where it was.",
)
CODES = (
    BROKEN_RUN,
    REPEATED,
    BROKEN_KEPT,
    UNBALANCED,
    LINE_LOST,
    EVENT_EXTRA,
    EVENT_ALTERED,
    NOT_PROVABLE,
    SINK_GONE,
)

Find = Callable[[Code, str, str], None]
"""Told of each fault: its code, its place and what is wrong."""

_MOST_PLACES = 3


class Finding(NamedTuple):
    """
    One thing that is not as it should be.

    Args:
        code: What kind of fault.

        place: Where.

        message: What, without any value of a log.
    """

    code: Code
    place: str
    message: str


@frozen
class FindingGroup:
    """
    Findings that say the same.

    Args:
        code: What kind of fault.

        message: What, without any value of a log.

        places: The first few places, each once.

        count: How many findings there are.
    """

    code: Code
    message: str
    places: Sequence[str]
    count: int


def grouped(findings: Iterable[Finding]) -> Iterator[FindingGroup]:
    """
    Put findings together that a person reads as one.

    Those of `EVENT_EXTRA` that name one run are one; of the other codes those with one message.

    Args:
        findings: As they were found.

    Yields:
        The groups, in the order of their first findings.
    """
    groups: dict[tuple[Code, str, str], list[Finding]] = {}
    for finding in findings:
        place = finding.place if finding.code is EVENT_EXTRA else ""
        groups.setdefault((finding.code, finding.message, place), []).append(finding)
    for (code, message, _), same in groups.items():
        places = list(dict.fromkeys(finding.place for finding in same))
        yield FindingGroup(code, message, places[:_MOST_PLACES], len(same))
