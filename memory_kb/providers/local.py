"""Models in a folder on this machine, as sentence-transformers writes them.

They need neither torch nor a network. The configuration is read at once, so that a damaged folder
is told early; numpy, the tokenizer and the weights load with the first text.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.errors import ProviderFailed
from memory_kb.ports import Limits, Purpose, Space
from memory_kb.providers.modelfiles import choose_weights, find_fingerprint, find_name
from memory_kb.providers.recipe import read_recipe

if TYPE_CHECKING:
    from memory_kb.ports import Vectors
    from memory_kb.providers.inference import Model

_TEXTS, _TOKENS = 64, 16_384


class LocalEmbedder:
    """The embedding model in a folder.

    `dimensions` cuts its vectors, for models that are made for it; 0 leaves them whole.

    Raises:
        ProviderFailed: the folder holds no model that can be used.
    """

    def __init__(self, folder: str | os.PathLike[str], dimensions: int = 0) -> None:
        self.folder = Path(os.path.abspath(folder))
        self._recipe = read_recipe(self.folder)
        choose_weights(self._recipe, has_onnxruntime=True)
        if dimensions > self._recipe.dimension:
            raise ProviderFailed(
                f"{find_name(self.folder)} gives {self._recipe.dimension} numbers for a text, not the {dimensions} of embeddings.dimensions",
                f"set embeddings.dimensions to 0, or to at most {self._recipe.dimension}",
            )
        self._dimension = dimensions or self._recipe.dimension
        self._lock = threading.Lock()
        self._model: Model | None = None

    @functools.cached_property
    def space(self) -> Space:
        """The space of its vectors, told from others by a fingerprint of the files."""
        return Space("local", f"{find_name(self.folder)}@{find_fingerprint(self._recipe)}", self._dimension)

    @property
    def limits(self) -> Limits:
        return Limits(_TEXTS, _TOKENS)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Vectors:
        import numpy as np

        if not texts:
            return np.zeros((0, self._dimension), dtype=np.float32)
        prompts = self._recipe.prompts
        return self._load().embed(texts, prompts.query if purpose == "query" else prompts.document, self._dimension)

    def _load(self) -> Model:
        """Return the model in memory; a query need not wait for a batch that is under way."""
        with self._lock:
            if self._model is None:
                from memory_kb.providers.inference import Model

                weights = choose_weights(self._recipe, has_onnxruntime=find_spec("onnxruntime") is not None)
                self._model = Model(self._recipe, weights)
            return self._model

    def close(self) -> None:
        with self._lock:
            self._model = None
