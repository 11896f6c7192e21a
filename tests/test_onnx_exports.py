"""Exports of local models: run where onnxruntime is, done without where it is not, and told of where they cannot be run."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import (
    LONG,
    PADDED,
    POSITIONS,
    SPECIAL,
    WIDTH,
    WORDS,
    embed,
    make_model,
    numbers,
    unit,
    write_json,
    write_onnx,
)

from memory_kb.errors import ProviderFailed
from memory_kb.providers.local import LocalEmbedder

Floats = NDArray[np.float32]

TABLE = numbers("table", WORDS, WIDTH)


def looked_up(text: str) -> Floats:
    """Return what the ONNX model of `write_onnx` and the mean give for a text."""
    tokens = [0, *(int(word[1:]) if word.startswith("w") else SPECIAL.index(word) for word in text.split()), 2]
    return unit(TABLE[tokens].mean(axis=0))


def test_an_onnx_export_is_run_where_there_is_one(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = make_model(tmp_path)
    space = LocalEmbedder(folder).space
    write_onnx(folder / "onnx" / "model.onnx", TABLE)
    texts = [LONG, "w5", PADDED, *(" ".join(LONG.split()[:number]) for number in range(1, 40))]
    assert embed(folder, *texts) == pytest.approx(np.stack([looked_up(text) for text in texts]), abs=1e-5)
    # A published export gives the same vectors, so the space is the same.
    assert LocalEmbedder(folder).space == space


def test_without_onnxruntime_numpy_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_model(tmp_path)
    before = embed(folder, LONG)
    write_onnx(folder / "onnx" / "model.onnx", TABLE)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert np.array_equal(embed(folder, LONG), before)


def test_a_reduced_export_is_the_last_resort(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = make_model(tmp_path)
    before = embed(folder, LONG)
    write_onnx(folder / "onnx" / "model_qint8_avx512.onnx", TABLE)
    assert np.array_equal(embed(folder, LONG), before)
    (folder / "model.safetensors").unlink()
    assert embed(folder, LONG)[0] == pytest.approx(looked_up(LONG), abs=1e-5)
    write_json(
        folder / "config.json", {"model_type": "mystery", "hidden_size": WIDTH, "max_position_embeddings": POSITIONS}
    )
    assert embed(folder, "w5 w6")[0] == pytest.approx(looked_up("w5 w6"), abs=1e-5)
    assert len({LocalEmbedder(folder).space, LocalEmbedder(make_model(tmp_path / "other")).space}) == 2


@pytest.mark.parametrize(
    ("output", "extra", "content", "named"),
    [
        ("pooled", "position_ids", None, "not the export"),
        ("states", "", b"nothing", "cannot be run"),
        ("states", "", b"", "cannot be run"),
    ],
)
def test_an_export_that_cannot_be_run_is_told(
    tmp_path: Path, output: str, extra: str, content: bytes | None, named: str
) -> None:
    pytest.importorskip("onnxruntime")
    folder = make_model(tmp_path)
    write_onnx(folder / "onnx" / "model.onnx", TABLE, output, extra)
    if content is not None:
        (folder / "onnx" / "model.onnx").write_bytes(content)
    with pytest.raises(ProviderFailed, match=named):
        embed(folder, LONG)


def test_an_export_that_fails_is_told(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    folder = make_model(tmp_path)
    write_onnx(folder / "onnx" / "model.onnx", TABLE[:9])
    with pytest.raises(ProviderFailed, match=r"model\.onnx failed"):
        embed(folder, "w39")


@pytest.mark.parametrize("missing", ["tokenizers", "onnxruntime"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    folder = make_model(tmp_path)
    if missing == "onnxruntime":
        (folder / "model.safetensors").unlink()
        write_onnx(folder / "model.onnx", TABLE)
    embedder = LocalEmbedder(folder)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ProviderFailed, match=missing) as caught:
        embedder.embed(["w5"], "query")
    assert caught.value.hint == "pip install 'memory-kb[local]'"
