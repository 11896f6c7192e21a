"""The notes of a revision, laid out in the machine folder so that a vault can be opened on them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from memory_kb.notes.repository import Blob, Repository
from memory_kb.notes.vault import Vault

FOLDER = "revisions"
#: Revisions whose notes and index are kept; those longest out of use go first.
MOST_KEPT = 8
_BATCH = 500
#: The file of a vault's standing queries.
QUERIES = "queries.yaml"
#: The file of a vault's own settings.
SETTINGS = "config.yaml"
_TOP_NOTES = ("MEMORY.md", "institutional.md")


class Past(NamedTuple):
    """A vault as it was: its notes, and the folder of its index."""

    vault: Vault
    machine: Path


def lay_out(repository: Repository, revision: str, vault: Vault, machine: Path) -> Past:
    """Return the notes of a commit or tree as a vault of the same shape; what is there already is used again.

    Raises:
        GitFailed: git cannot read them.
        OSError: they cannot be written.
    """
    place = machine / FOLDER / revision
    if not place.is_dir():
        (machine / FOLDER).mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=machine / FOLDER))
        try:
            _write(repository, revision, vault, part / "notes")
            (part / "machine").mkdir()
            with contextlib.suppress(OSError):  # another process was faster
                os.rename(part, place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    os.utime(place)
    prune(machine, keep=place)
    notes = place / "notes"
    inside = notes / "memory" if vault.memory else None
    return Past(replace(vault, folder=notes, memory=inside, machine=place / "machine"), place / "machine")


def settings_file(repository: Repository, revision: str, vault: Vault, past: Past) -> Path:
    """Return a file with the settings that stood in a revision; where there were none, there is no such file.

    Raises:
        OSError: it cannot be written.
    """
    file = past.machine.parent / SETTINGS
    if not file.exists():
        data = repository.blob(revision, f"{prefix_of(repository, vault)}memory/{SETTINGS}")
        if data is not None:
            with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as stream:
                stream.write(data)
            os.replace(stream.name, file)
    return file


def prune(machine: Path, keep: Path | None = None, most: int = MOST_KEPT) -> None:
    """Drop the revisions that were longest out of use, until so many are left."""
    with contextlib.suppress(OSError):
        found = sorted(
            (place for place in (machine / FOLDER).iterdir() if not place.name.startswith(".")),
            key=lambda place: -place.stat().st_mtime,
        )
        for place in found[most:]:
            if place != keep:
                shutil.rmtree(place, ignore_errors=True)


def _write(repository: Repository, revision: str, vault: Vault, folder: Path) -> None:
    folder.mkdir(parents=True)
    if vault.memory:
        (folder / "memory").mkdir()
    blobs = list(
        choose(list(repository.files(revision, prefix_of(repository, vault))), is_memory=vault.memory is not None)
    )
    for start in range(0, len(blobs), _BATCH):
        batch = blobs[start : start + _BATCH]
        for blob, data in zip(batch, repository.contents([blob.object for blob in batch]), strict=True):
            file = folder / blob.path
            with contextlib.suppress(OSError):  # a name that this system does not take
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)


def prefix_of(repository: Repository, vault: Vault) -> str:
    """Return the path of a vault's folder from the repository's top: empty, or ending in a slash."""
    inner = repository.inner(vault.folder / "x") or "x"
    return inner.removesuffix("x")


def choose(blobs: Sequence[Blob], *, is_memory: bool) -> Iterator[Blob]:
    """Yield the files that belong to the notes of a vault.

    Example:
        >>> names = ("memory/a.md", "memory/.x/b.md", "src/c.md", "MEMORY.md", "memory/queries.yaml", "../d.md")
        >>> [blob.path for blob in choose([Blob(name, "100644", "") for name in names], is_memory=True)]
        ['memory/a.md', 'MEMORY.md', 'memory/queries.yaml']
    """
    for blob in blobs:
        parts = blob.path.split("/")
        if not blob.mode.startswith("100") or any(not part or part[0] == "." or "\\" in part for part in parts):
            continue
        if is_memory and parts[0] != "memory" and blob.path not in _TOP_NOTES:
            continue
        if parts[-1].lower().endswith(".md") or blob.path == ("memory/" if is_memory else "") + QUERIES:
            yield blob
