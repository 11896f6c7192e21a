"""The merge driver that git calls, and its installation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from memory_kb.git.merge import merge_files
from memory_kb.git.merge_texts import MARKER_SIZE, CannotMerge, TextMerge, merge_lines
from memory_kb.git.repository import Repository
from memory_kb.markdown.splice import newline_of
from memory_kb.store.file_edits import FileEdit, apply, read_if_there
from memory_kb.text import decode, encode, on_one_line

#: What git takes for an unmerged file, and for a driver that could do nothing.
_CONFLICTS, _USAGE = 1, 129


def merge_file(base: str, ours: str, theirs: str, path: str, marker_size: int = MARKER_SIZE) -> int:
    """Merge three files into `ours`; return 0, or 1 where people must choose.

    `path` is what the file is called in the repository.
    """
    data = [Path(name).read_bytes() for name in (base, ours, theirs)]
    try:
        merged = _merge_or_plain([decode(one) for one in data], path, marker_size)
    except CannotMerge:
        # As git does with binary files: ours stays in the folder, all three are in the index.
        _say_on_stderr(f"{path}: git cannot merge it; ours is left, choose one of both")
        return _CONFLICTS
    if encode(merged.text) != data[1]:
        Path(ours).write_bytes(encode(merged.text))
    for notice in merged.notices:
        _say_on_stderr(f"{path}: {notice}")
    return _CONFLICTS if merged.conflicts else 0


def _merge_or_plain(three: Sequence[str], path: str, marker_size: int) -> TextMerge:
    base, ours, theirs = three
    try:
        return merge_files(base, ours, theirs, path, marker_size)
    except CannotMerge:
        raise
    except Exception as exc:  # noqa: BLE001 - a bug of ours must not cost anybody a line
        notice = f"merged as plain text ({type(exc).__name__}: {exc})"
        return merge_lines(base, ours, theirs, marker_size)._replace(notices=(notice,))


def run_merge_driver(arguments: Sequence[str]) -> int:
    """Merge the files that git names; return what it expects."""
    words = list(arguments)
    if len(words) not in (4, 5) or not all(word.isdecimal() for word in words[4:]):
        _say_on_stderr("usage: memory-kb git merge-file BASE OURS THEIRS PATH [MARKER_SIZE]; git calls this")
        return _USAGE
    try:
        return merge_file(words[0], words[1], words[2], words[3], max(1, int(words[4])) if words[4:] else MARKER_SIZE)
    except OSError as exc:
        _say_on_stderr(f"{words[3]} cannot be merged: {exc.strerror}")
        return _USAGE


def _say_on_stderr(message: str) -> None:
    sys.stderr.write(f"memory-kb: {on_one_line(message)}\n")


_NAME = ".gitattributes"
_SECTION = "merge.memory-kb"
_BEGIN, _END = "# memory-kb: begin (written by `memory-kb git install`)", "# memory-kb: end"
_IN_VAULT = (
    "/MEMORY.md merge=memory-kb",
    "/institutional.md merge=memory-kb",
    "/memory/**/*.md merge=memory-kb",
    "/memory/**/.assumptions.jsonl merge=union",
)
_IN_PLAIN = ("*.md merge=memory-kb",)
_BOM = "\ufeff"


class GitSetup(NamedTuple):
    """The files that were written, or would be, each with what was done to it; empty if all was there already."""

    done: tuple[str, ...]
    attributes: str
    driver: str | None


def driver_command(command: tuple[str, ...]) -> str:
    """Return the shell line that git runs; where memory-kb is gone, git's own merge does the work."""
    import shlex

    ours = " ".join(map(shlex.quote, command))
    theirs = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
    return f"if command -v {shlex.quote(command[0])} >/dev/null 2>&1; then {ours} git merge-file %O %A %B %P %L; else {theirs}; fi"


def _put_lines(text: str, *, is_memory: bool) -> str:
    r"""Return the text of `.gitattributes` with our lines first."""
    bare = _take_lines(text).removeprefix(_BOM)
    newline = newline_of(text)
    block = newline.join((_BEGIN, *(_IN_VAULT if is_memory else _IN_PLAIN), _END, ""))
    return (_BOM if text.startswith(_BOM) else "") + block + bare


def _take_lines(text: str) -> str:
    r"""Return the text of `.gitattributes` without our lines."""
    start = text.find(_BEGIN)
    last = text.find(_END, start)
    if start < 0 or last < 0:
        return text
    end = text.find("\n", last) + 1 or len(text)
    return text[:start] + text[end:]


def set_up(
    repository: Repository, folder: Path, command: tuple[str, ...] | None, *, is_memory: bool, dry_run: bool
) -> GitSetup:
    """Write the attributes of a vault's folder and the driver of its repository, or without a command take both out.

    A second time nothing changes; what is taken out is what was written, to the byte.
    """
    file = folder / _NAME
    old = read_if_there(_NAME, file)
    text = decode(old or b"")
    new = encode(_put_lines(text, is_memory=is_memory) if command else _take_lines(text))
    done = []
    if new != (old or b""):
        done.append(f"{'made' if old is None else 'wrote' if new else 'removed'} {file}")
        if not dry_run:
            apply(FileEdit(_NAME, old, new or None), file)
    driver = driver_command(command) if command else None
    wanted = [("name", "memory-kb: entry by entry, field by field"), ("driver", driver)] if driver else []
    for name, value in wanted:
        if repository.config(f"{_SECTION}.{name}") != value:
            done.append(f"set {_SECTION}.{name}")
            if not dry_run:
                repository.git("config", "--local", f"{_SECTION}.{name}", value)
    if driver is None and repository.config(f"{_SECTION}.driver") is not None:
        done.append(f"took {_SECTION} out of the configuration")
        if not dry_run:
            repository.git("config", "--local", "--remove-section", _SECTION)
    return GitSetup(tuple(done), str(file), driver)
