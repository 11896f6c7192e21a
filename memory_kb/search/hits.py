"""Make the hits of a search from its ranked passages, and find more where too few of them were ranked."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from collections.abc import Iterator, Mapping
from datetime import date

from memory_kb.index.port import Candidate, Index, VectorQuery
from memory_kb.model import Hit, Parts
from memory_kb.search.candidates import CANDIDATES, Request
from memory_kb.search.groups import Group, count_fitting, make_group, spread, without_copies
from memory_kb.search.passages import find_passages
from memory_kb.search.pipeline import SearchTrace, trace_search, without_shadowed
from memory_kb.search.scoring import WEIGHTS, Scored, weigh
from memory_kb.settings import Ranking

#: Words find little where the best passage says less of the query than this.
WEAK = 1 / 3
FEW_WORDS = "no passage says much of the query"


def retrieve(
    index: Index, request: Request, ranking: Ranking, today: date, vector_query: VectorQuery | None = None
) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the hits for a request, best first, and notes about them.

    A note tells the user that the query was changed, or that the hits are weak. With a `vector_query`, passages whose
    vectors are similar to it count too, whatever their words.
    """
    trace = trace_search(index, request, ranking, today, vector_query)
    ranks = {_id(group): rank for rank, group in enumerate(trace.groups, 1)}
    groups = trace.ordered
    first, rest = spread(groups, 1 if request.is_task else request.per_entry)
    further = iter(()) if request.is_task else _find_further(index, trace, request)
    while len(first) < request.limit and (sections := next(further, None)):
        more = _rank_whole(index, trace, sections, request, ranking, today)
        groups = [*groups, *without_copies(more, groups)]
        first, rest = spread(groups, request.per_entry)
    ordered = first if request.is_task else [*first, *rest]
    shown = ordered[: count_fitting(ordered[: request.limit], request.max_chars)]
    hits = (_make_hit(rank, group, request, trace, ranks) for rank, group in enumerate(shown, 1))
    query = trace.found.query
    is_weak = (
        shown
        and vector_query is None
        and request.mode == "auto"
        and query
        and not query.phrases
        and trace.coverage < WEAK
    )
    return tuple(hits), (*trace.found.notes, *((FEW_WORDS,) if is_weak else ()))


def _find_further(index: Index, trace: SearchTrace, request: Request) -> Iterator[dict[Candidate, float]]:
    """Yield more sections with their relevance, best first: candidates that were not cut, then those that are none.

    The relevance of the latter is their score as a share of the best candidate's.
    """
    cut = {item.candidate.key for item in trace.scored}
    if uncut := {one.candidate: one.relevance for one in trace.sections if one.candidate.key not in cut}:
        yield uncut
    found = trace.found
    if found.query is not None and len(trace.sections) >= CANDIDATES:
        known, best = {section.candidate.key for section in trace.sections}, found.candidates[0].rank
        more = index.match(found.query.expression, WEIGHTS, request.filters, len(known) + request.limit)
        yield {one: one.rank / best if best else 1.0 for one in more if one.key not in known}


def _rank_whole(
    index: Index,
    trace: SearchTrace,
    sections: Mapping[Candidate, float],
    request: Request,
    ranking: Ranking,
    today: date,
) -> list[Group]:
    """Return sections with their relevance as groups, in their order, each as its best passage."""
    chunks = index.chunks(one.key for one in sections)
    passages = find_passages(trace.finder, chunks, trace.finder.read(chunks) if trace.finder else {})
    # The last of each section, the best one, is kept.
    best_passage = {passage.key: passage for passage in sorted(passages, key=lambda passage: passage.words)}
    scored = []
    for one, fit in sections.items():
        weight = weigh(one, ranking, today)
        scored.append(Scored(one, best_passage[one.key], fit, None, fit, 1.0, weight.apply(fit), weight))
    return [
        make_group(item, chunks[item.candidate.key])
        for item in without_shadowed(index, scored, chunks, request.filters)
    ]


def _make_hit(
    rank: int, group: Group, request: Request, trace: SearchTrace, ranks: Mapping[tuple[int, int], int]
) -> Hit:
    first, best, explanation = group.chunk, group.best, tuple[str, ...]()
    if request.explain:
        from memory_kb.search.explain import explain_hit

        explanation = explain_hit(group, trace, rank, ranks.get(_id(group)))
    return Hit(
        rank=rank,
        id=first.entry_id,
        title=first.title,
        kind=first.kind,
        type=first.type,
        scope=first.scope,
        status=first.status,
        path=first.source,
        line=group.line,
        end_line=group.end_line,
        score=_round(best.score),
        parts=Parts(
            bm25=None if best.bm25 is None else _round(best.bm25),
            vector=None if best.vector is None else _round(best.vector),
            relevance=_round(best.relevance),
            prominence=_round(best.weight.prominence),
            scope=best.weight.scope,
            prominence_factor=_round(best.weight.factor),
        ),
        text=group.text,
        explanation=explanation,
        copies=group.copies,
    )


def _id(group: Group) -> tuple[int, int]:
    return group.best.passage.key, group.best.passage.number


def _round(value: float) -> float:
    """Return a number to six significant digits.

    A weak match beside a strong one is still above 0.
    """
    return float(f"{value:.6g}")
