"""The JSON Schema of the mapping language: what editors complete and check by."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import orjson
import pytest

from vinaya_bridge.mapping.json_schema import SCHEMA_FILE, json_schema
from vinaya_bridge.mapping.load import SHIPPED, shipped_mapping


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    return jsonschema.Draft202012Validator(json_schema())


def core() -> str:
    return shipped_mapping("core").read_text(encoding="utf-8")


def test_the_schema_beside_the_tables_is_the_one_that_the_definitions_give(repository: Path) -> None:
    written = (repository / "mappings" / SCHEMA_FILE).read_bytes()
    assert orjson.loads(written) == orjson.loads(orjson.dumps(json_schema()))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_table_is_valid_and_names_its_schema(
    name: str, validator: jsonschema.Draft202012Validator
) -> None:
    text = shipped_mapping(name).read_text(encoding="utf-8")
    assert text.startswith(f"#:schema ./{SCHEMA_FILE}\n")
    assert [error.message for error in validator.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("format = 1", "format = 2"),
        ("[rule.gate.summary]", "[rule.gate.sumary]"),
        ('payload.check = { excerpt = "$.check" }', 'payload.check = { excerpt = "$.chekc" }'),
        ('run = "dispatch"', 'run = "child"'),
        ('basis = "stated"', 'basis = "said"'),
        ("generic = []\nunmapped", "unmapped"),
        ('when = { "@line.starts_run" = true }', 'when = { "@line.begins" = true }'),
        ('payload.parentRunId = "@run.parent"', 'payload.parentRunId = "@run.father"'),
    ],
)
def test_a_fault_that_an_editor_can_mark_is_marked(
    old: str, new: str, validator: jsonschema.Draft202012Validator
) -> None:
    text = core()
    assert old in text
    assert not validator.is_valid(tomllib.loads(text.replace(old, new, 1)))
