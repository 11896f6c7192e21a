"""What git says of the folder that is worked in; plain `git` is asked, and may be missing."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from memory_kb.notes.gitcalls import run_git

_SECONDS = 20
_MAX_FILES = 100


class GitState(NamedTuple):
    """The state of a repository.

    Attributes:
        branch: None where no branch is checked out.
        commit: the last one, shortened; None where there is none yet.
        subject: its first line.
        dirty_files: what is changed or new, as paths from the repository's top, the first hundred.
        dirty_count: how many there are.
    """

    branch: str | None
    commit: str | None
    subject: str | None
    dirty_files: tuple[str, ...] = ()
    dirty_count: int = 0


def find_repository(folder: Path) -> Path | None:
    """Return the folder of the repository around a folder, by the look of it: git is not asked."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def read_git_state(folder: Path, environ: Mapping[str, str], leave_out: Sequence[str] = ()) -> GitState | None:
    """Return the state of the repository around a folder, or None where there is none.

    Files below the folders of `leave_out`, relative to `folder`, do not count as changed.
    """
    asked = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=normal",
        "--",
        ":/",
        *(f":(exclude){name}" for name in leave_out),
    ]
    status = _ask(folder, environ, asked)
    if status is None:
        return None
    state = parse_status(status)
    subject = _ask(folder, environ, ["log", "-1", "--format=%s"]) if state.commit else None
    return state._replace(subject=" ".join((subject or "").split()) or None)


def _ask(folder: Path, environ: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    told = ask_git(folder, environ, arguments)
    return None if told is None else told.decode("utf-8", "replace")


def ask_git(
    folder: Path, environ: Mapping[str, str], arguments: Sequence[str], seconds: float = _SECONDS
) -> bytes | None:
    """Return what git answers in a folder, or None where it fails, is missing or takes too long."""
    variables = {name: value for name, value in environ.items() if name != "GIT_INDEX_FILE"}
    try:
        done = run_git(folder, variables, arguments, seconds=seconds)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def parse_status(status: str) -> GitState:
    """Return what `git status --porcelain=v2 --branch -z` says.

    Example:
        >>> parse_status("# branch.oid 1234567890abcdef\\0# branch.head main\\0? new.py\\0")
        GitState(branch='main', commit='1234567890ab', subject=None, dirty_files=('new.py',), dirty_count=1)
    """
    branch = commit = None
    files: list[str] = []
    pieces = iter(status.split("\0"))
    for piece in pieces:
        kind, _, rest = piece.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            if name == "branch.oid" and value != "(initial)":
                commit = value[:12]
            elif name == "branch.head" and value != "(detached)":
                branch = value
        elif kind in _FIELDS:
            files.append(piece.split(" ", _FIELDS[kind])[-1])
            if kind == "2":
                next(pieces, None)
    return GitState(branch, commit, None, tuple(sorted(files)[:_MAX_FILES]), len(files))


#: How many fields stand before the path, by the kind of line.
_FIELDS = {"1": 8, "2": 9, "u": 10, "?": 1}
