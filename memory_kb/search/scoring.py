"""Score candidates: relevance, prominence, scope, and the fusion of words and vectors."""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from memory_kb.index.port import Candidate, Index
from memory_kb.lazy_regex import lazy_regex
from memory_kb.search.passages import Passage
from memory_kb.search.query import TextQuery
from memory_kb.settings import Ranking
from memory_kb.stop_words import stop_words
from memory_kb.terms import has_cjk, jaccard, word_tokens

#: bm25 weights of title, headings, content, tags, applies_to, dated, terms.
WEIGHTS = (3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0)
#: BM25 counts no word more often than this.
MOST_TIMES = 2.2
#: What words that are adjacent in the query add where a section says them so, as a share of what they are worth.
PAIR_SHARE = 0.25
#: What a section gains that says the whole query as it is.
WHOLE_BONUS = 1.0
#: What it gains besides if it writes the signs of the query, too.
SIGNS_BONUS = 0.5
#: What a title, and again a heading, adds that has just the words of the query.
HEADING_BONUS = 0.3
#: What a section loses that an assistant says in the log of a conversation: people ask for what they said themselves.
ASSISTANT_LOSS, _ASSISTANT = 0.2, "assistant"
#: What a passage's own words count beside those of its section.
PASSAGE_WEIGHT = 0.4
#: What the words of the whole entry count beside both.
ENTRY_WEIGHT = 0.3
#: What similarity to the best sections adds at most.
SIMILARITY_WEIGHT = 0.2

_SIGN = lazy_regex(r"[!-/:-@\[-`{-~]")


class TextScore(NamedTuple):
    """The text score of a section: its BM25, and a bonus for title, headings, wording and who speaks.

    `is_literal` says that the section has all words of a query of several one after the other.
    """

    own: float
    bonus: float
    is_literal: bool = False

    @property
    def total(self) -> float:
        """What ranks the section."""
        return self.own * (1.0 + self.bonus)


class WordShares(NamedTuple):
    """The text score of a section and the word scores of a passage and its entry, each relative to the best of all.

    `similarity` is how much the section is like the best ones, from 0 to 1, less where the query's words say it all.
    """

    section: float
    passage: float
    entry: float
    similarity: float = 0.0

    @property
    def total(self) -> float:
        """The weighted sum of the three, and what similarity adds."""
        part = (1.0 - PASSAGE_WEIGHT) * self.section + PASSAGE_WEIGHT * self.passage
        return (1.0 - ENTRY_WEIGHT) * part + ENTRY_WEIGHT * self.entry + SIMILARITY_WEIGHT * self.similarity


