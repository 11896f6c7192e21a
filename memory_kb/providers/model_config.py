"""Find a model's folder on this machine, and parse its configuration files.

A folder is as sentence-transformers writes it: `modules.json` lists the steps (the transformer, pooling, dense
layers, normalising), each with a folder of its own. A folder without it is a plain transformer, whose tokens
are averaged. Weights are read from an ONNX export.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.text import load_json

if TYPE_CHECKING:
    from hashlib import _Hash

#: 90 MB, loaded in a fraction of a second; the tokenizers of models for many languages alone take longer.
DEFAULT_MODEL = "all-MiniLM-L6-v2"
#: Whose models may be named without their owner.
DEFAULT_OWNER = "sentence-transformers"
_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")

#: Families whose first positions stand for the padding.
_OFFSET_FAMILIES, _OFFSET = ("camembert", "mpnet", "roberta", "xlm-roberta"), 2
#: In the order in which sentence-transformers joins their vectors.
_POOLING_KEYS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_DENSE_ACTIVATIONS = ("Identity", "Tanh", "GELU", "ReLU")
#: What the prompt of a text to be found may be called.
_DOCUMENTS = ("document", "passage", "corpus")
_PROMPTS_FILE = "config_sentence_transformers.json"
#: What a transformer reads at once that does not say it.
_POSITIONS = 512

#: A file up to this size is hashed whole, of a larger one only samples.
_WHOLE_LIMIT = 1 << 20
_SAMPLE, _SAMPLES = 1 << 16, 6
#: Folders with these names are called by the name of the folder around them.
_GENERIC = {"model", "models", "snapshot", "snapshots", "main", "onnx", "0_Transformer", ""}
_AGAIN = "fetch the model again with `memory-kb model fetch`"
_EXPORT = "fetch it again with `memory-kb model fetch`, or put an export at onnx/model.onnx in its folder"


class Dense(NamedTuple):
    """A linear layer behind the pooling, with its folder."""

    folder: Path
    inputs: int
    outputs: int
    has_bias: bool
    activation: str


class Pooling(NamedTuple):
    """How the vectors of the tokens become one; several ways are joined end to end."""

    modes: tuple[str, ...] = ("mean",)
    counts_prompt: bool = True


class Prompts(NamedTuple):
    """Text that goes before a query or a document."""

    query: str = ""
    document: str = ""


class ModelConfig(NamedTuple):
    """Everything that the configuration files of a model decide.

    Attributes:
        folder: of the transformer.
        files: the configuration files.
        max_tokens: how many tokens it reads at once.
        steps: what follows the pooling; None among them is normalising.
    """

    folder: Path
    files: tuple[Path, ...]
    max_tokens: int
    is_lowered: bool
    pooling: Pooling
    steps: tuple[Dense | None, ...]
    prompts: Prompts
    dimension: int


# -- where models are ----------------------------------------------------------------------


def find_model(name: str | None, environ: Mapping[str, str]) -> Path | None:
    """Return the folder of a model, None where there is none of this name.

    A path is taken as it is. A name may have its owner before it, as in `BAAI/bge-small-en`; it
    is looked up in the models folder and then in the cache of Hugging Face. No name stands for
    the default model, or else the only one in the models folder.
    """
    models = models_folder(environ)
    if name is None:
        own = [folder for folder in _list_models(models) if _is_whole(folder)]
        return find_model(DEFAULT_MODEL, environ) or (own[0] if len(own) == 1 else None)
    if is_path(name):
        return _expand(name, home_folder(environ))
    if not is_name(name):
        return None
    return next(filter(_is_whole, _places(name, models, _cache_folder(environ, home_folder(environ)))), None)


def models_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder for fetched models, None where no home folder is known."""
    home = home_folder(environ)
    data: Path | None = None
    if environ.get("MEMORY_KB_MODELS"):
        return _expand(environ["MEMORY_KB_MODELS"], home)
    if environ.get("XDG_DATA_HOME"):
        data = Path(environ["XDG_DATA_HOME"])
    elif sys.platform == "win32" and environ.get("LOCALAPPDATA"):
        data = Path(environ["LOCALAPPDATA"])
    elif home is not None:
        data = home / {"win32": "AppData/Local", "darwin": "Library/Application Support"}.get(
            sys.platform, ".local/share"
        )
    return data / "memory-kb" / "models" if data else None


