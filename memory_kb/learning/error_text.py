"""Compare the texts of errors without what differs from one run to the next."""

from __future__ import annotations

import re

from memory_kb.lazy_regex import lazy_regex

#: What differs from one run to the next, and the placeholder for it.
_VOLATILE = tuple(
    (lazy_regex(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (
            r"\b\d{4}-\d\d-\d\d(?:[T _]\d\d[:_]\d\d(?:[:_]\d\d(?:[.,_]\d+)?)?Z?)?\b|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b",
            "<time>",
        ),
        (
            (
                r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]{4,}\b|"
                r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{10,64}\b"
            ),
            "<hash>",
        ),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\[?::1\]?:\d+|\blocalhost:\d+\b", "<address>"),
        (r"(?<![\w/.:~@-])(?:[a-z]:)?~?(?:[/\\][\w.@+-]+){2,}(?::\d+)*:?", "<path>"),
        (r"(?<=\w\.\w)(?::\d+){1,2}\b|(?<=\w\.\w\w)(?::\d+){1,2}\b|(?<=\w\.\w\w\w)(?::\d+){1,2}\b", ""),
        (r"\b(line|column|port|pid|process|took|after|in) \d+(?:\.\d+)?(?:ms|s)?\b", r"\1 <n>"),
        (r"\b\d+(?:\.\d+)?(?:ms|s)\b|\b\d{4,}\b", "<n>"),
    )
)


def generalise(text: str) -> str:
    """Return a text about an error without what differs from one time to the next.

    Example:
        >>> generalise("connect to 127.0.0.1:5433 failed after 4.31s in /home/mira/shop/db.py:12")
        'connect to <address> failed after <n> in <path>'
    """
    text = " ".join(text.split())
    for pattern, word in _VOLATILE:
        text = pattern.sub(word, text)
    return re.sub(r"^<path>:? ", "", text)


def same_words(message: str) -> str:
    """Return a message as it is compared: in lower case, any number like any other."""
    return " ".join(re.sub(r"\d+", "#", message.casefold()).split())


def is_bare(type_: str) -> bool:
    """Return whether the type of an error is just that it failed, such as `exit code 1`."""
    return re.fullmatch(r"(?i)exit code -?\d+|failed|error", type_) is not None


def is_informative(type_: str, message: str) -> bool:
    """Return whether an error means anything to somebody who was not there; a bare exit code does not.

    Example:
        >>> is_informative("AssertionError", "assert 200 == 429"), is_informative("KeyError", "No module named 'redis'")
        (False, True)
    """
    if same_words(message).strip(" .:!") == same_words(type_):
        return False
    words = re.findall(r"[^\W\d_]{3,}", message)
    return len(words) >= (3 if is_bare(type_) or type_ == "test failure" else 2)
