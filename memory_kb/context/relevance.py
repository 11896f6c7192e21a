"""Decide which hits of a search are about the task at all."""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.globs import fits_any
from memory_kb.lazy_regex import lazy_regex
from memory_kb.memory import Memory

if TYPE_CHECKING:
    from memory_kb.index.port import Index

#: The usual endings of English words, as an expression.
ENDINGS = r"ing|ed|ers?|es|s|ions?|ment|able|e"
_SUFFIX = lazy_regex(rf"(?<=\w{{4}})(?:{ENDINGS})$")


class Topic(NamedTuple):
    """What a task or prompt is about: what each of its words is worth, and how much of that a text must say.

    A word is the full-text expression that finds it, such as `"deploy"`, or `"einstell" *` for one that begins so.
    """

    worth: Mapping[str, float]
    needed: float


def rarity(count: int, texts: int) -> float:
    """Return the weight of a word that `count` of some texts have; a word of a single text weighs most.

    Example:
        >>> round(rarity(1, 100), 2), round(rarity(50, 100), 2)
        (4.22, 0.7)
    """
    return math.log((texts + 2) / (count + 0.5))


def weigh_topic(counts: Mapping[str, int | None], texts: int, share: float, most: int, least: float = 0.0) -> Topic:
    """Return the weight of each word of a task: the fewer texts say it, the more. None stands for too many texts.

    A text must say a `share` of what the `most` rarest words are worth. One that no text says counts half of the rarest
    in that: the task is about it, too. Words that weigh less than `least` are left out.

    Example:
        >>> topic = weigh_topic({"quokka": 1, "test": 50, "lisbon": 0, "the": None}, 100, 0.3, 12, 2.1)
        >>> {word: round(worth, 2) for word, worth in topic.worth.items()}, round(topic.needed, 2)
        ({'quokka': 4.22}, 1.9)
    """
    weighed = {word: rarity(count, texts) for word, count in counts.items() if count}
    worth = {word: one for word, one in weighed.items() if one >= least}
    unknown = [rarity(1, texts) / 2 for count in counts.values() if count == 0]
    return Topic(worth, share * sum(heapq.nlargest(most, (*worth.values(), *unknown))))


def without_other_forms(index: "Index", terms: Iterable[str]) -> list[str]:
    """Return the terms of a query without those that are another form of an earlier one."""
    bare = {term: term.strip('" *') for term in terms}
    stems = index.stems(word for word in bare.values() if word.isalnum())
    firsts: dict[str, str] = {}
    for term, word in bare.items():
        firsts.setdefault(stems.get(word, term), term)
    return list(firsts.values())


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


def may_be_given(memory: Memory, today: date) -> bool:
    """Return whether an entry may be given to an agent: nothing supersedes it, and it waits for no person."""
    from memory_kb.learning.playbook import is_doubted

    return not (memory.is_superseded or memory.is_quarantined or is_doubted(memory, today))


def fits_files(memory: Memory, files: Sequence[str]) -> bool:
    """Return whether an entry holds for one of some files; one that names none holds everywhere.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", applies_to=("src/**/*.py",))
        >>> fits_files(memory, ["src/api/x.py"]), fits_files(memory, ["docs/x.md"]), fits_files(memory, [])
        (True, False, True)
    """
    return not files or not memory.applies_to or any(fits_any(file, memory.applies_to) for file in files)
