"""From a request to hits, step by step: candidates, whole sections, their passages, passages joined, variety."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.index.port import Candidate, Cosines, Index
from memory_kb.model import SCOPES, Filters, Hit, Parts
from memory_kb.search.candidates import CANDIDATES, FoundCandidates, find_candidates, split_by_entry
from memory_kb.search.groups import (
    Group,
    count_fitting,
    diversify,
    join_neighbours,
    make_group,
    spread,
    unite_copies,
    without_copies,
)
from memory_kb.search.passages import WordFinder, find_passages, score_entries
from memory_kb.search.query import Request
from memory_kb.search.scoring import (
    MOST_TIMES,
    SUPERSEDED_FACTOR,
    WEIGHTS,
    RelevanceParts,
    ScoredPassage,
    ScoredSection,
    TextScore,
    add_similarity,
    fuse,
    normalise,
    score_passages,
    score_texts,
    share_words,
    weigh,
)
from memory_kb.settings import Ranking
from memory_kb.terms import has_cjk
from memory_kb.text import load_json

#: Sections that are cut into passages, the best by their own words and meaning.
MOST_SECTIONS = 24
#: Sections of an entry that compete before its others, so that a long one leaves room for others.
SECTIONS_FIRST = 2
#: Words find little where the best passage says less of the query than this.
WEAK = 1 / 3
FEW_WORDS = "no passage says much of the query"


class Search(NamedTuple):
    """All that hits depend on beside the index: the request, how to rank, the day, and the query as a vector."""

    request: Request
    ranking: Ranking
    today: date
    cosines: Cosines | None = None


class SearchTrace(NamedTuple):
    """The result of every step of a search, in the order of the steps.

    `sections` are all candidates as wholes, the best first; `scored` are the passages of the first of them, `kept`
    those that no more specific scope says again, `groups` the kept ones with neighbours joined, each text once, as
    they compete, and `ordered` the groups after the reranking. `coverage` is about the share of the query, by the rarity
    of its words, that the best passage says.
    """

    found: FoundCandidates
    sections: list[ScoredSection]
    scored: list[ScoredPassage]
    kept: list[ScoredPassage]
    groups: list[Group]
    ordered: list[Group]
    coverage: float
    finder: WordFinder | None


def retrieve(index: Index, search: Search) -> tuple[tuple[Hit, ...], tuple[str, ...]]:
    """Return the hits of a search, best first, and notes for the user: that the query was changed, or they are weak."""
    request, trace = search.request, trace_search(index, search)
    groups = trace.ordered
    first, rest = spread(groups, 1 if request.is_task else request.per_entry)
    further = iter(()) if request.is_task else _find_further(index, search, trace)
    while len(first) < request.limit and (sections := next(further, None)):
        groups = [*groups, *without_copies(_rank_whole(index, search, trace, sections), groups)]
        first, rest = spread(groups, request.per_entry)
    ordered = first if request.is_task else [*first, *rest]
    shown = ordered[: count_fitting(ordered[: request.limit], request.max_chars)]
    hits = tuple(_make_hit(rank, group, request, trace) for rank, group in enumerate(shown, 1))
    query, notes = trace.found.query, trace.found.notes
    is_by_words = query and not query.phrases and request.mode == "auto" and search.cosines is None
    return hits, (*notes, FEW_WORDS) if hits and is_by_words and trace.coverage < WEAK else notes


def trace_search(index: Index, search: Search) -> SearchTrace:
    """Do all steps of a search, and return the result of each."""
    request, ranking, _, cosines = search
    found = find_candidates(index, request, cosines)
    texts = score_texts(index, found.query, found.candidates) if found.query else {}
    # The score of a text that says every word of the query once.
    full_score = sum(weight for term, weight in found.weights.items() if not term.endswith("*"))
    meaning_weight = _weigh_meaning(texts, full_score)
    # Nothing is nearer in meaning than the query itself.
    trusted = 0.0 if any(text.is_literal for text in texts.values()) else found.trusted * meaning_weight
    sections = _score_sections(search, found, texts, trusted)
    competing = _choose_competing(sections, by_entry=request.is_task)

    chunks = {key: competing[key].candidate for key in sorted(competing)}
    finder = WordFinder(index, found.query, found.weights) if found.query else None
    passages = find_passages(finder, chunks, found.nearness)
    entries = score_entries(index, finder, chunks) if finder else {}
    shares = share_words(texts, entries, passages) if found.query else []
    if found.query and meaning_weight and not has_cjk(request.text):  # similarity needs words with spaces between them
        shares = add_similarity(shares, passages, chunks, found.query, meaning_weight**2)
    words = normalise([share.total for share in shares]) if found.query else None
    parts = RelevanceParts(words, _nearness_of(found, [(passage.key, passage.number) for passage in passages]), trusted)
    pairs = [(competing[passage.key], passage) for passage in passages]
    scored = _demote_superseded(index, score_passages(pairs, parts, ranking, shares))

    kept = sorted(without_shadowed(index, scored, request.filters), key=_rank_key)
    groups = join_neighbours(kept)
    groups = sorted(groups if request.is_task else unite_copies(groups), key=lambda group: -group.best.score)
    limit = len(groups) if request.is_task or request.per_entry else request.limit
    ordered = diversify(groups, ranking.mmr_lambda, limit)
    coverage = max((passage.words for passage in passages), default=0.0) / full_score if full_score else 0.0
    return SearchTrace(found, sections, scored, kept, groups, ordered, coverage, finder)


def _weigh_meaning(texts: Mapping[int, TextScore], full_score: float) -> float:
    """Return how much vectors and similarity to the best sections count, from 0 to 1.

    They count less, the more of the query's words the best section has: its meaning is then certain.
    """
    best = max((text.own for text in texts.values()), default=0.0)
    share_of_words = min(1.0, best / (MOST_TIMES * full_score)) if full_score else 0.0
    return 1.0 - share_of_words**2


def _choose_competing(sections: Sequence[ScoredSection], *, by_entry: bool) -> dict[int, ScoredSection]:
    """Return the best sections, and those that say the same as one of them, by key.

    The best few of each entry come before its others. All sections compete where each entry is wanted, or where the
    successor of what is superseded may be far below it.
    """
    cuts_all = by_entry or any(section.candidate.is_superseded for section in sections)
    first, rest = split_by_entry(sections, SECTIONS_FIRST, lambda one: one.candidate.key - one.candidate.part)
    best = [*first, *rest][: None if cuts_all else MOST_SECTIONS]
    alike = {(section.candidate.title, section.relevance) for section in best}
    return {one.candidate.key: one for one in sections if (one.candidate.title, one.relevance) in alike}


def _nearness_of(found: FoundCandidates, wanted: Sequence[tuple[int, int | None]]) -> list[float] | None:
    """Return how near passages of sections, or sections as wholes, are in meaning; None where that does not count."""
    if found.nearness is None:
        return None
    near = ((found.nearness.get(key, ()), number) for key, number in wanted)
    return [
        max(scores, default=0.0) if number is None else next(iter(scores[number : number + 1]), 0.0)
        for scores, number in near
    ]


def _score_sections(
    search: Search, found: FoundCandidates, texts: Mapping[int, TextScore], trusted: float
) -> list[ScoredSection]:
    """Return all candidates as wholes, the best first."""
    keys = [candidate.key for candidate in found.candidates]
    words = normalise([texts[key].total for key in keys]) if texts else None
    relevance = fuse(
        RelevanceParts(words, _nearness_of(found, [(key, None) for key in keys]), trusted), len(keys), search.ranking
    )
    sections = []
    for candidate, fit in zip(found.candidates, relevance, strict=True):
        weight = weigh(candidate, search.ranking, search.today)
        sections.append(ScoredSection(candidate, weight, texts.get(candidate.key), fit, weight.apply(fit)))
    return sorted(sections, key=lambda section: (-section.score, -section.relevance))


def _rank_key(item: ScoredPassage) -> tuple[float, float, str, int, int]:
    candidate = item.section.candidate
    return -item.score, -item.relevance, candidate.source, candidate.position, item.passage.start


def _demote_superseded(index: Index, pool: list[ScoredPassage]) -> list[ScoredPassage]:
    """Return the scores, with superseded entries capped below their successors that were found too."""
    best: dict[str, float] = {}
    stale = set[str]()
    for item in pool:
        candidate = item.section.candidate
        best[candidate.entry_id] = max(item.score, best.get(candidate.entry_id, 0.0))
        if candidate.is_superseded:
            stale.add(candidate.entry_id)
    if not stale:
        return pool
    most = {entry_id: _find_cap(index, entry_id, best) for entry_id in stale}
    return [item._replace(score=min(item.score, most.get(item.section.candidate.entry_id, math.inf))) for item in pool]


def _find_cap(index: Index, entry_id: str, best: Mapping[str, float]) -> float:
    """Return what a superseded entry may score: less than any of its successors, by the half that it counts."""
    successors = index.successors(entry_id) + [
        str(link.get("to"))
        for entry in index.entries_with_id(entry_id)
        for link in (load_json(entry.metadata or "{}").get("links") or ())
        if isinstance(link, dict) and link.get("relation") == "superseded_by"
    ]
    scores = [score for one in successors for other, score in best.items() if other.startswith(one)]
    return min(scores, default=math.inf) * SUPERSEDED_FACTOR


def without_shadowed(index: Index, pool: Sequence[ScoredPassage], filters: Filters) -> list[ScoredPassage]:
    """Leave out what a more specific scope says again under the same id."""
    scopes = index.scopes_of({item.section.candidate.entry_id for item in pool}, filters)

    def is_shadowed(one: Candidate) -> bool:
        return not scopes.get(one.entry_id, frozenset()).isdisjoint(SCOPES[: SCOPES.index(one.scope)])

    return [item for item in pool if not is_shadowed(item.section.candidate)]


def _find_further(index: Index, search: Search, trace: SearchTrace) -> Iterator[list[ScoredSection]]:
    """Yield more sections, best first: candidates that were not cut, then others by their share of the best BM25."""
    cut = {item.passage.key for item in trace.scored}
    if uncut := [one for one in trace.sections if one.candidate.key not in cut]:
        yield uncut
    found, request = trace.found, search.request
    if found.query is not None and len(trace.sections) >= CANDIDATES:
        known, best = {section.candidate.key for section in trace.sections}, found.candidates[0].rank
        more = index.match(found.query.expression, WEIGHTS, request.filters, len(known) + request.limit)
        new = ((one, one.rank / best if best else 1.0) for one in more if one.key not in known)
        yield [ScoredSection(one, weigh(one, search.ranking, search.today), None, fit, 0.0) for one, fit in new]


def _rank_whole(index: Index, search: Search, trace: SearchTrace, sections: Sequence[ScoredSection]) -> list[Group]:
    """Return sections as groups, in their order, each as its best passage."""
    passages = find_passages(trace.finder, {one.candidate.key: one.candidate for one in sections})
    # The last of each section, the best one, is kept.
    best_passage = {passage.key: passage for passage in sorted(passages, key=lambda passage: passage.words)}
    scored = []
    for one in sections:
        fit, passage = one.relevance, best_passage[one.candidate.key]
        scored.append(ScoredPassage(one, passage, fit, None, fit, 1.0, one.weight.apply(fit)))
    kept = without_shadowed(index, scored, search.request.filters)
    return list(map(make_group, kept))


def _make_hit(rank: int, group: Group, request: Request, trace: SearchTrace) -> Hit:
    first, best, weight, explanation = group.chunk, group.best, group.best.section.weight, tuple[str, ...]()
    if request.explain:
        from memory_kb.search.explain import explain_hit

        explanation = explain_hit(group, rank, trace.groups, trace.finder)
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
            prominence=_round(weight.prominence),
            scope=weight.scope,
            prominence_factor=_round(weight.factor),
        ),
        text=group.text,
        explanation=explanation,
        copies=group.copies,
    )


def _round(value: float) -> float:
    """Return a number to six significant digits: a weak match beside a strong one is still above 0."""
    return float(f"{value:.6g}")
