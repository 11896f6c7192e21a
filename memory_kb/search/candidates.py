"""Find the chunks that a search ranks: by words, by vectors, or by file."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import itertools
import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from memory_kb.index.port import Candidate, Index, VectorQuery
from memory_kb.model import Filters
from memory_kb.search.query import MAX_TERMS, TextQuery, clean, is_long, parse_query, parse_words
from memory_kb.search.scoring import MOST_TIMES, WEIGHTS, weigh_terms
from memory_kb.search.spelling import respell
from memory_kb.terms import needs_cutting

#: Chunks that compete. It does not depend on how many hits are wanted, so the first k hits are the
#: same for every limit; whoever wants more gets the next chunks as the index ranks them.
CANDIDATES = 60
#: Sections of one entry that compete before others of it, where there are too many; and where each entry gives one hit.
MOST_PER_ENTRY, SECTIONS_PER_ENTRY = 40, 8
#: Passages that are looked through for others than those of the longest notes.
_FARTHEST = 20_000
#: How much of a long query is read for its rarest words; characters.
_READ_CHARS = 500
#: So many sections say the rare words of a query before its other words may be left aside as common ones.
_ENOUGH = 3 * CANDIDATES
#: All common words together score at most so many times what the last of the rare words does.
_MOST_OF_COMMON = 1.5
#: What may stand around signs that are looked for, but be none of them.
_AROUND_SIGNS = ' "`'
#: Words by which people speak of themselves.
_PERSON = frozenset(("i", "me", "my", "we", "our", "us"))
#: A vault has conversations if so many sections, and such a share of all, say one of these words.
_LEAST_SPOKEN, _SHARE_SPOKEN = 10, 0.1


_T = TypeVar("_T")


class Request(NamedTuple):
    """One search: the text, the filters, and the limits of the answer.

    `max_chars` 0 is no budget; `key_terms` are looked for in place of the text's own words; with `is_typing` the last
    word may be the beginning of one; with `is_task` the text describes a task, quotes and dashes are part of it, and
    each entry gives one hit; with `per_entry` it gives no more than so many while others match.
    """

    text: str
    filters: Filters = Filters()
    limit: int = 10
    max_chars: int = 0
    explain: bool = False
    mode: str = "auto"
    key_terms: tuple[str, ...] = ()
    is_typing: bool = False
    is_task: bool = False
    per_entry: int = 0


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


def find_candidates(index: Index, request: Request, vector_query: VectorQuery | None) -> FoundCandidates:
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
    found = _find(index, request, query, vector_query)
    if found.candidates or not query.terms or not (query.phrases or query.excluded):
        return found
    without = f" without {', '.join(query.excluded)}" if query.excluded else ""
    note = f"nothing says {', '.join(query.phrases or query.terms[:3])}{without}; looked for all the words instead"
    again = _find(index, request, query.loosened(), vector_query)
    return again._replace(notes=(*found.notes, note))


def _find_signs(index: Index, request: Request) -> list[Candidate]:
    """Return the chunks that have a query without words as it is, such as `??=`, or without quotes; none for a task."""
    text = clean(request.text).strip()
    for signs in () if request.is_task else dict.fromkeys((text, text.strip(_AROUND_SIGNS))):
        if signs and (found := index.containing(signs, request.filters, CANDIDATES)):
            return found
    return []


def choose_query(index: Index, request: Request) -> TextQuery:
    """Return what to look for: the key terms, if any, else the words of the text or the rarest of a long one."""
    if request.key_terms:
        return parse_words(" ".join(request.key_terms))
    if is_long(request.text):
        return _find_rare_words(index, request.text)
    query = _add_joined_words(index, _add_pronouns(index, _parse(index, request))).without_endings()
    return query.opened() if request.is_typing and request.text[-1:].isalnum() else query


def _parse(index: Index, request: Request) -> TextQuery:
    """Return the query for a text: for all its words if it describes a task.

    An option of a command is a word, too: what is excluded, but notes about it write with the dash, as in
    `Get-ChildItem -Recurse`.
    """
    if request.is_task:
        return parse_words(request.text)
    query = parse_query(request.text)
    options = frozenset(word for word in query.excluded if _is_option(index, word, query, request.filters))
    return parse_query(request.text, options) if options else query


def _is_option(index: Index, excluded: str, query: TextQuery, filters: Filters) -> bool:
    word = re.escape(excluded.strip('"'))
    option = re.compile(rf"(?<![\w-])-{word}(?!\w)", re.IGNORECASE)
    others = f" AND ({' OR '.join(query.terms)})" if query.terms else ""
    saying = index.match(excluded + others, WEIGHTS, filters, CANDIDATES)
    return any(option.search(chunk.content) for chunk in index.chunks(one.key for one in saying).values())


def _find_rare_words(index: Index, task: str) -> TextQuery:
    """Return a query for the rarest words in the beginning of a long text, the rarest first.

    Words that no note has are left out unless there are no others.
    """
    query = parse_words(task[:_READ_CHARS], MAX_TERMS * 4)
    counts = {term: index.frequency(term) for term in query.terms}
    known = sorted((term for term in query.terms if counts[term]), key=lambda term: counts[term])
    terms = tuple(known or query.terms)[:MAX_TERMS]
    pairs = tuple(pair for pair in query.pairs if any(term.strip('"') in pair for term in terms))
    return query._replace(terms=terms, pairs=pairs, is_cut=False)


def _add_pronouns(index: Index, query: TextQuery) -> TextQuery:
    """Return the query with its "I" and "my", too, where the sections say them as often as conversations do.

    Who asks like that means what a person said, not what an agent answered at length. A manual says "I" so
    rarely that it would count for more than the words that matter.
    """
    said = dict.fromkeys(f'"{word}"' for word in re.findall(r"\w+", " ".join(query.words).lower()) if word in _PERSON)
    least = max(_LEAST_SPOKEN, index.count_chunks() * _SHARE_SPOKEN) if said else 0.0
    return query.with_terms(term for term in said if term not in query.terms and index.frequency(term) >= least)


def _add_joined_words(index: Index, query: TextQuery) -> TextQuery:
    """Return the query with two adjacent words also joined, if the joined form is more than half as frequent.

    Who asks for data classes means dataclasses, too.
    """
    joined = {pair.replace(" ", ""): pair for pair in query.pairs if pair.count(" ") == 1 and not needs_cutting(pair)}
    counts = {term: index.frequency(term) for term in joined if term not in query.terms}
    return query.with_terms(
        term for term, count in counts.items() if count and 2 * count > index.frequency(joined[term])
    )


def _find(index: Index, request: Request, query: TextQuery, vector_query: VectorQuery | None) -> FoundCandidates:
    cut = f"the query is long; its first {len(query.terms)} different words were looked for"
    said = {term: index.frequency(term) for term in dict.fromkeys((*query.terms, *query.phrases))}
    query, changed = respell(index, query, said)
    notes = (cut, *changed) if query.is_cut else changed
    wanted = dict.fromkeys((*query.terms, *query.phrases))
    counts = {term: said[term] if term in said else index.frequency(term) for term in wanted}
    weights = weigh_terms(counts, index.count_chunks())
    common = _find_common(query, counts, weights)
    if vector_query is None:
        return FoundCandidates(query, _match(index, request, query, common), notes, weights=weights)
    from memory_kb.search.vector_scores import find_near_chunks, score_nearness, scores_of

    is_by_words = request.mode != "vector"
    candidates = _match(index, request, query, common) if is_by_words else []
    nearness = score_nearness(vector_query)
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
            parts = {"rare": rare, "common": " OR ".join(common)}
            found = index.match(query.expression, WEIGHTS, request.filters, limit, **parts)
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
        first, rest = part_by_entry(found, crowd, lambda one: one.key - one.part)
        if len(found) < wanted or len(first) >= limit or wanted >= _FARTHEST:
            return [*first, *rest][:limit]
        wanted = min(wanted * 10, _FARTHEST)


def part_by_entry(found: Sequence[_T], crowd: int, entry_of: Callable[[_T], Hashable]) -> tuple[list[_T], list[_T]]:
    """Split items into the first few of every entry and the others, both in their order."""
    counts = Counter[Hashable]()
    parted: tuple[list[_T], list[_T]] = [], []
    for one in found:
        entry = entry_of(one)
        counts[entry] += 1
        parted[counts[entry] > crowd].append(one)
    return parted
