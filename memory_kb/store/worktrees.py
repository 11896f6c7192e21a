"""Find the repository around a folder and its other working trees, without starting git."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from memory_kb.regular_files import read_file


def find_repository(folder: Path) -> Path | None:
    """Return the folder of the repository around a folder."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def find_siblings(folder: Path) -> Iterator[Path]:
    """Yield where a folder would be in the other working trees of its repository; none where there is no repository.

    What cannot be read names no tree.
    """
    folder = Path(os.path.realpath(folder))
    top = find_repository(folder)
    if top is None:
        return
    common = _common_folder(top)
    if common is None:
        return
    trees = [common.parent] if common.name == ".git" else []
    with contextlib.suppress(OSError):
        trees += [
            named.parent
            for link in sorted((common / "worktrees").iterdir())
            if (named := _read_named_path(link / "gitdir", link))
        ]
    inner = folder.relative_to(top)
    for tree in dict.fromkeys(Path(os.path.realpath(tree)) for tree in trees):
        # What came with an archive may name any folder.
        if tree != top and _common_folder(tree) == common:
            yield tree / inner


def _common_folder(top: Path) -> Path | None:
    """Return the folder in which git keeps what all working trees share; None where that does not know this one."""
    git = top / ".git"
    if git.is_dir():
        return Path(os.path.realpath(git))
    own = _read_named_path(git, top, "gitdir:")
    common = _read_named_path(own / "commondir", own) if own else None
    named = _read_named_path(own / "gitdir", own) if own else None
    if not (own and common and named):
        return None
    shared = Path(os.path.realpath(common))
    is_known = Path(os.path.realpath(own)).parent == shared / "worktrees" and os.path.realpath(named) == str(git)
    return shared if is_known else None


def _read_named_path(file: Path, start: Path, lead: str = "") -> Path | None:
    """Return the path that a file of git names, which may be seen from a folder."""
    try:
        line = read_file(file).decode("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    path = line.removeprefix(lead).strip()
    return start / path if path and line.startswith(lead) and "\0" not in path else None
