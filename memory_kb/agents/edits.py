"""Compute what an edit that an agent is about to make does to files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from memory_kb.agents.payloads import FILE_ARGUMENTS, PATCH
from memory_kb.learning.guards import LONGEST_FILE, Edit
from memory_kb.plainfiles import read_plain
from memory_kb.store.project import locate

#: What a patch of Codex does to a file, and lines of it that go and come in one place.
_PATCHED = re.compile(r"^\*\*\* (Add|Update) File: (.+)\n((?:(?!\*\*\* ).*\n?)*)", re.MULTILINE)
_CHANGED = re.compile(r"(?:^[-+].*\n?)+", re.MULTILINE)


def read_edits(args: Mapping[str, Any], project: Path, here: Path | None = None) -> list[Edit]:
    """Return what a tool would do to files of a project, each with its text before and after."""
    texts = (args.get(name) for name in ("command", "input", "patch", "value"))
    patch = next((text for text in texts if isinstance(text, str) and text.lstrip().startswith(PATCH)), None)
    named = next((args[name] for name in FILE_ARGUMENTS if isinstance(args.get(name), str)), None)
    changes = _read_patch(patch) if patch else iter([(named, args)] if named else [])
    edits = list[Edit]()
    for name, change in changes:
        path = locate(name, project, here or project)
        if path:
            before = _read(project / path)
            edits.append(Edit(path, before, _apply(change, before)))
    return edits


def _apply(change: Mapping[str, Any], before: str) -> str:
    """Return a file's text after a change; what is replaced may be anywhere in it."""
    if isinstance(change.get("content"), str):
        return str(change["content"])
    if isinstance(change.get("new_source"), str):
        return f"{before}\n{change['new_source']}"
    pairs = change.get("edits")
    after = before
    for pair in pairs if isinstance(pairs, list) else [change]:
        old, new = (pair.get(name) if isinstance(pair, Mapping) else None for name in ("old_string", "new_string"))
        if isinstance(old, str) and isinstance(new, str):
            after = after.replace(old, new) if old and old in after else f"{after}\n{new}"
    return after


def _read_patch(patch: str) -> Iterator[tuple[str, dict[str, Any]]]:
    r"""Yield the files of a patch, each with its lines that go and those that come.

    Example:
        >>> list(_read_patch("*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch\n"))
        [('a.py', {'edits': [{'old_string': 'x', 'new_string': 'y'}]})]
    """
    for verb, name, body in _PATCHED.findall(patch):
        runs = [run[0].splitlines() for run in _CHANGED.finditer(body)]
        pairs = [{"old_string": _side(run, "-"), "new_string": _side(run, "+")} for run in runs]
        yield name.strip(), {"content": pairs[0]["new_string"] if pairs else ""} if verb == "Add" else {"edits": pairs}


def _side(run: list[str], sign: str) -> str:
    return "\n".join(line[1:] for line in run if line.startswith(sign))


def _read(file: Path) -> str:
    try:
        with read_plain(file) as stream:
            return stream.read(LONGEST_FILE).decode("utf-8", "replace")
    except OSError:
        return ""
