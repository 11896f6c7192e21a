"""Download a model from the Hugging Face hub into the models folder."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from memory_kb.errors import ProviderFailed
from memory_kb.providers.base import place_of
from memory_kb.providers.model_config import DEFAULT_OWNER, find_onnx, is_name, read_config

_HUB = "https://huggingface.co"
_NEEDED = re.compile(
    r"(?:\d+_\w+/)?(?:config|modules|sentence_\w+_config|config_sentence_transformers|tokenizer_config|tokenizer)\.json"
)
_ONNX = re.compile(r"(?:0_\w+/)?(?:onnx/)?[\w.-]+\.onnx")


def fetch_model(name: str, folder: Path, *, environ: Mapping[str, str]) -> Path:
    """Download a model into the models folder and return its own folder there.

    A name without an owner is one of sentence-transformers. `HF_ENDPOINT` is another hub, `HF_TOKEN` is sent to
    the hub. Files that exist unchanged are kept, and an interrupted download is continued.

    Raises:
        ProviderFailed: there is no such model, it cannot be used here, or the hub cannot be reached.
    """
    if not is_name(name):
        raise ProviderFailed(
            f"{name!r} is no name of a model", "names look like sentence-transformers/all-MiniLM-L6-v2"
        )
    hub = (environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
    if urlsplit(hub).scheme not in ("http", "https") or not urlsplit(hub).hostname:
        raise ProviderFailed(
            f"{place_of(hub) or hub[:60]!r} is no address of a model hub", "set HF_ENDPOINT to https://..."
        )
    try:
        import huggingface_hub
    except ImportError as exc:
        raise ProviderFailed(
            "fetching a model needs the package huggingface_hub", "pip install 'memory-kb[local]'"
        ) from exc
    target, model = folder / name, name if "/" in name else f"{DEFAULT_OWNER}/{name}"
    token = environ.get("HF_TOKEN") or None
    try:
        info = huggingface_hub.HfApi(endpoint=hub, token=token).model_info(model)
        files = choose_files([file.rfilename for file in info.siblings or ()])
        if files:
            huggingface_hub.snapshot_download(
                model, revision=info.sha, local_dir=target, allow_patterns=files, endpoint=hub, token=token
            )
    except Exception as exc:  # the package passes on whatever its HTTP client raises
        raise _explain(exc, model, place_of(hub), target) from exc
    if not files:
        raise ProviderFailed(
            f"{model} has no tokenizer.json with an ONNX export (onnx/model.onnx), so it cannot be used here",
            "choose another model, such as sentence-transformers/all-MiniLM-L6-v2",
        )
    find_onnx(read_config(target).folder)
    return target


def choose_files(names: Sequence[str]) -> list[str]:
    """Return the files of a model that are needed: its configuration, its words, and one ONNX export.

    Example:
        >>> choose_files(["README.md", "tokenizer.json", "onnx/model.onnx", "onnx/model_O4.onnx", "pytorch_model.bin"])
        ['tokenizer.json', 'onnx/model.onnx']
        >>> choose_files(["tokenizer.json", "model.safetensors"])
        []
    """
    exports = [name for name in names if _ONNX.fullmatch(name)]
    whole = [name for name in exports if name.rpartition("/")[2] == "model.onnx"]
    chosen = next(iter(sorted(whole, key=lambda name: "onnx/" not in name) or sorted(exports)), None)
    if chosen is None or not any(name.rpartition("/")[2] == "tokenizer.json" for name in names):
        return []
    data = (f"{chosen}_data", f"{chosen}.data")
    return [name for name in names if _NEEDED.fullmatch(name) or name == chosen or name in data]


def _explain(exc: Exception, model: str, host: str, target: Path) -> ProviderFailed:
    """Return what to raise for a download that failed."""
    from huggingface_hub.errors import HfHubHTTPError

    status = exc.response.status_code if isinstance(exc, HfHubHTTPError) else 0
    if status in (401, 403, 404):
        return ProviderFailed(
            f"{host} has no model {model}, or does not give it to you (status {status})",
            f"check the spelling; if the model has terms, accept them at {host}/{model} and set HF_TOKEN",
        )
    if isinstance(exc, OSError) and exc.filename:
        return ProviderFailed(
            f"{exc.filename} cannot be written: {exc.strerror or exc}", "set MEMORY_KB_MODELS to another folder"
        )
    by_hand = f"run the command again, it continues; without a network, copy the model's folder to {target} by hand"
    reason = " ".join((str(exc) or type(exc).__name__).split())[:200]
    return ProviderFailed(f"{host} did not send {model}: {reason}", by_hand, is_passing=True)
