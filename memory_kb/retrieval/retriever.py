"""The flow of a search: query, candidates, scores, folding, diversity, hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.model import Filters, Hit, Parts
from memory_kb.ports import Candidate, Index, StoredChunk
from memory_kb.retrieval.candidates import Scored, score_candidates
from memory_kb.retrieval.explain import explain
from memory_kb.retrieval.folding import Group, fold
from memory_kb.retrieval.query import TextQuery, parse_query
from memory_kb.retrieval.relevance import WEIGHTS, TextScore, normalise, score_texts
from memory_kb.retrieval.rerank import mmr_order
from memory_kb.settings import Ranking
from memory_kb.text import tokens
from memory_kb.words import SCOPES

#: Chunks that compete. It does not depend on how many hits are wanted, so the first k hits are the
#: same for every limit; whoever wants more gets the next chunks as the index ranks them.
CANDIDATES = 200
#: Groups that compete for variety; what comes after them follows by score.
DIVERSE = 30


class Request(NamedTuple):
    """One search: what for, among which entries, and how much of it.

    `max_chars` 0 is no budget.
    """

    text: str
    filters: Filters = Filters()
    limit: int = 10
    max_chars: int = 0
    explain: bool = False


def retrieve(index: Index, request: Request, ranking: Ranking, today: date) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the hits for a request, best first.

    With them comes what the asker should know about them.
    """
    found = find_candidates(index, request)
    texts = score_texts(index, found.query, found.candidates) if found.query else {}
    scored = score_candidates(found.candidates, normalise(texts) if found.query else None, ranking, today)
    groups = _groups(index, scored, request.filters)
    places = {group.best.candidate.key: place for place, group in enumerate(groups, 1)}
    ordered = diversify(groups, ranking.mmr_lambda, request.limit)
    if request.limit > len(ordered):
        ordered += _further(index, found, request, ranking, today)
    hits = (_make_hit(rank, group, request, texts, places) for rank, group in enumerate(ordered[: request.limit], 1))
    return fit_budget(tuple(hits), request.max_chars), found.notes


class Found(NamedTuple):
    """The chunks that fit a request.

    `query` is None where they were found without words.
    """

    query: TextQuery | None
    candidates: list[Candidate]
    notes: tuple[str, ...] = ()


def find_candidates(index: Index, request: Request) -> Found:
    """Return the chunks that fit a request by their words, or by their file alone.

    A question with a phrase that stands nowhere, or whose excluded words leave nothing, is asked
    again in its plain words; a phrase asked for by itself is not.
    """
    query = parse_query(request.text)
    if query.is_empty:
        if request.filters.file is not None and not request.text.strip():
            return Found(None, index.newest(request.filters, CANDIDATES))
        return Found(None, [], ("the query has no words to look for",))
    candidates = index.match(query.expression, WEIGHTS, request.filters, CANDIDATES)
    notes = (f"the query is long; its first {len(query.terms)} different words were looked for",) if query.is_cut else ()
    if candidates or not query.terms or not (query.phrases or query.excluded):
        return Found(query, candidates, notes)
    loose = query.loosened()
    without = f" without {', '.join(query.excluded)}" if query.excluded else ""
    note = f"nothing says {', '.join(query.phrases or query.terms[:3])}{without}; looked for all the words instead"
    return Found(loose, index.match(loose.expression, WEIGHTS, request.filters, CANDIDATES), (*notes, note))


def _groups(index: Index, pool: Sequence[Scored], filters: Filters) -> list[Group]:
    """Fold the pool into groups.

    Equal scores stand in the order of the files.
    """
    chunks = index.chunks(scored.candidate.key for scored in pool)
    kept = _without_shadowed(index, pool, chunks, filters)
    kept.sort(key=lambda scored: (-scored.score, -scored.relevance, chunks[scored.candidate.key].source, chunks[scored.candidate.key].position))
    return fold(kept, chunks)


def _without_shadowed(index: Index, pool: Sequence[Scored], chunks: Mapping[int, StoredChunk], filters: Filters) -> list[Scored]:
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
    more = index.match(found.query.expression, WEIGHTS, request.filters, CANDIDATES + request.limit)[CANDIDATES:]
    best = found.candidates[0].rank
    bm25 = {candidate.key: candidate.rank / best if best else 1.0 for candidate in more}
    scored = {item.candidate.key: item for item in score_candidates(more, bm25, ranking, today)}
    chunks = index.chunks(scored)
    shown = _without_shadowed(index, [scored[candidate.key] for candidate in more], chunks, request.filters)
    return [Group(item, (chunks[item.candidate.key],)) for item in shown]


def diversify(groups: Sequence[Group], mmr_lambda: float, limit: int) -> list[Group]:
    """Return at least `limit` groups, if there are, with near repetitions moved back.

    Those past the first `DIVERSE` stay in place.
    """
    head, tail = groups[:DIVERSE], groups[DIVERSE:]
    scores = [group.best.score for group in head]
    if not any(scores):  # retired entries, say: what is left is how well they fit
        scores = [group.best.relevance for group in head]
    order = mmr_order(scores, [tokens(group.text) for group in head], mmr_lambda, limit)
    return [head[place] for place in order] + list(tail)


def fit_budget(hits: tuple[Hit, ...], max_chars: int) -> tuple[Hit, ...]:
    """Return the leading hits whose texts fit a budget together (S3-41).

    The first that does not ends the list.
    """
    if max_chars <= 0:
        return hits
    spent = 0
    for place, hit in enumerate(hits):
        spent += len(hit.text)
        if spent > max_chars:
            return hits[:place]
    return hits


def _make_hit(rank: int, group: Group, request: Request, texts: Mapping[int, TextScore], places: Mapping[int, int]) -> Hit:
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
        explanation=explain(group, texts.get(best.candidate.key), rank, places.get(best.candidate.key)) if request.explain else (),
    )


def _round(value: float) -> float:
    """Return a number to six significant digits.

    A weak match beside a strong one is still above 0.
    """
    return float(f"{value:.6g}")
