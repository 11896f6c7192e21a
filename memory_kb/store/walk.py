"""List the Markdown files of a vault."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TypeAlias

from memory_kb.globs import Ignore
from memory_kb.model import FileStat, Problem
from memory_kb.text import readable_name
from memory_kb.vault import GLOBAL_PREFIX, HOME_NOTE, TOP_NOTES, Root, Vault

#: A file, or a folder as its path and its os_path.
Item: TypeAlias = FileStat | tuple[str, str]

#: Files of a memory vault that are state or machinery, not memories.
_NOT_NOTES = frozenset({"CONTINUITY.md", "INTENT.md"})
#: How the problem of a folder begins that could not be looked into.
UNLISTED = "cannot be listed"
#: The regions of all notes: those of the vault itself, and of the home.
OWN_NOTES = "/"
REGIONS = (OWN_NOTES, GLOBAL_PREFIX)


def walk(vault: Vault, problems: list[Problem]) -> Iterator[FileStat]:
    """Yield the files of the vault itself, then those of the home."""
    for region in REGIONS:
        yield from walk_region(vault, region, problems)


def walk_region(vault: Vault, region: str, problems: list[Problem]) -> Iterator[FileStat]:
    """Return those files of a region that a walk of everything finds, in code point order of their paths.

    A region is the path of a note, `OWN_NOTES` for all notes of the vault itself, "" for those of them that are beside
    `memory/`, or `~global/` for the home with all below it and the note beside it.

    The order is that of SQLite's binary collation, so that disk and index can be merged without holding either in
    memory. Links, special files and folders that cannot be listed are added to `problems`; links are never followed,
    since what they lead to inside the vault is found at its own path.
    """
    root = _find_root(vault, region)
    if root is None:
        return iter(())
    if region in REGIONS:
        top, inside = _top_files(vault, root, problems), _Walker(root, vault, problems).files()
        return _merge(top, inside) if top else inside
    if region == HOME_NOTE or (vault.memory and "/" not in region):
        return iter([file for file in _top_files(vault, root, problems) if region in ("", file.path)])
    return filter(None, [_Walker(root, vault, problems).file_at(region, str(vault.resolve(region)))])


def is_note_path(vault: Vault, path: str) -> bool:
    """Return whether a file with this path in output would be one of the notes."""
    if path == HOME_NOTE or (vault.memory and path in TOP_NOTES):
        return True
    root = _find_root(vault, path)
    return root is not None and _Walker(root, vault, []).is_note(str(vault.resolve(path)))


def _find_root(vault: Vault, region: str) -> Root | None:
    is_global = region.startswith(GLOBAL_PREFIX)
    return next((root for root in vault.roots if (root.prefix == GLOBAL_PREFIX) == is_global), None)


def _top_files(vault: Vault, root: Root, problems: list[Problem]) -> list[FileStat]:
    named = ((HOME_NOTE if root.prefix == GLOBAL_PREFIX else note.name, str(note)) for note in root.top_notes)
    return sorted(found for path, note in named if (found := _stat_note(note, path, vault.folder, problems)))


def _merge(top: list[FileStat], inside: Iterator[FileStat]) -> Iterator[FileStat]:
    for file in inside:
        while top and top[0].path < file.path:
            yield top.pop(0)
        yield file
    yield from top


def _stat_note(os_path: str, path: str, folder: Path, problems: list[Problem]) -> FileStat | None:
    """Return an existing note; a file that is not regular or has a bad name is added to the problems."""
    try:
        found = os.lstat(os_path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        problems.append(Problem(path, 1, f"cannot be read: {exc.strerror}; skipped"))
        return None
    if stat.S_ISLNK(found.st_mode):
        _explain_link(os_path, path, folder, problems)
        return None
    if not stat.S_ISREG(found.st_mode):
        problems.append(Problem(path, 1, "is not a regular file; skipped"))
        return None
    if not os_path.isascii() and readable_name(name := os.path.basename(os_path)) != name:
        problems.append(Problem(path, 1, "the file's name is not valid UTF-8; indexed under this spelling"))
    return FileStat.of(path, os_path, found)


def _explain_link(os_path: str, path: str, folder: Path, problems: list[Problem]) -> None:
    """Report a symbolic link unless what it leads to is found in the vault anyway."""
    root, target = os.path.realpath(folder), os.path.realpath(os_path)
    if not os.path.exists(target):
        problems.append(Problem(path, 1, "is a symbolic link to nothing; skipped"))
    elif os.path.commonpath([target, root]) != root:
        hint = "copy the note here, or make its folder a vault"
        problems.append(Problem(path, 1, f"is a symbolic link out of the vault; skipped ({hint})"))


class _Walker:
    def __init__(self, root: Root, vault: Vault, problems: list[Problem]) -> None:
        self._root = root
        self._is_ignored = Ignore(vault.settings.ignore).covers
        self._problems = problems
        self._is_memory = vault.memory is not None or root.prefix == GLOBAL_PREFIX
        # A home inside the vault, or a vault inside the home, is walked once, under its own name.
        self._skipped = {str(vault.folder), str(vault.home)} - {str(root.folder)}

    def files(self) -> Iterator[FileStat]:
        """Yield the files below the root, depth first; folders are sorted as if their name ended in a slash."""
        waiting = self._list(str(self._root.folder), self._root.prefix)[::-1]
        while waiting:
            item = waiting.pop()
            if isinstance(item, FileStat):
                yield item
            else:
                path, os_path = item
                waiting += self._list(os_path, path)[::-1]

    def file_at(self, path: str, os_path: str) -> FileStat | None:
        """Return a file as a walk finds it, None where it is no note."""
        if not self.is_note(os_path) or (os.path.isdir(os_path) and not os.path.islink(os_path)):
            return None
        return _stat_note(os_path, path, self._root.folder, self._problems)

    def is_note(self, os_path: str) -> bool:
        """Return whether a file would be a note: in folders that are walked, and behind no link."""
        top = str(self._root.folder)
        if not os_path.startswith(os.path.join(top, "")):
            return False
        *folders, name = filter(None, os_path[len(top) :].split(os.sep))
        prefix, place = self._root.prefix, top
        for folder in folders:
            inner, place = prefix + readable_name(folder), os.path.join(place, folder)
            is_walked = folder[0] != "." and not self._holds_only_a_note(prefix) and self._is_open(inner, place)
            if not is_walked or os.path.islink(place):
                return False
            prefix = f"{inner}/"
        is_markdown = name[0] != "." and name[-3:].lower() == ".md"
        return is_markdown and self._may_be_note(name, prefix) and not self._is_ignored(prefix + readable_name(name))

    def _may_be_note(self, name: str, prefix: str) -> bool:
        """Return whether a Markdown file of a name is a note, unless it is ignored."""
        if self._is_memory and name in _NOT_NOTES:
            return False
        return name == "MEMORY.md" or not self._holds_only_a_note(prefix)

    def _holds_only_a_note(self, prefix: str) -> bool:
        return self._is_memory and prefix.endswith("/worktree/") and "/tasks/" in prefix

    def _is_open(self, path: str, os_path: str) -> bool:
        """Return whether a folder of notes is walked, going by its name."""
        return os_path not in self._skipped and not self._is_ignored(path) and path + "/" != GLOBAL_PREFIX

    def _list(self, folder: str, prefix: str) -> list[Item]:
        """Return a folder's files and sub-folders `(path/, os_path)` in path order."""
        found: list[Item] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name[0] != ".":
                        self._add(entry, prefix, found)
        except FileNotFoundError:
            return []
        except OSError as exc:
            self._problems.append(Problem(prefix or "./", 1, f"{UNLISTED}: {exc.strerror}; what is in it is skipped"))
        found.sort(key=itemgetter(0))
        return found

    def _add(self, entry: os.DirEntry[str], prefix: str, found: list[Item]) -> None:
        name = entry.name
        is_note, is_folder = name[-3:].lower() == ".md", entry.is_dir(follow_symlinks=False)
        path = prefix + readable_name(name)
        if is_folder:
            if path + "/" == GLOBAL_PREFIX:
                self._problems.append(
                    Problem(path, 1, "a folder of this name means the global home in output; skipped, rename it")
                )
            if not self._holds_only_a_note(prefix) and self._is_open(path, entry.path):
                found.append((path + "/", entry.path))
        elif entry.is_symlink():
            if (is_note or os.path.isdir(entry.path)) and not self._is_ignored(path):
                _explain_link(entry.path, path, self._root.folder, self._problems)
        elif is_note and self._may_be_note(name, prefix) and not self._is_ignored(path):
            file = _stat_note(entry.path, path, self._root.folder, self._problems)
            if file:
                found.append(file)
