"""Declare the arguments of tools in few words, and parse them leniently.

A name in camel case or a number written as text is accepted; an invalid name or value is answered with the valid
ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field, TypeAdapter

from memory_kb.errors import UsageError
from memory_kb.text import load_json

#: The longest text of one call, in characters: more than any memory should have.
MAX_CHARACTERS = 200_000
_SHOWN = 60
_NUMBER: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(ge=-(10**12), le=10**12)])
_FLAG: TypeAdapter[bool] = TypeAdapter(bool)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNFIT = re.compile(r"[\0\ud800-\udfff]")
#: Other words for an argument, of which a tool has either the one or the other.
ALIASES: Mapping[str, str] = {
    "value": "text",
    "content": "text",
    "key": "title",
    "type": "kind",
    "tag": "tags",
    "q": "query",
    "top_k": "limit",
    "token_budget": "max_tokens",
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
    _check_texts(present)
    found: dict[str, Any] = {}
    own = {one.name: one for one in arguments}
    for name, value in present.items():
        plain = _CAMEL.sub("_", name).replace("-", "_").replace(" ", "_").lower()
        meant = own.get(plain) or own.get(ALIASES.get(plain, ""))
        if meant is None:
            raise UsageError(f"there is no argument {_show(name)}", say_accepted(arguments))
        kind = _KINDS[meant.kind]
        try:
            read = kind.read(value)
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


def _read_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = "\n".join(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError  # noqa: TRY004 - `read_arguments` says what was wrong
    return str(value)


def _read_number(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - `read_arguments` says what was wrong
    return _NUMBER.validate_python(value)


def _read_list(value: Any) -> list[str]:
    if isinstance(value, str):
        value = _parse_list(value)
    if not isinstance(value, list):
        value = [value]
    return [text for one in value if (text := _read_text(one).strip())]


def _parse_list(text: str) -> list[Any]:
    """Return a list that was written as one text: as JSON, as lines, or between commas.

    Example:
        >>> _parse_list('["a", "b"]'), _parse_list("a, b"), _parse_list("Tag, then push.\\nTell people.")
        (['a', 'b'], ['a', 'b'], ['Tag, then push.', 'Tell people.'])
    """
    if text.lstrip().startswith("["):
        try:
            parsed = load_json(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, list):
            return parsed
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return list(lines)
    return [text] if len(text) > 200 or ". " in text else [part.strip() for part in text.split(",")]


class _Kind(NamedTuple):
    """A kind of argument: its JSON Schema, what it is in words, and how it is read."""

    schema: Mapping[str, Any]
    words: str
    read: Callable[[Any], Any]


_KINDS = {
    "text": _Kind({"type": "string"}, "a text", _read_text),
    "number": _Kind({"type": "integer"}, "a whole number", _read_number),
    "flag": _Kind({"type": "boolean"}, "true or false", _FLAG.validate_python),
    "list": _Kind({"type": "array", "items": {"type": "string"}}, "a list of texts", _read_list),
}


def _check_texts(value: Any) -> None:
    """Refuse what no note can hold, however deep it is."""
    size = 0
    for text in _texts(value):
        size += len(text)
        if _UNFIT.search(text):
            problem = "there is a NUL character or half of a surrogate pair in the arguments, which no note can hold"
            raise UsageError(problem, "leave it out")
    if size > MAX_CHARACTERS:
        hint = "keep the text in a file, and say what matters"
        raise UsageError(f"the arguments have {size:,} characters; at most {MAX_CHARACTERS:,} are read", hint)


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts of a value, its names among them."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting.extend((*one.keys(), *one.values()))
        elif isinstance(one, list):
            waiting.extend(one)


def _show(value: Any) -> str:
    """Return a value as part of a sentence, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
