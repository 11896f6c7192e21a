"""Where models lie on this machine: the models folder, and the cache of Hugging Face."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from memory_kb.errors import ProviderFailed
from memory_kb.providers.modelfiles import choose_weights
from memory_kb.providers.recipe import read_recipe

#: 90 MB, loaded in a tenth of a second. Models for many languages are five times as large, and
#: their tokenizers alone take longer to load than a whole search may last.
DEFAULT_MODEL = "all-MiniLM-L6-v2"
#: Whose models may be named without saying whose they are.
DEFAULT_OWNER = "sentence-transformers"
#: What a download that is not finished is called behind its name.
PARTIAL = ".partial"

_ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def find_model(name: str | None, environ: Mapping[str, str], home: Path | None = None) -> Path | None:
    """Return the folder of a model, None where there is none of this name.

    A path is taken as it is. A name may have its owner before it, as in `BAAI/bge-small-en`; it
    is looked up in the models folder and then in the cache of Hugging Face. No name stands for
    the default model, or else the only one in the models folder. `home` is the person's home
    folder, by default the one that the environment names.
    """
    home = home or home_folder(environ)
    if name is None:
        own = [folder for folder in _list_models(models_folder(environ, home)) if _is_whole(folder)]
        return find_model(DEFAULT_MODEL, environ, home) or (own[0] if len(own) == 1 else None)
    if is_path(name):
        return _expand(name, home)
    if not is_name(name):
        return None
    places = (*_fetched(models_folder(environ, home), name), *_cached(_cache_folder(environ, home), name))
    return next((place for place in places if _is_whole(place)), None)


def models_folder(environ: Mapping[str, str], home: Path | None = None) -> Path | None:
    """Return the folder for fetched models, None where no home folder is known."""
    home = home or home_folder(environ)
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
    """Tell whether a model is named by a path.

    Example:
        >>> [is_path(name) for name in ("~/models/e5", "./e5", "/srv/e5", "C:\\\\e5", "BAAI/e5", "e5")]
        [True, True, True, True, False, False]
    """
    return (
        name in (".", "..", "~")
        or name.startswith(("/", "\\", "./", ".\\", "../", "..\\", "~/", "~\\"))
        or name[1:2] == ":"
    )


def is_name(name: str) -> bool:
    """Tell whether a text can name a model: one or two plain words with a slash between them.

    Example:
        >>> [is_name(name) for name in ("e5", "BAAI/e5", "a/b/c", "a/../b", "a b", "e5.partial", "")]
        [True, True, False, False, False, False, False]
    """
    parts = name.split("/")
    return (
        len(parts) <= 2
        and not name.endswith(PARTIAL)
        and all(part.strip(".") and set(part) <= _ALLOWED for part in parts)
    )


def _expand(path: str, home: Path | None) -> Path:
    return home / path[2:] if home and path.startswith(("~/", "~\\")) else Path(path)


def _list_models(folder: Path | None) -> list[Path]:
    """Return what may be models: folders with a configuration, those of an owner a level deeper."""
    if folder is None:
        return []
    found = {
        file.parent
        for pattern in ("*/config.json", "*/modules.json", "*/*/modules.json")
        for file in folder.glob(pattern)
    }
    return sorted(place for place in found if not place.name.endswith(PARTIAL))


def _fetched(folder: Path | None, name: str) -> Iterator[Path]:
    """Yield where in the models folder a model may be."""
    if folder is not None:
        yield folder / name
        owner, slash, plain = name.rpartition("/")
        if slash and owner == DEFAULT_OWNER:
            yield folder / plain
        elif not slash:
            yield folder / DEFAULT_OWNER / name
            yield from sorted(folder.glob(f"*/{name}"))


def _cache_folder(environ: Mapping[str, str], home: Path | None) -> Path | None:
    if environ.get("HF_HUB_CACHE"):
        return _expand(environ["HF_HUB_CACHE"], home)
    if environ.get("HF_HOME"):
        return _expand(environ["HF_HOME"], home) / "hub"
    cache = environ.get("XDG_CACHE_HOME") or (home / ".cache" if home else None)
    return Path(cache, "huggingface", "hub") if cache else None


def _cached(cache: Path | None, name: str) -> Iterator[Path]:
    """Yield where in the cache of Hugging Face a model may be, newest first."""
    if cache is None:
        return
    folders = [cache / f"models--{name.replace('/', '--')}"]
    if "/" not in name:
        folders += [cache / f"models--{DEFAULT_OWNER}--{name}", *sorted(cache.glob(f"models--*--{name}"))]
    for folder in folders:
        yield from sorted(
            filter(Path.is_dir, folder.glob("snapshots/*")), key=lambda place: place.stat().st_mtime, reverse=True
        )


def _is_whole(folder: Path) -> bool:
    """Tell whether a folder holds all that a model needs."""
    try:
        choose_weights(read_recipe(folder), has_onnxruntime=True)
    except ProviderFailed:
        return False
    return (folder / "tokenizer.json").exists()
