"""Folders of local models: where they are looked for, and that no damaged one fails badly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_models import LONG, TABLE, embed, make_model, write_json, write_onnx

from memory_kb.errors import ProviderFailed
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.model_files import DEFAULT_MODEL, find_model, models_folder

pytest.importorskip("onnxruntime")

#: Changes something in a model folder.
Damage = Callable[[Path], object]


def _write(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def _remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def _config(**changes: object) -> Damage:
    return lambda folder: write_json(folder / "config.json", json.loads((folder / "config.json").read_text()) | changes)


def _cut(name: str, length: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def _filled(value: float) -> Damage:
    return lambda folder: write_onnx(folder / "onnx" / "model.onnx", np.full_like(TABLE, value))


DAMAGE = [
    pytest.param(_remove("tokenizer.json"), "tokenizer.json", id="no-tokenizer"),
    pytest.param(_write("tokenizer.json", "{}"), "tokenizer.json", id="tokenizer-empty"),
    pytest.param(_remove("config.json"), "config.json", id="no-config"),
    pytest.param(_write("config.json", "{"), "damaged", id="config-broken"),
    pytest.param(_write("config.json", "[]"), "damaged", id="config-list"),
    pytest.param(_write("config.json", '{"model_type": "bert"}'), "damaged", id="config-without-sizes"),
    pytest.param(_config(hidden_size="big"), "damaged", id="size-is-text"),
    pytest.param(_write("modules.json", "{}"), "not supported", id="modules-object"),
    pytest.param(_write("modules.json", "[1]"), "damaged", id="modules-numbers"),
    pytest.param(
        _write("modules.json", '[{"path": "../..", "type": "a.Transformer"}]'), "outside", id="modules-outside"
    ),
    pytest.param(_write("modules.json", '[{"path": "", "type": "a.CLIPModel"}]'), "CLIPModel", id="no-transformer"),
    pytest.param(
        _write("modules.json", '[{"path": "", "type": "a.Transformer"}, {"path": "", "type": "a.LSTM"}]'),
        "not supported (Transformer, LSTM)",
        id="unknown-module",
    ),
    pytest.param(
        _write("1_Pooling/config.json", '{"pooling_mode": "median"}'), "pooling by median", id="unknown-pooling"
    ),
    pytest.param(
        _write("1_Pooling/config.json", '{"pooling_mode": ["cls", "mean"]}'), "pooling by cls, mean", id="two-poolings"
    ),
    pytest.param(_write("1_Pooling/config.json", '{"include_prompt": false}'), "not supported", id="prompt-not-pooled"),
    pytest.param(_remove("1_Pooling/config.json"), "1_Pooling", id="no-pooling"),
    pytest.param(_write("sentence_bert_config.json", '{"max_seq_length": 2}'), "2 tokens", id="no-room"),
    pytest.param(
        _write("config_sentence_transformers.json", '{"prompts": [1]}'),
        "damaged",
        id="prompts-list",
    ),
    pytest.param(_remove("onnx/model.onnx"), "no ONNX export", id="no-weights"),
    pytest.param(_cut("onnx/model.onnx", 500), "model.onnx", id="weights-cut"),
    pytest.param(_cut("onnx/model.onnx", 0), "model.onnx", id="weights-empty"),
    pytest.param(_filled(float("nan")), "not made of numbers", id="not-numbers"),
    pytest.param(_filled(float("inf")), "not made of numbers", id="infinite"),
]


@pytest.mark.parametrize(("damage", "named"), DAMAGE)
def test_a_damaged_folder_is_reported_in_a_sentence(tmp_path: Path, damage: Damage, named: str) -> None:
    folder = make_model(tmp_path)
    damage(folder)
    with pytest.raises(ProviderFailed) as caught:
        embed(folder, LONG)
    assert named in str(caught.value)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ProviderFailed, match="no model folder") as caught:
        LocalEmbedder(tmp_path / "none")
    assert "model fetch" in str(caught.value.hint)


def test_models_are_found_in_the_models_folder(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    models = models_folder(environ)
    assert models == tmp_path / "data" / "memory-kb" / "models"
    assert find_model(None, environ) is None
    one = make_model(models / "BAAI" / "bge-tiny")
    assert find_model("BAAI/bge-tiny", environ) == find_model("bge-tiny", environ) == find_model(None, environ) == one
    two = make_model(models / "sentence-transformers" / "e5")
    assert find_model("e5", environ) == find_model("sentence-transformers/e5", environ) == two
    assert find_model(None, environ) is None
    usual = make_model(models / DEFAULT_MODEL)
    assert find_model(None, environ) == find_model(f"sentence-transformers/{DEFAULT_MODEL}", environ) == usual
    (make_model(models / "half") / "onnx/model.onnx").unlink()
    for name in ("other/e5", "half", "../models/e5", "BAAI/../e5", "..", "", "a/b/c", "BAAI/"):
        assert find_model(name, environ) in (None, Path(name))


def test_the_models_folder_may_be_elsewhere(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "elsewhere" / "tiny")
    environ = {"HOME": str(tmp_path), "MEMORY_KB_MODELS": "~/elsewhere"}
    assert find_model("tiny", environ) == folder
    assert models_folder({"HOME": "/home/a"}) in (
        Path("/home/a/.local/share/memory-kb/models"),
        Path("/home/a/Library/Application Support/memory-kb/models"),
        Path("/home/a/AppData/Local/memory-kb/models"),
    )
    assert models_folder({}) is None
    assert find_model("tiny", {}) is find_model(None, {}) is None
    assert find_model("tiny", {"MEMORY_KB_MODELS": str(tmp_path / "elsewhere")}) == folder


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert find_model("~/tiny", environ) == tmp_path / "tiny"
    assert find_model("./tiny", environ) == Path("tiny")
    assert find_model(str(tmp_path / "tiny"), {}) == tmp_path / "tiny"
