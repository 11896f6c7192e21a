"""A local model in memory, from texts to vectors. This module loads numpy.

Small batches run side by side, each on one core. That is faster than sharing out every matrix
product among the cores, and far faster when another program keeps one of them busy: then all
would wait at every product for the one that is behind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memory_kb.errors import ProviderFailed
from memory_kb.providers.blas import count_cores, find_limit
from memory_kb.providers.modelfiles import Weights
from memory_kb.providers.pooling import finish, join_windows, load_steps, pool
from memory_kb.providers.recipe import Recipe
from memory_kb.providers.session import Session
from memory_kb.providers.transformer import Transformer
from memory_kb.providers.weights import Tensors
from memory_kb.providers.windows import Window, Windows, gather

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

#: Tokens in a batch: enough for BLAS to be at its best, few enough for the cache and for sharing out.
_MOST_TOKENS, _FEWEST_TOKENS = 512, 128
_MOST_WORKERS = 8


class _Engine(Protocol):
    """What turns tokens into states: numpy or onnxruntime."""

    def states(self, texts: Sequence[Sequence[int]]) -> list[Floats]:
        """Return a vector for every token of every text."""


class Model:
    """A model whose weights are mapped into memory."""

    def __init__(self, recipe: Recipe, weights: Weights) -> None:
        self._windows = Windows(recipe)
        self._pooling = recipe.pooling
        self._steps = load_steps(recipe.steps)
        self._engine: _Engine
        if weights.is_onnx:
            self._engine = Session(weights.files[0], recipe.shape.padding)
        else:
            self._engine = Transformer(recipe.shape, Tensors(list(weights.files)))
        self._limit = contextlib.nullcontext() if weights.is_onnx else find_limit()
        self._cores = min(count_cores(), _MOST_WORKERS) if self._limit else 1

    def embed(self, texts: Sequence[str], prompt: str, dimension: int) -> Floats:
        """Return the first `dimension` numbers of the vector of every text, of length 1.

        Raises:
            ProviderFailed: the model cannot be computed.
        """
        windows = list(self._windows.cut(texts, prompt))
        lengths = [len(window.tokens) for window in windows]
        budget = min(max(sum(lengths) // self._cores, _FEWEST_TOKENS), _MOST_TOKENS)
        groups = gather(lengths, budget)
        pooled = list(self._map_groups([[windows[place] for place in group] for group in groups]))
        order = [windows[place] for group in groups for place in group]
        owners = np.array([window.text for window in order])
        weights = np.array([window.weight for window in order], dtype=np.float32)
        with np.errstate(all="ignore"):
            vectors = join_windows(finish(np.concatenate(pooled), self._steps), owners, weights, len(texts), dimension)
        if not np.isfinite(vectors).all():
            raise ProviderFailed("the model's answer is not made of numbers", "fetch the model again")
        return vectors

    def _map_groups(self, groups: Sequence[Sequence[Window]]) -> Iterator[Floats]:
        workers = min(self._cores, len(groups))
        with self._limit or contextlib.nullcontext():
            if workers == 1:
                yield from map(self._pool_group, groups)
            else:
                with ThreadPoolExecutor(workers) as pool:
                    yield from pool.map(self._pool_group, groups)

    def _pool_group(self, group: Sequence[Window]) -> Floats:
        # What overflows on the way ends at the right limit, as the tanh of infinity is 1.
        with np.errstate(all="ignore"):
            states = self._engine.states([window.tokens for window in group])
            return np.stack(
                [pool(rows, self._pooling, window.skipped) for rows, window in zip(states, group, strict=True)]
            )
