"""Durations as a person writes them."""

from __future__ import annotations

import re

import click

_UNITS_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FORM = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", re.ASCII)


def seconds(_context: click.Context, _parameter: click.Parameter, value: str) -> float:
    """
    Read a number with a unit, ``500ms``, ``5s``, ``2m``, ``1h``; without a unit it is seconds.

    Args:
        value: What was typed.

    Returns:
        The duration in seconds.

    Raises:
        click.BadParameter: It is no duration.
    """
    form = _FORM.fullmatch(value)
    if form is None:
        raise click.BadParameter("is no duration; give a number with ms, s, m or h, for example 5s")
    return float(form[1]) * _UNITS_SECONDS[form[2] or "s"]
