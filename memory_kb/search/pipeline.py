"""Rank what a search finds, step by step: candidates, whole sections, their passages, passages joined, variety."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import math
from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.index.port import Candidate, Index, StoredChunk, VectorQuery
from memory_kb.model import SCOPES, Filters
from memory_kb.search.candidates import FoundCandidates, Request, find_candidates, part_by_entry
from memory_kb.search.groups import Group, diversify, join_neighbours, unite_copies
from memory_kb.search.passages import Passage, Said, WordFinder, find_passages, score_entries
from memory_kb.search.query import TextQuery
from memory_kb.search.scoring import (
    MOST_TIMES,
    SUPERSEDED_FACTOR,
    RelevanceParts,
    Scored,
    ScoredSection,
    TextScore,
    Weight,
    WordShares,
    compare_with_best,
    fuse,
    normalise,
    score_passages,
    score_texts,
    weigh,
)
from memory_kb.settings import Ranking
from memory_kb.stop_words import stop_words
from memory_kb.terms import has_cjk, word_tokens
from memory_kb.text import load_json

#: Sections that are cut into passages, the best by their own words and meaning.
MOST_SECTIONS = 24
#: Sections of an entry that compete before its others, so that a long one leaves room for others.
SECTIONS_FIRST = 2


class SearchTrace(NamedTuple):
    """The result of every step of a search, in the order of the steps.

    `sections` are all candidates as wholes, the best first; `scored` are the passages of the first of them, `kept`
    those that no more specific scope says again, `groups` the kept ones with neighbours joined, each text once, as
    they compete, and `ordered` the groups after the reranking. `finder` finds the query's words, and `said` are those
    that each of the first sections says. `coverage` is about the share of the query, by the rarity of its words, that
    the best passage says.
    """

    found: FoundCandidates
    texts: Mapping[int, TextScore]
    sections: list[ScoredSection]
    shares: Mapping[Passage, WordShares]
    scored: list[Scored]
    kept: list[Scored]
    groups: list[Group]
    ordered: list[Group]
    coverage: float
    finder: WordFinder | None
    said: Mapping[int, Said]


def trace_search(
    index: Index, request: Request, ranking: Ranking, today: date, vector_query: VectorQuery | None
) -> SearchTrace:
    """Do all steps of a search, and return the result of each."""
    found = find_candidates(index, request, vector_query)
    texts = score_texts(index, found.query, found.candidates) if found.query else {}
    weights = {candidate.key: weigh(candidate, ranking, today) for candidate in found.candidates}
    # The score of a text that says every word of the query once.
    full_score = sum(weight for term, weight in found.weights.items() if not term.endswith("*"))
    meaning_weight = _weigh_meaning(texts, full_score)
    trusted = found.trusted * meaning_weight
    sections = _score_sections(found, texts, trusted, weights, ranking)
    competing = _choose_competing(sections, by_entry=request.is_task)

    chunks = index.chunks(competing)
    finder = WordFinder(index, found.query, found.weights) if found.query else None
    said = finder.read(chunks) if finder else {}
    passages = find_passages(finder, chunks, said, found.nearness)
    entries = score_entries(index, finder, chunks, said) if finder else {}
    shares = _share_words(texts, entries, passages) if found.query else []
    if found.query and meaning_weight and not has_cjk(request.text):  # similarity needs words with spaces between them
        shares = _add_similarity(shares, passages, chunks, found.query, meaning_weight**2)
    words = normalise([share.total for share in shares]) if found.query else None
    parts = RelevanceParts(words, _nearness_of(found, [(passage.key, passage.number) for passage in passages]), trusted)
    scored = score_passages([(competing[passage.key], passage) for passage in passages], parts, weights, ranking)
    scored = _below_successors(index, scored, chunks)

    kept = sorted(without_shadowed(index, scored, chunks, request.filters), key=_in_order)
    groups = join_neighbours(kept, chunks)
    groups = sorted(groups if request.is_task else unite_copies(groups), key=lambda group: -group.best.score)
    limit = len(groups) if request.is_task or request.per_entry else request.limit
    ordered = diversify(groups, ranking.mmr_lambda, limit)
    by_passage = dict(zip(passages, shares, strict=False))
    coverage = max((passage.words for passage in passages), default=0.0) / full_score if full_score else 0.0
    return SearchTrace(found, texts, sections, by_passage, scored, kept, groups, ordered, coverage, finder, said)


def _weigh_meaning(texts: Mapping[int, TextScore], full_score: float) -> float:
    """Return how much vectors and similarity to the best sections count, from 0 to 1.

    They count less, the more of the query's words the best section has: its meaning is then certain.
    """
    best = max((text.own for text in texts.values()), default=0.0)
    share_of_words = min(1.0, best / (MOST_TIMES * full_score)) if full_score else 0.0
    return 1.0 - share_of_words**2


def _choose_competing(sections: Sequence[ScoredSection], *, by_entry: bool) -> dict[int, Candidate]:
    """Return the best sections, and those that say the same as one of them, by key.

    The best few of each entry come before its others. All sections compete where each entry is wanted, or where the
    successor of what is superseded may be far below it.
    """
    cuts_all = by_entry or any(section.candidate.is_superseded for section in sections)
    first, rest = part_by_entry(sections, SECTIONS_FIRST, lambda one: one.candidate.key - one.candidate.part)
    best = [*first, *rest][: None if cuts_all else MOST_SECTIONS]
    alike = {(section.candidate.title, section.relevance) for section in best}
    return {one.candidate.key: one.candidate for one in sections if (one.candidate.title, one.relevance) in alike}


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
    found: FoundCandidates,
    texts: Mapping[int, TextScore],
    trusted: float,
    weights: Mapping[int, Weight],
    ranking: Ranking,
) -> list[ScoredSection]:
    """Return all candidates as wholes, the best first."""
    keys = [candidate.key for candidate in found.candidates]
    words = normalise([texts[key].total for key in keys]) if texts else None
    relevance = fuse(
        RelevanceParts(words, _nearness_of(found, [(key, None) for key in keys]), trusted), len(keys), ranking
    )
    sections = [
        ScoredSection(candidate, fit, weights[candidate.key].apply(fit))
        for candidate, fit in zip(found.candidates, relevance, strict=True)
    ]
    return sorted(sections, key=lambda section: (-section.score, -section.relevance))


def _in_order(item: Scored) -> tuple[float, float, str, int, int]:
    candidate = item.candidate
    return -item.score, -item.relevance, candidate.source, candidate.position, item.passage.start


def _share_words(
    texts: Mapping[int, TextScore], entries: Mapping[int, float], passages: Sequence[Passage]
) -> list[WordShares]:
    """Return the word scores of every passage, of its section and of its entry, each as a share of the best."""
    bonus = {passage.key: 1.0 + texts[passage.key].bonus for passage in passages}
    sections = dict(zip(texts, normalise([text.total for text in texts.values()]), strict=True))
    own = normalise([passage.words * bonus[passage.key] for passage in passages])
    around = dict(zip(bonus, normalise([entries[key] * more for key, more in bonus.items()]), strict=True))
    return [
        WordShares(sections[passage.key], share, around[passage.key])
        for passage, share in zip(passages, own, strict=True)
    ]


def _add_similarity(
    shares: Sequence[WordShares],
    passages: Sequence[Passage],
    chunks: Mapping[int, StoredChunk],
    query: TextQuery,
    counts: float,
) -> list[WordShares]:
    """Return the shares with the similarity of each section to the best ones, times what that `counts`."""
    relevance: dict[int, float] = {}
    for passage, share in zip(passages, shares, strict=True):
        relevance[passage.key] = max(share.total, relevance.get(passage.key, 0.0))

    def order(key: int) -> tuple[float, str, int, int]:  # a key says when a section was indexed, which is not to matter
        chunk = chunks[key]
        return -relevance[key], chunk.source, chunk.position, chunk.part

    texts = {key: f"{chunks[key].title}\n{chunks[key].content}" for key in sorted(relevance, key=order)[:MOST_SECTIONS]}
    similar = compare_with_best(texts, relevance, stop_words(sorted(word_tokens(" ".join(query.words)))))
    return [
        share._replace(similarity=counts * similar.get(passage.key, 0.0))
        for passage, share in zip(passages, shares, strict=True)
    ]


def _below_successors(index: Index, pool: list[Scored], chunks: Mapping[int, StoredChunk]) -> list[Scored]:
    """Return the scores, with superseded entries capped below their successors that were found too."""
    stale = {chunks[item.candidate.key].entry_id for item in pool if item.candidate.is_superseded}
    if not stale:
        return pool
    best: dict[str, float] = {}
    for item in pool:
        entry_id = chunks[item.candidate.key].entry_id
        best[entry_id] = max(item.score, best.get(entry_id, 0.0))
    most = {entry_id: _cap_superseded(index, entry_id, best) for entry_id in stale}
    return [
        item._replace(score=min(item.score, most.get(chunks[item.candidate.key].entry_id, item.score))) for item in pool
    ]


def _cap_superseded(index: Index, entry_id: str, best: Mapping[str, float]) -> float:
    """Return what a superseded entry may score: less than any of its successors, by the half that it counts."""
    successors = index.successors(entry_id) + [
        str(link.get("to"))
        for entry in index.entries_with_id(entry_id)
        for link in (load_json(entry.metadata or "{}").get("links") or ())
        if isinstance(link, dict) and link.get("relation") == "superseded_by"
    ]
    scores = [score for one in successors for other, score in best.items() if other.startswith(one)]
    return min(scores, default=math.inf) * SUPERSEDED_FACTOR


def without_shadowed(
    index: Index, pool: Sequence[Scored], chunks: Mapping[int, StoredChunk], filters: Filters
) -> list[Scored]:
    """Leave out what a more specific scope says again under the same id."""
    scopes = index.scopes_of({chunk.entry_id for chunk in chunks.values()}, filters)
    found = ((scored, chunks[scored.candidate.key]) for scored in pool)
    return [scored for scored, chunk in found if not _is_shadowed(chunk.scope, scopes.get(chunk.entry_id))]


def _is_shadowed(scope: str, all_scopes: frozenset[str] | None) -> bool:
    return all_scopes is not None and any(other in all_scopes for other in SCOPES[: SCOPES.index(scope)])
