"""Which event a line is, what it holds in one number, which process wrote it, and how far to trust it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final, TypeGuard

import msgspec
import orjson

from ethogram.canonical import canonical_payload, format_number
from ethogram.json_text import numbers_fit
from vinaya_bridge.log.precise import unstructure
from vinaya_bridge.log.quick import IS_PLAIN
from vinaya_bridge.log.text import Json, is_unicode

DIGEST_LENGTH: Final = 16
"""How many hex digits of a content's sha256 are used."""

OLDEST_TRUSTED: Final = (0, 33, 0)
"""Lines of an older CLI are of low trust. Source: Vinaya Log reference, Reading rules: Low trust."""

LOW: Final = "low"
"""The trust of a line whose writer is too old or cannot be read."""

_VERSION: Final = re.compile(r"v?([0-9]+)\.([0-9]+)\.([0-9]+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII)
_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_LONGEST_VERSION: Final = 256
_BEYOND_SAFE: Final = str(2**53).encode()
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def identity_of(meta: Json) -> str | None:
    """
    Reads the identity of any line that is JSON, whatever else is wrong with it.

    Source: Vinaya Log reference, Reading rules: Identity.

    Args:
        meta: The line's ``meta``, decoded.

    Returns:
        ``event_id`` where it is a string that is not empty, else ``<run_id>:<seq>``; None where neither is there, or
        where it cannot be written as UTF-8.
    """
    if not isinstance(meta, dict):
        return None
    identity, run, seq = meta.get("event_id"), meta.get("run_id"), meta.get("seq")
    if not isinstance(identity, str) or not identity:
        if not isinstance(run, str) or not run or not _is_whole(seq):
            return None
        identity = f"{run}:{format_number(seq)}"
    return identity if is_unicode(identity) else None


def _is_whole(value: Json) -> TypeGuard[int | float]:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def run_of(meta: Json) -> str | None:
    """
    Reads the run that any line that is JSON belongs to.

    Args:
        meta: The line's ``meta``, decoded.

    Returns:
        ``lineage.run``, else ``run_id``: the first that is a string, not empty, and can be written as UTF-8; else None.
    """
    if not isinstance(meta, dict):
        return None
    lineage = meta.get("lineage")
    found = (lineage.get("run") if isinstance(lineage, dict) else None, meta.get("run_id"))
    return next((run for run in found if isinstance(run, str) and run and is_unicode(run)), None)


def digest_of(record: Any) -> str:
    """
    Condenses a line's content: equal for equal content, whatever the order of keys, white space, ``10.0`` or ``10``.

    Args:
        record: A record, or a struct with the same attributes, as the reader made it.

    Returns:
        The first 16 hex digits of the sha256 of its canonical text: sorted keys, numbers as ECMAScript prints them.
    """
    return sha256(canonical_text(record)).hexdigest()[:DIGEST_LENGTH]


def digests_of(records: Iterable[Any]) -> list[str]:
    """
    Condenses many contents: all are written, then all are hashed.

    Args:
        records: As `digest_of` takes them.

    Returns:
        Of each its `digest_of`.
    """
    return [sha256(text).hexdigest()[:DIGEST_LENGTH] for text in list(map(canonical_text, records))]


def canonical_text(record: Any) -> bytes:
    """
    Writes a line's content in its canonical form.

    Args:
        record: A record, or a struct with the same attributes, as the reader made it.

    Returns:
        UTF-8 text.
    """
    is_plain: Callable[[Any], bool] | None = getattr(record, IS_PLAIN, None)
    if is_plain is None:
        return canonical_payload(unstructure(record))
    text = _encode(record)
    return text if is_plain(record) else canonical_payload(orjson.loads(text))


def exact_text(record: Any) -> bytes | None:
    """
    Writes a line's content in its canonical form where that loses nothing.

    Args:
        record: A record, or a struct with the same attributes, as the reader made it.

    Returns:
        UTF-8 text that reads back as the same JSON value, with no number beyond 2^53 - 1; None where there is none.
    """
    is_plain: Callable[[Any], bool] | None = getattr(record, IS_PLAIN, None)
    if is_plain is not None:
        text = _encode(record)
        if is_plain(record) and _BEYOND_SAFE not in text:  # the quick path holds no greater number
            return text
        content: Json = orjson.loads(text)
    else:
        content = unstructure(record)
    if not numbers_fit(content):
        return None
    text = canonical_payload(content)
    return text if orjson.loads(text) == content else None


def process_of(record: Any) -> str:
    """
    Names the process whose counter a line's ``seq`` is.

    Args:
        record: A record or a struct.

    Returns:
        ``process_id``; under schema 1, which has none, the closest there is: run, host, machine and role as a JSON
        list.
    """
    meta = record.meta
    if meta.schema == 1:
        return orjson.dumps([meta.run_id, meta.host, meta.machine, record.subject.role]).decode()
    return str(meta.process_id)


def is_low_trust(version: str) -> bool:
    """
    Whether a line of a CLI version is of low trust whatever its header says.

    Source: Vinaya Log reference, Reading rules: Low trust.

    Args:
        version: ``meta.vinaya``. ``A.B.C`` can be read, with an optional ``v`` before it and pre-release and build
            after it.

    Returns:
        True for a version that cannot be read and for one before 0.33.0, its pre-releases among them.
    """
    # A number of any length would cost quadratic time to read.
    match = _VERSION.fullmatch(version.strip(_SPACE)) if len(version) <= _LONGEST_VERSION else None
    if match is None:
        return True
    release = (int(match[1]), int(match[2]), int(match[3]))
    return release < OLDEST_TRUSTED or (release == OLDEST_TRUSTED and match[4] is not None)
