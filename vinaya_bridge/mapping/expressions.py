"""Terms of the language to Python source: how a value is read, made fit, and put into a payload in key order."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from attrs import frozen

from ethogram.canonical import canonical_payload
from ethogram.vocabulary import MAX_SAFE_INTEGER
from vinaya_bridge.log.shapes import Shape
from vinaya_bridge.mapping.copies import CopyWriter, is_plain, present_test
from vinaya_bridge.mapping.source_text import SourceText
from vinaya_bridge.mapping.sources import ResolvedPath, Step, resolve
from vinaya_bridge.mapping.terms import (
    Condition,
    Constant,
    Count,
    EngineValue,
    Excerpt,
    FirstOf,
    Group,
    Literal,
    Lookup,
    Rounded,
    Source,
    Template,
    Term,
    without_place,
)

_FILLS = {"@run.elapsed_ms": 1, "@run.parent": 2}


@frozen
class Value:
    """
    A value in generated source.

    Args:
        text: The expression.

        present: The test that it is there; empty where it always is.

        never: Whether it is never there.
    """

    text: str
    present: str = ""
    never: bool = False


NEVER = Value("None", "False", never=True)
"""The value of a path that the schema does not have."""


class ExpressionWriter:
    """
    Writes the reading of one event's lines under one schema.

    Args:
        out: Where the source goes.

        kind: The family.

        event: The event.

        schema: The header schema.
    """

    def __init__(self, out: SourceText, kind: str, event: str, schema: int) -> None:
        self.out = out
        self.kind = kind
        self.event = event
        self.schema = schema
        self.copies = CopyWriter(out)

    # Reading.

    def resolve(self, path: str) -> ResolvedPath | None:
        """Where a path leads under this schema; None where it has no such path."""
        return resolve(self.kind, self.event, self.schema, path)

    def read(self, path: str) -> Value:
        """Write what is needed to read a path; the value is as the record has it."""
        known = self.out.remembered(path)
        if isinstance(known, Value):
            return known
        value = self._read(path)
        self.out.remember(path, value)
        return value

    def _read(self, path: str) -> Value:
        found = self.resolve(path)
        if found is None:
            return NEVER
        text = "r"
        maybe_none = maybe_unset = False
        for index, step in enumerate(found.steps):
            if maybe_none or maybe_unset:
                outer = self._named(text)
                name = self.out.fresh()
                guard = present_test(outer, maybe_none, maybe_unset)
                self.out.line(f"{name} = {_reach(outer, step)} if {guard} else None")
                text, maybe_none = name, True
            else:
                # The two objects of every line have names of their own.
                alias = {"meta": "m", "subject": "s"}.get(step.attribute) if index == 0 else None
                text = alias or _reach(text, step)
                maybe_none = step.shape.nullable or not step.certain
            maybe_unset = step.shape.optional and not step.by_key
        if not (maybe_none or maybe_unset):
            return Value(text)
        text = self._named(text)
        return Value(text, present_test(text, maybe_none, maybe_unset))

    def _named(self, text: str) -> str:
        """A name for an expression, itself where it is one."""
        if text.isidentifier():
            return text
        name = self.out.fresh()
        self.out.line(f"{name} = {text}")
        return name

    def conditions(self, conditions: Sequence[Condition]) -> str | None:
        """The test of the static conditions; empty where there are none, None where they never hold."""
        tests: list[str] = []
        for condition in conditions:
            if condition.is_dynamic:
                continue
            value = self.read(condition.subject)
            if value.never:
                if condition.is_negated:
                    continue
                return None
            wanted = condition.values
            if all(isinstance(one, bool) for one in wanted):
                test = " or ".join(f"{value.text} is {one}" for one in wanted)
            elif len(wanted) == 1:
                test = f"{value.text} == {wanted[0]!r}"
            else:
                test = f"{value.text} in {wanted!r}"
            tests.append(f"not ({test})" if condition.is_negated else f"({test})")
        return " and ".join(tests)

    def as_name(self, value: Value) -> str:
        """A name that holds the value, None where it is not there."""
        if value.text.isidentifier() and value.present in ("", f"{value.text} is not None"):
            return value.text
        known = self.out.remembered(value)
        if isinstance(known, str):
            return known
        name = self.out.fresh()
        guard = f" if {value.present} else None" if value.present else ""
        self.out.line(f"{name} = {value.text}{guard}")
        self.out.remember(value, name)
        return name

    # Terms.

    def term(self, term: Term, sink: ObjectWriter) -> Value:
        """Write what is needed for a term; fields that come beside it go to the object's writer."""
        match term:
            case Constant():
                return Value(self._literal(term.value))
            case Source():
                return self._source(term.path)
            case Lookup():
                return self._lookup(term)
            case Template():
                return self._template(term, sink)
            case Excerpt():
                return self._excerpt(self.read(term.path), term.path, term.max_scalars, term.flag, sink)
            case Rounded():
                return self._whole("rounded", term.path)
            case Count():
                return self._count(term, sink)
            case FirstOf():
                return self._first_of(term, sink)
            case EngineValue():
                sink.ask_engine(term.name, is_late=False)
                return NEVER
            case Group():
                return self._group(term, sink)

    def _literal(self, value: Literal) -> str:
        if isinstance(value, str | bool | int):
            return repr(value)
        return self.out.constant(orjson.Fragment(canonical_payload(value)), "LITERAL")

    def _source(self, path: str) -> Value:
        found = self.resolve(path)
        value = self.read(path)
        if found is None:
            return NEVER
        if is_plain(found.shape):
            return value
        known = self.out.remembered(("copy", path))
        if isinstance(known, Value):
            return known
        name = self.out.fresh()
        guard = f" if {value.present} else None" if value.present else ""
        self.out.line(f"{name} = {self.copies.copy(found.shape, value.text)}{guard}")
        copied = Value(name, f"{name} is not None" if value.present else "")
        self.out.remember(("copy", path), copied)
        return copied

    def _lookup(self, term: Lookup) -> Value:
        found = self.resolve(term.path)
        value = self.read(term.path)
        if found is None:
            return NEVER
        is_bool = found.shape.kind == "bool"
        table = {_member(entry.member, is_bool=is_bool): entry.value for entry in term.entries}
        name = self.out.constant(table, "LOOKUP")
        if not value.present:
            return Value(f"{name}[{value.text}]")
        result = self.out.fresh()
        self.out.line(f"{result} = {name}.get({value.text})")
        return Value(result, f"{result} is not None")

    def _template(self, term: Template, sink: ObjectWriter) -> Value:
        texts: list[str] = []
        tests: list[str] = []
        for part in term.parts:
            if isinstance(part, str):
                texts.append(repr(part))
                continue
            found = self.resolve(part.path)
            value = self.read(part.path)
            if found is None:
                return NEVER
            if value.present:
                tests.append(value.present)
            texts.append(_as_text(found.shape, value.text))
        whole = Value(" + ".join(texts), " and ".join(tests))
        if term.max_scalars is None:
            return whole if not whole.present else Value(name := self.as_name(whole), f"{name} is not None")
        return self._cut(whole, term.max_scalars, "truncated", sink)

    def _excerpt(self, value: Value, path: str, bound: int, flag: str, sink: ObjectWriter) -> Value:
        found = self.resolve(path)
        if found is None:
            return NEVER
        longest = found.shape.rule.max_units
        if longest is not None and longest <= bound:
            return value
        return self._cut(value, bound, flag, sink)

    def _cut(self, value: Value, bound: int, flag: str, sink: ObjectWriter) -> Value:
        name = self.out.fresh()
        guard = f" if {value.present} else None" if value.present else ""
        self.out.line(f"{name} = {value.text}{guard}")
        cut = sink.flag(flag)
        test = f"{name} is not None and len({name})" if value.present else f"len({name})"
        with self.out.block(f"if {test} > {bound}:"):
            self.out.line(f"{name} = {name}[:{bound}]")
            self.out.line(f"{cut} = True")
        return Value(name, f"{name} is not None" if value.present else "")

    def _whole(self, function: str, path: str) -> Value:
        """A number made whole by a function, which is spared for one that is a small enough int already."""
        value = self.read(path)
        if value.never:
            return NEVER
        known = self.out.remembered((function, path))
        if isinstance(known, Value):
            return known
        source = self.as_name(value)
        name = self.out.fresh()
        self.out.line(f"{name} = {source}")
        with self.out.block(f"if type({name}) is not int or not 0 <= {name} <= {MAX_SAFE_INTEGER}:"):
            guard = f" if {source} is not None else None" if value.present else ""
            self.out.line(f"{name} = {function}({source}){guard}")
        whole = Value(name, f"{name} is not None")
        self.out.remember((function, path), whole)
        return whole

    def _count(self, term: Count, sink: ObjectWriter) -> Value:
        counted = self._whole("count", term.path)
        if counted.never or term.text_field is None:
            return counted
        source = self.as_name(self.read(term.path))
        known = self.out.remembered(("text", term.path))
        if not isinstance(known, Value):
            text = self.out.fresh()
            self.out.line(f"{text} = None")
            with self.out.block(f"if {counted.text} is None and {source} is not None:"):
                self.out.line(f"{text} = figure_text({source})")
            known = Value(text, f"{text} is not None")
            self.out.remember(("text", term.path), known)
        sink.beside(term.text_field, known)
        return counted

    def _first_of(self, term: FirstOf, sink: ObjectWriter) -> Value:
        key = tuple(map(without_place, term.alternatives))
        known = self.out.remembered(key)
        if isinstance(known, Value):
            return known
        result = self.out.fresh("first")
        certain = self._alternatives(term.alternatives, result, sink)
        value = Value(result, "" if certain else f"{result} is not None")
        # An alternative that writes beside itself, or tells the engine something, has to be written again.
        if all(isinstance(one, Constant | Source | Lookup | Rounded) for one in term.alternatives):
            self.out.remember(key, value)
        return value

    def _alternatives(self, terms: Sequence[Term], result: str, sink: ObjectWriter) -> bool:
        """Write the alternatives, each where those before it are absent; true where one always answers."""
        if not terms:
            self.out.line(f"{result} = None")
            return False
        first, rest = terms[0], terms[1:]
        if isinstance(first, EngineValue):
            self.out.line(f"{result} = None")
            sink.ask_engine(first.name, is_late=True)
            return False
        value = self.term(first, sink)
        if value.never:
            return self._alternatives(rest, result, sink)
        if not value.present:
            self.out.line(f"{result} = {value.text}")
            return True
        with self.out.block(f"if {value.present}:"):
            self.out.line(f"{result} = {value.text}")
        with self.out.block("else:"):
            return self._alternatives(rest, result, sink)

    def _group(self, group: Group, sink: ObjectWriter) -> Value:
        key = without_place(group)
        known = self.out.remembered(key)
        if isinstance(known, Value):
            return known
        inner = ObjectWriter(self, sink)
        for name, term in group.fields:
            inner.add(name, term)
        always = inner.has_certain_field
        name = inner.write()
        value = Value(name, "" if always else name)
        self.out.remember(key, value)
        return value


