"""Python source, line by line, for rules that are compiled: indentation, fresh names and constants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class SourceText:
    """The text of one module of generated functions, and the constants it refers to."""

    def __init__(self) -> None:
        self.constants: dict[str, object] = {}
        self._lines: list[str] = []
        self._serial = 0
        self._written: list[dict[object, object]] = [{}]

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self._lines.append("    " * (len(self._written) - 1) + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add a line that opens a block; what follows inside is one deeper."""
        self.line(head)
        self._written.append({})
        try:
            yield
        finally:
            self._written.pop()

    def remember(self, key: object, value: object) -> None:
        """Note what has been written: it holds as far as the present block goes."""
        self._written[-1][key] = value

    def remembered(self, key: object) -> object | None:
        """What was noted under a key, in this block or in one around it."""
        return next((block[key] for block in reversed(self._written) if key in block), None)

    def fresh(self, prefix: str = "x") -> str:
        """A name that nothing else has."""
        self._serial += 1
        return f"{prefix}{self._serial}"

    def constant(self, value: object, prefix: str = "K") -> str:
        """A name for a value that the source cannot spell."""
        name = self.fresh(prefix)
        self.constants[name] = value
        return name

    def __str__(self) -> str:
        """The text."""
        return "\n".join(self._lines) + "\n"
