"""One payload field of a mapping, as TOML has it, to a term of the language."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from vinaya_bridge.errors import Code
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.findings import KeyPath
from vinaya_bridge.mapping.table import LookupTable
from vinaya_bridge.mapping.terms import (
    LONGEST_EXCERPT_SCALARS,
    Constant,
    Count,
    EngineValue,
    Entry,
    Excerpt,
    FirstOf,
    Group,
    Literal,
    Lookup,
    Rounded,
    Source,
    Template,
    Term,
)

FORM_KEYS: Mapping[str, tuple[str, ...]] = {
    "literal": (),
    "lookup": ("in",),
    "template": ("max",),
    "excerpt": ("max", "flag"),
    "round": (),
    "count": ("text",),
}
"""The forms, each by its first key, and the keys that may go with it."""

_HOLE = re.compile(r"\{([^{}]*)\}")

Fault = tuple[Code, KeyPath, str, str, bool]
"""Code, place, message, remedy, and whether the place is the key (else the value)."""


class BadTermError(Exception):
    """
    Raised for a value that is no term of the language.

    Args:
        faults: What is wrong with it, one entry each.
    """

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("not a term of the mapping language")
        self.faults = faults


def kind_of(value: object) -> str:
    """What a TOML value is, in words."""
    match value:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case Mapping():
            return "a table"
        case _:
            return "a date or time"


class TermReader:
    """
    Reads terms.

    Args:
        lookups: The named lookups that a term may use.
    """

    def __init__(self, lookups: Mapping[str, LookupTable]) -> None:
        self._lookups = lookups

    def read(self, value: object, at: KeyPath) -> Term:
        """
        Read one payload field.

        Args:
            value: What TOML has there.

            at: Where it stands.

        Returns:
            The term.

        Raises:
            BadTermError: It is no term; all its faults are named.
        """
        if isinstance(value, str):
            return self._text(value, at)
        if isinstance(value, bool | int | float):
            return Constant(value, at)
        if isinstance(value, list):
            return self._first_of(value, at)
        if isinstance(value, Mapping):
            form = next((key for key in FORM_KEYS if key in value), None)
            return self._group(value, at) if form is None else self._form(form, value, at)
        raise BadTermError([self._shape(at, "text, a number, true or false, a list, or a table", value)])

    def _text(self, text: str, at: KeyPath) -> Term:
        if text.startswith("$"):
            return Source(text, at)
        if text.startswith("@"):
            return EngineValue(text, at)
        return Constant(text, at)

    def _first_of(self, items: list[object], at: KeyPath) -> Term:
        faults: list[Fault] = []
        terms: list[Term] = []
        for index, item in enumerate(items):
            where = (*at, index)
            try:
                term = self.read(item, where)
            except BadTermError as bad:
                faults.extend(bad.faults)
                continue
            if isinstance(term, FirstOf | Group):
                faults.append(self._shape(where, "one alternative", item))
            terms.append(term)
        if not items:
            faults.append(self._shape(at, "at least one alternative", items))
        if faults:
            raise BadTermError(faults)
        return FirstOf(tuple(terms), at)

    def _group(self, data: Mapping[str, object], at: KeyPath) -> Term:
        faults: list[Fault] = []
        fields: list[tuple[str, Term]] = []
        for name, value in data.items():
            try:
                fields.append((name, self.read(value, (*at, name))))
            except BadTermError as bad:
                faults.extend(bad.faults)
        if faults:
            raise BadTermError(faults)
        return Group(tuple(fields), at)

    def _form(self, form: str, data: Mapping[str, object], at: KeyPath) -> Term:
        faults: list[Fault] = []
        allowed = (form, *FORM_KEYS[form])
        for key in data:
            if key not in allowed:
                close = difflib.get_close_matches(key, allowed, 1)
                remedy = f"did you mean `{close[0]}`?" if close else f"the form takes {', '.join(allowed)}"
                faults.append(
                    (codes.UNKNOWN_KEY, (*at, key), f"the form `{form}` has no key `{key}`", remedy, True)
                )
        if form == "literal":
            if faults:
                raise BadTermError(faults)
            return Constant(self._literal(data["literal"], (*at, "literal")), at)
        text = data[form]
        if not isinstance(text, str) or (form != "template" and not text.startswith("$")):
            wanted = "text" if form == "template" else "a path (`$.…`)"
            raise BadTermError([*faults, self._shape((*at, form), wanted, text)])
        bound = self._bound(data, at, faults)
        term: Term
        match form:
            case "lookup":
                term = self._lookup(text, data, at, faults)
            case "template":
                term = self._template(text, bound, at, faults)
            case "excerpt":
                flag = self._word(data, "flag", "truncated", at, faults)
                term = Excerpt(text, bound or LONGEST_EXCERPT_SCALARS, flag or "truncated", at)
            case "round":
                term = Rounded(text, at)
            case _:
                term = Count(text, self._word(data, "text", None, at, faults), at)
        if faults:
            raise BadTermError(faults)
        return term

    def _literal(self, value: object, at: KeyPath) -> Literal:
        if isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, list):
            return [self._literal(item, (*at, index)) for index, item in enumerate(value)]
        if isinstance(value, Mapping):
            return {str(key): self._literal(item, (*at, key)) for key, item in value.items()}
        raise BadTermError([self._shape(at, "a value that JSON has", value)])

    def _bound(self, data: Mapping[str, object], at: KeyPath, faults: list[Fault]) -> int | None:
        value = data.get("max")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            faults.append(self._shape((*at, "max"), "a whole number of characters from 1", value))
            return None
        return value

    def _word(
        self, data: Mapping[str, object], key: str, default: str | None, at: KeyPath, faults: list[Fault]
    ) -> str | None:
        value = data.get(key, default)
        if value is None or isinstance(value, str):
            return value
        faults.append(self._shape((*at, key), "the name of a field", value))
        return default

    def _lookup(self, path: str, data: Mapping[str, object], at: KeyPath, faults: list[Fault]) -> Term:
        table = data.get("in")
        where = (*at, "in")
        if isinstance(table, str):
            named = self._lookups.get(table)
            if named is None:
                close = difflib.get_close_matches(table, self._lookups, 1)
                remedy = f"did you mean `{close[0]}`?" if close else f"add a table `[lookup.{table}]`"
                faults.append((codes.UNKNOWN_KEY, where, f"no lookup is called `{table}`", remedy, False))
                return Lookup(path, (), table, at)
            return Lookup(path, named.entries, table, at)
        if not isinstance(table, Mapping):
            faults.append(
                self._shape(where, "a lookup's name or a table", table)
                if "in" in data
                else (
                    codes.MISSING_KEY,
                    at,
                    "the lookup does not say where to look",
                    "add `in = { member = value, ... }`",
                    True,
                )
            )
            return Lookup(path, (), None, at)
        entries: list[Entry] = []
        for member, value in table.items():
            if isinstance(value, str | int | float | bool):
                entries.append(Entry(member, value, (*where, member)))
            else:
                faults.append(self._shape((*where, member), "text, a number, true or false", value))
        return Lookup(path, tuple(entries), None, at)

    def _template(self, text: str, bound: int | None, at: KeyPath, faults: list[Fault]) -> Term:
        parts: list[str | Source] = []
        end = 0
        for hole in _HOLE.finditer(text):
            if hole.start() > end:
                parts.append(text[end : hole.start()])
            path = hole[1]
            if not path.startswith("$"):
                faults.append(self._shape(at, "paths in its braces (`{$.x}`)", text))
            parts.append(Source(path, at))
            end = hole.end()
        if end < len(text):
            parts.append(text[end:])
        return Template(tuple(parts), bound, at)

    @staticmethod
    def _shape(at: KeyPath, wanted: str, value: object) -> Fault:
        message = f"`{at[-1]}` takes {wanted}, and this is {kind_of(value)}"
        return codes.WRONG_SHAPE, at, message, f"write {wanted}", False
