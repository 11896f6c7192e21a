"""Compare two texts: do they say the same, the contrary, or another value of the same."""

from __future__ import annotations

import functools
import itertools
import re
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.lists_and_fences import find_sections, scan_lines
from memory_kb.model import Span
from memory_kb.similarity import CLASH_ABOVE, stem, word_set
from memory_kb.terms import MARKED_WORD, MARKS, jaccard, to_nfc
from memory_kb.text import encode, hash_of

#: More alike than this, two texts of one kind are one learning.
TWIN_SIMILARITY = 0.95


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEGATIONS = _words(
    """not no never cannot none nor without neither nobody nothing nowhere unless hardly
    nicht kein keine nie ohne ne pas jamais sans non sin nunca sem não не нет без ни"""
)
#: A word and its opposites.
_OPPOSITES = {
    "use": "avoid",
    "enable": "disable",
    "allow": "forbid forbidden disallow prohibit ban deny block",
    "require": "optional",
    "include": "exclude omit",
    "accept": "reject refuse",
    "on": "off",
    "add": "remove drop",
    "start": "stop",
    "increase": "decrease reduce",
    "true": "false",
    "before": "after",
    "keep": "delete discard",
    "safe": "unsafe",
    "support": "unsupported",
    "stable": "unstable",
    "mutable": "immutable",
    "more": "less",
    "public": "private",
    "encrypted": "unencrypted plaintext",
}
#: The word that each opposite turns round, by its stem; and words that are taken for another.
_BASES = {stem(opposite): word for word, opposites in _OPPOSITES.items() for opposite in opposites.split()}
_SAME = {"prefer": "use", "permit": "allow", "mandatory": "require", "kept": "keep"}
#: Words that do not belong to the subject of a statement.
_FILLERS = _NEGATIONS | _words(
    """a an the is are was were be been being am do does did done to of and or we you i i'd it its it's this that these those our your
    there here please also just will would shall should must have has had always ever any anyone anybody all every each everybody everyone
    so then really strictly longer anymore currently now again turn switch from on don't for in when whenever make sure ensure want like
    need them with as new going forward remember prefer"""
)
#: A name such as `src/a.py` is one word.
_WORD_OR_SIGN = lazy_regex(rf"(?:(?<!\S)-{{1,2}})?[\w{MARKS}]+(?:[-./:'][\w{MARKS}]+)*|[<>=!+%&|^~$@]+|(?<=[A-Za-z])#")
_DATED_HEADING = lazy_regex(r"\A(\s*#{1,6} )\[\d{4}-\d{2}-\d{2}\] ?")
_DIGIT = lazy_regex(r"\d")
_SHORT_NOT = lazy_regex(r"n['\u2019]t\b")


# -- the same ------------------------------------------------------------------------------------------


def likeness(one: str, other: str) -> float:
    """Return how much two texts say the same: the Jaccard of their words, if one of them is the other with words added.

    Else it is 0, as where one has a number, a negation, an opposite or an option more: another word in the place of
    a word may turn a sentence round, however many others it shares.

    Example:
        >>> likeness("Migrate, then deploy.", "migrate then deploy"), likeness("Migrate, then deploy.", "Deploy, then migrate.")
        (1.0, 0.0)
    """
    shorter, longer = sorted((_in_order(one), _in_order(other)), key=len)
    rest = iter(longer)
    return nearness(one, other) if all(word in rest for word in shorter) else 0.0


def nearness(one: str, other: str) -> float:
    """Return how much two texts say nearly the same: the Jaccard of their words, or 0 where a turning word differs.

    Example:
        >>> nearness("Run all of the tests.", "Run the tests."), nearness("Run the tests.", "Never run the tests.")
        (0.6, 0.0)
    """
    if turning_words(one) != turning_words(other):
        return 0.0
    return jaccard(word_set(_undated(one)), word_set(_undated(other)))


@functools.lru_cache(maxsize=4_096)
def _in_order(text: str) -> tuple[str, ...]:
    """Return the stems of a text's words in order, with signs such as operators and the dashes of options."""
    return tuple(map(stem, _WORD_OR_SIGN.findall(to_nfc(_undated(text)).casefold())))


# Several steps in a row ask it of the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def turning_words(text: str) -> frozenset[str]:
    """Return the words that decide what a text claims: numbers, negations, opposites and options of commands.

    Texts in which these differ do not say the same, whatever else they share.
    """
    words = set(words_of(_undated(text)))
    turning = {stem(word) for word in words if word in _NEGATIONS or stem(word) in _BASES or _DIGIT.search(word)}
    return frozenset(turning | {word for word in _in_order(text) if word.startswith("-")})


def words_of(text: str) -> list[str]:
    """Return the words of a text in order; "n't" is "not"."""
    return MARKED_WORD.findall(_SHORT_NOT.sub(" not", to_nfc(text).casefold()))


