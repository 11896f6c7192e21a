"""Candidates into scores: every factor of a hit, kept apart so that it can be explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memory_kb.ports import Candidate
from memory_kb.retrieval.scoring import age_in_days, final_score, normalise_rank, prominence
from memory_kb.settings import Ranking

#: The share of a neighbour's BM25 that a chunk is credited with: what stands before and after a
#: passage tells what it is about. See docs/decisions/0003-context-at-query-time.md.
CONTEXT_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with the factors of its score; `context` is the part of its BM25 owed to neighbours."""

    candidate: Candidate
    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    scope: float
    score: float
    context: float
    age_days: float


def add_context(candidates: Sequence[Candidate], share: float = CONTEXT_SHARE) -> dict[int, float]:
    """Return each candidate's BM25 with a share of what its neighbours in the text scored, by key.

    Like the rank itself, lower is better.

    Example:
        >>> rows = [Candidate(key, rank, 0.5, 0, None, "active", "project", 0) for key, rank in ((4, -8.0), (5, -2.0), (9, -3.0))]
        >>> add_context(rows, 0.5)
        {4: -9.0, 5: -6.0, 9: -3.0}
    """
    own = {candidate.key: candidate.rank for candidate in candidates}
    return {key: rank + share * (own.get(key - 1, 0.0) + own.get(key + 1, 0.0)) for key, rank in own.items()}


def score_candidates(candidates: Sequence[Candidate], ranking: Ranking, today: date) -> list[Scored]:
    """Return the candidates with their scores, best first.

    Candidates of a query without words all have rank 0 and relevance 1.
    """
    ranks = add_context(candidates)
    best = min(ranks.values(), default=0.0)
    scored = [_score(candidate, ranks[candidate.key], best, ranking, today) for candidate in candidates]
    scored.sort(key=lambda item: -item.score)
    return scored


def _score(candidate: Candidate, rank: float, best: float, ranking: Ranking, today: date) -> Scored:
    bm25 = normalise_rank(rank, best)
    age = age_in_days(candidate.seen, today)
    strength = prominence(candidate.importance, age, candidate.reinforcement_count, candidate.status, ranking)
    scope = ranking.scope.of(candidate.scope)
    return Scored(
        candidate=candidate,
        bm25=bm25,
        vector=None,
        relevance=bm25,
        prominence=strength,
        scope=scope,
        score=final_score(bm25, strength, scope, is_superseded=bool(candidate.is_superseded)),
        context=1.0 - candidate.rank / rank if rank else 0.0,
        age_days=age,
    )
