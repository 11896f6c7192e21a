"""Making a new vault."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memory_kb.errors import UsageError, VaultNotFound
from memory_kb.notes.machine import prepare_machine
from memory_kb.notes.vault import MACHINE, find_enclosing

_CONFIG = """\
# MEMORY.md beside this file is yours: write there freely. `memory-kb learn` makes a file for each learning in folders beside it.
# Settings of this vault; what is not set here has its default. docs/settings.md lists them all.
# ranking:
#   half_life_days: 90        # an entry counts half after this long without use
#   prominence_exponent: 0.2  # 0 ranks by the words alone
# ignore: [node_modules, drafts]
"""

#: Files beside `memory/` that belong to the vault.
_TOP_NOTES = ("MEMORY.md", "institutional.md", "INTENT.md", "README.md")
#: Whatever stood in it would be one of the things that are known.
_MEMORY = ""


@dataclass(frozen=True, slots=True)
class Founded:
    """A vault's folder, the files that had to be made for it, and the folder of the vault that it lies in."""

    folder: Path
    created: tuple[Path, ...]
    notes_beside: int = 0
    around: Path | None = None


def found_vault(folder: str, environ: Mapping[str, str]) -> Founded:
    """Make `folder/memory` with what a vault needs.

    Everything that is there is left alone.

    Raises:
        VaultNotFound: the folder cannot be made.
        UsageError: it lies among the notes of another vault.
    """
    place = Path(folder).expanduser()
    memory = place / "memory"
    around = find_enclosing(Path(os.path.realpath(place)))
    if around and around.is_among_notes:
        raise UsageError(
            f"no vault can be made in {folder}: it lies among the notes of the vault {around.folder}",
            "that vault is found from there without `init`; name a folder outside of its memory/ for another one",
        )
    created: list[Path] = []
    try:
        memory.mkdir(parents=True, exist_ok=True)
        for name, text in (("config.yaml", _CONFIG), ("MEMORY.md", _MEMORY)):
            if _write_new(memory / name, text):
                created.append(memory / name)
        if not (memory / MACHINE).exists():
            created.append(memory / MACHINE)
        prepare_machine(memory / MACHINE, environ, [memory])
    except OSError as exc:
        blocked = next((one for one in (memory, place) if one.exists() and not one.is_dir()), None)
        if blocked:
            raise VaultNotFound(
                f"no vault can be made in {folder}: {blocked} is a file", "rename that file, or choose another folder"
            ) from exc
        raise VaultNotFound(
            f"no vault can be made in {folder}: {exc.strerror}", "choose a folder that you may write to"
        ) from exc
    beside = sum(1 for note in place.glob("*.md") if note.name not in _TOP_NOTES)
    return Founded(Path(os.path.realpath(place)), tuple(created), beside, around.folder if around else None)


def _write_new(file: Path, text: str) -> bool:
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        return False
    return True
