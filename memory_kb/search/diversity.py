"""Limit hits per entry, and move repetitions down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from memory_kb.index.port import Candidate
from memory_kb.search.merge_passages import Group
from memory_kb.text import jaccard

T = TypeVar("T")

#: Sections of one entry that compete before others of it, where there are too many.
MOST_PER_ENTRY = 40
#: Passages that are looked through for others than those of the longest notes.
_FARTHEST = 20_000


def match_evenly(match: Callable[[int], list[Candidate]], limit: int, crowd: int = MOST_PER_ENTRY) -> list[Candidate]:
    """Return the best candidates, of no entry more than a crowd while there are others.

    Args:
        match: gives the best of all, as many as it is asked for.
        limit: the most to return; all are returned where there are no more.
        crowd: what one entry may have.
    """
    wanted = limit
    found = match(wanted)
    while True:
        first, rest = _part(found, crowd, lambda one: one.key - one.part)
        if len(found) < wanted or len(first) >= limit or wanted >= _FARTHEST:
            return [*first, *rest][:limit]
        wanted = min(wanted * 10, _FARTHEST)
        found = match(wanted)


def spread(groups: Sequence[Group], most: int) -> tuple[list[Group], list[Group]]:
    """Return the first few groups of every entry, and the others; 0 is no limit."""
    return _part(groups, most or len(groups), lambda one: (one.chunk.source, one.chunk.entry_id))


def _part(found: Sequence[T], crowd: int, entry_of: Callable[[T], Hashable]) -> tuple[list[T], list[T]]:
    """Part what was found into the first few of every entry and the others, in their order."""
    counts = Counter[Hashable]()
    parted: tuple[list[T], list[T]] = [], []
    for one in found:
        entry = entry_of(one)
        counts[entry] += 1
        parted[counts[entry] > crowd].append(one)
    return parted


def mmr_order(
    scores: Sequence[float], words_of: Callable[[int], frozenset[str]], mmr_lambda: float, limit: int
) -> list[int]:
    """Return the first `limit` hits to show.

    The best one comes first, then the best that says something new. Each next one maximises
    `lambda * relevance - (1 - lambda) * similarity`, where relevance is the score's share of the
    best and similarity the largest Jaccard to those before it. The first is always the
    best score, and the first k of the order do not depend on what comes after them.

    Example:
        >>> texts = ["a b c", "a b c", "x y z", "x y z"]
        >>> mmr_order([1.0, 0.9, 0.8, 0.0], lambda place: frozenset(texts[place].split()), 0.5, limit=3)
        [0, 2, 1]
    """
    best_score = max(scores, default=0.0)
    relevance = [mmr_lambda * (score / best_score if best_score else 1.0) for score in scores]
    left = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    nearest, compared = [0.0] * len(scores), [0] * len(scores)
    order: list[int] = []

    def value(place: int) -> float:
        for other in order[compared[place] :]:
            nearest[place] = max(nearest[place], jaccard(words_of(other), words_of(place)))
        compared[place] = len(order)
        return relevance[place] - (1 - mmr_lambda) * nearest[place]

    while left and len(order) < limit:
        best, most = left[0], value(left[0])
        for place in left[1:]:
            if relevance[place] <= most:
                break  # what follows is no better even if it is like nothing before it
            if (worth := value(place)) > most:
                best, most = place, worth
        left.remove(best)
        order.append(best)
    return order
