"""Secrets in the text that leaves: old logs were written by a CLI that knew two kinds of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import attrs
import re2

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.rules import Holds, attribute_name
from vinaya_bridge.log.shapes import Shape, class_for, fields_of
from vinaya_bridge.log.text import Json

_R = TypeVar("_R", bound=attrs.AttrsInstance)

REDACTED: Final = "<redacted>"
"""What stands in place of a secret in free text."""

_SECRETS: Final = (
    # GitHub.
    r"gh[oprsu]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"\bBearer\s+[^\s\"']+",
    r"\b(?i:bearer)\s+[A-Za-z0-9._~+/=-]{16,}",
    # Clouds and vendors.
    r"A(?:KI|SI)A[0-9A-Z]{16}",
    r"xox[a-z]-[A-Za-z0-9-]{8,}",
    r"\b[prs]k_(?:live|test)_[A-Za-z0-9]{8,}",
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{20,}",
    # JSON Web Tokens: two or more further parts, the last of which may be empty.
    r"eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]*",
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
)
"""Secrets that have a form of their own."""

_ASSIGNED: Final = r"""["']?\s*[:=]\s*["']?"""
_ASSIGNED_SECRETS: Final = (
    # GitHub's older tokens are bare hex; a commit's sha has no such word before it.
    (r"(?i:(?:\b|_)(?:token|pat|api_key)" + _ASSIGNED + ")", r"[0-9A-Fa-f]{40,}"),
    (
        r"(?i:(?:secret|password|passwd|api_?key|access_?key|client_?secret|private_?key)" + _ASSIGNED + ")",
        r"[^\s\"',;]{16,}",
    ),
)
"""Secrets that are known by the name before them, which stays: name and value."""

_CREDENTIALS: Final = r"(https?://)[^\s/@:\"']*:[^\s/\"']*@"


def _set_of(pattern: str) -> re2.Set:
    """A pattern to be searched for in bytes, where only whether it occurs matters: that is quicker than a match."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True
    options.max_mem = 64 << 20
    found = re2.Set.SearchSet(options)
    found.Add(pattern)
    found.Compile()
    return found


_SECRET: Final = re2.compile("|".join(_SECRETS))
_ASSIGNED_VALUES: Final = tuple(re2.compile(f"({name}){value}") for name, value in _ASSIGNED_SECRETS)
_URL_CREDENTIALS: Final = re2.compile(_CREDENTIALS)
find_in_bytes: Final[Callable[[bytes], list[int]]] = _set_of(
    "|".join((*_SECRETS, *(name + value for name, value in _ASSIGNED_SECRETS), _CREDENTIALS))
).Match
"""
Looks for secrets in bytes: UTF-8 text, or a line without a backslash. It is quick, and never wrongly empty. A line with
a backslash needs `holds_secret`, since an escape can hide a secret from it.
"""


def holds_secret(line: object) -> bool:
    """
    Whether a string of a line could hold a secret: never wrongly no.

    Args:
        line: The line as decoded JSON; tuples may stand for lists.

    Returns:
        False where no string of the line holds a secret.
    """
    # What stands between the strings ends every pattern, so that no two of them make one.
    return bool(find_in_bytes("\n\0\n".join(_strings(line)).encode()))


def _strings(value: object) -> list[str]:
    found: list[str] = []
    stack = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            found.append(here)
        elif isinstance(here, dict):
            stack.extend(here.values())
        elif isinstance(here, list | tuple):
            stack.extend(here)
    return found


def redact_text(text: str) -> str:
    """
    Cuts the secrets out of a text.

    Args:
        text: Free text.

    Returns:
        The text, `REDACTED` in place of each secret; of a URL only the credentials are cut.
    """
    if not find_in_bytes(text.encode()):
        return text
    text = str(_SECRET.sub(REDACTED, text))
    for assigned in _ASSIGNED_VALUES:
        text = str(assigned.sub(rf"\1{REDACTED}", text))
    return str(_URL_CREDENTIALS.sub(rf"\1{REDACTED}@", text))


def redact_id(text: str) -> str:
    """
    Replaces an id that holds a secret, so that it still ties together what it tied together.

    Args:
        text: An id.

    Returns:
        The id as it is, or ``redacted:`` and the hex digits of its sha256, the same wherever it occurs.
    """
    if redact_text(text) == text:
        return text
    return "redacted:" + hashlib.sha256(text.encode()).hexdigest()


def redact_record(record: _R) -> _R:
    """
    Redacts a record, field by field. It is not validated again: ``<redacted>`` matches few patterns.

    Args:
        record: A record, or an object inside one: attrs, not a struct.

    Returns:
        A record that equals it where nothing was redacted.
    """
    changes = {
        name: _redacted(getattr(record, name), shape) for name, shape in fields_of(type(record)).items()
    }
    return cast(_R, attrs.evolve(cast(Any, record), **changes))


def redact_json(line: dict[str, Json]) -> dict[str, Json]:
    """
    Redacts a whole line as decoded JSON. Keys, numbers and the members of closed lists are left alone.

    Args:
        line: A valid line.

    Returns:
        A copy.
    """
    return _redacted_object(line, FAMILIES[(str(line["kind"]), str(line["event"]))])


def _redacted_object(value: dict[str, Json], cls: type[attrs.AttrsInstance]) -> dict[str, Json]:
    shapes = fields_of(cls)
    return {key: _redacted(item, shapes[attribute_name(key)]) for key, item in value.items()}


def _redacted(value: Any, shape: Shape) -> Any:
    """A value of a record or of decoded JSON, redacted by what its field may be."""
    if isinstance(value, str):
        if shape.kind in ("enum", "literal"):
            return value
        return redact_id(value) if shape.rule.holds is Holds.ID else redact_text(value)
    if attrs.has(type(value)):
        return redact_record(value)
    if isinstance(value, dict):
        if shape.kind == "object":
            return _redacted_object(value, class_for(value, shape))
        return {key: _redacted(item, cast(Shape, shape.item)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_redacted(item, cast(Shape, shape.item)) for item in value)
    return value
