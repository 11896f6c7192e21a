"""Labels for a task that nobody labelled: tags that it says in its own words."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from itertools import pairwise

from memory_kb.context.fitting import stem
from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.playbook import measure_relevance
from memory_kb.retrieval.stopwords import stop_words

#: A rule fits a task without labels when the task says all of its tags, or so much and it is found by its words too.
_LEAST_SHARE = 0.5
#: Different words of a task that may be tags.
_MOST = 60
_TOKEN = re.compile(r"[^\W_]+")
_ENDINGS = ("", "s", "es", "ed", "er", "ers", "ing", "ion", "ions", "ment", "able", "e")


def spell_tags(task: str) -> tuple[str, ...]:
    """Return how tags may be spelled that a task says: its words with other endings, and two of them joined.

    Example:
        >>> tags = spell_tags("Fix the flaky error handling")
        >>> "error-handling" in tags, "errors" in tags, "the" in tags
        (True, True, False)
    """
    words = _words(task)
    single = dict.fromkeys(word for word in words if word)
    spelled = dict.fromkeys(f"{stem(word)}{ending}" for word in single for ending in _ENDINGS)
    joined = (f"{one}{sign}{other}" for one, other in pairwise(words) if one and other for sign in ("-", "_", " ", ""))
    return tuple(dict.fromkeys((*single, *spelled, *joined)))


def find_labels(task: str, rules: Iterable[Memory]) -> tuple[str, ...]:
    """Return the tags of some rules that a task says.

    Example:
        >>> from memory_kb.model import Location
        >>> find_labels("Fix the tests", [Memory("x", "a.md", "", Location(), "T", "", tags=("Testing", "sse"))])
        ('Testing',)
    """
    words = _words(task)
    said = {stem(word) for word in words if word} | {
        f"{stem(one)} {stem(other)}" for one, other in pairwise(words) if one and other
    }
    said |= {stem(f"{one}{other}") for one, other in pairwise(words) if one and other}
    tags = dict.fromkeys(tag for rule in rules for tag in rule.tags)
    return tuple(tag for tag in tags if " ".join(stem(word) for word in _TOKEN.findall(tag.casefold())) in said)


def keep_fitting(rules: Iterable[Memory], labels: Sequence[str], found: Container[str]) -> list[Memory]:
    """Return the rules that fit a task by labels that nobody chose.

    Args:
        rules: those that have one of the labels.
        labels: the tags that the task says.
        found: the ids of what a search for the task found.
    """
    shares = [(measure_relevance(rule.tags, labels), rule) for rule in rules]
    return [rule for share, rule in shares if share == 1.0 or (share >= _LEAST_SHARE and rule.id in found)]


def _words(task: str) -> list[str]:
    """Return the words of a task in their order, an empty one for each that is too common to be a tag."""
    tokens = _TOKEN.findall(task.casefold())
    stop = stop_words(tokens)
    known = list(dict.fromkeys(token for token in tokens if token not in stop))[:_MOST]
    allowed = set(known)
    return [token if token in allowed else "" for token in tokens]
