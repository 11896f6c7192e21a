"""An embedding model in a folder on this machine, computed by onnxruntime.

The configuration is read at once, so that a damaged folder is reported early; numpy, the tokenizer
and the weights load with the first text.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed
from memory_kb.providers.base import Limits, Purpose, Space
from memory_kb.providers.model_config import find_fingerprint, find_name, find_onnx, read_config

if TYPE_CHECKING:
    from memory_kb.providers.base import Vectors
    from memory_kb.providers.inference import OnnxModel

_TEXTS, _TOKENS = 64, 16_384


class LocalEmbedder:
    """The embedding model in a folder.

    `dimensions` cuts its vectors, for models that are made for it; 0 leaves them whole.

    Raises:
        ProviderFailed: the folder holds no model that can be used.
    """

    def __init__(self, folder: str | os.PathLike[str], dimensions: int = 0) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._config = read_config(self.folder)
        find_onnx(self._config.folder)
        if dimensions > self._config.dimension:
            raise ProviderFailed(
                f"{find_name(self.folder)} gives {self._config.dimension} numbers for a text, not the {dimensions} of embeddings.dimensions",
                f"set embeddings.dimensions to 0, or to at most {self._config.dimension}",
            )
        self._dimension = dimensions or self._config.dimension
        self._lock = threading.Lock()
        self._model: OnnxModel | None = None

    @functools.cached_property
    def space(self) -> Space:
        """The space of its vectors, distinguished by a fingerprint of the files."""
        return Space("local", f"{find_name(self.folder)}@{find_fingerprint(self._config)}", self._dimension)

    @property
    def limits(self) -> Limits:
        return Limits(_TEXTS, _TOKENS)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        prompts = self._config.prompts
        return self._load().embed(texts, prompts.query if purpose == "query" else prompts.document, self._dimension)

    def _load(self) -> OnnxModel:
        """Return the model in memory; a query need not wait for a batch that is under way."""
        with self._lock:
            if self._model is None:
                from memory_kb.providers.inference import OnnxModel

                self._model = OnnxModel(self._config)
            return self._model

    def close(self) -> None:
        with self._lock:
            self._model = None
