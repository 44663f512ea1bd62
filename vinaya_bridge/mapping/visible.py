"""Text in which everything that differs can be seen, and the difference of two JSON lines field by field."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import orjson

_LONGEST_SHOWN = 160


def visible(text: str) -> str:
    """
    Make every character that a terminal hides, acts on or composes stand out as an escape.

    Args:
        text: Any text.

    Returns:
        Printable ASCII as it is, letters and symbols of other scripts too; all else as an escape.
    """
    return "".join(char if _shows(char) else _escape(char) for char in text)


def _shows(char: str) -> bool:
    # Combining marks, separators, controls and formats are what makes two texts look alike.
    return char == " " or unicodedata.category(char)[0] not in "CZM"


def _escape(char: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char)
    code = ord(char)
    return short or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


def differing_fields(old: object, new: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    """
    Name the places at which two decoded JSON values differ.

    Args:
        old: One value.

        new: The other.

        path: Where they stand.

    Yields:
        Path, what was there, what is there now; ``(nothing)`` for what is absent.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{path}.{key}" if path else key
            if key not in new:
                yield inner, _shown(old[key]), "(nothing)"
            elif key not in old:
                yield inner, "(nothing)", _shown(new[key])
            else:
                yield from differing_fields(old[key], new[key], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differing_fields(one, other, f"{path}[{index}]")
    elif type(old) is not type(new) or old != new:
        yield path or "(the whole)", _shown(old), _shown(new)


def differing_lines(old: bytes, new: bytes) -> Iterator[tuple[int, bytes | None, bytes | None]]:
    """
    Pair the lines of two files that are not the same.

    Args:
        old: One file; lines end at byte 0x0A only.

        new: The other.

    Yields:
        The line number in the file that has it (from 1), the old line, the new line; None for one that is not there.
    """
    before, after = old.split(b"\n"), new.split(b"\n")
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        paired = min(i2 - i1, j2 - j1)
        for offset in range(max(i2 - i1, j2 - j1)):
            is_old, is_new = i1 + offset < i2, j1 + offset < j2
            number = (j1 if offset < paired or is_new else i1) + offset + 1
            yield number, before[i1 + offset] if is_old else None, after[j1 + offset] if is_new else None


def line_difference(old: bytes | None, new: bytes | None) -> Sequence[str]:
    """
    Say how a line changed, for a person.

    Args:
        old: The line before; None where there was none.

        new: The line now; None where there is none.

    Returns:
        One text for each field that differs, or for each whole line.
    """
    if old is not None and new is not None:
        try:
            fields = list(differing_fields(orjson.loads(old), orjson.loads(new)))
        except orjson.JSONDecodeError:
            fields = []
        if fields:
            return [f"{path}: {before} -> {after}" for path, before, after in fields]
    removed = [] if old is None else [f"- {_line(old)}"]
    return removed + ([] if new is None else [f"+ {_line(new)}"])


def _line(raw: bytes) -> str:
    return visible(raw.decode(errors="backslashreplace"))


def _shown(value: object) -> str:
    text = visible(orjson.dumps(value).decode())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
