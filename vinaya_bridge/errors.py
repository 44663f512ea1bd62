"""What can go wrong, split by what the caller does next; every code has a page."""

from __future__ import annotations

from attrs import frozen


@frozen
class Code:
    """
    A stable name for one thing that can go wrong.

    A released code never changes its meaning and is never used again for another.

    Args:
        id: ``VB`` and three digits. 1xx: a line is refused; 2xx: a mapping or an option is wrong;
            3xx: an input cannot be read or has changed; 4xx: the output cannot be written.

        title: One short clause, without a full stop.

        page: What it means, why it is so and what to do, in a few plain sentences.
    """

    id: str
    title: str
    page: str


TRACEBACK_VARIABLE = "VINAYA_BRIDGE_TRACEBACK"
"""The environment variable that shows a fault of this tool whole."""

INTERNAL_FAULT = Code(
    "VB900",
    "a fault of this tool",
    "Something happened that this tool did not foresee. Nothing of yours is at fault, and what was written is "
    f"whole: the next call goes on from there. Run the same command with {TRACEBACK_VARIABLE}=1 and report what it "
    "prints; it can hold words of your log, so look before you send it.",
)
COMMAND_LINE = Code(
    "VB239",
    "the command line cannot be understood",
    "An option does not exist, a value is not one that it takes, or something that a command needs was not given. The "
    "message names which; nothing was read or written. The command's --help lists what it takes, and docs/commands.md "
    "has an example of each.",
)
CODES = (INTERNAL_FAULT, COMMAND_LINE)


class BridgeError(Exception):
    """
    The root of the errors that this package raises for a caller to act on.

    Args:
        code: What kind of fault it is.

        message: What is wrong, with names and types, never with a value that a log holds.

        place: Where: ``file:line``, ``file:line:column``, a path or an option.

        remedy: What to do about it, in one sentence.
    """

    def __init__(self, code: Code, message: str, *, place: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.place = place
        self.remedy = remedy

    def __reduce__(self) -> tuple[object, ...]:
        """How another process hands it on."""
        return _made_again, (type(self), self.code, self.message, self.place, self.remedy)

    def __str__(self) -> str:
        """The fault as a person reads it: code, place, what is wrong, remedy."""
        place = f"{self.place}: " if self.place else ""
        remedy = f"\n  try: {self.remedy}" if self.remedy else ""
        return f"{self.code.id} {place}{self.message}{remedy}"


class ConfigurationError(BridgeError):
    """Raised before anything is read: a mapping or an option is wrong. The command exits with 2."""


class InputError(BridgeError):
    """Raised or reported for an input that cannot be read or has changed; a batch goes on, exits with 1."""


class SinkError(BridgeError):
    """Raised when the output cannot be written: stop and move no position. The command exits with 3."""


def _made_again(kind: type[BridgeError], code: Code, message: str, place: str, remedy: str) -> BridgeError:
    return kind(code, message, place=place, remedy=remedy)
