"""The flow of a search: query, candidates, scores, folding, diversity, hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.model import Filters, Hit, Parts
from memory_kb.ports import Index, Question, StoredChunk
from memory_kb.retrieval.candidates import Scored, Sides, score_candidates
from memory_kb.retrieval.crowding import Place, one_of_each, thin
from memory_kb.retrieval.explain import explain
from memory_kb.retrieval.finding import CANDIDATES, Found, Request, find_candidates
from memory_kb.retrieval.folding import BY_BOTH, BY_WORDS, Group, fold
from memory_kb.retrieval.relevance import WEIGHTS, TextScore, normalise, score_texts
from memory_kb.retrieval.rerank import mmr_order
from memory_kb.settings import Ranking
from memory_kb.text import tokens
from memory_kb.words import SCOPES

#: Groups that compete for variety; what comes after them follows by score.
DIVERSE = 30


def retrieve(
    index: Index, request: Request, ranking: Ranking, today: date, question: Question | None = None
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the hits for a request, best first.

    With them comes what the asker should know about them. With a `question`, passages count that
    are near to it in meaning, whatever their words.
    """
    trace = follow(index, request, ranking, today, question)
    places = {place.group.best.candidate.key: (rank, place) for rank, place in enumerate(trace.places, 1)}
    ordered = one_of_each(trace.ordered) if request.by_entry else list(trace.ordered)
    if request.limit > len(ordered) and not request.by_entry:
        ordered += _further(index, trace.found, request, ranking, today)
    shown = ordered[: count_fitting(ordered[: request.limit], request.max_chars)]
    hits = (_make_hit(rank, group, request, trace.texts, places) for rank, group in enumerate(shown, 1))
    return tuple(hits), trace.found.notes


class Trace(NamedTuple):
    """What every step of a search came to, in the order of the steps.

    `scored` are all candidates, `kept` those that no more specific scope says again, `places` the
    kept ones folded into groups as they compete, and `ordered` the groups after the reranking.
    """

    found: Found
    texts: Mapping[int, TextScore]
    scored: list[Scored]
    kept: list[Scored]
    places: list[Place]
    ordered: list[Group]


def follow(index: Index, request: Request, ranking: Ranking, today: date, question: Question | None) -> Trace:
    """Do a search step by step."""
    found = find_candidates(index, request, question)
    texts = score_texts(index, found.query, found.candidates) if found.query else {}
    sides = Sides(normalise(texts) if found.query else None, _lift(found, texts))
    scored = score_candidates(found.candidates, sides, ranking, today)
    chunks = index.chunks(item.candidate.key for item in scored)
    kept = _without_shadowed(index, scored, chunks, request.filters)
    kept.sort(
        key=lambda item: (
            -item.score,
            -item.relevance,
            chunks[item.candidate.key].source,
            chunks[item.candidate.key].position,
        )
    )
    places = thin(fold(kept, chunks, BY_WORDS if found.nearness is None else BY_BOTH))
    limit = len(places) if request.by_entry else request.limit
    return Trace(found, texts, scored, kept, places, diversify(places, ranking.mmr_lambda, limit))


def _lift(found: Found, texts: Mapping[int, TextScore]) -> Mapping[int, float] | None:
    if found.nearness is None:
        return None
    from memory_kb.retrieval.nearness import lift_literal

    return lift_literal(found.nearness, {key: text.bonus for key, text in texts.items()}, found.nearest)


def _without_shadowed(
    index: Index, pool: Sequence[Scored], chunks: Mapping[int, StoredChunk], filters: Filters
) -> list[Scored]:
    """Leave out what a more specific scope says again under the same id."""
    scopes = index.scopes_of({chunk.entry_id for chunk in chunks.values()}, filters)
    found = ((scored, chunks[scored.candidate.key]) for scored in pool)
    return [scored for scored, chunk in found if not _is_shadowed(chunk.scope, scopes.get(chunk.entry_id))]


def _is_shadowed(scope: str, all_scopes: frozenset[str] | None) -> bool:
    return all_scopes is not None and any(other in all_scopes for other in SCOPES[: SCOPES.index(scope)])


def _further(index: Index, found: Found, request: Request, ranking: Ranking, today: date) -> list[Group]:
    """Return hits beyond the competing candidates.

    Each chunk stands by itself, in the order of the index.
    """
    if found.query is None or len(found.candidates) < CANDIDATES:
        return []
    there = {candidate.key for candidate in found.candidates}
    more = index.match(found.query.expression, WEIGHTS, request.filters, len(there) + request.limit)
    more = [candidate for candidate in more if candidate.key not in there]
    best = found.candidates[0].rank
    sides = Sides({candidate.key: candidate.rank / best if best else 1.0 for candidate in more})
    scored = {item.candidate.key: item for item in score_candidates(more, sides, ranking, today)}
    chunks = index.chunks(scored)
    shown = _without_shadowed(index, [scored[candidate.key] for candidate in more], chunks, request.filters)
    return [Group(item, (chunks[item.candidate.key],)) for item in shown]


def diversify(places: Sequence[Place], mmr_lambda: float, limit: int) -> list[Group]:
    """Return at least `limit` groups, if there are, with near repetitions moved back.

    Those past the first `DIVERSE` stay in place.
    """
    head, tail = places[:DIVERSE], places[DIVERSE:]
    scores = [place.score for place in head]
    if not any(scores):  # retired entries, say: what is left is how well they fit
        scores = [place.group.best.relevance * place.share for place in head]
    order = mmr_order(scores, [tokens(place.group.text) for place in head], mmr_lambda, limit)
    return [place.group for place in ([head[number] for number in order] + list(tail))]


def count_fitting(groups: Sequence[Group], max_chars: int) -> int:
    """Return how many leading groups have texts that fit a budget together (S3-41).

    The first that does not ends the list; 0 is no budget.
    """
    spent = 0
    for place, group in enumerate(groups if max_chars > 0 else ()):
        spent += len(group.text)
        if spent > max_chars:
            return place
    return len(groups)


def _make_hit(
    rank: int, group: Group, request: Request, texts: Mapping[int, TextScore], places: Mapping[int, tuple[int, Place]]
) -> Hit:
    first, best = group.chunks[0], group.best
    return Hit(
        rank=rank,
        id=first.entry_id,
        title=first.title,
        kind=first.kind,
        type=first.type,
        scope=first.scope,
        status=first.status,
        path=first.source,
        line=first.line,
        end_line=group.chunks[-1].end_line,
        score=_round(best.score),
        parts=Parts(
            bm25=None if best.bm25 is None else _round(best.bm25),
            vector=None if best.vector is None else _round(best.vector),
            relevance=_round(best.relevance),
            prominence=_round(best.prominence),
            scope=best.scope,
        ),
        text=group.text,
        explanation=explain(group, texts.get(best.candidate.key), rank, places.get(best.candidate.key))
        if request.explain
        else (),
    )


def _round(value: float) -> float:
    """Return a number to six significant digits.

    A weak match beside a strong one is still above 0.
    """
    return float(f"{value:.6g}")
