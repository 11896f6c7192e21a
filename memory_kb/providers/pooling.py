"""From the vectors of tokens to one for the text: pooling, dense layers, normalising.

This module loads numpy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory_kb.providers.modelfiles import find_tensors
from memory_kb.providers.recipe import Dense, Pooling
from memory_kb.providers.transformer import double_gelu
from memory_kb.providers.weights import Tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class Projection(NamedTuple):
    """The numbers of a dense layer."""

    weight: Floats
    bias: Floats | None
    activation: str


def load_steps(steps: Sequence[Dense | None]) -> list[Projection | None]:
    """Load the dense layers among the steps behind the pooling.

    Raises:
        ProviderFailed: the numbers of one are missing or do not fit.
    """
    return [None if step is None else _load_dense(step) for step in steps]


def _load_dense(dense: Dense) -> Projection:
    tensors = Tensors(find_tensors(dense.folder))
    bias = tensors.get("linear.bias", dense.outputs) if dense.has_bias else None
    return Projection(tensors.get("linear.weight", dense.outputs, dense.inputs), bias, dense.activation)


def pool(states: Floats, pooling: Pooling, skipped: int) -> Floats:
    """Return one vector for the tokens of a text.

    The first `skipped` tokens are a prompt, which some models leave out here.

    Example:
        >>> states = np.array([[1, 5], [3, 1], [2, 0]], dtype=np.float32)
        >>> pool(states, Pooling(("mean", "max")), 0), pool(states, Pooling(("lasttoken",), counts_prompt=False), 1)
        (array([2., 2., 3., 5.], dtype=float32), array([2., 0.], dtype=float32))
    """
    start = 0 if pooling.counts_prompt else min(skipped, len(states) - 1)
    return np.concatenate([_pool_one(states[start:], mode, start) for mode in pooling.modes])


def _pool_one(states: Floats, mode: str, start: int) -> Floats:
    vector: Floats
    if mode in ("cls", "lasttoken"):
        vector = states[0 if mode == "cls" else -1]
    elif mode == "max":
        vector = states.max(axis=0)
    elif mode == "weightedmean":
        weights = np.arange(start + 1, start + len(states) + 1, dtype=np.float32)
        vector = weights @ states / weights.sum()
    else:
        vector = states.sum(axis=0) / np.float32(len(states) if mode == "mean" else math.sqrt(len(states)))
    return vector


def finish(rows: Floats, steps: Sequence[Projection | None]) -> Floats:
    """Send pooled vectors through the steps that follow; each ends with length 1."""
    for step in steps:
        if step is None:
            rows = to_length_one(rows)
        else:
            rows = rows @ step.weight.T
            if step.bias is not None:
                rows += step.bias
            _activate(rows, step.activation)
    return to_length_one(rows)


def _activate(rows: Floats, activation: str) -> None:
    if activation == "Tanh":
        np.tanh(rows, out=rows)
    elif activation == "ReLU":
        np.maximum(rows, 0, out=rows)
    elif activation == "GELU":
        double_gelu(rows)
        rows *= np.float32(0.5)


def to_length_one(rows: Floats) -> Floats:
    """Return vectors of length 1 in the same directions; one of zeros stays as it is.

    Example:
        >>> to_length_one(np.array([[3, 4], [0, 0]], dtype=np.float32)).round(1).tolist()
        [[0.6..., 0.8...], [0.0, 0.0]]
    """
    lengths = np.sqrt(np.einsum("tw,tw->t", rows, rows))
    lengths[lengths == 0] = 1
    unit: Floats = rows / lengths[:, None]
    return unit


def join_windows(
    rows: Floats, texts: NDArray[np.int64], weights: NDArray[np.float32], count: int, dimension: int
) -> Floats:
    """Return a vector for each of `count` texts: the weighted mean of its windows, of length 1.

    `texts` says of which text each row is a window. Only the first numbers of each are kept.
    """
    joined = np.zeros((count, rows.shape[1]), np.float32)
    np.add.at(joined, texts, rows * weights[:, None])
    return to_length_one(joined[:, :dimension])
