"""A lens on vectors: what all passages of a vault have in common counts less.

The names of the speakers, the language, the template of the notes and the model's own common
direction pull all vectors together and tell nothing. A mild whitening (Mahalanobis metric) does
for directions what inverse document frequency does for words.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.ports import VectorTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.ports import Vectors

    Floats = NDArray[np.float32]

#: How strongly common directions are held down; 0 is not at all, 0.5 is full whitening.
_POWER = 0.25
#: The share of an even spread that is mixed in, and the number of passages that is worth as much.
_EVEN, _PRIOR = 0.3, 100
#: The passages that the directions are found from, and how many directions are told apart.
_SAMPLE, _DIRECTIONS = 512, 64
_BLOCK = 8_192

_lenses: weakref.WeakKeyDictionary[VectorTable, Lens] = weakref.WeakKeyDictionary()


class Lens(NamedTuple):
    """The metric `base * I + directions @ diag(weights) @ directions.T`.

    `lengths` are those of the table's rows in it.
    """

    base: float
    directions: Vectors
    weights: Floats
    lengths: Floats

    def bend(self, vector: Vectors) -> Vectors:
        """Return a vector whose plain product with a row is the product in this metric."""
        import numpy as np

        # Dot by dot, for the reason given in `products`.
        shares = self.weights * np.vecdot(self.directions.T, vector)
        bent: Vectors = self.base * vector + np.vecdot(self.directions, shares)
        return bent


def find_lens(table: VectorTable) -> Lens:
    """Return the lens of a table; it is made once."""
    lens = _lenses.get(table)
    if lens is None:
        lens = _lenses[table] = make_lens(table.rows, table.alive)
    return lens


def make_lens(rows: Vectors, alive: NDArray[np.bool_] | None) -> Lens:
    """Return the lens of some vectors, which follows from the set of those that are alive.

    The eigenvectors of the second moments (not centred) of a sample are its directions. A direction
    with the eigenvalue w has the weight `((1 - g) w + g mean(w)) ** -0.25`, and those that are not
    told apart share one. With few passages g is near 1 and the metric near the plain one.
    """
    import numpy as np

    places = sample_rows(rows, alive)
    sample = rows[places].astype(np.float64)
    count, dimension = max(len(sample), 1), rows.shape[1]
    if count < dimension:  # the same eigenvectors from the smaller of two matrices
        values, vectors = np.linalg.eigh(sample @ sample.T / count)
        values = np.maximum(values, 1e-12)
        directions = sample.T @ vectors / np.sqrt(count * values)
    else:
        values, directions = np.linalg.eigh(sample.T @ sample / count)
        values = np.maximum(values, 1e-12)
    kept = max(0, min(_DIRECTIONS, len(values) - 1))
    order = np.argsort(-values)
    top, rest = order[:kept], order[kept:]
    mean = max(values.sum() / dimension, 1e-12)  # where nothing is alive, all directions are alike
    living = len(rows) if alive is None else int(alive.sum())
    even = max(_EVEN, _PRIOR / (living + _PRIOR))
    remaining = values[rest].sum() / max(dimension - kept, 1)
    base = float(((1 - even) * remaining + even * mean) ** -_POWER)
    weights = (((1 - even) * values[top] + even * mean) ** -_POWER - base).astype(np.float32)
    axes = np.ascontiguousarray(directions[:, top], np.float32)
    return Lens(base, axes, weights, _measure(rows, base, axes, weights))


def sample_rows(rows: Vectors, alive: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return the places of a sample that depends on the vectors alone, not on their order.

    So an index that was brought up to date by edits has the same one as a rebuilt index.
    """
    import numpy as np

    living = np.arange(len(rows)) if alive is None else np.flatnonzero(alive)
    if len(living) <= _SAMPLE:
        return living
    with np.errstate(over="ignore"):
        mixed = np.ascontiguousarray(rows[living, 0]).view(np.uint32) * np.uint32(2_654_435_761)
    return living[np.argpartition(mixed, _SAMPLE)[:_SAMPLE]]


def _measure(rows: Vectors, base: float, axes: Vectors, weights: Floats) -> Floats:
    """Return the length of every row in the metric, a block at a time to save memory."""
    import numpy as np

    lengths = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        part = (rows[start : start + _BLOCK] @ axes) ** 2 @ weights + base
        lengths[start : start + _BLOCK] = np.sqrt(np.maximum(part, 1e-12))
    return lengths
