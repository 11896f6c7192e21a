"""Read a project's own notes as they were at a given time, from git."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import MemoryKBError
from memory_kb.git.repository import Repository

#: The files that a person curates for agents, in a project's folder; one of them is often a link to another.
CURATED = (
    "MEMORY.md",
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    ".claude/CLAUDE.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
_RULES = re.compile(r"\.(?:claude/rules/.*\.md|cursor/rules/.*\.mdc)\Z")
_VAULT = "memory/"
_MAX_BYTES = 200_000
_LINK = "120000"


class PastNotes(NamedTuple):
    """The notes of one moment.

    Attributes:
        curated: the text that a person wrote for agents, "" where there is none.
        files: the notes of the project's vault, by their path from its folder.
    """

    curated: str = ""
    files: Mapping[str, bytes] = {}


class NotesInGit:
    """The notes of a project, as they were."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._repository: Repository | None = None
        self._inner = ""
        self._known: dict[str, PastNotes] = {}
        try:
            repository = Repository(folder, environ)
            if repository.has_commits:
                self._repository, self._inner = repository, repository.prefix(folder)
        except (MemoryKBError, OSError):
            pass

    def at(self, moment: str) -> PastNotes:
        """Return the notes of the last commit before a moment of the branch that is checked out."""
        if self._repository is None or not moment:
            return PastNotes()
        found = self._repository.git("rev-list", "-1", f"--before={moment}", "HEAD").decode().strip()
        if not found:
            return PastNotes()
        if found not in self._known:
            self._known[found] = self._read(self._repository, found)
        return self._known[found]

    def _read(self, repository: Repository, commit: str) -> PastNotes:
        wanted = [
            one
            for one in repository.files(commit, self._inner)
            if one.mode != _LINK and (one.path in CURATED or _RULES.match(one.path) or _is_note(one.path))
        ]
        texts = {one.path: data[:_MAX_BYTES] for one, data in repository.read(wanted)}
        curated = dict.fromkeys(texts[name].decode("utf-8", "replace").strip() for name in CURATED if name in texts)
        rules = {path: data.decode("utf-8", "replace") for path, data in texts.items() if _RULES.match(path)}
        curated |= dict.fromkeys(text.strip() for path, text in rules.items() if _always_holds(path, text))
        files = {path: data for path, data in texts.items() if _is_note(path)}
        return PastNotes("\n\n".join(filter(None, curated)), files)


def _is_note(path: str) -> bool:
    """Return whether a vault of the project would hold a file."""
    return path in ("MEMORY.md", "institutional.md") or (
        path.startswith(_VAULT) and path.endswith(".md") and "/." not in path
    )


def _always_holds(path: str, rule: str) -> bool:
    """Return whether an agent gives its model a rule at every session, not only at some files."""
    if path.endswith(".mdc"):
        return "alwaysApply: true" in rule
    return not re.match(r"\ufeff?---\r?\n(?:.*\n)*?paths:", rule[:4_000])
