"""An embedding model in a folder on this machine, computed by onnxruntime.

The configuration is read at once, so that a damaged folder is reported early; numpy, the tokenizer and the weights load
with the first text. A text longer than the model reads at once is cut into windows of about equal length (full ones and
a short rest found a point less of long conversations); its vector is their mean, weighted by their tokens. Each window
is computed alone, one a core: batches are no faster on processors, and a quantized export rounds by all that is in a
batch, so that a vector would depend on what it was made together with.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.providers.model_files import FETCH_AGAIN, ModelConfig, find_fingerprint, read_config
from memory_kb.providers.protocols import Limits, Purpose, VectorSpace
from memory_kb.text import printable, shorten

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession  # type: ignore[import-untyped, import-not-found, unused-ignore]
    from tokenizers import Tokenizer

    from memory_kb.providers.protocols import Vectors

    Floats = NDArray[np.float32]

_MOST_WORKERS = 8
_KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_PACKAGES = "pip install 'memory-kb[local]'"


class LocalEmbedder:
    """The embedding model in a folder; `dimensions` cuts its vectors, for models made for it, 0 leaves them whole."""

    limits = Limits(texts=64, tokens=16_384)

    def __init__(self, folder: str | os.PathLike[str], dimensions: int = 0) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._config = read_config(self.folder)
        if dimensions > self._config.dimension:
            raise ProviderFailed(
                f"{self.folder.name} gives {self._config.dimension} numbers for a text, not the {dimensions} of embeddings.dimensions",
                f"set embeddings.dimensions to 0, or to at most {self._config.dimension}",
            )
        self._dimension = dimensions or self._config.dimension
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @functools.cached_property
    def space(self) -> VectorSpace:
        """The space of its vectors, distinguished by a fingerprint of the files."""
        return VectorSpace("local", f"{self.folder.name}@{find_fingerprint(self._config)}", self._dimension)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        # A query need not wait for a batch that is under way.
        with self._lock:
            model = self._model = self._model or _Model(self._config)
        return _to_length_one(model.embed(texts, purpose)[:, : self._dimension])

    def close(self) -> None:
        with self._lock:
            self._model = None


class _Window(NamedTuple):
    """Tokens that are read together; `text` is the number of the text, `weight` how many of its tokens they hold."""

    text: int
    tokens: list[int]
    weight: int


class _Model:
    """A tokenizer and an ONNX session."""

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._tokenizer = _load_tokenizer(config.tokenizer)
        frame = self._tokenizer.encode("a")
        words = [place for place, is_frame in enumerate(frame.special_tokens_mask) if not is_frame]
        first, last = (words[0], words[-1] + 1) if words else (len(frame.ids), len(frame.ids))
        self._before, self._after = frame.ids[:first], frame.ids[last:]
        self._room = config.max_tokens - len(self._before) - len(self._after)
        if self._room < 1:
            raise ProviderFailed(
                f"{config.tokenizer.parent} reads only {config.max_tokens} tokens at once", "choose another model"
            )
        self._session = _open_session(config.onnx)
        self._inputs = {value.name for value in self._session.get_inputs()}
        self._outputs = [value.name for value in self._session.get_outputs() if len(value.shape) == 3]
        if "input_ids" not in self._inputs or self._inputs - _KNOWN_INPUTS or not self._outputs:
            raise ProviderFailed(
                f"{config.onnx} is not the export of a text encoder", "export the model again, for feature extraction"
            )
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._workers = min(cores, _MOST_WORKERS)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Floats:
        """Return the mean of every text's windows, each of length 1, weighted by their tokens."""
        from concurrent.futures import ThreadPoolExecutor

        import numpy as np

        windows = list(self._cut(texts, self._config.query_prompt if purpose == "query" else self._config.text_prompt))
        with ThreadPoolExecutor(min(self._workers, len(windows))) as executor:
            rows = _to_length_one(np.stack(list(executor.map(self._pool, windows))))
        weights = np.array([[window.weight] for window in windows], np.float32)
        vectors = np.zeros((len(texts), rows.shape[1]), np.float32)
        np.add.at(vectors, [window.text for window in windows], rows * weights)
        if not np.isfinite(vectors).all():
            raise ProviderFailed("the model's answer is not made of numbers", FETCH_AGAIN)
        return vectors

    def _pool(self, window: _Window) -> Floats:
        import numpy as np

        ids = np.array([window.tokens], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        try:
            ((states,),) = self._session.run(self._outputs[:1], {name: feed[name] for name in self._inputs})
        except Exception as exc:  # the package raises nothing narrower
            raise ProviderFailed(f"{self._config.onnx} failed: {shorten(str(exc), 200)}", FETCH_AGAIN) from exc
        rows, mode = np.asarray(states, np.float32), self._config.pooling
        vector: Floats = rows.mean(axis=0) if mode == "mean" else rows[0 if mode == "cls" else -1]
        return vector

    def _cut(self, texts: Sequence[str], prompt: str) -> Iterator[_Window]:
        """Yield the windows of all texts, each with the prompt before it."""
        head = self._tokenizer.encode(prompt, add_special_tokens=False).ids[: self._room // 2] if prompt else []
        readable = [printable(prompt + text) for text in texts]
        readable = [text.lower() for text in readable] if self._config.is_lowered else readable
        for number, encoding in enumerate(self._tokenizer.encode_batch_fast(readable, add_special_tokens=False)):
            tokens = encoding.ids if encoding.ids or self._before else [0]
            frame, count = self._before, 1
            if len(tokens) > self._room:
                # A text may share a token with the end of the prompt; where it is cut, that makes no difference.
                frame, tokens = [*self._before, *head], tokens[len(head) :]
                count = math.ceil(len(tokens) / (self._room - len(head)))
            edges = [len(tokens) * place // count for place in range(count + 1)]
            for start, stop in pairwise(edges):
                yield _Window(number, [*frame, *tokens[start:stop], *self._after], max(stop - start, 1))


def _open_session(file: Path) -> InferenceSession:
    try:
        import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as exc:
        raise ProviderFailed("local models need the package onnxruntime", _PACKAGES) from exc
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # the package raises nothing narrower
        raise ProviderFailed(f"{file} cannot be run: {shorten(str(exc), 200)}", FETCH_AGAIN) from exc


def _load_tokenizer(file: Path) -> Tokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise ProviderFailed("local models need the package tokenizers", _PACKAGES) from exc
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as exc:  # the package raises nothing narrower
        raise ProviderFailed(f"{file} is not a tokenizer: {shorten(str(exc), 200)}", FETCH_AGAIN) from exc
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _to_length_one(rows: Floats) -> Floats:
    """Return vectors of length 1 in the same directions; one of zeros stays as it is.

    Example:
        >>> import numpy as np
        >>> _to_length_one(np.array([[3, 4], [0, 0]], dtype=np.float32)).round(1).tolist()
        [[0.6..., 0.8...], [0.0, 0.0]]
    """
    import numpy as np

    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("tw,tw->t", rows, rows))
        lengths[lengths == 0] = 1
        unit: Floats = rows / lengths[:, None]
    return unit
