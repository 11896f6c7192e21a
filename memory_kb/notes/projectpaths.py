"""Paths as people and agents name files, as paths within a project."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from memory_kb.text import printable


def locate(file: str, project: Path, here: Path) -> str | None:
    """Return a file's path relative to a project, with slashes; None for a file outside.

    A relative path is looked for from where somebody stands, if that is in the project, and from the
    project's own folder. Where there is no such file, `./x`, `../x` and a bare name are meant from
    here, and so is a path whose folder is here alone. The file system decides which folder is the
    project, through links and in any case of letters where it takes any.

    Args:
        file: the path, of a file that may not be there yet.
        project: the project's folder.
        here: the folder that somebody stands in.
    """
    named = _plain(file)
    if os.path.isabs(named):
        return _within(named, project)
    from_here, from_top = os.path.join(here, named), os.path.join(project, named)
    if _within(str(here), project) is None:
        return _within(from_top, project)
    dotted = named.split("/")[0] in (".", "..")
    orders = ((from_here, True), (from_top, not dotted))
    for test in (os.path.lexists, lambda path: os.path.isdir(os.path.dirname(path))):
        for path, is_meant in orders:
            if is_meant and test(path):
                return _within(path, project)
    return _within(from_here if dotted else from_top, project)


def _plain(file: str) -> str:
    if file.startswith("file://"):
        file = unquote(urlsplit(file).path)
    return printable(file).replace("\\", "/").replace("\0", "")


def _within(path: str, project: Path) -> str | None:
    """Return an absolute path relative to the project, by the first folder above it that is the project's."""
    # What `..` leads to behind a link only the file system knows.
    path = os.path.realpath(path) if ".." in path.split("/") else os.path.normpath(path)
    try:
        wanted = os.stat(project)
    except OSError:
        return None
    parts: list[str] = []
    above = path
    while True:
        try:
            if os.path.samestat(os.stat(above), wanted):
                return "/".join(_spelled(project, parts[::-1])) or "."
        except (OSError, ValueError):
            pass
        if above == (parent := os.path.dirname(above)):
            return None
        parts.append(os.path.basename(above))
        above = parent


def _spelled(project: Path, parts: list[str]) -> list[str]:
    """Return names as the file system has them, where it found them in another case of letters."""
    spelled: list[str] = []
    folder = str(project)
    for number, part in enumerate(parts):
        try:
            names = os.listdir(folder) if os.path.lexists(os.path.join(folder, part)) else [part]
        except OSError:
            return [*spelled, *parts[number:]]
        alike = (name for name in names if name.casefold() == part.casefold())
        spelled.append(part if part in names else next(alike, part))
        folder = os.path.join(folder, spelled[-1])
    return spelled
