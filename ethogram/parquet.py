"""
Events as a Parquet file: one row an event, a typed column for each plain field that the protocol knows.

Columns, in this order: ``run_id``, ``seq``, ``type``, ``time`` (when it happened, UTC with microseconds; null where no
time can be read), ``ts``, ``captured_at`` (both as they were sent), ``payload`` (canonical JSON, nothing left
out), and then the plain fields of the known types, in snake case: ``duration_ms``, ``usage_input_tokens``. A
field that several types have is one column; it is null where the event's type does not have it. Needs the extra
``parquet``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from ethogram.canonical import canonical_payload
from ethogram.envelope import Event
from ethogram.faults import system_faults
from ethogram.json_text import Json
from ethogram.moment import happened, instant_ms
from ethogram.vocabulary import EVENT_TYPES, Field, FieldKind

ROW_GROUP_ROWS: Final = 50_000
"""How many events are held in memory and written together."""

_ARROW: Final = MappingProxyType(
    {
        FieldKind.STRING: pa.string(),
        FieldKind.UNION: pa.string(),
        FieldKind.BOOLEAN: pa.bool_(),
        FieldKind.NUMBER: pa.float64(),
        FieldKind.COUNT: pa.int64(),
    }
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def _columns() -> Iterator[tuple[str, tuple[str, ...], Field]]:
    """Each known type's plain fields, and those of the objects right inside it: type, path and field."""
    for name, known in EVENT_TYPES.items():
        for field in known.payload.fields:
            if field.kind is FieldKind.OBJECT:
                yield from (
                    (name, (field.name, inner.name), inner) for inner in field.fields if inner.kind in _ARROW
                )
            elif field.kind in _ARROW:
                yield name, (field.name,), field


def _column_name(path: tuple[str, ...]) -> str:
    return re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", "_".join(path)).lower()


def _fields_by_type() -> dict[str, dict[str, tuple[tuple[str, ...], FieldKind]]]:
    found: dict[str, dict[str, tuple[tuple[str, ...], FieldKind]]] = {}
    for name, path, field in _columns():
        found.setdefault(name, {})[_column_name(path)] = (path, field.kind)
    return found


_FIELDS: Final = MappingProxyType(_fields_by_type())
_ENVELOPE: Final = (
    pa.field("run_id", pa.string(), nullable=False),
    pa.field("seq", pa.int64(), nullable=False),
    pa.field("type", pa.string(), nullable=False),
    pa.field("time", pa.timestamp("us", tz="UTC")),
    pa.field("ts", pa.string(), nullable=False),
    pa.field("captured_at", pa.string()),
    pa.field("payload", pa.string(), nullable=False),
)


def schema() -> pa.Schema:
    """
    The columns of the file.

    Returns:
        The schema: the envelope, the payload as JSON, and the known fields.
    """
    known = {_column_name(path): _ARROW[field.kind] for _, path, field in _columns()}
    return pa.schema([*_ENVELOPE, *(pa.field(name, kind) for name, kind in known.items())])


def write_parquet(events: Iterable[Event], path: Path) -> int:
    """
    Write events to a Parquet file, some tens of thousands at a time.

    Args:
        events: The events, in any order: it is kept.

        path: The file; it takes the place of one that is there only once it is whole.

    Returns:
        How many events were written.

    Raises:
        SinkUnavailable: The file could not be written.
    """
    columns = schema()
    remaining = iter(events)
    unfinished = path.with_name(f"{path.name}.unfinished")
    written = 0
    with system_faults(path):
        # Only its owner may read it: it holds what agents said and did.
        unfinished.touch(mode=0o600)
        try:
            with pq.ParquetWriter(unfinished, columns, compression="zstd") as writer:
                while rows := [_row(event) for event in islice(remaining, ROW_GROUP_ROWS)]:
                    writer.write_table(pa.Table.from_pylist(rows, schema=columns))
                    written += len(rows)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return written


def _row(event: Event) -> dict[str, object]:
    instant = instant_ms(happened(event))
    row: dict[str, object] = {
        "run_id": event.run_id,
        "seq": event.seq,
        "type": event.type,
        "time": None if instant is None else _EPOCH + timedelta(microseconds=round(instant * 1_000)),
        "ts": event.ts,
        "captured_at": event.captured_at,
        "payload": canonical_payload(event.payload).decode(),
    }
    for column, (path, kind) in _FIELDS.get(event.type, {}).items():
        value = _at(event.payload, path)
        # A count may be spelt 3.0; its column holds whole numbers.
        row[column] = int(value) if kind is FieldKind.COUNT and isinstance(value, float) else value
    return row


def _at(value: Json, path: tuple[str, ...]) -> object:
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value
