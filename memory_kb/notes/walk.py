"""The walk: every Markdown file of a root, in the order of its path.

It also tells what could not be read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_kb.globs import Ignore
from memory_kb.model import FileStat, Problem
from memory_kb.notes.vault import GLOBAL_PREFIX, HOME_NOTE, Root, Vault

#: Files of a memory vault that are state or machinery, not memories (architecture §2).
_NOT_NOTES = frozenset({"CONTINUITY.md", "INTENT.md"})


def walk(vault: Vault, ignore: Sequence[str], problems: list[Problem]) -> Iterator[FileStat]:
    """Yield the files of all roots, one root after the other."""
    for root in vault.roots:
        yield from walk_root(vault, root, ignore, problems)


def walk_root(vault: Vault, root: Root, ignore: Sequence[str], problems: list[Problem]) -> Iterator[FileStat]:
    """Return the files of a root in code point order of their paths.

    That is the order of SQLite's binary collation, so that disk and index can be merged without
    holding either in memory. Links, special files and folders that cannot be listed are added
    to `problems`; links are never followed, since what they lead to inside the vault is found
    at its own path.
    """
    is_memory = vault.memory is not None or root.prefix == GLOBAL_PREFIX
    top = [found for note in root.top_notes if (found := _stat_top(note, root, vault, problems))]
    inside = _Walker(root, vault, ignore, problems, is_memory=is_memory).files()
    return _merge(sorted(top), inside) if top else inside


def _merge(top: list[FileStat], inside: Iterator[FileStat]) -> Iterator[FileStat]:
    for file in inside:
        while top and top[0].path < file.path:
            yield top.pop(0)
        yield file
    yield from top


def _stat_top(note: Path, root: Root, vault: Vault, problems: list[Problem]) -> FileStat | None:
    path = HOME_NOTE if root.prefix == GLOBAL_PREFIX else note.name
    try:
        found = os.lstat(note)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        _explain_link(str(note), path, vault.folder, problems)
        return None
    if not stat.S_ISREG(found.st_mode):
        problems.append(Problem(path, 1, "is not a regular file; skipped"))
        return None
    return FileStat(path, str(note), found.st_size, found.st_mtime_ns, found.st_ino)


def _explain_link(location: str, path: str, folder: Path, problems: list[Problem]) -> None:
    """Report a symbolic link unless what it leads to is found in the vault anyway."""
    try:
        target = os.path.realpath(location, strict=True)
    except OSError as exc:
        reason = "is a symbolic link that leads in a circle" if exc.errno == errno.ELOOP else "is a symbolic link to nothing"
        problems.append(Problem(path, 1, f"{reason}; skipped"))
        return
    root = os.path.realpath(folder)
    inside = os.path.commonpath([target, root]) == root
    location = os.path.join(os.path.realpath(os.path.dirname(location)), os.path.basename(location))
    if inside and os.path.commonpath([location, target]) == target:
        problems.append(Problem(path, 1, "is a symbolic link that leads in a circle; skipped"))
    elif not inside:
        problems.append(Problem(path, 1, "is a symbolic link out of the vault; skipped (copy the note here, or make its folder a vault)"))


class _Walker:
    def __init__(self, root: Root, vault: Vault, ignore: Sequence[str], problems: list[Problem], *, is_memory: bool) -> None:
        self._root = root
        self._is_ignored = Ignore(ignore).covers
        self._problems = problems
        self._is_memory = is_memory
        # A home inside the vault, or a vault inside the home, is walked once, under its own name.
        others = (vault.home, vault.folder) if root.prefix == "" else (vault.folder,) if root.prefix == GLOBAL_PREFIX else (vault.home,)
        self._skipped = {str(other) for other in others if other != root.folder}

    def files(self) -> Iterator[FileStat]:
        """Yield the files below the root, depth first.

        Folders are sorted as if their name ended in a slash.
        """
        stack = [iter(self._list(str(self._root.folder), self._root.prefix, is_top=True))]
        while stack:
            for item in stack[-1]:
                if isinstance(item, FileStat):
                    yield item
                else:
                    path, location = item
                    stack.append(iter(self._list(location, path)))
                    break
            else:
                stack.pop()

    def _list(self, folder: str, prefix: str, *, is_top: bool = False) -> list[FileStat | tuple[str, str]]:
        """Return a folder's files and sub-folders `(path/, location)` in path order."""
        found: list[FileStat | tuple[str, str]] = []
        only_note = self._is_memory and prefix.endswith("/worktree/") and "/tasks/" in prefix
        ignored = self._is_ignored
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    # The common case without a call: an ordinary note with an ordinary name.
                    if name.endswith(".md") and name.isascii() and entry.is_file(follow_symlinks=False) and name not in _NOT_NOTES and not only_note:
                        path = prefix + name
                        if not ignored(path):
                            state = entry.stat(follow_symlinks=False)
                            found.append(FileStat(path, entry.path, state.st_size, state.st_mtime_ns, state.st_ino))
                    else:
                        self._take(entry, prefix, found, only_note=only_note)
        except FileNotFoundError:
            if not is_top:
                return []
        except OSError as exc:
            self._problems.append(Problem(prefix or "./", 1, f"cannot be listed: {exc.strerror}; what is in it is skipped"))
        found.sort(key=_path_of)
        return found

    def _take(self, entry: os.DirEntry[str], prefix: str, found: list[FileStat | tuple[str, str]], *, only_note: bool) -> None:
        name = entry.name
        is_note = name.endswith(".md") or name[-3:].lower() == ".md"
        if not is_note and not entry.is_dir(follow_symlinks=False) and not entry.is_symlink():
            return
        path = prefix + (name if name.isascii() else _readable(name))
        if entry.is_symlink():
            if (is_note or os.path.isdir(entry.path)) and not self._is_ignored(path):
                _explain_link(entry.path, path, self._root.folder, self._problems)
        elif entry.is_dir(follow_symlinks=False):
            if path + "/" == GLOBAL_PREFIX:
                self._problems.append(Problem(path, 1, "a folder of this name stands for the global home in output; skipped, rename it"))
            if entry.path not in self._skipped and not only_note and not self._is_ignored(path) and path + "/" != GLOBAL_PREFIX:
                found.append((path + "/", entry.path))
        elif not (only_note and name != "MEMORY.md") and not (self._is_memory and name in _NOT_NOTES) and not self._is_ignored(path):
            file = self._stat(entry, path)
            if file:
                found.append(file)

    def _stat(self, entry: os.DirEntry[str], path: str) -> FileStat | None:
        try:
            found = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as exc:
            self._problems.append(Problem(path, 1, f"cannot be read: {exc.strerror}; skipped"))
            return None
        if not stat.S_ISREG(found.st_mode):
            self._problems.append(Problem(path, 1, "is not a regular file; skipped"))
            return None
        if not entry.name.isascii() and _readable(entry.name) != entry.name:
            self._problems.append(Problem(path, 1, "the file's name is not valid UTF-8; indexed under this spelling"))
        return FileStat(path, entry.path, found.st_size, found.st_mtime_ns, found.st_ino)


def _path_of(item: FileStat | tuple[str, str]) -> str:
    return item[0]


def _readable(name: str) -> str:
    """Return a file name that can be printed and stored.

    Undecodable bytes become `\\xff`.
    """
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name
