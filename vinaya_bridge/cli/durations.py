"""Durations as a person writes them."""

from __future__ import annotations

import re

import click

_UNITS_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_FORM = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", re.ASCII)


class Duration(click.ParamType):
    """A number with a unit, ``500ms``, ``5s``, ``2m``, ``1h``; without a unit it is seconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        if isinstance(value, int | float):
            return float(value)
        form = _FORM.fullmatch(str(value))
        if form is None:
            self.fail("is no duration; give a number with ms, s, m or h, for example 5s", param, ctx)
        return float(form[1]) * _UNITS_SECONDS[form[2] or "s"]