def home_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the home folder that the environment names, if it names one."""
    named = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(named) if named else None


def is_path(name: str) -> bool:
    """Return whether a model is named by a path.

    Example:
        >>> [is_path(name) for name in ("~/models/e5", "./e5", "/srv/e5", "C:\\\\e5", "BAAI/e5", "e5")]
        [True, True, True, True, False, False]
    """
    prefixes = ("/", "\\", "./", ".\\", "../", "..\\", "~/", "~\\")
    return name in (".", "..", "~") or name.startswith(prefixes) or name[1:2] == ":"


def is_name(name: str) -> bool:
    """Return whether a text can name a model: one or two plain words with a slash between them.

    Example:
        >>> [is_name(name) for name in ("e5", "BAAI/e5", "a/b/c", "a/../b", "a b", "")]
        [True, True, False, False, False, False]
    """
    parts = name.split("/")
    return len(parts) <= 2 and all(part.strip(".") and set(part) <= _ALLOWED for part in parts)


def _expand(path: str, home: Path | None) -> Path:
    return home / path[2:] if home and path.startswith(("~/", "~\\")) else Path(path)


def _list_models(folder: Path | None) -> list[Path]:
    """Return what may be models: folders with a configuration, those of an owner a level deeper."""
    if folder is None:
        return []
    patterns = ("*/config.json", "*/modules.json", "*/*/modules.json")
    return sorted({file.parent for pattern in patterns for file in folder.glob(pattern)})


def _places(name: str, models: Path | None, cache: Path | None) -> Iterator[Path]:
    """Yield where a model may be: among the fetched ones, then in the cache of Hugging Face, there the newest first."""
    names = [name, name.removeprefix(f"{DEFAULT_OWNER}/")]
    names += [] if "/" in name else [f"{DEFAULT_OWNER}/{name}", f"*/{name}"]
    for one in names:
        yield from sorted(models.glob(one)) if models else ()
    for one in names:
        found = cache.glob(f"models--{one.replace('/', '--')}/snapshots/*") if cache else ()
        snapshots = filter(Path.is_dir, found)
        yield from sorted(snapshots, key=lambda place: place.stat().st_mtime, reverse=True)


def _cache_folder(environ: Mapping[str, str], home: Path | None) -> Path | None:
    if environ.get("HF_HUB_CACHE"):
        return _expand(environ["HF_HUB_CACHE"], home)
    if environ.get("HF_HOME"):
        return _expand(environ["HF_HOME"], home) / "hub"
    cache = environ.get("XDG_CACHE_HOME") or (home / ".cache" if home else None)
    return Path(cache, "huggingface", "hub") if cache else None


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
        >>> find_name(Path("/home/a/hub/models--BAAI--bge-small-en/snapshots/5c38")), find_name(Path("/srv/e5-small/model"))
        ('bge-small-en', 'e5-small')
    """
    if folder.parent.name == "snapshots" and folder.parent.parent.name.startswith("models--"):
        full = folder.parent.parent.name.removeprefix("models--")
        return full.partition("--")[2] or full
    names = [name for name in (folder.name, *(parent.name for parent in folder.parents)) if name not in _GENERIC]
    return names[0] if names else "model"


# -- files ---------------------------------------------------------------------------------


