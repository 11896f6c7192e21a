"""Decide whether two texts say the same, and find the stored entry that says the same, the contrary, or another value."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Container
from operator import itemgetter

from memory_kb.index.sqlite import SqliteIndex
from memory_kb.learning.error_text import generalise
from memory_kb.learning.render_entry import TWIN_SIMILARITY, Draft, fingerprint, undated
from memory_kb.model import KINDS, LIVE_STATUSES, SCOPES, Filters, Location, StoredEntry
from memory_kb.regex import regex
from memory_kb.reports import Near
from memory_kb.search.query import parse_words
from memory_kb.similarity import CLASH_ABOVE, CONTRADICTION_FROM, stem, word_set
from memory_kb.text import has_cjk, jaccard, tokens

_LABELLED = regex(r"^\*\*(?P<label>[\w ]+):\*\* (?P<words>.*)$", re.MULTILINE)
_QUOTED = regex(r"(?<= fails with `)[^`\n]+(?=`)")


def comparable(text: str) -> str:
    """Return a text as it is held against others: of an error without what differs from one run to the next.

    Where it says what prevents the error, it does not matter which call of the command failed and which went well.
    """
    labels = dict(_LABELLED.findall(text))
    messages = [generalise(message) for message in _QUOTED.findall(labels.get("Error Pattern", ""))]
    if not messages:
        return text
    if "Prevention" in labels:
        return "\n".join((*messages, labels["Prevention"]))
    return _QUOTED.sub(lambda found: generalise(found[0]), text)


#: What an entry is that was taken out of use: it keeps its text from coming back.
FORGOTTEN = ("retired", "rejected")
_WORD = regex(r"\w+")
NEGATIONS = frozenset({
    "no", "not", "cannot", "never", "none", "without", "nor", "nicht", "kein", "keine", "nie", "ohne", "ne", "pas",
    "jamais", "sans", "non", "sin", "nunca", "sem", "não", "не", "нет", "без", "ни",
})  # fmt: skip
_DIGIT = regex(r"\d")
_SHORT_NOT = regex(r"n['\u2019]t\b")
_CANDIDATES = 60
_FEW_WORDS, _LEAST_LETTERS, _MOST_ASKED = 20, 4, 6
_WEIGHTS = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


def find_duplicate(
    index: SqliteIndex, draft: Draft, place: Location, but: str | None = None, *, outdated: Container[str] = ()
) -> StoredEntry | None:
    """Return the entry that says the same at the same place.

    Live ones come first; else it may be the tombstone of one. What was forgotten stays away from
    its place and from every narrower one, as whatever kind it comes back; what was replaced by
    something newer may become true again. MEMORY.md belongs to the people: what is there is
    not reinforced. Files whose paths are `outdated` are left out.
    """
    here = _live_at(place)._replace(kinds=(draft.kind,))
    if draft.is_proposal:  # what waits for a decision already is not proposed again
        here = here._replace(statuses=(*here.statuses, "proposed"))

    def is_meant(entry: StoredEntry) -> bool:
        return entry.entry_id != but and entry.source not in outdated

    live = [
        (alike, entry)
        for entry in filter(is_meant, find_similar(index, draft, here))
        if entry.metadata
        and not is_in_people_file(entry)
        and (alike := likeness(draft.text, index.contents(entry))) > TWIN_SIMILARITY
    ]
    if live:
        return max(live, key=itemgetter(0))[1]
    gone = here._replace(kinds=tuple(KINDS), scopes=_wider(place), statuses=FORGOTTEN)
    tombstone = fingerprint(draft.text)
    for entry in filter(is_meant, index.entries(gone)):
        if entry.metadata and json.loads(entry.metadata).get("tombstone") == tombstone:
            return entry
    for entry in filter(is_meant, find_similar(index, draft, gone)):
        if likeness(draft.text, index.contents(entry)) > TWIN_SIMILARITY and not entry.is_superseded:
            return entry
    return None


def _live_at(place: Location) -> Filters:
    statuses = tuple(sorted(LIVE_STATUSES))
    return Filters(scopes=(place.scope,), statuses=statuses, job=place.job, task=place.task)


def _wider(place: Location) -> tuple[str, ...]:
    return SCOPES[SCOPES.index(place.scope) :]


def find_near(index: SqliteIndex, draft: Draft, place: Location, but: str | None = None) -> tuple[Near, ...]:
    """Return up to three live entries at the same place or a wider one that say the contrary, or the same in other words."""
    from memory_kb.learning.negation import find_opposition

    here, mine = _live_at(place)._replace(scopes=_wider(place)), word_set(draft.text)
    found: list[tuple[float, Near]] = []
    for entry in find_similar(index, draft, here, is_any=True):
        if entry.entry_id == but or entry.kind == "episode" or entry.is_superseded:
            continue
        text = index.contents(entry)
        alike = jaccard(mine, word_set(text))
        opposed = alike >= CONTRADICTION_FROM and find_opposition(text, draft.text) is not None
        if opposed or alike > CLASH_ABOVE:
            how = "says the contrary" if opposed else "says nearly the same"
            found.append((alike + opposed, Near(how, entry.entry_id, entry.title, entry.source, entry.line)))
    return tuple(near for _, near in sorted(found, key=lambda one: (-one[0], one[1]))[:3])


def likeness(one: str, other: str) -> float:
    """Return how much two texts say the same.

    That is the Jaccard of their words, or 0 where a difference matters. Words in another order,
    another number or a negation turn a sentence round, however many other words it shares.

    Example:
        >>> likeness("Migrate, then deploy.", "migrate then deploy"), likeness("Migrate, then deploy.", "Deploy, then migrate.")
        (1.0, 0.0)
    """
    one, other = comparable(undated(one)), comparable(undated(other))
    words, others = (list(dict.fromkeys(words_of(text))) for text in (one, other))
    shared = set(words) & set(others)
    if any(map(_is_turning, set(words) ^ set(others))):
        return 0.0
    if [word for word in words if word in shared] != [word for word in others if word in shared]:
        return 0.0
    return jaccard(tokens(one), tokens(other))


# Several steps in a row ask it of the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def turning_words(text: str) -> frozenset[str]:
    """Return the numbers and negations of a text; texts in which these differ do not say the same."""
    return frozenset(filter(_is_turning, set(words_of(comparable(text)))))


def words_of(text: str) -> list[str]:
    """Return the words of a text in order; "n't" is "not"."""
    return _WORD.findall(_SHORT_NOT.sub(" not", text.casefold()))


def _is_turning(word: str) -> bool:
    return word in NEGATIONS or _DIGIT.search(word) is not None


def is_in_people_file(entry: StoredEntry) -> bool:
    """Return whether an entry is in MEMORY.md, which belongs to the people."""
    return entry.source.rpartition("/")[2] == "MEMORY.md"


def find_similar(index: SqliteIndex, draft: Draft, filters: Filters, *, is_any: bool = False) -> list[StoredEntry]:
    """Return the entries that share the most words with a draft; those that share any where a twin is not wanted."""
    said = draft.text.strip()
    query = parse_words(said)
    if query.is_empty:
        return []
    expression = (None if is_any else _shared_words(said)) or query.expression
    found = index.chunks(candidate.key for candidate in index.match(expression, _WEIGHTS, filters, _CANDIDATES))
    places = {(chunk.entry_id, chunk.source) for chunk in found.values()}
    entries = (
        entry for entry_id in sorted({entry_id for entry_id, _ in places}) for entry in index.entries_with_id(entry_id)
    )
    return [entry for entry in entries if (entry.entry_id, entry.source) in places]


def _shared_words(text: str) -> str | None:
    """Return a query that every twin of a short sentence fits; it is answered far faster than one for any of its words.

    Of two texts that are more than 95 % alike each holds all words of the other, where these are 20
    or fewer. Only plain words are asked for, which every tokenizer takes for words.
    """
    words = tokens(text)
    if len(words) > _FEW_WORDS or has_cjk(text) or "\n" in text.strip() or comparable(undated(text)) != text:
        return None
    plain = sorted(
        (word for word in words if word.isascii() and word.isalnum() and len(word) >= _LEAST_LETTERS),
        key=lambda word: (-len(word), word),
    )
    return " AND ".join(f'"{word}"' for word in plain[:_MOST_ASKED]) if len(plain) > 1 else None


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
#: Words that do not belong to the subject of a statement.
_MARKING = frozenset({
    "always", "never", "all", "any", "every", "each", "the", "a", "an", "we", "you", "your", "our", "from", "now",
    "on", "not", "do", "don't", "please", "should", "must", "to", "of", "for", "in", "it", "it's", "i", "i'd",
    "and", "when", "whenever", "make", "sure", "ensure", "want", "like", "need", "them", "that", "with", "as",
    "also", "new", "going", "forward", "remember", "prefer", "anymore", "longer",
})  # fmt: skip


def find_older(index: SqliteIndex, draft: Draft, place: Location, before: str) -> tuple[StoredEntry, ...]:
    """Return the statements at the same place, made before a moment, that a new one replaces: one subject, another value."""
    here = _live_at(place)._replace(kinds=_STATED)
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
    """
    if _is_left(older, newer):
        return True
    old, new = (frozenset(found.casefold() for found in _VALUE.findall(text)) for text in (older, newer))
    older, newer = _VALUE.sub(" ", older), _VALUE.sub(" ", newer)
    if bool(old) != bool(new) or not _is_same(_informative(older), _informative(newer)):
        return False
    return old.isdisjoint(new) and len(old) <= len(new) if old else turning_words(older) != turning_words(newer)


def _is_left(older: str, newer: str) -> bool:
    """Return whether a newer statement names what an older one says, and nothing else, as what no longer holds."""
    kept = _LEFT.sub(" ", older)
    if not NEGATIONS.isdisjoint(words_of(kept)):
        return False
    rest, left = frozenset(_informative(_USES.sub(" ", kept))), frozenset(_informative(" ".join(_LEFT.findall(newer))))
    return not left.isdisjoint(rest) and rest - left <= frozenset(_informative(_LEFT.sub(" ", newer)))


def _informative(text: str) -> list[str]:
    return [stem(word) for word in words_of(text) if word not in _MARKING | NEGATIONS]


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
