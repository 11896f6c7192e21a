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


def score_candidates(candidates: Sequence[Candidate], bm25: Mapping[int, float] | None, ranking: Ranking, today: date) -> list[Scored]:
    """Return the candidates with their scores, best first.

    `bm25` holds the normalised text scores by key; None stands for a query without words, to
    which every candidate is equally relevant.
    """
    scored = [_score(candidate, bm25[candidate.key] if bm25 is not None else None, ranking, today) for candidate in candidates]
    scored.sort(key=lambda item: -item.score)
    return scored


def _score(candidate: Candidate, bm25: float | None, ranking: Ranking, today: date) -> Scored:
    relevance = 1.0 if bm25 is None else bm25
    age = age_in_days(candidate.seen, today)
    strength = prominence(candidate.importance, age, candidate.reinforcement_count, candidate.status, ranking)
    scope = ranking.scope.of(candidate.scope)
    score = final_score(relevance, strength, scope, is_superseded=bool(candidate.is_superseded))
    return Scored(candidate, bm25, None, relevance, strength, scope, score, age)
