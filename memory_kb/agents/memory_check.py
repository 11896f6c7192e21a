"""Check the memories that agents keep of a project for problems."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from memory_kb.learning.text_comparison import find_opposition
from memory_kb.markdown.headings import read_outline
from memory_kb.model import Problem
from memory_kb.regular_files import read_text
from memory_kb.store.agent_memory_files import (
    INDEX,
    POINTER,
    SUMMARY,
    AgentMemoryFile,
    claude_home,
    claude_memory_folders,
    explain_excess,
    find_agent_memory_files,
    without_ours,
)
from memory_kb.terms import word_tokens
from memory_kb.vault import Vault

#: Bytes of a file that are read, and entries of all files that are compared.
_MAX_BYTES, _MAX_ENTRIES = 200_000, 500


def examine_agent_memories(vault: Vault) -> Iterator[Problem]:
    """Yield what is wrong: indexes too long or pointing nowhere, memories nobody reads, and entries that contradict."""
    files = find_agent_memory_files(vault)
    for one in files:
        yield from _examine_index(one)
    yield from _unread(vault)
    yield from _contradictions(files)


def _examine_index(one: AgentMemoryFile) -> Iterator[Problem]:
    if (one.agent, one.file.name) not in (("codex", SUMMARY), ("claude-code", INDEX)):
        return
    text = read_text(one.file, _MAX_BYTES).replace("\r\n", "\n")
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


def _contradictions(files: tuple[AgentMemoryFile, ...]) -> Iterator[Problem]:
    """Yield entries of two agents of which one says the contrary of the other."""
    entries = [(one, line, text, word_tokens(text)) for one in files for line, text in _entries(one)][:_MAX_ENTRIES]
    for (one, line, text, words), (other, number, contrary, others) in combinations(entries, 2):
        if one.agent != other.agent and len(words & others) >= 2 and (why := find_opposition(text, contrary)):
            yield Problem(one.shown, line, f"contradicts {other.shown}:{number}: {why}")


def _entries(one: AgentMemoryFile) -> Iterator[tuple[int, str]]:
    """Yield the items and paragraphs of a file, each with its line."""
    text = read_text(one.file, _MAX_BYTES).replace("\r\n", "\n")
    text = without_ours(text.encode(), one.file).decode()
    return ((item.line, " ".join(item.text.split())) for item in read_outline(text))
