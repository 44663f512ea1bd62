"""Whether one emit can only give events that the protocol takes: its type, run, conditions and whole payload."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ethogram.vocabulary import DOMAINS, EVENT_TYPES, Field, FieldKind
from vinaya_bridge.mapping import codes
from vinaya_bridge.mapping.checks import RuleChecks, did_you_mean, listed
from vinaya_bridge.mapping.compile import ENGINE_CONDITIONS
from vinaya_bridge.mapping.families import FAMILIES
from vinaya_bridge.mapping.findings import KeyPath
from vinaya_bridge.mapping.lint_terms import Target, TermChecks
from vinaya_bridge.mapping.presence import always_there
from vinaya_bridge.mapping.table import EmitRule
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Count,
    EngineValue,
    Excerpt,
    FirstOf,
    Group,
    Source,
    Template,
    Term,
)

CUSTOM_PREFIX = "vinaya."
"""What a declared name stands behind, so that it never spells a type of the protocol."""

BLOCK = "vinaya"
"""The payload field that says where an event came from."""

_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_IRREGULAR = frozenset(
    {"begun", "met", "sent", "left", "built", "read", "set", "cut", "run", "lost", "found", "held"}
)
_DOMAINS_OF_OURS = frozenset({"decision"})
_QUESTION_OF = {"run.started": "@line.starts_run", "run.finished": "@line.ends_run"}


def check_conditions(checks: RuleChecks, when: Sequence[Condition], *, may_ask: bool) -> None:
    """
    Check a ``when``.

    Args:
        checks: The rule.

        when: Its conditions.

        may_ask: Whether it may ask the engine.
    """
    asked = 0
    for condition in when:
        if condition.is_dynamic:
            asked += 1
            _check_question(checks, condition, may_ask=may_ask, is_second=asked > 1)
        elif checks.path_exists(condition.subject, condition.at, key=True):
            _check_comparison(checks, condition)


def _check_question(checks: RuleChecks, condition: Condition, *, may_ask: bool, is_second: bool) -> None:
    at = condition.at
    if condition.subject not in ENGINE_CONDITIONS:
        remedy = did_you_mean(condition.subject, ENGINE_CONDITIONS, f"ask one of {listed(ENGINE_CONDITIONS)}")
        checks.fault(
            codes.UNKNOWN_ENGINE_VALUE,
            at,
            f"the engine cannot answer `{condition.subject}`",
            remedy,
            key=True,
        )
    elif not may_ask:
        message = "only an emit may ask the engine: a family depends on the line alone"
        checks.fault(codes.BAD_CONDITION, at, message, "compare a path", key=True)
    elif is_second:
        checks.fault(
            codes.BAD_CONDITION, at, "an emit asks the engine one question only", "make two emits", key=True
        )
    elif condition.is_negated or len(condition.values) != 1 or not isinstance(condition.values[0], bool):
        checks.fault(
            codes.BAD_CONDITION, at, "the engine answers with true or false", "write `true` or `false`"
        )


def _check_comparison(checks: RuleChecks, condition: Condition) -> None:
    shape = checks.shape(condition.subject)
    if shape is None or shape.kind in ("object", "list", "record", "number"):
        message = f"`{condition.subject}` is not one plain value"
        remedy = "compare a word, true or false, or an integer"
        checks.fault(codes.BAD_CONDITION, condition.at, message, remedy, key=True)
        return
    members = checks.members(condition.subject)
    for index, value in enumerate(condition.values):
        at = (*condition.at, index) if len(condition.values) > 1 else condition.at
        is_kind = (
            isinstance(value, bool)
            if shape.kind == "bool"
            else isinstance(value, bool | str)
            if shape.kind == "any"
            else isinstance(value, int) and not isinstance(value, bool)
            if shape.kind == "int" or (members and isinstance(members[0], int))
            else isinstance(value, str)
        )
        if not is_kind:
            message = f"`{condition.subject}` is never of this kind of value"
            checks.fault(codes.BAD_CONDITION, at, message, "write a literal of the field's own kind")
        elif members is not None and value not in members:
            remedy = did_you_mean(
                str(value), [str(one) for one in members], f"it is one of {listed(members)}"
            )
            checks.fault(codes.NEVER_APPLIES, at, f"`{condition.subject}` is never `{value}`", remedy)


def check_emit(checks: RuleChecks, emit: EmitRule) -> None:
    """
    Check one emit.

    Args:
        checks: The rule.

        emit: One of its emits.
    """
    check_conditions(checks, emit.when, may_ask=True)
    if emit.run == "dispatch" and checks.rule.kind != "dispatch":
        message = "only a line of the dispatch family has a dispatch run"
        checks.fault(codes.UNKNOWN_RUN, (*emit.at, "run"), message, 'write run = "main"')
    _check_type(checks, emit)
    known = EVENT_TYPES.get(emit.type_name)
    _PayloadChecks(checks, emit).check(emit.payload, known.payload if known is not None else None)
    _check_policy(checks, emit)


def _check_type(checks: RuleChecks, emit: EmitRule) -> None:
    at = (*emit.at, "type")
    name = emit.type_name
    if isinstance(emit.type, Template):
        first, sources = emit.type.parts[0], [part for part in emit.type.parts if isinstance(part, Source)]
        if [source for source in sources if not checks.path_exists(source.path, at)]:
            return
        if not isinstance(first, str) or not first.startswith(CUSTOM_PREFIX):
            message = "a name from the line could spell a type of the protocol"
            checks.fault(codes.TYPE_FROM_LINE, at, message, f"put `{CUSTOM_PREFIX}` before it")
        for source in sources:
            shape = checks.shape(source.path)
            if shape is None or not (shape.members or shape.rule.pattern):
                message = f"`{source.path}` can be any text, and a type is made of words"
                checks.fault(codes.TYPE_FROM_LINE, at, message, "choose a name of a fixed pattern")
        return
    if name in EVENT_TYPES:
        return
    stated = {family.name for family in checks.rule.generic}
    domain, _, last = name.partition(".")[0], *name.rpartition(".")[1:]
    if not _TYPE.fullmatch(name):
        message = f"`{name}` is not lower-case words joined by dots"
        checks.fault(codes.TYPE_SHAPE, at, message, "write `domain.happened`")
    elif domain in DOMAINS - _DOMAINS_OF_OURS and name not in stated:
        checks.fault(
            codes.TYPE_RESERVED,
            at,
            f"`{domain}.*` belongs to the protocol, which has no `{name}`",
            did_you_mean(name, EVENT_TYPES, "choose a domain of your own"),
        )
    elif not (last.endswith("ed") or last.rpartition("_")[2] in _IRREGULAR or name in FAMILIES):
        checks.warn(codes.TYPE_SHAPE, at, f"`{name}` does not say what happened", "end it in a past tense")


def _check_policy(checks: RuleChecks, emit: EmitRule) -> None:
    """The rules of the protocol that tie several fields, or an event and its run, together."""
    question = _QUESTION_OF.get(emit.type_name)
    if question is not None:
        asked = any(one.subject == question and one.values == (True,) for one in emit.when)
        if not asked:
            checks.fault(
                codes.POLICY,
                (*emit.at, "type"),
                f"a run has one `{emit.type_name}`, and this one would come on every line",
                f'add when = {{ "{question}" = true }}',
            )
    fields = dict(emit.payload.fields)
    if emit.type_name == "control.requested":
        _check_steer(checks, emit, fields)
    if emit.type_name == "decision.requested" and "onTimeout" in fields:
        _check_on_timeout(checks, fields)


def _check_steer(checks: RuleChecks, emit: EmitRule, fields: dict[str, Term]) -> None:
    kind, text = fields.get("kind"), fields.get("text")
    if isinstance(kind, Constant) and kind.value != "steer":
        return
    says_something = isinstance(text, Constant) and bool(text.value)
    if isinstance(text, Template):
        literal = any(isinstance(part, str) and part for part in text.parts)
        says_something = literal and all(always_there(checks, text, one, emit.when) for one in checks.schemas)
    if not says_something:
        at = text.at if text is not None else (*emit.at, "type")
        message = "a steer has text that is there and not empty on every line"
        checks.fault(codes.POLICY, at, message, "give it a literal, or a template with words of its own")


def _check_on_timeout(checks: RuleChecks, fields: dict[str, Term]) -> None:
    at = fields["onTimeout"].at
    kind, answer, options = fields.get("kind"), fields["onTimeout"], fields.get("options")
    if not (isinstance(kind, Constant) and kind.value == "permission"):
        checks.fault(codes.POLICY, at, "only a permission has `onTimeout`", "remove it")
    elif not (isinstance(answer, Constant) and answer.value == "deny"):
        checks.fault(codes.POLICY, at, "`onTimeout` is always `deny`", 'write "deny"')
    elif not (
        isinstance(options, Constant) and isinstance(options.value, list) and _offers_deny(options.value)
    ):
        checks.fault(
            codes.POLICY, at, "`deny` is not among the options", "offer an option with the id `deny`"
        )


def _offers_deny(options: Sequence[object]) -> bool:
    return any(isinstance(option, dict) and option.get("id") == "deny" for option in options)


class _PayloadChecks:
    """Checks the fields of one payload, object by object."""

    def __init__(self, checks: RuleChecks, emit: EmitRule) -> None:
        self._checks = checks
        self._emit = emit
        self._terms = TermChecks(checks, emit.when)

    def check(self, group: Group, expected: Field | None, prefix: str = "") -> None:
        """Check the fields of a payload, or of an object in it."""
        checks = self._checks
        type_name = self._emit.type_name
        faulty: set[str] = set()
        for name, term in group.fields:
            before = len(checks.findings)
            field = expected.field(name) if expected is not None else None
            if not prefix and name == BLOCK:
                message = f"`{BLOCK}` says where the event came from"
                checks.fault(codes.RESERVED_FIELD, term.at, message, "choose another name", key=True)
            elif isinstance(term, Group):
                self._object(term, field, prefix + name)
            else:
                self._terms.check(term, Target(type_name, prefix + name, field))
            if len(checks.findings) > before:
                faulty.add(name)
        self._collisions(group, prefix)
        if expected is not None:
            self._required(group, expected, prefix, faulty)

    def _object(self, group: Group, field: Field | None, name: str) -> None:
        if field is not None and field.kind is not FieldKind.OBJECT:
            message = f"{self._emit.type_name} {name} holds {field.kind.value}, and this is an object"
            self._checks.fault(codes.WRONG_TYPE, group.at, message, f"write {field.kind.value}")
            return
        self.check(group, field, f"{name}.")

    def _required(self, group: Group, expected: Field, prefix: str, faulty: Collection[str]) -> None:
        """Check that what the protocol requires is there; nothing more is said of a field that has a fault already."""
        fields = dict(group.fields)
        for field in expected.fields:
            if not field.required or field.name in faulty:
                continue
            name = f"{self._emit.type_name} {prefix}{field.name}"
            term = fields.get(field.name)
            if term is None:
                at: KeyPath = group.at if prefix else (*self._emit.at, "type")
                self._checks.fault(codes.MAY_BE_ABSENT, at, f"{name} is required, and is not there", "add it")
                continue
            lacking = [
                schema
                for schema in self._checks.schemas
                if not always_there(self._checks, term, schema, self._emit.when)
            ]
            if lacking:
                where = (
                    ""
                    if len(lacking) == len(self._checks.schemas)
                    else f" under header schema {listed(lacking)}"
                )
                message = f"{name} is required, and may be absent{where}"
                self._checks.fault(
                    codes.MAY_BE_ABSENT, term.at, message, "end it in an alternative that is always there"
                )

    def _collisions(self, group: Group, prefix: str) -> None:
        """
        Fields that two sources write: a flag or a text beside, the engine's `estimated`, and a field of the table.
        """
        written = {name for name, _ in group.fields}
        for name, term in group.fields:
            for other, at in _beside(term):
                if other in written:
                    message = f"`{prefix}{other}` is written by `{name}` and by a field of its own"
                    self._checks.fault(codes.RESERVED_FIELD, at, message, "give one of the two another name")
            if _asks_elapsed(term) and "estimated" in written:
                message = "the engine writes `estimated` where it computes the duration"
                at = dict(group.fields)["estimated"].at
                self._checks.fault(codes.RESERVED_FIELD, at, message, "remove it", key=True)


def _beside(term: Term) -> list[tuple[str, KeyPath]]:
    """The fields that a term may write beside its own."""
    match term:
        case Excerpt():
            return [(term.flag, (*term.at, "flag"))]
        case Template() if term.max_scalars is not None:
            return [("truncated", term.at)]
        case Count() if term.text_field is not None:
            return [(term.text_field, (*term.at, "text"))]
        case FirstOf():
            return [found for one in term.alternatives for found in _beside(one)]
        case _:
            return []


def _asks_elapsed(term: Term) -> bool:
    alternatives = term.alternatives if isinstance(term, FirstOf) else (term,)
    return any(isinstance(one, EngineValue) and one.name == "@run.elapsed_ms" for one in alternatives)
