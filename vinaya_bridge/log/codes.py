"""The stable codes of what is refused: one line, or one piece of a line."""

from __future__ import annotations

from typing import Final

from vinaya_bridge.errors import Code

_KEPT: Final = " The line is kept byte for byte in kept/refused.ndjson, and the next line is read as usual."

NOT_JSON: Final = Code(
    "VB101",
    "not valid JSON",
    "The line is not one JSON value. Usual causes: a write that was cut short by a full disk or a crash, or a file "
    "that was edited by hand. NaN, Infinity, comments, trailing commas and a byte order mark are not JSON. A whole "
    "record that stands behind a torn one on the same line is read all the same." + _KEPT,
)

NOT_UTF8: Final = Code(
    "VB102",
    "not valid UTF-8",
    "The line has bytes that are not UTF-8. They cannot be emitted, and replacing them would change the record. Usual "
    "cause: a write cut inside a character, or a file copied as text in another encoding." + _KEPT,
)

LONE_SURROGATE: Final = Code(
    "VB103",
    "half of a surrogate pair",
    "A string has an escape such as \\ud83d without its other half. JSON allows it, UTF-8 does not, so it cannot be "
    "emitted. Usual cause: a text that its writer cut inside an emoji." + _KEPT,
)

NO_SCHEMA: Final = Code(
    "VB104",
    "no readable meta.schema",
    "A line of the Log is an object whose meta.schema is a number. This one has none, or something else in its place, "
    "so nothing says how to read it. Is the file a Vinaya Log?" + _KEPT,
)

UNKNOWN_KEY: Final = Code(
    "VB105",
    "a key that the schema does not have",
    "Every object of a line is strict: a key that its schema does not name is refused, at any depth. Usual causes: a "
    "line of a newer writer under an old schema number, or a field of one event on another. The key's name is given "
    "only where it looks like a field's name, since a key can be anything." + _KEPT,
)

MISSING_FIELD: Final = Code(
    "VB106",
    "a required field is missing",
    "The schema requires this key. Where a value is not known the Log writes null; it does not leave the key out."
    + _KEPT,
)

WRONG_TYPE: Final = Code(
    "VB107",
    "a value of the wrong type",
    'The field has a value of another type than the schema says. Nothing is converted: true is not 1, "5" is not 5, '
    "and null is allowed only where the schema says so. 5.0 is the integer 5." + _KEPT,
)

NOT_A_MEMBER: Final = Code(
    "VB108",
    "not a member of a closed list",
    "The field allows only the values of a closed list. Usual cause: a word that a newer writer has added, or a custom "
    "event under a header schema other than 3." + _KEPT,
)

OUT_OF_RANGE: Final = Code(
    "VB109",
    "a number out of range",
    "The number is less than the least or more than the greatest that the field allows." + _KEPT,
)

PATTERN: Final = Code(
    "VB110",
    "a string of the wrong form",
    "The field's string must match a pattern as a whole; a newline at its end does not match." + _KEPT,
)

LENGTH: Final = Code(
    "VB111",
    "too long or too short",
    "A string has more or fewer UTF-16 code units, or a list more entries, than the field allows. A character outside "
    "the basic plane, such as an emoji, is two units." + _KEPT,
)

BEYOND_DOUBLE: Final = Code(
    "VB112",
    "a number beyond double range",
    "The number is greater than any double, such as 1e400. No reader of the output could hold it." + _KEPT,
)

TOO_DEEP: Final = Code(
    "VB113",
    "nested too deep",
    "The line nests objects or lists far deeper than any record of the Log does." + _KEPT,
)

OVER_BOUND: Final = Code(
    "VB114",
    "an event of it would break a bound",
    "The line is valid, but one of the events it maps to would be larger than the protocol allows, so none is emitted. "
    "A mapping can excerpt the field." + _KEPT,
)

TORN_FRAGMENT: Final = Code(
    "VB115",
    "a torn fragment",
    "Part of a record, or a run of NUL bytes, stands on one line with a whole record. The append was cut short: a full "
    "disk, a crash, or power loss. The whole record is read; the fragment is kept." + _KEPT,
)

UNSAFE_INTEGER: Final = Code(
    "VB116",
    "a whole number too great to carry",
    "The line is valid, but a whole number in it is beyond 2^53-1, which not every reader of the output holds "
    "exactly. It is refused rather than rounded." + _KEPT,
)

CONFLICT: Final = Code(
    "VB117",
    "another line has this identity",
    "Two lines with other contents have one identity: the same event_id, or under schema 1 the same run_id and seq, "
    "which a child process repeats. What the output already held stays, else the earlier line; the other gives no "
    "event and is told on the bridge's own run." + _KEPT,
)

LATE: Final = Code(
    "VB118",
    "its run was finished already",
    "The line is valid, but the run it belongs to has its terminal event in the output, and nothing follows that. It "
    "gives no event, also when it comes again, and is told on the bridge's own run." + _KEPT,
)

UNKNOWN_VERSION: Final = Code(
    "VB119",
    "a header version that is not known",
    "meta.schema is a number other than 1, 2 and 3: a newer harness wrote the line. It is not interpreted. Once a "
    "version of this tool knows it, vinaya-bridge replay OUT adds it." + _KEPT,
)

CODES: Final[tuple[Code, ...]] = (
    NOT_JSON,
    NOT_UTF8,
    LONE_SURROGATE,
    NO_SCHEMA,
    UNKNOWN_KEY,
    MISSING_FIELD,
    WRONG_TYPE,
    NOT_A_MEMBER,
    OUT_OF_RANGE,
    PATTERN,
    LENGTH,
    BEYOND_DOUBLE,
    TOO_DEEP,
    OVER_BOUND,
    TORN_FRAGMENT,
    UNSAFE_INTEGER,
    CONFLICT,
    LATE,
    UNKNOWN_VERSION,
)
"""All codes of refused lines."""
