"""The record classes say what the Log's reference says, and describe themselves as data."""

from __future__ import annotations

import json
import keyword
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from vinaya_bridge.log.families import FAMILIES, KINDS
from vinaya_bridge.log.header import HEADERS, Subject
from vinaya_bridge.log.rules import ABSENT, attribute_name, json_name
from vinaya_bridge.log.shapes import PathInfo, Shape, fields_of, paths, schemas_of

SHARED_BY_ALL = {"meta", "subject", "kind", "event"}
SPELLINGS = {"list": "array", "any": "anyof"}
RULES = {
    "min": "minimum",
    "max": "maximum",
    "pat": "pattern",
    "minu": "min_units",
    "maxu": "max_units",
    "maxn": "max_items",
}


def spelled(shape: Shape) -> dict[str, Any]:
    """A shape in the words of the reference's own data."""
    found: dict[str, Any] = {"t": SPELLINGS.get(shape.kind, shape.kind)}
    for word, name in RULES.items():
        if getattr(shape.rule, name):
            found[word] = getattr(shape.rule, name)
        elif name == "minimum" and shape.rule.minimum == 0:
            found[word] = 0
    if shape.nullable:
        found["null"] = True
    if shape.optional:
        found["opt"] = True
    match shape.kind:
        case "enum":
            found["members"] = list(shape.members)
        case "literal":
            found["value"] = shape.members[0]
        case "list" if shape.item is not None:
            found["items"] = spelled(shape.item)
        case "record" if shape.item is not None and shape.key is not None:
            found["key"], found["value"] = spelled(shape.key), spelled(shape.item)
        case "any":
            found["of"] = [spelled(choice) for choice in shape.choices]
        case "object" if len(shape.classes) == 1:
            found["fields"] = spelled_fields(shape.classes[0])
        case "object":
            found["t"], found["tag"] = "tagged", "type"
            found["variants"] = {
                fields_of(cls)["type"].members[0]: spelled_fields(cls, without={"type"})
                for cls in shape.classes
            }
    return found


def spelled_fields(cls: type[attrs.AttrsInstance], without: set[str] = frozenset()) -> dict[str, Any]:  # type: ignore[assignment]
    return {json_name(name): spelled(shape) for name, shape in fields_of(cls).items() if name not in without}


def without_finite(value: Any) -> Any:
    """The reference's data less its mark for finite numbers: here no number may be infinite."""
    if isinstance(value, dict):
        return {key: without_finite(item) for key, item in value.items() if key != "finite"}
    return [without_finite(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def reference(shared: Path) -> dict[str, Any]:
    data: dict[str, Any] = without_finite(json.loads((shared / "vinaya" / "fields.json").read_bytes()))
    return data


def test_the_three_headers_are_those_of_the_reference(reference: Mapping[str, Any]) -> None:
    assert {str(number): spelled_fields(cls) for number, cls in HEADERS.items()} == reference["meta"]


def test_the_subject_is_that_of_the_reference(reference: Mapping[str, Any]) -> None:
    assert spelled_fields(Subject) == reference["subject"]


def test_every_event_has_the_fields_of_the_reference_and_no_other(reference: Mapping[str, Any]) -> None:
    wanted = {
        (kind, event): reference["tail"] | fields
        for kind, family in reference["families"].items()
        for event, fields in family["events"].items()
    }
    assert {key: spelled_fields(cls, without=SHARED_BY_ALL) for key, cls in FAMILIES.items()} == wanted


def test_every_event_is_valid_under_the_schemas_of_the_reference(reference: Mapping[str, Any]) -> None:
    wanted = {kind: tuple(family.get("schemas", [1, 2, 3])) for kind, family in reference["families"].items()}
    assert {(kind, event): schemas_of(kind, event) for kind, event in FAMILIES} == {
        (kind, event): wanted[kind] for kind, event in FAMILIES
    }


def test_there_are_ten_families_and_32_events() -> None:
    assert (len(KINDS), len(FAMILIES)) == (10, 32)


def test_every_record_class_names_its_own_kind_and_event() -> None:
    for (kind, event), cls in FAMILIES.items():
        shapes = fields_of(cls)
        assert (shapes["kind"].members, shapes["event"].members) == ((kind,), (event,))


def test_an_event_that_does_not_exist_has_no_schema_and_no_path() -> None:
    assert schemas_of("command", "completed") == ()
    assert dict(paths("command", "completed", 3)) == {}
    assert dict(paths("custom", "recorded", 2)) == {}


def test_attribute_and_key_name_each_other() -> None:
    for cls in (*FAMILIES.values(), *HEADERS.values()):
        for name in fields_of(cls):
            assert attribute_name(json_name(name)) == name
            assert not keyword.iskeyword(name)


def test_an_absent_field_is_not_a_null_one() -> None:
    shape = fields_of(FAMILIES["operation", "completed"])
    assert shape["duration_ms"].optional
    assert not shape["duration_ms"].nullable
    assert shape["target"].nullable
    assert not shape["target"].optional
    assert ABSENT is not None


def test_paths_of_a_schema_have_the_keys_of_its_header_alone() -> None:
    first, second, third = (
        {path for path in paths("gate", "summary", schema) if path.startswith("$.meta.")}
        for schema in (1, 2, 3)
    )
    assert second - first >= {"$.meta.event_id", "$.meta.lineage.run"}
    assert third - second == {
        "$.meta.work",
        "$.meta.work.ref",
        "$.meta.work.repo",
        "$.meta.work.change",
        "$.meta.work.revision",
        "$.meta.flow",
        "$.meta.flow.id",
        "$.meta.flow.version",
        "$.meta.runtime",
        "$.meta.source",
    }


@pytest.mark.parametrize(
    ("kind", "event", "path", "expected"),
    [
        ("handoff", "raised", "$.class", PathInfo("enum", members=("authority", "strategy", "product"))),
        ("gate", "summary", "$.meta.schema", PathInfo("literal", members=(3,))),
        ("gate", "checked", "$.reason", PathInfo("string", optional=True, free_text=True)),
        ("gate", "checked", "$.check_version", PathInfo("string", nullable=True, free_text=True)),
        ("dispatch", "dispatched", "$.effect_id", PathInfo("string")),
        ("dispatch", "outcome_received", "$.usage.input", PathInfo("number", optional=True, minimum=0)),
        ("dispatch", "outcome_received", "$.outcome.pr", PathInfo("int", optional=True)),
        (
            "dev_review_loop",
            "gate_result_read",
            "$.confidence_reason",
            PathInfo("string", optional=True, max_units=280, free_text=True),
        ),
        (
            "dev_review_loop",
            "gate_result_read",
            "$.confidence_value",
            PathInfo("int", optional=True, minimum=0, maximum=100),
        ),
        (
            "operation",
            "completed",
            "$.field_names",
            PathInfo("list", optional=True, item=PathInfo("string", max_units=64, free_text=True)),
        ),
        ("custom", "recorded", "$.fields", PathInfo("record", item=PathInfo("any"))),
    ],
)
def test_a_path_tells_what_is_there(kind: str, event: str, path: str, expected: PathInfo) -> None:
    assert paths(kind, event, 3)[path] == expected


def test_the_type_of_an_outcome_is_one_of_all_of_them() -> None:
    info = paths("dispatch", "outcome_received", 3)["$.outcome.type"]
    assert (info.type, len(info.members), info.optional) == ("enum", 8, False)
