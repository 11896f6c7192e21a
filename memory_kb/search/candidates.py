"""Find the chunks that a search ranks: by words, by vectors, or by file."""

import itertools
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from memory_kb.index.port import Candidate, Cosines, Index
from memory_kb.search.query import Request, TextQuery, clean
from memory_kb.search.rewriting import choose_query, respell
from memory_kb.search.scoring import MOST_TIMES, WEIGHTS, weigh_terms

#: Chunks that compete. It does not depend on how many hits are wanted, so the first k hits are the
#: same for every limit; whoever wants more gets the next chunks as the index ranks them.
CANDIDATES = 60
#: Sections of one entry that compete before others of it, where there are too many; and where each entry gives one hit.
MOST_PER_ENTRY, SECTIONS_PER_ENTRY = 40, 8
#: Passages that are looked through for others than those of the longest notes.
_FARTHEST = 20_000
#: So many sections say the rare words of a query before its other words may be left aside as common ones.
_ENOUGH = 3 * CANDIDATES
#: All common words together score at most so many times what the last of the rare words does.
_MOST_OF_COMMON = 1.5
#: What may stand around signs that are looked for, but be none of them.
_AROUND_SIGNS = ' "`'

_T = TypeVar("_T")


class FoundCandidates(NamedTuple):
    """The chunks that fit a request.

    `query` is None for a search without words. `nearness` maps a chunk to the vector scores of its passages; it is None
    for a search by words alone. `weights` is how rare each term is; `trusted`, from 0 to 1, is how far nearness counts.
    """

    query: TextQuery | None
    candidates: list[Candidate]
    notes: tuple[str, ...] = ()
    nearness: Mapping[int, Sequence[float]] | None = None
    weights: Mapping[str, float] = {}
    trusted: float = 1.0


def find_candidates(index: Index, request: Request, cosines: Cosines | None) -> FoundCandidates:
    """Return the chunks that fit a request by their words, their meaning, or their file alone.

    A query without words is looked for as it is. One with a phrase that occurs nowhere, or whose excluded words leave
    nothing, is asked again in its plain words; a phrase asked for by itself is not.
    """
    query = choose_query(index, request)
    if query.is_empty:
        if request.filters.file is not None and not request.text.strip():
            return FoundCandidates(None, index.newest(request.filters, CANDIDATES))
        candidates = _find_signs(index, request)
        return FoundCandidates(None, candidates, () if candidates else ("the query has no words to look for",))
    found = _find(index, request, query, cosines)
    if found.candidates or not query.terms or not (query.phrases or query.excluded):
        return found
    without = f" without {', '.join(query.excluded)}" if query.excluded else ""
    note = f"nothing says {', '.join(query.phrases or query.terms[:3])}{without}; looked for all the words instead"
    again = _find(index, request, query.loosened(), cosines)
    return again._replace(notes=(*found.notes, note))


def _find_signs(index: Index, request: Request) -> list[Candidate]:
    """Return the chunks that have a query without words as it is, such as `??=`, or without quotes; none for a task."""
    text = clean(request.text).strip()
    for signs in () if request.is_task else dict.fromkeys((text, text.strip(_AROUND_SIGNS))):
        if signs and (found := index.containing(signs, request.filters, CANDIDATES)):
            return found
    return []


def _find(index: Index, request: Request, query: TextQuery, cosines: Cosines | None) -> FoundCandidates:
    cut = f"the query is long; its first {len(query.terms)} different words were looked for"
    said = {term: index.frequency(term) for term in dict.fromkeys((*query.terms, *query.phrases))}
    query, changed = respell(index, query, said)
    notes = (cut, *changed) if query.is_cut else changed
    wanted = dict.fromkeys((*query.terms, *query.phrases))
    counts = {term: said[term] if term in said else index.frequency(term) for term in wanted}
    weights = weigh_terms(counts, index.count_chunks())
    common = _find_common(query, counts, weights)
    if cosines is None:
        return FoundCandidates(query, _match(index, request, query, common), notes, weights=weights)
    from memory_kb.search.vector_scores import find_near_chunks, score_nearness, scores_of

    is_by_words = request.mode != "vector"
    candidates = _match(index, request, query, common) if is_by_words else []
    nearness = score_nearness(cosines)
    candidates += find_near_chunks(index, request.filters, query, nearness, candidates)
    near = scores_of(nearness, [candidate.key for candidate in candidates])
    return FoundCandidates(query if is_by_words else None, candidates, notes, near, weights, nearness.trusted)


def _find_common(query: TextQuery, counts: Mapping[str, int], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the words that hardly decide which sections are the best, and the most that each can score.

    To score all that say such a word takes longest. There are none where too few sections say the other words.
    """
    common: dict[str, float] = {}
    if query.phrases or query.excluded:
        return common
    terms = sorted(query.terms, key=lambda term: counts[term])
    sums = itertools.accumulate(counts[term] for term in terms)
    last = next((term for term, sections in zip(terms, sums, strict=True) if sections >= _ENOUGH), None)
    left = _MOST_OF_COMMON * weights[last] if last else 0.0
    for term in reversed(terms):
        left -= MOST_TIMES * weights[term]
        if left < 0 or term == last:
            break
        common[term] = MOST_TIMES * weights[term]
    return common


def _match(index: Index, request: Request, query: TextQuery, common: Mapping[str, float]) -> list[Candidate]:
    """Return the candidates by their words; where entries are wanted, few passages of each compete."""
    rare = " OR ".join(term for term in query.terms if term not in common)
    most = sum(common.values())

    def match(limit: int) -> list[Candidate]:
        if common:  # a section without a rare word scores at most as much as its common ones can
            no_rare_word = f"({' OR '.join(common)}) NOT ({rare})"
            found = index.match(query.expression, WEIGHTS, request.filters, limit, without=no_rare_word)
            if len(found) == limit and -found[-1].rank > most:
                return found
        return index.match(query.expression, WEIGHTS, request.filters, limit)

    return match_evenly(match, CANDIDATES, SECTIONS_PER_ENTRY if request.is_task else MOST_PER_ENTRY)


def match_evenly(match: Callable[[int], list[Candidate]], limit: int, crowd: int) -> list[Candidate]:
    """Return the best of the candidates that `match` finds; more than `crowd` of one entry come behind those of others.

    `match` is asked for more until there are none, or enough others.
    """
    wanted = limit
    while True:
        found = match(wanted)
        first, rest = split_by_entry(found, crowd, lambda one: one.key - one.part)
        if len(found) < wanted or len(first) >= limit or wanted >= _FARTHEST:
            return [*first, *rest][:limit]
        wanted = min(wanted * 10, _FARTHEST)


def split_by_entry(found: Sequence[_T], crowd: int, entry_of: Callable[[_T], Hashable]) -> tuple[list[_T], list[_T]]:
    """Split items into the first few of every entry and the others, both in their order."""
    counts = Counter[Hashable]()
    parted: tuple[list[_T], list[_T]] = [], []
    for one in found:
        entry = entry_of(one)
        counts[entry] += 1
        parted[counts[entry] > crowd].append(one)
    return parted
