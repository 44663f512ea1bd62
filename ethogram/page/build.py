"""The page, put together: hand-written parts, what they show, and a policy that allows nothing else."""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from importlib.resources import files

STYLES = ("view.css",)
"""The style sheets, in their order."""

SCRIPTS = (
    "data.js",
    "time.js",
    "marks.js",
    "lanes.js",
    "plot.js",
    "detail.js",
    "table.js",
    "frame.js",
    "head.js",
    "select.js",
    "input.js",
    "view.js",
)
"""The scripts, in their order: each uses what stands before it."""

OVERHEAD_BYTES = 120_000
"""More than the page takes beside its content."""

_PLACE = re.compile(rb"\{\{(\w+)\}\}")


def build_page(content: bytes, *, title: str, live: bool = False) -> bytes:
    """
    Put a page together.

    Args:
        content: What `ethogram.page.content.content` wrote.

        title: The page's title, any text.

        live: Whether the page may connect to where it came from. Otherwise it may connect to nothing.

    Returns:
        The page, UTF-8.
    """
    style = b"\n".join(_part(name) for name in STYLES)
    # One function around all: no name of it is a global, and a fault in one part stops the whole at once.
    script = b'(() => {\n"use strict";\n' + b"\n".join(_part(name) for name in SCRIPTS) + b"\n})();\n"
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "connect-src 'self'" if live else "connect-src 'none'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    parts = {
        b"title": _escaped(title),
        b"policy": policy.encode(),
        b"style": style,
        b"content": content,
        b"script": script,
    }
    # The template alone is searched for places: what fills one cannot stand in for another.
    pieces = _PLACE.split(_part("page.html"))
    return b"".join(parts[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def _part(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def _hash(text: bytes) -> str:
    return f"'sha256-{base64.b64encode(sha256(text).digest()).decode()}'"


def _escaped(text: str) -> bytes:
    printable = "".join(character if character.isprintable() else "\ufffd" for character in text)
    return printable.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").encode()
