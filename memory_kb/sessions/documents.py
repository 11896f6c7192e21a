"""Read a transcript that is one JSON object, one message at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from memory_kb.sessions.transcripts import MAX_RECORD, LineResult, RawLine
from memory_kb.store.json_arrays import iterate

_MESSAGES = re.compile(r'"messages"\s*:\s*\[')


def open_document(lines: Iterable[RawLine]) -> tuple[str, Iterator[dict[str, Any] | LineResult]]:
    """Return the text up to and including the first lines of the array `messages`, and an iterator over its elements.

    An element that is no object, or a text that is not valid JSON, is yielded as a problem.

    Example:
        >>> head, messages = open_document([b'{"sessionId": "s",', b'"messages": [{"id": 1}]}'])
        >>> field_of(head, "sessionId"), list(messages)
        ('s', [{'id': 1}])
    """
    texts = _texts(lines)
    head = ""
    for text in texts:
        head += text
        if _MESSAGES.search(text) or len(head) > MAX_RECORD:
            break
    return head, _elements(chain([head], texts))


def _texts(lines: Iterable[RawLine]) -> Iterator[str]:
    """Yield the lines as text from the first that opens an object; a program may have printed something before."""
    is_open = False
    for line in lines:
        text = (line or b"").decode("utf-8", "replace")
        is_open = is_open or text.lstrip("\ufeff \t").startswith("{")
        if is_open:
            yield text


def _elements(texts: Iterable[str]) -> Iterator[dict[str, Any] | LineResult]:
    for element in iterate(texts, ("messages",), MAX_RECORD):
        if element.wrong:
            yield LineResult(problem=element.wrong, line=1)
        elif isinstance(element.value, dict):
            yield element.value


def field_of(head: str, name: str) -> Any:
    """Return the value of the first field of a name in the text of a JSON object, or None."""
    found = re.search(rf'"{re.escape(name)}"\s*:\s*', head)
    if not found:
        return None
    try:
        return json.JSONDecoder().raw_decode(head, found.end())[0]
    except (ValueError, RecursionError):
        return None
