"""The forward pass of BERT and its kin, in numpy.

The tokens of all texts stand in one matrix without padding, so that the linear layers, where most
of the work is, go through BLAS in large pieces. Only attention looks at the texts one by one, or
at all those of one length together. This module loads numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from memory_kb.errors import ProviderFailed
from memory_kb.providers.layers import Layer, Pair, load_layers, load_pair
from memory_kb.providers.recipe import Shape
from memory_kb.providers.weights import Tensors, to_floats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

#: Rows of the widest matrix at a time, so that the passes of an activation stay in the cache.
_ACTIVATED_ROWS = 64
_INNER_ROWS = 512
#: Attention scores at a time, for the same reason.
_SCORES = 1 << 20
#: So few rows are multiplied a quarter faster the other way round ...
_FEW_ROWS = 64
#: ... and as many as a question has, up to three times as fast in products so small that OpenBLAS
#: takes their numbers from where they lie.
_QUESTION_ROWS, _SMALL_PRODUCT = 16, 1_000_000
#: Scores up to this need not be shifted before `exp`; their weighted sum is far from overflowing.
_SAFE_SCORE = 60.0
#: atanh(erf(x / sqrt(2))) is x times this polynomial in x², fitted so that GELU is off by 7e-8 at most.
_GELU = tuple(
    np.float32(number)
    for number in (
        1.8056156162494704e-09,
        -1.3344637422242833e-07,
        3.9691088963937415e-06,
        -5.524015439377605e-05,
        -3.313000729696282e-05,
        0.03633428353223542,
        0.7978842161098381,
    )
)
#: The tanh approximation, where the model was trained with that.
_GELU_TANH = (np.float32(0.044715 * math.sqrt(2 / math.pi)), np.float32(math.sqrt(2 / math.pi)))
_POLYNOMIALS = {"gelu": _GELU, "gelu_new": _GELU_TANH, "gelu_pytorch_tanh": _GELU_TANH}
_HALF, _ONE = np.float32(0.5), np.float32(1)
#: MPNet's relative positions.
_BUCKETS, _FAR = 32, 128


class _Run(NamedTuple):
    """Neighbouring texts of one length: where their tokens begin, how many texts, how long."""

    start: int
    texts: int
    length: int


class Transformer:
    """A transformer whose weights lie in safetensors files; `shape` must be a known one."""

    def __init__(self, shape: Shape, tensors: Tensors) -> None:
        self._shape = shape
        self._words: NDArray[Any] = tensors.raw("embeddings.word_embeddings.weight", -1, shape.width)
        self._places: NDArray[Any] = tensors.raw("embeddings.position_embeddings.weight", shape.positions, shape.width)
        has_types = shape.family not in ("distilbert", "mpnet")
        self._type = tensors.get("embeddings.token_type_embeddings.weight", -1, shape.width)[0] if has_types else None
        self._norm = load_pair(tensors, "embeddings.LayerNorm", shape.width)
        self._layers = load_layers(shape, tensors)
        self._nearness = (
            tensors.get("encoder.relative_attention_bias.weight", -1, shape.heads) if shape.family == "mpnet" else None
        )

    def states(self, texts: Sequence[Sequence[int]]) -> list[Floats]:
        """Return a vector for every token of every text; texts of one length belong side by side.

        Raises:
            ProviderFailed: a token is none of this model's.
        """
        lengths = list(map(len, texts))
        rows = self._embed(np.concatenate([np.asarray(text, dtype=np.int64) for text in texts]), lengths)
        runs = list(find_runs(lengths))
        heads = np.empty((len(rows), 3 * self._shape.width), np.float32)
        mixed, inner = np.empty_like(rows), np.empty((min(len(rows), _INNER_ROWS), self._shape.inner), np.float32)
        for layer in self._layers:
            _linear(rows, layer.heads, heads)
            self._attend(heads, runs, mixed)
            rows += _linear(mixed, layer.out, np.empty_like(rows))
            _normalise(rows, layer.out_norm, self._shape.epsilon)
            self._feed(rows, layer, inner, mixed)
            rows += mixed
            _normalise(rows, layer.down_norm, self._shape.epsilon)
        return np.split(rows, np.cumsum(lengths)[:-1])

    def _embed(self, tokens: NDArray[np.int64], lengths: Sequence[int]) -> Floats:
        """Return what the first layer is given."""
        if tokens.max() >= len(self._words):
            raise ProviderFailed(
                f"the tokenizer knows words that the model does not (number {tokens.max()})", "fetch the model again"
            )
        places = np.concatenate([np.arange(self._shape.first, self._shape.first + length) for length in lengths])
        if self._shape.first:
            # A padding token that a text spells out takes part without a position of its own.
            for start, length in zip(np.cumsum([0, *lengths[:-1]]), lengths, strict=True):
                is_word = tokens[start : start + length] != self._shape.padding
                if not is_word.all():
                    places[start : start + length] = np.cumsum(is_word) * is_word + self._shape.padding
        rows = to_floats(self._words[tokens])
        rows += to_floats(self._places[places])
        if self._type is not None:
            rows += self._type
        return _normalise(rows, self._norm, self._shape.epsilon)

    def _attend(self, heads: Floats, runs: Sequence[_Run], mixed: Floats) -> None:
        """Write into `mixed` what every token takes from the tokens of its text."""
        count, width = self._shape.heads, self._shape.width // self._shape.heads
        parts = heads.reshape(len(heads), 3, count, width)
        squares = np.einsum("tphw,tphw->tph", parts[:, :2], parts[:, :2]).max(axis=0)
        limit = math.sqrt(float((squares[0] * squares[1]).max()))
        for run in runs:
            stop = run.start + run.texts * run.length
            queries, keys, values = (
                parts[run.start : stop].reshape(run.texts, run.length, 3, count, width).transpose(2, 0, 3, 1, 4)
            )
            target = mixed[run.start : stop].reshape(run.texts, run.length, count, width).transpose(0, 2, 1, 3)
            bias = None if self._nearness is None else spread(self._nearness[find_buckets(run.length)])
            step = max(1, _SCORES // (run.texts * count * run.length))
            for first in range(0, run.length, step):
                scores = queries[:, :, first : first + step] @ keys.swapaxes(2, 3)
                if bias is not None:
                    scores += bias[:, first : first + step]
                if bias is not None or not limit <= _SAFE_SCORE:
                    scores -= scores.max(axis=-1, keepdims=True)
                np.exp(scores, out=scores)
                part = target[:, :, first : first + step]
                np.matmul(scores, values, out=part)
                part /= scores.sum(axis=-1, keepdims=True)

    def _feed(self, rows: Floats, layer: Layer, inner: Floats, target: Floats) -> None:
        """Write into `target` what the two wide linear layers make of every token."""
        polynomial = _POLYNOMIALS.get(self._shape.activation)
        for first in range(0, len(rows), len(inner)):
            part = rows[first : first + len(inner)]
            wide = _multiply(part, layer.up.weight, inner[: len(part)])
            for start in range(0, len(wide), _ACTIVATED_ROWS):
                some = wide[start : start + _ACTIVATED_ROWS]
                some += layer.up.bias
                if polynomial is None:
                    np.maximum(some, 0, out=some)
                else:
                    double_gelu(some, polynomial)
            _multiply(wide, layer.down.weight, target[first : first + len(part)])
        if polynomial is not None:
            target *= _HALF
        target += layer.down.bias


def _multiply(rows: Floats, weight: Floats, target: Floats) -> Floats:
    """Write the product of rows and a layer's weight into `target`."""
    block = 64 if len(rows) * len(weight[0]) * 64 <= _SMALL_PRODUCT else 32
    if len(rows) <= _QUESTION_ROWS and len(weight) % block == 0:
        blocks = weight.reshape(-1, block, len(weight[0]))
        np.matmul(rows, blocks.swapaxes(1, 2), out=target.reshape(len(rows), -1, block).swapaxes(0, 1))
    elif len(rows) <= _FEW_ROWS:
        target[...] = (weight @ rows.T).T
    else:
        np.matmul(rows, weight.T, out=target)
    return target


