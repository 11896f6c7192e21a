"""Reject by form what nobody would keep: fragments, status lines, orders for now, text without a subject."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_kb.text import has_cjk

#: The fewest words of a statement, and the fewest beside paths and addresses.
_WORDS, _OTHER_WORDS = 3, 2
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_NAMED = re.compile(r"\w{2}")
_PLACE = re.compile(r"\b[a-z][\w+.-]*://\S+|(?:~|\.{0,2})?(?:[\w.@-]*[/\\])+[\w.@*-]*|\b[\w-]+\.[a-z]{1,5}\b(?!\s)")
_CODE = re.compile(r"`[^`]*`")
_OPEN_END = re.compile(r"[,;:(\[{…–—-]$|\.\.\.$|\b(?:the|an?|and|or|of)$")
_LOG_LINE = re.compile(
    r"^\W*(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b[ :\]])"
    r"|^\s*[-*]?\s*\[[ xX]\]|[✓✔✅❌✗☑]"
)
#: Counts in a row, as test runners and builds print them: `12 passed, 3 failed`.
_COUNTS = re.compile(r"\b\d+ [a-z]+, \d+ [a-z]+")
#: Who speaks in the first person reports; what points at the moment is over with it; what points elsewhere is not whole.
_REPORTER = re.compile(r"^(?:I|I'm|I've|I'll|I'd|Let me)\b")
_MOMENT = re.compile(r"\b(?:now|today|tonight|tomorrow|yesterday|currently)\b", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\[\d+\]|#\d+\b|\b(?:option|item|point|step) (?:\d+|[A-D])\b|\b(?:above|below)\s*[.,:;)]?$", re.IGNORECASE
)
_POINTER = re.compile(r"^(?:it|its|this|that|these|those|they|he|she|there|here)\b", re.IGNORECASE)


def find_junk(title: str, texts: Sequence[str]) -> str | None:
    """Return why a learning is none, or None where its form says nothing against it.

    Args:
        title: what it is called.
        texts: the statements below the title, the lines of a form.

    Example:
        >>> find_junk("Timestamps in UTC", ["The API stores timestamps in UTC."])
        >>> find_junk("Build", ["12 passed, 3 failed in 4.1s"])
        'a status line'
        >>> find_junk("The page", ["https://example.com/docs/a.html"])
        'only a path or an address'
        >>> find_junk("Fix the footer now", ["The footer is to be fixed."])
        'an order for now'
        >>> find_junk("It is slow", ["It takes long."])
        'no subject'
    """
    lines = [line for line in (title, *texts) if line]
    if _without_places(texts or lines) < _OTHER_WORDS:
        return "only a path or an address"
    if any(_LOG_LINE.search(line) or _COUNTS.search(line) or _REPORTER.match(line) for line in lines):
        return "a status line"
    if any(map(_is_fragment, (title, *texts))) or not any(_count(line) >= _WORDS for line in texts or lines):
        return "a fragment"
    if _MOMENT.search(_CODE.sub("", title)) or all(_MOMENT.search(_CODE.sub("", text)) for text in texts or [title]):
        return "an order for now"
    if any(_ELSEWHERE.search(line) for line in lines):
        return "not understandable alone"
    if _POINTER.match(title) and all(map(_POINTER.match, texts)):
        return "no subject"
    return None


def _is_fragment(text: str) -> bool:
    """Return whether a text breaks off: an open end, or a bracket or a quote that is not closed; or has no word at all."""
    plain = _CODE.sub("", text).rstrip()
    return (
        bool(_OPEN_END.search(plain))
        or not (_NAMED.search(text) or has_cjk(text))
        or plain.count("(") != plain.count(")")
        or plain.count("`") % 2 == 1
        or plain.count('"') % 2 == 1
    )


def _without_places(texts: Sequence[str]) -> int:
    """Return how many words there are beside paths, addresses and code, or enough where there are no spaces."""
    return max((_count(_PLACE.sub(" ", text)) for text in texts), default=0)


def _count(text: str) -> int:
    return _WORDS if has_cjk(text) else len(_WORD.findall(text))
