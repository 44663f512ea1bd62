"""A mapping as typed, frozen rules, each of which knows the file and the place that it was written in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from types import MappingProxyType

from attrs import evolve, field, frozen

from vinaya_bridge.mapping.findings import KeyPath, Place
from vinaya_bridge.mapping.positions import Positions, find_positions
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Entry,
    Group,
    Source,
    Template,
    Term,
    with_lookups,
)

FORMAT_VERSION = 1
"""The version of the mapping language that this package reads."""

EventName = tuple[str, str]
"""A (kind, event) pair of the Log."""


@frozen(slots=False, eq=False)
class Document:
    """
    The text of one mapping file.

    Args:
        file: Its name, as findings show it.

        text: The TOML.
    """

    file: str
    text: str = field(repr=False)

    @cached_property
    def positions(self) -> Positions:
        """Where its keys and values stand; worked out only when something is to be shown."""
        return find_positions(self.text)

    def place_of_key(self, at: KeyPath) -> Place:
        """The place of a key."""
        return Place(self.file, *self.positions.key(at))

    def place_of_value(self, at: KeyPath) -> Place:
        """The place of a value."""
        return Place(self.file, *self.positions.value(at))


@frozen
class Family:
    """
    A generic family that an event maps to.

    Args:
        name: The family, such as ``execution.started``.

        is_stated: Whether the Log's reference says so; else it is this table's reading.

        when: On which lines; all conditions hold.

        at: Where it stands.
    """

    name: str
    is_stated: bool
    when: tuple[Condition, ...]
    at: KeyPath

    @property
    def basis(self) -> str:
        """``stated`` or ``inferred``."""
        return "stated" if self.is_stated else "inferred"


@frozen
class Drop:
    """A source field, or an object of them, that is deliberately not carried, with the reason."""

    path: str
    why: str
    at: KeyPath


@frozen
class Unknown:
    """
    What to say where a figure is not there.

    Args:
        name: The payload field that would have had it.

        path: The source; the reason is given where it is null or absent.

        reason: Why it is not known: the first alternative that is present.

        at: Where it stands.
    """

    name: str
    path: str
    reason: tuple[Constant | Source, ...]
    at: KeyPath


@frozen
class EmitRule:
    """
    One event that a line gives.

    Args:
        run: ``main`` or ``dispatch``.

        type: The event's type, or a template with the line's declared name in it.

        when: Conditions that all hold; none: always.

        payload: Its payload.

        at: Where it stands.
    """

    run: str
    type: Constant | Template
    when: tuple[Condition, ...]
    payload: Group
    at: KeyPath

    @property
    def type_name(self) -> str:
        """The type as a person reads it: ``vinaya.{$.name}`` for one that a line completes."""
        if isinstance(self.type, Constant):
            return str(self.type.value)
        return "".join(part if isinstance(part, str) else f"{{{part.path}}}" for part in self.type.parts)


@frozen
class Rule:
    """
    What becomes of one event of the Log.

    Args:
        kind: The family of the Log.

        event: The event within it.

        generic: The generic families.

        emits: The events it gives, in order.

        unmapped: Why it gives none; None where it does.

        drop: Fields that are not carried.

        unknown: Reasons for what is not known.

        document: The file it stands in.

        at: Where in it.
    """

    kind: str
    event: str
    generic: tuple[Family, ...]
    emits: tuple[EmitRule, ...]
    unmapped: str | None
    drop: tuple[Drop, ...]
    unknown: tuple[Unknown, ...]
    document: Document
    at: KeyPath

    @property
    def name(self) -> str:
        """The event as a person writes it: ``kind.event``."""
        return f"{self.kind}.{self.event}"

    @property
    def place(self) -> Place:
        """Where the rule begins."""
        return self.document.place_of_key(self.at)


@frozen
class LookupTable:
    """A lookup with a name, which several rules may use."""

    name: str
    entries: tuple[Entry, ...]
    document: Document
    at: KeyPath


@frozen
class Table:
    """
    A whole mapping.

    Args:
        name: ``core``, ``generic``, or a file's name without its suffix.

        rules: One rule an event.

        lookups: The named lookups.

        drop: Fields that no rule has to carry, with the file they are named in.

        documents: The files that it was read from: the base first, then its overlays.
    """

    name: str
    rules: Mapping[EventName, Rule]
    lookups: Mapping[str, LookupTable]
    drop: tuple[tuple[Drop, Document], ...]
    documents: tuple[Document, ...]

    def with_overlays(self, overlays: Iterable[Table]) -> Table:
        """
        This table with single rules, lookups and drops replaced.

        Args:
            overlays: Tables of any number of rules; a later one wins.

        Returns:
            A new table under this one's name.
        """
        merged = self
        for over in overlays:
            named = {drop.path for drop, _ in over.drop}
            entries = {name: lookup.entries for name, lookup in over.lookups.items()}
            rules = {name: _with_lookups(rule, entries) for name, rule in merged.rules.items()}
            merged = evolve(
                merged,
                rules=MappingProxyType({**rules, **over.rules}),
                lookups=MappingProxyType({**merged.lookups, **over.lookups}),
                drop=(*(one for one in merged.drop if one[0].path not in named), *over.drop),
                documents=(*merged.documents, *over.documents),
            )
        return merged


def _with_lookups(rule: Rule, entries: Mapping[str, tuple[Entry, ...]]) -> Rule:
    if not entries:
        return rule
    emits = []
    for emit in rule.emits:
        fields = tuple((name, with_lookups(term, entries)) for name, term in emit.payload.fields)
        emits.append(evolve(emit, payload=evolve(emit.payload, fields=fields)))
    return evolve(rule, emits=tuple(emits))


def leaf_fields(group: Group, prefix: str = "") -> list[tuple[str, Term]]:
    """
    The fields of a payload with nested objects opened, under dotted names.

    Args:
        group: A payload or an object in it.

        prefix: The dotted name of the object, with its last dot.

    Returns:
        Pairs of name and term, in the table's order.
    """
    found: list[tuple[str, Term]] = []
    for name, term in group.fields:
        if isinstance(term, Group):
            found.extend(leaf_fields(term, f"{prefix}{name}."))
        else:
            found.append((prefix + name, term))
    return found
