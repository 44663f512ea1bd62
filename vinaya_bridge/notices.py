"""What a person has to know of an input: the codes, and what to do about each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen

from vinaya_bridge.errors import Code

MISSING: Final = Code(
    "VB301",
    "an input does not exist",
    "Nothing is found under the path that was given. A batch goes on with its other inputs and ends with "
    "exit code 1; tail waits for the path to appear. Check the spelling; a link that points to nothing "
    "counts as missing too.",
)
NOT_A_LOG: Final = Code(
    "VB302",
    "not a regular file",
    "A link, pipe, socket, device or directory stands where a log file is expected. It is named and left "
    "alone: a link could lead out of the directory that was given, and a pipe could block for ever. Give "
    "the file that a link points to as an input of its own if it is wanted. A pipe is read with - as "
    "standard input.",
)
UNREADABLE: Final = Code(
    "VB303",
    "an input cannot be opened",
    "The system refused to open a file or to list a directory; the reason stands in the message. Lines in "
    "it are not part of the output. Log files are made for their owner alone (mode 0600), so run as that "
    "user or change the mode, then convert again: lines that are already there are not emitted twice.",
)
CUT_SHORT: Final = Code(
    "VB304",
    "reading stopped part way",
    "A file could be opened, but reading it failed before its end, for the reason in the message. The lines "
    "before that place were used; those after it were not. Convert again when the cause is gone.",
)
BAD_COMPRESSION: Final = Code(
    "VB305",
    "compressed content is broken or ends early",
    "A .gz or .zst file does not decompress to its end: it was cut short, damaged, or is not what its name "
    "says. The lines that could be read were used. Restore the file from another copy and convert again.",
)
CHANGED: Final = Code(
    "VB306",
    "a file changed while it was in use",
    "A file was replaced, rewritten, cut or removed between being listed and being read to the end, as "
    "rotation and the log sender do. What was read may be neither its old nor its new content in full. "
    "Convert again, or use tail on a log that is still written.",
)
OUTPUT_IN_INPUT: Final = Code(
    "VB307",
    "the output lies inside an input",
    "The output directory is inside an input directory, or an input lies where the output would be written. "
    "Nothing is ever written among logs: Vinaya renames, sends and removes files there by name, and the "
    "next call would read the output as input. Choose a directory elsewhere.",
)
SPOOL_FAILED: Final = Code(
    "VB308",
    "standard input cannot be spooled",
    "Standard input can be read only once, so it is copied to a file before the work starts, and this copy "
    "could not be written or read to its end. Free some space, or save the input to a file and give its "
    "path.",
)

OWN_OUTPUT: Final = Code(
    "VB309",
    "an output of this tool",
    "A directory among the inputs holds what this tool keeps of lines that gave no events (kept/ of an output: "
    "index.jsonl and the lines beside it). They are copies of lines that were read before, so they are named and not "
    "read as logs. To look at the output use ethogram runs OUT/runs, and vinaya-bridge report OUT for what is kept. "
    "vinaya-bridge replay OUT reads the kept lines again. A file of them that is named as an input of its own is read.",
)

TOO_LONG: Final = Code(
    "VB310",
    "a line is longer than may be held",
    "A line has more bytes than --max-line-bytes allows (256 MiB where it is not given). No line of the Log is nearly "
    "as long, so it is mostly no line: bytes without a newline, such as the zeros that a power loss leaves in a file. "
    "To keep memory bounded it is neither held nor read nor copied: reading goes on behind its newline, and the line "
    "counts as pending. Its bytes are still in the input. Where it is wanted, convert the log into the same output "
    "with a greater --max-line-bytes; only what is missing is added. A tail names it when its newline comes.",
)

NO_SUCH_LINE: Final = Code(
    "VB311",
    "a file has no such line",
    "A line was asked for by its number, and the file ends before it, or cannot be read so far. Lines are counted from "
    "1, at each newline, blank ones too, as check and the kept index count them.",
)

CODES: Final[tuple[Code, ...]] = (
    MISSING,
    NOT_A_LOG,
    UNREADABLE,
    CUT_SHORT,
    BAD_COMPRESSION,
    CHANGED,
    OUTPUT_IN_INPUT,
    SPOOL_FAILED,
    OWN_OUTPUT,
    TOO_LONG,
    NO_SUCH_LINE,
)

LEFT_ALONE: Final = frozenset({NOT_A_LOG.id, OWN_OUTPUT.id})
"""Codes of what is named and not read on purpose: no fault of an input."""

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        MISSING.id: "check the spelling; a relative path starts at the present directory",
        NOT_A_LOG.id: "give the file that is meant as an input of its own; a pipe is read with -",
        UNREADABLE.id: "run as the owner of the files, or change their mode, then run the same command again",
        CUT_SHORT.id: "run the same command again when the cause is gone",
        BAD_COMPRESSION.id: "restore the file from another copy, then run the same command again",
        CHANGED.id: "run the same command again, or use tail on a log that is still written",
        OWN_OUTPUT.id: "ethogram runs OUT/runs shows an output; give the logs that it was made from",
        TOO_LONG.id: "where the line is wanted, run the same command with a greater --max-line-bytes",
    }
)
"""What to do about a notice, by the id of its code."""


@frozen
class Notice:
    """
    Something about an input that a person has to know; the work goes on.

    Args:
        name: The file or directory, relative to the argument that it was reached through; of a line, ``file:line``.

        code: What kind of fault it is.

        message: What is wrong, without any content of the file.
    """

    name: str
    code: Code
    message: str


def too_long(file: str, line: int, length: int, limit: int) -> Notice:
    """
    Name a line that was passed over because of its length.

    Args:
        file: The file's name.

        line: The line's number in it, from 1.

        length: How many bytes it has, without its newline.

        limit: How many it might have.
    """
    return Notice(f"{file}:{line}", TOO_LONG, too_long_message(length, limit))


def too_long_message(length: int, limit: int) -> str:
    """
    Say of a line what is wrong with it.

    Args:
        length: How many bytes it has, without its newline.

        limit: How many it might have.
    """
    return f"has {length:,} bytes, more than the {limit:,} of --max-line-bytes, and was not read"
