"""Decide which files a run may write: notes in the vault's own folders, never through links out of it.

Every write, recovery, undo and import calls `find_target` before it opens a file, since the path may come
from a log, a plan or an archive that somebody else made.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path, PurePath

from memory_kb.errors import UnreadableInput
from memory_kb.text import on_one_line
from memory_kb.vault import HOME_NOTE, Vault

#: Hidden files that belong to a job, and nothing else hidden is written.
_HIDDEN = frozenset({".premortem.md", ".assumptions.jsonl", ".current-stage"})


def find_target(vault: Vault, path: str, others: Collection[str] = ()) -> Path:
    """Return the file to write for a path as it is in output.

    `others` are ends of paths that are written though they are no notes, such as `.claude/settings.json`.

    Raises:
        UnreadableInput: no run may write there.
    """
    reason = explain_unsafe(vault, path, others)
    if reason:
        raise UnreadableInput(
            f"{on_one_line(path)} is not written: {reason}",
            "memory-kb writes notes inside the vault only; where a link is meant, name the folder itself with --vault",
        )
    return vault.resolve(path)


def explain_unsafe(vault: Vault, path: str, others: Collection[str] = ()) -> str | None:
    """Return why no run may write to a path, or None where it may."""
    if "\0" in path:
        return "there is a NUL in the path"
    root, inner = vault.split(path)
    try:
        file = vault.resolve(path)
        real = Path(os.path.realpath(file))
        if path == HOME_NOTE and vault.home_note:
            return None if real == Path(os.path.realpath(file.parent)) / file.name else "it is a link"
        if os.path.isabs(inner) or not file.is_relative_to(root):
            return "the path is not relative"
        reason = explain_parts(file.relative_to(root).parts, others)
        if reason:
            return reason
        top = Path(os.path.realpath(root))
        if not real.is_relative_to(top):
            return f"a link leads out of {root}, to {on_one_line(str(real))}"
        reason = explain_parts(real.relative_to(top).parts, others)
        if reason:
            return f"a link leads to {on_one_line(str(real))}, and {reason}"
        return None if _is_kind(real, top, others) else "it is no kind of file that memory-kb writes"
    except (OSError, ValueError) as exc:
        return getattr(exc, "strerror", None) or str(exc)


def explain_parts(parts: Sequence[str], others: Collection[str] = ()) -> str | None:
    """Return why no run may write to a path below a root that has these parts, or None where it may.

    Example:
        >>> explain_parts(("rules", "a.md")), explain_parts((".claude", "settings.json"), [".claude/settings.json"])
        (None, None)
        >>> explain_parts(("..", "a.md")), explain_parts((".git", "hooks", "x.md"))
        ('the path leads out of its folder', 'it is hidden: .git')
    """
    if not parts or ".." in parts:
        return "the path leads out of its folder"
    known = max(_count_known(parts, others), int(parts[-1] in _HIDDEN))
    for part in parts[: len(parts) - known]:
        # Some file systems leave out characters without a width, and `git~1` is the short name of `.git`.
        plain = "".join(sign for sign in part if unicodedata.category(sign) != "Cf").strip()
        if plain.startswith(".") or plain.casefold().startswith("git~"):
            return f"it is hidden: {on_one_line(part)}"
        if os.name == "nt" and ":" in part:
            return "there is a colon in the name"
    return None


def _is_kind(file: Path, top: Path, others: Collection[str]) -> bool:
    """Return whether a file is a note, belongs to a job, or is one of those that go with a skill."""
    if file.is_dir():
        return False
    if file.suffix.lower() == ".md" or file.name in _HIDDEN or _count_known(file.parts, others):
        return True
    around = file.relative_to(top).parts[:-1]
    return "skills" in around or any(
        (top.joinpath(*around[: count - 1], f"{around[count - 1]}.md")).is_file() for count in range(1, len(around) + 1)
    )


def _count_known(parts: Sequence[str], others: Collection[str]) -> int:
    """Return how many parts at the end are the path of one of `others`."""
    tails = (PurePath(one).parts for one in others)
    return max((len(tail) for tail in tails if tuple(parts[-len(tail) :]) == tail), default=0)
