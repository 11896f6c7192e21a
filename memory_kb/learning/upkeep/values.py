"""Whether two sentences give the same thing different values: "the port is 5432" and "is 5433"."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

_SENTENCE = re.compile(
    r"""(?P<subject>.+?)\s*
    (?:\b(?P<verb>is\s+set\s+to|are\s+set\s+to|is\s+limited\s+to|is\s+called|is\s+named|defaults\s+to|set\s+to|equals|expires?\s+(?:after|in)
        |listens\s+(?:on|at)|runs\s+(?:on|at)|lives\s+(?:in|at)|is\s+stored\s+in|is\s+at|is\s+on|times\s+out\s+after|takes|uses|requires
        |needs|keeps?|allows?|is|are|was|must\s+be|should\s+be)\b|(?P<sign>[=:])(?=\s))\s*
    (?P<value>.+)""",
    re.VERBOSE | re.IGNORECASE,
)


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"`[^`]+`|\"[^\"]+\"|[\w$€£%][\w./:@%+-]*")
_NUMBER = re.compile(r"[$€£v]?\d[\d.,:_/-]*(?P<unit>[a-z%]*)", re.IGNORECASE)
_FILLERS = _set(
    "a an the our your its this that it they he she now currently always by at on in to about exactly only still"
)
#: Verbs after which a thing can have only one value that is a name; it may well use two databases.
_SINGLE = re.compile(
    r"(?:is|are|was|=|:|equals|must be|should be|(?:is|are)? ?set to|defaults to|is (?:called|named|stored in|at|on)|lives (?:in|at))\Z"
)
#: What has one value at a time, whatever the value looks like.
_UNIQUE = _set(
    """default primary main master current official name branch port url host hostname owner version format language timezone
    encoding region database endpoint address maintainer license limit timeout interval"""
)
#: What a line with a colon records of one occasion.
_RECORDED = _set(
    "date time day duration author result status step created updated started ended cost score count total"
)
_DENIAL = re.compile(r"\b(?:not|no|never|without|unless|cannot|if|when|except|between|and|or)\b|n't\b|,", re.IGNORECASE)


class Values(NamedTuple):
    """Two values of one subject."""

    subject: str
    one: str
    other: str


def values_differ(one: str, other: str, least: int = 1) -> Values | None:
    """Return the two values that two sentences give the same subject, or None.

    A number differs from a number in one place; a name from a name where the subject can have
    only one. All else that they say is the same. The subject has at least so many words.

    Example:
        >>> values_differ("The port of the API is 5432.", "The port of the API is 5433.")
        Values(subject='port of the API', one='5432', other='5433')
        >>> values_differ("The API uses Redis.", "The API uses Postgres.") is None
        True
    """
    mine, yours = _match(one), _match(other)
    if not mine or not yours:
        return None
    subject = _words(mine["subject"])
    if len(subject) < least or set(subject) != set(_words(yours["subject"])):
        return None
    values, others = (
        [word for word in _WORD.findall(found["value"]) if word.casefold() not in _FILLERS] for found in (mine, yours)
    )
    if not values or len(values) != len(others):
        return None
    different = [(a, b) for a, b in zip(values, others, strict=True) if _plain(a) != _plain(b)]
    if len(different) != 1:
        return None
    value, contrary = different[0]
    if (mine["sign"] or yours["sign"]) and (len(subject) < 2 or not _RECORDED.isdisjoint(subject)):
        return None
    verbs = [" ".join((found["verb"] or found["sign"]).casefold().split()) for found in (mine, yours)]
    if _are_numbers(value, contrary):
        is_conflict = verbs[0] == verbs[1] or all(map(_SINGLE.match, verbs))
    else:
        is_single = all(map(_SINGLE.match, verbs)) and len(values) == 1
        is_conflict = is_single and ((_is_name(value) and _is_name(contrary)) or not _UNIQUE.isdisjoint(subject))
    shown = re.sub(r"^(?:the|our|your|its|this)\s+", "", mine["subject"].strip(), flags=re.IGNORECASE)
    return Values(shown, value, contrary) if is_conflict else None


@functools.lru_cache(maxsize=8_192)
def _match(sentence: str) -> re.Match[str] | None:
    """Return the parts of a sentence that gives a subject a value."""
    found = _SENTENCE.match(sentence.strip().rstrip(".!"))
    return None if found is None or _DENIAL.search(found["value"]) else found


@functools.lru_cache(maxsize=8_192)
def _words(text: str) -> list[str]:
    return [_plain(word) for word in _WORD.findall(text) if word.casefold() not in _FILLERS]


def _plain(word: str) -> str:
    return word.strip("`\"'.:,").casefold()


def _are_numbers(one: str, other: str) -> bool:
    """Tell whether both are numbers of the same unit; 60 s and 1 min may be the same."""
    mine, yours = _NUMBER.fullmatch(_plain(one)), _NUMBER.fullmatch(_plain(other))
    return bool(mine and yours and mine["unit"].casefold() == yours["unit"].casefold())


def _is_name(word: str) -> bool:
    return (
        word[0] in '`"'
        or word[0].isupper()
        or any(sign in word[:-1] for sign in "./_@:")
        or any(sign.isdigit() for sign in word)
    )
