"""
Headers met before: a process writes the same header on all its lines, save the time, the counter and the event's id,
and the same subject on most of them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from vinaya_bridge.log.identity import LOW, process_of

_REMEMBERED: Final = 4096
"""How many headers are remembered, about 3 kB each."""

_TS_AT: Final = len(b'{"meta":{"schema":3,"ts":"')
_TS_END: Final = _TS_AT + len(b"2026-08-02T06:00:00.000Z")
_SEQ: Final = b'"seq":'
_EVENT_ID: Final = b'"event_id":"'
_ID_LENGTH: Final = 36
_PROCESS_ID: Final = b'"process_id":"'
_PROCESS_FROM: Final = 200
"""Where to look for the process, in bytes: what stands before it is seldom shorter."""

_KEY_LENGTH: Final = len(_PROCESS_ID) + 32
_RUN_KEY_END: Final = _TS_END + len(b'","run_id":"') + 36
"""Under schema 1, which knows no process, the run stands for it: right behind the time."""

_SUBJECT: Final = b'},"subject":{'
_KIND: Final = b'},"kind":"'
_SHORT: Final = b'{"meta":["\\n","%b",%b,"%b"]%b'
_SHORT_FIRST: Final = b'{"meta":["\\n","%b",%b]%b'
_VARYING_AT: Final = len(b'{"meta":["\\n",')


class HeaderFacts(msgspec.Struct, frozen=True, eq=False, gc=False):
    """
    What a header says of every line that has it.

    Args:
        main_run: The run that the lines belong to: ``lineage.run``, else ``run_id``; not yet escaped for the wire.

        process: The process whose counter ``meta.seq`` is.

        is_low_trust: Whether the writer is so old, or so unreadable, that the header cannot be believed.

        version: The schema, the version of the CLI, and how far the attribution can be trusted: ``low``, or the
            header's provenance, or None where it is not known.
    """

    main_run: str
    process: str
    is_low_trust: bool
    version: tuple[int, str, str | None]


def facts_of(record: Any, *, is_low_trust: bool) -> HeaderFacts:
    """
    Reads what a record's header says of every line that has it.

    Args:
        record: A record, or a struct with the same attributes.

        is_low_trust: What is known of the CLI's version.

    Returns:
        The facts. Under schema 1 the process depends on the subject's role too.
    """
    meta = record.meta
    schema = meta.schema
    run: str = meta.run_id
    provenance: str | None = None
    if schema != 1:
        run = meta.lineage.run or run
        provenance = meta.provenance
    trust = LOW if is_low_trust else provenance
    return HeaderFacts(run, process_of(record), is_low_trust, (int(schema), meta.vinaya, trust))


class Known(msgspec.Struct, frozen=True, eq=False, gc=False):
    """
    A header and a subject that were met: their text around what varies, and what was made of it.

    Args:
        schema: The digit of its schema.

        start: The text before the time.

        before_seq: The text between the time and the counter.

        before_id: The text between the counter and the event's id.

        after_id: The text behind the event's id, to the end of the subject.

        meta: The header as it was decoded.

        subject: The subject as it was decoded; it cannot change, so all lines share it.

        facts: What it says of every line.
    """

    schema: bytes
    start: bytes
    before_seq: bytes
    before_id: bytes
    after_id: bytes
    meta: Any
    subject: Any
    facts: HeaderFacts

    def taken_off(self, raw: bytes) -> bytes | None:
        """
        Puts a list in the header's place and takes the subject away.

        Args:
            raw: A line's bytes.

        Returns:
            The shortened line; None where it has another header or subject, or an escape outside of them.
        """
        seq_at = _TS_END + len(self.before_seq)
        seq_end = raw.find(b",", seq_at)
        id_at = seq_end + len(self.before_id)
        id_end = id_at + _ID_LENGTH
        if not (
            raw.startswith(self.before_id, seq_end)
            and raw.startswith(self.before_seq, _TS_END)
            and raw.startswith(self.after_id, id_end)
            and raw.startswith(self.start)
        ):
            return None
        ts, seq, event_id = raw[_TS_AT:_TS_END], raw[seq_at:seq_end], raw[id_at:id_end]
        text = _SHORT % (ts, seq, event_id, raw[id_end + len(self.after_id) :])
        return text if text.find(b"\\", _VARYING_AT) < 0 else None

    def complete(self, record: Any) -> str:
        """
        Gives a record the header and the subject that its line had.

        Args:
            record: What was decoded of the shortened line: its ``meta`` has ``ts``, ``seq`` and ``event_id``.

        Returns:
            The line's identity.
        """
        varying = record.meta
        event_id: str = varying.event_id
        meta = self.meta.__copy__()
        _set(meta, "ts", varying.ts)
        _set(meta, "seq", varying.seq)
        _set(meta, "event_id", event_id)
        _set(record, "meta", meta)
        _set(record, "subject", self.subject)
        return event_id


class KnownFirst(Known, frozen=True, eq=False, gc=False):
    """The same under schema 1, whose events have no id: `before_id` is empty, `after_id` follows the counter."""

    def taken_off(self, raw: bytes) -> bytes | None:
        """Does what `Known.taken_off` does."""
        seq_at = _TS_END + len(self.before_seq)
        seq_end = raw.find(b",", seq_at)
        if not (
            raw.startswith(self.after_id, seq_end)
            and raw.startswith(self.before_seq, _TS_END)
            and raw.startswith(self.start)
        ):
            return None
        text = _SHORT_FIRST % (raw[_TS_AT:_TS_END], raw[seq_at:seq_end], raw[seq_end + len(self.after_id) :])
        return text if text.find(b"\\", _VARYING_AT) < 0 else None

    def complete(self, record: Any) -> str:
        """Does what `Known.complete` does; the identity is the run's id and the counter."""
        varying = record.meta
        meta = self.meta.__copy__()
        _set(meta, "ts", varying.ts)
        _set(meta, "seq", varying.seq)
        _set(record, "meta", meta)
        _set(record, "subject", self.subject)
        return f"{meta.run_id}:{meta.seq}"


