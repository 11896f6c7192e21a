"""Locate the memories of agents that a bridge can write to: an index with one line of ours, and one file of ours."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.store.host_memory import (
    INDEX,
    MOST_BYTES,
    MOST_LINES,
    SUMMARY,
    SUMMARY_TOKENS,
    claude_home,
    claude_memory_folders,
    codex_home,
    measure,
)
from memory_kb.text import count_tokens, decode
from memory_kb.vault import Vault

#: The word of our block in a file of ours.
WORD = "bridge"
_FILE = "memory-kb.md"
_ABOUT = "policies and rules from memory-kb"
_CLAUDE_HEAD = """---
name: memory-kb
description: Policies and rules of this project that always hold, from memory-kb
type: project
---

"""
#: Codex reads the instructions of an extension of its memory before it consolidates what is there.
_CODEX_EXTENSION = Path("extensions/memory-kb")
_CODEX_INSTRUCTIONS = """# memory-kb

Each file in resources/ holds the policies and rules of one project, written by memory-kb; an entry has its id in a comment.
They are complete: leave them as they are, and copy nothing of them into MEMORY.md, memory_summary.md or skills/.
Keep the lines of memory_summary.md between the marks of memory-kb to the letter. Each names the file that an agent is
to open before it works in that project."""
_NO_WORD = re.compile(r"[^A-Za-z0-9]+")


class Store(NamedTuple):
    """A memory that an agent keeps, as far as a bridge writes to it.

    Attributes:
        title: what the agent is called.
        file: our file; `index_file` the one that the agent loads, with a block of our `word` for the pointer line.
        link: our file as the index names it.
        heads: how a file begins that is not there yet.
        instructions: a further file that explains ours to the agent, and its text.
    """

    title: str
    file: Path
    index_file: Path
    word: str
    link: str
    pointer: str
    heads: dict[Path, str]
    instructions: tuple[Path, str] | None = None
    notice: str = ""

    def check_size(self, index: bytes) -> None:
        """Check that the agent loads all of an index."""
        excess = explain_excess(self.index_file.name, decode(index))
        if excess:
            raise UsageError(f"{self.index_file.name} would have {excess}", "shorten it first")


def explain_excess(name: str, text: str) -> str:
    """Return how much more an index holds than its agent loads; "" where that is all of it."""
    if name == SUMMARY:
        size = count_tokens(text)
        return f"{size:,} tokens; Codex loads {SUMMARY_TOKENS:,}" if size > SUMMARY_TOKENS else ""
    lines, size = measure(text)
    if lines <= MOST_LINES and size <= MOST_BYTES:
        return ""
    return f"{lines:,} lines and {size:,} bytes; Claude Code loads {MOST_LINES} lines and {MOST_BYTES:,}"


def find_store(agent: str, vault: Vault) -> Store:
    """Return where an agent keeps its memory of a vault's project."""
    makers = {"claude-code": _claude_code, "codex": _codex}
    if agent not in makers:
        raise UsageError(
            f"there is no bridge to {agent[:40]!r}",
            "there is one to claude-code and codex; `memory-kb export agents-md --file AGENTS.md` serves the others",
        )
    return makers[agent](vault)


def _claude_code(vault: Vault) -> Store:
    claude, home = claude_home(vault.environ)
    _check_folder("Claude Code", claude)
    folders = list(claude_memory_folders(vault.project, claude, home, others=False))
    folder = Path(os.path.realpath(next((one for one in folders if one.is_dir()), folders[0])))
    pointer = f"- [What always holds here]({_FILE}): {_ABOUT}"
    return Store("Claude Code", folder / _FILE, folder / INDEX, WORD, _FILE, pointer, {folder / _FILE: _CLAUDE_HEAD})


def _codex(vault: Vault) -> Store:
    """Return Codex's memory, which is one for all projects; what is in it for one of them bears its name."""
    codex = codex_home(vault.environ)
    _check_folder("Codex", codex)
    folder = Path(os.path.realpath(codex / "memories"))
    name = _NO_WORD.sub("-", str(vault.project)).strip("-")[-100:]
    link = (_CODEX_EXTENSION / "resources" / f"{name}.md").as_posix()
    return Store(
        "Codex",
        folder / link,
        folder / SUMMARY,
        f"{WORD}-{name}",
        link,
        f"- [What always holds in {vault.project}]({link}): {_ABOUT}; open it before you work there",
        {folder / SUMMARY: "v1\n\n"},
        (folder / _CODEX_EXTENSION / "instructions.md", _CODEX_INSTRUCTIONS),
        ""
        if folder.is_dir()
        else "Codex reads its memories only with `memories = true` under [features] of its config.toml",
    )


def _check_folder(title: str, folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{title} keeps nothing here: there is no folder {folder}", f"start {title} once")
