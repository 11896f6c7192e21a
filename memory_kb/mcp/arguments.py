"""Declare the arguments of tools in few words, and parse them leniently.

A name in camel case or a number written as text is accepted; an invalid name or value is answered with the valid
ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter

from memory_kb.errors import UsageError
from memory_kb.text import load_json

#: The longest text of one call, in characters: more than any memory should have.
MAX_CHARACTERS = 200_000
_SHOWN = 60
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Other words for an argument, of which a tool has either the one or the other.
ALIASES: Mapping[str, str] = {
    "value": "text",
    "content": "text",
    "key": "title",
    "type": "kind",
    "tag": "tags",
    "q": "query",
    "top_k": "limit",
    "layers": "layer",
    "path": "file",
    "memory_id": "id",
    "task_description": "task",
    "agent_id": "agent",
    "session_id": "session",
}


class Argument(NamedTuple):
    """One argument of a tool.

    Attributes:
        kind: `text`, `number`, `flag` or `list`.
        is_hidden: accepted but not declared, which saves tokens.
        instead: arguments that a call may give in the place of one that is required.
        choices: the words that it usually takes.
    """

    name: str
    description: str = ""
    kind: str = "text"
    is_required: bool = False
    is_hidden: bool = False
    instead: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


def hidden(names: str = "", **kinds: str) -> tuple[Argument, ...]:
    """Return arguments that are accepted and not declared: texts, and others by their kind."""
    both = dict.fromkeys(names.split(), "text") | kinds
    return tuple(Argument(name, kind=kind, is_hidden=True) for name, kind in both.items())


def declared(names: str = "", **kinds: str) -> tuple[Argument, ...]:
    """Return arguments that need no description: texts, and others by their kind."""
    return tuple(one._replace(is_hidden=False) for one in hidden(names, **kinds))


def chosen(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of some arguments that were given and are not empty."""
    return {name: given[name] for name in names if given.get(name)}


def make_schema(arguments: Iterable[Argument]) -> dict[str, Any]:
    """Return the JSON Schema of what a tool takes.

    Example:
        >>> make_schema([Argument("query", "Words."), Argument("limit", kind="number", is_hidden=True)])
        {'type': 'object', 'properties': {'query': {'type': 'string', 'description': 'Words.'}}}
    """
    shown = [one for one in arguments if not one.is_hidden]
    properties = {
        one.name: {**_schema(one), **({"description": one.description} if one.description else {})} for one in shown
    }
    required = [one.name for one in shown if one.is_required]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _schema(argument: Argument) -> Mapping[str, Any]:
    if not argument.choices:
        return _KINDS[argument.kind].schema
    # Models of Gemini refuse every tool of a session where a list of words lacks its type.
    words = {"type": "string", "enum": list(argument.choices)}
    return {"type": "array", "items": words} if argument.kind == "list" else words


def read_arguments(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a call gives, by the tool's own names; what is null or not given is left out.

    Example:
        >>> words = (Argument("query", is_required=True), Argument("limit", kind="number"))
        >>> read_arguments(words, {"q": "flaky tests", "topK": "3"})
        {'query': 'flaky tests', 'limit': 3}
    """
    present = {name: value for name, value in given.items() if value is not None}
    size = len(json.dumps(present, ensure_ascii=False))
    if size > MAX_CHARACTERS:
        hint = "keep the text in a file, and say what matters"
        raise UsageError(f"the arguments have {size:,} characters; at most {MAX_CHARACTERS:,} are read", hint)
    found: dict[str, Any] = {}
    own = {one.name: one for one in arguments}
    for name, value in present.items():
        plain = _CAMEL.sub("_", name).lower()
        meant = own.get(plain) or own.get(ALIASES.get(plain, ""))
        if meant is None:
            raise UsageError(f"there is no argument {_show(name)}", say_accepted(arguments))
        kind = _KINDS[meant.kind]
        try:
            read = kind.reader.validate_python(value)
        except ValueError as exc:
            raise UsageError(f"{meant.name} must be {kind.words}, not {_show(value)}") from exc
        if found.setdefault(meant.name, read) != read:
            raise UsageError(f"{meant.name} is given twice, also as {_show(name)}", "give it once")
    given_names = {name for name, value in found.items() if value not in ("", [])}
    missing = [one.name for one in arguments if one.is_required and given_names.isdisjoint((one.name, *one.instead))]
    if missing:
        raise UsageError(f"{missing[0]} is missing", say_accepted(arguments))
    return found


def say_accepted(arguments: Sequence[Argument]) -> str:
    """Return what a tool takes, in words."""
    described = [f"{one.name} ({_KINDS[one.kind].words}{', required' if one.is_required else ''})" for one in arguments]
    return f"it takes {', '.join(described) or 'no arguments'}"


def _split_list(value: object) -> object:
    """Return a list that was written as one text: as JSON, as lines, or between commas; a single value as a list.

    Sentences are not cut at their commas.

    Example:
        >>> _split_list('["a", "b"]'), _split_list("a, b"), _split_list("Tag it. Then, push.\\nTell people.")
        (['a', 'b'], ['a', ' b'], ['Tag it. Then, push.', 'Tell people.'])
    """
    if not isinstance(value, str):
        return value if isinstance(value, list) else [value]
    try:
        parsed = load_json(value)
    except ValueError:
        parsed = None
    if isinstance(parsed, list):
        return parsed
    return value.splitlines() if "\n" in value.strip() or ". " in value else value.split(",")


def _without_blanks(words: list[str]) -> list[str]:
    return [bare for word in words if (bare := word.strip())]


class _Kind(NamedTuple):
    """A kind of argument: its JSON Schema, what it is in words, and how it is read."""

    schema: Mapping[str, Any]
    words: str
    reader: TypeAdapter[Any]


_LENIENT = ConfigDict(coerce_numbers_to_str=True)
_KINDS = {
    "text": _Kind({"type": "string"}, "a text", TypeAdapter(str, config=_LENIENT)),
    "number": _Kind({"type": "integer"}, "a whole number", TypeAdapter(int)),
    "flag": _Kind({"type": "boolean"}, "true or false", TypeAdapter(bool)),
    "list": _Kind(
        {"type": "array", "items": {"type": "string"}},
        "a list of texts",
        TypeAdapter(
            Annotated[list[str], BeforeValidator(_split_list), AfterValidator(_without_blanks)], config=_LENIENT
        ),
    ),
}


def _show(value: Any) -> str:
    """Return a value as part of a sentence, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
