"""The quick path: decoders that are derived from the record classes, and that only ever say yes."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from functools import reduce
from operator import attrgetter, or_
from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import attrs
import msgspec

from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS, Subject
from vinaya_bridge.log.parts import Record
from vinaya_bridge.log.rules import Absent, Rule, json_name
from vinaya_bridge.log.shapes import Shape, fields_of, schemas_of

_SCHEMA: Final = b'"schema":'
_KIND: Final = b'"kind":"'
_EVENT: Final = b'"event":"'

_SCHEMA_AT: Final = len(b'{"meta":{"schema":')
"""Where the writer puts the schema's digit."""

_AFTER_SUBJECT: Final = b'},"k'
_BEFORE_EVENT: Final = b',"ev'
"""The shortest bytes that find the kind and the event where the writer puts them; rare bytes are found sooner."""

_BODY_FROM: Final = {b"1": 150, b"2": 350, b"3": 500}
"""Where to look for the kind, in bytes, by the schema's digit: headers are seldom shorter."""

_AFTER_LIST: Final = b'],"k'
_SHORT_BODY_FROM: Final = {b"1": 20, b"2": 60, b"3": 60}
"""The same for a line without its header and subject."""

_MAY_BE_TWO_UNITS: Final = re.compile(rb"[\xf0-\xf4]|\\u[dD]")

_EXACT: Final = 2**53
"""Up to here a double holds every integer; greater ones are left to the precise path."""

IS_PLAIN: Final = "encodes_canonically"
"""
The name of a function that every struct class has: whether `msgspec.json.Encoder` writes a struct's canonical text. It
is False where a number or an outcome is one that the encoder would write in another form.
"""

MARK: Final = "\n"
"""
What stands first in the list that a shortened line has for a header. Only an escape can write it, and a line with an
escape is not shortened: so no list that a line itself holds is taken for this one.
"""

_StructType: TypeAlias = type[msgspec.Struct]
_Check: TypeAlias = Callable[[Any], bool]


_Decode: TypeAlias = Callable[[bytes], Record]
_Hint: TypeAlias = tuple[bytes, bytes, bytes]


class _NotPlainError(ValueError):
    """Raised by a decoder for a line that it leaves to the precise path."""


class QuickReader:
    """
    Decodes lines into msgspec structs that have the attributes of the record classes.

    What it returns is valid by every rule that the record classes state, save the pattern of ``run_id``, which the
    caller checks once for each id. What it does not return may be valid all the same: ``5.0`` for an integer, say.
    Decoders are built when their event is first met.
    """

    def __init__(self) -> None:
        self._whole = _Decoders(_AFTER_SUBJECT, _BODY_FROM, is_short=False)
        self.read_shortened = _Decoders(_AFTER_LIST, _SHORT_BODY_FROM, is_short=True).read
        """
        Decodes a line that was shortened by `vinaya_bridge.log.headers.KnownHeaders`, given its text and the digit
        of its schema: as `read`, but ``meta`` of the record has only what varies, and ``subject`` is absent.
        """

    def read(self, raw: bytes) -> Record | None:
        """
        Decodes a line.

        Args:
            raw: The line's bytes.

        Returns:
            The record, a struct and not an attrs object; None where the line is not plainly valid.
        """
        return self._whole.read(raw, raw[_SCHEMA_AT : _SCHEMA_AT + 1])


