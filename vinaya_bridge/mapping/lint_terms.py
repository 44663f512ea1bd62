"""Whether what a term gives fits the field it is for: kind, closed set, unit, bound, presence."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from ethogram.vocabulary import MAX_SAFE_INTEGER, MAX_TEXT_SCALARS, Field, FieldKind
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.checks import RuleChecks, did_you_mean, listed
from vinaya_bridge.mapping.findings import KeyPath
from vinaya_bridge.mapping.presence import always_there, longest
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Count,
    EngineValue,
    Excerpt,
    FirstOf,
    Group,
    Lookup,
    Rounded,
    Source,
    Template,
    Term,
)

ENGINE_VALUES = {
    "@run.elapsed_ms": ("run.finished", "durationMs"),
    "@run.parent": ("run.started", "parentRunId"),
}
"""Each engine value, and the only type and field that it is for."""

_KINDS = {
    "string": FieldKind.STRING,
    "bool": FieldKind.BOOLEAN,
    "int": FieldKind.COUNT,
    "number": FieldKind.NUMBER,
    "list": FieldKind.LIST,
    "object": FieldKind.OBJECT,
    "record": FieldKind.OBJECT,
}
_ANY = "text, a number, or true or false"


@frozen
class Target:
    """
    Where a term goes.

    Args:
        type: The event's type.

        name: The field, dotted from the payload.

        field: What the protocol says about it; None where it is ours.
    """

    type: str
    name: str
    field: Field | None


class TermChecks:
    """
    Checks the terms of one emit.

    Args:
        checks: The rule.

        when: The emit's conditions.
    """

    def __init__(self, checks: RuleChecks, when: Sequence[Condition]) -> None:
        self._checks = checks
        self._when = when

    def check(
        self, term: Term, target: Target, *, is_alternative: bool = False, is_last: bool = True
    ) -> None:
        """
        Check one term that is not an object of the table.

        Args:
            term: The term.

            target: Where it goes.

            is_alternative: Whether it stands in a list, where leaving it out is meant.

            is_last: Whether no alternative follows it.
        """
        if not self._paths(term, is_alternative=is_alternative):
            return
        match term:
            case Constant():
                self._constant(term, target)
            case Source():
                self._source(term, target)
            case EngineValue():
                self._engine_value(term, target, is_last=is_last)
            case Lookup():
                self._lookup(term, target)
            case Template():
                self._template(term, target)
            case Excerpt():
                self._excerpt(term, target)
            case Rounded() | Count():
                self._whole_number(term, target)
            case FirstOf():
                self._first_of(term, target)
            case Group():
                pass

    # Paths.

    def _paths(self, term: Term, *, is_alternative: bool) -> bool:
        """Whether every path of a term can be read; notes those that leave the field out unsaid."""
        if isinstance(term, FirstOf | Constant | EngineValue | Group):
            return True
        sources = [term] if isinstance(term, Source) else []
        if isinstance(term, Template):
            sources = [part for part in term.parts if isinstance(part, Source)]
        elif isinstance(term, Lookup | Excerpt | Rounded | Count):
            sources = [Source(term.path, (*term.at, _FORM_OF[type(term)]))]
        if [source for source in sources if not self._checks.path_exists(source.path, source.at)]:
            return False
        if not is_alternative:
            for source in sources:
                self._may_go_unsaid(source)
        return True

    def _may_go_unsaid(self, source: Source) -> None:
        checks = self._checks
        found = checks.resolved(source.path)
        if len(found) < len(checks.schemas):
            checks.warn(
                codes.SOME_SCHEMAS_ONLY,
                source.at,
                f"`{source.path}` is there only under header schema {listed(found)}",
                f'give an alternative, or write ["{source.path}"] to say that leaving it out is meant',
            )
        explained = {unknown.path for unknown in checks.rule.unknown}
        for schema_path in found.values():
            keys = source.path.split(".")
            for index, step in enumerate(schema_path.steps[:-1]):
                inner = schema_path.steps[index + 1]
                outer = ".".join(keys[: index + 2])
                lacks = step.shape.nullable or step.shape.optional or not (inner.certain or inner.by_key)
                if lacks and not explained & {outer, source.path}:
                    checks.warn(
                        codes.THROUGH_ABSENT,
                        source.at,
                        f"`{outer}` may be null, absent or of another form, and then `{source.path}` is not there",
                        f"state the reason under `unknown`, copy `{outer}` whole, or write [...] around it",
                    )
                    return

    # Kinds.

    def _wrong(self, at: KeyPath, what: str, target: Target, remedy: str) -> None:
        assert target.field is not None  # noqa: S101  only a field of the protocol has a kind
        wanted = target.field.kind.value
        self._checks.fault(
            codes.WRONG_TYPE, at, f"{target.type} {target.name} holds {wanted}, and this is {what}", remedy
        )

    def _not_a_member(self, at: KeyPath, word: str, field: Field, target: Target) -> None:
        self._checks.fault(
            codes.NOT_A_MEMBER,
            at,
            f"`{word}` is not in the closed set of {target.type} {target.name}",
            did_you_mean(word, field.members, f"it is one of {listed(field.members)}"),
        )

    def _constant(self, term: Constant, target: Target) -> None:
        if target.field is not None:
            self.value(term.value, target, target.field, term.at)

    def value(self, value: object, target: Target, field: Field, at: KeyPath) -> None:
        """
        Check a literal.

        Args:
            value: Text, a number, true or false, a list or a dict.

            target: Where it goes.

            field: What the protocol says about it.

            at: Where it stands.
        """
        match field.kind:
            case FieldKind.STRING:
                fits = isinstance(value, str)
                bound = field.max_scalars or MAX_TEXT_SCALARS
                if isinstance(value, str) and len(value) > bound:
                    self._checks.fault(
                        codes.NEEDS_EXCERPT, at, f"the text has over {bound} characters", "shorten it"
                    )
            case FieldKind.UNION:
                fits = isinstance(value, str)
                if isinstance(value, str) and value not in field.members:
                    self._not_a_member(at, value, field, target)
            case FieldKind.BOOLEAN:
                fits = isinstance(value, bool)
            case FieldKind.NUMBER:
                fits = isinstance(value, int | float) and not isinstance(value, bool)
            case FieldKind.COUNT:
                fits = (
                    isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE_INTEGER
                )
            case FieldKind.LIST:
                fits = isinstance(value, list)
                for index, item in enumerate(value if isinstance(value, list) else ()):
                    if field.item is not None:
                        self.value(item, target, field.item, (*at, "literal", index))
            case FieldKind.OBJECT:
                fits = isinstance(value, dict)
                given: dict[str, object] = value if isinstance(value, dict) else {}
                for inner in field.fields if fits else ():
                    if inner.name in given:
                        self.value(given[inner.name], target, inner, (*at, "literal", inner.name))
                    elif inner.required:
                        self._checks.fault(
                            codes.MAY_BE_ABSENT, at, f"`{inner.name}` is not there, and is required", "add it"
                        )
        if not fits:
            self._wrong(at, "another literal", target, f"write {field.kind.value}")

    def _source(self, term: Source, target: Target) -> None:
        shape = self._checks.shape(term.path)
        if target.field is not None and shape is not None:
            self._shape(shape, target, target.field, term.at, term.path)

    def _shape(self, shape: Shape, target: Target, field: Field, at: KeyPath, path: str) -> None:
        checks = self._checks
        is_text = shape.kind == "string" or any(isinstance(member, str) for member in shape.members)
        match field.kind:
            case FieldKind.STRING if is_text:
                most = longest(shape)
                if field.max_scalars is not None and (most is None or most > field.max_scalars):
                    checks.fault(
                        codes.NEEDS_EXCERPT,
                        at,
                        f"`{path}` can be over the {field.max_scalars} characters of {target.type} {target.name}",
                        f'write {{ excerpt = "{path}" }}',
                    )
            case FieldKind.UNION if is_text:
                members = checks.members(path, self._when)
                if members is None:
                    checks.fault(
                        codes.NOT_A_MEMBER,
                        at,
                        f"`{path}` is any text, and {target.type} {target.name} is one of a closed set",
                        f"write one of {listed(field.members)}, or a lookup",
                    )
                for member in members or ():
                    if member not in field.members:
                        self._not_a_member(at, str(member), field, target)
            case FieldKind.BOOLEAN if shape.kind == "bool":
                pass
            case FieldKind.COUNT | FieldKind.NUMBER if shape.kind in ("int", "number"):
                self._figure(shape, target, field, at, path)
            case FieldKind.LIST if shape.kind == "list" and shape.item is not None and field.item is not None:
                self._shape(shape.item, target, field.item, at, path)
            case FieldKind.OBJECT if shape.kind == "object" and len(shape.classes) == 1:
                self._object(shape, target, field, at, path)
            case _:
                remedy = "choose another source, or another form"
                what = _ANY if shape.kind == "any" else _KINDS.get(shape.kind, FieldKind.STRING).value
                self._wrong(at, what, target, remedy)

    def _figure(self, shape: Shape, target: Target, field: Field, at: KeyPath, path: str) -> None:
        rule = shape.rule
        is_exact = rule.maximum is not None and rule.maximum <= MAX_SAFE_INTEGER
        if field.kind is FieldKind.COUNT:
            is_exact = is_exact and shape.kind == "int" and rule.minimum is not None and rule.minimum >= 0
        if not is_exact:
            form = "round" if field.unit == "ms" else "count"
            self._checks.fault(
                codes.NEEDS_WHOLE_NUMBER,
                at,
                f"`{path}` may be a fraction, negative or too large for {target.type} {target.name}",
                f'write {{ {form} = "{path}" }}',
            )

    def _object(self, shape: Shape, target: Target, field: Field, at: KeyPath, path: str) -> None:
        inside = {json_name(name): inner for name, inner in fields_of(shape.classes[0]).items()}
        for inner in field.fields:
            if inner.name in inside:
                self._shape(inside[inner.name], target, inner, at, f"{path}.{inner.name}")
            elif inner.required:
                message = f"`{path}` has no `{inner.name}`, which {target.type} {target.name} requires"
                self._checks.fault(codes.MAY_BE_ABSENT, at, message, "write the object field by field")

    # Forms.

    def _engine_value(self, term: EngineValue, target: Target, *, is_last: bool) -> None:
        place = ENGINE_VALUES.get(term.name)
        if place is None:
            remedy = did_you_mean(term.name, ENGINE_VALUES, f"the engine has {listed(ENGINE_VALUES)}")
            self._checks.fault(
                codes.UNKNOWN_ENGINE_VALUE, term.at, f"the engine has no `{term.name}`", remedy
            )
        elif place != (target.type, target.name) or not is_last:
            where = f"the last alternative of {place[0]} {place[1]}"
            self._checks.fault(
                codes.UNKNOWN_ENGINE_VALUE,
                term.at,
                f"`{term.name}` is only for {where}",
                f"use it as {where}",
            )

    def _lookup(self, term: Lookup, target: Target) -> None:
        checks = self._checks
        at = (*term.at, "lookup")
        closed = checks.members(term.path)
        if closed is None:
            checks.fault(
                codes.LOOKUP_NOT_CLOSED,
                at,
                f"`{term.path}` is not one of a closed set",
                "choose a field that is",
            )
            return
        words = {_word(member): member for member in closed}
        reachable = checks.members(term.path, self._when) or ()
        entries = {entry.member for entry in term.entries}
        missing = [member for member in reachable if _word(member) not in entries]
        if missing:
            checks.fault(
                codes.LOOKUP_INCOMPLETE,
                (*term.at, "in"),
                f"the lookup of `{term.path}` has no entry for {listed(missing)}",
                "add what each becomes, or exclude it by `when`",
            )
        for entry in term.entries:
            if entry.member not in words:
                checks.fault(
                    codes.LOOKUP_UNKNOWN_MEMBER,
                    entry.at,
                    f"`{term.path}` is never `{entry.member}`",
                    did_you_mean(entry.member, words, f"it is one of {listed(words)}"),
                    key=True,
                )
            elif term.table is None and words[entry.member] not in reachable:
                message = f"`when` excludes `{entry.member}`"
                checks.fault(codes.LOOKUP_UNKNOWN_MEMBER, entry.at, message, "remove the entry", key=True)
            if target.field is not None:
                self.value(entry.value, target, target.field, entry.at)

    def _template(self, term: Template, target: Target) -> None:
        checks = self._checks
        if target.field is not None and target.field.kind is not FieldKind.STRING:
            self._wrong(term.at, "text", target, "choose another form")
            return
        bound = (target.field.max_scalars if target.field is not None else None) or MAX_TEXT_SCALARS
        total = 0
        for part in term.parts:
            shape = checks.shape(part.path) if isinstance(part, Source) else None
            if shape is not None and shape.kind in ("object", "list", "record", "any"):
                message = "a template holds text and numbers only"
                checks.fault(codes.WRONG_TYPE, term.at, message, "choose another source")
                return
            most = len(part) if isinstance(part, str) else longest(shape)
            total = bound + 1 if most is None else total + most
        if term.max_scalars is not None:
            total = term.max_scalars
        is_bounded = target.field is not None and target.field.max_scalars is not None
        if total > bound and (is_bounded or term.max_scalars is not None):
            message = f"the text can be longer than the {bound} characters of {target.type} {target.name}"
            checks.fault(codes.TEMPLATE_TOO_LONG, term.at, message, f"add `max = {bound}`")

    def _excerpt(self, term: Excerpt, target: Target) -> None:
        checks = self._checks
        shape = checks.shape(term.path)
        at = (*term.at, "excerpt")
        if shape is not None and shape.kind != "string":
            message = f"`{term.path}` is not text, and only text is excerpted"
            checks.fault(codes.WRONG_TYPE, at, message, "remove the form")
            return
        if target.field is not None and target.field.kind is not FieldKind.STRING:
            self._wrong(at, "text", target, "choose another form")
            return
        bound = (target.field.max_scalars if target.field is not None else None) or MAX_TEXT_SCALARS
        if term.max_scalars > bound:
            message = f"{target.type} {target.name} takes {bound} characters at most"
            checks.fault(codes.NEEDS_EXCERPT, (*term.at, "max"), message, f"write `max = {bound}` or less")
        flag = target.field.truncated_by if target.field is not None else ""
        if flag and term.flag != flag:
            message = f"the protocol's flag for a cut {target.name} is `{flag}`"
            checks.fault(
                codes.NEEDS_EXCERPT, (*term.at, "flag"), message, f"remove `flag`, or write `{flag}`"
            )

    def _whole_number(self, term: Rounded | Count, target: Target) -> None:
        checks = self._checks
        shape = checks.shape(term.path)
        form = _FORM_OF[type(term)]
        at = (*term.at, form)
        if shape is not None and shape.kind not in ("int", "number"):
            checks.fault(codes.WRONG_TYPE, at, f"`{term.path}` is not a number", "remove the form")
            return
        field = target.field
        if field is None:
            return
        if field.kind not in (FieldKind.COUNT, FieldKind.NUMBER):
            self._wrong(at, "a whole number", target, "choose another form")
        elif field.unit == "ms" and isinstance(term, Count) and shape is not None and shape.kind == "number":
            message = f"a duration such as `{term.path}` may have a fraction, which `count` would leave out"
            checks.fault(codes.NEEDS_WHOLE_NUMBER, at, message, f'write {{ round = "{term.path}" }}')
        elif field.unit != "ms" and isinstance(term, Rounded):
            message = f"rounding would make up a figure for {target.type} {target.name}"
            checks.fault(
                codes.NEEDS_WHOLE_NUMBER, at, message, f'write {{ count = "{term.path}", text = "..." }}'
            )

    def _first_of(self, term: FirstOf, target: Target) -> None:
        answered = False
        for index, one in enumerate(term.alternatives):
            if answered:
                message = "an alternative before this one is always there"
                self._checks.fault(codes.NEVER_APPLIES, one.at, message, "remove it, or move it to the front")
                return
            last = index == len(term.alternatives) - 1
            before = len(self._checks.findings)
            self.check(one, target, is_alternative=True, is_last=last)
            # An alternative with a fault of its own may be another one once it is mended.
            answered = len(self._checks.findings) == before and all(
                always_there(self._checks, one, schema, self._when) for schema in self._checks.schemas
            )


_FORM_OF: dict[type, str] = {Lookup: "lookup", Excerpt: "excerpt", Rounded: "round", Count: "count"}


def _word(member: object) -> str:
    return str(member).lower() if isinstance(member, bool) else str(member)