def _linear(rows: Floats, pair: Pair, target: Floats) -> Floats:
    _multiply(rows, pair.weight, target)
    target += pair.bias
    return target


def _normalise(rows: Floats, pair: Pair, epsilon: float) -> Floats:
    """Bring every row to mean 0 and variance 1, then scale and shift it; in place."""
    rows -= rows.mean(axis=1, keepdims=True)
    variance = np.einsum("tw,tw->t", rows, rows) / np.float32(rows.shape[1])
    rows *= (_ONE / np.sqrt(variance + np.float32(epsilon)))[:, None]
    rows *= pair.weight
    rows += pair.bias
    return rows


def double_gelu(rows: Floats, polynomial: Sequence[np.float32] = _GELU) -> None:
    """Turn numbers into twice their GELU, in place.

    That is x + x tanh(x p(x²)); halving is left to where there are fewer numbers.

    Example:
        >>> numbers = np.array([-1, 0, 2], dtype=np.float32)
        >>> double_gelu(numbers)
        >>> [round(float(number) / 2, 6) for number in numbers]
        [-0.158655, 0.0, 1.9545]
    """
    squares = rows * rows
    inner = squares * polynomial[0]
    for number in polynomial[1:-1]:
        inner += number
        inner *= squares
    inner += polynomial[-1]
    inner *= rows
    np.tanh(inner, out=inner)
    inner += _ONE
    rows *= inner


def find_runs(lengths: Sequence[int]) -> Iterator[_Run]:
    """Yield the runs of neighbouring texts of one length.

    Example:
        >>> [tuple(run) for run in find_runs([3, 3, 5])]
        [(0, 2, 3), (6, 1, 5)]
    """
    start = first = 0
    for place in range(1, len(lengths) + 1):
        if place == len(lengths) or lengths[place] != lengths[first]:
            yield _Run(start, place - first, lengths[first])
            start += (place - first) * lengths[first]
            first = place


def find_buckets(length: int) -> NDArray[np.int64]:
    """Return the bucket of every distance between two tokens of a text, as MPNet counts them.

    The distances run from `1 - length` to `length - 1`. Short ones have a bucket each, longer
    ones share them by their logarithm.

    Example:
        >>> find_buckets(3).tolist(), find_buckets(130)[[0, 109, 120, 121, 137, 149]].tolist()
        ([2, 1, 0, 17, 18], [15, 10, 8, 8, 24, 26])
    """
    half = _BUCKETS // 2
    exact = half // 2
    distance = np.abs(np.arange(1 - length, length))
    far = exact + (
        np.log(np.maximum(distance, 1).astype(np.float32) / exact) / math.log(_FAR / exact) * (half - exact)
    ).astype(np.int64)
    bucket = np.where(distance < exact, distance, np.minimum(far, half - 1))
    bucket[length:] += half
    return bucket


def spread(by_distance: Floats) -> Floats:
    """Return, for every head, a table of two tokens from a list of their distances.

    Nothing is copied: every row of the table is the one above it, moved by one.

    Example:
        >>> spread(np.array([[-1], [0], [1]], dtype=np.float32))[0].tolist()
        [[0.0, 1.0], [-1.0, 0.0]]
    """
    length = (len(by_distance) + 1) // 2
    return np.lib.stride_tricks.sliding_window_view(np.ascontiguousarray(by_distance.T), length, axis=1)[:, ::-1]
