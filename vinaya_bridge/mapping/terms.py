"""
The words of the mapping language as typed, frozen values: what a rule says, without how it is read or run.

A path is written as in the table, from ``$``: ``$.meta.run_id``.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
from attrs import evolve, frozen

from vinaya_bridge.mapping.findings import KeyPath

Scalar = str | int | float | bool
Literal = Scalar | list["Literal"] | dict[str, "Literal"]

LONGEST_EXCERPT_SCALARS = 4096
"""
The default bound of an excerpt, and of every reason under ``unknown``: the protocol's bound for narration.
"""


@frozen
class Constant:
    """A literal, the same on every line."""

    value: Literal
    at: KeyPath


@frozen
class Source:
    """A value of the line, as it is."""

    path: str
    at: KeyPath


@frozen
class EngineValue:
    """A value that only the engine knows, such as the time since a run's first line."""

    name: str
    at: KeyPath


@frozen
class Entry:
    """One member of a lookup and what it becomes."""

    member: str
    value: Scalar
    at: KeyPath


@frozen
class Lookup:
    """A member of a closed set, translated."""

    path: str
    entries: tuple[Entry, ...]
    table: str | None
    at: KeyPath


@frozen
class Template:
    """
    Text with values of the line in it; left out when one of them is absent.

    Args:
        parts: Literal text and sources, in order.

        max_scalars: Where the text is cut, in Unicode scalar values; None where its bound is proved.

        at: Where it stands.
    """

    parts: tuple[str | Source, ...]
    max_scalars: int | None
    at: KeyPath


@frozen
class Excerpt:
    """
    Free text, bounded; the flag says that it was cut.

    Args:
        path: The text.

        max_scalars: The most that is kept, in Unicode scalar values.

        flag: The sibling field that becomes true where something was left out.

        at: Where it stands.
    """

    path: str
    max_scalars: int
    flag: str
    at: KeyPath


@frozen
class Rounded:
    """
    A duration in milliseconds as a whole number, half to even; absent when no reader could hold it exactly.
    """

    path: str
    at: KeyPath


@frozen
class Count:
    """
    A whole number from 0 that a reader holds exactly.

    Args:
        path: The figure.

        text_field: The sibling field that carries any other figure as text; None leaves it out.

        at: Where it stands.
    """

    path: str
    text_field: str | None
    at: KeyPath


@frozen
class FirstOf:
    """The first alternative that is present; absent when none is."""

    alternatives: tuple[Term, ...]
    at: KeyPath


@frozen
class Group:
    """A nested object; left out when nothing in it is present."""

    fields: tuple[tuple[str, Term], ...]
    at: KeyPath


Term = Constant | Source | EngineValue | Lookup | Template | Excerpt | Rounded | Count | FirstOf | Group


@frozen
class Condition:
    """
    One comparison of a ``when``.

    Args:
        subject: A path, or an engine's question.

        values: What it may equal; one is enough. Negated: what it must not equal, absence included.

        at: Where it stands.

        is_negated: Whether it must equal none of them.
    """

    subject: str
    values: tuple[Scalar, ...]
    at: KeyPath
    is_negated: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether only the engine can decide it, at the time when the line is emitted."""
        return self.subject.startswith("@")

    def admits(self, value: object) -> bool:
        """Whether a value of the line meets it; None stands for one that is not there."""
        return (value in self.values) is not self.is_negated


def with_lookups(term: Term, lookups: Mapping[str, tuple[Entry, ...]]) -> Term:
    """
    A term whose named lookups have other entries.

    Args:
        term: A word of the language.

        lookups: Name to entries; a lookup that is not in it stays as it is.

    Returns:
        The term.
    """
    match term:
        case Lookup(table=str(name)) if name in lookups:
            return evolve(term, entries=lookups[name])
        case FirstOf():
            return evolve(term, alternatives=tuple(with_lookups(one, lookups) for one in term.alternatives))
        case Group():
            return evolve(term, fields=tuple((name, with_lookups(one, lookups)) for name, one in term.fields))
        case _:
            return term


def sources_of(term: Term) -> list[Source]:
    """
    Every path that a term reads, in the order in which it reads them.

    Args:
        term: A word of the language.

    Returns:
        One source for each mention of a path.
    """
    match term:
        case Source():
            return [term]
        case Lookup() | Excerpt() | Rounded() | Count():
            return [Source(term.path, term.at)]
        case Template():
            return [part for part in term.parts if isinstance(part, Source)]
        case FirstOf():
            return [source for one in term.alternatives for source in sources_of(one)]
        case Group():
            return [source for _, one in term.fields for source in sources_of(one)]
        case Constant() | EngineValue():
            return []


def without_place(term: Term) -> str:
    """
    Write a term as text, the same for two that differ only in where they stand.

    Args:
        term: The term.
    """
    return repr(_bare(term))


def _bare(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(_bare(item) for item in value)
    if attrs.has(type(value)):
        fields = attrs.asdict(value, recurse=False)  # type: ignore[arg-type]
        return (type(value).__name__, *(_bare(item) for name, item in fields.items() if name != "at"))
    return value
