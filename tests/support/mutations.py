"""Hypothesis strategies for lines that are almost valid: one fault each, and known to be a fault."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final, Literal

import attrs
from attrs import frozen
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.support.strategies import Json, Line, dump, lines
from vinaya_bridge.log.families import FAMILIES
from vinaya_bridge.log.header import HEADERS
from vinaya_bridge.log.rules import json_name
from vinaya_bridge.log.shapes import Shape, fields_of

Status = Literal["refused", "unknown_version"]

SURPLUS_KEY: Final = "surplus_key"
_STRANGERS: Final[dict[str, Json]] = {
    "bool": True,
    "int": 7,
    "fraction": 1.5,
    "string": "7",
    "list": [],
    "object": {},
    "null": None,
}
"""One value of each kind that JSON tells apart."""


@frozen
class Mutation:
    """
    A line with one fault.

    Args:
        raw: Its bytes, without a newline.

        fault: What was done to it.

        path: Where, as a JSON path; empty where the text itself is broken.

        status: What a reader must make of it.
    """

    raw: bytes
    fault: str
    path: str
    status: Status = "refused"


@frozen
class Place:
    """
    A value inside a line.

    Args:
        holder: The object or list that holds it; changing it changes the line.

        key: Its key or index there.

        path: Where it is.

        shape: What it may be.

        free: Whether its key is one of a record, and no field.
    """

    holder: dict[str, Json] | list[Json]
    key: str | int
    path: str
    shape: Shape
    free: bool = False

    @property
    def value(self) -> Json:
        """The value that is there."""
        return self.holder[self.key]  # type: ignore[index]  # the key fits its holder by construction

    def put(self, value: Json) -> None:
        """
        Put another value there.

        Args:
            value: Decoded JSON.
        """
        self.holder[self.key] = value  # type: ignore[index]


def places(line: Line) -> Iterator[Place]:
    """
    Find every value of a valid line, at any depth.

    Args:
        line: A valid line.

    Yields:
        The values with their shapes, parents before children.
    """
    record: type[attrs.AttrsInstance] = FAMILIES[str(line["kind"]), str(line["event"])]
    yield from _members(line, record, "$")


def _members(holder: dict[str, Json], cls: type[attrs.AttrsInstance], path: str) -> Iterator[Place]:
    for name, shape in fields_of(cls).items():
        if json_name(name) in holder:
            place = Place(holder, json_name(name), f"{path}.{json_name(name)}", shape)
            yield place
            yield from _below(place)


def _below(place: Place) -> Iterator[Place]:
    value, shape = place.value, place.shape
    if isinstance(value, dict) and shape.kind == "object":
        yield from _members(value, class_of(value, shape), place.path)
    elif isinstance(value, dict) and shape.item is not None:
        for key in value:
            yield Place(value, key, f"{place.path}.{key}", shape.item, free=True)
    elif isinstance(value, list) and shape.item is not None:
        for index in range(len(value)):
            inner = Place(value, index, f"{place.path}[{index}]", shape.item)
            yield inner
            yield from _below(inner)


def class_of(value: dict[str, Json], shape: Shape) -> type[attrs.AttrsInstance]:
    """
    Tell which of an object's classes a value is of.

    Args:
        value: A valid object.

        shape: Its shape.

    Returns:
        The only class; of a header the one for its schema; of an outcome the one for its type.
    """
    if len(shape.classes) == 1:
        return shape.classes[0]
    if "schema" in value:
        return HEADERS[int(str(value["schema"])[0])]
    return next(cls for cls in shape.classes if value["type"] in fields_of(cls)["type"].members)


def faults_of(place: Place) -> dict[str, Json]:
    """
    List the values that must not stand at a place.

    Args:
        place: A place of a valid line.

    Returns:
        A name of the fault to a value of that fault; keys are a fixed set, so names can be counted.
    """
    shape, rule = place.shape, place.shape.rule
    fitting = _fitting(shape)
    faults = {
        f"{kind} where it is not allowed": value for kind, value in _STRANGERS.items() if kind not in fitting
    }
    if shape.kind in {"enum", "literal"} and "string" in fitting:
        faults["no member of a closed list"] = "no-such-member"
    if shape.kind == "literal" and place.path != "$.meta.schema" and "int" in fitting:
        faults["another number than the only one"] = 1
    if rule.minimum is not None:
        faults["below the least"] = rule.minimum - 1
    if rule.maximum is not None:
        faults["above the greatest"] = rule.maximum + 1
    if rule.pattern is not None:
        faults["not of the pattern"] = "not allowed \u00e9\n"
        faults["a newline behind the pattern"] = f"{place.value}\n"
    if rule.min_units:
        faults["too short"] = ""
    if rule.max_units is not None and rule.pattern is None:
        # As many code points as units are allowed, each of two units.
        faults["too long"] = "\U0001f9ef" * (rule.max_units // 2) + "ab"
    if rule.max_items is not None and shape.kind == "list":
        faults["too many"] = ["x"] * (rule.max_items + 1)
    if rule.max_items is not None and shape.kind == "record":
        faults["too many"] = {f"k{number}": 1 for number in range(rule.max_items + 1)}
    if shape.kind == "record":
        faults["a key that is not allowed"] = {"Not-A-Key": "x"}
    return faults


def _fitting(shape: Shape) -> set[str]:
    """Which kinds of `_STRANGERS` a shape would take."""
    fitting = {"null"} if shape.nullable else set()
    match shape.kind:
        case "string":
            fitting.add("string")
        case "enum" | "literal":
            fitting.add("string" if isinstance(shape.members[0], str) else "int")
        case "int":
            fitting.add("int")
        case "number":
            fitting |= {"int", "fraction"}
        case "bool":
            fitting.add("bool")
        case "list":
            fitting.add("list")
        case "any":
            fitting |= {"string", "int", "fraction", "bool"}
        case "object" | "record":
            fitting.add("object")
    return fitting


@st.composite
def structural_mutations(draw: DrawFn) -> Mutation:
    """
    Valid JSON that is no valid line.

    Returns:
        A line with a key too many or missing, or a value that its field does not allow.
    """
    line = copy.deepcopy(draw(lines(plain=True)))
    found = list(places(line))
    objects = [place for place in found if place.shape.kind == "object" and isinstance(place.value, dict)]
    way = draw(st.sampled_from(["value", "value", "missing", "surplus"]))
    if way == "surplus":
        chosen = draw(st.sampled_from([None, *objects]))
        holder = line if chosen is None else chosen.value
        assert isinstance(holder, dict)
        holder[SURPLUS_KEY] = draw(st.sampled_from([1, None, {}]))
        path = "$" if chosen is None else chosen.path
        return Mutation(dump(line), "a key too many", f"{path}.{SURPLUS_KEY}")
    if way == "missing":
        required = [place for place in found if isinstance(place.holder, dict) and not _may_lack(place)]
        place = draw(st.sampled_from(required))
        assert isinstance(place.holder, dict)
        del place.holder[str(place.key)]
        return Mutation(dump(line), "a key is missing", place.path)
    candidates: dict[str, list[Place]] = {}
    for place in found:
        for name in faults_of(place):
            candidates.setdefault(name, []).append(place)
    # The fault first, then the place: rare faults would else hardly ever be drawn.
    fault = draw(st.sampled_from(sorted(candidates)))
    place = draw(st.sampled_from(candidates[fault]))
    value = faults_of(place)[fault]
    status: Status = "refused"
    if place.path == "$.meta.schema" and isinstance(value, float):
        status = "unknown_version"
    place.put(value)
    return Mutation(dump(line), fault, place.path, status)


def _may_lack(place: Place) -> bool:
    """Whether a key may be left out: that of an optional field, and the free keys of a record."""
    return place.shape.optional or place.free


@st.composite
def unknown_versions(draw: DrawFn) -> Mutation:
    """
    Lines of a header version that nobody knows yet.

    Returns:
        A line whose ``meta.schema`` is a number other than 1, 2 and 3, otherwise valid or not.
    """
    line = copy.deepcopy(draw(lines(plain=True)))
    meta = line["meta"]
    assert isinstance(meta, dict)
    meta["schema"] = draw(st.sampled_from([0, -1, 2.5, 4, 99, 10**15]))
    if draw(st.booleans()):
        meta[SURPLUS_KEY] = []
        del line["payload"]
    return Mutation(dump(line), "unknown version", "$.meta.schema", "unknown_version")


@st.composite
def broken_texts(draw: DrawFn) -> Mutation:
    """
    Text that is no JSON, or that holds what cannot be emitted.

    Returns:
        A valid line that was cut, spoiled or added to.
    """
    raw = dump(draw(lines(plain=True)))
    way = draw(st.sampled_from(["cut", "bytes", "surrogate", "nan", "behind", "before", "infinite", "deep"]))
    match way:
        case "cut":
            return Mutation(raw[: draw(st.integers(1, len(raw) - 1))], "cut short", "")
        case "bytes":
            wrong = draw(st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\xa7", b"\xc0\xaf"]))
            return Mutation(raw.replace(b'"doctrine":"', b'"doctrine":"' + wrong, 1), "not UTF-8", "")
        case "surrogate":
            lone = draw(st.sampled_from([b"\\ud83e", b"\\udd6f", b"\\ud83e\\ud83e", b"\\uDD6F\\uD83E"]))
            return Mutation(raw.replace(b'"doctrine":"', b'"doctrine":"' + lone, 1), "a lone surrogate", "")
        case "nan":
            word = draw(st.sampled_from([b"NaN", b"Infinity", b"undefined", b"01", b"+1", b".5", b"'x'"]))
            return Mutation(raw[:-1] + b',"duration_ms":' + word + b"}", "no JSON value", "")
        case "behind":
            return Mutation(
                raw + draw(st.sampled_from([b",", b"}", b"]", b" x", b"\x00"])), "more behind it", ""
            )
        case "before":
            return Mutation(
                draw(st.sampled_from([b"\xef\xbb\xbf", b"[", b"\x00", b",", b"x"])) + raw,
                "more before it",
                "",
            )
        case "infinite":
            return Mutation(raw[:-1] + b',"duration_ms":1e400}', "beyond double range", "$.duration_ms")
        case _:
            depth = draw(st.sampled_from([300, 1100, 100_000]))
            return Mutation(raw[:-1] + b',"x":' + b"[" * depth + b"]" * depth + b"}", "nested deep", "$.x")


def mutations() -> SearchStrategy[Mutation]:
    """
    Every kind of near-valid line.

    Returns:
        Lines of which none is an event.
    """
    return st.one_of(structural_mutations(), structural_mutations(), unknown_versions(), broken_texts())
