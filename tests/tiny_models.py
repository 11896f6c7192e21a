"""Model folders small enough to be made by a test: an ONNX export that looks every token up in a table.

`make_model(folder)` writes what sentence-transformers would; the words of its tokenizer are w4 to w39.
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from memory_kb.providers.local import LocalEmbedder
from memory_kb.providers.protocols import Purpose

Floats = NDArray[np.float32]

WIDTH, WORDS, POSITIONS = 8, 40, 70
#: The most tokens that a model reads at once, two of them its frame.
LONGEST = 64
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def numbers(name: str, *shape: int) -> Floats:
    """Return numbers between -1 and 1 that follow from a name, the same with every numpy."""
    return np.random.RandomState(zlib.crc32(name.encode())).uniform(-1, 1, shape).astype(np.float32)


#: The vector of every token, by its number.
TABLE = numbers("table", WORDS, WIDTH)


def write_json(file: Path, value: object) -> None:
    """Write JSON, making the folder around it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), encoding="utf-8")


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of whole words, which pads and cuts as published ones often do."""
    words = [*SPECIAL, *(f"w{number}" for number in range(len(SPECIAL), WORDS))]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.enable_padding(length=16, pad_id=1, pad_token="<pad>")
    tokenizer.enable_truncation(5)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "model_max_length": LONGEST,
    }
    write_json(folder / "tokenizer_config.json", config)


def make_model(folder: Path, mode: str = "mean", table: Floats = TABLE) -> Path:
    """Write a model folder: a transformer, pooling, and normalising."""
    config = {"model_type": "bert", "hidden_size": WIDTH, "max_position_embeddings": POSITIONS, "pad_token_id": 1}
    write_json(folder / "config.json", config)
    write_onnx(folder / "onnx" / "model.onnx", table)
    write_tokenizer(folder)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    kinds = ["Transformer", "Pooling", "Normalize"]
    paths = [f"{number}_{kind}" if number else "" for number, kind in enumerate(kinds)]
    modules = [
        {"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in zip(paths, kinds, strict=True)
    ]
    write_json(
        folder / "modules.json",
        [{"idx": number, "name": str(number)} | module for number, module in enumerate(modules)],
    )
    pooling = {"pooling_mode_cls_token": mode == "cls", "pooling_mode_mean_tokens": mode == "mean"}
    pooling |= {"pooling_mode_lasttoken": mode == "lasttoken"}
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": WIDTH} | pooling)
    return folder


def _field(number: int, value: int | bytes | str) -> bytes:
    """Write a field of a protobuf message; numbers here are below 128, lengths below 16,384."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    raw = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(raw) & 127 | 128, len(raw) >> 7]) + raw


def write_onnx(file: Path, table: Floats, output: str = "last_hidden_state", extra: str = "") -> None:
    """Write an ONNX model that looks every token up in a table."""

    def value(name: str, kind: int, *dims: str) -> bytes:
        shape = b"".join(_field(1, _field(2, dim)) for dim in dims)
        return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))

    tensor = (
        _field(1, len(table))
        + _field(1, table.shape[1])
        + _field(2, 1)
        + _field(8, "table")
        + _field(9, table.tobytes())
    )
    node = _field(1, "table") + _field(1, "input_ids") + _field(2, output) + _field(4, "Gather")
    inputs = b"".join(_field(11, value(name, 7, "batch", "length")) for name in ("input_ids", extra) if name)
    graph = (
        _field(1, node)
        + _field(2, "tiny")
        + _field(5, tensor)
        + inputs
        + _field(12, value(output, 1, "batch", "length", "width"))
    )
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))


LONG = " ".join(f"w{4 + number * number % 36}" for number in range(45))
PADDED = "w5 <pad> w6"


def states_of(text: str) -> Floats:
    """Return what the export gives for the tokens of a text, with its frame."""
    numbered = (int(word[1:]) if word.startswith("w") else SPECIAL.index(word) for word in text.split())
    return TABLE[[0, *numbered, 2]]


def embed(folder: Path, *texts: str, purpose: Purpose = "document") -> Floats:
    """Return the vectors of texts, by a model that is closed again."""
    embedder = LocalEmbedder(folder)
    vectors = embedder.embed(texts, purpose)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), embedder.space.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    embedder.close()
    return vectors


def unit(vector: Floats) -> Floats:
    """Return a vector at a length of one."""
    return np.asarray(vector / np.linalg.norm(vector))