class ObjectWriter:
    """
    Gathers the fields of one object and writes them in key order.

    Args:
        writer: Writes the values.

        outer: The writer of the object around it, which is told of the engine's values.
    """

    def __init__(self, writer: ExpressionWriter, outer: ObjectWriter | None = None) -> None:
        self._writer = writer
        self._outer = outer
        self._fields: dict[str, Value] = {}
        self._flags: dict[str, str] = {}
        self._fill = 0
        self._has_late_fill = False

    @property
    def fill(self) -> int:
        """What the engine always adds to the payload, as the bits of a `Fill`."""
        return self._fill if self._outer is None else self._outer.fill

    @property
    def has_late_fill(self) -> bool:
        """Whether the generated source finds out, for each line, what the engine adds."""
        return self._has_late_fill if self._outer is None else self._outer.has_late_fill

    def ask_engine(self, name: str, *, is_late: bool) -> None:
        """Note that the engine adds a value: always, or only on the lines where the source gets there."""
        if self._outer is not None:
            self._outer.ask_engine(name, is_late=is_late)
        elif is_late:
            self._has_late_fill = True
            self._writer.out.line(f"fill |= {_FILLS[name]}")
        else:
            self._fill |= _FILLS[name]

    @property
    def has_certain_field(self) -> bool:
        """Whether some field is always there."""
        return any(not value.present for value in self._fields.values())

    def add(self, name: str, term: Term) -> None:
        """Add a field with the value of a term."""
        self.beside(name, self._writer.term(term, self))

    def beside(self, name: str, value: Value) -> None:
        """Add a field with a value that is written already."""
        if not value.never:
            self._fields[name] = value

    def flag(self, name: str) -> str:
        """The variable that says whether something was cut; it becomes the field where it is true."""
        if name not in self._flags:
            variable = self._flags[name] = self._writer.out.fresh("cut")
            self._writer.out.line(f"{variable} = False")
            self._fields[name] = Value("True", variable)
        return self._flags[name]

    def write(self) -> str:
        """Write the object; the name of the variable that holds it."""
        out = self._writer.out
        name = out.fresh("d")
        fields = sorted(self._fields.items())
        certain: list[str] = []
        while fields and not fields[0][1].present:
            key, value = fields.pop(0)
            certain.append(f"{key!r}: {value.text}")
        out.line(f"{name} = {{{', '.join(certain)}}}")
        for key, value in fields:
            if value.present:
                out.line(f"if {value.present}: {name}[{key!r}] = {value.text}")
            else:
                out.line(f"{name}[{key!r}] = {value.text}")
        return name


def _reach(outer: str, step: Step) -> str:
    """The expression that takes a step; None where there is nothing."""
    if step.by_key:
        return f"{outer}.get({step.attribute!r})"
    return f"{outer}.{step.attribute}" if step.certain else f"getattr({outer}, {step.attribute!r}, None)"


def _as_text(shape: Shape, text: str) -> str:
    if shape.kind in ("string", "enum") or (shape.members and isinstance(shape.members[0], str)):
        return text
    if shape.kind == "bool":
        return f"('true' if {text} else 'false')"
    return f"figure_text({text})"


def _member(member: str, *, is_bool: bool) -> str | bool:
    return member == "true" if is_bool else member
