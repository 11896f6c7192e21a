"""Models from a Hugging Face hub into the models folder.

Files are written to `<name>.partial/` and checked against the sums that the hub gives; the folder
takes its name when everything is there. What a broken download left is continued.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memory_kb.errors import ProviderFailed
from memory_kb.locks import hold_lock
from memory_kb.providers.hub import Hub, Listing, RemoteFile
from memory_kb.providers.modelfiles import choose_weights
from memory_kb.providers.places import DEFAULT_OWNER, PARTIAL, is_name
from memory_kb.providers.recipe import read_recipe

#: Is told how many bytes are there, and of how many.
Progress = Callable[[int, int], None]

#: A broken connection is taken up again so often without another byte, each time after more seconds.
_TRIES, _PAUSE = 4, 1.0
_LOCK_SECONDS = 2.0
_FIRST = r"(?:0_\w+/)?"
_CONFIGURATION = re.compile(
    r"(?:\d+_\w+/)?(?:config|modules|sentence_\w+_config|config_sentence_transformers|tokenizer_config)\.json|\d+_Dense/model\.safetensors"
)
_TOKENIZER = re.compile(rf"{_FIRST}tokenizer\.json")
_WORDS = re.compile(
    rf"{_FIRST}(?:tokenizer\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(?:txt|json)|merges\.txt|[^/]+\.model)"
)
_TENSORS = re.compile(rf"{_FIRST}model(?:-\d+-of-\d+\.safetensors|\.safetensors(?:\.index\.json)?)")
_ONNX = re.compile(rf"{_FIRST}(?:onnx/)?model\.onnx(?:[._]data)?")


def fetch_model(
    name: str,
    folder: Path,
    *,
    base_url: str = "https://huggingface.co",
    progress: Progress | None = None,
    environ: Mapping[str, str],
) -> Path:
    """Download a model into the models folder and return its own folder there.

    A name without an owner is one of sentence-transformers. `HF_ENDPOINT` replaces `base_url`,
    and `HF_TOKEN` is sent to that host alone. What is there already is checked and kept.

    Raises:
        ProviderFailed: there is no such model, it cannot be reached, or it is not what it says.
        VaultBusy: another process is fetching.
    """
    if not is_name(name):
        raise ProviderFailed(
            f"{name!r} is no name of a model", "names look like sentence-transformers/all-MiniLM-L6-v2"
        )
    hub = Hub(environ.get("HF_ENDPOINT") or base_url, environ.get("HF_TOKEN"))
    target = folder / name
    fetch = _Fetch(hub, name if "/" in name else f"{DEFAULT_OWNER}/{name}", target, progress)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(folder / ".lock", wait=_LOCK_SECONDS):
            fetch.run()
    except ProviderFailed as exc:
        if exc.hint is None:
            exc.hint = f"run the command again, it goes on where it stopped; without a network, copy the model's folder to {target} by hand"
        raise
    except OSError as exc:
        raise ProviderFailed(
            f"{exc.filename or target} cannot be written: {exc.strerror or exc}",
            "set MEMORY_KB_MODELS to another folder",
        ) from exc
    return target


class _Fetch:
    """One model on its way from a hub into its folder."""

    def __init__(self, hub: Hub, model: str, target: Path, progress: Progress | None) -> None:
        self._hub, self._model, self._target, self._progress = hub, model, target, progress
        self._partial = target.with_name(target.name + PARTIAL)
        self._done = self._total = 0

    def run(self) -> None:
        """Fetch what is needed and give the folder its name."""
        listing = self._hub.list_files(self._model)
        if not any(_TOKENIZER.fullmatch(file.path) for file in listing.files):
            raise ProviderFailed(
                f"{self._model} has no tokenizer.json, so it is no model for texts that can be used here",
                "choose another model",
            )
        configuration = [file for file in listing.files if _CONFIGURATION.fullmatch(file.path)]
        if self._is_current(listing, configuration):
            return
        self._partial.mkdir(exist_ok=True)
        for file in configuration:
            self._fetch(listing, file)
        files = [*configuration, *choose_files(listing.files, is_known=read_recipe(self._partial).shape.is_known)]
        self._total = sum(file.size for file in files)
        self._check_space()
        for file in files[len(configuration) :]:
            self._fetch(listing, file)
        self._finish([file.path for file in files])

    def _is_current(self, listing: Listing, configuration: Sequence[RemoteFile]) -> bool:
        """Tell whether the model is there, as the hub has it now."""
        if not all(is_same(self._target / file.path, file) for file in configuration) or not self._target.exists():
            return False
        files = choose_files(listing.files, is_known=read_recipe(self._target).shape.is_known)
        return all(is_same(self._target / file.path, file) for file in files)

    def _check_space(self) -> None:
        there = sum(file.stat().st_size for file in self._partial.rglob("*") if file.is_file())
        free, missing = shutil.disk_usage(self._partial).free, self._total - there
        if missing > free:
            needed = f"{missing / 1e6:,.0f} MB are needed and {free / 1e6:,.0f} MB free"
            raise ProviderFailed(
                f"{self._model} does not fit on the disk: {needed}", "set MEMORY_KB_MODELS to a folder on another disk"
            )

    def _fetch(self, listing: Listing, file: RemoteFile) -> None:
        """Bring one file into the partial folder, unless it is there or in the finished one."""
        place = self._partial / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not is_same(place, file):
            if is_same(self._target / file.path, file):
                shutil.copyfile(self._target / file.path, place)
            else:
                self._download(listing, file, place)
        self._done += file.size
        self._tell(0)

    def _download(self, listing: Listing, file: RemoteFile, place: Path) -> None:
        part = place.with_name(place.name + ".part")
        is_continued = part.exists()
        self._stream_all(listing, file, part)
        if is_continued and not is_same(part, file):
            # What was left may be of an older revision; only a whole download speaks for the hub.
            part.unlink()
            self._stream_all(listing, file, part)
        if not is_same(part, file):
            part.unlink(missing_ok=True)
            raise ProviderFailed(
                f"{self._hub.host} sent a damaged {file.path} of {self._model}; it was thrown away", "try again later"
            )
        part.replace(place)

    def _stream_all(self, listing: Listing, file: RemoteFile, part: Path) -> None:
        """Write a part to its end, taking up broken connections as long as that leads on."""
        tries = reached = 0
        while True:
            try:
                return self._stream(listing, file, part)
            except ProviderFailed as exc:
                size = part.stat().st_size if part.exists() else 0
                tries, reached = (1 if size > reached else tries + 1), max(size, reached)
                if not exc.is_passing or tries >= _TRIES:
                    raise
                time.sleep(_PAUSE * tries)

    def _stream(self, listing: Listing, file: RemoteFile, part: Path) -> None:
        """Append to a part what is missing of it."""
        size = part.stat().st_size if part.exists() else 0
        if size == file.size and size:
            return
        answer, start = self._hub.open_file(self._model, listing.revision, file.path, size if size < file.size else 0)
        with answer, part.open("r+b" if start else "wb") as stream:
            stream.seek(start)
            for block in self._hub.read(answer, file.size - start):
                stream.write(block)
                start += len(block)
                self._tell(min(start, file.size))
        if start < file.size:
            raise ProviderFailed(
                f"{self._hub.host} broke off after {start:,} of {file.size:,} bytes of {file.path}", is_passing=True
            )

    def _tell(self, more: int) -> None:
        if self._progress and self._total:
            self._progress(self._done + more, self._total)

    def _finish(self, paths: Sequence[str]) -> None:
        """Give the folder its name; an older one stands until the new one can take its place."""
        choose_weights(read_recipe(self._partial), has_onnxruntime=True)
        wanted = {self._partial / path for path in paths}
        for file in self._partial.rglob("*"):
            if file.is_file() and file not in wanted:
                file.unlink()
        old = self._target.with_name(f"{self._target.name}.old{PARTIAL}")
        shutil.rmtree(old, ignore_errors=True)
        if self._target.exists():
            self._target.rename(old)
        self._partial.rename(self._target)
        shutil.rmtree(old, ignore_errors=True)


def choose_files(files: Sequence[RemoteFile], *, is_known: bool) -> list[RemoteFile]:
    """Return what is needed beside the configuration: the words, and one form of the weights.

    Safetensors are preferred where numpy can compute the model (`is_known`).

    Example:
        >>> names = ("README.md", "tokenizer.json", "model.safetensors", "onnx/model.onnx", "pytorch_model.bin")
        >>> files = [RemoteFile(name, 1, None, None) for name in names]
        >>> [[file.path for file in choose_files(files, is_known=known)] for known in (True, False)]
        [['tokenizer.json', 'model.safetensors'], ['tokenizer.json', 'onnx/model.onnx']]
    """
    tensors = [file for file in files if _TENSORS.fullmatch(file.path)]
    whole = [file for file in tensors if file.path.endswith("model.safetensors")]
    onnx = [file for file in files if _ONNX.fullmatch(file.path)]
    usual = [file for file in onnx if "onnx/" in file.path]
    weights = (whole or tensors) if tensors and (is_known or not onnx) else (usual or onnx)
    return [file for file in files if _WORDS.fullmatch(file.path)] + weights


def is_same(place: Path, file: RemoteFile) -> bool:
    """Tell whether a file on disk is the one that the hub lists."""
    if not place.is_file() or place.stat().st_size != file.size:
        return False
    with place.open("rb") as stream:
        if file.sha256:
            return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256
        if file.git_sha1:
            return (
                hashlib.sha1(f"blob {file.size}\0".encode() + stream.read(), usedforsecurity=False).hexdigest()
                == file.git_sha1
            )
    return True
