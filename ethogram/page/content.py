"""
What the page is given: runs, their overviews and their events, as JSON that a script element can hold.

A page is small: beyond a size its texts are cut, the longest first and all at one length, and the page says
so. Beyond a smaller size the JSON is compressed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from typing import TypeAlias

import orjson
from attrs import frozen

from ethogram.envelope import Event
from ethogram.errors import EthogramError
from ethogram.json_text import Json
from ethogram.moment import happened, instant_ms
from ethogram.overview import RunOverview, RunSummary, arrange
from ethogram.places import RunStore

PLAIN_BYTES = 262_144
"""The most bytes of JSON that stand in a page as they are."""

_CUT_SCALARS = (4_096, 1_024, 512, 256, 128, 64, 32, 16)
_CUT_MARK = "…"
# What a script element could take for its end, or an old parser for the end of a line.
_ESCAPES = (
    (b"&", rb"\u0026"),
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)

Row: TypeAlias = list[Json]
"""An event as the page takes it: seq, type, milliseconds since 1970 or null, ts, capturedAt or null, payload."""


@frozen
class PageRun:
    """
    A run as the page takes it.

    Args:
        overview: The run at a glance.

        rows: Its events.
    """

    overview: RunOverview
    rows: list[Row]

    def as_json(self) -> dict[str, Json]:
        """
        The run as a JSON object.

        Returns:
            The overview, and ``rows``.
        """
        return {**self.overview.as_json(), "rows": list[Json](self.rows)}


def family_spending(runs: Iterable[RunOverview]) -> dict[str, dict[str, Json]]:
    """
    Fold what whole trees used.

    Args:
        runs: The runs.

    Returns:
        By the id of each root with runs beneath it: the figures, as `Spending.as_json` writes them.
    """
    return {tree.run.run_id: tree.spending().as_json() for tree in arrange(runs) if tree.children}


def row_of(event: Event) -> Row:
    """
    Write an event as the page takes it.

    Args:
        event: The event.

    Returns:
        Its row.
    """
    return [
        event.seq,
        event.type,
        instant_ms(happened(event)),
        event.ts,
        event.captured_at,
        event.payload,
    ]


def page_run(run_id: str, events: Iterable[Event]) -> PageRun:
    """
    Read a run for the page. A fault ends its events and is told in the overview.

    Args:
        run_id: The run.

        events: Its events, in order.

    Returns:
        The run.
    """
    summary = RunSummary(run_id)
    rows: list[Row] = []
    try:
        for event in events:
            summary.take(event)
            rows.append(row_of(event))
    except EthogramError as fault:
        summary.stop(fault)
    return PageRun(summary.overview(), rows)


def page_runs(store: RunStore) -> list[PageRun]:
    """
    Read every run of a store for the page.

    Args:
        store: The runs.

    Returns:
        The runs, in the store's order.
    """
    return [page_run(run_id, store.read_from(run_id)) for run_id in store.runs()]


def content(runs: Iterable[PageRun], *, made: str, live: Json = None, max_bytes: int | None = None) -> bytes:
    """
    Write what the page shows as JSON for a script element.

    Args:
        runs: The runs.

        made: When the page was made, ISO-8601.

        live: What the page needs to follow the runs; None where it does not.

        max_bytes: What the JSON may take in the page. Texts are cut until it fits, but never below 16 scalars,
            so that very many events may still be over it. None cuts nothing.

    Returns:
        ASCII-safe markup: no ``<``, ``>`` or ``&`` in it, and no text that could end a script element. An
        object: ``made``, ``live``, ``cut`` (the length in scalars at which texts were cut, or null) and
        ``runs``; or, compressed, ``deflated``: the same as base64 of zlib's format.
    """
    given = list(runs)
    families = family_spending(run.overview for run in given)
    shown = [run.as_json() for run in given]
    for run in shown:
        if (spending := families.get(str(run["runId"]))) is not None:
            run["withChildren"] = spending
    page: dict[str, Json] = {"made": made, "live": live, "cut": None, "runs": list[Json](shown)}
    text = _packed(orjson.dumps(page))
    for longest in _CUT_SCALARS:
        if max_bytes is None or len(text) <= max_bytes:
            break
        for run in shown:
            run["rows"] = [_cut(row, longest) for row in _list(run["rows"])]
        page["cut"] = longest
        text = _packed(orjson.dumps(page))
    return text


def markup_safe(text: bytes) -> bytes:
    """
    Escape JSON so that it can stand in a script element, whatever its strings hold.

    Args:
        text: JSON.

    Returns:
        JSON of the same value.
    """
    for harmful, escape in _ESCAPES:
        text = text.replace(harmful, escape)
    return text


def _packed(text: bytes) -> bytes:
    if len(text) <= PLAIN_BYTES:
        return markup_safe(text)
    # Base64 holds nothing that needs an escape.
    return b'{"deflated":"' + base64.b64encode(zlib.compress(text, 9)) + b'"}'


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _cut(value: Json, longest: int) -> Json:
    """A copy of a value in which no text is longer; the depth of a payload is bounded where it is parsed."""
    if isinstance(value, str):
        return value if len(value) <= longest else value[: longest - 1] + _CUT_MARK
    if isinstance(value, list):
        return [_cut(item, longest) for item in value]
    if isinstance(value, dict):
        return {key: _cut(item, longest) for key, item in value.items()}
    return value
