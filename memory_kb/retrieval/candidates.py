"""Candidates into scores, every factor of a hit kept apart.

That way a hit can be explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.ports import Candidate
from memory_kb.retrieval.scoring import age_in_days, final_score, prominence
from memory_kb.settings import Ranking

#: The constant of reciprocal rank fusion.
RRF_OFFSET = 10


class Scored(NamedTuple):
    """A candidate with the factors of its score.

    A part that the query does not use is None.
    """

    candidate: Candidate
    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    scope: float
    score: float
    age_days: float


class Sides(NamedTuple):
    """The two sides of relevance, each from 0 to 1 by key; a missing key counts 0.

    None stands for a side that the query does not have.
    """

    bm25: Mapping[int, float] | None
    vector: Mapping[int, float] | None = None


def score_candidates(candidates: Sequence[Candidate], sides: Sides, ranking: Ranking, today: date) -> list[Scored]:
    """Return the candidates with their scores, best first."""
    relevance = fuse(sides, [candidate.key for candidate in candidates], ranking)
    scored = [_score(candidate, sides, relevance[candidate.key], ranking, today) for candidate in candidates]
    scored.sort(key=lambda item: (-item.score, -item.relevance))
    return scored


def fuse(sides: Sides, keys: Sequence[int], ranking: Ranking) -> dict[int, float]:
    """Return the relevance of every key.

    That is the weighted sum of the two sides (S3-33), or their reciprocal ranks; one side alone
    counts as it is, and without any all are equally relevant.

    Example:
        >>> {key: round(value, 4) for key, value in fuse(Sides({1: 1.0}, {1: 0.5, 2: 1.0}), [1, 2], Ranking()).items()}
        {1: 0.65, 2: 0.7}
        >>> fuse(Sides({1: 1.0, 2: 0.5}), [1, 2], Ranking())
        {1: 1.0, 2: 0.5}
    """
    bm25, vector = sides
    if bm25 is None and vector is None:
        return dict.fromkeys(keys, 1.0)
    if bm25 is None or vector is None:
        side = bm25 if bm25 is not None else vector
        assert side is not None
        return {key: side.get(key, 0.0) for key in keys}
    total = (ranking.vector_weight + ranking.text_weight) or 1.0
    weights = ranking.vector_weight / total, ranking.text_weight / total
    pair = (vector, bm25) if ranking.fusion == "weighted" else (_by_rank(vector), _by_rank(bm25))
    return {key: weights[0] * pair[0].get(key, 0.0) + weights[1] * pair[1].get(key, 0.0) for key in keys}


def _by_rank(side: Mapping[int, float]) -> dict[int, float]:
    """Return reciprocal ranks in place of scores, 1 for the best; equal scores share a rank."""
    ranks = {
        score: rank for rank, score in enumerate(sorted({score for score in side.values() if score > 0}, reverse=True))
    }
    return {key: (RRF_OFFSET + 1) / (RRF_OFFSET + 1 + ranks[score]) for key, score in side.items() if score > 0}


def _score(candidate: Candidate, sides: Sides, relevance: float, ranking: Ranking, today: date) -> Scored:
    bm25 = None if sides.bm25 is None else sides.bm25.get(candidate.key, 0.0)
    vector = None if sides.vector is None else sides.vector.get(candidate.key, 0.0)
    age = age_in_days(candidate.seen, today)
    strength = prominence(candidate.importance, age, candidate.reinforcement_count, candidate.status, ranking)
    scope = ranking.scope.of(candidate.scope)
    score = final_score(relevance, strength, scope, is_superseded=bool(candidate.is_superseded))
    return Scored(candidate, bm25, vector, relevance, strength, scope, score, age)
