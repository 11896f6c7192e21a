"""The list of fields as a JSON Schema, for editors that check YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_kb.notes.fieldlist import FIELDS, Field

_TEXT = {"type": ["string", "number", "boolean", "null"]}
_WORDS = {
    "anyOf": [
        {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "maxItems": 200},
        {"type": ["string", "null"]},
    ]
}
_DAY = {"type": ["string", "null"], "pattern": r"^\s*\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])($|[T\s])"}
_FORMS: Mapping[str, Mapping[str, Any]] = {
    "text": _TEXT,
    "words": _WORDS,
    "number": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
    "count": {"type": ["integer", "null"], "minimum": 0, "maximum": 1_000_000_000},
    "day": _DAY,
    "flag": {"type": ["boolean", "null"]},
    "any": {},
}


def frontmatter_schema() -> dict[str, Any]:
    """Return the JSON Schema of the frontmatter of an entry; what it does not name is free.

    Example:
        >>> frontmatter_schema()["properties"]["domain"]["anyOf"][0]
        {'enum': ['task', 'team']}
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "memory-kb entry",
        "description": "The frontmatter of a memory. Every field is optional, and others may stand beside these.",
        "type": ["object", "null"],
        "properties": {name: {"description": field.about, **_shape(field)} for name, field in FIELDS.items()},
        "additionalProperties": True,
    }


def _shape(field: Field) -> dict[str, Any]:
    if field.form == "choice":
        return {"anyOf": [{"enum": list(field.choices)}, {"type": "null"}]}
    if field.form == "links":
        relation = {"enum": list(field.choices)}
        item = {
            "type": "object",
            "required": ["to", "relation"],
            "properties": {"to": {"type": ["string", "number"]}, "relation": relation},
        }
        return {"type": ["array", "null"], "items": {"anyOf": [item, {"type": "string"}]}}
    if field.form == "cites":
        item = {
            "type": "object",
            "required": ["ref"],
            "properties": {name: {"type": "string"} for name in ("ref", "hash", "lines", "commit")},
        }
        return {
            "anyOf": [{"type": "array", "items": {"anyOf": [item, {"type": "string"}]}}, {"type": ["string", "null"]}]
        }
    shape = dict(_FORMS[field.form])
    if not field.choices:
        return shape
    if field.form == "words":
        return {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [{"enum": list(field.choices)}, _TEXT]}},
                {"type": ["string", "null"]},
            ]
        }
    return {"anyOf": [{"enum": list(field.choices)}, shape]}
