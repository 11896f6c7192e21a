"""What the configuration of a sentence-transformers folder says, as values.

`modules.json` lists the steps, each with a folder of its own: the transformer, pooling, dense
layers, normalising. A folder without it is a plain transformer, read as sentence-transformers
does: the mean of the tokens.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed

#: The transformers that `memory_kb.providers.transformer` can compute ...
FAMILIES = ("bert", "camembert", "distilbert", "mpnet", "roberta", "xlm-roberta")
#: ... with one of these between the two halves of a layer.
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
#: Where the positions of a text start one behind the number of the padding token.
_OFFSET_FAMILIES = ("camembert", "mpnet", "roberta", "xlm-roberta")
#: MPNet pads with token 1, whatever its configuration says.
_MPNET_PADDING = 1
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


class Shape(NamedTuple):
    """What `config.json` says of a transformer.

    `padding` is the number of the padding token, and `first` that of the first position;
    `is_known` tells whether numpy can compute it.
    """

    family: str
    width: int
    layers: int
    heads: int
    inner: int
    positions: int
    first: int
    padding: int
    epsilon: float
    activation: str
    is_known: bool


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
    """What stands before a text that is searched for or in."""

    query: str = ""
    document: str = ""


class Recipe(NamedTuple):
    """Everything that the configuration files of a model decide.

    `folder` holds the transformer, `files` are the configuration files, and `steps` follow the
    pooling; None among them is normalising.
    """

    folder: Path
    files: tuple[Path, ...]
    shape: Shape
    max_tokens: int
    is_lowered: bool
    pooling: Pooling
    steps: tuple[Dense | None, ...]
    prompts: Prompts
    dimension: int


class _Config:
    """A JSON file that is named when it does not say what it should."""

    def __init__(self, file: Path, values: Any = None) -> None:
        self.file = file
        self.values = _read_json(file) if values is None else values
        if not isinstance(self.values, Mapping):
            raise ProviderFailed(f"{file} is not a JSON object", "fetch the model again")

    def get(self, kind: type, *names: str, default: Any = None) -> Any:
        """Return the first of these values that is there, a number, text or truth."""
        for name in names:
            value = self.values.get(name)
            if value is not None:
                if not isinstance(value, (int, float) if kind is float else kind):
                    raise ProviderFailed(f"{self.file} gives {value!r} for {name}", "fetch the model again")
                return value
        if default is None:
            raise ProviderFailed(f"{self.file} does not say {names[0]}", "fetch the model again")
        return default


def read_recipe(folder: Path) -> Recipe:
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
        raise ProviderFailed(f"{modules} is not a list of modules", "fetch the model again")
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


def _read_parts(folder: Path, first: Path, rest: list[tuple[str, Path]]) -> Recipe:
    shape = _read_shape(_Config(first / "config.json"))
    pooling, steps, width = Pooling(), list[Dense | None](), shape.width
    for kind, place in rest:
        if kind == "Pooling":
            pooling = _read_pooling(_Config(place / "config.json"))
            width *= len(pooling.modes)
        elif kind == "Dense":
            dense = _read_dense(_Config(place / "config.json"))
            if dense.inputs != width:
                raise ProviderFailed(
                    f"{place / 'config.json'} takes {dense.inputs} numbers, but gets {width}", "fetch the model again"
                )
            steps.append(dense)
            width = dense.outputs
        elif kind == "Normalize":
            steps.append(None)
        elif kind != "Dropout":
            raise ProviderFailed(
                f"{folder / 'modules.json'} has a module that is not known here: {kind}", "choose another model"
            )
    own = [folder / "modules.json", first / "config.json", *_sentence_configs(first), folder / _PROMPTS_FILE]
    files = [*own, *[place / "config.json" for kind, place in rest if kind in ("Pooling", "Dense")]]
    max_tokens, is_lowered = _read_limits(first, shape)
    prompts, cut = _read_prompts(folder / _PROMPTS_FILE)
    dimension = min(width, cut or width)
    return Recipe(
        first,
        tuple(file for file in files if file.exists()),
        shape,
        max_tokens,
        is_lowered,
        pooling,
        tuple(steps),
        prompts,
        dimension,
    )


def _sentence_configs(folder: Path) -> list[Path]:
    """Return the file that is usually `sentence_bert_config.json`; older models name it otherwise."""
    return sorted(folder.glob("sentence_*_config.json"))[:1]


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as exc:
        raise ProviderFailed(f"the model has no {file}", "fetch the model again") from exc
    except OSError as exc:
        raise ProviderFailed(f"{file} cannot be read: {exc.strerror}", "check who owns the folder") from exc
    except (ValueError, RecursionError) as exc:
        raise ProviderFailed(f"{file} is not JSON", "fetch the model again") from exc


def _read_shape(config: _Config) -> Shape:
    family = config.get(str, "model_type")
    padding = _MPNET_PADDING if family == "mpnet" else config.get(int, "pad_token_id", default=0)
    heads = config.get(int, "num_attention_heads", "n_heads", default=1)
    width = config.get(int, "hidden_size", "dim", "d_model", "n_embd")
    activation = config.get(str, "hidden_act", "activation", default="gelu")
    positions = config.get(int, "max_position_embeddings", default=_POSITIONS)
    is_absolute = config.get(str, "position_embedding_type", default="absolute") == "absolute"
    if min(width, heads) < 1 or width % heads:
        raise ProviderFailed(f"{config.file} gives {width} numbers to {heads} heads", "fetch the model again")
    return Shape(
        family=family,
        width=width,
        layers=config.get(int, "num_hidden_layers", "n_layers", default=0),
        heads=heads,
        inner=config.get(int, "intermediate_size", "hidden_dim", default=0),
        positions=positions if positions > 0 else _POSITIONS,
        first=padding + 1 if family in _OFFSET_FAMILIES else 0,
        padding=padding,
        epsilon=float(config.get(float, "layer_norm_eps", default=1e-12)),
        activation=activation,
        is_known=family in FAMILIES and activation in ACTIVATIONS and is_absolute,
    )


def _read_pooling(config: _Config) -> Pooling:
    known = tuple(_POOLING_KEYS.values())
    modes = config.values.get("pooling_mode")
    if modes is None:
        modes = [mode for key, mode in _POOLING_KEYS.items() if config.get(bool, key, default=False)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes or any(mode not in known for mode in modes):
        raise ProviderFailed(
            f"{config.file} asks for a pooling that is not known here: {modes!r}", f"known are {', '.join(known)}"
        )
    return Pooling(tuple(modes), config.get(bool, "include_prompt", default=True))


def _read_dense(config: _Config) -> Dense:
    activation = config.get(str, "activation_function", default="Tanh").rpartition(".")[2]
    source = config.get(str, "module_input_name", default="sentence_embedding")
    if (
        activation not in _DENSE_ACTIVATIONS
        or source != "sentence_embedding"
        or config.get(bool, "use_residual", default=False)
    ):
        raise ProviderFailed(
            f"{config.file} describes a dense layer of a kind that is not known here", "choose another model"
        )
    inputs, outputs = config.get(int, "in_features"), config.get(int, "out_features")
    return Dense(config.file.parent, inputs, outputs, config.get(bool, "bias", default=True), activation)


def _read_limits(folder: Path, shape: Shape) -> tuple[int, bool]:
    """Return how many tokens the model reads at once, and whether it wants lower case."""
    room = max(shape.positions - shape.first, 1)
    limit, is_lowered = 0, False
    for file in _sentence_configs(folder):
        config = _Config(file)
        limit, is_lowered = (
            config.get(int, "max_seq_length", default=0),
            config.get(bool, "do_lower_case", default=False),
        )
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
    return choose_prompts(named, config.get(str, "default_prompt_name", default="")), config.get(
        int, "truncate_dim", default=0
    )


def choose_prompts(named: Mapping[str, str], usual: str) -> Prompts:
    """Return the prompts for the two purposes; `usual` stands in for one that is not named.

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
