"""Find the statements of people that a newer one replaces: one subject, another value."""

from __future__ import annotations

import itertools
import json
import re

from memory_kb.index.sqlite import SqliteIndex
from memory_kb.learning.duplicates import NEGATIONS, find_similar, is_in_people_file, turning_words, words_of
from memory_kb.learning.new_entry import Draft
from memory_kb.model import LIVE_STATUSES, Filters, Location, StoredEntry

#: Two statements have one subject where they share so much of the shorter one's words, and of all their words.
_OF_SHORTER, _OF_ALL = 0.8, 0.4
_STATED = ("preference", "policy", "fact")
_VALUE = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|“[^”\n]+”|\b\d+(?:\.\d+)*\b")
#: What a statement says no longer holds: the word after "instead of" and its like.
_LEFT = re.compile(
    r"\b(?:not|no longer|instead of|rather than|over|(?:switched|moved|migrated) from)\s+(?:(?:use|using|the|an?)\s+)*['\"`]?([\w@./+-]*\w)",
    re.IGNORECASE,
)
_USES = re.compile(r"\b(?:use|uses|using)\b", re.IGNORECASE)
_ENDING = re.compile(r"(?<=\w{3})(?:e|es|s|ing|ed)+$")
#: Words that do not belong to the subject of a statement.
_MARKING = frozenset({
    "always", "never", "all", "any", "every", "each", "the", "a", "an", "we", "you", "your", "our", "from", "now",
    "on", "not", "do", "don't", "please", "should", "must", "to", "of", "for", "in", "it", "it's", "i", "i'd",
    "and", "when", "whenever", "make", "sure", "ensure", "want", "like", "need", "them", "that", "with", "as",
    "also", "new", "going", "forward", "remember", "prefer", "anymore", "longer",
})  # fmt: skip


def find_older(index: SqliteIndex, draft: Draft, place: Location, before: str) -> tuple[StoredEntry, ...]:
    """Return the statements at the same place, made before a moment, that a new one replaces: one subject, another value."""
    here = Filters(
        kinds=_STATED, scopes=(place.scope,), statuses=tuple(sorted(LIVE_STATUSES)), job=place.job, task=place.task
    )
    return tuple(
        entry
        for entry in find_similar(index, draft, here, is_any=True)
        if entry.metadata
        and not is_in_people_file(entry)
        and not entry.is_superseded
        and (known := json.loads(entry.metadata)).get("source") == "user_explicit"
        and str(known.get("created_at", ""))[:10] <= before[:10]
        and is_replaced(index.contents(entry), draft.text)
    )


def is_stated(draft: Draft) -> bool:
    """Return whether a draft is a live statement of a person, which a newer one may replace."""
    fields = dict(draft.fields)
    return draft.kind in _STATED and draft.source == "user_explicit" and "status" not in fields


def is_replaced(older: str, newer: str) -> bool:
    """Return whether a newer statement says otherwise of the same subject.

    Example:
        >>> is_replaced("Always start function names with 'f_'.", "For function names, start them with 'fn_'.")
        True
        >>> is_replaced("Start function names with 'f_'.", "Start function argument names with 'a_'.")
        False
        >>> is_replaced("We use pnpm, not npm.", "We switched from pnpm to bun."), is_replaced("Use tabs in Go.", "Use spaces, not tabs.")
        (True, False)
    """
    if _is_left(older, newer):
        return True
    values = [frozenset(found.casefold() for found in _VALUE.findall(text)) for text in (older, newer)]
    if all(values):
        is_other = not values[0] & values[1] and len(values[0]) <= len(values[1])
        return is_other and all(any(_is_same(one, two) for two in _clauses(newer)) for one in _clauses(older))
    turning = [turning_words(_VALUE.sub(" ", text)) for text in (older, newer)]
    return not any(values) and turning[0] != turning[1] and _is_same(_subject(older), _subject(newer))


def _is_left(older: str, newer: str) -> bool:
    """Return whether a newer statement names what an older one says, and nothing else, as what no longer holds."""
    kept = _LEFT.sub(" ", older)
    if not NEGATIONS.isdisjoint(words_of(kept)):
        return False
    rest, left = frozenset(_informative(_USES.sub(" ", kept))), frozenset(_informative(" ".join(_LEFT.findall(newer))))
    return not left.isdisjoint(rest) and rest - left <= frozenset(_informative(_LEFT.sub(" ", newer)))


def _clauses(text: str) -> list[list[str]]:
    """Return the words of a statement around each of its values; a further one shares the first word.

    Example:
        >>> _clauses("End methods with 'm' and functions with 'f'.")
        [['end', 'method'], ['end', 'function'], ['end', 'method', 'function']]
    """
    pieces = [_subject(piece) for piece in _VALUE.split(text)]
    *others, last = pieces[:-2], pieces[-2] + pieces[-1]
    first, *rest = [*others[0], last]
    return [first, *([*first[:1], *words] for words in rest), *([_subject(text)] if rest else [])]


def _subject(text: str) -> list[str]:
    return _informative(_VALUE.sub(" ", text))


def _informative(text: str) -> list[str]:
    return [_ENDING.sub("", word) for word in words_of(text) if word not in _MARKING | NEGATIONS]


def _is_same(older: list[str], newer: list[str]) -> bool:
    """Return whether the words that two subjects share are adjacent in both, and are nearly all of the shorter one."""
    shared = set(older) & set(newer)
    fewest = min(len(set(words)) for words in (older, newer))
    if len(shared) < max(2, _OF_SHORTER * fewest) or len(shared) < _OF_ALL * len({*older, *newer}):
        return False
    return all(
        any(is_in and shared <= set(run) for is_in, run in itertools.groupby(words, shared.__contains__))
        for words in (older, newer)
    )
