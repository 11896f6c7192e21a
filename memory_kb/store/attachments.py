"""Find pictures, recordings and other files of a vault that are no notes."""

from __future__ import annotations

import os
import posixpath
from functools import cached_property
from pathlib import Path

from memory_kb.markdown.links import is_attachment
from memory_kb.regular_files import visible_files
from memory_kb.vault import Vault


def list_attachments(folder: Path) -> dict[str, list[str]]:
    """Return the paths of attachments outside of hidden folders by their names in lower case, short paths first."""
    found: dict[str, list[str]] = {}
    for file in visible_files(folder):
        if is_attachment(file.name):
            found.setdefault(file.name.casefold(), []).append(file.relative_to(folder).as_posix())
    for paths in found.values():
        paths.sort(key=lambda path: (path.count("/"), path))
    return found


class Attachments:
    """The attachments of a vault; its folders are read when a file is asked for by its name alone."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        return list_attachments(self._vault.folder)

    def named(self, name: str) -> list[str]:
        """Return the paths of the files with a name, short ones first."""
        return self._by_name.get(name.casefold(), [])

    def find(self, target: str, source: str) -> str | None:
        """Return the path of the file that a note's link leads to: beside the note, from the top, else by its name."""
        for folder in (posixpath.dirname(source), ""):
            path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
            if not path.startswith("..") and os.path.isfile(self._vault.resolve(path)):
                return path
        return next(iter(self.named(target)), None) if "/" not in target else None
