"""A physical line that is not one JSON value: which parts of it are whole records, and which were torn."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_RECORD_START: Final = b'{"meta":'
_HEADER: Final = b'"meta"'
_SPACE: Final = b" \t\r\n"
_SPACES: Final = re.compile(rb"[ \t\r\n]*")
_NUL: Final = 0

_TOKEN: Final = re.compile(
    rb"""[ \t\r\n]*(?:
        (?P<string> "[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*" )
      | (?P<mark> [][{}:,] )
      | (?P<plain> -?[0-9][0-9.eE+-]* | true | false | null )
    )""",
    re.VERBOSE | re.DOTALL,
)


class Piece(NamedTuple):
    """
    A part of a physical line that counts as a line of its own.

    Attributes:
        start: Where it begins, in bytes from the start of the line.

        length: How long it is, in bytes.
    """

    start: int
    length: int


def split_pieces(raw: bytes) -> list[Piece]:
    """
    Takes a line that is not one JSON value apart.

    An append that was cut short leaves a fragment, and the next record stands behind it on the same line; a newline
    that was lost leaves two whole records on one line. Between whole records whatever lies there is one fragment,
    however many writes were torn in it. It takes time in proportion to the line's length.

    Args:
        raw: The line's bytes, without the newline; a line that is one JSON value is one piece.

    Returns:
        Pieces that cover the line from its first byte to its last, in order; at least one. Whole records are found by
        their brackets and tokens alone: reading them decides what they are. Garbage that no append leaves, behind the
        last record, makes one piece with it.
    """
    whole = _whole_objects(raw)
    pieces: list[Piece] = []
    at = 0
    for start, end in whole:
        if raw[at:start].strip(_SPACE):
            pieces.append(Piece(at, start - at))
            at = start
        pieces.append(Piece(at, end - at))
        at = end
    rest = raw[at:].lstrip(_SPACE)
    if pieces and not (rest and (rest[:1] == b"{" or rest[0] == _NUL)):
        last = pieces.pop()
        at = last.start
    if at < len(raw) or not pieces:
        pieces.append(Piece(at, len(raw) - at))
    return pieces


def _whole_objects(raw: bytes) -> list[tuple[int, int]]:
    """The start and end of each outermost whole object with a header that can be found in the line."""
    found: list[tuple[int, int]] = []
    at = _next_start(raw, 0)
    while at >= 0:
        scan = _Scan(raw, at)
        found.extend(scan.whole)
        behind = max(scan.end, at + 1)
        at = _next_start(raw, behind) if scan.is_whole else raw.find(_RECORD_START, behind)
    return [(start, end) for start, end in found if _HEADER in raw[start:end]]


def _next_start(raw: bytes, at: int) -> int:
    """Where an object begins at a place in a line, else the next record behind it; -1: there is none."""
    begin = _SPACES.match(raw, at).end()  # type: ignore[union-attr]
    return begin if raw[begin : begin + 1] == b"{" else raw.find(_RECORD_START, begin)


class _Scan:
    """
    Reads tokens from the start of an object until it is closed or a token cannot stand where it is.

    What is open when that happens was torn; the records that were closed inside it are whole. So no byte is read again
    from another start, save those of the last token.
    """

    def __init__(self, raw: bytes, start: int) -> None:
        self.whole: list[tuple[int, int]] = []
        self.is_whole = False
        self.end = start
        self._open: list[tuple[int, bytes]] = []
        self._run(raw, start)

    def _run(self, raw: bytes, start: int) -> None:
        wants, at = "value", start
        while True:
            token = _TOKEN.match(raw, at)
            if token is None:
                return
            group = token.lastgroup or ""
            text = token[group] if group == "mark" else b""
            begin = token.start(group)
            self.end = begin
            wants = self._step(wants, group, text, begin)
            if not wants:
                return
            at = token.end()
            if text in (b"}", b"]"):
                self._close(raw, at)
                if not self._open:
                    self.is_whole, self.end = True, at
                    return

    def _step(self, wants: str, group: str, text: bytes, begin: int) -> str:
        """What may follow a token; empty where it cannot stand here."""
        if text in (b"{", b"["):
            if wants not in ("value", "value or end"):
                return ""
            self._open.append((begin, text))
            return "key or end" if text == b"{" else "value or end"
        in_object = self._open[-1][1] == b"{"
        if text in (b"}", b"]"):
            closes = in_object == (text == b"}")
            return "after" if closes and wants in ("after", "key or end", "value or end") else ""
        if text == b",":
            return ("key" if in_object else "value") if wants == "after" else ""
        if text == b":":
            return "value" if wants == "colon" else ""
        if wants in ("key", "key or end"):
            return "colon" if group == "string" else ""
        return "after" if wants in ("value", "value or end") else ""

    def _close(self, raw: bytes, end: int) -> None:
        start, _ = self._open.pop()
        if not self._open or raw.startswith(_RECORD_START, start):
            # An object takes the place of the records inside it.
            while self.whole and self.whole[-1][0] > start:
                self.whole.pop()
            self.whole.append((start, end))
