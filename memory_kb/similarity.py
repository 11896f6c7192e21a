"""Measure how similar texts are, by words or vectors; find similar pairs and clusters."""

from __future__ import annotations

import functools
import itertools
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from memory_kb.stop_words import stop_words
from memory_kb.terms import jaccard, word_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

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


class Pair(NamedTuple):
    """Two of a sequence, by their places, `one < other`, and how alike they are."""

    one: int
    other: int
    similarity: float


# Several steps in a row look at the same few thousand texts.
@functools.lru_cache(maxsize=4_096)
def word_set(text: str) -> frozenset[str]:
    """Return the words of a text by which near duplicates are recognised: its tokens, cut at underscores.

    Example:
        >>> sorted(word_set("Set retry_count to 3!")), sorted(word_set("Übung"))
        (['3', 'count', 'retry', 'set', 'to'], ['übung'])
    """
    return word_tokens(text.replace("_", " "))


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


def near_pairs(
    sets: Sequence[frozenset[str]], threshold: float, *, places: Collection[int] | None = None
) -> Iterator[Pair]:
    """Yield the pairs of sets whose Jaccard is at least a threshold; with `places`, those of one of them.

    Their order is always the same, but not sorted. Empty sets are like nothing.

    Example:
        >>> sets = [frozenset("abcd"), frozenset("xyz"), frozenset("abcde")]
        >>> list(near_pairs(sets, 0.8)), list(near_pairs(sets, 0.8, places=[1]))
        ([Pair(one=0, other=2, similarity=0.8)], [])
    """
    for one, other in _candidates(sets, threshold) if places is None else _pairs_of(sets, places, threshold):
        similarity = jaccard(sets[one], sets[other])
        if similarity >= threshold:
            yield Pair(one, other, similarity)


def _pairs_of(sets: Sequence[frozenset[str]], places: Collection[int], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of some sets with any other whose sizes allow for such a Jaccard."""
    for place in sorted(places):
        size = len(sets[place])
        for other, words in enumerate(sets):
            is_first = other > place or (other < place and other not in places)
            if is_first and len(words) >= threshold * size and size >= threshold * len(words):
                yield min(place, other), max(place, other)


def _candidates(sets: Sequence[frozenset[str]], threshold: float) -> Iterator[tuple[int, int]]:
    """Yield the pairs of sets that share enough words to be similar, and few others.

    For a Jaccard of t, a set of n words shares at least t * n of them with any similar one. Its ceil(t * n) - 1 most
    frequent words are therefore not looked up, and whoever shares too few of the others is left out.
    """
    if len(sets) <= _FEW:
        yield from itertools.combinations(range(len(sets)), 2)
        return
    import numpy as np

    frequency = Counter(itertools.chain.from_iterable(sets))
    sizes = np.array(list(map(len, sets)), np.int64)
    holders: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
    for here, words in enumerate(sets):
        size, found = len(words), array("q")
        skipped = max(0, math.ceil(threshold * size - _SLACK) - 1)
        rarest_first = sorted(words, key=lambda word: (frequency[word], word))
        for word in rarest_first[: size - skipped]:
            found.extend(holders[word])
        if found:
            shared = np.bincount(np.frombuffer(found, np.int64), minlength=here)
            others = np.flatnonzero(shared)
            fewest = threshold * (size + sizes[others]) / (1 + threshold) - _SLACK
            for other in others[shared[others] + skipped >= fewest].tolist():
                yield other, here
        for word in words:
            holders[word].append(here)


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
    return sorted(tuple(sorted(group)) for group in connected_groups(pair[:2] for pair in pairs))


def connected_groups(bonds: Iterable[Collection[T]]) -> list[list[T]]:
    """Return the groups of items that are connected through bonds, each item in one of them.

    Example:
        >>> connected_groups([("a", "b"), ("c",), ("b", "d")])
        [['a', 'b', 'd'], ['c']]
    """
    groups: dict[int, list[T]] = {}
    number_of: dict[T, int] = {}
    for new, bond in enumerate(bonds):
        known = {number_of[item] for item in bond if item in number_of}
        largest = max(known, key=lambda number: len(groups[number]), default=new)
        added = [item for item in dict.fromkeys(bond) if item not in number_of]
        for number in known - {largest}:
            added += groups.pop(number)
        groups.setdefault(largest, []).extend(added)
        number_of |= dict.fromkeys(added, largest)
    return list(groups.values())
