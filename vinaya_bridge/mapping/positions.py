"""
Where each key and value of a TOML document stands, which ``tomllib`` does not tell.

The scanner walks a document that ``tomllib`` has accepted (or one that it refused only for a key given
twice), so it checks nothing: it finds where things begin.
"""

from __future__ import annotations

from attrs import field, frozen

from vinaya_bridge.mapping.findings import KeyPath

_SPACE = " \t"
_BLANK = " \t\r\n"
_CLOSERS = {"'": "'", '"': '"'}


@frozen
class Positions:
    """
    The places of a document.

    Args:
        keys: Where the last key of a path begins, as (line, column) from 1.

        values: Where the value at a path begins.

        repeated: Paths given a second time, with the place of the second.
    """

    keys: dict[KeyPath, tuple[int, int]] = field(factory=dict)
    values: dict[KeyPath, tuple[int, int]] = field(factory=dict)
    repeated: list[tuple[KeyPath, tuple[int, int]]] = field(factory=list)

    def key(self, path: KeyPath) -> tuple[int, int]:
        """The place of the key at a path, or of the closest thing around it."""
        return self._closest(path, self.keys, self.values)

    def value(self, path: KeyPath) -> tuple[int, int]:
        """The place of the value at a path, or of the closest thing around it."""
        return self._closest(path, self.values, self.keys)

    @staticmethod
    def _closest(
        path: KeyPath, first: dict[KeyPath, tuple[int, int]], second: dict[KeyPath, tuple[int, int]]
    ) -> tuple[int, int]:
        while path:
            if path in first:
                return first[path]
            if path in second:
                return second[path]
            path = path[:-1]
        return 1, 1


def find_positions(text: str) -> Positions:
    """
    Find where every key and value of a TOML document begins.

    Args:
        text: The document.

    Returns:
        The places. A document that is not TOML gives the places up to its fault.
    """
    scanner = _Scanner(text)
    try:
        scanner.document()
    except (IndexError, ValueError, OverflowError):
        # The text ended inside something, or is no TOML here: what was found so far is still right.
        return scanner.found
    return scanner.found


class _Scanner:
    """Walks one document once, from its start to its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found = Positions()
        self._counts: dict[KeyPath, int] = {}
        self._line_starts = [0] + [i + 1 for i, char in enumerate(text) if char == "\n"]
        self._line = 0
        self._defined: set[KeyPath] = set()

    def document(self) -> None:
        table: KeyPath = ()
        while True:
            self._skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.text.startswith("[[", self.at):
                self.at += 2
                table = self._header(is_list=True)
                self.at += 2
            elif self.text[self.at] == "[":
                self.at += 1
                table = self._header(is_list=False)
                self.at += 1
            else:
                self._assignment(table)

    def _place(self) -> tuple[int, int]:
        while self._line + 1 < len(self._line_starts) and self._line_starts[self._line + 1] <= self.at:
            self._line += 1
        return self._line + 1, self.at - self._line_starts[self._line] + 1

    def _skip(self, blank: str) -> None:
        """Pass over white space and, where line ends count as blank, comments."""
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if char in blank:
                self.at += 1
            elif char == "#" and "\n" in blank:
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return

    def _header(self, *, is_list: bool) -> KeyPath:
        parts = self._dotted_key()
        path: KeyPath = ()
        for index, (name, place) in enumerate(parts):
            path = (*path, name)
            last = index == len(parts) - 1
            if last and is_list:
                count = self._counts.get(path, 0)
                self._counts[path] = count + 1
                self.found.keys.setdefault(path, place)
                path = (*path, count)
                self.found.keys[path] = place
            elif path in self._counts and not last:
                path = (*path, self._counts[path] - 1)
            elif last:
                self._define(path, place)
            self.found.keys.setdefault(path, place)
        return path

    def _define(self, path: KeyPath, place: tuple[int, int]) -> None:
        if path in self._defined:
            self.found.repeated.append((path, place))
        self._defined.add(path)

    def _dotted_key(self) -> list[tuple[str, tuple[int, int]]]:
        parts: list[tuple[str, tuple[int, int]]] = []
        while True:
            self._skip(_SPACE)
            place = self._place()
            char = self.text[self.at]
            if char in _CLOSERS:
                parts.append((self._string(), place))
            else:
                start = self.at
                while self.text[self.at] not in " \t.=]\r\n":
                    self.at += 1
                parts.append((self.text[start : self.at], place))
            self._skip(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _assignment(self, table: KeyPath) -> None:
        parts = self._dotted_key()
        path = table
        for name, place in parts:
            path = (*path, name)
            self.found.keys.setdefault(path, place)
        self._define(path, parts[-1][1])
        if self.text[self.at] != "=":
            raise IndexError
        self.at += 1
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        self._skip(_SPACE)
        self.found.values.setdefault(path, self._place())
        char = self.text[self.at]
        if char in _CLOSERS:
            self._string()
        elif char == "[":
            self._list(path)
        elif char == "{":
            self._inline_table(path)
        else:
            start = self.at
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\r\n":
                self.at += 1
            if self.at == start:  # no value stands here: nothing behind it has a sure place
                raise IndexError

    def _list(self, path: KeyPath) -> None:
        self.at += 1
        index = 0
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "]":
                self.at += 1
                return
            self._value((*path, index))
            index += 1
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while True:
            self._skip(_BLANK)
            if self.text[self.at] == "}":
                self.at += 1
                return
            self._assignment(path)
            self._skip(_BLANK)
            if self.text[self.at] == ",":
                self.at += 1

    def _string(self) -> str:
        """Pass over one string of any of the four kinds and return its text as far as a key needs it."""
        quote = self.text[self.at]
        if self.text.startswith(quote * 3, self.at):
            return self._long_string(quote)
        self.at += 1
        out: list[str] = []
        while (char := self.text[self.at]) != quote:
            if char == "\\" and quote == '"':
                self.at += 1
                out.append(self._escape())
            else:
                out.append(char)
                self.at += 1
        self.at += 1
        return "".join(out)

    def _long_string(self, quote: str) -> str:
        self.at += 3
        start = self.at
        while not self.text.startswith(quote * 3, self.at):
            self.at += 2 if self.text[self.at] == "\\" and quote == '"' else 1
        self.at += 3
        # Up to two quotes may stand directly before the closing three.
        while self.at < len(self.text) and self.text[self.at] == quote:
            self.at += 1
        return self.text[start : self.at - 3]

    def _escape(self) -> str:
        char = self.text[self.at]
        self.at += 1
        if char in "uU":
            width = 4 if char == "u" else 8
            digits = self.text[self.at : self.at + width]
            self.at += width
            return chr(int(digits, 16))
        return {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}.get(char, char)
