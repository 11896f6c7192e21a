"""What git calls to merge a memory file: `memory-kb git merge-file %O %A %B %P %L`.

It must start fast and always leave something: whatever goes wrong, git's own merge of the whole
file is the answer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from memory_kb.notes.plans import decode, encode
from memory_kb.notes.textmerge import MARKER_SIZE, CannotMerge, GitTexts

#: What git takes for an unmerged file, and for a driver that could do nothing.
_CONFLICTS, _USAGE = 1, 129


def merge_file(
    base: str,
    ours: str,
    theirs: str,
    path: str,
    marker_size: int = MARKER_SIZE,
    environ: Mapping[str, str] | None = None,
) -> int:
    """Merge three files, the result in the place of `ours`; return 0, or 1 where people must choose.

    `path` is what the file is called in the repository.

    Raises:
        OSError: a file cannot be read, or `ours` not written.
    """
    texts = GitTexts(environ, marker_size)
    data = [Path(name).read_bytes() for name in (base, ours, theirs)]
    try:
        merged, conflicts, notices = _merge(data, path, texts)
    except CannotMerge:
        # As git does with binary files: ours stays in the folder, all three are in the index.
        _say(f"{path}: is no text; ours is left, choose one of both")
        return _CONFLICTS
    if merged != data[1]:
        Path(ours).write_bytes(merged)
    for notice in notices:
        _say(f"{path}: {notice}")
    return _CONFLICTS if conflicts else 0


def _merge(data: Sequence[bytes], path: str, texts: GitTexts) -> tuple[bytes, int, Sequence[str]]:
    base, ours, theirs = map(decode, data)
    try:
        from memory_kb.notes.threeway import merge_files

        merged = merge_files(base, ours, theirs, path, texts)
        return encode(merged.text), merged.conflicts, merged.notices
    except CannotMerge:
        raise
    except Exception as exc:  # noqa: BLE001 - a bug of ours must not cost anybody a line
        plain = texts.merge(base, ours, theirs)
        return encode(plain.text), plain.conflicts, (f"merged as plain text ({type(exc).__name__}: {exc})",)


def answer(arguments: Sequence[str]) -> int:
    """Merge the files that git names; return what it expects to hear."""
    words = list(arguments)
    if len(words) not in (4, 5) or not all(word.isdecimal() for word in words[4:]):
        _say("usage: memory-kb git merge-file BASE OURS THEIRS PATH [MARKER_SIZE]; git calls this")
        return _USAGE
    try:
        return merge_file(words[0], words[1], words[2], words[3], max(1, int(words[4])) if words[4:] else MARKER_SIZE)
    except OSError as exc:
        _say(f"{words[3]} cannot be merged: {exc.strerror}")
        return _USAGE


def _say(message: str) -> None:
    sys.stderr.write(f"memory-kb: {message}\n")
