"""Remove what a person marks as `<private>…</private>` before it is logged, stored or sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memory_kb.lazy_regex import lazy_regex

_TAG = lazy_regex(r"<(/?)private(?:\s[^<>]*)?>", re.IGNORECASE)
#: What is in the index for text that a note keeps for its readers.
MARK = "[private]"


def cut_private(text: str) -> str:
    """Return a text without its private parts, in code and elsewhere; one that is never closed ends with the text.

    Example:
        >>> cut_private("Ask <private>Ann, her number is 5</private>the lead."), cut_private("a <PRIVATE> b")
        ('Ask the lead.', 'a ')
    """
    for start, end in reversed(list(_spans(text))):
        text = text[:start] + text[end:]
    return text


def mask_private(text: str) -> str:
    """Return a text of the same length and lines with its private parts blank.

    Example:
        >>> mask_private("Ask <private>Ann</private>.")
        'Ask [private]             .'
    """
    for start, end in reversed(list(_spans(text))):
        blank = re.sub(r"[^\r\n]", " ", text[start + len(MARK) : end])
        text = f"{text[:start]}{MARK}{blank}{text[end:]}"
    return text


def cut_private_values(value: Any) -> Any:
    """Return lists and mappings with the private parts of their texts cut.

    Example:
        >>> cut_private_values({"done": ["a<private>b</private>"], "count": 1})
        {'done': ['a'], 'count': 1}
    """
    if isinstance(value, str):
        return cut_private(value)
    if isinstance(value, Mapping):
        return {cut_private(str(name)): cut_private_values(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(cut_private_values, value)) if type(value) in (list, tuple) else value
    return value


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the private parts are, the outermost of nested ones."""
    depth = start = 0
    for tag in _TAG.finditer(text) if "<" in text else ():
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                yield start, tag.end()
    if depth:
        yield start, len(text)