def fingerprint(text: str) -> str:
    """Return what a tombstone remembers of a text: the same for any spacing or case."""
    return hash_of(encode(" ".join(_undated(text).casefold().split())))


def _undated(text: str) -> str:
    """Return a text without the day in its heading, which does not make it another learning."""
    return _DATED_HEADING.sub(r"\1", text, count=1)


# -- the contrary --------------------------------------------------------------------------------------

#: A sentence about fewer words may be about anything.
_LEAST_WORDS = 2
_SENTENCE_END = lazy_regex(r"(?<=[.!?;])\s+")


class _Claim(NamedTuple):
    """What one sentence says: the stems of what it is about, and whether it denies it."""

    words: frozenset[str]
    is_negated: bool


def find_opposition(one: str, other: str) -> str | None:
    """Return how two texts contradict each other, in a few words, or None.

    Example:
        >>> find_opposition("Use tabs.", "Never use tabs!"), find_opposition("Use tabs in Go.", "Use tabs in Makefiles.")
        ('one says what the other denies', None)
    """
    if _approaches_clash(one, other):
        return "what is correct in one is incorrect in the other"
    mine, yours = _claims(one), _claims(other)
    # What both say is no difference between them, whatever else they say.
    denied = {_Claim(words, not is_negated) for words, is_negated in mine - yours}
    return None if denied.isdisjoint(yours - mine) else "one says what the other denies"


# An entry is compared with many: what it claims is read once.
@functools.lru_cache(maxsize=4_096)
def _claims(text: str) -> frozenset[_Claim]:
    """Return what the sentences of a text claim; a question and a heading claim nothing."""
    lines = (line.text for line in scan_lines(text, Span(0, len(text))) if not line.is_code)
    sentences = (one.rstrip("* ") for line in lines for one in _SENTENCE_END.split(line))
    claims = (_read_claim(one) for one in sentences if not one.endswith(("?", ":")))
    return frozenset(claim for claim in claims if len(claim.words) >= _LEAST_WORDS)


def _read_claim(sentence: str) -> _Claim:
    words = words_of(sentence)
    turns = [word for word in words if word in _NEGATIONS or stem(word) in _BASES]
    bases = (_BASES.get(stem(word), _SAME.get(stem(word), word)) for word in words)
    return _Claim(frozenset(stem(word) for word in bases if word not in _FILLERS), len(turns) % 2 == 1)


def _approaches_clash(one: str, other: str) -> bool:
    """Return whether what one text calls correct is what the other calls incorrect."""
    (right, wrong), (other_right, other_wrong) = _approaches(one), _approaches(other)
    agreed = max(jaccard(right, other_right), jaccard(wrong, other_wrong))
    return max(jaccard(right, other_wrong), jaccard(other_right, wrong)) > max(CLASH_ABOVE, agreed)


@functools.lru_cache(maxsize=4_096)
def _approaches(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the sections that say what is the correct approach, and what the incorrect one."""
    found = {one.heading.casefold(): text[one.content.start : one.content.end] for one in find_sections(text)}
    return word_set(found.get("correct approach", "")), word_set(found.get("incorrect approach", ""))


# -- another value of the same -------------------------------------------------------------------------

#: Two statements have one subject where they share so much of the shorter one's words, and of all their words.
_OF_SHORTER, _OF_ALL = 0.8, 0.4
_VALUE = re.compile(r"`[^`\n]+`|\"[^\"\n]+\"|(?<!\w)'[^'\n]+'(?!\w)|“[^”\n]+”|\b\d+(?:\.\d+)*\b")


def is_replaced(older: str, newer: str) -> bool:
    """Return whether a newer statement says otherwise of the same subject: another quoted value or number, or the contrary.

    Example:
        >>> is_replaced("Always start function names with 'f_'.", "For function names, start them with 'fn_'.")
        True
    """
    old, new = (frozenset(found.casefold() for found in _VALUE.findall(text)) for text in (older, newer))
    if not old or not new:
        return find_opposition(older, newer) is not None
    is_other = old.isdisjoint(new) and len(old) <= len(new)
    return is_other and _is_same_subject(*(_informative(_VALUE.sub(" ", text)) for text in (older, newer)))


def _informative(text: str) -> list[str]:
    return [stem(word) for word in words_of(text) if word not in _FILLERS]


def _is_same_subject(older: list[str], newer: list[str]) -> bool:
    """Return whether the words that two subjects share are adjacent in both, and are nearly all of the shorter one."""
    shared = set(older) & set(newer)
    fewest = min(len(set(words)) for words in (older, newer))
    if len(shared) < max(2, _OF_SHORTER * fewest) or len(shared) < _OF_ALL * len({*older, *newer}):
        return False
    return all(
        any(is_in and shared <= set(run) for is_in, run in itertools.groupby(words, shared.__contains__))
        for words in (older, newer)
    )
