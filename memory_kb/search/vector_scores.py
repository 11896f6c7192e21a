"""Score passages by the similarity of their vectors to the query.

Pure functions of numpy arrays. Cosines of different models are in different ranges, and those of
one query in another range than those of the next; what counts is how far a passage exceeds
the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.index.port import Candidate, Cosines, Index
from memory_kb.model import Filters
from memory_kb.search.query import TextQuery

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

#: The nearest chunks that compete, beside those found by their words, if they stand out at all.
NEAREST = 100
LEAST_NEARNESS = 0.04
#: Standard deviations above the mean that make a vector score of 1.
DEVIATIONS = 10.0
#: Chunks below which the deviation says little.
SMALL = 30


class Nearness(NamedTuple):
    """The vector score of every passage, from 0 to 1, and of every chunk, which is that of its best passage.

    `keys` ascend; the passages of the chunk `keys[i]` are those from `edges[i]` to `edges[i + 1]`. The scores say less
    where they are `trusted` less than 1.
    """

    keys: NDArray[np.int64]
    scores: Floats
    edges: NDArray[np.int64]
    passages: Floats
    trusted: float = 1.0


def find_near_chunks(
    index: Index, filters: Filters, query: TextQuery, nearness: Nearness, found: Sequence[Candidate]
) -> list[Candidate]:
    """Return the chunks nearest to a query among those that pass the filters.

    Every phrase of the query must occur in them, and no excluded word may. Those that are also
    `found` by their words are not returned again.
    """
    import numpy as np

    keys, scores = nearness[:2]
    nearest: list[Candidate] = []
    standing_out = np.flatnonzero(scores > LEAST_NEARNESS)
    ordered = keys[standing_out[np.argsort(-scores[standing_out], kind="stable")]].tolist()
    portion = NEAREST + NEAREST // 4
    while ordered and len(nearest) < NEAREST:
        wanted, ordered, portion = ordered[:portion], ordered[portion:], 4 * portion
        passed = {candidate.key: candidate for candidate in index.candidates(wanted, filters)}
        nearest += [passed[key] for key in _fitting(index, query, [key for key in wanted if key in passed])]
    there = {candidate.key for candidate in found}
    return [candidate for candidate in nearest[:NEAREST] if candidate.key not in there]


def _fitting(index: Index, query: TextQuery, keys: list[int]) -> list[int]:
    """Return the keys of chunks that have the query's phrases and none of its excluded words."""
    matching = index.matching((*query.phrases, *query.excluded), keys)
    for phrase in query.phrases:
        keys = [key for key in keys if key in matching[phrase]]
    for word in query.excluded:
        keys = [key for key in keys if key not in matching[word]]
    return keys


def scores_of(nearness: Nearness, keys: Sequence[int]) -> dict[int, list[float]]:
    """Return the scores of the passages of chunks by key; chunks without a vector are left out.

    Example:
        >>> import numpy as np
        >>> near = np.array([0.5, 0.25, 0.75], np.float32)
        >>> scores_of(Nearness(np.array([4, 8]), near[[0, 2]], np.array([0, 1, 3]), near), [8, 3, 9])
        {8: [0.25, 0.75]}
    """
    import numpy as np

    places = dict(zip(keys, np.searchsorted(nearness.keys, keys).tolist(), strict=True))
    edges, scores = nearness.edges, nearness.passages
    return {
        key: scores[edges[place] : edges[place + 1]].tolist()
        for key, place in places.items()
        if place < len(nearness.keys) and nearness.keys[place] == key
    }


def score_nearness(compared: Cosines) -> Nearness:
    """Return how near all passages, and so all chunks, are to a query.

    What counts is how far a passage's cosine exceeds all others, in standard deviations of this query's cosines: it is
    the same for models whose cosines are high and narrow. A table too small to have a deviation worth the name is
    measured by what is left to 1 instead.
    Where the nearest of many is no nearer than by chance, as in a language that the model does not know, it is trusted
    less.
    """
    import numpy as np

    cosines = compared.values
    keys, starts = np.unique(compared.keys, return_index=True)
    if not len(keys):
        return Nearness(keys, cosines, starts, cosines)
    ordinary = cosines if compared.sample is None else cosines[compared.sample]
    squared = len(cosines) ** 2
    mean, deviation = float(ordinary.mean(dtype=np.float64)), float(ordinary.std(dtype=np.float64))
    background = mean * squared / (squared + 10)
    spread = (squared * DEVIATIONS * deviation + SMALL**2 * (1.0 - background)) / (squared + SMALL**2)
    by_chance = deviation * math.sqrt(2 * math.log(len(cosines) + 1))
    lead = min(1.0, (float(cosines.max()) - mean) / max(by_chance, 1e-9))
    trusted = (squared * lead**2 + SMALL**2) / (squared + SMALL**2)
    scores = np.clip((cosines - background) / max(spread, 1e-9), 0.0, 1.0).astype(np.float32)
    return Nearness(keys, np.maximum.reduceat(scores, starts), np.append(starts, len(scores)), scores, trusted)


def find_nearest(cosines: Cosines, least: float, most: int) -> list[int]:
    """Return the keys of the chunks whose score is at least so much, the nearest first."""
    import numpy as np

    keys, scores = score_nearness(cosines)[:2]
    return [int(keys[place]) for place in np.argsort(-scores, kind="stable")[:most] if scores[place] >= least]