class _Decoders:
    """Decoders of whole lines, or of shortened ones, by what the bytes seem to say."""

    def __init__(self, before_kind: bytes, body_from: Mapping[bytes, int], *, is_short: bool) -> None:
        self._before_kind = before_kind
        self._body_from = body_from.get
        self._is_short = is_short
        self._by_hint: dict[_Hint, _Decode] = {}
        self._decoders: dict[_Hint, _Decode] = {}
        self._structs = _Structs(is_short=is_short)

    def read(self, raw: bytes, schema: bytes) -> Record | None:
        # What the bytes seem to say. Text inside a string can mislead this: then the decoder that is chosen refuses
        # the line, since the schema, kind and event that it expects are literals.
        kind_at = raw.find(self._before_kind, self._body_from(schema, 0))
        event_at = raw.find(_BEFORE_EVENT, kind_at)
        hint = (schema, raw[kind_at + 10 : kind_at + 13], raw[event_at + 10 : event_at + 19])
        decode = self._by_hint.get(hint) or self._search(raw, hint)
        if decode is None:
            return None
        try:
            return decode(raw)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def _search(self, raw: bytes, hint: _Hint) -> _Decode | None:
        """The decoder of a line whose event was not met before, or whose keys are not in the writer's order."""
        schema = hint[0]
        if not self._is_short:
            schema_at = raw.find(_SCHEMA) + len(_SCHEMA)
            schema = raw[schema_at : schema_at + 1]
        kind, event = _quoted(raw, _KIND), _quoted(raw, _EVENT)
        decode = self._decoders.get((schema, kind, event)) or self._build(schema, kind, event)
        if decode is not None and hint == (schema, kind[:3], (event + b'","')[:9]):
            self._by_hint[hint] = decode
        return decode

    def _build(self, schema: bytes, kind: bytes, event: bytes) -> _Decode | None:
        try:
            number, family, name = int(schema), kind.decode(), event.decode()
        except ValueError:
            return None
        if number not in schemas_of(family, name):
            return None
        cls = FAMILIES[(family, name)]
        decode = cast(_Decode, msgspec.json.Decoder(self._structs.of(cls, number)).decode)
        if any(map(_counts_units, fields_of(cls).values())):
            decode = _without_pairs(decode)
        self._decoders[(schema, kind, event)] = decode
        return decode


def _without_pairs(decode: _Decode) -> _Decode:
    """A decoder that leaves alone a line in which a character may be two UTF-16 units."""

    def decode_plain(raw: bytes) -> Record:
        if (b"\\u" in raw or not raw.isascii()) and _MAY_BE_TWO_UNITS.search(raw):
            raise _NotPlainError
        return decode(raw)

    return decode_plain


def _quoted(raw: bytes, key: bytes) -> bytes:
    """The first string that follows a key."""
    start = raw.find(key) + len(key)
    return raw[start : raw.find(b'"', start)]


class _Structs:
    """Makes struct classes from record classes, each once."""

    def __init__(self, *, is_short: bool) -> None:
        self._is_short = is_short
        self._made: dict[tuple[type[attrs.AttrsInstance], int], _StructType] = {}

    def of(self, cls: type[attrs.AttrsInstance], schema: int) -> _StructType:
        """
        The struct class of a record class.

        Args:
            cls: A record class.

            schema: The header schema; a class without a header in it is the same under all of them.

        Returns:
            A class with the same attributes, declared in the order of the canonical text.
        """
        key = (cls, schema)
        if key not in self._made:
            self._made[key] = self._make(cls, schema)
        return self._made[key]

    def _make(self, cls: type[attrs.AttrsInstance], schema: int) -> _StructType:
        shapes = fields_of(cls)
        tag = shapes["type"].members[0] if "type" in shapes else None
        declared: list[tuple[str, object] | tuple[str, object, object]] = []
        for name in sorted(shapes, key=json_name):
            shape = shapes[name]
            if self._is_short and Subject in shape.classes:
                declared.append((name, Absent, msgspec.UNSET))  # a line that has one all the same is refused
                continue
            if name == "type" and tag is not None:
                continue
            annotation = self._annotation(shape, schema, with_pattern=name != "run_id")
            if shape.optional:
                declared.append((name, annotation | Absent, msgspec.UNSET))
            else:
                declared.append((name, annotation))
        namespace: dict[str, object] = {IS_PLAIN: staticmethod(_plain_object(cls))}
        if tag is not None:
            namespace["type"] = tag
        return msgspec.defstruct(
            cls.__name__,
            declared,
            namespace=namespace,
            tag=tag,
            tag_field=None if tag is None else "type",
            rename={name: json_name(name) for name in shapes},
            forbid_unknown_fields=True,
            kw_only=True,
            frozen=True,
            gc=False,
        )

    def _varying(self, header: type[attrs.AttrsInstance], schema: int) -> _StructType:
        """The list that a shortened line has in place of its header."""
        shapes = fields_of(header)
        names = ("ts", "seq") if schema == 1 else ("ts", "seq", "event_id")
        declared = [(name, self._annotation(shapes[name], schema)) for name in names]
        fields = [("mark", Literal[MARK]), *declared]
        return msgspec.defstruct(
            "Varying", fields, array_like=True, forbid_unknown_fields=True, frozen=True, gc=False
        )

    def _annotation(self, shape: Shape, schema: int, *, with_pattern: bool = True) -> Any:
        present = self._present(shape, schema, with_pattern=with_pattern)
        return present | None if shape.nullable else present

    def _present(self, shape: Shape, schema: int, *, with_pattern: bool) -> Any:
        rule = shape.rule
        match shape.kind:
            case "string":
                return _string(rule, with_pattern=with_pattern)
            case "int":
                return Annotated[int, _bounds(rule)]
            case "number":
                least = msgspec.Meta(ge=rule.minimum, le=rule.maximum)
                return Annotated[int, _bounds(rule)] | Annotated[float, least]
            case "bool":
                return bool
            case "enum" | "literal":
                return Literal[shape.members]
            case "object":
                header = HEADERS[schema]
                if self._is_short and header in shape.classes:
                    return self._varying(header, schema)
                classes = (header,) if header in shape.classes else shape.classes
                return reduce(or_, (self.of(cls, schema) for cls in classes))
            case "list":
                entry = self._annotation(cast(Shape, shape.item), schema)
                return _few(types.GenericAlias(tuple, (entry, ...)), rule)
            case "record":
                key = self._annotation(cast(Shape, shape.key), schema)
                value = self._annotation(cast(Shape, shape.item), schema)
                return _few(types.GenericAlias(dict, (key, value)), rule)
            case "any":
                return reduce(or_, (self._annotation(choice, schema) for choice in shape.choices))


