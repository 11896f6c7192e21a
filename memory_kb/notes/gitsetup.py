"""Teaching a repository to merge memory files: lines in `.gitattributes`, a driver in its configuration.

The attributes are committed and concern everybody; the driver is this clone's own. Who has no
driver merges as before. Our lines stand first, so that a person's own lines for the same files win.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import GitFailed
from memory_kb.notes.changes import FileEdit, apply, mode_of, read_if_there
from memory_kb.notes.plans import decode, encode
from memory_kb.notes.repository import Repository
from memory_kb.notes.sheets import newline_of

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
    """What was written, or would be; each a file with what was done to it, nothing where all was there."""

    done: tuple[str, ...]
    attributes: str
    driver: str | None


def driver_command(command: tuple[str, ...]) -> str:
    """Return the shell line that git runs; where memory-kb is gone, git's own merge does the work.

    Example:
        >>> driver_command(("memory-kb",)).partition(";")[0]
        'if command -v memory-kb >/dev/null 2>&1'
    """
    import shlex

    ours = " ".join(map(shlex.quote, command))
    theirs = "git merge-file --marker-size=%L -L ours -L base -L theirs %A %O %B"
    return f"if command -v {shlex.quote(command[0])} >/dev/null 2>&1; then {ours} git merge-file %O %A %B %P %L; else {theirs}; fi"


def put_lines(text: str, *, is_memory: bool) -> str:
    r"""Return the text of `.gitattributes` with our lines first.

    Example:
        >>> put_lines("*.png binary", is_memory=False).splitlines()[1:]
        ['*.md merge=memory-kb', '# memory-kb: end', '*.png binary']
    """
    bare = take_lines(text).removeprefix(_BOM)
    newline = newline_of(text)
    block = newline.join((_BEGIN, *(_IN_VAULT if is_memory else _IN_PLAIN), _END, ""))
    return (_BOM if text.startswith(_BOM) else "") + block + bare


def take_lines(text: str) -> str:
    r"""Return the text of `.gitattributes` without our lines.

    Example:
        >>> take_lines(put_lines("*.png binary", is_memory=True))
        '*.png binary'
    """
    start = text.find(_BEGIN)
    last = text.find(_END, start)
    if start < 0 or last < 0:
        return text
    end = text.find("\n", last) + 1 or len(text)
    return text[:start] + text[end:]


def install(
    repository: Repository, folder: Path, command: tuple[str, ...], *, is_memory: bool, dry_run: bool = False
) -> GitSetup:
    """Write the attributes of a vault's folder and the driver of its repository; a second time nothing changes.

    Raises:
        GitFailed: the configuration cannot be written.
        UnreadableInput: the attributes cannot be.
    """
    done = []
    file = folder / _NAME
    old = read_if_there(_NAME, file)
    new = encode(put_lines(decode(old or b""), is_memory=is_memory))
    if old != new:
        done.append(f"{'made' if old is None else 'wrote'} {file}")
        if not dry_run:
            apply(FileEdit(_NAME, file, old, new, mode=mode_of(file)))
    wanted = {
        f"{_SECTION}.name": "memory-kb: entry by entry, field by field",
        f"{_SECTION}.driver": driver_command(command),
    }
    for name, value in wanted.items():
        if repository.config(name) != value:
            done.append(f"set {name}")
            if not dry_run:
                repository.git("config", "--local", name, value)
    return GitSetup(tuple(done), str(file), wanted[f"{_SECTION}.driver"])


def uninstall(repository: Repository, folder: Path, *, dry_run: bool = False) -> GitSetup:
    """Take out what `install` wrote, to the byte; the driver stays while another vault of the repository names it.

    Raises:
        GitFailed: the configuration cannot be written.
        UnreadableInput: the attributes cannot be.
    """
    done = []
    file = folder / _NAME
    old = read_if_there(_NAME, file)
    new = encode(take_lines(decode(old or b"")))
    if old is not None and old != new:
        done.append(f"{'wrote' if new else 'removed'} {file}")
        if not dry_run:
            apply(FileEdit(_NAME, file, old, new or None, mode=mode_of(file)))
    if repository.config(f"{_SECTION}.driver") is not None and not _is_named_elsewhere(repository, file):
        done.append(f"took {_SECTION} out of the configuration")
        if not dry_run:
            repository.git("config", "--local", "--remove-section", _SECTION)
    return GitSetup(tuple(done), str(file), None)


def _is_named_elsewhere(repository: Repository, own: Path) -> bool:
    told = b""
    for more in ((), ("--others", "--exclude-standard")):
        try:
            told += repository.git("ls-files", "-z", *more)
        except GitFailed:
            return False
    files = {
        repository.top / os.fsdecode(name)
        for name in told.split(b"\0")
        if os.fsdecode(name).rpartition("/")[2] == _NAME
    }
    others = (file for file in files if Path(os.path.realpath(file)) != Path(os.path.realpath(own)))
    return any(b"merge=memory-kb" in (read_if_there(str(file), file) or b"") for file in others)
