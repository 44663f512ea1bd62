"""Every code there is, with its page."""

from __future__ import annotations

from vinaya_bridge import (
    errors,
    files,
    gaps,
    jobs,
    output,
    replay,
    report,
    restore,
    sinks,
    verify,
    waking,
    workers,
)
from vinaya_bridge.errors import Code
from vinaya_bridge.log import codes as line_codes
from vinaya_bridge.mapping import codes as mapping_codes

ALL_CODES: tuple[Code, ...] = tuple(
    sorted(
        (
            *line_codes.CODES,
            *mapping_codes.CODES,
            *files.CODES,
            *gaps.CODES,
            *jobs.CODES,
            *workers.CODES,
            *output.CODES,
            *report.CODES,
            *sinks.CODES,
            *replay.CODES,
            *restore.CODES,
            *verify.CODES,
            *waking.CODES,
            *errors.CODES,
        ),
        key=lambda code: code.id,
    )
)
"""Sorted by id; no id twice."""


def find_code(code_id: str) -> Code | None:
    """
    Return a code by its id, or None where there is none of that name.

    Args:
        code_id: ``VB203``, in upper or lower case.
    """
    return next((code for code in ALL_CODES if code.id == code_id.upper()), None)
