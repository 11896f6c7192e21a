"""The other working trees of a repository, as its own files name them; git is not asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def find_siblings(folder: Path) -> Iterator[Path]:
    """Yield where a folder would be in the other working trees of its repository; none where there is no repository.

    What cannot be read names no tree.
    """
    folder = Path(os.path.realpath(folder))
    top = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)
    if top is None:
        return
    common = _common_folder(top)
    if common is None:
        return
    trees = [common.parent] if common.name == ".git" else []
    with contextlib.suppress(OSError):
        trees += [
            told.parent for link in sorted((common / "worktrees").iterdir()) if (told := _told(link / "gitdir", link))
        ]
    inner = folder.relative_to(top)
    yield from (tree / inner for tree in dict.fromkeys(Path(os.path.realpath(tree)) for tree in trees) if tree != top)


def _common_folder(top: Path) -> Path | None:
    """Return the folder in which git keeps what all working trees share."""
    git = top / ".git"
    if git.is_dir():
        return Path(os.path.realpath(git))
    own = _told(git, top, "gitdir:")
    common = _told(own / "commondir", own) if own else None
    return Path(os.path.realpath(common)) if common else None


def _told(file: Path, start: Path, lead: str = "") -> Path | None:
    """Return the path that a file of git's tells, which may be seen from a folder."""
    try:
        line = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    path = line.removeprefix(lead).strip()
    return start / path if path and line.startswith(lead) and "\0" not in path else None
