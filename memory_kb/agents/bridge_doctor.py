"""Find problems in the memories that agents keep for a project."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb.agents.bridge_stores import explain_excess
from memory_kb.learning.text_comparison import find_opposition
from memory_kb.model import Problem
from memory_kb.plainfiles import read_plain
from memory_kb.search.host import POINTER, own_words
from memory_kb.store.host_memory import (
    INDEX,
    SUMMARY,
    HostFile,
    claude_home,
    claude_memory_folders,
    find_host_files,
)
from memory_kb.text import tokens

if TYPE_CHECKING:
    from memory_kb.vault import Vault

_MAX_BYTES, _MAX_ENTRIES = 200_000, 500
_ITEM = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+")
_FRONTMATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def examine(vault: Vault) -> Iterator[Problem]:
    """Yield what is wrong: indexes too long or pointing nowhere, memories nobody reads, and entries that contradict."""
    files = find_host_files(vault)
    for one in files:
        yield from _examine_index(one)
    yield from _unread(vault)
    yield from _contradictions(files)


def _examine_index(one: HostFile) -> Iterator[Problem]:
    if (one.host, one.file.name) not in (("codex", SUMMARY), ("claude-code", INDEX)):
        return
    text = _read(one.file)
    if excess := explain_excess(one.file.name, text):
        yield Problem(one.shown, 1, f"has {excess}")
    for found in POINTER.finditer(text):
        if "://" not in found[1] and not (one.file.parent / found[1]).is_file():
            line = text.count("\n", 0, found.start()) + 1
            yield Problem(one.shown, line, f"points to {found[1]}, which does not exist")


def _unread(vault: Vault) -> Iterator[Problem]:
    """Yield memories of other working trees of the project."""
    claude, home = claude_home(vault.environ)
    ours = set(claude_memory_folders(vault.project, claude, home, others=False))
    for folder in claude_memory_folders(vault.project, claude, home):
        if folder not in ours and any(folder.glob("*.md")):
            yield Problem(str(folder), 1, "belongs to another working tree; Claude Code does not read it here")


def _contradictions(files: tuple[HostFile, ...]) -> Iterator[Problem]:
    """Yield entries of two agents of which one says the contrary of the other."""
    entries = [(one, line, text, tokens(text)) for one in files for line, text in _entries(one)][:_MAX_ENTRIES]
    for (one, line, text, words), (other, number, contrary, others) in itertools.combinations(entries, 2):
        if one.host != other.host and len(words & others) >= 2 and (why := find_opposition(text, contrary)):
            yield Problem(one.shown, line, f"contradicts {other.shown}:{number}: {why}")


def _entries(one: HostFile) -> Iterator[tuple[int, str]]:
    """Yield the items and paragraphs of a file, each with its line."""
    text = own_words(_read(one.file).encode(), one.file).decode()
    text = _FRONTMATTER.sub(lambda found: "\n" * found[0].count("\n"), text)
    start, words = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_new = bool(_ITEM.match(line)) or not line.strip() or line.startswith("#")
        if is_new and words:
            yield start, " ".join(words)
            words.clear()
        if line.strip() and not line.startswith("#"):
            start = start if words else number
            words.append(_ITEM.sub("", line).strip())


def _read(file: Path) -> str:
    try:
        with read_plain(file) as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""
