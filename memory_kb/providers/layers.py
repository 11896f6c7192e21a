"""The weights of a transformer, by the names that its family has for them. This module loads numpy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory_kb.providers.recipe import Shape
from memory_kb.providers.weights import Tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


class _Names(NamedTuple):
    """What the parts of a layer are called: query, key, value, output, norm, up, down, norm."""

    layer: str
    parts: tuple[str, ...]


_BERT = _Names(
    "encoder.layer.",
    (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    ),
)
_MPNET = _Names(
    "encoder.layer.",
    (
        "attention.attn.q",
        "attention.attn.k",
        "attention.attn.v",
        "attention.attn.o",
        "attention.LayerNorm",
        *_BERT.parts[5:],
    ),
)
_DISTILBERT = _Names(
    "transformer.layer.",
    (
        "attention.q_lin",
        "attention.k_lin",
        "attention.v_lin",
        "attention.out_lin",
        "sa_layer_norm",
        "ffn.lin1",
        "ffn.lin2",
        "output_layer_norm",
    ),
)
_NAMES = {"mpnet": _MPNET, "distilbert": _DISTILBERT}


class Pair(NamedTuple):
    """The weight and bias of a linear layer or a norm."""

    weight: Floats
    bias: Floats


class Layer(NamedTuple):
    """One layer; the three projections of attention are one matrix."""

    heads: Pair
    out: Pair
    out_norm: Pair
    up: Pair
    down: Pair
    down_norm: Pair


def load_layers(shape: Shape, tensors: Tensors) -> list[Layer]:
    """Load all layers of a transformer.

    Raises:
        ProviderFailed: a tensor is missing or of another size.
    """
    names = _NAMES.get(shape.family, _BERT)
    return [_load_layer(shape, tensors, f"{names.layer}{number}.", names.parts) for number in range(shape.layers)]


def load_pair(tensors: Tensors, name: str, *shape: int) -> Pair:
    """Load a weight and its bias."""
    return Pair(tensors.get(f"{name}.weight", *shape), tensors.get(f"{name}.bias", shape[0]))


def _load_layer(shape: Shape, tensors: Tensors, prefix: str, parts: Sequence[str]) -> Layer:
    width, inner = shape.width, shape.inner
    projections = [load_pair(tensors, prefix + name, width, width) for name in parts[:3]]
    heads = Pair(
        np.concatenate([pair.weight for pair in projections]), np.concatenate([pair.bias for pair in projections])
    )
    # Scores are divided by the root of the width of a head; doing it here does it once.
    for array in heads:
        array[:width] *= np.float32(1 / math.sqrt(width // shape.heads))
    out, out_norm = load_pair(tensors, prefix + parts[3], width, width), load_pair(tensors, prefix + parts[4], width)
    up, down = load_pair(tensors, prefix + parts[5], inner, width), load_pair(tensors, prefix + parts[6], width, inner)
    return Layer(heads, out, out_norm, up, down, load_pair(tensors, prefix + parts[7], width))