_set: Final = msgspec.structs.force_setattr


class KnownHeaders:
    """
    Remembers headers by their process, or under schema 1 by their run.

    Two lines have the same header where its text is the same, so nothing of it needs to be decoded, checked or
    searched again. Only text in the writer's own order and without an escape is recognised; no other line is wrong
    for it, only read as a whole.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Known] = {}
        self._last: Known | None = None

    def shorten(self, raw: bytes) -> tuple[Known, bytes] | None:
        """
        Takes the header off a line.

        Args:
            raw: The line's bytes.

        Returns:
            The header, and the line without a subject and with a list in the header's place:
            `vinaya_bridge.log.quick.MARK`, the time, the counter and the event's id. None where header and subject
            were not met together, or the rest has an escape anywhere.
        """
        known = self._last  # a process's lines often stand together
        text = None if known is None else known.taken_off(raw)
        if text is None:
            known = self._known.get(_key(raw))
            text = None if known is None else known.taken_off(raw)
            if text is None:
                return None
            self._last = known
        assert known is not None  # noqa: S101 - a text was made with it
        return known, text

    def learn(self, raw: bytes, record: Any, facts: HeaderFacts) -> None:
        """
        Remembers the header of a line that was read as a whole and holds no secret.

        Args:
            raw: The line's bytes.

            record: What was decoded of it.

            facts: What its header says.
        """
        meta = record.meta
        end = raw.find(_SUBJECT) + 1
        after = raw.find(_KIND, end) + 1
        if not end or not after or b"\\" in raw:
            return
        header = raw[:end]
        is_first = meta.schema == 1
        # Without an escape no string holds a quote, so these can only be the keys. None may be there twice.
        keys = [_SEQ, b'"ts":', b'"meta":', *(() if is_first else (_EVENT_ID, _PROCESS_ID))]
        if not header.startswith(b'{"meta":{"schema":') or any(header.count(key) != 1 for key in keys):
            return
        seq_at = header.find(_SEQ) + len(_SEQ)
        seq_end = header.find(b",", seq_at)
        if (header[_TS_AT:_TS_END], header[seq_at:seq_end]) != (meta.ts.encode(), b"%d" % meta.seq):
            return
        id_at = id_end = seq_end
        if not is_first:
            id_at = header.find(_EVENT_ID) + len(_EVENT_ID)
            id_end = id_at + _ID_LENGTH
            event_id = meta.event_id.encode()
            if seq_end > id_at or len(event_id) != _ID_LENGTH or header[id_at:id_end] != event_id:
                return
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[_key(raw)] = (KnownFirst if is_first else Known)(
            b"%d" % meta.schema,
            header[:_TS_AT],
            header[_TS_END:seq_at],
            header[seq_end:id_at],
            raw[id_end:after],
            meta,
            record.subject,
            facts,
        )


def _key(raw: bytes) -> bytes:
    """What a header is found by again: where its writer puts the process, or the run under schema 1."""
    process_at = raw.find(_PROCESS_ID, _PROCESS_FROM)
    return raw[process_at : process_at + _KEY_LENGTH] if process_at >= 0 else raw[_TS_END:_RUN_KEY_END]
