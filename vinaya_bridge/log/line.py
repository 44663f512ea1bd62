"""One line of the Log: what it is, and what it says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast

import msgspec
from attrs import frozen

from ethogram.canonical import format_number
from vinaya_bridge.errors import Code
from vinaya_bridge.log import codes
from vinaya_bridge.log.families import FAMILIES, KINDS, SCHEMAS
from vinaya_bridge.log.headers import HeaderFacts, KnownHeaders, facts_of
from vinaya_bridge.log.identity import digest_of, digests_of, identity_of, is_low_trust, run_of
from vinaya_bridge.log.moment import instant_us
from vinaya_bridge.log.precise import InvalidValueError, Structurer
from vinaya_bridge.log.quick import QuickReader
from vinaya_bridge.log.redaction import find_in_bytes, holds_secret, redact_id, redact_record
from vinaya_bridge.log.rules import RUN_ID_PATTERN
from vinaya_bridge.log.text import Json, NestedTooDeepError, NotJsonError, lone_surrogate, parse

_REMEMBERED: Final = 4096
"""How many run ids and CLI versions are remembered, each."""

_SCHEMA_IS: Final = {
    "$": "expected an object",
    "$.meta": "expected an object",
    "$.meta.schema": "expected a number",
}

_WHITE_SPACE: Final = b" \t\r\n"


class EventLine(msgspec.Struct, eq=False, gc=False):
    """
    A line that is valid under its schema, redacted; the digest is of the redacted content.

    A struct because one is made for each line, and that must be quick.

    Args:
        record: A record, or a struct with the same attributes: the class that `FAMILIES` has for (kind, event).

        identity: What tells the event from every other: ``event_id``, under schema 1 ``<run_id>:<seq>``.

        header: What its header says of every line that has it; one object only for lines with the same subject too.

        is_redacted: Whether a secret was cut out of it.
    """

    record: Any
    identity: str
    header: HeaderFacts
    is_redacted: bool = False
    _digest: str = ""

    @property
    def kind(self) -> str:
        """The family."""
        kind: str = self.record.kind
        return kind

    @property
    def event(self) -> str:
        """The event within the family."""
        event: str = self.record.event
        return event

    @property
    def schema(self) -> int:
        """The header schema: 1, 2 or 3."""
        schema: int = self.record.meta.schema
        return schema

    @property
    def digest(self) -> str:
        """The first 16 hex digits of the content's sha256; computed once, when it is asked for."""
        if not self._digest:
            self._digest = digest_of(self.record)
        return self._digest

    @staticmethod
    def digest_all(lines: Sequence[EventLine]) -> None:
        """
        Computes `digest` of many lines, one step for all of them after the other.

        Args:
            lines: The lines.
        """
        for line, digest in zip(lines, digests_of([line.record for line in lines]), strict=True):
            line._digest = digest

    @property
    def main_run(self) -> str:
        """The run that the line belongs to: ``lineage.run``, else ``run_id``; not yet escaped for the wire."""
        return self.header.main_run

    @property
    def process(self) -> str:
        """The process whose counter ``meta.seq`` is."""
        return self.header.process

    @property
    def instant_us(self) -> int | None:
        """The instant of ``meta.ts`` in microseconds since 1970; None where it cannot be read."""
        return instant_us(self.record.meta.ts)

    @property
    def trust(self) -> str | None:
        """How far the attribution can be trusted: ``low``, or the header's provenance; None where it is not known."""
        return self.header.version[2]

    @property
    def trust_unknown(self) -> str | None:
        """Why `trust` is None; None where it is not. Source: Vinaya Log reference, Reading rules: Unknown."""
        return "a schema 1 header declares no provenance" if self.trust is None else None


@frozen
class UnknownVersion:
    """
    A line whose ``meta.schema`` is a number other than 1, 2 or 3: kept byte for byte, never interpreted.

    Args:
        schema: The number; infinite where it is beyond double range.

        identity: The identity, where it can be read.
    """

    schema: float
    identity: str | None


