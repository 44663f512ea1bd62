"""Objects, lists and records of a line, copied into a payload: the source of the functions that do it."""

from __future__ import annotations

import attrs

from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of
from vinaya_bridge.mapping.source_text import SourceText

_PLAIN_KINDS = frozenset({"string", "int", "bool", "enum", "literal"})


class CopyWriter:
    """
    Writes expressions that copy values: null and absent fields left out, keys in order, numbers made fit.

    Args:
        out: Gives names that nothing else has.
    """

    def __init__(self, out: SourceText) -> None:
        self.out = out
        self._copiers: dict[tuple[type[attrs.AttrsInstance], ...], str] = {}
        self._functions: list[SourceText] = []

    def copy(self, shape: Shape, text: str) -> str:
        """The expression that copies a value that is there."""
        if shape.kind in ("number", "any"):
            return f"number({text})"
        if shape.kind == "list" and shape.item is not None:
            return text if is_plain(shape.item) else f"[{self.copy(shape.item, 'i')} for i in {text}]"
        if shape.kind == "record" and shape.item is not None:
            return f"{{k: {self.copy(shape.item, 'i')} for k, i in sorted({text}.items())}}"
        if shape.kind == "object":
            return f"{self._copier(shape.classes)}({text})"
        return text

    def _copier(self, classes: tuple[type[attrs.AttrsInstance], ...]) -> str:
        """The name of a function that copies an object of one of the classes."""
        if classes in self._copiers:
            return self._copiers[classes]
        name = self._copiers[classes] = self.out.fresh("copy")
        text = SourceText()
        self._functions.append(text)
        if len(classes) > 1:
            # Which variant an object is, its `type` says: a record that came by the quick path is no instance of them.
            table: dict[object, str] = {}
            for cls in classes:
                table[fields_of(cls)["type"].members[0]] = self._copier((cls,))
            with text.block(f"def {name}(o):"):
                for member, copier in table.items():
                    text.line(f"if o.type == {member!r}: return {copier}(o)")
                text.line("raise LookupError")
            return name
        with text.block(f"def {name}(o):"):
            text.line("d = {}")
            for field, shape in sorted(fields_of(classes[0]).items(), key=lambda item: json_name(item[0])):
                key = json_name(field)
                if shape.nullable or shape.optional:
                    text.line(f"i = o.{field}")
                    test = present_test("i", shape.nullable, shape.optional)
                    text.line(f"if {test}: d[{key!r}] = {self.copy(shape, 'i')}")
                else:
                    text.line(f"d[{key!r}] = {self.copy(shape, f'o.{field}')}")
            text.line("return d")
        return name

    def functions(self) -> str:
        """The source of the copying functions that the rest calls."""
        return "\n".join(str(text) for text in self._functions)


def is_plain(shape: Shape) -> bool:
    """Whether a value can stand in a payload as the record has it."""
    if shape.kind == "list" and shape.item is not None:
        return is_plain(shape.item)
    return shape.kind in _PLAIN_KINDS


def present_test(name: str, maybe_none: bool, maybe_unset: bool) -> str:
    """The test that a variable holds a value, of what it may hold instead; empty where it always does."""
    tests = [f"{name} is not None"] * maybe_none + [f"{name} is not UNSET"] * maybe_unset
    return " and ".join(tests)
