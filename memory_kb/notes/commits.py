"""What a commit of memories says: what was learned, what changed, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.notes.decisions import LoggedDecision, RunRecord
from memory_kb.text import shorten

_SUBJECT, _LINE = 72, 240
_MOST_LINES = 60
#: What is done to entries, in the order in which a message tells of it.
_GROUPS = ("learned", "changed", "promoted", "archived", "moved", "removed", "taken back")


class Told(NamedTuple):
    """An entry as a message names it."""

    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that was made, or would be.

    Attributes:
        repository: the folder of the working tree.
        commit: its hash; None where it was only asked for.
        files: what it holds, from the repository's top.
    """

    repository: str
    commit: str | None
    subject: str
    message: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitReport:
    """The commits of one call, one for each repository that has something to commit."""

    runs: tuple[str, ...]
    commits: tuple[Commit, ...] = ()
    notices: tuple[str, ...] = ()


class _Line(NamedTuple):
    group: str
    entry: Told
    path: str
    reasons: tuple[str, ...]


#: Tells what an entry is called, by the file that it stands in and its id.
Teller = Callable[[str, "str | None"], Told]


def compose_message(runs: Sequence[RunRecord], paths: frozenset[str], tell: Teller, subject: str | None = None) -> str:
    """Return the message for what some runs wrote to some files.

    Args:
        runs: oldest first.
        paths: the files of the commit, as paths stand in output.
        tell: names an entry.
        subject: the first line, where a person gave one.
    """
    lines = list(_gather(runs, paths, tell))
    told = [
        f"{sum(line.group == group for line in lines)} {group}"
        for group in _GROUPS
        if any(line.group == group for line in lines)
    ]
    if len(lines) == 1:
        told = [f"{lines[0].group} {lines[0].entry.title}"]
    occasions = list(dict.fromkeys(run.head.occasion for run in runs if run.head.occasion))
    about = f" ({_one_line(occasions[0])})" if len(occasions) == 1 else ""
    first = shorten(f"memory: {', '.join(told) or 'files'}", _SUBJECT - len(about)) + about
    body: list[str] = []
    for group in _GROUPS:
        chosen = [line for line in lines if line.group == group]
        if chosen:
            body += ["", f"{group[:1].upper()}{group[1:]}:", *(_say(line) for line in chosen)]
    if len(body) > _MOST_LINES:
        rest = sum(line.startswith("- ") for line in body[_MOST_LINES:])
        body = [*body[:_MOST_LINES], f"- and {rest} more"]
    return "\n".join((subject.strip() if subject and subject.strip() else first, *body)) + "\n"


def _say(line: _Line) -> str:
    why = " ".join(line.reasons)
    return shorten(f"- {line.entry.kind}: {line.entry.title} ({line.path}){f'. {why}' if why else ''}", _LINE)


def _gather(runs: Sequence[RunRecord], paths: frozenset[str], tell: Teller) -> Iterator[_Line]:
    """Yield every entry once, by the strongest thing that was done to it, with all reasons."""
    found: dict[tuple[str, str | None], list[tuple[str, LoggedDecision]]] = {}
    for run in runs:
        for one in run.decisions:
            is_made = one.path not in run.left and (one.to is None or one.to not in run.left)
            if is_made and (one.path in paths or one.to in paths):
                key = (one.entry_id or one.to or one.path, one.entry_id)
                found.setdefault(key, []).append((_group(one), one))
    for done in found.values():
        last = done[-1][1]
        path = last.to or last.path
        groups: Mapping[str, None] = dict.fromkeys(group for group, _ in done)
        group = next(name for name in _GROUPS if name in groups)
        reasons = tuple(dict.fromkeys(_one_line(one.reason) for _, one in done if one.reason))
        entry = tell(path, last.entry_id)
        yield _Line(group, Told(entry.kind, _one_line(entry.title)), _one_line(path), reasons)


def _group(one: LoggedDecision) -> str:
    if one.action.startswith("undo "):
        return "taken back"
    if one.action == "create":
        return "learned"
    if one.action == "move":
        return "archived" if "/archive/" in f"/{one.to}" else "promoted" if "/review/" in f"/{one.path}" else "moved"
    return "removed" if one.action == "remove" else "changed"


def _one_line(text: str) -> str:
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
