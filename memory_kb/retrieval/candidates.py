"""Candidates into scores, every factor of a hit kept apart.

That way a hit can be explained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.ports import Candidate
from memory_kb.retrieval.passages import Passage
from memory_kb.retrieval.scoring import age_in_days, final_score, prominence
from memory_kb.settings import Ranking

#: The constant of reciprocal rank fusion.
RRF_OFFSET = 10
#: What each further passage of a section counts; of a note that is one section, the first of them
#: shows the note.
SAME_SECTION, SAME_NOTE = 0.9, 0.5


class Scored(NamedTuple):
    """A passage of a candidate with the factors of its score.

    A part that the query does not use is None. `prominence` is before the exponent, `factor` what
    it multiplies by; `share` is what counts of a further passage of the same section.
    """

    candidate: Candidate
    passage: Passage
    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    factor: float
    scope: float
    share: float
    score: float
    age_days: float


class Sides(NamedTuple):
    """The two sides of relevance, each from 0 to 1 by the place of a passage; a missing one counts 0.

    None stands for a side that the query does not have.
    """

    bm25: Mapping[int, float] | None
    vector: Mapping[int, float] | None = None


def score_passages(
    passages: Sequence[tuple[Candidate, Passage]], sides: Sides, ranking: Ranking, today: date
) -> list[Scored]:
    """Return passages with their scores, best first.

    Of the passages of one section only the best counts in full. `passages` has those of a section
    one after the other.
    """
    relevance = fuse(sides, range(len(passages)), ranking)
    order = sorted(range(len(passages)), key=lambda place: -relevance[place])
    further = Counter[int]()
    scored = []
    for place in order:
        candidate, passage = passages[place]
        is_whole_note = candidate.part == 0 and candidate.is_single
        share = (SAME_NOTE if is_whole_note else SAME_SECTION) ** further[candidate.key]
        further[candidate.key] += 1
        scored.append(_score(candidate, passage, sides, place, relevance[place], share, ranking, today))
    scored.sort(key=lambda item: (-item.score, -item.relevance))
    return scored


def fuse(sides: Sides, keys: Iterable[int], ranking: Ranking) -> dict[int, float]:
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


def _score(
    candidate: Candidate,
    passage: Passage,
    sides: Sides,
    place: int,
    relevance: float,
    share: float,
    ranking: Ranking,
    today: date,
) -> Scored:
    bm25 = None if sides.bm25 is None else sides.bm25.get(place, 0.0)
    vector = None if sides.vector is None else sides.vector.get(place, 0.0)
    age = age_in_days(candidate.seen, today)
    strength = prominence(candidate.importance, age, candidate.reinforcement_count, candidate.status, ranking)
    factor = strength**ranking.prominence_exponent if strength else 0.0
    scope = ranking.scope.of(candidate.scope)
    score = share * final_score(relevance, factor, scope, is_superseded=bool(candidate.is_superseded))
    return Scored(candidate, passage, bm25, vector, relevance, strength, factor, scope, share, score, age)
