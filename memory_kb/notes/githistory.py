"""What git knows of files that are not where they were; plain `git` is asked, and may be missing."""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from memory_kb.notes.gitstate import ask_git

#: Renames of a file that are followed, one after the other.
_MOST_RENAMES = 8
_MOST_NEW = 2_000
_HEX = re.compile(r"[0-9a-f]{7,64}")


class History:
    """The repository around a folder; each question is asked once.

    Paths are relative to the folder. Where there is no repository, or git fails, nothing is known.
    When all questions together have taken `seconds`, no more are asked and `gave_up` is true.
    """

    def __init__(self, folder: Path, environ: Mapping[str, str], seconds: float) -> None:
        self._folder, self._environ, self._left = folder, environ, seconds
        self.gave_up = False
        self._ask = functools.cache(self._ask_git)

    def _ask_git(self, *arguments: str) -> bytes | None:
        if not self._is_there:
            return None
        began = time.monotonic()
        told = ask_git(self._folder, self._environ, arguments, self._left) if self._left > 0 else None
        self._left -= time.monotonic() - began
        self.gave_up = self.gave_up or (told is None and self._left <= 0)
        return told

    @functools.cached_property
    def _is_there(self) -> bool:
        """Whether a repository is around, found out without starting git."""
        top = Path(os.path.realpath(self._folder))
        return any((place / ".git").exists() for place in (top, *top.parents))

    def head(self) -> str | None:
        """Return the last commit, shortened."""
        return _line(self._ask("rev-parse", "--verify", "--quiet", "--short=12", "HEAD"))

    def find_commit(self, commit: str) -> str | None:
        """Return the whole hash of a commit that is here, or None."""
        return (
            _line(self._ask("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"))
            if _HEX.fullmatch(commit)
            else None
        )

    def is_whole(self) -> bool:
        """Tell whether there is a repository, and none of its commits were left out on purpose."""
        return _line(self._ask("rev-parse", "--is-shallow-repository")) == "false"

    def is_skipped(self, path: str) -> bool:
        """Tell whether a sparse checkout leaves a file out."""
        is_sparse = _line(self._ask("config", "--bool", "core.sparseCheckout")) == "true"
        return is_sparse and (self._ask("ls-files", "-t", "--", f":(literal){path}") or b"").startswith(b"S ")

    def blob(self, commit: str, path: str, most: int) -> bytes | None:
        """Return a file's bytes at a commit, or None where it was not there or is larger."""
        if not _HEX.fullmatch(commit):
            return None
        data = self._ask("cat-file", "blob", f"{commit}:./{path}")
        return data if data is not None and len(data) <= most else None

    def renames_of(self, path: str) -> Iterator[str]:
        """Yield the names that a file got, the last one first."""
        names = [path]
        while len(names) <= _MOST_RENAMES:
            new = self._renamed(names[-1])
            if new is None or new in names:
                break
            names.append(new)
        yield from reversed(names[1:])

    def _renamed(self, path: str) -> str | None:
        """Return the next name of a file: since the last commit, else in the commit that took it away."""
        if path in self._moved:
            return self._moved[path]
        deleted = _line(
            self._ask("log", "-1", "--no-renames", "--diff-filter=D", "--format=%H", "--", f":(literal){path}")
        )
        if not deleted:
            return None
        told = self._ask(
            "show", "--format=", "--first-parent", "--no-ext-diff", "--name-status", "-M", "-z", "--relative", deleted
        )
        return _renames(told or b"").get(path)

    @functools.cached_property
    def _changed(self) -> bytes:
        return self._ask("diff", "--no-ext-diff", "--name-status", "-M", "-z", "--relative", "HEAD") or b""

    @functools.cached_property
    def _moved(self) -> dict[str, str]:
        return _renames(self._changed)

    def new_files(self) -> tuple[str, ...]:
        """Return the files that no commit has yet."""
        untracked = _names(self._ask("ls-files", "--others", "--exclude-standard", "-z") or b"")[:_MOST_NEW]
        added = [paths[0] for word, paths in _statuses(self._changed) if word == "A"]
        return tuple(dict.fromkeys((*added, *untracked)))


def _line(told: bytes | None) -> str | None:
    return told.decode("utf-8", "surrogateescape").strip() or None if told is not None else None


def _names(told: bytes) -> list[str]:
    return [name.decode("utf-8", "surrogateescape") for name in told.split(b"\0") if name]


def _statuses(told: bytes) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what `--name-status -z` says: a letter and one path, or two of a rename."""
    names = iter(_names(told))
    for word in names:
        letter = word.strip()[:1]
        paths = [next(names, "") for _ in range(2 if letter in "RC" else 1)]
        if all(paths):
            yield letter, tuple(paths)


def _renames(told: bytes) -> dict[str, str]:
    return {paths[0]: paths[1] for word, paths in _statuses(told) if word == "R"}
