"""
The mapping language as a JSON Schema, for editors: it completes keys, events, paths and types, and marks faults.

It is made from the definitions that the checker uses. It knows less than the checker: what fits what is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ethogram.vocabulary import EVENT_TYPES
from vinaya_bridge.log.families import FAMILIES as LOG_EVENTS
from vinaya_bridge.log.shapes import paths, schemas_of
from vinaya_bridge.mapping.compile import ENGINE_CONDITIONS
from vinaya_bridge.mapping.families import FAMILIES
from vinaya_bridge.mapping.lint_terms import ENGINE_VALUES
from vinaya_bridge.mapping.reading import BASES, RUNS
from vinaya_bridge.mapping.table import FORMAT_VERSION

Json = dict[str, object]

SCHEMA_FILE = "mapping.schema.json"
"""Where the schema lies: beside the mappings that refer to it."""

_SCALAR: Json = {"type": ["string", "number", "boolean"]}
_WORD: Json = {"type": "string", "minLength": 1}
_LITERAL_TEXT: Json = {"type": "string", "not": {"pattern": "^[$@]"}}


def json_schema() -> Json:
    """
    Make the schema.

    Returns:
        A JSON Schema, draft 2020-12.
    """
    kinds: dict[str, Json] = {}
    known = {name: _paths(*name) for name in LOG_EVENTS}
    # Custom events have one header schema only, which has all the fields that the others have.
    shared = set.intersection(*known.values())
    definitions: dict[str, Json] = {
        "literal": {"$comment": "any value that JSON has"},
        "path": {"enum": sorted(shared)},
    }
    for kind, event in LOG_EVENTS:
        name = f"{kind}.{event}"
        own = sorted(known[kind, event] - shared)
        inside: list[Json] = [
            {"pattern": "^" + re.escape(path) + r"\.[a-z0-9_-]+$"} for path in _records(kind, event)
        ]
        definitions[f"{name}.path"] = {"anyOf": [{"enum": own}, {"$ref": "#/$defs/path"}, *inside]}
        definitions[f"{name}.term"] = _term(name)
        definitions[f"{name}.rule"] = _rule(name)
        events = kinds.setdefault(kind, _object({}, f"the family {kind} of the Log"))
        properties = events["properties"]
        assert isinstance(properties, dict)  # noqa: S101  made just above
        properties[event] = {"$ref": f"#/$defs/{name}.rule"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vinaya-bridge mapping",
        "description": "What becomes of each event of the Vinaya Log.",
        **_object(
            {
                "format": {"const": FORMAT_VERSION, "description": "the version of the mapping language"},
                "drop": _drop("fields that no rule has to carry, each with the reason"),
                "lookup": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "additionalProperties": _SCALAR},
                    "description": "lookups with a name, each from member to value",
                },
                "rule": _object(dict(kinds), "one rule an event: rule.KIND.EVENT"),
            },
            "a mapping",
            required=["format"],
        ),
        "$defs": definitions,
    }


def _paths(kind: str, event: str) -> set[str]:
    return {path for schema in schemas_of(kind, event) for path in paths(kind, event, schema)}


def _records(kind: str, event: str) -> list[str]:
    """The paths below which there are keys that lines choose."""
    known = {
        path: info for schema in schemas_of(kind, event) for path, info in paths(kind, event, schema).items()
    }
    return [path for path, info in known.items() if info.type == "record"]


def _object(properties: dict[str, object], description: str, *, required: Sequence[str] = ()) -> Json:
    found: Json = {"type": "object", "description": description, "properties": properties}
    found["additionalProperties"] = False
    return {**found, "required": list(required)} if required else found


def _drop(description: str) -> Json:
    return {
        "type": "object",
        "description": description,
        "propertyNames": {"pattern": r"^\$\."},
        "additionalProperties": _WORD,
    }


def _when(name: str, *, may_ask: bool) -> Json:
    literals: Json = {"anyOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]}
    negated = _object({"not": literals}, "none of these", required=["not"])
    values: Json = {"anyOf": [literals, negated]}
    questions = list(ENGINE_CONDITIONS) if may_ask else []
    return {
        "type": "object",
        "description": "conditions that all hold: a path equals one of some literals, or the engine says so",
        "propertyNames": {"anyOf": [{"$ref": f"#/$defs/{name}.path"}, {"enum": questions}]},
        "additionalProperties": values,
    }


def _rule(name: str) -> Json:
    path = {"$ref": f"#/$defs/{name}.path"}
    family = _object(
        {
            "family": {"enum": sorted(FAMILIES)},
            "basis": {"enum": list(BASES)},
            "when": _when(name, may_ask=False),
        },
        "a generic family of the process contract",
        required=["family", "basis"],
    )
    reason: Json = {"anyOf": [path, _LITERAL_TEXT]}
    unknown = _object(
        {"of": path, "reason": {"anyOf": [reason, {"type": "array", "items": reason, "minItems": 1}]}},
        "why a figure is not known where its source is null or absent",
        required=["of", "reason"],
    )
    emit = _object(
        {
            "run": {"enum": list(RUNS), "description": "the run that the event goes to"},
            "type": {
                "description": "the event's type",
                "anyOf": [{"enum": list(EVENT_TYPES)}, {"pattern": r"^[a-z][a-z0-9_]*\.", "type": "string"}],
            },
            "when": _when(name, may_ask=True),
            "payload": {
                "type": "object",
                "description": "the event's payload, field by field",
                "additionalProperties": {"$ref": f"#/$defs/{name}.term"},
            },
        },
        "an event that a line gives",
        required=["run", "type", "payload"],
    )
    rule = _object(
        {
            "generic": {"type": "array", "items": family},
            "emit": {"type": "array", "items": emit, "minItems": 1},
            "unmapped": {**_WORD, "description": "why the event gives nothing"},
            "drop": _drop("fields of this event that are not carried, each with the reason"),
            "unknown": {"type": "object", "additionalProperties": unknown},
        },
        f"what becomes of {name}",
        required=["generic"],
    )
    return {**rule, "oneOf": [{"required": ["emit"]}, {"required": ["unmapped"]}]}


def _term(name: str) -> Json:
    path = {"$ref": f"#/$defs/{name}.path"}
    term = {"$ref": f"#/$defs/{name}.term"}
    bound: Json = {"type": "integer", "minimum": 1, "description": "the most characters kept"}
    table: Json = {"type": "object", "additionalProperties": _SCALAR}
    forms: dict[str, dict[str, object]] = {
        "literal": {"literal": {"$ref": "#/$defs/literal"}},
        "lookup": {"lookup": path, "in": {"anyOf": [_WORD, table]}},
        "template": {"template": {"type": "string"}, "max": bound},
        "excerpt": {"excerpt": path, "max": bound, "flag": _WORD},
        "round": {"round": path},
        "count": {"count": path, "text": _WORD},
    }
    needed = {"lookup": ["lookup", "in"]}
    alternatives: list[Json] = [
        {"description": "a field of the line", **path},
        {"enum": list(ENGINE_VALUES), "description": "a value that only the engine knows"},
        {**_LITERAL_TEXT, "description": "text, the same on every line"},
        {"type": ["number", "boolean"]},
        {"type": "array", "items": term, "minItems": 1, "description": "the first one present"},
        *(_object(keys, form, required=needed.get(form, [form])) for form, keys in forms.items()),
        {
            "type": "object",
            "description": "an object of the payload",
            "propertyNames": {"not": {"enum": list(forms)}},
            "additionalProperties": term,
        },
    ]
    return {"anyOf": alternatives}
