"""Compare what a search found with the best of it: what is about the same thing is more likely meant.

The idea is that of pseudo-relevance feedback, but the query is not extended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping

from memory_kb.regex import regex

#: How many of the best sections the others are compared with.
BEST = 3
#: Letters by which words are compared, so that the forms of a word are one.
_PREFIX = 6
_WORD = regex(r"[^\W_]{3,}")


def compare_with_best(
    texts: Mapping[int, str], relevance: Mapping[int, float], stop: Collection[str]
) -> dict[int, float]:
    """Return how similar every text is to the best of the others, by key: 1 for the most similar one.

    That is the mean cosine with the best of them, weighed by their relevance. Words count by tf-idf among the texts;
    those of `stop` do not count. Of equally relevant ones, the first of `texts` are the best.

    Example:
        >>> texts = {1: "whisk the batter", 2: "pour the batter, flip the pancake", 3: "a bill for the flip chart"}
        >>> found = compare_with_best(texts, {1: 1.0, 2: 0.5, 3: 0.4}, {"the"})
        >>> {key: round(similarity, 2) for key, similarity in found.items()}
        {1: 0.62, 2: 1.0, 3: 0.24}
    """
    vectors = _make_vectors(texts, stop)
    best = dict.fromkeys(sorted(texts, key=lambda key: -relevance[key])[:BEST])
    centre: dict[str, float] = {}
    for key in best:
        for word, weight in vectors[key].items():
            centre[word] = centre.get(word, 0.0) + relevance[key] * weight
    total = sum(relevance[key] for key in best)
    similarity: dict[int, float] = {}
    for key, vector in vectors.items():
        own = relevance[key] if key in best else 0.0  # no text is compared with itself
        # In the order of the text: that of a set, and so the last digit of a sum, is another in every process.
        shared = sum([weight * centre[word] for word, weight in vector.items() if word in centre]) - own
        similarity[key] = max(0.0, shared) / (total - own) if total > own else 0.0
    most = max(similarity.values(), default=0.0) or 1.0
    return {key: value / most for key, value in similarity.items()}


def _make_vectors(texts: Mapping[int, str], stop: Collection[str]) -> dict[int, dict[str, float]]:
    """Return each text as its words with their tf-idf, of length 1."""
    counts = {key: _count_words(text, stop) for key, text in texts.items()}
    saying = Counter(word for words in counts.values() for word in words)
    rarity = [0.0, *(math.log1p(len(texts) / number) for number in range(1, len(texts) + 1))]
    vectors = {}
    for key, words in counts.items():
        weights = {word: (1.0 + math.log(count)) * rarity[saying[word]] for word, count in words.items()}
        length = math.hypot(*weights.values()) or 1.0
        vectors[key] = {word: weight / length for word, weight in weights.items()}
    return vectors


def _count_words(text: str, stop: Collection[str]) -> Counter[str]:
    return Counter([word[:_PREFIX] for word in _WORD.findall(text.lower()) if word not in stop])
