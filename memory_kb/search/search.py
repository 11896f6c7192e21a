"""Run a search from query to hits, with an explanation of each."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.index.port import Candidate, Index, StoredChunk, VectorQuery
from memory_kb.model import SCOPES, Filters, Hit, Parts
from memory_kb.search.candidates import CANDIDATES, Found, Request, find_candidates, part_by_entry
from memory_kb.search.groups import (
    Group,
    count_fitting,
    diversify,
    fold,
    make_group,
    spread,
    unite_copies,
    without_copies,
)
from memory_kb.search.passages import Passage, Said, WordFinder, find_passages, score_entries
from memory_kb.search.query import TextQuery
from memory_kb.search.scoring import (
    ENTRY_WEIGHT,
    MOST_TIMES,
    PASSAGE_WEIGHT,
    SIMILARITY_WEIGHT,
    SUPERSEDED_FACTOR,
    WEIGHTS,
    Scored,
    ScoredSection,
    Sides,
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
from memory_kb.text import has_cjk, load_json, word_tokens

#: Words find little where the best passage says less of the query than this.
WEAK = 1 / 3
FEW_WORDS = "no passage says much of the query"
#: Sections that are cut into passages, the best by their own words and meaning.
MOST_SECTIONS = 24
#: Sections of an entry that compete before its others, so that a long one leaves room for others.
SECTIONS_FIRST = 2


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
    first, rest = spread(groups, 1 if request.by_entry else request.per_entry)
    further = iter(()) if request.by_entry else _find_further(index, trace, request)
    while len(first) < request.limit and (relevance := next(further, None)):
        more = _rank_whole(index, trace, relevance, request, ranking, today)
        groups = [*groups, *without_copies(more, groups)]
        first, rest = spread(groups, request.per_entry)
    ordered = first if request.by_entry else [*first, *rest]
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


class SearchTrace(NamedTuple):
    """The result of every step of a search, in the order of the steps.

    `sections` are all candidates as wholes, the best first; `scored` are the passages of the first of them, `kept`
    those that no more specific scope says again, `groups` the kept ones folded, each text once, as they compete, and
    `ordered` the groups after the reranking. `finder` finds the query's words, and `said` are those that each of the
    first sections says. `coverage` is about the share of the query, by the rarity of its words, that the best passage
    says.
    """

    found: Found
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
    """Do a search step by step: candidates, whole sections, their passages, passages joined, variety."""
    found = find_candidates(index, request, vector_query)
    texts = score_texts(index, found.query, found.candidates) if found.query else {}
    weights = {candidate.key: weigh(candidate, ranking, today) for candidate in found.candidates}
    # The score of a text that says every word of the query once.
    full_score = sum(weight for term, weight in found.weights.items() if not term.endswith("*"))
    unsaid = _how_far_to_guess(texts, full_score)
    trusted = found.trusted * unsaid
    sections = _score_sections(found, texts, trusted, weights, ranking)
    competing = _choose_competing(sections, by_entry=request.by_entry)

    chunks = index.chunks(competing)
    finder = WordFinder(index, found.query, found.weights) if found.query else None
    said = finder.read(chunks) if finder else {}
    passages = find_passages(finder, chunks, said, found.nearness)
    entries = score_entries(index, finder, chunks, said) if finder else {}
    shares = _share_words(texts, entries, passages) if found.query else []
    if found.query and unsaid and not has_cjk(request.text):  # similarity needs words with spaces between them
        shares = _add_similarity(shares, passages, chunks, found.query, unsaid**2)
    words = normalise([share.total for share in shares]) if found.query else None
    sides = Sides(words, _nearness_of(found, [(passage.key, passage.number) for passage in passages]), trusted)
    scored = score_passages([(competing[passage.key], passage) for passage in passages], sides, weights, ranking)
    scored = _below_successors(index, scored, chunks)

    kept = sorted(_without_shadowed(index, scored, chunks, request.filters), key=_in_order)
    groups = fold(kept, chunks)
    groups = sorted(groups if request.by_entry else unite_copies(groups), key=lambda group: -group.best.score)
    limit = len(groups) if request.by_entry or request.per_entry else request.limit
    ordered = diversify(groups, ranking.mmr_lambda, limit)
    by_passage = dict(zip(passages, shares, strict=False))
    coverage = max((passage.words for passage in passages), default=0.0) / full_score if full_score else 0.0
    return SearchTrace(found, texts, sections, by_passage, scored, kept, groups, ordered, coverage, finder, said)


def _how_far_to_guess(texts: Mapping[int, TextScore], full_score: float) -> float:
    """Return how far anything but the words of the query should count, from 0 to 1.

    Who asks in the words of a note needs no guess at the meaning.
    """
    best = max((text.own for text in texts.values()), default=0.0)
    said = min(1.0, best / (MOST_TIMES * full_score)) if full_score else 0.0
    return 1.0 - said**2


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


def _nearness_of(found: Found, wanted: Sequence[tuple[int, int | None]]) -> list[float] | None:
    """Return how near passages of sections, or sections as wholes, are in meaning; None where that does not count."""
    if found.nearness is None:
        return None
    near = ((found.nearness.get(key, ()), number) for key, number in wanted)
    return [
        max(scores, default=0.0) if number is None else next(iter(scores[number : number + 1]), 0.0)
        for scores, number in near
    ]


def _score_sections(
    found: Found, texts: Mapping[int, TextScore], trusted: float, weights: Mapping[int, Weight], ranking: Ranking
) -> list[ScoredSection]:
    """Return all candidates as wholes, the best first."""
    keys = [candidate.key for candidate in found.candidates]
    words = normalise([texts[key].total for key in keys]) if texts else None
    relevance = fuse(Sides(words, _nearness_of(found, [(key, None) for key in keys]), trusted), len(keys), ranking)
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
    most = {entry_id: _limit(index, entry_id, best) for entry_id in stale}
    return [
        item._replace(score=min(item.score, most.get(chunks[item.candidate.key].entry_id, item.score))) for item in pool
    ]


def _limit(index: Index, entry_id: str, best: Mapping[str, float]) -> float:
    """Return what a superseded entry may score: less than any of its successors, by the half that it counts."""
    successors = index.successors(entry_id) + [
        str(link.get("to"))
        for entry in index.entries_with_id(entry_id)
        for link in (load_json(entry.metadata or "{}").get("links") or ())
        if isinstance(link, dict) and link.get("relation") == "superseded_by"
    ]
    scores = [score for one in successors for other, score in best.items() if other.startswith(one)]
    return min(scores, default=math.inf) * SUPERSEDED_FACTOR


def _without_shadowed(
    index: Index, pool: Sequence[Scored], chunks: Mapping[int, StoredChunk], filters: Filters
) -> list[Scored]:
    """Leave out what a more specific scope says again under the same id."""
    scopes = index.scopes_of({chunk.entry_id for chunk in chunks.values()}, filters)
    found = ((scored, chunks[scored.candidate.key]) for scored in pool)
    return [scored for scored, chunk in found if not _is_shadowed(chunk.scope, scopes.get(chunk.entry_id))]


def _is_shadowed(scope: str, all_scopes: frozenset[str] | None) -> bool:
    return all_scopes is not None and any(other in all_scopes for other in SCOPES[: SCOPES.index(scope)])


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
    relevance: Mapping[Candidate, float],
    request: Request,
    ranking: Ranking,
    today: date,
) -> list[Group]:
    """Return sections that are not cut for the scores, in their order, each as its best passage."""
    chunks = index.chunks(one.key for one in relevance)
    passages = find_passages(trace.finder, chunks, trace.finder.read(chunks) if trace.finder else {})
    # The last of each section, the best one, is kept.
    best_passage = {passage.key: passage for passage in sorted(passages, key=lambda passage: passage.words)}
    scored = []
    for one, fit in relevance.items():
        weight = weigh(one, ranking, today)
        scored.append(Scored(one, best_passage[one.key], fit, None, fit, 1.0, weight.apply(fit), weight))
    return [
        make_group(item, chunks[item.candidate.key])
        for item in _without_shadowed(index, scored, chunks, request.filters)
    ]


def _make_hit(
    rank: int, group: Group, request: Request, trace: SearchTrace, ranks: Mapping[tuple[int, int], int]
) -> Hit:
    first, best = group.chunk, group.best
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
        explanation=explain_hit(group, trace, rank, ranks.get(_id(group))) if request.explain else (),
        copies=group.copies,
    )


def _id(group: Group) -> tuple[int, int]:
    return group.best.passage.key, group.best.passage.number


def _round(value: float) -> float:
    """Return a number to six significant digits.

    A weak match beside a strong one is still above 0.
    """
    return float(f"{value:.6g}")


def explain_hit(group: Group, trace: SearchTrace, rank: int, before: int | None) -> tuple[str, ...]:
    """Return a line for every factor of a hit's score.

    `before` is its rank before variety counted; None beyond the candidates.
    """
    best, candidate = group.best, group.best.candidate
    lines = [
        f"score {best.score:.4f} = relevance {best.relevance:.4f} x prominence {best.weight.factor:.4f} x scope {best.weight.scope:g} ({candidate.scope})"
    ]
    if best.share < 1:
        lines[0] += f" x {best.share:.2f} (a better passage of the same section is above)"
    if candidate.is_superseded:
        lines[0] += f" x {SUPERSEDED_FACTOR:g} (superseded by a newer entry)"
    lines += _explain_relevance(best, trace)
    lines += _explain_words(trace, candidate.key)
    lines.append(explain_prominence(best))
    if before is None:
        lines.append("relevance: beyond the candidates that compete; by BM25 alone")
    elif before != rank:
        lines.append(
            f"variety: rank {rank} instead of {before}, since {'others say' if rank < before else 'hits above it say'} much the same"
        )
    if group.size > 1:
        lines.append(f"text: {group.size} neighbouring passages that match, shown as one")
    return tuple(lines)


def _explain_relevance(scored: Scored, trace: SearchTrace) -> Iterator[str]:
    """Yield what the relevance of a passage is made of: its words, and its nearness in meaning."""
    text, shares = trace.texts.get(scored.candidate.key), trace.shares.get(scored.passage)
    if scored.vector is not None and scored.bm25 is not None:
        yield f"relevance: nearness in meaning {scored.vector:.4f} beside words {scored.bm25:.4f}, of 1 each"
    if text and shares:
        name = "relevance" if scored.vector is None else "words"
        terms = [
            f"{(1 - ENTRY_WEIGHT) * (1 - PASSAGE_WEIGHT):g} x section {shares.section:.4f}",
            f"{(1 - ENTRY_WEIGHT) * PASSAGE_WEIGHT:g} x passage {shares.passage:.4f}",
            f"{ENTRY_WEIGHT:g} x note {shares.entry:.4f}",
        ]
        if shares.similarity:
            terms.append(f"{SIMILARITY_WEIGHT:g} x similarity to the best {shares.similarity:.4f}")
        of_best = scored.relevance if scored.bm25 is None else scored.bm25
        yield f"{name}: {' + '.join(terms)} = {shares.total:.4f}, which is {of_best:.4f} of the best"
        bonus = f" x {1 + text.bonus:.3g} for title, headings, wording and speaker" if text.bonus else ""
        yield f"section: BM25 {text.own:.3g}{bonus}"


def _explain_words(trace: SearchTrace, key: int) -> list[str]:
    """Name the query's words that a section says or has above it, those that it lacks, and those that were left out."""
    query = trace.found.query
    if query is None or trace.finder is None or key not in trace.said:
        return []
    said, lacking = trace.finder.name_terms(trace.said[key])
    parts = {"words": said, "lacks": lacking, "ignored": [term for term in query.ignored if term not in query.terms]}
    named = {name: ", ".join(term.strip('" *') for term in terms) for name, terms in parts.items() if terms}
    return ["; ".join(f"{name} {terms}" for name, terms in named.items())]


def explain_prominence(scored: Scored) -> str:
    """Return what the prominence of a candidate is made of."""
    candidate = scored.candidate
    age = f"{scored.weight.age_days:.0f} days old" if candidate.seen else "undated, so of age 0"
    return f"prominence: importance {candidate.importance:g}, {age}, reinforced {candidate.reinforcement_count} times, {candidate.status}"
