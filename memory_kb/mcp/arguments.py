"""Declare the arguments of tools in few words, and parse them leniently.

A guessed name or a number written as text is accepted; an invalid value is answered with the valid
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
#: What models call an argument, by the name it has here; the first argument of a tool that may be
#: meant, and is not given, is.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "text": ("content", "memory", "fact", "body", "learning", "note", "message", "value", "statement"),
    "query": ("q", "search", "question", "search_query", "keywords", "keyword", "term", "terms", "text"),
    "id": ("memory_id", "entry_id", "entry", "uuid", "identifier", "ref", "rule_id", "rule"),
    "ids": ("id", "entries", "items", "memory_ids", "entry_ids"),
    "kind": ("category", "memory_type", "type"),
    "type": ("task_type",),
    "limit": ("n", "k", "top_k", "topk", "max_results", "num_results", "count", "size", "results"),
    "max_chars": ("max_characters", "max_length", "chars"),
    "max_tokens": ("token_budget", "tokens", "token_limit", "budget"),
    "layer": ("layers", "memory_layer"),
    "title": ("name", "heading", "subject", "key"),
    "name": ("title", "skill", "skill_name", "procedure", "procedure_name", "workflow"),
    "tags": ("tag", "labels", "keywords"),
    "labels": ("label", "tags", "tag"),
    "priority": ("importance", "severity"),
    "applies_to": ("globs", "glob", "files", "paths", "file", "path"),
    "scope": ("level",),
    "source": ("origin", "provenance"),
    "file": ("path", "file_path", "filename", "filepath"),
    "files": ("file", "paths", "path", "file_paths"),
    "task": ("task_id", "task_description", "description", "goal", "prompt", "query", "objective", "text"),
    "agent": ("agent_id", "agent_name", "who"),
    "event": ("text", "content", "summary", "what", "description", "episode", "message"),
    "outcome": ("result", "status", "feedback"),
    "used": ("ids", "used_ids", "rules", "rules_used", "entries", "helpful"),
    "steps": ("step", "instructions", "actions", "procedure_steps"),
    "context": ("when", "description", "purpose", "trigger"),
    "description": ("desc", "summary", "purpose", "text", "content"),
    "template": ("prompt", "code", "snippet"),
    "dry_run": ("preview", "dryrun", "simulate"),
    "reason": ("why", "because", "comment"),
    "from_agent": ("from", "sender"),
    "to_agent": ("to", "receiver", "recipient"),
    "done": ("completed", "completed_work", "summary"),
    "known_issues": ("issues", "problems"),
    "artifacts": ("files", "outputs"),
    "goal": ("current_goal",),
    "completed": ("completed_tasks", "done"),
    "run": ("run_id", "id"),
    "session": ("session_id", "conversation_id"),
    "summary": ("text", "content"),
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


def hidden(names: str, **kinds: str) -> tuple[Argument, ...]:
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
    words = {"enum": list(argument.choices)}
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
    for name, meant in _resolve(arguments, present).items():
        value = _read(meant, present[name])
        if found.setdefault(meant.name, value) != value:
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


def _resolve(arguments: Sequence[Argument], given: Mapping[str, Any]) -> dict[str, Argument]:
    """Return which argument each given name means."""
    own = {one.name: one for one in arguments}
    exact = {name: own[_plain(name)] for name in given if _plain(name) in own}
    taken = {one.name for one in exact.values()}
    guessed: dict[str, Argument] = {}
    for name in given:
        if name in exact:
            continue
        meant = [one for one in arguments if _plain(name) in ALIASES.get(one.name, ())]
        free = next((one for one in meant if one.name not in taken), meant[0] if meant else None)
        if free is None:
            raise UsageError(f"there is no argument {_show(name)}", say_accepted(arguments))
        guessed[name] = free
    return {name: (exact | guessed)[name] for name in given}


def _plain(name: str) -> str:
    return _CAMEL.sub("_", name).replace("-", "_").replace(" ", "_").lower()


def _read(argument: Argument, value: Any) -> Any:
    kind = _KINDS[argument.kind]
    try:
        return kind.read(value)
    except ValueError as exc:
        raise UsageError(f"{argument.name} must be {kind.words}, not {_show(value)}") from exc


def _read_text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = "\n".join(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError  # noqa: TRY004 - `_read` says what was wrong
    return str(value)


def _read_number(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - `_read` says what was wrong
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
        try:
            is_fit = b"\0" not in text.encode()
        except UnicodeEncodeError:
            is_fit = False
        if not is_fit:
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