def _string(rule: Rule, *, with_pattern: bool) -> Any:
    pattern = rf"\A(?:{rule.pattern})\Z" if rule.pattern is not None and with_pattern else None
    least = rule.min_units or None
    # Characters, not units: a line whose text could have more units than characters does not come this way.
    return Annotated[str, msgspec.Meta(pattern=pattern, min_length=least, max_length=rule.max_units)]


def _few(container: types.GenericAlias, rule: Rule) -> Any:
    return Annotated[container, msgspec.Meta(max_length=rule.max_items)]


def _bounds(rule: Rule) -> msgspec.Meta:
    least = -_EXACT if rule.minimum is None else rule.minimum
    return msgspec.Meta(ge=least, le=_EXACT if rule.maximum is None else rule.maximum)


def _counts_units(shape: Shape) -> bool:
    """Whether a length in UTF-16 units is checked somewhere in a value."""
    inner = [each for each in (shape.key, shape.item, *shape.choices) if each is not None]
    inner += [each for cls in shape.classes for each in fields_of(cls).values()]
    return shape.rule.max_units is not None or any(map(_counts_units, inner))


def _plain_object(cls: type[attrs.AttrsInstance]) -> _Check:
    """A check that the encoder writes all numbers of an object as the canonical text has them."""
    found = [(attrgetter(name), _plain_value(shape)) for name, shape in fields_of(cls).items()]
    checks = [(get, check) for get, check in found if check is not None]
    if len(checks) == 1:  # most events: the duration alone
        ((get, check),) = checks
        return lambda value: get(value).__class__ is int or check(get(value))

    def check_object(value: object) -> bool:
        for get, check in checks:  # noqa: SIM110 - a generator costs more than the checks do
            if not check(get(value)):
                return False
        return True

    return check_object


def _plain_value(shape: Shape) -> _Check | None:
    """The check of one field; None where nothing in it can go wrong."""
    match shape.kind:
        case "number" | "any":
            return _plain_number
        case "record" | "list":
            check = _plain_value(shape.item) if shape.item is not None else None
            return None if check is None else _plain_entries(check, is_record=shape.kind == "record")
        case "object" if len(shape.classes) == 1:
            if all(_plain_value(each) is None for each in fields_of(shape.classes[0]).values()):
                return None
            inner = _plain_object(shape.classes[0])
            return lambda value: value is None or value is msgspec.UNSET or inner(value)
        case "object" if "type" in fields_of(shape.classes[0]):
            # The encoder writes the tag first, which is its place only where it is alone.
            return lambda value: len(value.__struct_fields__) == 0
        case _:
            return None


def _plain_entries(check: _Check, *, is_record: bool) -> _Check:
    if is_record:
        return lambda value: all(map(check, value.values()))
    return lambda value: value is msgspec.UNSET or all(map(check, value))


def _plain_number(value: Any) -> bool:
    """Between these limits both write the shortest digits, without an exponent; a whole float loses its ``.0``."""
    return value.__class__ is not float or (1e-5 <= abs(value) < 1e15 and not value.is_integer())
