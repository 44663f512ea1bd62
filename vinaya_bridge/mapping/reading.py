"""
TOML to typed rules. What is not of the language becomes a finding; the rest is read on, so that all faults
show.

Whether what is said makes sense for the two protocols is not looked at here: see
`vinaya_bridge.mapping.lint`.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from attrs import frozen

from vinaya_bridge.errors import Code
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.findings import Finding, KeyPath, Place
from vinaya_bridge.mapping.table import (
    FORMAT_VERSION,
    Document,
    Drop,
    EmitRule,
    EventName,
    Family,
    LookupTable,
    Rule,
    Table,
    Unknown,
)
from vinaya_bridge.mapping.term_reading import BadTermError, TermReader, kind_of
from vinaya_bridge.mapping.terms import Condition, Constant, Entry, Group, Source, Template, Term

TABLE_KEYS = ("format", "drop", "lookup", "rule")
RULE_KEYS = ("generic", "emit", "unmapped", "drop", "unknown")
EMIT_KEYS = ("run", "type", "when", "payload")
FAMILY_KEYS = ("family", "basis", "when")
UNKNOWN_KEYS = ("of", "reason")
RUNS = ("main", "dispatch")
BASES = ("stated", "inferred")

_TOML_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")


@frozen
class ReadTable:
    """
    What came of reading a mapping file.

    Args:
        table: What could be read.

        findings: What could not, in the order of the file.
    """

    table: Table
    findings: tuple[Finding, ...]


def read_table(
    text: str, *, file: str, name: str, base_lookups: Mapping[str, LookupTable] | None = None
) -> ReadTable:
    """
    Read a mapping.

    Args:
        text: The TOML.

        file: The file's name, for places.

        name: The mapping's name.

        base_lookups: For an overlay: the named lookups of the table under it.

    Returns:
        The table and the findings. Text that is not TOML gives an empty table and one finding.
    """
    document = Document(file, text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return ReadTable(Table(name, {}, {}, (), (document,)), tuple(_toml_findings(document, error)))
    reader = _TableReader(document, base_lookups or {})
    table = reader.table(data, name)
    return ReadTable(table, tuple(sorted(reader.findings, key=lambda finding: finding.place)))


def _toml_findings(document: Document, error: tomllib.TOMLDecodeError) -> Iterable[Finding]:
    repeated = document.positions.repeated
    for path, (line, column) in repeated:
        key = ".".join(str(part) for part in path)
        yield Finding(
            codes.TWO_RULES,
            Place(document.file, line, column),
            f"`{key}` is given twice",
            "keep one of the two; a rule may have several `[[....emit]]`",
            rule=".".join(str(part) for part in path[1:3]) if path[0] == "rule" else "",
        )
    if not repeated:
        found = _TOML_PLACE.search(str(error))
        lines = document.text.splitlines() or [""]
        line, column = (int(found[1]), int(found[2])) if found else (len(lines), len(lines[-1]) + 1)
        what = str(error).partition(" (at ")[0]
        yield Finding(
            codes.NOT_TOML,
            Place(document.file, line, column),
            what,
            "mend the TOML at or just before this place",
        )


class _TableReader:
    """Reads one decoded document, collecting findings as it goes."""

    def __init__(self, document: Document, base_lookups: Mapping[str, LookupTable]) -> None:
        self.document = document
        self.findings: list[Finding] = []
        self._base_lookups = base_lookups
        self._rule = ""

    def table(self, data: Mapping[str, object], name: str) -> Table:
        self._known_keys(data, TABLE_KEYS, (), "the table")
        version = data.get("format")
        if version != FORMAT_VERSION or isinstance(version, bool):
            place = ("format",) if "format" in data else ()
            self._fault(
                codes.OTHER_FORMAT,
                place,
                "the table does not say `format = 1`",
                "state `format = 1` at the top, after a look at what changed in the language",
            )
        lookups = self._lookups(data)
        terms = TermReader({**self._base_lookups, **lookups})
        drop = tuple((one, self.document) for one in self._drops(data, ()))
        rules: dict[EventName, Rule] = {}
        for kind, events in self._tables(data, "rule", ()):
            for event, body in events.items():
                if isinstance(body, Mapping):
                    self._rule = f"{kind}.{event}"
                    rules[kind, event] = self._one_rule(kind, event, body, terms)
                    self._rule = ""
                else:
                    self._shape(("rule", kind, event), "a table", body)
        return Table(name, MappingProxyType(rules), MappingProxyType(lookups), drop, (self.document,))

    # What is common to all: shapes and keys.

    def _fault(self, code: Code, at: KeyPath, message: str, remedy: str, *, key: bool = True) -> None:
        place = self.document.place_of_key(at) if key else self.document.place_of_value(at)
        self.findings.append(Finding(code, place, message, remedy, rule=self._rule))

    def _shape(self, at: KeyPath, wanted: str, value: object) -> None:
        self._fault(
            codes.WRONG_SHAPE,
            at,
            f"`{at[-1]}` takes {wanted}, and this is {kind_of(value)}",
            f"write {wanted}",
            key=False,
        )

    def _known_keys(self, data: Mapping[str, object], known: Sequence[str], at: KeyPath, where: str) -> None:
        for key in data:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                remedy = (
                    f"did you mean `{close[0]}`?"
                    if close
                    else "the keys are " + ", ".join(f"`{k}`" for k in known)
                )
                self._fault(codes.UNKNOWN_KEY, (*at, key), f"{where} has no key `{key}`", remedy)

    def _tables(self, data: object, key: str, at: KeyPath) -> Iterable[tuple[str, Mapping[str, object]]]:
        """The tables inside the table at a key."""
        if not isinstance(data, Mapping) or key not in data:
            return
        inside = data[key]
        if not isinstance(inside, Mapping):
            self._shape((*at, key), "a table", inside)
            return
        for name, body in inside.items():
            if isinstance(body, Mapping):
                yield name, body
            else:
                self._shape((*at, key, name), "a table", body)

    def _text(self, data: Mapping[str, object], key: str, at: KeyPath, where: str) -> str | None:
        """The text at a key; None, with a finding, where there is none."""
        if key not in data:
            self._fault(codes.MISSING_KEY, at, f"{where} does not state `{key}`", f"add `{key} = ...`")
            return None
        value = data[key]
        if isinstance(value, str):
            return value
        self._shape((*at, key), "text", value)
        return None

    def _choice(
        self, data: Mapping[str, object], key: str, at: KeyPath, known: Sequence[str], code: Code
    ) -> str | None:
        value = self._text(data, key, at, "this entry" if key == "basis" else "this emit")
        if value is None or value in known:
            return value
        close = difflib.get_close_matches(value, known, 1)
        remedy = (
            f"did you mean `{close[0]}`?"
            if close
            else "it is one of " + ", ".join(f"`{one}`" for one in known)
        )
        self._fault(code, (*at, key), f"`{value}` is no {key}", remedy, key=False)
        return None

    # The parts of a table.

    def _lookups(self, data: Mapping[str, object]) -> dict[str, LookupTable]:
        found: dict[str, LookupTable] = {}
        for name, body in self._tables(data, "lookup", ()):
            at: KeyPath = ("lookup", name)
            entries: list[Entry] = []
            for member, value in body.items():
                if isinstance(value, str | int | float | bool):
                    entries.append(Entry(member, value, (*at, member)))
                else:
                    self._shape((*at, member), "text, a number, true or false", value)
            found[name] = LookupTable(name, tuple(entries), self.document, at)
        return found

    def _drops(self, data: Mapping[str, object], at: KeyPath) -> list[Drop]:
        if "drop" not in data:
            return []
        drop = data["drop"]
        if not isinstance(drop, Mapping):
            self._shape((*at, "drop"), "a table of paths and reasons", drop)
            return []
        found: list[Drop] = []
        for path, why in drop.items():
            where = (*at, "drop", path)
            if isinstance(why, str) and why.strip():
                found.append(Drop(path, why, where))
            else:
                self._shape(where, "the reason as text", why)
        return found

    def _one_rule(self, kind: str, event: str, body: Mapping[str, object], terms: TermReader) -> Rule:
        at: KeyPath = ("rule", kind, event)
        self._known_keys(body, RULE_KEYS, at, "a rule")
        if "generic" not in body:
            self._fault(
                codes.MISSING_KEY,
                at,
                "the rule does not state `generic`",
                "name its families, or write `generic = []`",
            )
        unmapped = self._text(body, "unmapped", at, "the rule") if "unmapped" in body else None
        emits = self._emits(body, at, terms)
        if "emit" not in body and "unmapped" not in body:
            self._fault(
                codes.MISSING_KEY,
                at,
                "the rule emits nothing and does not say why",
                "add `[[....emit]]`, or `unmapped` with the reason",
            )
        if "emit" in body and "unmapped" in body:
            self._fault(
                codes.NEVER_APPLIES,
                (*at, "unmapped"),
                "the rule emits events and says that it gives none",
                "remove `unmapped`, or the emits",
            )
        return Rule(
            kind,
            event,
            self._families(body, at),
            emits,
            unmapped,
            tuple(self._drops(body, at)),
            self._unknowns(body, at, terms),
            self.document,
            at,
        )

    def _list_of_tables(
        self, body: Mapping[str, object], key: str, at: KeyPath
    ) -> list[tuple[KeyPath, Mapping[str, object]]]:
        if key not in body:
            return []
        value = body[key]
        if not isinstance(value, list):
            self._shape((*at, key), "a list of tables", value)
            return []
        found: list[tuple[KeyPath, Mapping[str, object]]] = []
        for index, item in enumerate(value):
            if isinstance(item, Mapping):
                found.append(((*at, key, index), item))
            else:
                self._shape((*at, key, index), "a table", item)
        return found

    def _families(self, body: Mapping[str, object], at: KeyPath) -> tuple[Family, ...]:
        found: list[Family] = []
        for where, item in self._list_of_tables(body, "generic", at):
            self._known_keys(item, FAMILY_KEYS, where, "a family")
            name = self._text(item, "family", where, "this entry")
            basis = self._choice(item, "basis", where, BASES, codes.UNKNOWN_FAMILY)
            if name is not None and basis is not None:
                found.append(Family(name, basis == "stated", self._conditions(item, where), where))
        return tuple(found)

    def _unknowns(self, body: Mapping[str, object], at: KeyPath, terms: TermReader) -> tuple[Unknown, ...]:
        found: list[Unknown] = []
        for name, item in self._tables(body, "unknown", at):
            where = (*at, "unknown", name)
            self._known_keys(item, UNKNOWN_KEYS, where, "an entry of `unknown`")
            path = self._text(item, "of", where, "this entry")
            if "reason" not in item:
                self._fault(
                    codes.MISSING_KEY, where, "this entry does not state `reason`", "add `reason = ...`"
                )
                continue
            reason = item["reason"]
            listed = reason if isinstance(reason, list) else [reason]
            parts: list[Constant | Source] = []
            for index, one in enumerate(listed):
                spot = (*where, "reason", index) if isinstance(reason, list) else (*where, "reason")
                term = self._term(one, spot, terms)
                if isinstance(term, Source) or (isinstance(term, Constant) and isinstance(term.value, str)):
                    parts.append(term)
                elif term is not None:
                    self._shape(spot, "text or a path", one)
            if path is not None:
                found.append(Unknown(name, path, tuple(parts), where))
        return tuple(found)

    def _emits(self, body: Mapping[str, object], at: KeyPath, terms: TermReader) -> tuple[EmitRule, ...]:
        found: list[EmitRule] = []
        for where, item in self._list_of_tables(body, "emit", at):
            self._known_keys(item, EMIT_KEYS, where, "an emit")
            run = self._choice(item, "run", where, RUNS, codes.UNKNOWN_RUN)
            type_text = self._text(item, "type", where, "this emit")
            type_term: Constant | Template | None = None
            if type_text is not None:
                spot = (*where, "type")
                template = self._term({"template": type_text}, spot, terms) if "{" in type_text else None
                type_term = template if isinstance(template, Template) else Constant(type_text, spot)
            payload = self._payload(item, where, terms)
            if type_term is not None and payload is not None:
                # A run that does not exist is a finding already: the rest of the emit is read all the same.
                found.append(
                    EmitRule(run or RUNS[0], type_term, self._conditions(item, where), payload, where)
                )
        return tuple(found)

    def _payload(self, item: Mapping[str, object], at: KeyPath, terms: TermReader) -> Group | None:
        if "payload" not in item:
            self._fault(
                codes.MISSING_KEY, at, "this emit does not state `payload`", "add `payload.FIELD = ...`"
            )
            return None
        where = (*at, "payload")
        if not isinstance(item["payload"], Mapping):
            self._shape(where, "a table", item["payload"])
            return None
        return self._group(item["payload"], where, terms)

    def _group(self, data: Mapping[str, object], at: KeyPath, terms: TermReader) -> Group:
        fields = []
        for name, value in data.items():
            term = self._term(value, (*at, name), terms)
            if term is not None:
                fields.append((name, term))
        return Group(tuple(fields), at)

    def _term(self, value: object, at: KeyPath, terms: TermReader) -> Term | None:
        """The term at a place; None, with findings, where it is none."""
        try:
            return terms.read(value, at)
        except BadTermError as bad:
            for code, where, message, remedy, on_key in bad.faults:
                self._fault(code, where, message, remedy, key=on_key)
            return None

    def _conditions(self, item: Mapping[str, object], at: KeyPath) -> tuple[Condition, ...]:
        if "when" not in item:
            return ()
        when = item["when"]
        where = (*at, "when")
        if not isinstance(when, Mapping):
            self._shape(where, "a table of paths and values", when)
            return ()
        found: list[Condition] = []
        for subject, given in when.items():
            wanted: object = given
            at = (*where, subject)
            is_negated = isinstance(wanted, Mapping) and list(wanted) == ["not"]
            if isinstance(wanted, Mapping) and is_negated:
                wanted, at = wanted["not"], (*at, "not")
            values = wanted if isinstance(wanted, list) else [wanted]
            if values and all(isinstance(value, str | int | float | bool) for value in values):
                literals = tuple(one for one in values if isinstance(one, str | int | float | bool))
                found.append(Condition(subject, literals, at, is_negated))
            else:
                self._shape(at, "a literal, a list of literals, or `{ not = ... }`", wanted)
        return tuple(found)
