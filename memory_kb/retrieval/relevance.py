"""How well a section answers a query by its words, its title and its headings."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_kb.ports import Candidate, Index
from memory_kb.retrieval.query import TextQuery
from memory_kb.retrieval.stopwords import stop_words
from memory_kb.text import jaccard, tokens

#: bm25 weights of title, headings, content, tags, applies_to, dated, terms.
WEIGHTS = (5.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0)
#: What two words of the query that stand side by side in a section add, as a share of their BM25.
PAIR_SHARE = 0.25
#: What a section gains that says the whole query as it stands.
WHOLE_BONUS = 1.0
#: What a title, and again a heading, adds that is just the query.
HEADING_BONUS = 0.3
#: What a passage's own words count beside those of its section.
PASSAGE_WEIGHT = 0.4
#: A term that is less rare than this stands in a large share of all sections; of one in more than
#: so many sections no single note has most.
_COMMON, _MANY = 1.0, 10_000
#: The least that the engine counts a term, however many passages have it.
_LEAST_RARITY = 1e-6


class TextScore(NamedTuple):
    """The parts of a section's text score.

    Each is at least 0, and `total` is what ranks the section. `bonus` is for titles and headings
    like the query, and for saying the query as it stands.
    """

    own: float
    pairs: float
    bonus: float

    @property
    def total(self) -> float:
        """The sum of what was found, raised by the bonus."""
        return (self.own + self.pairs) * (1.0 + self.bonus)


class WordShares(NamedTuple):
    """A section's text score and the worth of a passage's words, each relative to the best of all."""

    section: float
    passage: float

    @property
    def total(self) -> float:
        """The weighted sum of both."""
        return (1.0 - PASSAGE_WEIGHT) * self.section + PASSAGE_WEIGHT * self.passage


class Weight(NamedTuple):
    """How rare a term is, and by how much it counts for more than the engine makes of it.

    The engine counts sections; a term is rare, too, that few notes say, one of them in many sections.
    """

    rarity: float
    lift: float


def weigh_terms(index: Index, query: TextQuery) -> dict[str, Weight]:
    """Return the weight of every term and phrase of a query."""
    total = index.count_chunks()
    return {term: _weigh(index, term, total) for term in dict.fromkeys((*query.terms, *query.phrases))}


def rarities(weights: Mapping[str, Weight]) -> dict[str, float]:
    """Return how rare every term is."""
    return {term: weight.rarity for term, weight in weights.items()}


def _weigh(index: Index, term: str, total: int) -> Weight:
    sections = index.frequency(term)
    weight = math.log1p((total - sections + 0.5) / (sections + 0.5))
    if weight > _COMMON or sections > _MANY:
        return Weight(weight, 1.0)
    entries, total_entries = index.count_entries(term), index.count_entries()
    by_entries = math.log1p((total_entries - entries + 0.5) / (entries + 0.5))
    return Weight(max(weight, by_entries), lift(rarity(sections, total), rarity(entries, total_entries)))


def score_texts(
    index: Index, query: TextQuery, candidates: Sequence[Candidate], weights: Mapping[str, Weight]
) -> dict[int, TextScore]:
    """Return the text score of every candidate, by key."""
    if not candidates:
        return {}
    keys = [candidate.key for candidate in candidates]
    own = {candidate.key: -candidate.rank for candidate in candidates}
    if unranked := [key for key in keys if not own[key]]:
        own |= {key: -rank for key, rank in index.ranks(query.expression, WEIGHTS, unranked).items()}
    for term, weight in weights.items():
        if weight.lift > 1.0:
            times = 2 if term in query.phrases else 1
            for key, rank in index.ranks(term, WEIGHTS, keys).items():
                own[key] -= rank * times * (weight.lift - 1.0)
    paired = index.ranks(" OR ".join(query.pairs), WEIGHTS, keys) if query.pairs else {}
    pairs = {key: PAIR_SHARE * abs(paired.get(key, 0.0)) for key in keys}
    text = " ".join(query.words)
    stop = stop_words(text.casefold().split())
    words = content_words(text, stop)
    bonus = {candidate.key: heading_bonus(words, stop, candidate.title, candidate.headings) for candidate in candidates}
    for key in index.ranks(query.whole, WEIGHTS, keys) if query.whole else ():
        bonus[key] += WHOLE_BONUS
    return {key: TextScore(own[key], pairs[key], bonus[key]) for key in keys}


def rarity(count: int, total: int) -> float:
    """Return what BM25 makes of a term that stands in so many of all.

    Example:
        >>> round(rarity(1, 100), 2), rarity(60, 100)
        (4.19, 1e-06)
    """
    return max(_LEAST_RARITY, math.log((total - count + 0.5) / (count + 0.5)))


def lift(by_sections: float, by_entries: float) -> float:
    """Return the factor by which a term is worth more that few notes have, one of them in many sections.

    Example:
        >>> lift(0.5, 2.0), lift(2.0, 0.5)
        (4.0, 1.0)
    """
    return max(1.0, by_entries / by_sections)


def heading_bonus(words: frozenset[str], stop: frozenset[str], title: str, headings: str) -> float:
    """Return the bonus for a title and a heading that share words with the query.

    Example:
        >>> heading_bonus(frozenset({"deploy"}), frozenset({"the"}), "The deploys", "")
        0.3
    """
    if not _says_any(words, f"{title} {headings}"):  # most of them; their words need not be told apart
        return 0.0
    best = max([_share(words, stop, heading) for heading in headings.split(" > ")]) if headings else 0.0
    return HEADING_BONUS * (_share(words, stop, title) + best)


def _share(words: frozenset[str], stop: frozenset[str], text: str) -> float:
    return jaccard(words, content_words(text, stop)) if _says_any(words, text) else 0.0


def _says_any(words: frozenset[str], text: str) -> bool:
    folded = text.casefold()
    return any(word in folded for word in words)


@functools.lru_cache(maxsize=4096)
def content_words(text: str, stop: frozenset[str]) -> frozenset[str]:
    """Return the words that carry meaning, English plurals as their singular.

    Cached, because the passages of a long note share its title and its upper headings.

    Example:
        >>> sorted(content_words("The hotkeys of a class", frozenset({"the", "of", "a"})))
        ['class', 'hotkey']
    """
    words = tokens(text)
    kept = words - stop or words
    return frozenset([word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in kept])


def normalise(totals: Mapping[int, float]) -> dict[int, float]:
    """Return scores relative to the best: 1 for it, above 0 for every match.

    In a small vault a word that most sections say has a BM25 of nearly 0, but never quite; 0 is
    what a section has without any.

    Example:
        >>> normalise({1: 8.0, 2: 2.0})
        {1: 1.0, 2: 0.25}
    """
    best = max(totals.values(), default=0.0)
    return {key: total / best if best > 0 else 0.0 for key, total in totals.items()}
