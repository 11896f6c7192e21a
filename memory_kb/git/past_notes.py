"""Read a project's own notes as they were at a given time, from git."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from memory_kb.errors import MemoryKBError
from memory_kb.git.past import choose
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
        """Return the notes of a commit; links to other files count once, as those files."""
        blobs = [one for one in repository.files(commit, self._inner) if one.mode != _LINK]
        notes = {one.path for one in choose(blobs, is_memory=True) if one.path.endswith(".md")}
        wanted = [one for one in blobs if one.path in CURATED or one.path in notes or _RULES.match(one.path)]
        texts = {one.path: data[:_MAX_BYTES] for one, data in repository.read(wanted)}
        words = {path: data.decode("utf-8", "replace").strip() for path, data in texts.items()}
        curated = [words[name] for name in CURATED if name in words]
        curated += [text for path, text in words.items() if _RULES.match(path) and _always_holds(path, text)]
        files = {path: data for path, data in texts.items() if path in notes}
        return PastNotes("\n\n".join(filter(None, dict.fromkeys(curated))), files)


def _always_holds(path: str, rule: str) -> bool:
    """Return whether an agent gives its model a rule at every session, not only at some files."""
    if path.endswith(".mdc"):
        return "alwaysApply: true" in rule
    return not re.match(r"\ufeff?---\r?\n(?:.*\n)*?paths:", rule[:4_000])
