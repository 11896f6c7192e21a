"""Lay out a past revision of a vault as a vault of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from memory_kb.errors import GitFailed, InvalidSettings
from memory_kb.git.repository import Blob, Repository
from memory_kb.regular_files import make_folder
from memory_kb.settings import LoadedSettings, load_settings
from memory_kb.store.saved_queries import QUERIES
from memory_kb.vault import TOP_NOTES, Vault

_FOLDER, _SETTINGS = "revisions", "config.yaml"
#: Revisions whose notes and index are kept; those longest out of use go first.
MOST_KEPT = 8


def open_past(
    repository: Repository, revision: str, vault: Vault, clock: Callable[[], datetime], home: Path | None = None
) -> Vault:
    """Return the vault of a commit or tree, laid out in the machine folder; what is there already is used again.

    The vault's own settings are those of the revision, under the person's own.
    """
    try:
        place = _lay_out(repository, revision, vault)
    except OSError as exc:
        said = f"the notes of {revision[:12]} cannot be laid out: {exc.strerror}"
        raise GitFailed(said, "check the space on the disk") from exc
    loaded = _load_settings(place / _SETTINGS, vault) if vault.memory else LoadedSettings(vault.settings, ())
    notes = place / "notes"
    past = vault._replace(
        folder=notes,
        memory=notes / "memory" if vault.memory else None,
        machine=place / "machine",
        settings=loaded.settings,
        warnings=loaded.warnings,
        clock=clock,
        environ={name: value for name, value in vault.environ.items() if name != "MEMORY_KB_SESSION"},
        cited=vault.folder,
        named=(str(notes), None),
    )
    return past if home is None else past._replace(home=home, home_note=None)


def _load_settings(file: Path, vault: Vault) -> LoadedSettings:
    """Return the settings of a revision's file; models and the places of files are as now."""
    own, now = vault.home / file.name, vault.settings
    warnings: tuple[str, ...] = ()
    try:
        settings = load_settings(own, file, vault.environ).settings
    except InvalidSettings as exc:
        settings = load_settings(own, file / "nothing", vault.environ).settings
        warnings = (f"{str(exc).replace(str(file), f'memory/{file.name}')}; nothing of it was used",)
    index = settings.index._replace(path=now.index.path)
    return LoadedSettings(settings._replace(index=index, embeddings=now.embeddings, llm=now.llm), warnings)


def _lay_out(repository: Repository, revision: str, vault: Vault) -> Path:
    folder = make_folder(vault.machine / _FOLDER)
    place = folder / revision
    if place.is_symlink():
        place.unlink()
    if not place.is_dir():
        part = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
        try:
            _write_notes(repository, revision, vault, part)
            with contextlib.suppress(OSError):  # another process was faster
                os.rename(part, place)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    os.utime(place)
    with contextlib.suppress(OSError):
        kept = [one for one in folder.iterdir() if not one.name.startswith(".")]
        for old in sorted(kept, key=lambda one: -one.stat().st_mtime)[MOST_KEPT:]:
            if old != place:
                shutil.rmtree(old, ignore_errors=True)
    return place


def _write_notes(repository: Repository, revision: str, vault: Vault, part: Path) -> None:
    for inner in ("machine", "notes", *(["notes/memory"] if vault.memory else [])):
        (part / inner).mkdir()
    prefix = repository.prefix(vault.folder)
    settings = repository.blob(revision, f"{prefix}memory/{_SETTINGS}") if vault.memory else None
    if settings is not None:
        (part / _SETTINGS).write_bytes(settings)
    chosen = choose_notes(repository.files(revision, prefix), is_memory=vault.memory is not None)
    for blob, data in repository.read(list(chosen)):
        file = part / "notes" / blob.path
        with contextlib.suppress(OSError):  # a name that this system does not take
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def choose_notes(blobs: Iterable[Blob], *, is_memory: bool) -> Iterator[Blob]:
    """Yield the files that belong to the notes of a vault.

    Example:
        >>> names = ("memory/a.md", "memory/.x/b.md", "src/c.md", "MEMORY.md", "memory/queries.yaml", "../d.md")
        >>> [blob.path for blob in choose_notes([Blob(name, "100644", "") for name in names], is_memory=True)]
        ['memory/a.md', 'MEMORY.md', 'memory/queries.yaml']
    """
    for blob in blobs:
        parts = blob.path.split("/")
        if not blob.mode.startswith("100") or any(not part or part[0] == "." or "\\" in part for part in parts):
            continue
        if is_memory and parts[0] != "memory" and blob.path not in TOP_NOTES:
            continue
        if parts[-1].lower().endswith(".md") or blob.path == ("memory/" if is_memory else "") + QUERIES:
            yield blob
