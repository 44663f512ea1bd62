"""What can be lost while a log is followed, and how it is told."""

from __future__ import annotations

from typing import Final

from attrs import frozen

from vinaya_bridge.errors import Code
from vinaya_bridge.files import TOO_LONG, Bucket, LogFile
from vinaya_bridge.lines import LongLine
from vinaya_bridge.notices import too_long_message
from vinaya_bridge.positions import SavedFile

REWRITTEN: Final = Code(
    "VB321",
    "a log was rewritten",
    "What was read of a file no longer stands where it was: something cut it, edited it or put another "
    "file in its place. It is read again from its start, and what was emitted before is not emitted "
    "twice. Lines that were added after the last poll and taken away before this one cannot be recovered; "
    "how many there were is not known.",
)
ROTATED_PAST: Final = Code(
    "VB322",
    "a log may have been rotated more than once between two polls",
    "The file that was read last is neither the live file nor the one rotated copy that is kept, so it "
    "was rotated away by a file that was never seen as the live one. What is left is read. Lines of "
    "generations in between, if there were any, are gone; how many is not known. Poll more often, or keep "
    "the logs smaller in number.",
)
LOST: Final = Code(
    "VB323",
    "a log is gone before it was read to its end",
    "A file was removed or replaced while it was not open, as after a restart, and nothing that is left "
    "has its content. What was added to it after the given position is lost to this output. If a copy of "
    "it exists, convert the copy into the same output: only what is missing is added.",
)
TORN: Final = Code(
    "VB324",
    "an unfinished line is gone",
    "The last line of a file had no end when it was read, and its bytes were cut off or removed since. "
    "The process that wrote it was probably stopped in the middle. It was never a whole line, so it was "
    "not emitted and nothing was joined to it.",
)
BAD_STATE: Final = Code(
    "VB325",
    "the saved position cannot be used",
    "The state of an earlier run is empty, torn, of another version or not this program's. All files are "
    "read again from their start; what is in the output already is recognised and not emitted twice. "
    "Nothing has to be done.",
)

_MESSAGES: Final = {
    REWRITTEN: "what was read up to here is not in the file any more, so it is read again from its start",
    ROTATED_PAST: "it was rotated away by a file that was never seen as the live one",
    LOST: "it is gone, and what it held behind this place was not read",
}

CODES: Final[tuple[Code, ...]] = (REWRITTEN, ROTATED_PAST, LOST, TORN, BAD_STATE)


@frozen
class Gap:
    """
    Something the log once held, or may have held, and that can no longer be read.

    Args:
        stream: The stream that it belongs to.

        name: The file's name when it was last seen.

        code: What happened.

        offset: The position up to which the file was consumed, in bytes: all before it was delivered.

        line: The number of lines up to there, or None where it is not known.

        message: What is known of the loss, in words.
    """

    stream: str
    name: str
    code: Code
    offset: int
    line: int | None
    message: str


def gap_at(file: SavedFile, code: Code) -> Gap:
    """
    Describe a loss.

    Args:
        file: What was known of the file before.

        code: What happened.

    Returns:
        The loss, with the position up to which nothing is missing.
    """
    position = file.position
    message = _MESSAGES.get(code) or f"an unfinished line of {file.size - position.offset} bytes is gone"
    return Gap(file.stream, file.name, code, position.offset, position.line, message)


def gap_of_long_line(file: LogFile, line: LongLine, limit: int, *, is_counted: bool = True) -> Gap:
    """
    Describe a line that was passed over because of its length.

    Args:
        file: The file that it lies in.

        line: The line.

        limit: How many bytes it might have had.

        is_counted: Whether the line's number is known.

    Returns:
        The loss, with the position in front of the line.
    """
    before = line.number - 1 if is_counted else None
    message = f"the line that starts here {too_long_message(line.length, limit)}"
    return Gap(file.stream, file.name, TOO_LONG, line.offset, before, message)


def loss(
    file: SavedFile, rotated_in: set[str], live: set[str], *, is_open: bool, is_replaced: bool
) -> Code | None:
    """
    Judge a file whose name is gone and whose content stands in no other file.

    Vinaya files reference, hazards 11, 12, 17 and 19. A slot is overwritten by every rotation, and the
    sender removes what it has sent: neither is a loss by itself.

    Args:
        file: What was known of it.

        rotated_in: The streams in whose slot a file came that was never seen before.

        live: The streams whose live file was known before.

        is_open: Whether it can still be read through its descriptor.

        is_replaced: Whether its name leads to another file that begins with the same line.

    Returns:
        What was or may have been lost; None where the file went in the usual way and nothing was left in it.
    """
    is_live = file.bucket == Bucket.LIVE.value
    if not is_open and (is_live or file.size > file.position.offset):
        return LOST
    is_slot = file.bucket == Bucket.SLOT.value
    if file.stream in rotated_in and (is_live or (is_slot and file.stream not in live)):
        return ROTATED_PAST
    return REWRITTEN if is_replaced else None
