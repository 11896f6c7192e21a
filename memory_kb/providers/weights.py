"""Tensors from safetensors files, read where they lie: nothing is copied that is not asked for.

The format is eight bytes of length, a JSON header, and the numbers. The package `safetensors`
would copy every tensor and refuses bfloat16 for numpy. This module loads numpy.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_kb.errors import ProviderFailed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
#: A header is a few hundred bytes for each tensor.
_HEADER_LIMIT = 100_000_000
_AGAIN = "fetch the model again"


class Tensors:
    """The tensors of some safetensors files, by the names they have in the model itself.

    A checkpoint may put the name of its architecture before all names, and older ones say
    gamma and beta for weight and bias.
    """

    def __init__(self, files: list[Path]) -> None:
        self._files = files
        self._arrays: dict[str, NDArray[Any]] = {}
        for file in files:
            self._arrays |= _map_file(file)
        marks = [
            name.removesuffix("embeddings.word_embeddings.weight")
            for name in self._arrays
            if name.endswith("embeddings.word_embeddings.weight")
        ]
        self._prefix = min(marks, key=len) if marks else ""

    def raw(self, name: str, *shape: int) -> NDArray[Any]:
        """Return a tensor in the type it is stored in; see `to_floats`.

        Raises:
            ProviderFailed: there is none of this name and shape; -1 stands for any length.
        """
        older = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        array = self._arrays.get(self._prefix + name, self._arrays.get(self._prefix + older))
        if array is None:
            raise ProviderFailed(
                f"{self._files[0]} has no tensor {name}", "its configuration and its weights are of different models"
            )
        if len(array.shape) != len(shape) or any(
            want not in (-1, has) for want, has in zip(shape, array.shape, strict=True)
        ):
            wanted = " x ".join(str(length) if length >= 0 else "any" for length in shape)
            raise ProviderFailed(
                f"{self._files[0]}: {name} is {' x '.join(map(str, array.shape))}, not {wanted}", _AGAIN
            )
        return array

    def get(self, name: str, *shape: int) -> Floats:
        """Return a tensor as float32, which costs nothing where it is stored so."""
        return to_floats(self.raw(name, *shape))


def to_floats(array: NDArray[Any]) -> Floats:
    """Return numbers as they are stored as float32; 16-bit integers stand for bfloat16.

    Example:
        >>> to_floats(np.array([0x3F80, 0xC000], dtype=np.uint16))
        array([ 1., -2.], dtype=float32)
    """
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False)


def _map_file(file: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of one file that hold numbers we compute with."""
    try:
        with file.open("rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : min(start, _HEADER_LIMIT)])
        return {
            name: _view(content, start, row)
            for name, row in header.items()
            if name != "__metadata__" and row["dtype"] in _TYPES
        }
    except OSError as exc:
        raise ProviderFailed(f"{file} cannot be read: {exc.strerror}", "check who owns the folder") from exc
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise ProviderFailed(f"{file} is not a whole safetensors file", _AGAIN) from exc


def _view(content: mmap.mmap, start: int, row: Mapping[str, Any]) -> NDArray[Any]:
    first, last = row["data_offsets"]
    kind = np.dtype(_TYPES[row["dtype"]])
    count = (last - first) // kind.itemsize
    if not 0 <= first <= last <= len(content) - start or count * kind.itemsize != last - first:
        raise ValueError(row)
    if not count:
        return np.empty(row["shape"], kind)
    return np.frombuffer(content, kind, count, start + first).reshape(row["shape"])