@frozen
class Refused:
    """
    A line that is none of the others.

    Args:
        code: What is wrong.

        path: Where: a JSON path, ``$`` for the line as a whole.

        reason: It in one clause, with fields and types, never with a value.

        identity: The identity, where it can be read.

        schema: ``meta.schema``, where it is 1, 2 or 3.

        kind: The family, where it is one of the ten.

        event: The event, where it is one of the family's.

        run: The run that the line belongs to, where it can be read.
    """

    code: Code
    path: str
    reason: str
    identity: str | None = None
    schema: int | None = None
    kind: str | None = None
    event: str | None = None
    run: str | None = None


@frozen
class Blank:
    """A line of white space, or of nothing."""


Verdict: TypeAlias = EventLine | UnknownVersion | Refused | Blank
"""What a line is."""

_BLANK: Final = Blank()


class Reader:
    """
    Reads lines, one at a time, each by itself. What it remembers between lines is only there to save time.

    A line takes the quick path, which can only accept; whatever it does not accept takes the precise one, which
    decides. Both give the same verdict, identity and digest.
    """

    def __init__(self) -> None:
        quick = QuickReader()
        self._read_quickly, self._read_shortened = quick.read, quick.read_shortened
        self._headers = KnownHeaders()
        self._structurer = Structurer()
        self._is_run_id = re.compile(RUN_ID_PATTERN, re.ASCII).fullmatch
        self._run_ids: set[str] = set()
        self._low_trust: dict[str, bool] = {}

    def read(self, raw: bytes) -> Verdict:
        """
        Reads one line.

        Args:
            raw: Its bytes without the newline; white space around the record, a CR among it, does not matter.

        Returns:
            What it is.
        """
        shortened = self._headers.shorten(raw)
        if shortened is not None:
            known, text = shortened
            record: Any = self._read_shortened(text, known.schema)
            if record is not None and not find_in_bytes(text):
                return EventLine(record, known.complete(record), known.facts)
        return self._read_whole(raw)

    def read_all(self, raws: Sequence[bytes]) -> list[Verdict]:
        """
        Reads many lines: one step for all of them, then the next, since code that repeats stays in the processor's
        nearest cache.

        Args:
            raws: The bytes of each, as `read` takes them.

        Returns:
            What `read` returns of each.
        """
        shorten = self._headers.shorten
        found = [shorten(raw) or self._read_whole(raw) for raw in raws]
        shortened = [each for each in found if type(each) is tuple]
        records = [self._read_shortened(text, known.schema) for known, text in shortened]
        # What stands between two texts can only make a secret of them where there is none, never hide one.
        may_hold_secret = find_in_bytes(b"\n".join([text for _, text in shortened]))
        lines = [
            EventLine(record, known.complete(record), known.facts)
            if record is not None and not (may_hold_secret and find_in_bytes(text))
            else None
            for record, (known, text) in zip(records, shortened, strict=True)
        ]
        if len(lines) == len(raws) and None not in lines:
            return cast(list[Verdict], lines)
        following = iter(lines)
        return [
            (next(following) or self._read_whole(raw)) if type(each) is tuple else cast(Verdict, each)
            for each, raw in zip(found, raws, strict=True)
        ]

    def _read_whole(self, raw: bytes) -> Verdict:
        record = self._read_quickly(raw)
        if record is None:
            return self.read_precisely(raw)
        meta = record.meta
        if meta.run_id not in self._run_ids and not self._learn(meta.run_id):
            return self.read_precisely(raw)
        if find_in_bytes(raw) or (b"\\" in raw and holds_secret(msgspec.to_builtins(record))):
            return self.read_precisely(raw)
        low = self._low_trust.get(meta.vinaya)
        if low is None:
            low = self._learn_trust(meta.vinaya)
        facts = facts_of(record, is_low_trust=low)
        self._headers.learn(raw, record, facts)
        identity = f"{meta.run_id}:{meta.seq}" if meta.schema == 1 else meta.event_id
        return EventLine(record, identity, facts)

    def read_precisely(self, raw: bytes) -> Verdict:
        """
        Reads one line by the precise path alone: the same verdict as `read`, later, with a record of attrs objects.

        Args:
            raw: As in `read`.

        Returns:
            As `read`.
        """
        if not raw.strip(_WHITE_SPACE):
            return _BLANK
        try:
            text = raw.decode()
        except UnicodeDecodeError as fault:
            reason = f"byte {fault.start} is not UTF-8"
            return _refused(codes.NOT_UTF8, "$", reason, _lenient(raw))
        too_deep = False
        try:
            value = parse(text)
        except NestedTooDeepError as fault:
            value, too_deep = fault.shallow, True
        except NotJsonError as fault:
            return Refused(codes.NOT_JSON, "$", fault.reason)
        return self._classify(value, too_deep=too_deep, escapes="\\u" in text)

    def _classify(self, value: Json, *, too_deep: bool, escapes: bool) -> Verdict:
        schema = _schema(value)
        if isinstance(schema, str):
            return _refused(codes.NO_SCHEMA, schema, _SCHEMA_IS[schema], value)
        value = cast(dict[str, Json], value)
        surrogate = lone_surrogate(value) if escapes else None  # UTF-8 has none, so one must be an escape
        if surrogate is not None:
            return _refused(codes.LONE_SURROGATE, surrogate, "half of a surrogate pair", value)
        if schema not in SCHEMAS:
            identity = identity_of(value["meta"])
            return UnknownVersion(schema, None if identity is None else redact_id(identity))
        if too_deep:
            return _refused(codes.TOO_DEEP, "$", "nested too deep", value)
        try:
            record = self._structurer.record(value, int(schema))
        except InvalidValueError as fault:
            return _refused(fault.code, fault.path, fault.reason, value)
        redacted = redact_record(record) if holds_secret(value) else record
        meta = redacted.meta
        identity = f"{meta.run_id}:{format_number(meta.seq)}" if meta.schema == 1 else meta.event_id
        facts = facts_of(redacted, is_low_trust=is_low_trust(meta.vinaya))
        return EventLine(redacted, identity, facts, redacted != record)

    def _learn(self, run_id: str) -> bool:
        """Whether a run id that was not seen of late is one."""
        if self._is_run_id(run_id) is None:
            return False
        if len(self._run_ids) >= _REMEMBERED:
            self._run_ids.clear()
        self._run_ids.add(run_id)
        return True

    def _learn_trust(self, version: str) -> bool:
        if len(self._low_trust) >= _REMEMBERED:
            self._low_trust.clear()
        self._low_trust[version] = low = is_low_trust(version)
        return low


