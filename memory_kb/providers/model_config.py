"""Find a model's folder on this machine, and read its configuration.

A folder is as sentence-transformers writes it: `modules.json` lists the transformer, the pooling and perhaps
normalising. A folder without it is a plain transformer, whose tokens are averaged. Weights are read from an ONNX
export. A model with any other module is not supported.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.text import load_json

#: 90 MB, loaded in a fraction of a second; the tokenizers of models for many languages alone take longer.
DEFAULT_MODEL = "all-MiniLM-L6-v2"
#: Whose models may be named without their owner.
DEFAULT_OWNER = "sentence-transformers"
#: What a word of a name is made of, and how a path begins.
_WORD = re.compile(r"[A-Za-z0-9._-]+")
_PATH = re.compile(r"[/\\]|\.{1,2}(?:[/\\]|$)|~(?:[/\\]|$)|.:")

#: Families whose first positions stand for the padding.
_OFFSET_FAMILIES, _OFFSET = ("camembert", "mpnet", "roberta", "xlm-roberta"), 2
_WIDTH_KEYS = ("hidden_size", "dim", "d_model", "n_embd")
_MODULES = ["Transformer", "Pooling", "Normalize"]
_POOLING_KEY = "pooling_mode_"
_POOLINGS = ("mean", "cls", "lasttoken")
#: What the prompt of a text to be found may be called.
_TEXTS = ("document", "passage", "corpus")
_PROMPTS_FILE = "config_sentence_transformers.json"
#: What a transformer reads at once that does not say it.
_POSITIONS = 512

#: A file up to this size is hashed whole, of a larger one only samples.
_WHOLE_LIMIT = 1 << 20
_SAMPLE, _SAMPLES = 1 << 16, 6
#: Folders with these names are called by the name of the folder around them.
_GENERIC = {"model", "models", "main", "onnx", "0_Transformer", ""}
_AGAIN = "fetch the model again with `memory-kb model fetch`"
_EXPORT = "fetch it again with `memory-kb model fetch`, or put an export at onnx/model.onnx in its folder"


class ModelConfig(NamedTuple):
    """Everything that the configuration files of a model decide.

    Attributes:
        folder: of the transformer.
        files: the configuration files.
        max_tokens: how many tokens it reads at once.
        pooling: how the vectors of the tokens become one: mean, cls or lasttoken.
        dimension: how many numbers a vector has.
        query_prompt: what goes before a query, and `text_prompt` before a text to be found.
    """

    folder: Path
    files: tuple[Path, ...]
    max_tokens: int
    is_lowered: bool
    pooling: str
    dimension: int
    query_prompt: str = ""
    text_prompt: str = ""


# -- where models are ----------------------------------------------------------------------


def find_model(name: str | None, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of a model, None where there is none of this name.

    A path is taken as it is. A name may have its owner before it, as in `BAAI/bge-small-en`. No name stands for
    the default model, or else the only one in the models folder.
    """
    if name and _PATH.match(name):
        return _expand(name, environ)
    models = models_folder(environ)
    if models is None or (name is not None and not is_name(name)):
        return None
    if name is None:
        found = {file.parent for pattern in ("*/*.json", "*/*/modules.json") for file in models.glob(pattern)}
        own = list(filter(_is_whole, found))
        return find_model(DEFAULT_MODEL, environ) or (own[0] if len(own) == 1 else None)
    names = [name, name.removeprefix(f"{DEFAULT_OWNER}/")]
    names += [] if "/" in name else [f"{DEFAULT_OWNER}/{name}", f"*/{name}"]
    return next((folder for one in names for folder in sorted(models.glob(one)) if _is_whole(folder)), None)


