"""Find, download and describe the files of embedding models that run on this machine.

A folder is as sentence-transformers writes it: `modules.json` lists the transformer, the pooling and perhaps
normalising. A folder without it is a plain transformer, whose tokens are averaged. Weights are read from an ONNX
export. A model with any other module is not supported.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed
from memory_kb.providers.protocols import display_host
from memory_kb.text import load_json, shorten

#: 90 MB, loaded in a fraction of a second; the tokenizers of models for many languages alone take longer.
DEFAULT_MODEL = "all-MiniLM-L6-v2"
#: The owner of models that are named without one.
DEFAULT_OWNER = "sentence-transformers"
_HUB = "https://huggingface.co"
_NAME = re.compile(r"(?!\.+(?:/|$))[A-Za-z0-9._-]+(?:/(?!\.+$)[A-Za-z0-9._-]+)?")
#: The beginning of a path, which distinguishes it from a name.
_PATH = re.compile(r"[/\\]|\.{1,2}(?:[/\\]|$)|~(?:[/\\]|$)|.:")
#: The files of a model on the hub that are fetched: its configuration, its words, and the export in the usual place.
_NEEDED = (
    *("config.json", "modules.json", "*_*/config.json", "sentence_*_config.json", "config_sentence_transformers.json"),
    *("tokenizer.json", "tokenizer_config.json", "onnx/model.onnx*", "model.onnx*"),
)

#: Families whose first positions stand for the padding.
_OFFSET_FAMILIES, _OFFSET = ("camembert", "mpnet", "roberta", "xlm-roberta"), 2
_WIDTH_KEYS = ("hidden_size", "dim", "d_model", "n_embd")
_MODULES = ["Transformer", "Pooling", "Normalize"]
_POOLING_KEY = "pooling_mode_"
_POOLINGS = ("mean", "cls", "lasttoken")
#: Names that configurations give to the prompt of a text to be found.
_TEXTS = ("document", "passage", "corpus")
#: The tokens that a transformer reads at once, if its configuration does not say.
_POSITIONS = 512

#: A file up to this size is hashed whole, of a larger one only samples.
_WHOLE_LIMIT = 1 << 20
_SAMPLE, _SAMPLES = 1 << 16, 6
FETCH_AGAIN = "fetch the model again with `memory-kb model fetch`"
_EXPORT = "fetch it again with `memory-kb model fetch`, or put an export at onnx/model.onnx in its folder"


class ModelConfig(NamedTuple):
    """The values that are read from the configuration files of a model.

    Its vectors depend on `files`. The transformer reads `max_tokens` at once; `pooling` is mean, cls or lasttoken. The
    prompts go before a query, and before a text to be found.
    """

    tokenizer: Path
    onnx: Path
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
    if models is None:
        return None
    if name is None:
        own = [*filter(_is_whole, models.glob("*")), *filter(_is_whole, models.glob("*/*"))]
        return find_model(DEFAULT_MODEL, environ) or (own[0] if len(own) == 1 else None)
    if not _NAME.fullmatch(name):
        return None
    places = (name, name.removeprefix(f"{DEFAULT_OWNER}/")) if "/" in name else (name, f"*/{name}")
    return next((folder for place in places for folder in sorted(models.glob(place)) if _is_whole(folder)), None)


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


def _expand(path: str, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    return Path(home, path[2:]) if home and path.startswith(("~/", "~\\")) else Path(path)


def _is_whole(folder: Path) -> bool:
    """Return whether a folder holds all that a model needs."""
    try:
        read_config(folder)
    except ProviderFailed:
        return False
    return True


# -- download ------------------------------------------------------------------------------


def fetch_model(name: str, folder: Path, *, environ: Mapping[str, str]) -> Path:
    """Download a model from the Hugging Face hub into the models folder, and return its own folder there.

    A name without an owner is one of sentence-transformers. `HF_ENDPOINT` is another hub, `HF_TOKEN` is sent to
    the hub. Files that exist unchanged are kept, and an interrupted download is continued.

    Raises:
        ProviderFailed: there is no such model, it cannot be used here, or the hub cannot be reached.
    """
    if not _NAME.fullmatch(name):
        raise ProviderFailed(
            f"{name!r} is no name of a model", "names look like sentence-transformers/all-MiniLM-L6-v2"
        )
    try:
        import huggingface_hub
    except ImportError as exc:
        raise ProviderFailed(
            "fetching a model needs the package huggingface_hub", "pip install 'memory-kb[local]'"
        ) from exc
    hub, token = (environ.get("HF_ENDPOINT") or _HUB).rstrip("/"), environ.get("HF_TOKEN") or None
    target, model = folder / name, name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    try:
        huggingface_hub.snapshot_download(
            model, local_dir=target, allow_patterns=list(_NEEDED), endpoint=hub, token=token
        )
    except Exception as exc:  # the package passes on whatever its HTTP client raises
        raise _explain(exc, model, display_host(hub), target) from exc
    read_config(target)
    return target


def _explain(exc: Exception, model: str, host: str, target: Path) -> ProviderFailed:
    """Return the error to raise for a failed download."""
    from huggingface_hub.errors import HfHubHTTPError

    refusals = (one for one in (exc, exc.__cause__) if isinstance(one, HfHubHTTPError))
    status = next((one.response.status_code for one in refusals), 0)
    if status in (401, 403, 404):
        return ProviderFailed(
            f"{host} has no model {model}, or does not give it to you (status {status})",
            f"check the spelling; if the model has terms, accept them at {host}/{model} and set HF_TOKEN",
        )
    if isinstance(exc, OSError) and exc.filename:
        return ProviderFailed(
            f"{exc.filename} cannot be written: {exc.strerror or exc}", "set MEMORY_KB_MODELS to another folder"
        )
    by_hand = f"run the command again, it continues; or copy the model's folder to {target} by hand"
    return ProviderFailed(
        f"{host} did not send {model}: {shorten(str(exc) or type(exc).__name__, 200)}", by_hand, is_passing=True
    )


# -- configuration -------------------------------------------------------------------------


def read_config(folder: Path) -> ModelConfig:
    """Read the configuration of a model folder, which has all files that a model needs."""
    if not folder.is_dir():
        raise ProviderFailed(f"there is no model folder {folder}", "`memory-kb model fetch` downloads one")
    with _reading(folder):
        first, *others = _find_parts(folder)
        sentence_file = next(iter(sorted(first.glob("sentence_*_config.json"))), first / "sentence_bert_config.json")
        prompts_file = folder / "config_sentence_transformers.json"
        files = [folder / "modules.json", first / "config.json", sentence_file, prompts_file]
        files += [others[0] / "config.json"] if others else []
        shape = _read_json(files[1])
        sentence, prompts = (_read_json(file, is_optional=True) for file in (sentence_file, prompts_file))
        width = int(next(filter(None, map(shape.get, _WIDTH_KEYS)), ""))
        named = {str(name): str(prompt or "") for name, prompt in (prompts.get("prompts") or {}).items()}
        pooling = _read_pooling(folder, _read_json(files[4])) if others else "mean"
        tokenizer, onnx = first / "tokenizer.json", _find_onnx(first)
        if not tokenizer.exists():
            raise ProviderFailed(
                f"the model in {folder} has no tokenizer.json", "fetch it again, or choose another model"
            )
        return ModelConfig(
            tokenizer,
            onnx,
            files=(*(file for file in files if file.exists()), tokenizer, onnx),
            max_tokens=_read_limit(first, shape, sentence),
            is_lowered=bool(sentence.get("do_lower_case")),
            pooling=pooling,
            dimension=min(width, int(prompts.get("truncate_dim") or 0) or width),
            query_prompt=named.get("query", ""),
            text_prompt=next((named[name] for name in _TEXTS if named.get(name)), ""),
        )


def _find_onnx(folder: Path) -> Path:
    """Return the ONNX export of a folder; of several that are quantized, the largest."""
    exports = [file for file in (*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")) if file.is_file()]
    if not exports:
        raise ProviderFailed(f"the model in {folder} has no ONNX export (onnx/model.onnx)", _EXPORT)
    return max(exports, key=lambda file: (file.name == "model.onnx", file.stat().st_size, file.name))


@contextlib.contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Report what is missing or damaged in a model's folder."""
    try:
        yield
    except OSError as exc:
        raise ProviderFailed(f"{exc.filename} cannot be read: {exc.strerror}", FETCH_AGAIN) from exc
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as exc:
        raise ProviderFailed(f"the configuration of the model in {folder} is damaged", FETCH_AGAIN) from exc


