"""Compute the vectors of texts with a model's ONNX export. This module loads numpy.

A text longer than the model reads at once is cut into windows of about equal length; its vector is their mean,
weighted by their tokens. Each window is computed alone, one a core. Batches are no faster on processors, and a
quantized export rounds by all that is in a batch, so that a vector would depend on what it was made together with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memory_kb.errors import ProviderFailed
from memory_kb.providers.model_config import ModelConfig, find_onnx
from memory_kb.text import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    Floats = NDArray[np.float32]

_MOST_WORKERS = 8
_KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_AGAIN = "fetch the model again with `memory-kb model fetch`"
_PACKAGES = "pip install 'memory-kb[local]'"


class Window(NamedTuple):
    """Tokens that are read together.

    `text` is the number of the text they are of, `weight` how many tokens of it they hold.
    """

    text: int
    tokens: list[int]
    weight: int


class OnnxModel:
    """A tokenizer and an ONNX session.

    Raises:
        ProviderFailed: a file is missing or broken, or a package is not installed.
    """

    def __init__(self, config: ModelConfig) -> None:
        self._windows = Windows(config)
        self._pooling, self._is_normalized = config.pooling, config.is_normalized
        self._session = Session(find_onnx(config.folder))
        self._cores = min(_count_cores(), _MOST_WORKERS)

    def embed(self, texts: Sequence[str], prompt: str, dimension: int) -> Floats:
        """Return the first `dimension` numbers of the vector of every text, of length 1.

        Raises:
            ProviderFailed: the model cannot be computed.
        """
        windows = list(self._windows.cut(texts, prompt))
        with np.errstate(all="ignore"):
            rows = np.stack(self._pool_all(windows))
            # Twice where the model says so itself, to the last bit like the vectors that caches hold.
            rows = to_length_one(to_length_one(rows) if self._is_normalized else rows)
            joined = np.zeros((len(texts), rows.shape[1]), np.float32)
            weights = np.array([[window.weight] for window in windows], np.float32)
            np.add.at(joined, [window.text for window in windows], rows * weights)
            vectors = to_length_one(joined[:, :dimension])
        if not np.isfinite(vectors).all():
            raise ProviderFailed("the model's answer is not made of numbers", _AGAIN)
        return vectors

    def _pool_all(self, windows: Sequence[Window]) -> list[Floats]:
        workers = min(self._cores, len(windows))
        if workers == 1:
            return [self._pool(window) for window in windows]
        with ThreadPoolExecutor(workers) as executor:
            return list(executor.map(self._pool, windows))

    def _pool(self, window: Window) -> Floats:
        with np.errstate(all="ignore"):
            return pool(self._session.states(window.tokens), self._pooling)


class Session:
    """An ONNX file that gives a vector for every token."""

    def __init__(self, file: Path) -> None:
        try:
            import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as exc:
            raise ProviderFailed("local models need the package onnxruntime", _PACKAGES) from exc
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as exc:  # the package raises nothing narrower
            raise ProviderFailed(f"{file} cannot be run: {_shorten(exc)}", _AGAIN) from exc
        self._file = file
        self._inputs = {value.name for value in self._session.get_inputs()}
        outputs = [value.name for value in self._session.get_outputs() if len(value.shape) == 3]
        if "input_ids" not in self._inputs or self._inputs - _KNOWN_INPUTS or not outputs:
            raise ProviderFailed(
                f"{file} is not the export of a text encoder", "export the model again, for feature extraction"
            )
        self._output = outputs[0]

    def states(self, tokens: Sequence[int]) -> Floats:
        """Return a vector for every token of a text.

        Raises:
            ProviderFailed: the model cannot be computed.
        """
        ids = np.array([tokens], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            ((states,),) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as exc:  # the package raises nothing narrower
            raise ProviderFailed(f"{self._file} failed: {_shorten(exc)}", _AGAIN) from exc
        return np.asarray(states, np.float32)


# -- texts into windows --------------------------------------------------------------------


class Windows:
    """The tokenizer of a model, which cuts texts into what the model reads at once."""

    def __init__(self, config: ModelConfig) -> None:
        self._tokenizer = _load_tokenizer(config.folder / "tokenizer.json", is_lowered=config.is_lowered)
        probe = self._tokenizer.encode("a")
        is_frame = probe.special_tokens_mask
        first = is_frame.index(0) if 0 in is_frame else len(is_frame)
        last = len(is_frame) - is_frame[::-1].index(0) if 0 in is_frame else len(is_frame)
        self._before, self._after = probe.ids[:first], probe.ids[last:]
        self._room = config.max_tokens - len(self._before) - len(self._after)
        if self._room < 1:
            raise ProviderFailed(
                f"{config.folder} reads only {config.max_tokens} tokens at once", "choose another model"
            )

    def cut(self, texts: Sequence[str], prompt: str) -> Iterator[Window]:
        """Yield the windows of all texts, each with the prompt before it."""
        head = self._tokenizer.encode(prompt, add_special_tokens=False).ids[: self._room // 2] if prompt else []
        readable = [printable(prompt + text) for text in texts]
        for place, encoding in enumerate(self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)):
            tokens = encoding.ids if encoding.ids or self._before else [0]
            if len(tokens) <= self._room:
                yield self._frame(place, tokens)
                continue
            # A text may share a token with the end of the prompt; where it is cut, that makes no difference.
            for start, stop in split_evenly(len(tokens) - len(head), self._room - len(head)):
                yield self._frame(place, tokens[len(head) + start : len(head) + stop], head)

    def _frame(self, place: int, tokens: list[int], head: Sequence[int] = ()) -> Window:
        return Window(place, [*self._before, *head, *tokens, *self._after], max(len(tokens), 1))


def _load_tokenizer(file: Path, *, is_lowered: bool) -> Tokenizer:
    if not file.is_file():
        raise ProviderFailed(f"the model has no {file}", _AGAIN)
    try:
        from tokenizers import Tokenizer, normalizers
    except ImportError as exc:
        raise ProviderFailed("local models need the package tokenizers", _PACKAGES) from exc
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as exc:  # the package raises nothing narrower
        raise ProviderFailed(f"{file} is not a tokenizer: {_shorten(exc)}", _AGAIN) from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if is_lowered:
        lower = normalizers.Lowercase()
        tokenizer.normalizer = normalizers.Sequence([lower, tokenizer.normalizer] if tokenizer.normalizer else [lower])
    return tokenizer


def split_evenly(length: int, room: int) -> list[tuple[int, int]]:
    """Cut a length into as few pieces of at most `room` as will do, all about as long.

    Example:
        >>> split_evenly(10, 4), split_evenly(4, 4)
        ([(0, 3), (3, 6), (6, 10)], [(0, 4)])
    """
    count = -(-length // room)
    edges = [length * number // count for number in range(count + 1)]
    return list(pairwise(edges))


# -- tokens into a vector ------------------------------------------------------------------


def pool(states: Floats, mode: str) -> Floats:
    """Return one vector for the tokens of a text.

    Example:
        >>> states = np.array([[1, 5], [3, 1], [2, 0]], dtype=np.float32)
        >>> pool(states, "mean"), pool(states, "cls"), pool(states, "lasttoken")
        (array([2., 2.], dtype=float32), array([1., 5.], dtype=float32), array([2., 0.], dtype=float32))
    """
    if mode == "mean":
        return np.asarray(states.sum(axis=0) / np.float32(len(states)))
    vector: Floats = states[0 if mode == "cls" else -1]
    return vector


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


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shorten(exc: Exception) -> str:
    return " ".join(str(exc).split())[:200]
