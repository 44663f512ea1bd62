"""
The ethogram protocol in Python: envelope, vocabulary, validation, canonical form, sinks. It knows no harness.

A public name is loaded when it is first asked for, so that ``import ethogram`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ethogram.canonical import (
        CanonicalError,
        canonical_payload,
        compose_line,
        compose_lines,
        format_number,
        serialise_event,
    )
    from ethogram.clock import Clock, utc_now
    from ethogram.decision import DecisionError, check_answer
    from ethogram.envelope import (
        CanonicalDraft,
        Event,
        EventDraft,
        parse_draft,
        parse_event,
        parse_event_text,
        stamp,
    )
    from ethogram.errors import EthogramError
    from ethogram.excerpts import Excerpt, excerpt
    from ethogram.faults import (
        Duplicate,
        Finished,
        Gap,
        Invalid,
        MalformedLog,
        OutOfSequence,
        SinkFault,
        SinkLocked,
        SinkUnavailable,
        StoreChanged,
        WrongStore,
    )
    from ethogram.fold import FoldedRun, FoldError, fold_run
    from ethogram.following import FollowEnd, Follower, follow
    from ethogram.journal import JournaledRuns, stored_checkpoint
    from ethogram.json_text import Json, ParseError
    from ethogram.memory import MemorySink
    from ethogram.overview import RunOverview, RunTree, arrange, overviews, summarise
    from ethogram.places import LineSource, NoSuchPlace, NoSuchRun, RunStore, open_runs
    from ethogram.refusal import refusal_payload
    from ethogram.rundir import RunDirectory
    from ethogram.runlog import run_directory_name, run_id_of
    from ethogram.sink import BulkSink, CheckpointedSink, RunState, Sink, Source
    from ethogram.sqlite import SqliteSink
    from ethogram.sqlite_source import SqliteSource
    from ethogram.stream import LineMirror
    from ethogram.tee import Mirror, MirrorFault, TeeSink
    from ethogram.usage import Spending, UsageFold, fold_usage
    from ethogram.validation import ValidationError, serialise_validation_error, validate, validated_payload
    from ethogram.vocabulary import (
        EVENT_TYPES,
        KNOWN_TYPES,
        MAX_EXCERPT_SCALARS,
        MAX_PAYLOAD_BYTES,
        MAX_PAYLOAD_DEPTH,
        MAX_SAFE_INTEGER,
        MAX_TEXT_SCALARS,
        SCHEMA_VERSION,
        EventType,
        Field,
        FieldKind,
    )

__all__ = [
    "EVENT_TYPES",
    "KNOWN_TYPES",
    "MAX_EXCERPT_SCALARS",
    "MAX_PAYLOAD_BYTES",
    "MAX_PAYLOAD_DEPTH",
    "MAX_SAFE_INTEGER",
    "MAX_TEXT_SCALARS",
    "SCHEMA_VERSION",
    "BulkSink",
    "CanonicalDraft",
    "CanonicalError",
    "CheckpointedSink",
    "Clock",
    "DecisionError",
    "Duplicate",
    "EthogramError",
    "Event",
    "EventDraft",
    "EventType",
    "Excerpt",
    "Field",
    "FieldKind",
    "Finished",
    "FoldError",
    "FoldedRun",
    "FollowEnd",
    "Follower",
    "Gap",
    "Invalid",
    "JournaledRuns",
    "Json",
    "LineMirror",
    "LineSource",
    "MalformedLog",
    "MemorySink",
    "Mirror",
    "MirrorFault",
    "NoSuchPlace",
    "NoSuchRun",
    "OutOfSequence",
    "ParseError",
    "RunDirectory",
    "RunOverview",
    "RunState",
    "RunStore",
    "RunTree",
    "Sink",
    "SinkFault",
    "SinkLocked",
    "SinkUnavailable",
    "Source",
    "Spending",
    "SqliteSink",
    "SqliteSource",
    "StoreChanged",
    "TeeSink",
    "UsageFold",
    "ValidationError",
    "WrongStore",
    "arrange",
    "canonical_payload",
    "check_answer",
    "compose_line",
    "compose_lines",
    "excerpt",
    "fold_run",
    "fold_usage",
    "follow",
    "format_number",
    "open_runs",
    "overviews",
    "parse_draft",
    "parse_event",
    "parse_event_text",
    "refusal_payload",
    "run_directory_name",
    "run_id_of",
    "serialise_event",
    "serialise_validation_error",
    "stamp",
    "stored_checkpoint",
    "summarise",
    "utc_now",
    "validate",
    "validated_payload",
]

_HOMES = {
    "ethogram.canonical": (
        "CanonicalError",
        "canonical_payload",
        "compose_line",
        "compose_lines",
        "format_number",
        "serialise_event",
    ),
    "ethogram.clock": (
        "Clock",
        "utc_now",
    ),
    "ethogram.decision": (
        "DecisionError",
        "check_answer",
    ),
    "ethogram.envelope": (
        "CanonicalDraft",
        "Event",
        "EventDraft",
        "parse_draft",
        "parse_event",
        "parse_event_text",
        "stamp",
    ),
    "ethogram.errors": ("EthogramError",),
    "ethogram.excerpts": (
        "Excerpt",
        "excerpt",
    ),
    "ethogram.faults": (
        "Duplicate",
        "Finished",
        "Gap",
        "Invalid",
        "MalformedLog",
        "OutOfSequence",
        "SinkFault",
        "SinkLocked",
        "SinkUnavailable",
        "StoreChanged",
        "WrongStore",
    ),
    "ethogram.fold": (
        "FoldError",
        "FoldedRun",
        "fold_run",
    ),
    "ethogram.following": (
        "FollowEnd",
        "Follower",
        "follow",
    ),
    "ethogram.journal": (
        "JournaledRuns",
        "stored_checkpoint",
    ),
    "ethogram.json_text": (
        "Json",
        "ParseError",
    ),
    "ethogram.memory": ("MemorySink",),
    "ethogram.overview": (
        "RunOverview",
        "RunTree",
        "arrange",
        "overviews",
        "summarise",
    ),
    "ethogram.places": (
        "LineSource",
        "NoSuchPlace",
        "NoSuchRun",
        "RunStore",
        "open_runs",
    ),
    "ethogram.refusal": ("refusal_payload",),
    "ethogram.rundir": ("RunDirectory",),
    "ethogram.runlog": (
        "run_directory_name",
        "run_id_of",
    ),
    "ethogram.sink": (
        "BulkSink",
        "CheckpointedSink",
        "RunState",
        "Sink",
        "Source",
    ),
    "ethogram.sqlite": ("SqliteSink",),
    "ethogram.sqlite_source": ("SqliteSource",),
    "ethogram.stream": ("LineMirror",),
    "ethogram.tee": (
        "Mirror",
        "MirrorFault",
        "TeeSink",
    ),
    "ethogram.usage": (
        "Spending",
        "UsageFold",
        "fold_usage",
    ),
    "ethogram.validation": (
        "ValidationError",
        "serialise_validation_error",
        "validate",
        "validated_payload",
    ),
    "ethogram.vocabulary": (
        "EVENT_TYPES",
        "EventType",
        "Field",
        "FieldKind",
        "KNOWN_TYPES",
        "MAX_EXCERPT_SCALARS",
        "MAX_PAYLOAD_BYTES",
        "MAX_PAYLOAD_DEPTH",
        "MAX_SAFE_INTEGER",
        "MAX_TEXT_SCALARS",
        "SCHEMA_VERSION",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from the module that defines it."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'ethogram' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
