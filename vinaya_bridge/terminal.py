"""JSON that cannot act on a terminal."""

from __future__ import annotations

import re

# DEL and the C1 controls; marks, embeddings, overrides and isolates that reorder the text beside them.
_ACTING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escape_in_json(text: str) -> str:
    """
    Write the characters of JSON text that a terminal acts on, and that JSON allows as they are, as escapes.

    Controls below U+0020 are escaped in any JSON.

    Args:
        text: JSON; such characters stand in its strings only.

    Returns:
        JSON of the same values.
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
