"""Make a vault in a folder: its configuration, its MEMORY.md and its machine folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import UsageError, VaultNotFound
from memory_kb.machine_seal import load_seal_key
from memory_kb.regular_files import MACHINE
from memory_kb.store.machine_folder import prepare_machine
from memory_kb.vault import is_memory_folder, vaults_around

_CONFIG = """\
# MEMORY.md beside this file is yours: write there freely. `memory-kb learn` makes a file for each learning in folders beside it.
# Settings of this vault; what is not set here has its default. docs/settings.md lists them all.
# ranking:
#   half_life_days: 90        # an entry counts half after this long without use
#   prominence_exponent: 0.1  # 0 ranks by the words alone
# ignore: [node_modules, drafts]
"""

#: Files beside `memory/` that belong to the vault.
_TOP_NOTES = ("MEMORY.md", "institutional.md", "INTENT.md", "README.md")
#: Folders that are looked through for notes outside of a new vault.
_MOST_FOLDERS = 1_000


class CreatedVault(NamedTuple):
    """A vault's folder, the files that had to be made for it, and the folder of the vault that it is in.

    `notes_beside` are the notes in the folder of one that is new, which are outside of it.
    """

    folder: Path
    created: tuple[Path, ...]
    notes_beside: int = 0
    around: Path | None = None


def create_vault(folder: str, environ: Mapping[str, str]) -> CreatedVault:
    """Make `folder/memory` with what a vault needs; existing files stay as they are."""
    place = Path(folder).expanduser()
    memory = place / "memory"
    around, is_among_notes = _find_enclosing(Path(os.path.realpath(place)))
    if is_among_notes:
        raise UsageError(
            f"no vault can be made in {folder}: it is among the notes of the vault {around}",
            "that vault is found from there without `init`; name a folder outside of its memory/ for another one",
        )
    is_new, created = not memory.exists(), list[Path]()
    try:
        memory.mkdir(parents=True, exist_ok=True)
        # Anything in MEMORY.md would count as known.
        for name, text in (("config.yaml", _CONFIG), ("MEMORY.md", "")):
            if _write_new(memory / name, text):
                created.append(memory / name)
        if not (memory / MACHINE).exists():
            created.append(memory / MACHINE)
        prepare_machine(memory / MACHINE, load_seal_key(environ, [memory]))
    except OSError as exc:
        blocked = next((one for one in (memory, place) if one.exists() and not one.is_dir()), None)
        reason = f"{blocked} is a file" if blocked else exc.strerror
        hint = "rename that file, or choose another folder" if blocked else "choose a folder that you may write to"
        raise VaultNotFound(f"no vault can be made in {folder}: {reason}", hint) from exc
    beside = _count_notes_beside(place) if is_new else 0
    return CreatedVault(Path(os.path.realpath(place)), tuple(created), beside, around)


def _count_notes_beside(place: Path) -> int:
    """Return how many notes a folder has that are not in its vault; of a large tree only the first folders are read."""
    count = 0
    for _, folders, names in islice(os.walk(place), _MOST_FOLDERS):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in ("memory", "node_modules")]
        count += sum(name.endswith(".md") and name not in _TOP_NOTES for name in names)
    return count


def _write_new(file: Path, text: str) -> bool:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    return True


def _find_enclosing(folder: Path) -> tuple[Path | None, bool]:
    """Return the vault that a folder is in, unless it is that of the folder itself, and whether it is among its notes."""
    around = () if is_memory_folder(folder / "memory") else vaults_around(folder)
    return next(((vault, is_among) for vault, is_among in around if is_among or vault != folder), (None, False))
