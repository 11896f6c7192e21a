"""Find the files that notes name: those of the project that they cite, and attachments."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from memory_kb.regular_files import read_file, visible_files
from memory_kb.text import printable

if TYPE_CHECKING:
    from memory_kb.store.git_command import GitQueries
    from memory_kb.vault import Vault


#: A larger file is not looked into.
MAX_BYTES = 2_000_000


class CitedFile:
    """A file as it is now.

    Attributes:
        state: `text`, `binary`, `missing`, or `unreadable` for the reason given.
        data: its bytes, where it has any.
    """

    def __init__(self, path: str, state: str, data: bytes = b"", reason: str = "") -> None:
        self.path, self.state, self.data, self.reason = path, state, data, reason

    @cached_property
    def text(self) -> str:
        """What it says; bytes that are not UTF-8 are kept as surrogates."""
        return self.data.decode("utf-8", "surrogateescape")


class ProjectFiles:
    """A project's files, and its history if there is one; git may take `seconds` for all questions together."""

    def __init__(self, folder: Path, environ: Mapping[str, str], seconds: float = 60.0) -> None:
        self.folder, self._top = folder, os.path.realpath(folder)
        self._environ, self._seconds = environ, seconds
        self._read: dict[str, CitedFile] = {}

    @cached_property
    def git(self) -> GitQueries:
        """The history of the project's repository."""
        from memory_kb.store.git_command import GitQueries

        return GitQueries(self.folder, self._environ, self._seconds)

    def read(self, path: str) -> CitedFile:
        """Return a file; nothing outside of the folder is opened, and nothing that is no plain file."""
        if path not in self._read:
            self._read[path] = self._open(path)
        return self._read[path]

    def _open(self, path: str) -> CitedFile:
        try:
            place = os.path.realpath(os.path.join(self._top, path))
            if not Path(place).is_relative_to(self._top):
                return CitedFile(path, "unreadable", reason="leads out of the project")
            data = read_file(place, MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return CitedFile(path, "missing", reason="is gone")
        except (OSError, ValueError) as exc:
            return CitedFile(path, "unreadable", reason=f"cannot be read: {getattr(exc, 'strerror', None) or exc}")
        if len(data) > MAX_BYTES:
            return CitedFile(path, "unreadable", reason=f"has more than {MAX_BYTES:,} bytes")
        return CitedFile(path, "binary" if b"\0" in data[:8192] else "text", data)


def project_files(vault: Vault, seconds: float = 60.0) -> ProjectFiles:
    """Return the files around a vault's notes, for what these cite; git gets `seconds` for all questions together."""
    return ProjectFiles(vault.project, vault.environ, seconds)


def path_in_project(file: str, project: Path, here: Path) -> str | None:
    """Return a file's path relative to a project, with slashes; None for a file outside.

    A relative path is resolved from the current folder, if that is in the project, and from the
    project's own folder. Where there is no such file, `./x`, `../x` and a bare name are meant from
    here, and so is a path whose folder is here alone. The project may be reached through links.
    """
    named = unquote(urlsplit(file).path) if file.startswith("file://") else file
    named = printable(named).replace("\\", "/").replace("\0", "")
    if os.path.isabs(named):
        return _relative_to(named, project)
    from_here, from_top = os.path.join(here, named), os.path.join(project, named)
    if _relative_to(str(here), project) is None:
        return _relative_to(from_top, project)
    candidates = [from_here] if named.split("/")[0] in (".", "..") else [from_here, from_top]
    for is_there in (os.path.lexists, lambda path: os.path.isdir(os.path.dirname(path))):
        for path in filter(is_there, candidates):
            return _relative_to(path, project)
    return _relative_to(candidates[-1], project)


def _relative_to(path: str, project: Path) -> str | None:
    """Return an absolute path relative to the project, as it is written or else with its links followed."""
    # What `..` leads to behind a link only the file system knows.
    path = os.path.realpath(path) if ".." in path.split("/") else os.path.normpath(path)
    followed = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for place, top in ((path, project), (path, os.path.realpath(project)), (followed, os.path.realpath(project))):
        with contextlib.suppress(ValueError):
            return Path(place).relative_to(top).as_posix()
    return None


def list_attachments(folder: Path) -> dict[str, list[str]]:
    """Return the paths of attachments outside of hidden folders by their names in lower case, short paths first."""
    from memory_kb.markdown.links import is_attachment

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
