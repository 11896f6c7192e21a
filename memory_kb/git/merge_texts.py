"""Merge texts line by line, by `git merge-file`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from memory_kb.store.git_command import run_git
from memory_kb.text import decode, encode

#: Signs of a conflict marker unless the repository says otherwise.
MARKER_SIZE = 7
_SECONDS = 60
#: Git ends with this or more where it cannot merge at all, such as files with NUL bytes.
_FAILED = 128


class CannotMerge(Exception):
    """Texts that git does not take for texts, or no git."""


class TextMerge(NamedTuple):
    """A merged text, in how many places people must choose, and what they should know."""

    text: str
    conflicts: int = 0
    notices: tuple[str, ...] = ()


def merge_lines(base: str, ours: str, theirs: str, marker_size: int = MARKER_SIZE) -> TextMerge:
    """Return the merge of two texts that both began as `base`; raise CannotMerge where git can make none."""
    if theirs in (ours, base):
        return TextMerge(ours)
    if base == ours:
        return TextMerge(theirs)
    labels = [word for name in ("ours", "base", "theirs") for word in ("-L", name)]
    with tempfile.TemporaryDirectory(prefix="memory-kb-") as folder:
        files = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for file, text in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(encode(text))
        arguments = ("merge-file", "-p", "-q", f"--marker-size={marker_size}", *labels, *map(str, files))
        try:
            done = run_git(Path(folder), os.environ, arguments, seconds=_SECONDS)
        except (OSError, subprocess.SubprocessError) as exc:
            raise CannotMerge from exc
    if not 0 <= done.returncode < _FAILED:
        raise CannotMerge
    return TextMerge(decode(done.stdout), done.returncode)
