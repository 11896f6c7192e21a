"""Git's own merge of texts, line by line, as `git merge-file` does it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from memory_kb.notes.gitcalls import run_git
from memory_kb.notes.plans import decode, encode

#: Signs of a conflict marker unless the repository says otherwise.
MARKER_SIZE = 7
_SECONDS = 60
#: Git ends with this or more where it cannot merge at all, such as files with NUL bytes.
_FAILED = 128


class CannotMerge(Exception):
    """Texts that git does not take for texts."""


class TextMerge(NamedTuple):
    """A merged text, and in how many places people must choose."""

    text: str
    conflicts: int = 0


class GitTexts:
    """Merges texts with the `git` that the person uses; without one, what differs becomes a conflict.

    Attributes:
        size: how many signs a conflict marker has.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, size: int = MARKER_SIZE) -> None:
        self.size = size
        self._environ = dict(os.environ if environ is None else environ)

    def merge(self, base: str, ours: str, theirs: str, *, is_union: bool = False) -> TextMerge:
        """Return what two texts come to that both began as `base`.

        With `is_union`, where both changed the same lines those of both are kept.

        Raises:
            CannotMerge: they are no texts.
        """
        if theirs in (ours, base):
            return TextMerge(ours)
        if base == ours:
            return TextMerge(theirs)
        with tempfile.TemporaryDirectory(prefix="memory-kb-") as folder:
            files = []
            for name, text in (("ours", ours), ("base", base), ("theirs", theirs)):
                files.append(os.path.join(folder, name))
                with open(files[-1], "wb") as stream:
                    stream.write(encode(text))
            return self._run(files, ours, theirs, is_union=is_union)

    def _run(self, files: list[str], ours: str, theirs: str, *, is_union: bool) -> TextMerge:
        options = ["-p", "-q", f"--marker-size={self.size}", *(["--union"] if is_union else ())]
        labels = [word for name in ("ours", "base", "theirs") for word in ("-L", name)]
        done = None
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            folder = Path(files[0]).parent
            done = run_git(folder, self._environ, ("merge-file", *options, *labels, *files), seconds=_SECONDS)
        if done is None:
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
        sides = [text if not text or text.endswith("\n") else text + newline for text in (ours, theirs)]
        marks = (
            f"{'<' * self.size} ours{newline}",
            f"{'=' * self.size}{newline}",
            f"{'>' * self.size} theirs{newline}",
        )
        return f"{marks[0]}{sides[0]}{marks[1]}{sides[1]}{marks[2]}"
