"""The folder of what belongs to this machine alone.

It holds the index, logs and locks, and is never in git.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from memory_kb.errors import VaultNotFound
from memory_kb.notes.vault import PLAIN_MARK, Vault

_GITIGNORE = "# Derived or local to this machine: safe to delete, not to commit.\n*\n"


def prepare_machine(folder: Path) -> Path:
    """Make a machine folder that git ignores; return it.

    Raises:
        OSError: it cannot be made or written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text(_GITIGNORE, encoding="utf-8")
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "not writable", str(folder))
    return folder


def choose_machine(vault: Vault, configured: str | None, environ: Mapping[str, str]) -> Path:
    """Return a machine folder that can be written.

    That is the vault's own, the configured one, or one in the user's cache. `configured` is
    `index.path`, a folder for the machine folders of all vaults. Where nothing at all can be
    written, a temporary folder makes one command work.

    Raises:
        VaultNotFound: the configured folder cannot be written.
    """
    wanted = vault.machine
    if configured:
        return _prepare_named(Path(configured).expanduser() / _name_of(wanted))
    try:
        is_new = not wanted.exists()
        machine = prepare_machine(wanted)
        if is_new and vault.memory is None:
            (machine / PLAIN_MARK).write_text(
                "The notes beside this folder are a plain folder, not the inside of a vault.\n", encoding="utf-8"
            )
        return machine
    except OSError:
        pass
    try:
        return prepare_machine(_cache_folder(environ) / _name_of(wanted))
    except (OSError, RuntimeError):
        import tempfile

        return prepare_machine(Path(tempfile.mkdtemp(prefix="memory-kb-")))


def _prepare_named(folder: Path) -> Path:
    try:
        return prepare_machine(folder)
    except OSError as exc:
        raise VaultNotFound(
            f"no folder for the index: {folder} cannot be made ({exc.strerror})",
            "set index.path in your own configuration",
        ) from exc


def _name_of(machine: Path) -> str:
    """Return a folder name for a vault elsewhere.

    It is the vault's own name, made unique by its place.
    """
    vault = machine.parent.parent if machine.parent.name == "memory" else machine.parent
    import hashlib

    digest = hashlib.sha256(os.fsencode(machine), usedforsecurity=False).hexdigest()[:12]
    return f"{vault.name or 'root'}-{digest}"


def _cache_folder(environ: Mapping[str, str]) -> Path:
    if "XDG_CACHE_HOME" in environ:
        return Path(environ["XDG_CACHE_HOME"]) / "memory-kb"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA", "~")).expanduser() / "memory-kb"
    return Path("~/Library/Caches" if sys.platform == "darwin" else "~/.cache").expanduser() / "memory-kb"
