"""Forms: the JSON schemas a language model fills in, and whether it did.

Providers enforce different parts of JSON Schema; what comes back is checked here against the
parts that we use: objects, arrays, texts, numbers, truth values, null and enums.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (Mapping,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


class Misfilled(Exception):
    """An answer that does not fit the form; the message says where."""


def read_form(text: str, schema: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the object that a model wrote, if it fits the schema.

    Example:
        >>> text = {"type": "string"}
        >>> read_form('```json\\n{"title": "x", "note": null}\\n```', {"type": "object", "properties": {"title": text, "note": text}})
        {'title': 'x'}

    Raises:
        Misfilled: it does not.
    """
    fenced = _FENCED.search(text)
    try:
        value = json.loads(fenced[1] if fenced and not text.lstrip().startswith("{") else text)
    except ValueError as exc:
        raise Misfilled("the answer is no JSON" if text.strip() else "the answer is empty") from exc
    value = _without_nulls(value, schema)
    wrong = find_mistake(value, schema)
    if wrong is not None:
        raise Misfilled(wrong)
    if not isinstance(value, dict):
        raise Misfilled("the answer is no object")
    return value


def find_mistake(value: object, schema: Mapping[str, Any], where: str = "the answer") -> str | None:
    """Return what is wrong with a value, or None.

    Example:
        >>> find_mistake({"tags": ["a", 1]}, {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}})
        'the answer.tags[1] is no string'
    """
    if "enum" in schema:
        return (
            None
            if any(value == option and type(value) is type(option) for option in schema["enum"])
            else f"{where} is none of {schema['enum']}"
        )
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else names
    if names and not any(_is_of(value, name) for name in names):
        return f"{where} is no {' or '.join(names)}"
    if isinstance(value, Mapping):
        return _find_in_object(value, schema, where)
    if isinstance(value, list):
        return _find_in_array(value, schema, where)
    if isinstance(value, str):
        return _find_in_size(len(value), schema, "minLength", "maxLength", f"{where} has {{}} characters")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _find_in_size(value, schema, "minimum", "maximum", f"{where} is {{}}")
    return None


def _is_of(value: object, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name]) or (name == "integer" and isinstance(value, float) and value.is_integer())


def _find_in_object(value: Mapping[str, object], schema: Mapping[str, Any], where: str) -> str | None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{where} lacks {missing[0]}"
    for name, part in value.items():
        if name not in properties:
            if schema.get("additionalProperties", False) is False:
                return f"{where} has an unknown field {name[:40]!r}"
            continue
        wrong = find_mistake(part, properties[name], f"{where}.{name}")
        if wrong is not None:
            return wrong
    return None


def _find_in_array(value: list[object], schema: Mapping[str, Any], where: str) -> str | None:
    wrong = _find_in_size(len(value), schema, "minItems", "maxItems", f"{where} has {{}} items")
    for position, item in enumerate(value if wrong is None else ()):
        wrong = wrong or find_mistake(item, schema.get("items", {}), f"{where}[{position}]")
    return wrong


def _find_in_size(size: float, schema: Mapping[str, Any], least: str, most: str, phrase: str) -> str | None:
    if size < schema.get(least, size):
        return f"{phrase.format(size)}, fewer than {schema[least]}"
    if size > schema.get(most, size):
        return f"{phrase.format(size)}, more than {schema[most]}"
    return None


def strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema as strict providers want it: all fields required, no others allowed.

    A field that may be left out may be null instead; `read_form` takes that back.

    Example:
        >>> strict({"type": "object", "properties": {"a": {"type": "string"}}})["properties"]
        {'a': {'type': ['string', 'null']}}
    """
    closed = dict(schema)
    if "items" in closed:
        closed["items"] = strict(closed["items"])
    if "properties" in closed:
        required = closed.get("required", ())
        closed["properties"] = {
            name: _nullable(strict(part), name in required) for name, part in closed["properties"].items()
        }
        closed["required"] = list(closed["properties"])
        closed["additionalProperties"] = False
    return closed


def _nullable(schema: dict[str, Any], is_required: bool) -> dict[str, Any]:  # noqa: FBT001 - private
    if is_required:
        return schema
    names = schema.get("type", [])
    names = [names] if isinstance(names, str) else list(names)
    changed = schema | {"type": [*names, "null"]} if names and "null" not in names else schema
    return changed | {"enum": [*schema["enum"], None]} if "enum" in schema and None not in schema["enum"] else changed


def _without_nulls(value: Any, schema: Mapping[str, Any]) -> Any:
    """Leave out the fields that are null because they could not be left out."""
    if isinstance(value, dict):
        properties, required = schema.get("properties", {}), schema.get("required", ())
        return {
            name: _without_nulls(part, properties.get(name, {}))
            for name, part in value.items()
            if part is not None
            or name in required
            or name not in properties
            or find_mistake(None, properties[name]) is None
        }
    if isinstance(value, list):
        return [_without_nulls(item, schema.get("items", {})) for item in value]
    return value
