"""Hypothesis strategies for payloads and drafts, read off the vocabulary."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from ethogram.envelope import EventDraft
from ethogram.json_text import Json
from ethogram.vocabulary import EVENT_TYPES, MAX_SAFE_INTEGER, Field, FieldKind

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.one_of(
    st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER),
    st.floats(-1e15, 1e15, allow_nan=False),
    st.sampled_from([-0.0, 1e-7, 1.5e-6, 1e-6, 1e-5, 5e-324, 0.09765190000000001, 33.333333333333336]),
)
json_values: SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def field_values(field: Field) -> SearchStrategy[Json]:
    """Values that fit a field and every rule about it that is not about other fields."""
    match field.kind:
        case FieldKind.UNION:
            return st.sampled_from(field.members)
        case FieldKind.BOOLEAN:
            return st.booleans()
        case FieldKind.NUMBER:
            return numbers
        case FieldKind.COUNT:
            return st.integers(0, MAX_SAFE_INTEGER)
        case FieldKind.OBJECT:
            return objects(field)
        case FieldKind.LIST:
            assert field.item is not None
            return st.lists(field_values(field.item), max_size=3)
        case _:
            return texts


@st.composite
def objects(draw: st.DrawFn, field: Field) -> Json:
    """Objects with each required field, some of the others, and unknown fields beside them."""
    value: dict[str, Json] = draw(st.dictionaries(texts.map("x-{}".format), json_values, max_size=2))
    for inner in field.fields:
        if inner.required or draw(st.booleans()):
            value[inner.name] = draw(field_values(inner))
    return value


@st.composite
def drafts(draw: st.DrawFn) -> EventDraft:
    """Drafts of known types and of open ones that every sink takes."""
    captured_at = draw(st.none() | texts)
    name = draw(st.sampled_from([*EVENT_TYPES, "x.open"]))
    if name not in EVENT_TYPES:
        return EventDraft(name, draw(json_values), captured_at)
    payload = draw(objects(EVENT_TYPES[name].payload))
    assert isinstance(payload, dict)
    # The two policies that span fields.
    payload.pop("onTimeout", None)
    if payload.get("kind") == "steer":
        payload["text"] = "go on"
    return EventDraft(name, payload, captured_at)
