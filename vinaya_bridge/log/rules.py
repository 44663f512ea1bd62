"""The words in which a line's fields are stated: what a value may be, and what its text may hold."""

from __future__ import annotations

import keyword
from enum import Enum
from typing import Annotated, Final, Literal

import msgspec
from attrs import frozen

Absent = msgspec.UnsetType
"""The type of `ABSENT`."""

ABSENT: Final = msgspec.UNSET
"""The value of an optional field whose key the line does not have; ``None`` is a null that the line wrote."""


class Holds(Enum):
    """What the text of a string field is, and so what happens where it matches a secret's pattern."""

    FREE_TEXT = "free text"
    """Text that somebody wrote: the secret in it is cut out."""

    ID = "id"
    """A name of one thing, met again on other lines: replaced as a whole, by its digest."""


@frozen
class Rule:
    """
    What a value must be beyond its type.

    Args:
        minimum: The least number allowed; None: no limit.

        maximum: The greatest number allowed; None: no limit.

        pattern: An ASCII regular expression that the whole string must match; None: any string.

        min_units: The least length of a string, in UTF-16 code units.

        max_units: The greatest length of a string, in UTF-16 code units; None: no limit.

        max_items: The greatest number of entries of a list or a record; None: no limit.

        holds: What the text of a string is.
    """

    minimum: int | None = None
    maximum: int | None = None
    pattern: str | None = None
    min_units: int = 0
    max_units: int | None = None
    max_items: int | None = None
    holds: Holds = Holds.FREE_TEXT


NO_RULE: Final = Rule()
"""Any value of the type."""

RUN_ID_PATTERN: Final = "[A-Za-z0-9_.-]{1,128}"

CODE_PATTERN: Final = "[A-Za-z0-9._-]{1,64}"

Text = Annotated[str, NO_RULE]
"""Any string."""

Id = Annotated[str, Rule(holds=Holds.ID)]
"""An opaque id; it may be empty."""

FilledId = Annotated[str, Rule(min_units=1, holds=Holds.ID)]
"""An opaque id of at least one UTF-16 unit."""

RunId = Annotated[str, Rule(pattern=RUN_ID_PATTERN, holds=Holds.ID)]
"""The id of a run: 1 to 128 ASCII letters, digits, and ``_ . -``."""

Token = Annotated[str, Rule(pattern=CODE_PATTERN)]
"""A short code: 1 to 64 ASCII letters, digits, and ``. _ -``."""

Integer = Annotated[int, NO_RULE]
"""A number with an integral value (``5``, ``5.0`` and ``1e2`` are such numbers), of any sign."""

Count = Annotated[int, Rule(minimum=0)]
"""An integer that is not negative."""

Amount = Annotated[float, Rule(minimum=0)]
"""A number that is not negative; one written without a fraction is an int here."""

Role = Literal["planner", "developer", "code-reviewer", "security", "principal", "archivist", "architect"]
"""A role that an agent's turn can be dispatched to."""

SubjectRole = Literal[
    "planner", "developer", "code-reviewer", "security", "principal", "archivist", "architect", "unattributed"
]
"""A role that a line can be about: one of the seven, or none that is known."""


def json_name(attribute: str) -> str:
    """
    The key of a line that an attribute of a record stands for.

    Args:
        attribute: An attribute's name; one that would be a Python keyword ends in an underscore.

    Returns:
        The key: ``class_`` is ``class``, every other name is itself.
    """
    return attribute.removesuffix("_")


def attribute_name(key: str) -> str:
    """
    The attribute of a record that holds a key of a line: the inverse of `json_name`.

    Args:
        key: A key as a line has it.

    Returns:
        The attribute's name: ``class`` is ``class_``, every other key is itself.
    """
    return f"{key}_" if keyword.iskeyword(key) else key
