"""A model's ONNX export, run by onnxruntime. This module loads numpy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memory_kb.errors import ProviderFailed

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KNOWN = {"input_ids", "attention_mask", "token_type_ids"}


class Session:
    """An ONNX file that gives a vector for every token."""

    def __init__(self, file: Path, padding: int) -> None:
        try:
            import onnxruntime  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError as exc:
            raise ProviderFailed(
                "a model in ONNX form needs the package onnxruntime", "pip install 'memory-kb[local]'"
            ) from exc
        options = onnxruntime.SessionOptions()
        # Batches run side by side, which is faster than running one on all cores.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as exc:  # the package raises nothing narrower
            raise ProviderFailed(
                f"{file} cannot be run: {' '.join(str(exc).split())[:200]}", "fetch the model again"
            ) from exc
        self._file, self._padding = file, padding
        self._inputs = {value.name for value in self._session.get_inputs()}
        outputs = [value.name for value in self._session.get_outputs() if len(value.shape) == 3]
        if "input_ids" not in self._inputs or self._inputs - _KNOWN or not outputs:
            raise ProviderFailed(
                f"{file} is not the export of a text encoder", "export the model again, for feature extraction"
            )
        self._output = outputs[0]

    def states(self, texts: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Return a vector for every token of every text.

        Raises:
            ProviderFailed: the model cannot be computed.
        """
        tokens = np.full((len(texts), max(map(len, texts))), self._padding, dtype=np.int64)
        mask = np.zeros_like(tokens)
        for row, text in enumerate(texts):
            tokens[row, : len(text)] = text
            mask[row, : len(text)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        try:
            (states,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        except Exception as exc:  # the package raises nothing narrower
            raise ProviderFailed(
                f"{self._file} failed: {' '.join(str(exc).split())[:200]}", "fetch the model again"
            ) from exc
        return [row[: len(text)].astype(np.float32, copy=False) for row, text in zip(states, texts, strict=True)]