def find_onnx(folder: Path) -> Path:
    """Return the ONNX export of a folder; of several that are quantized, the largest.

    Raises:
        ProviderFailed: there is none.
    """
    for file in (folder / "onnx" / "model.onnx", folder / "model.onnx"):
        if file.is_file():
            return file
    quantized = [file for file in (*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")) if file.is_file()]
    if not quantized:
        raise ProviderFailed(f"the model in {folder} has no ONNX export (onnx/model.onnx)", _EXPORT)
    return max(quantized, key=lambda file: (file.stat().st_size, file.name))


def find_fingerprint(config: ModelConfig) -> str:
    """Return eight digits that differ between models that give different vectors.

    Raises:
        ProviderFailed: a file is missing or cannot be read.
    """
    import hashlib

    digest = hashlib.sha256(str(config.max_tokens).encode(), usedforsecurity=False)
    layers = [step.folder / "model.safetensors" for step in config.steps if step]
    for file in (*config.files, config.folder / "tokenizer.json", find_onnx(config.folder), *layers):
        try:
            _add_file(digest, file)
        except FileNotFoundError as exc:
            raise ProviderFailed(f"the model has no {file}", _AGAIN) from exc
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


# -- configuration -------------------------------------------------------------------------


class _Config:
    """A JSON file that is named when it does not say what it should."""

    def __init__(self, file: Path, values: Any = None) -> None:
        self.file = file
        self.values = _read_json(file) if values is None else values
        if not isinstance(self.values, Mapping):
            raise ProviderFailed(f"{file} is not a JSON object", _AGAIN)

    def get(self, kind: type, *names: str, default: Any = None) -> Any:
        """Return the first of these values that exists, of the kind wanted."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if not isinstance(value, (int, float) if kind is float else kind):
                    raise ProviderFailed(f"{self.file} gives {value!r} for {name}", _AGAIN)
                return value
        if default is None:
            raise ProviderFailed(f"{self.file} does not say {names[0]}", _AGAIN)
        return default


def read_config(folder: Path) -> ModelConfig:
    """Read the configuration of a model folder.

    Raises:
        ProviderFailed: a file is missing or broken, or the model is of an unknown kind.
    """
    if not folder.is_dir():
        raise ProviderFailed(f"there is no model folder {folder}", "`memory-kb model fetch` downloads one")
    modules = folder / "modules.json"
    if not modules.exists():
        return _read_parts(folder, folder, [])
    rows = _read_json(modules)
    if not isinstance(rows, list) or not rows:
        raise ProviderFailed(f"{modules} is not a list of modules", _AGAIN)
    parts: list[tuple[str, Path]] = []
    for row in rows:
        config = _Config(modules, row)
        kind, path = config.get(str, "type").rpartition(".")[2], PurePosixPath(config.get(str, "path", default="."))
        if path.is_absolute() or ".." in path.parts:
            raise ProviderFailed(f"{modules} points outside of its folder: {path}", "do not use this model")
        parts.append((kind, folder / path))
    if parts[0][0] != "Transformer":
        raise ProviderFailed(
            f"{modules} begins with {parts[0][0]}, not with a transformer",
            "choose a model made of a transformer and pooling",
        )
    return _read_parts(folder, parts[0][1], parts[1:])


def _read_parts(folder: Path, first: Path, rest: list[tuple[str, Path]]) -> ModelConfig:
    shape = _Config(first / "config.json")
    width = shape.get(int, "hidden_size", "dim", "d_model", "n_embd")
    pooling, steps = Pooling(), list[Dense | None]()
    for kind, place in rest:
        if kind == "Pooling":
            pooling = _read_pooling(_Config(place / "config.json"))
            width *= len(pooling.modes)
        elif kind == "Dense":
            dense = _read_dense(_Config(place / "config.json"))
            if dense.inputs != width:
                raise ProviderFailed(f"{place / 'config.json'} takes {dense.inputs} numbers, but gets {width}", _AGAIN)
            steps.append(dense)
            width = dense.outputs
        elif kind == "Normalize":
            steps.append(None)
        elif kind != "Dropout":
            raise ProviderFailed(f"{folder / 'modules.json'} has an unknown module: {kind}", "choose another model")
    own = [folder / "modules.json", shape.file, *_sentence_configs(first), folder / _PROMPTS_FILE]
    files = [*own, *[place / "config.json" for kind, place in rest if kind in ("Pooling", "Dense")]]
    max_tokens, is_lowered = _read_limits(first, _count_positions(shape))
    prompts, cut = _read_prompts(folder / _PROMPTS_FILE)
    return ModelConfig(
        first,
        tuple(file for file in files if file.exists()),
        max_tokens,
        is_lowered,
        pooling,
        tuple(steps),
        prompts,
        min(width, cut or width),
    )


def _count_positions(shape: _Config) -> int:
    positions = shape.get(int, "max_position_embeddings", default=_POSITIONS)
    first = _OFFSET if shape.get(str, "model_type") in _OFFSET_FAMILIES else 0
    return max((positions if positions > 0 else _POSITIONS) - first, 1)


def _sentence_configs(folder: Path) -> list[Path]:
    """Return the file that is usually `sentence_bert_config.json`; older models name it otherwise."""
    return sorted(folder.glob("sentence_*_config.json"))[:1]


def _read_json(file: Path) -> Any:
    try:
        return load_json(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as exc:
        raise ProviderFailed(f"the model has no {file}", _AGAIN) from exc
    except OSError as exc:
        raise ProviderFailed(f"{file} cannot be read: {exc.strerror}", "check who owns the folder") from exc
    except ValueError as exc:
        raise ProviderFailed(f"{file} is not JSON", _AGAIN) from exc


def _read_pooling(config: _Config) -> Pooling:
    known = tuple(_POOLING_KEYS.values())
    modes = config.values.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _POOLING_KEYS.items() if config.get(bool, key, default=False)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or any(mode not in known for mode in modes):
        raise ProviderFailed(f"{config.file} asks for an unknown pooling: {modes!r}", f"known are {', '.join(known)}")
    return Pooling(tuple(modes), config.get(bool, "include_prompt", default=True))


def _read_dense(config: _Config) -> Dense:
    activation = config.get(str, "activation_function", default="Tanh").rpartition(".")[2]
    source = config.get(str, "module_input_name", default="sentence_embedding")
    has_residual = config.get(bool, "use_residual", default=False)
    if activation not in _DENSE_ACTIVATIONS or source != "sentence_embedding" or has_residual:
        raise ProviderFailed(f"{config.file} describes a dense layer of an unknown kind", "choose another model")
    inputs, outputs = config.get(int, "in_features"), config.get(int, "out_features")
    return Dense(config.file.parent, inputs, outputs, config.get(bool, "bias", default=True), activation)


def _read_limits(folder: Path, room: int) -> tuple[int, bool]:
    """Return how many tokens the model reads at once, and whether it wants lower case."""
    limit, is_lowered = 0, False
    for file in _sentence_configs(folder):
        config = _Config(file)
        limit = config.get(int, "max_seq_length", default=0)
        is_lowered = config.get(bool, "do_lower_case", default=False)
    file = folder / "tokenizer_config.json"
    if limit <= 0 and file.exists():
        limit = int(min(_Config(file).get(float, "model_max_length", default=room), room))
    return min(limit if limit > 0 else room, room), is_lowered


def _read_prompts(file: Path) -> tuple[Prompts, int]:
    """Return the prompts, and the length to which vectors are cut, 0 for none."""
    if not file.exists():
        return Prompts(), 0
    config = _Config(file)
    prompts = _Config(file, config.get(dict, "prompts", default={}))
    named = {str(name): prompts.get(str, name, default="") for name in prompts.values}
    usual = config.get(str, "default_prompt_name", default="")
    return choose_prompts(named, usual), config.get(int, "truncate_dim", default=0)


def choose_prompts(named: Mapping[str, str], usual: str) -> Prompts:
    """Return the prompts for queries and documents; `usual` is used for one that is not named.

    Example:
        >>> choose_prompts({"query": "query: ", "document": "", "passage": "passage: "}, "")
        Prompts(query='query: ', document='passage: ')
        >>> choose_prompts({"query": "search: "}, "query"), choose_prompts({"all": "text: "}, "all")
        (Prompts(query='search: ', document=''), Prompts(query='text: ', document='text: '))
    """
    documents = [named[name] for name in _DOCUMENTS if name in named]
    query = named.get("query", "" if usual in _DOCUMENTS else named.get(usual, ""))
    document = "" if documents or usual == "query" else named.get(usual, "")
    return Prompts(query, next(filter(None, documents), document))
