"""How well a passage answers a query.

Its words, its surroundings and its headings tell. A passage is about what stands around it, too.
Rather than indexing every text three times, each term's BM25 in the neighbouring passages is
looked up when a query is answered; the decision record on context gives the figures.
"""

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
#: How much of the better neighbour's lead in a term a passage is credited with.
CONTEXT_SHARE = 0.5
#: What two words of the query that stand side by side in a passage add, as a share of their BM25.
PAIR_SHARE = 0.25
#: What a passage gains that says the whole query as it stands.
WHOLE_BONUS = 1.0
#: What a title, and again a heading, adds that is just the query.
HEADING_BONUS = 0.3
#: A term whose best BM25 is below this stands in a large share of all passages; of one in more than
#: so many passages no single note has most.
_COMMON, _MANY = 1.0, 10_000
#: The least that the engine counts a term, however many passages have it.
_LEAST_RARITY = 1e-6


class TextScore(NamedTuple):
    """The parts of a passage's text score.

    Each is at least 0, and `total` is what ranks the passage. `bonus` is for titles and headings
    like the query, and for saying the query as it stands.
    """

    own: float
    context: float
    pairs: float
    bonus: float

    @property
    def total(self) -> float:
        """The sum of what was found, raised by the bonus."""
        return (self.own + self.context + self.pairs) * (1.0 + self.bonus)


def score_texts(index: Index, query: TextQuery, candidates: Sequence[Candidate]) -> dict[int, TextScore]:
    """Return the text score of every candidate, by key."""
    if not candidates:
        return {}
    keys = [candidate.key for candidate in candidates]
    around = sorted({place for key in keys for place in (key - 1, key, key + 1)})
    context = dict.fromkeys(keys, 0.0)
    # BM25 adds up over the phrases of an expression, and the query's names its phrases twice.
    own = {candidate.key: -candidate.rank for candidate in candidates}
    unranked = [key for key in keys if not own[key]]
    for term in (*query.phrases, *query.terms):
        ranks = index.ranks(term, WEIGHTS, around)
        times = 2 if term in query.phrases else 1
        for key in unranked:
            own[key] -= ranks.get(key, 0.0) * times
        if (factor := _lift(index, term, ranks)) > 1.0:
            for key in keys:
                own[key] -= ranks.get(key, 0.0) * times * (factor - 1.0)
            ranks = {key: rank * factor for key, rank in ranks.items()}
        for key in keys:
            nearby = min(ranks.get(key - 1, 0.0), ranks.get(key + 1, 0.0))
            if nearby:
                context[key] += share_context(-ranks.get(key, 0.0), -nearby)
    # So are all pairs, in one look.
    paired = index.ranks(" OR ".join(query.pairs), WEIGHTS, keys) if query.pairs else {}
    pairs = {key: PAIR_SHARE * abs(paired.get(key, 0.0)) for key in keys}
    text = " ".join(query.words)
    stop = stop_words(text.casefold().split())
    words = content_words(text, stop)
    bonus = {candidate.key: heading_bonus(words, stop, candidate.title, candidate.headings) for candidate in candidates}
    for key in index.ranks(query.whole, WEIGHTS, keys) if query.whole else ():
        bonus[key] += WHOLE_BONUS
    return {key: TextScore(own[key], context[key], pairs[key], bonus[key]) for key in keys}


def _lift(index: Index, term: str, ranks: Mapping[int, float]) -> float:
    """Return by how much a term counts for more than the engine makes of it."""
    if not ranks or min(ranks.values()) < -_COMMON:
        return 1.0
    passages = index.frequency(term)
    if passages > _MANY:
        return 1.0
    return lift(rarity(passages, index.count_chunks()), rarity(index.count_entries(term), index.count_entries()))


def rarity(count: int, total: int) -> float:
    """Return what BM25 makes of a term that stands in so many of all.

    Example:
        >>> round(rarity(1, 100), 2), rarity(60, 100)
        (4.19, 1e-06)
    """
    return max(_LEAST_RARITY, math.log((total - count + 0.5) / (count + 0.5)))


def lift(by_passages: float, by_entries: float) -> float:
    """Return the factor by which a term is worth more that few notes have, one of them in many passages.

    Example:
        >>> lift(0.5, 2.0), lift(2.0, 0.5)
        (4.0, 1.0)
    """
    return max(1.0, by_entries / by_passages)


def share_context(own: float, neighbour: float) -> float:
    """Return what a passage gains from a term its better neighbour says more clearly.

    Example:
        >>> share_context(1.0, 3.0), share_context(3.0, 1.0)
        (1.0, 0.0)
    """
    return CONTEXT_SHARE * max(0.0, neighbour - own)


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


def normalise(scores: Mapping[int, TextScore]) -> dict[int, float]:
    """Return the scores relative to the best (S3-35).

    That is 1 for the best, above 0 for every match. In a small vault a word that most passages
    say has a BM25 of nearly 0, but never quite; 0 is what a passage has without any.

    Example:
        >>> normalise({1: TextScore(8.0, 0.0, 0.0, 0.0), 2: TextScore(2.0, 0.0, 0.0, 0.0)})
        {1: 1.0, 2: 0.25}
    """
    totals = {key: score.total for key, score in scores.items()}
    best = max(totals.values(), default=0.0)
    return {key: total / best if best > 0 else 0.0 for key, total in totals.items()}
