"""Find the files that a tool of an agent opened or edited, and what an edit would make of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.agents.payloads import HookCall
from memory_kb.lazy_regex import lazy_regex
from memory_kb.regular_files import read_text
from memory_kb.store.project_files import path_in_project
from memory_kb.store.session_events import named_file

if TYPE_CHECKING:
    from memory_kb.learning.guards import Edit

#: How Codex's patches begin.
_PATCH = "*** Begin Patch"
#: Programs that show the files they are given; Codex has no other tool to read one.
_SHOWS = lazy_regex(r"\s*(?:cat|head|less|nl|sed|tail)\s")
#: The words of a command that are looked at for a file.
_MAX_WORDS = 40
#: The most of a file that is read before an edit, in bytes.
_LONGEST_FILE = 1_000_000
#: What a patch of Codex does to a file, and lines of it that go and come in one place.
_PATCHED = lazy_regex(r"^\*\*\* (Add|Update) File: (.+)\n((?:(?!\*\*\* ).*\n?)*)", re.MULTILINE)
_CHANGED = lazy_regex(r"(?:^[-+].*\n?)+", re.MULTILINE)


def find_touched_file(call: HookCall, project: Path) -> str | None:
    """Return the one file of the project that a tool opened or edited, if it did not fail."""
    args = next((event.args for event in call.events if event.type == "tool_call" and event.args), None)
    if args is None or any(event.ok is False for event in call.events):
        return None
    here = Path(call.folders[0]) if call.folders else project
    command, paths = str(args.get("command")), list[str | None]()
    if named := named_file(args):
        paths = [path_in_project(named, project, here)]
    elif _SHOWS.match(command):
        words = re.findall(r"[^\s'\"|;&<>()]+", command)[1:_MAX_WORDS]
        paths = [path_in_project(word, project, here) for word in words if not word.startswith("-")]
    elif any(_PATCH in str(value) for value in args.values()):
        paths = [one.path for one in read_edits(args, project, here)]
    return next((path for path in paths if path and (project / path).is_file()), None)


def read_edits(args: Mapping[str, Any], project: Path, here: Path | None) -> list[Edit]:
    """Return what a tool would do to files of a project, each with its text before and after."""
    from memory_kb.learning.guards import Edit

    texts = (text for text in args.values() if isinstance(text, str))
    patch = next((text for text in texts if text.lstrip().startswith(_PATCH)), None)
    named = named_file(args)
    changes = _read_patch(patch) if patch else iter([(named, args)] if named else [])
    edits = list[Edit]()
    for name, change in changes:
        if path := path_in_project(name, project, here or project):
            before = read_text(project / path, _LONGEST_FILE)
            edits.append(Edit(path, before, _apply(change, before)))
    return edits


def _apply(change: Mapping[str, Any], before: str) -> str:
    """Return a file's text after a change; what is replaced may be anywhere in it."""
    if (whole := _first_text(change, "content", "file_text")) is not None:
        return whole
    if isinstance(change.get("new_source"), str):
        return f"{before}\n{change['new_source']}"
    pairs = change.get("edits")
    after = before
    for pair in pairs if isinstance(pairs, list) else [change]:
        old, new = _first_text(pair, "old_string", "old_str"), _first_text(pair, "new_string", "new_str")
        if old is not None and new is not None:
            after = after.replace(old, new) if old and old in after else f"{after}\n{new}"
    return after


def _first_text(values: object, *names: str) -> str | None:
    """Return the first text under some names, of which each agent has its own."""
    texts = (values.get(name) for name in names) if isinstance(values, Mapping) else ()
    return next((text for text in texts if isinstance(text, str)), None)


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
