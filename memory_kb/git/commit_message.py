"""Compose the message of a commit: what some runs did to which entries, and why."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from memory_kb.store.journal import Run
from memory_kb.store.render_changes import Decision
from memory_kb.text import on_one_line, shorten

#: The most characters of the subject and of a line, and lines of the body.
_SUBJECT, _LINE = 72, 240
_MOST_LINES = 60
#: What is done to entries, in the order in which a message names them.
_GROUPS = ("learned", "changed", "promoted", "archived", "moved", "removed", "reverted")


class _Line(NamedTuple):
    """What was done to an entry, for a message: `text` is the line, `title` the entry."""

    group: str
    title: str
    text: str


#: Returns the kind and the title of an entry, by the file that it is in and its id.
EntryNamer = Callable[[str, "str | None"], tuple[str, str]]


def compose_message(runs: Sequence[Run], paths: frozenset[str], name_entry: EntryNamer, subject: str | None) -> str:
    """Return the message for what some runs wrote to some files."""
    lines = sorted(_gather(runs, paths, name_entry), key=lambda line: _GROUPS.index(line.group))
    topics = [f"{count} {group}" for group, count in Counter(line.group for line in lines).items()]
    if len(lines) == 1:
        topics = [f"{lines[0].group} {lines[0].title}"]
    occasions = list(dict.fromkeys(run.occasion for run in runs if run.occasion))
    about = f" ({on_one_line(occasions[0])})" if len(occasions) == 1 else ""
    first = shorten(f"memory: {', '.join(topics) or 'files'}", _SUBJECT - len(about)) + about
    body: list[str] = []
    for group, chosen in itertools.groupby(lines, key=lambda line: line.group):
        body += ["", f"{group.capitalize()}:", *(line.text for line in chosen)]
    if len(body) > _MOST_LINES:
        rest = sum(line.startswith("- ") for line in body[_MOST_LINES:])
        body = [*body[:_MOST_LINES], f"- and {rest} more"]
    return "\n".join((subject.strip() if subject and subject.strip() else first, *body)) + "\n"


def _gather(runs: Sequence[Run], paths: frozenset[str], name_entry: EntryNamer) -> Iterator[_Line]:
    """Yield every entry once, by the strongest thing that was done to it, with all reasons."""
    found: dict[str, list[Decision]] = {}
    for run in runs:
        for one in run.made:
            if one.path in paths or one.to in paths:
                found.setdefault(one.entry_id or one.to or one.path, []).append(one)
    for done in found.values():
        path = done[-1].to or done[-1].path
        kind, title = name_entry(path, done[-1].entry_id)
        why = " ".join(dict.fromkeys(on_one_line(one.reason) for one in done if one.reason))
        text = f"- {kind}: {on_one_line(title)} ({on_one_line(path)}){f'. {why}' if why else ''}"
        yield _Line(min(map(_group, done), key=_GROUPS.index), on_one_line(title), shorten(text, _LINE))


def _group(one: Decision) -> str:
    if one.action.startswith("undo "):
        return "reverted"
    if one.action == "create":
        return "learned"
    if one.action == "move":
        return "archived" if "/archive/" in f"/{one.to}" else "promoted" if "/review/" in f"/{one.path}" else "moved"
    return "removed" if one.action == "remove" else "changed"
