"""The flow of a search: query, candidates, scores, folding, diversity, hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memory_kb.model import SCOPES, Filters, Hit, Parts
from memory_kb.ports import Candidate, Index
from memory_kb.retrieval.candidates import Scored, score_candidates
from memory_kb.retrieval.explain import explain
from memory_kb.retrieval.folding import Group, fold
from memory_kb.retrieval.query import parse_query
from memory_kb.retrieval.rerank import mmr_order
from memory_kb.settings import Ranking
from memory_kb.text import tokens

#: Chunks that are scored, and of those the ones that are looked at whole. Neither depends on how
#: many hits are wanted, so rank 1 is the same for every k.
CANDIDATES = 1_000
POOL = 100
#: Groups that compete for variety; what comes after them follows by score.
DIVERSE = 50
#: bm25 weights of title, headings, content, tags, applies_to, dated, terms.
WEIGHTS = (2.0, 1.5, 1.0, 1.5, 1.0, 0.5, 1.0)


@dataclass(frozen=True, slots=True)
class Request:
    """One search: what for, among which entries, and how much of it. `max_chars` 0 is no budget."""

    text: str
    filters: Filters = Filters()
    limit: int = 10
    max_chars: int = 0
    explain: bool = False


def retrieve(index: Index, request: Request, ranking: Ranking, today: date) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the hits for a request, best first, and what the asker should know about them."""
    candidates, notes = find_candidates(index, request)
    scored = score_candidates(candidates, ranking, today)
    groups = _groups(index, scored[: max(POOL, request.limit)], request.filters)
    ordered = diversify(groups, ranking.mmr_lambda)
    hits = (_make_hit(rank, group, request) for rank, group in enumerate(ordered[: request.limit], 1))
    return fit_budget(tuple(hits), request.max_chars), notes


def find_candidates(index: Index, request: Request) -> tuple[list[Candidate], tuple[str, ...]]:
    """Return the chunks that fit a request by their words, or by their file alone.

    A question that quotes a phrase which stands nowhere is asked again with the phrase's words;
    a phrase asked for by itself is not.
    """
    query = parse_query(request.text)
    if query.is_empty:
        if request.filters.file is not None and not request.text.strip():
            return index.newest(request.filters, CANDIDATES), ()
        return [], ("the query has no words to look for",)
    found = index.match(query.expression, WEIGHTS, request.filters, CANDIDATES)
    if found or not (query.phrases and query.terms):
        return found, ()
    loose = query.without_phrases()
    quoted = ", ".join(query.phrases)
    return index.match(loose.expression, WEIGHTS, request.filters, CANDIDATES), (f"nothing says {quoted}; looked for the words instead",)


def _groups(index: Index, pool: Sequence[Scored], filters: Filters) -> list[Group]:
    """Fold the pool into groups, leaving out what a more specific scope says again under the same id."""
    chunks = index.chunks(scored.candidate.key for scored in pool)
    scopes = index.scopes_of({chunk.entry_id for chunk in chunks.values()}, filters)
    kept = [scored for scored in pool if not _is_shadowed(chunks[scored.candidate.key].scope, scopes.get(chunks[scored.candidate.key].entry_id))]
    kept.sort(key=lambda scored: (-scored.score, chunks[scored.candidate.key].source, chunks[scored.candidate.key].position))
    return fold(kept, chunks)


def _is_shadowed(scope: str, all_scopes: frozenset[str] | None) -> bool:
    return all_scopes is not None and any(other in all_scopes for other in SCOPES[: SCOPES.index(scope)])


def diversify(groups: Sequence[Group], mmr_lambda: float) -> list[Group]:
    """Return the groups with near repetitions moved back; those past the first `DIVERSE` stay in place."""
    head, tail = groups[:DIVERSE], groups[DIVERSE:]
    order = mmr_order([group.best.score for group in head], [tokens(group.text) for group in head], mmr_lambda)
    return [head[place] for place in order] + list(tail)


def fit_budget(hits: tuple[Hit, ...], max_chars: int) -> tuple[Hit, ...]:
    """Return the leading hits whose texts fit a budget together; the first that does not ends the list (S3-41)."""
    if max_chars <= 0:
        return hits
    spent = 0
    for place, hit in enumerate(hits):
        spent += len(hit.text)
        if spent > max_chars:
            return hits[:place]
    return hits


def _make_hit(rank: int, group: Group, request: Request) -> Hit:
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
        score=round(best.score, 6),
        parts=Parts(_rounded(best.bm25), _rounded(best.vector), round(best.relevance, 6), round(best.prominence, 6), best.scope),
        text=group.text,
        explanation=explain(group) if request.explain else (),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
