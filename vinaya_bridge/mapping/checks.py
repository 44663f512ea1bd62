"""What all checks of one rule share: the rule, its schemas, its paths, and the findings so far."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence

from vinaya_bridge.errors import Code
from vinaya_bridge.log.shapes import Shape, paths, schemas_of
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.findings import Finding, KeyPath, Severity
from vinaya_bridge.mapping.sources import ResolvedPath, resolve
from vinaya_bridge.mapping.table import Document, LookupTable, Rule
from vinaya_bridge.mapping.terms import Condition, Scalar


class RuleChecks:
    """
    One rule under examination.

    Args:
        rule: A rule of an event that exists.

        lookups: The named lookups of its table, which may stand in another file.
    """

    def __init__(self, rule: Rule, lookups: Mapping[str, LookupTable]) -> None:
        self.rule = rule
        self._lookups = lookups
        self.schemas: Sequence[int] = schemas_of(rule.kind, rule.event)
        self.findings: list[Finding] = []

    def fault(
        self,
        code: Code,
        at: KeyPath,
        message: str,
        remedy: str,
        *,
        key: bool = False,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Note a finding, at a value or (with ``key``) at its key."""
        where = self._document_of(at)
        place = where.place_of_key(at) if key else where.place_of_value(at)
        self.findings.append(Finding(code, place, message, remedy, self.rule.name, severity))

    def warn(self, code: Code, at: KeyPath, message: str, remedy: str, *, key: bool = False) -> None:
        """Note a finding that cannot make a wrong event."""
        self.fault(code, at, message, remedy, key=key, severity=Severity.WARNING)

    def _document_of(self, at: KeyPath) -> Document:
        """The file that a place is in: that of the rule, save for the entries of a lookup with a name."""
        name = str(at[1]) if at[0] == "lookup" else ""
        return self._lookups[name].document if name in self._lookups else self.rule.document

    def resolved(self, path: str) -> dict[int, ResolvedPath]:
        """Where a path leads, by the schemas that have it."""
        found = {schema: resolve(self.rule.kind, self.rule.event, schema, path) for schema in self.schemas}
        return {schema: one for schema, one in found.items() if one is not None}

    def shape(self, path: str) -> Shape | None:
        """What is at a path; None where no schema has it."""
        return next((one.shape for one in self.resolved(path).values()), None)

    def path_exists(self, path: str, at: KeyPath, *, key: bool = False) -> bool:
        """Whether some line of the event has a path; a finding where none has."""
        if self.resolved(path):
            return True
        known = {name for schema in self.schemas for name in paths(self.rule.kind, self.rule.event, schema)}
        self.fault(
            codes.NO_SUCH_PATH,
            at,
            f"{self.rule.name} has no `{path}`",
            did_you_mean(path, known, "see the fields of the event in the Log's reference"),
            key=key,
        )
        return False

    def may_be_absent(self, path: str, schema: int, when: Sequence[Condition] = ()) -> bool:
        """Whether some line under a schema lacks a path, of those that meet the conditions."""
        found = self.resolved(path).get(schema)
        if found is None:
            return True
        # A path that was compared with a literal is there.
        asked = [one for one in when if not one.is_dynamic and not one.is_negated]
        if any(one.subject == path or one.subject.startswith(path + ".") for one in asked):
            return False
        return found.may_be_absent

    def members(self, path: str, when: Sequence[Condition] = ()) -> tuple[Scalar, ...] | None:
        """The closed set that a path's value comes from, as far as the conditions let it; None for an open one."""
        shape = self.shape(path)
        if shape is None:
            return None
        closed: tuple[Scalar, ...] = (True, False) if shape.kind == "bool" else shape.members
        if not closed:
            return None
        for condition in when:
            if condition.subject == path:
                closed = tuple(one for one in closed if condition.admits(one))
        return closed


def did_you_mean(word: str, known: Collection[str], otherwise: str) -> str:
    """A remedy for a word that is not known: the closest that is, or something else to do."""
    close = difflib.get_close_matches(word, known, 1, 0.7)
    return f"did you mean `{close[0]}`?" if close else otherwise


def listed(words: Iterable[object]) -> str:
    """Words as a person lists them."""
    return ", ".join(f"`{str(word).lower() if isinstance(word, bool) else word}`" for word in words)
