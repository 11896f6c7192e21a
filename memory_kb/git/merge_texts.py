"""Merge texts line by line, by `git merge-file`."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
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
    """Texts that git does not take for texts."""


class TextMerge(NamedTuple):
    """A merged text, in how many places people must choose, and what they should know."""

    text: str
    conflicts: int = 0
    notices: tuple[str, ...] = ()


class GitTexts:
    """Merges texts with the `git` that the person uses; without one, what differs becomes a conflict."""

    def __init__(self, environ: Mapping[str, str] | None = None, size: int = MARKER_SIZE) -> None:
        self.size = size
        self._environ = dict(os.environ if environ is None else environ)

    def merge(self, base: str, ours: str, theirs: str) -> TextMerge:
        """Return the merge of two texts that both began as `base`."""
        if theirs in (ours, base):
            return TextMerge(ours)
        if base == ours:
            return TextMerge(theirs)
        options = ["-p", "-q", f"--marker-size={self.size}"]
        labels = [word for name in ("ours", "base", "theirs") for word in ("-L", name)]
        with tempfile.TemporaryDirectory(prefix="memory-kb-") as folder:
            files = [Path(folder, name) for name in ("ours", "base", "theirs")]
            for file, text in zip(files, (ours, base, theirs), strict=True):
                file.write_bytes(encode(text))
            arguments = ("merge-file", *options, *labels, *map(str, files))
            try:
                done = run_git(Path(folder), self._environ, arguments, seconds=_SECONDS)
            except (OSError, subprocess.SubprocessError):
                return TextMerge(self.oppose(ours, theirs), 1)
        if not 0 <= done.returncode < _FAILED:
            raise CannotMerge
        return TextMerge(decode(done.stdout), done.returncode)

    def oppose(self, ours: str, theirs: str) -> str:
        r"""Return two texts between conflict markers.

        Example:
            >>> GitTexts({}).oppose("a\n", "")
            '<<<<<<< ours\na\n=======\n>>>>>>> theirs\n'
        """
        newline = "\r\n" if "\r\n" in ours + theirs else "\n"
        one, other = (text if not text or text.endswith("\n") else text + newline for text in (ours, theirs))
        begin, middle, end = "<" * self.size, "=" * self.size, ">" * self.size
        return f"{begin} ours{newline}{one}{middle}{newline}{other}{end} theirs{newline}"
