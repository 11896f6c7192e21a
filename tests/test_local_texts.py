"""Local models and what they are given: texts of any length, in any order, from several threads, and the space they are in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import REPOSITORY
from numpy.typing import NDArray
from tiny_models import LONG, TABLE, WIDTH, embed, make_model, numbers, unit, write_json, write_onnx

from memory_kb.errors import ProviderFailed
from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.protocols import Limits

pytest.importorskip("onnxruntime")

Floats = NDArray[np.float32]

#: Changes something in a model folder.
Damage = Callable[[Path], object]


def test_a_long_text_is_the_weighted_mean_of_its_windows(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
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
    texts = [
        "",
        " \n\t",
        "\x00",
        "\ud83d half",
        "🎉👩‍👩‍👧",
        "検索する",
        "مرحبا",
        "<s> </s> <pad>",
        "w5" * 5_000,
        "a\u0301" * 99,
    ]
    assert np.isfinite(embed(make_model(tmp_path), *texts)).all()


def test_a_tokenizer_without_a_frame_gives_even_nothing_a_vector(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    write_json(folder / "tokenizer.json", tokenizer | {"post_processor": None})
    assert np.isfinite(embed(folder, "", "w5", LONG * 9)).all()


def test_texts_keep_their_order_and_do_not_touch_each_other(tmp_path: Path) -> None:
    embedder = LocalEmbedder(make_model(tmp_path))
    words = LONG.split()
    texts = [" ".join(words[: (number * 29) % 45 + 1] * (4 if number % 9 == 0 else 1)) for number in range(64)]
    together = embedder.embed(texts, "document")
    alone = np.concatenate([embedder.embed([text], "document") for text in texts])
    assert together == pytest.approx(alone, abs=1e-5)
    assert np.array_equal(embedder.embed(texts, "document"), together)
    assert embedder.embed([], "query").shape == (0, WIDTH)


def test_several_threads_may_ask_at_once(tmp_path: Path) -> None:
    embedder = LocalEmbedder(make_model(tmp_path))
    texts = [" ".join(LONG.split()[number : number + 9]) for number in range(30)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda text: embedder.embed([text] * 30, "document")[:1], texts))
    assert np.concatenate(found) == pytest.approx(embedder.embed(texts, "document"), abs=1e-5)


def test_lower_case_is_for_models_that_want_it(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    unlike, like = embed(folder, "W5 W6", "w5 w6")
    assert np.abs(unlike - like).max() > 0.01
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 64, "do_lower_case": True})
    assert embed(folder, "W5 W6")[0] == pytest.approx(like, abs=1e-6)


def test_prompts_stand_before_queries_and_documents(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    plain = embed(folder, "w10 w5 w6", "w11 w5 w6")
    write_json(
        folder / "config_sentence_transformers.json",
        {"prompts": {"query": "w10 ", "passage": "w11 "}, "default_prompt_name": None},
    )
    assert embed(folder, "w5 w6", purpose="query")[0] == pytest.approx(plain[0], abs=1e-6)
    assert embed(folder, "w5 w6")[0] == pytest.approx(plain[1], abs=1e-6)


def test_every_window_has_the_prompt(tmp_path: Path) -> None:
    folder = make_model(tmp_path)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 10})
    edges = [45 * number // 8 for number in range(9)]
    parts = embed(folder, *(f"w10 w11 {' '.join(LONG.split()[start:stop])}" for start, stop in pairwise(edges)))
    write_json(folder / "config_sentence_transformers.json", {"prompts": {"document": "w10 w11 "}})
    assert embed(folder, LONG)[0] == pytest.approx(unit((parts * np.diff(edges)[:, None]).sum(axis=0)), abs=1e-5)


def test_a_space_is_known_before_anything_is_loaded(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "tiny")
    code = (
        "import sys\nfrom memory_kb.providers.local import LocalEmbedder\n"
        f"embedder = LocalEmbedder({str(folder)!r})\nprint(*embedder.space, *embedder.limits)\n"
        "print([name for name in ('numpy', 'tokenizers', 'onnxruntime') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(REPOSITORY)}
    )
    space, loaded = done.stdout.splitlines()
    name, mark = space.split()[1].split("@")
    assert (name, len(mark), int(mark, 16) >= 0, space.split()[2], loaded) == ("tiny", 8, True, str(WIDTH), "[]")


def test_a_space_follows_the_files_and_not_their_place(tmp_path: Path) -> None:
    space = LocalEmbedder(make_model(tmp_path / "one" / "tiny")).space
    assert LocalEmbedder(make_model(tmp_path / "two" / "tiny")).space == space
    changes: list[Damage] = [
        lambda folder: write_onnx(folder / "onnx" / "model.onnx", numbers("other", *TABLE.shape)),
        lambda folder: write_json(folder / "1_Pooling" / "config.json", {"pooling_mode": "cls"}),
        lambda folder: write_json(folder / "sentence_bert_config.json", {"max_seq_length": 32}),
        lambda folder: write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "w5 "}}),
        lambda folder: write_json(
            folder / "tokenizer.json",
            json.loads((folder / "tokenizer.json").read_text()) | {"normalizer": {"type": "NFC"}},
        ),
        lambda folder: write_json(
            folder / "config.json", json.loads((folder / "config.json").read_text()) | {"layer_norm_eps": 1e-3}
        ),
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