def weigh_terms(counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return how rare words are, by the number of sections that say each.

    Example:
        >>> {word: round(weight, 1) for word, weight in weigh_terms({"rare": 1, "common": 50}, 100).items()}
        {'rare': 4.2, 'common': 0.7}
    """
    return {term: math.log1p((total - count + 0.5) / (count + 0.5)) for term, count in counts.items()}


def score_texts(index: Index, query: TextQuery, candidates: Sequence[Candidate]) -> dict[int, TextScore]:
    """Return the text score of every candidate, by key."""
    keys = [candidate.key for candidate in candidates]
    own = {candidate.key: -candidate.rank for candidate in candidates}
    if unranked := [key for key in keys if not own[key]]:
        own |= {key: -rank for key, rank in index.ranks(query.expression, WEIGHTS, unranked).items()}
    pairs = index.ranks(" OR ".join(query.pairs), WEIGHTS, keys) if query.pairs else {}
    for key, rank in pairs.items():
        own[key] -= PAIR_SHARE * rank
    bonus = _compare_headings(query, candidates)
    literal: Collection[int] = ()
    if whole := query.whole:
        # A section that says the whole query says the pairs in it, too.
        may_say = list(pairs) if any(pair.strip('"') in whole for pair in query.pairs) else keys
        literal = index.matching([whole], may_say)[whole] if may_say else ()
        for key in literal:
            bonus[key] += WHOLE_BONUS
    may_write = [one for one in candidates if not whole or one.key in literal]
    for key in _find_writing(" ".join(query.words), may_write):
        bonus[key] += SIGNS_BONUS
    for candidate in candidates:
        if candidate.headings.partition(" > ")[0].lower() == _ASSISTANT:
            bonus[candidate.key] -= ASSISTANT_LOSS * (1.0 + bonus[candidate.key])
    return {key: TextScore(own[key], bonus[key], key in literal) for key in keys}


def _find_writing(text: str, candidates: Sequence[Candidate]) -> list[int]:
    """Return those of the sections that have a text with signs just as it is, but for capitals and blanks."""
    if not _SIGN.search(text):
        return []
    wanted = " ".join(text.casefold().split())
    return [one.key for one in candidates if wanted in " ".join(one.content.casefold().split())]


def _compare_headings(query: TextQuery, candidates: Sequence[Candidate]) -> dict[int, float]:
    """Return the bonus of every candidate for a title and a heading that share words with the query."""
    asked = word_tokens(" ".join(query.words))
    stop = stop_words(sorted(asked))
    asked = asked - stop or asked

    def likeness(lines: Sequence[str]) -> float:
        said = map(word_tokens, lines)
        return max(
            [jaccard(asked, words - stop or words) for words in said if not asked.isdisjoint(words)], default=0.0
        )

    def bonus(one: Candidate) -> float:
        above = f"{one.title}\n{one.names}\n{one.headings}"
        folded = above.casefold()
        # Most say no word of the query, which is seen sooner than they are cut into words. Only words of scripts
        # without spaces may be cut out of a text that does not hold them as they are.
        if not (any(word in folded for word in asked) or has_cjk(above)):
            return 0.0
        return HEADING_BONUS * (likeness(f"{one.title}\n{one.names}".split("\n")) + likeness(one.headings.split(" > ")))

    return {one.key: bonus(one) for one in candidates}


def normalise(totals: Sequence[float]) -> list[float]:
    """Return scores relative to the best: 1 for it, and above 0 for every match, however common its words.

    Example:
        >>> normalise([8.0, 2.0])
        [1.0, 0.25]
    """
    best = max(totals, default=0.0)
    return [total / best if best > 0 else 0.0 for total in totals]


def share_words(
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


#: How many of the best sections the others are compared with, by how much of each, in characters, and how many others.
BEST, _COMPARED, _MOST_COMPARED = 3, 800, 24
#: Letters by which words are compared, so that the forms of a word are one.
_PREFIX = 6
_WORD = lazy_regex(r"[^\W_]{3,}")


def add_similarity(
    shares: Sequence[WordShares],
    passages: Sequence[Passage],
    chunks: Mapping[int, Candidate],
    query: TextQuery,
    counts: float,
) -> list[WordShares]:
    """Return the shares with the similarity of each section to the best ones, times what that `counts`."""
    relevance = dict.fromkeys(chunks, 0.0)
    for passage, share in zip(passages, shares, strict=True):
        relevance[passage.key] = max(share.total, relevance[passage.key])
    # A key says when a section was indexed, which is not to matter.
    ordered = sorted(chunks.values(), key=lambda one: (-relevance[one.key], one.source, one.position))
    texts = {one.key: f"{one.title}\n{one.content}" for one in ordered[:_MOST_COMPARED]}
    similar = compare_with_best(texts, relevance, stop_words(sorted(word_tokens(" ".join(query.words)))))
    return [
        share._replace(similarity=counts * similar.get(passage.key, 0.0))
        for passage, share in zip(passages, shares, strict=True)
    ]


def compare_with_best(
    texts: Mapping[int, str], relevance: Mapping[int, float], stop: Collection[str]
) -> dict[int, float]:
    """Return how similar every text is to the best of the others, by key: 1 for the most similar one.

    What is about the same thing as the best is more likely meant. The idea is that of pseudo-relevance feedback, but
    the query is not extended. Similarity is the mean cosine with the best, weighed by their relevance. Words count by
    tf-idf among the texts; those of `stop` do not count. Of equally relevant ones, the first of `texts` are the best.

    Example:
        >>> texts = {1: "whisk the batter", 2: "pour the batter, flip the pancake", 3: "a bill for the flip chart"}
        >>> found = compare_with_best(texts, {1: 1.0, 2: 0.5, 3: 0.4}, {"the"})
        >>> {key: round(similarity, 2) for key, similarity in found.items()}
        {1: 0.62, 2: 1.0, 3: 0.24}
    """
    vectors = _make_vectors(texts, stop)
    length = {key: math.hypot(*vector.values()) or 1.0 for key, vector in vectors.items()}
    best = sorted(texts, key=lambda key: -relevance[key])[:BEST]
    centre: dict[str, float] = {}
    for key in best:
        for word, weight in vectors[key].items():
            centre[word] = centre.get(word, 0.0) + relevance[key] * weight / length[key]
    total = sum(relevance[key] for key in best)
    similarity: dict[int, float] = {}
    for key, vector in vectors.items():
        own = relevance[key] if key in best else 0.0  # no text is compared with itself
        # In the order of the text: that of a set, and so the last digit of a sum, is another in every process.
        shared = sum([weight * centre[word] for word, weight in vector.items() if word in centre]) / length[key] - own
        # What is left of a text that shares no word with the others is the error of a sum, which would be the most.
        similarity[key] = max(0.0, round(shared, 9)) / (total - own) if total > own else 0.0
    most = max(similarity.values(), default=0.0) or 1.0
    return {key: value / most for key, value in similarity.items()}


def _make_vectors(texts: Mapping[int, str], stop: Collection[str]) -> dict[int, dict[str, float]]:
    """Return the beginning of each text, which says what it is about, as its words with their tf-idf."""
    begun = ((key, _WORD.findall(text[:_COMPARED].lower())) for key, text in texts.items())
    counts = {key: Counter([word[:_PREFIX] for word in words if word not in stop]) for key, words in begun}
    saying = Counter(itertools.chain.from_iterable(counts.values()))
    rarity = {word: math.log1p(len(texts) / number) for word, number in saying.items()}
    return {
        key: {word: (1.0 + math.log(number) if number > 1 else 1.0) * rarity[word] for word, number in words.items()}
        for key, words in counts.items()
    }


SUPERSEDED_FACTOR = 0.5
#: Prominence beyond these counts as these. Under the default exponent of 0.1 their factors differ by
#: less than 1 / 0.45: what fits less than 0.45 as well stays below, however prominent it is.
LEAST_PROMINENCE, MOST_PROMINENCE = 0.01, 29.0


def decay(days: float, half_life: float = 90.0, floor: float = 0.0) -> float:
    """Return what is left of 1 after some days: `max(floor, 0.5 ** (days / half_life))`, and 1 before the first.

    Example:
        >>> decay(0), decay(90), decay(180), decay(3650, floor=0.1)
        (1.0, 0.5, 0.25, 0.1)
    """
    return float(max(floor, 0.5 ** (max(0.0, days) / half_life)))


def prominence(importance: float, days: float, count: int, status: str, ranking: Ranking) -> float:
    """Return the prominence of an entry: importance x decay x (1 + reinforcements), 0 for a retired one.

    Example:
        >>> round(prominence(0.9, 3650, 0, "active", Ranking()), 4), prominence(0.9, 0, 5, "retired", Ranking())
        (0.09, 0.0)
    """
    if status == "retired":
        return 0.0
    return importance * decay(days, ranking.half_life_days, ranking.decay_floor) * (1 + count)


#: The constant of reciprocal rank fusion.
RRF_OFFSET = 10
#: What each further passage of a section counts; of a note that is one section, the first shows the note.
SAME_SECTION, SAME_NOTE = 0.9, 0.5


class Weight(NamedTuple):
    """The weight of an entry for any query; `prominence` is before the exponent, `factor` multiplies the relevance."""

    prominence: float
    factor: float
    scope: float
    age_days: float
    is_superseded: bool

    def apply(self, relevance: float) -> float:
        """Return a score: relevance x prominence x scope, halved when a newer entry replaces this one."""
        return relevance * self.factor * self.scope * (SUPERSEDED_FACTOR if self.is_superseded else 1.0)


class ScoredSection(NamedTuple):
    """A candidate as a whole, with its score; `text` is None in a search without words."""

    candidate: Candidate
    weight: Weight
    text: TextScore | None
    relevance: float
    score: float


class ScoredPassage(NamedTuple):
    """A passage of a section with the factors of its score.

    A part that the query does not use is None; `share` is what counts of a further passage of the same section, and
    `vector_weight` what nearness counts beside words.
    """

    section: ScoredSection
    passage: Passage
    bm25: float | None
    vector: float | None
    relevance: float
    share: float
    score: float
    shares: WordShares | None = None
    vector_weight: float = 0.0


def weigh(candidate: Candidate, ranking: Ranking, today: date) -> Weight:
    """Return the weight of a candidate on a day; one without a date, or from the future, has age 0."""
    age = max(0.0, (today - date.fromisoformat(candidate.seen)).days) if candidate.seen else 0.0
    strength = prominence(candidate.importance, age, candidate.reinforcement_count, candidate.status, ranking)
    factor = min(max(strength, LEAST_PROMINENCE), MOST_PROMINENCE) ** ranking.prominence_exponent if strength else 0.0
    return Weight(strength, factor, ranking.scope.of(candidate.scope), age, bool(candidate.is_superseded))


def score_passages(
    passages: Sequence[tuple[ScoredSection, Passage]],
    parts: "RelevanceParts",
    ranking: Ranking,
    shares: Sequence[WordShares] = (),
) -> list[ScoredPassage]:
    """Return passages with their scores, best first.

    Of the passages of one section only the best counts in full. `shares` are what their words are made of.
    """
    relevance, vector_weight = fuse(parts, len(passages), ranking), parts.weigh_vectors(ranking)
    further = Counter[int]()
    scored = []
    for place in sorted(range(len(passages)), key=lambda place: -relevance[place]):
        section, passage = passages[place]
        is_whole_note = section.candidate.part == 0 and section.candidate.is_single
        share = (SAME_NOTE if is_whole_note else SAME_SECTION) ** further[passage.key]
        further[passage.key] += 1
        bm25, vector = (None if one is None else one[place] for one in parts[:2])
        fit, own = relevance[place], shares[place] if shares else None
        score = share * section.weight.apply(fit)
        scored.append(ScoredPassage(section, passage, bm25, vector, fit, share, score, own, vector_weight))
    scored.sort(key=lambda item: (-item.score, -item.relevance))
    return scored


class RelevanceParts(NamedTuple):
    """How well each text fits a query by words and by meaning, from 0 to 1; None where that does not count.

    Words take over what nearness is not `trusted` with.
    """

    words: Sequence[float] | None
    nearness: Sequence[float] | None = None
    trusted: float = 1.0

    def weigh_vectors(self, ranking: Ranking) -> float:
        """Return what nearness counts beside words, from 0 to 1."""
        share = ranking.vector_weight / ((ranking.vector_weight + ranking.text_weight) or 1.0)
        return share * (self.trusted if ranking.text_weight else 1.0)


def fuse(parts: RelevanceParts, size: int, ranking: Ranking) -> Sequence[float]:
    """Return the relevance of every one of `size` texts.

    That is the weighted sum of the two parts, or of their reciprocal ranks; one part alone
    counts as it is, and without any all are equally relevant.

    Example:
        >>> [round(one, 4) for one in fuse(RelevanceParts([1.0, 0.0], [0.5, 1.0]), 2, Ranking())]
        [0.65, 0.7]
        >>> fuse(RelevanceParts([1.0, 0.5]), 2, Ranking())
        [1.0, 0.5]
    """
    words, nearness = parts[:2]
    if words is None or nearness is None:
        return words or nearness or [1.0] * size
    if ranking.fusion != "weighted":
        words, nearness = _by_rank(words), _by_rank(nearness)
    share = parts.weigh_vectors(ranking)
    return [share * near + (1.0 - share) * word for near, word in zip(nearness, words, strict=True)]


def _by_rank(scores: Sequence[float]) -> list[float]:
    """Return reciprocal ranks in place of scores, 1 for the best and 0 for 0; equal scores share a rank."""
    ranks = {score: rank for rank, score in enumerate(sorted({score for score in scores if score > 0}, reverse=True))}
    return [(RRF_OFFSET + 1) / (RRF_OFFSET + 1 + ranks[score]) if score > 0 else 0.0 for score in scores]
