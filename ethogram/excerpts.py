"""Cutting text to a bound, and saying so."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ethogram.json_text import is_unicode

_SURROGATE = re.compile("[\ud800-\udfff]")


class Excerpt(NamedTuple):
    """
    A text within a bound.

    Args:
        text: At most so many Unicode scalar values of the original, from its start.

        truncated: Whether anything was left out.
    """

    text: str
    truncated: bool


def excerpt(text: str, max_scalars: float) -> Excerpt:
    """
    Cut a text on a code point boundary; it may divide a cluster such as a joined emoji.

    Args:
        text: The text. Each lone surrogate that is kept becomes U+FFFD, since no event can carry one.

        max_scalars: The bound in Unicode scalar values: `MAX_EXCERPT_SCALARS`, or `MAX_TEXT_SCALARS` for
            ``agent.text``. Below 0 counts as 0, a fraction as the next whole number.

    Returns:
        The kept text, and whether it was cut. Nothing is trimmed and no ellipsis is added.
    """
    bound = max(0, math.ceil(max_scalars))
    kept = text[:bound]
    if not is_unicode(kept):
        kept = _SURROGATE.sub("\ufffd", kept)
    return Excerpt(kept, len(text) > bound)