def models_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for fetched models, None where no home folder is known."""
    if named := environ.get("MEMORY_KB_MODELS"):
        return _expand(named, environ)
    home = environ.get("HOME") or environ.get("USERPROFILE")
    data = environ.get("XDG_DATA_HOME") or (environ.get("LOCALAPPDATA") if sys.platform == "win32" else None)
    if data is None and home:
        usual = {"win32": "AppData/Local", "darwin": "Library/Application Support"}
        data = os.path.join(home, usual.get(sys.platform, ".local/share"))
    return Path(data, "memory-kb", "models") if data else None


def is_name(name: str) -> bool:
    """Return whether a text can name a model: one or two plain words with a slash between them.

    Example:
        >>> [is_name(name) for name in ("e5", "BAAI/e5", "a/b/c", "a/../b", "a b", "")]
        [True, True, False, False, False, False]
    """
    parts = name.split("/")
    return len(parts) <= 2 and all(part.strip(".") and _WORD.fullmatch(part) for part in parts)


def _expand(path: str, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home, path[2:]) if home and path.startswith(("~/", "~\\")) else Path(path)


def _is_whole(folder: Path) -> bool:
    """Return whether a folder holds all that a model needs."""
    try:
        config = read_config(folder)
        find_onnx(config.folder)
    except ProviderFailed:
        return False
    return (config.folder / "tokenizer.json").exists()


def find_name(folder: Path) -> str:
    """Return what people call the model in a folder.

    Example:
        >>> find_name(Path("/srv/e5-small/model"))
        'e5-small'
    """
    return next((part for part in reversed(folder.parts[1:]) if part not in _GENERIC), "model")


# -- files ---------------------------------------------------------------------------------


def find_onnx(folder: Path) -> Path:
    """Return the ONNX export of a folder; of several that are quantized, the largest.

    Raises:
        ProviderFailed: there is none.
    """
    exports = [file for file in (*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")) if file.is_file()]
    if not exports:
        raise ProviderFailed(f"the model in {folder} has no ONNX export (onnx/model.onnx)", _EXPORT)
    whole = next((file for file in exports if file.name == "model.onnx"), None)
    return whole or max(exports, key=lambda file: (file.stat().st_size, file.name))


def find_fingerprint(config: ModelConfig) -> str:
    """Return eight digits that differ between models that give different vectors.

    Raises:
        ProviderFailed: a file is missing or cannot be read.
    """
    import hashlib

    digest = hashlib.sha256(str(config.max_tokens).encode(), usedforsecurity=False)
    with _reading(config.folder):
        for file in (*config.files, config.folder / "tokenizer.json", find_onnx(config.folder)):
            size = file.stat().st_size
            digest.update(f"{file.name} {size}\n".encode())
            with file.open("rb") as stream:
                if size <= _WHOLE_LIMIT:
                    digest.update(stream.read())
                    continue
                for number in range(_SAMPLES):
                    stream.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
                    digest.update(stream.read(_SAMPLE))
    return digest.hexdigest()[:8]


# -- configuration -------------------------------------------------------------------------


def read_config(folder: Path) -> ModelConfig:
    """Read the configuration of a model folder.

    Raises:
        ProviderFailed: a file is missing or broken, or the model is of a kind that is not supported.
    """
    if not folder.is_dir():
        raise ProviderFailed(f"there is no model folder {folder}", "`memory-kb model fetch` downloads one")
    with _reading(folder):
        first, *others = _find_parts(folder)
        shape, prompts = _read_json(first / "config.json"), _read_json(folder / _PROMPTS_FILE, {})
        width = int(next(filter(None, map(shape.get, _WIDTH_KEYS)), ""))
        named = {str(name): str(prompt or "") for name, prompt in (prompts.get("prompts") or {}).items()}
        sentence = sorted(first.glob("sentence_*_config.json"))[:1]
        own = [folder / "modules.json", first / "config.json", *sentence, folder / _PROMPTS_FILE]
        pooling_file = others[0] / "config.json" if others else None
        files = (*own, pooling_file) if pooling_file else own
        sentence_config = _read_json(sentence[0]) if sentence else {}
        return ModelConfig(
            folder=first,
            files=tuple(file for file in files if file.exists()),
            max_tokens=_read_limit(first, shape, sentence_config),
            is_lowered=bool(sentence_config.get("do_lower_case")),
            pooling=_read_pooling(folder, _read_json(pooling_file)) if pooling_file else "mean",
            dimension=min(width, int(prompts.get("truncate_dim") or 0) or width),
            query_prompt=named.get("query", ""),
            text_prompt=next((named[name] for name in _TEXTS if named.get(name)), ""),
        )


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Report what is missing or damaged in a model's folder."""
    try:
        yield
    except OSError as exc:
        raise ProviderFailed(f"{exc.filename} cannot be read: {exc.strerror}", _AGAIN) from exc
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ProviderFailed(f"the configuration of the model in {folder} is damaged", _AGAIN) from exc


def _find_parts(folder: Path) -> list[Path]:
    """Return the folders of the transformer and of what follows it, in the order of `_MODULES`."""
    modules = folder / "modules.json"
    rows = _read_json(modules, None)
    if rows is None:
        return [folder]
    kinds = [row["type"].rpartition(".")[2] for row in rows]
    paths = [PurePosixPath(row.get("path", "")) for row in rows]
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        raise ProviderFailed(f"{modules} points outside of its folder", "do not use this model")
    if not kinds or kinds != _MODULES[: len(kinds)]:
        raise _unsupported(folder, ", ".join(kinds))
    return [folder / path for path in paths]


def _unsupported(folder: Path, what: str) -> ProviderFailed:
    return ProviderFailed(
        f"the model in {folder} is of a kind that is not supported ({what})",
        f"choose one made of a transformer and pooling by {', '.join(_POOLINGS)}",
    )


def _read_json(file: Path, *without: Any) -> Any:
    """Return what a file says; the second argument where there is no such file."""
    if without and not file.exists():
        return without[0]
    return load_json(file.read_text(encoding="utf-8-sig"))


def _read_pooling(folder: Path, config: Mapping[str, Any]) -> str:
    """Return the one way of pooling: newer files name it, older ones have a switch for each."""
    switched = [key for key, is_on in config.items() if key.startswith(_POOLING_KEY) and is_on is True]
    modes = config.get("pooling_mode") or [re.sub("_tokens?$", "", key.removeprefix(_POOLING_KEY)) for key in switched]
    modes = [modes] if isinstance(modes, str) else modes or ["mean"]
    if len(modes) != 1 or modes[0] not in _POOLINGS or not config.get("include_prompt", True):
        raise _unsupported(folder, f"pooling by {', '.join(modes)}")
    return str(modes[0])


def _read_limit(folder: Path, shape: Mapping[str, Any], sentence_config: Mapping[str, Any]) -> int:
    """Return how many tokens the model reads at once."""
    positions = int(shape.get("max_position_embeddings") or 0)
    offset = _OFFSET if shape.get("model_type") in _OFFSET_FAMILIES else 0
    room = max((positions if positions > 0 else _POSITIONS) - offset, 1)
    tokenizer = _read_json(folder / "tokenizer_config.json", {})
    limit = int(sentence_config.get("max_seq_length") or 0)
    if limit <= 0:
        limit = int(min(tokenizer.get("model_max_length") or room, room))
    return min(limit, room) if limit > 0 else room
