"""List the Markdown files of a vault."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from memory_kb.globs import Ignore
from memory_kb.model import FileStat, Problem, Region
from memory_kb.text import readable_name
from memory_kb.vault import GLOBAL_PREFIX, HOME_NOTE, Root, Vault

#: A file, or a folder as its path and its location.
Item: TypeAlias = FileStat | tuple[str, str]

#: Files of a memory vault that are state or machinery, not memories.
_NOT_NOTES = frozenset({"CONTINUITY.md", "INTENT.md"})


#: How the problem of a folder begins that could not be looked into.
UNLISTED = "cannot be listed"


def would_take(path: str, ignore: Sequence[str], *, is_memory: bool) -> bool:
    """Return whether a walk takes a file with this path in output, if it is there.

    Example:
        >>> [would_take(path, ["drafts"], is_memory=True) for path in ("memory/rules/a.md", "memory/CONTINUITY.md", "memory/drafts/a.md")]
        [True, False, False]
    """
    left_out, parts = Ignore(ignore), path.split("/")
    if is_memory and parts[-1] in _NOT_NOTES:
        return False
    return not any(left_out.covers("/".join(parts[:count])) for count in range(1, len(parts) + 1))


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
    top = _top_files(vault, root, problems)
    inside = _Walker(root, vault, ignore, problems).files()
    return _merge(top, inside) if top else inside


def walk_region(vault: Vault, region: Region, ignore: Sequence[str], problems: list[Problem]) -> Iterator[FileStat]:
    """Return those files of a region that a walk of everything finds.

    The region of a memory vault's own folder has the notes beside `memory/`; the home with all
    below it has the note beside the home.
    """
    is_global = region.path.startswith(GLOBAL_PREFIX)
    root = next((root for root in vault.roots if (root.prefix == GLOBAL_PREFIX) == is_global), None)
    if root is None:
        return iter(())
    if vault.memory and "/" not in region.path:
        return iter([file for file in _top_files(vault, root, problems) if region.path in ("", file.path)])
    if region.is_deep and region.path == GLOBAL_PREFIX:
        return walk_root(vault, root, ignore, problems)
    return _Walker(root, vault, ignore, problems).files_in(region)


def _top_files(vault: Vault, root: Root, problems: list[Problem]) -> list[FileStat]:
    return sorted(found for note in root.top_notes if (found := _stat_top(note, root, vault, problems)))


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
    return FileStat.of(path, str(note), found)


def _explain_link(location: str, path: str, folder: Path, problems: list[Problem]) -> None:
    """Report a symbolic link unless what it leads to is found in the vault anyway."""
    try:
        target = os.path.realpath(location, strict=True)
    except OSError as exc:
        reason = (
            "is a symbolic link that leads in a circle" if exc.errno == errno.ELOOP else "is a symbolic link to nothing"
        )
        problems.append(Problem(path, 1, f"{reason}; skipped"))
        return
    root = os.path.realpath(folder)
    inside = os.path.commonpath([target, root]) == root
    location = os.path.join(os.path.realpath(os.path.dirname(location)), os.path.basename(location))
    if inside and os.path.commonpath([location, target]) == target:
        problems.append(Problem(path, 1, "is a symbolic link that leads in a circle; skipped"))
    elif not inside:
        problems.append(
            Problem(
                path, 1, "is a symbolic link out of the vault; skipped (copy the note here, or make its folder a vault)"
            )
        )


class _Walker:
    def __init__(self, root: Root, vault: Vault, ignore: Sequence[str], problems: list[Problem]) -> None:
        self._root = root
        self._is_ignored = Ignore(ignore).covers
        self._problems = problems
        self._is_memory = vault.memory is not None or root.prefix == GLOBAL_PREFIX
        # A home inside the vault, or a vault inside the home, is walked once, under its own name.
        others = (
            (vault.home, vault.folder)
            if root.prefix == ""
            else (vault.folder,)
            if root.prefix == GLOBAL_PREFIX
            else (vault.home,)
        )
        self._skipped = {str(other) for other in others if other != root.folder}

    def files(self) -> Iterator[FileStat]:
        """Return the files below the root."""
        return self._files_below(str(self._root.folder), self._root.prefix)

    def files_in(self, region: Region) -> Iterator[FileStat]:
        """Return the files of a region, none if a walk does not get there."""
        if region.is_file:
            return iter(self._files_at(region))
        if not self._reaches(region):
            return iter(())
        if region.is_deep:
            return self._files_below(region.location, region.path, region.without)
        return (item for item in self._list(region.location, region.path) if isinstance(item, FileStat))

    def _files_at(self, region: Region) -> list[FileStat]:
        """Return the one file of a region, if a walk takes it."""
        folder, slash, name = region.path.rpartition("/")
        prefix = folder + slash
        if name[0] == "." or not self._reaches(Region(prefix, os.path.dirname(region.location))):
            return []
        found: list[Item] = []
        try:
            entry = _Entry(name, region.location, os.lstat(region.location))
        except OSError:
            return []
        self._take(entry, prefix, found, only_note=self._holds_only_a_note(prefix))
        return [item for item in found if isinstance(item, FileStat)]

    def _reaches(self, region: Region) -> bool:
        """Return whether the walk of the whole root comes to a region.

        That is the case if it would go down into every folder on the way.
        """
        path, location = self._root.prefix, str(self._root.folder)
        if region.location != location and not region.location.startswith(os.path.join(location, "")):
            return False
        for name in filter(None, region.location[len(location) :].split(os.sep)):
            location = os.path.join(location, name)
            inner = path + readable_name(name)
            try:
                is_folder = stat.S_ISDIR(os.lstat(location).st_mode)
            except OSError:
                return False
            if name[0] == "." or not is_folder or self._holds_only_a_note(path) or not self._is_open(inner, location):
                return False
            path = inner + "/"
        return path == region.path

    def _holds_only_a_note(self, prefix: str) -> bool:
        return self._is_memory and prefix.endswith("/worktree/") and "/tasks/" in prefix

    def _is_open(self, path: str, location: str) -> bool:
        """Return whether a folder of notes is walked, going by its name."""
        return location not in self._skipped and not self._is_ignored(path) and path + "/" != GLOBAL_PREFIX

    def _files_below(self, location: str, path: str, without: str | None = None) -> Iterator[FileStat]:
        """Yield the files below a folder, depth first.

        Folders are sorted as if their name ended in a slash.
        """
        waiting = self._list(location, path)[::-1]
        while waiting:
            item = waiting.pop()
            if isinstance(item, FileStat):
                yield item
            elif item[0] != without:
                path, location = item
                waiting += self._list(location, path)[::-1]

    def _list(self, folder: str, prefix: str) -> list[Item]:
        """Return a folder's files and sub-folders `(path/, location)` in path order."""
        found: list[Item] = []
        only_note = self._holds_only_a_note(prefix)
        ignored = self._is_ignored
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    # The common cases without a call: an ordinary note or folder with an ordinary name.
                    if (
                        name.endswith(".md")
                        and name.isascii()
                        and entry.is_file(follow_symlinks=False)
                        and name not in _NOT_NOTES
                        and not only_note
                    ):
                        path = prefix + name
                        if not ignored(path):
                            try:
                                state = entry.stat(follow_symlinks=False)
                            except FileNotFoundError:
                                continue
                            found.append(FileStat.of(path, entry.path, state))
                    elif (
                        not only_note
                        and name.isascii()
                        and name[-3:].lower() != ".md"
                        and entry.is_dir(follow_symlinks=False)
                    ):
                        path = prefix + name
                        if path + "/" != GLOBAL_PREFIX and self._is_open(path, entry.path):
                            found.append((path + "/", entry.path))
                    else:
                        self._take(entry, prefix, found, only_note=only_note)
        except FileNotFoundError:
            return []
        except OSError as exc:
            self._problems.append(Problem(prefix or "./", 1, f"{UNLISTED}: {exc.strerror}; what is in it is skipped"))
        if len(found) > 1:
            found.sort(key=_path_of)
        return found

    def _take(self, entry: os.DirEntry[str] | _Entry, prefix: str, found: list[Item], *, only_note: bool) -> None:
        name = entry.name
        is_note = name.endswith(".md") or name[-3:].lower() == ".md"
        if not is_note and not entry.is_dir(follow_symlinks=False) and not entry.is_symlink():
            return
        path = prefix + (name if name.isascii() else readable_name(name))
        if entry.is_symlink():
            if (is_note or os.path.isdir(entry.path)) and not self._is_ignored(path):
                _explain_link(entry.path, path, self._root.folder, self._problems)
        elif entry.is_dir(follow_symlinks=False):
            if path + "/" == GLOBAL_PREFIX:
                self._problems.append(
                    Problem(path, 1, "a folder of this name means the global home in output; skipped, rename it")
                )
            if not only_note and self._is_open(path, entry.path):
                found.append((path + "/", entry.path))
        elif (
            not (only_note and name != "MEMORY.md")
            and not (self._is_memory and name in _NOT_NOTES)
            and not self._is_ignored(path)
        ):
            file = self._stat(entry, path)
            if file:
                found.append(file)

    def _stat(self, entry: os.DirEntry[str] | _Entry, path: str) -> FileStat | None:
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
        if not entry.name.isascii() and readable_name(entry.name) != entry.name:
            self._problems.append(Problem(path, 1, "the file's name is not valid UTF-8; indexed under this spelling"))
        return FileStat.of(path, entry.path, found)


class _Entry(NamedTuple):
    """A single name of a folder, seen as listing the folder shows it."""

    name: str
    path: str
    state: os.stat_result

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return stat.S_ISDIR(self.stat(follow_symlinks=follow_symlinks).st_mode)

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self.state.st_mode)

    def stat(self, *, follow_symlinks: bool) -> os.stat_result:
        return os.stat(self.path) if follow_symlinks else self.state


def _path_of(item: Item) -> str:
    return item[0]
