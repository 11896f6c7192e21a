"""Local models: their vectors are those of sentence-transformers, however their files are written.

Set MEMORY_KB_TEST_MODEL to the folder of a published model, such as all-MiniLM-L6-v2, to test with that too.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_models import (
    LONG,
    PADDED,
    TABLE,
    WIDTH,
    embed,
    make_model,
    numbers,
    states_of,
    unit,
    write_json,
    write_onnx,
)

from memory_kb.errors import ProviderFailed
from memory_kb.providers.local import LocalEmbedder

pytest.importorskip("onnxruntime")

REAL = os.environ.get("MEMORY_KB_TEST_MODEL", "")
needs_real = pytest.mark.skipif(not REAL, reason="set MEMORY_KB_TEST_MODEL to the folder of a published model")


@pytest.fixture(scope="module")
def real() -> LocalEmbedder:
    """The published model."""
    return LocalEmbedder(REAL)


def test_vectors_are_means_of_what_the_export_gives(tmp_path: Path) -> None:
    texts = [LONG, "w5", PADDED, *(" ".join(LONG.split()[:number]) for number in range(1, 40))]
    expected = np.stack([unit(states_of(text).mean(axis=0)) for text in texts])
    assert embed(make_model(tmp_path), *texts) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("mode", "token"), [("cls", 0), ("lasttoken", -1)])
def test_the_first_or_the_last_token_may_stand_for_all(tmp_path: Path, mode: str, token: int) -> None:
    vector = embed(make_model(tmp_path, mode), PADDED)[0]
    assert vector == pytest.approx(unit(states_of(PADDED)[token]), abs=1e-5)


def test_a_plain_transformer_is_read_as_the_mean_of_its_tokens(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    whole = embed(folder, LONG)
    for name in ("modules.json", "sentence_bert_config.json"):
        (folder / name).unlink()
    shutil.rmtree(folder / "1_Pooling")
    assert embed(folder, LONG) == pytest.approx(whole, abs=1e-6)


@pytest.mark.parametrize("mode", ["cls", ["cls"]])
def test_the_way_newer_releases_write_their_files_is_read(tmp_path: Path, mode: str | list[str]) -> None:
    folder = make_model(tmp_path, "cls")
    before = embed(folder, LONG)
    pooling = {"embedding_dimension": WIDTH, "pooling_mode": mode, "include_prompt": True}
    write_json(folder / "1_Pooling" / "config.json", pooling)
    write_json(
        folder / "sentence_bert_config.json",
        {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"},
    )
    assert np.array_equal(embed(folder, LONG), before)


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


# -- exports -------------------------------------------------------------------------------


def test_a_quantized_export_is_run_where_there_is_no_other(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    whole = LocalEmbedder(folder).space
    write_onnx(folder / "onnx" / "model_qint8_avx512.onnx", numbers("other", *TABLE.shape))
    assert embed(folder, LONG)[0] == pytest.approx(unit(states_of(LONG).mean(axis=0)), abs=1e-5)
    (folder / "onnx" / "model.onnx").unlink()
    assert embed(folder, LONG)[0] != pytest.approx(unit(states_of(LONG).mean(axis=0)), abs=1e-3)
    assert LocalEmbedder(folder).space != whole


@pytest.mark.parametrize(
    ("output", "extra", "content", "named"),
    [
        ("pooled", "position_ids", None, "not the export"),
        ("states", "", b"nothing", "cannot be run"),
        ("states", "", b"", "cannot be run"),
    ],
)
def test_an_export_that_cannot_be_run_is_named(
    tmp_path: Path, output: str, extra: str, content: bytes | None, named: str
) -> None:
    folder = make_model(tmp_path)
    write_onnx(folder / "onnx" / "model.onnx", TABLE, output, extra)
    if content is not None:
        (folder / "onnx" / "model.onnx").write_bytes(content)
    with pytest.raises(ProviderFailed, match=named):
        embed(folder, LONG)


def test_an_export_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProviderFailed, match=r"model\.onnx failed"):
        embed(make_model(tmp_path, table=TABLE[:9]), "w39")


@pytest.mark.parametrize("missing", ["tokenizers", "onnxruntime"])
def test_a_missing_package_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    embedder = LocalEmbedder(make_model(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(ProviderFailed, match=missing) as caught:
        embedder.embed(["w5"], "query")
    assert caught.value.hint == "pip install 'memory-kb[local]'"


# -- a published model ---------------------------------------------------------------------


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
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-5)
    alone = np.concatenate([real.embed([text], "document") for text in texts])
    assert vectors == pytest.approx(alone, abs=1e-5)