def _schema(value: Json) -> float | str:
    """The number ``meta.schema``, or the path at which something else is found."""
    if not isinstance(value, dict):
        return "$"
    meta = value.get("meta")
    if not isinstance(meta, dict):
        return "$.meta"
    schema = meta.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int | float):
        return "$.meta.schema"
    return schema


def _refused(code: Code, path: str, reason: str, value: Json) -> Refused:
    """A refusal, with what can still be read of the line; nothing of it that is a secret."""
    if not isinstance(value, dict):
        return Refused(code, path, reason)
    meta, kind, event = value.get("meta"), value.get("kind"), value.get("event")
    identity, run, schema = identity_of(meta), run_of(meta), _schema(value)
    known_kind = kind if isinstance(kind, str) and kind in KINDS else None
    return Refused(
        code,
        path,
        reason,
        identity=None if identity is None else redact_id(identity),
        schema=int(schema) if schema in SCHEMAS else None,
        kind=known_kind,
        event=event if isinstance(event, str) and (known_kind, event) in FAMILIES else None,
        run=None if run is None else redact_id(run),
    )


def _lenient(raw: bytes) -> Json:
    """What can be read of a line that is not UTF-8, only to name it; a name that was damaged is left out."""
    try:
        value = parse(raw.decode(errors="replace"))
    except (NotJsonError, NestedTooDeepError):
        return None
    meta = value.get("meta") if isinstance(value, dict) else None
    if isinstance(meta, dict):
        for key in [key for key, item in meta.items() if "\ufffd" in str(item)]:
            del meta[key]
    return value
