"""Decide which hits of a search are about the task at all."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import math
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.globs import fits_any
from memory_kb.model import Hit, Memory
from memory_kb.text import has_cjk

#: Shared words must be half of the task's, or be worth half a word that is in one note alone.
_MIN_SHARE, _MIN_WORTH = 0.5, 0.5
#: A passage this near in meaning fits without sharing a word.
_NEAR = 0.6
_WORD, _INSIDE = re.compile(r"\w+"), re.compile(r"\w")
#: The usual endings of English words, as an expression.
ENDINGS = r"ing|ed|ers?|es|s|ions?|ment|able|e"
_SUFFIX = re.compile(rf"(?<=\w{{4}})(?:{ENDINGS})$")


class Topic(NamedTuple):
    """What a task or prompt is about: what each of its words is worth, and how much of that a text must say."""

    worth: Mapping[str, float]
    needed: float


def rarity(count: int, texts: int) -> float:
    """Return what a word is worth that so many of some texts have; one that is in a single text is worth the most.

    Example:
        >>> round(rarity(1, 100), 2), round(rarity(50, 100), 2)
        (4.22, 0.7)
    """
    return math.log((texts + 2) / (count + 0.5))


def weigh_topic(terms: Sequence[str], counts: Sequence[int], notes: int) -> Topic:
    """Return the words of a task, weighed by how rare they are in the notes; a word that is in no note weighs 0."""
    counted = zip(terms, counts, strict=True)
    worth = {strip_endings(term.strip('" *')): rarity(count, notes) if count else 0.0 for term, count in counted}
    return Topic(worth, _MIN_WORTH * rarity(1, notes))


def strip_endings(word: str) -> str:
    """Return a word without its usual English endings; what is left is a prefix of the casefolded word.

    Example:
        >>> [strip_endings(word) for word in ("Deployments", "deploying", "merge", "merging", "bus")]
        ['deploy', 'deploy', 'merg', 'merg', 'bus']
    """
    short = word.casefold()
    for _ in range(2):
        short = _SUFFIX.sub("", short)
    return short


def is_about(topic: Topic, shared: Collection[str], hit: Hit) -> bool:
    """Return whether a hit that shares some words with the task has to do with it."""
    if hit.parts.vector is not None and hit.parts.vector >= _NEAR:
        return True
    worth = sum(topic.worth[word] for word in shared)
    return len(shared) >= _MIN_SHARE * len(topic.worth) or worth >= topic.needed


def shared_words(topic: Topic, memory: Memory) -> frozenset[str]:
    """Return the words of a task that an entry says, too."""
    text = f"{memory.title} {' '.join(memory.tags)} {memory.text}".casefold()
    return frozenset(word for word in topic.worth if says(text, word))


def says(text: str, word: str) -> bool:
    """Return whether a casefolded text has a word whose stem is `word`; faster than cutting the text into words.

    Example:
        >>> says("all deployments", "deploy"), says("redeploy", "deploy"), says("设置部署密钥", "部署")
        (True, False, True)
    """
    if has_cjk(word):  # scripts without spaces have no ends of words
        return word in text
    start = text.find(word) if word else -1
    while start >= 0:
        found = _WORD.match(text, start)
        if found and not _INSIDE.match(text[start - 1 : start]) and strip_endings(found[0]) == word:
            return True
        start = text.find(word, start + 1)
    return False


def may_be_given(memory: Memory, today: date) -> bool:
    """Return whether an entry may be put before an agent: nothing replaces it, and nobody has to look at it first."""
    from memory_kb.learning.playbook import is_doubted

    return not (memory.is_superseded or memory.is_quarantined or is_doubted(memory, today))


def may_be_given_unasked(memory: Memory) -> bool:
    """Return whether an entry may be given to an agent unasked: live, verified, not superseded, not quarantined."""
    return memory.is_live and not (memory.is_superseded or memory.is_unverified or memory.is_quarantined)


def fits_files(memory: Memory, files: Sequence[str]) -> bool:
    """Return whether an entry holds for one of some files; one that names none holds everywhere.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", applies_to=("src/**/*.py",))
        >>> fits_files(memory, ["src/api/x.py"]), fits_files(memory, ["docs/x.md"]), fits_files(memory, [])
        (True, False, True)
    """
    return not files or not memory.applies_to or any(fits_any(file, memory.applies_to) for file in files)
