"""What a checker says about a mapping: one finding, with its place and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from vinaya_bridge.errors import Code

KeyPath = tuple[str | int, ...]
"""Where a value stands inside a TOML document: keys, and positions in lists."""


class Severity(StrEnum):
    """How much a finding matters: an error could give a wrong event, a warning could not."""

    ERROR = "error"
    WARNING = "warning"


@frozen(order=True)
class Place:
    """
    A place in a text file.

    Args:
        file: The file's name as the caller gave it.

        line: From 1.

        column: From 1, in characters.
    """

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """The place as editors read it."""
        return f"{self.file}:{self.line}:{self.column}"


@frozen
class Finding:
    """
    One fault of a mapping.

    Args:
        code: What kind of fault.

        place: Where it stands.

        message: What is wrong, with the names concerned.

        remedy: What to do, in one sentence.

        rule: The event concerned, as ``kind.event``; empty where it is the table as a whole.

        severity: Whether a wrong event could come of it.
    """

    code: Code
    place: Place
    message: str
    remedy: str
    rule: str = ""
    severity: Severity = field(default=Severity.ERROR)

    def __str__(self) -> str:
        """The finding as a person reads it."""
        rule = f" [{self.rule}]" if self.rule else ""
        return f"{self.place}: {self.severity} {self.code.id}{rule} {self.message}\n  try: {self.remedy}"

    def to_json(self) -> dict[str, str | int]:
        """The finding as one flat JSON object."""
        return {
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "severity": str(self.severity),
            "code": self.code.id,
            "rule": self.rule,
            "message": self.message,
            "remedy": self.remedy,
        }
