"""Maximal marginal relevance: good hits first, but not the same one twice (S3-40)."""

from __future__ import annotations

from collections.abc import Sequence

from memory_kb.text import jaccard


def mmr_order(scores: Sequence[float], tokens: Sequence[frozenset[str]], mmr_lambda: float, limit: int) -> list[int]:
    """Return the first `limit` hits to show.

    The best one comes first, then the best that says something new. Each next one maximises
    `lambda * relevance - (1 - lambda) * similarity`, where relevance is the score min-max scaled
    over the pool and similarity the largest Jaccard to those before it. The first is always the
    best score, and the first k of the order do not depend on what comes after them.

    Example:
        >>> twin, other = frozenset("abc"), frozenset("xyz")
        >>> mmr_order([1.0, 0.9, 0.8, 0.0], [twin, twin, other, other], 0.5, limit=3)
        [0, 2, 1]
    """
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    spread = high - low
    relevance = [(score - low) / spread if spread else 1.0 for score in scores]
    left = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    nearest = [0.0] * len(scores)
    order: list[int] = []
    while left and len(order) < limit:
        best = left[0]
        if order:
            best = max(left, key=lambda place: mmr_lambda * relevance[place] - (1 - mmr_lambda) * nearest[place])
        left.remove(best)
        order.append(best)
        for place in left:
            nearest[place] = max(nearest[place], jaccard(tokens[best], tokens[place]))
    return order