def _find_parts(folder: Path) -> list[Path]:
    """Return the folders of the transformer and of what follows it, in the order of `_MODULES`."""
    modules = folder / "modules.json"
    if not modules.exists():
        return [folder]
    rows = _read_json(modules)
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


def _read_json(file: Path, *, is_optional: bool = False) -> Any:
    return {} if is_optional and not file.exists() else load_json(file.read_text(encoding="utf-8-sig"))


def _read_pooling(folder: Path, config: Mapping[str, Any]) -> str:
    """Return the one way of pooling: newer files name it, older ones have a switch for each."""
    switched = [key for key, is_on in config.items() if key.startswith(_POOLING_KEY) and is_on is True]
    modes = config.get("pooling_mode") or [re.sub("_tokens?$", "", key.removeprefix(_POOLING_KEY)) for key in switched]
    modes = [modes] if isinstance(modes, str) else modes or ["mean"]
    if len(modes) != 1 or modes[0] not in _POOLINGS or not config.get("include_prompt", True):
        raise _unsupported(folder, f"pooling by {', '.join(modes)}")
    return str(modes[0])


def _read_limit(folder: Path, shape: Mapping[str, Any], sentence: Mapping[str, Any]) -> int:
    """Return how many tokens the model reads at once."""
    positions = int(shape.get("max_position_embeddings") or 0)
    offset = _OFFSET if shape.get("model_type") in _OFFSET_FAMILIES else 0
    room = max((positions if positions > 0 else _POSITIONS) - offset, 1)
    limit = int(sentence.get("max_seq_length") or 0)
    if limit <= 0:
        tokenizer = _read_json(folder / "tokenizer_config.json", is_optional=True)
        limit = int(min(tokenizer.get("model_max_length") or room, room))
    return min(limit, room) if limit > 0 else room


def find_fingerprint(config: ModelConfig) -> str:
    """Return eight digits that differ between models that give different vectors."""
    import hashlib

    digest = hashlib.sha256(str(config.max_tokens).encode(), usedforsecurity=False)
    with _reading(config.onnx.parent):
        for file in config.files:
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
