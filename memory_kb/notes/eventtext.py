"""The texts inside of events, whatever shape they come in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

#: Deeper than this nothing is looked for in a JSON value.
_DEPTH = 40
#: A text is not cut for the sake of fewer characters than the mark of a cut has.
_MARK = 40


def printable_line(text: str) -> str:
    """Return a short name on one line.

    Example:
        >>> printable_line("a\\nb")
        'a b'
    """
    return " ".join(text[:400].encode("utf-8", "replace").decode().split())


def text_of(value: object, depth: int = 0) -> str:
    """Return the text of a message's content: words, or blocks of several kinds.

    Example:
        >>> text_of([{"type": "text", "text": "look"}, {"type": "image", "source": {}}])
        'look\\n[image]'
    """
    if isinstance(value, str):
        return value
    if value is None or depth > _DEPTH:
        return ""
    if isinstance(value, list):
        return "\n".join(filter(None, (text_of(item, depth + 1) for item in value)))
    if isinstance(value, dict):
        for name in ("text", "thinking", "content", "output"):
            if isinstance(value.get(name), str | list):
                return text_of(value[name], depth + 1)
        kind = value.get("type")
        if isinstance(kind, str) and ("image" in kind or kind in ("document", "audio")):
            return "[image]" if "image" in kind else f"[{kind}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def cut(text: str, limit: int) -> str:
    """Return head and tail of a text that is too long, saying what is missing.

    Example:
        >>> cut("a" * 190 + "z" * 10, 40)
        'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\\n[… 160 characters …]\\nzzzzzzzzzz'
    """
    if len(text) <= limit + _MARK:
        return text
    tail = limit // 4
    return f"{text[: limit - tail]}{missing(len(text) - limit)}{text[len(text) - tail :]}"


def missing(count: int) -> str:
    """Return what stands in a text for the characters that were cut out."""
    return f"\n[… {count:,} characters …]\n"


def strings_of(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts of a JSON value, without the names of its fields.

    Example:
        >>> list(strings_of({"command": "ls", "more": ["a", 1]}))
        ['ls', 'a']
    """
    if isinstance(value, str):
        yield value
    elif depth < _DEPTH and isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from strings_of(item, depth + 1)


def map_strings(value: Any, change: Callable[[str], str], depth: int = 0) -> Any:
    """Return a JSON value with every text in it changed."""
    if isinstance(value, str):
        return change(value)
    if depth < _DEPTH and isinstance(value, Mapping):
        return {name: map_strings(item, change, depth + 1) for name, item in value.items()}
    if depth < _DEPTH and isinstance(value, list):
        return [map_strings(item, change, depth + 1) for item in value]
    return value
