"""Measure how similar texts are, by words or vectors; find similar pairs and clusters."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.stop_words import stop_words
from memory_kb.text import has_cjk, jaccard, tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: How alike two texts are for each purpose.
MERGE_ABOVE, MERGE_COSINE = 0.8, 0.9
CONTRADICTION_FROM = 0.3
CLASH_ABOVE = 0.5

#: Up to so many sets, comparing all of them is faster than loading numpy.
_FEW = 256
#: Rows and columns of one block of cosines; its product takes 8 MB.
_ROWS, _COLUMNS = 512, 4_096
#: What a bound may be off by for the rounding of floats.
_SLACK = 1e-6
_PART = re.compile(r"[^\W_]+")


class Pair(NamedTuple):
    """Two of a sequence, by their places, `one < other`, and how alike they are."""

    one: int
    other: int
    similarity: float


class _Measure(NamedTuple):
    """A similarity of sets, and what follows from being similar.

    `least_size` is of the smaller set, given the size of the larger; `least_shared` how many
    elements two sets share, given the size of the larger and those of the smaller ones.
    """

    of: Callable[[frozenset[str], frozenset[str]], float]
    least_size: Callable[[float, int], float]
    least_shared: Callable[[float, int, NDArray[np.int64]], NDArray[np.floating[Any]]]


# Several steps in a row look at the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def word_set(text: str) -> frozenset[str]:
    """Return the words of a text by which near duplicates are recognised.

    For ASCII these are the matches of `[a-z0-9]+`; other scripts count as well.

    Example:
        >>> sorted(word_set("Set retry_count to 3!")), sorted(word_set("Übung"))
        (['3', 'count', 'retry', 'set', 'to'], ['übung'])
    """
    return tokens(text.replace("_", " ")) if has_cjk(text) else frozenset(_PART.findall(text.casefold()))


@functools.lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return a word without its English ending; good enough to compare, not to show.

    Example:
        >>> [stem(word) for word in ("using", "uses", "used", "tests", "stopped", "policies", "5432")]
        ['us', 'us', 'us', 'test', 'stop', 'policy', '5432']
    """
    for ending, rest in (("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) >= len(ending) + 2 and not word.endswith(("ss", "us", "is")):
            word = word[: -len(ending)] + rest
            if ending in ("ing", "ed") and len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if len(word) > 2 and word.endswith("e") else word


def stemmed_set(text: str) -> frozenset[str]:
    """Return the stems of a text's words without its stop words, by which paraphrases are recognised.

    Example:
        >>> sorted(stemmed_set("The tests are using the caches."))
        ['cach', 'test', 'us']
    """
    words = word_set(text)
    return frozenset(map(stem, words - stop_words(sorted(words))))


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the smaller set that is in the other, which is never less than their Jaccard.

    Example:
        >>> overlap(frozenset("ab"), frozenset("abcd")), overlap(frozenset(), frozenset())
        (1.0, 0.0)
    """
    return len(one & other) / min(len(one), len(other)) if one and other else 0.0


_JACCARD = _Measure(
    jaccard,
    lambda threshold, size: threshold * size,
    lambda threshold, size, sizes: threshold / (1 + threshold) * (size + sizes),
)
_OVERLAP = _Measure(overlap, lambda *_: 1, lambda threshold, _, sizes: threshold * sizes)


def near_pairs(sets: Sequence[frozenset[str]], threshold: float, *, is_strict: bool = False) -> Iterator[Pair]:
    """Yield the pairs of sets whose Jaccard is at least a threshold, or strictly above it.

    Their order is always the same, but not sorted. Empty sets are like nothing.

    Example:
        >>> sets = [frozenset("abcd"), frozenset("xyz"), frozenset("abcde")]
        >>> list(near_pairs(sets, 0.8)), list(near_pairs(sets, 0.8, is_strict=True))
        ([Pair(one=0, other=2, similarity=0.8)], [])
    """
    return _pairs(sets, threshold, _JACCARD, is_strict=is_strict)


def pairs_with(sets: Sequence[frozenset[str]], places: Sequence[int], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of some of the sets with any other whose Jaccard is at least a threshold.

    Example:
        >>> list(pairs_with([frozenset("abcd"), frozenset("abcde"), frozenset("abc")], [2], 0.7))
        [Pair(one=0, other=2, similarity=0.75)]
    """
    chosen = set(places)
    sizes = list(map(len, sets))
    for place in sorted(chosen):
        mine, size = sets[place], sizes[place]
        for other, count in enumerate(sizes):
            if (
                count < threshold * size
                or size < threshold * count
                or other == place
                or (other < place and other in chosen)
            ):
                continue
            similarity = jaccard(mine, sets[other])
            if similarity >= threshold and similarity:
                yield Pair(min(place, other), max(place, other), similarity)


def overlap_pairs(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of sets whose overlap coefficient is at least a threshold.

    Example:
        >>> list(overlap_pairs([frozenset("abcd"), frozenset("cdxyz")], 0.5))
        [Pair(one=0, other=1, similarity=0.5)]
    """
    return _pairs(sets, threshold, _OVERLAP, is_strict=False)


def _pairs(sets: Sequence[frozenset[str]], threshold: float, measure: _Measure, *, is_strict: bool) -> Iterator[Pair]:
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold {threshold} is not above 0 and at most 1")
    possible = (
        itertools.combinations(range(len(sets)), 2) if len(sets) <= _FEW else _candidates(sets, threshold, measure)
    )
    for one, other in possible:
        similarity = measure.of(sets[one], sets[other])
        if similarity > threshold or (similarity == threshold and not is_strict):
            yield Pair(one, other, similarity)


def _candidates(sets: Sequence[frozenset[str]], threshold: float, measure: _Measure) -> Iterator[tuple[int, int]]:
    """Yield the pairs that share enough elements to be similar, and few others.

    An inverted index of the sets by size, smallest first. Each set asks for its elements but for
    the most frequent ones, so many fewer than it must share with anything similar; whoever shares
    too few of the asked ones cannot make up for it with the others (the prefix and length filters
    of AllPairs, with the counts that MergeSkip keeps).
    """
    import numpy as np

    order = sorted((place for place, one in enumerate(sets) if one), key=lambda place: (len(sets[place]), place))
    frequency = Counter(itertools.chain.from_iterable(sets))
    ranked = sorted((word for word, count in frequency.items() if count > 1), key=lambda word: (frequency[word], word))
    rank = {word: number for number, word in enumerate(ranked)}
    words = [sorted(rank[word] for word in sets[place] if word in rank) for place in order]
    sizes = np.array([len(sets[place]) for place in order], np.int64)
    counts = np.array([frequency[word] for word in ranked], np.int64)
    starts = [0, *np.cumsum(counts).tolist()]
    places = np.argsort(np.fromiter(itertools.chain.from_iterable(words), np.int64, starts[-1]), kind="stable")
    postings = np.repeat(np.arange(len(words)), [len(one) for one in words])[places]
    filled = list(starts)
    for here, asked in enumerate(words):
        size = len(sets[order[here]])
        least = measure.least_size(threshold, size)
        shared = float(measure.least_shared(threshold, size, np.array([max(1, math.ceil(least - _SLACK))]))[0])
        skipped = max(0, math.ceil(shared - _SLACK) - 1)
        listed = [
            postings[starts[word] : filled[word]]
            for word in asked[: len(asked) - skipped]
            if filled[word] > starts[word]
        ]
        if listed:
            found, times = _count(np.concatenate(listed), here)
            enough = (times + skipped >= measure.least_shared(threshold, size, sizes[found]) - _SLACK) & (
                sizes[found] >= least - _SLACK
            )
            for there in found[enough].tolist():
                one, other = order[there], order[here]
                yield (one, other) if one < other else (other, one)
        for word in asked:
            filled[word] += 1


def _count(found: NDArray[np.int64], bound: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different values below a bound, ascending, and how often each is there."""
    import numpy as np

    if 32 * len(found) < bound:
        return np.unique(found, return_counts=True)
    times = np.bincount(found, minlength=bound)
    values = np.flatnonzero(times)
    return values, times[values]


def cosine_pairs(rows: NDArray[np.float32], threshold: float) -> Iterator[Pair]:
    """Yield the pairs of vectors of length 1 whose cosine is at least a threshold.

    It multiplies block by block: memory does not grow with the number of vectors.

    Example:
        >>> import numpy as np
        >>> [pair[:2] for pair in cosine_pairs(np.array([[1, 0], [0, 1], [1, 0]], np.float32), 0.9)]
        [(0, 2)]
    """
    import numpy as np

    for top in range(0, len(rows), _ROWS):
        for left in range(top, len(rows), _COLUMNS):
            cosines = rows[top : top + _ROWS] @ rows[left : left + _COLUMNS].T
            for row, column in np.argwhere(cosines >= threshold).tolist():
                if top + row < left + column:
                    yield Pair(top + row, left + column, min(1.0, float(cosines[row, column])))


def seeded_clusters(pairs: Iterable[Pair]) -> list[tuple[int, ...]]:
    """Return clusters around seeds: the first of all takes those like it, the first left takes those left, and so on.

    What is like a member but not like the seed stays out. Seeds come first, in ascending order.

    Example:
        >>> seeded_clusters([Pair(0, 1, 0.9), Pair(1, 2, 0.9), Pair(2, 3, 0.9)])
        [(0, 1), (2, 3)]
    """
    taken: set[int] = set()
    clusters: dict[int, list[int]] = {}
    for one, other, _ in sorted(pairs):
        if one not in taken and other not in taken:
            clusters.setdefault(one, [one]).append(other)
            taken.add(other)
    return [tuple(cluster) for cluster in clusters.values()]


def linked_clusters(pairs: Iterable[Pair]) -> list[tuple[int, ...]]:
    """Return the clusters of single linkage: whatever a chain of pairs connects.

    Example:
        >>> linked_clusters([Pair(1, 2, 0.9), Pair(0, 1, 0.9), Pair(3, 4, 0.9)])
        [(0, 1, 2), (3, 4)]
    """
    root: dict[int, int] = {}

    def find(place: int) -> int:
        while root.setdefault(place, place) != place:
            root[place] = place = root[root[place]]
        return place

    for one, other, _ in pairs:
        low, high = sorted((find(one), find(other)))
        root[high] = low
    clusters: dict[int, list[int]] = {}
    for place in sorted(root):
        clusters.setdefault(find(place), []).append(place)
    return [tuple(cluster) for cluster in clusters.values()]
