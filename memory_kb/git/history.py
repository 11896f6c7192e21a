"""List the versions of an entry in commits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.git.repository import Repository
from memory_kb.markdown.document import display_title, parse_document
from memory_kb.text import decode

#: Commits that are looked at.
MOST_COMMITS = 500
#: Fields whose change is no news beside others.
_COUNTED = (
    "reinforcement_count",
    "last_reinforced",
    "usage_count",
    "last_applied",
    "success_count",
    "failure_count",
    "confidence",
)
#: Longer values are not quoted.
_LONGEST_VALUE = 40


@dataclass(frozen=True, slots=True)
class Version:
    """An entry as a commit left it.

    Attributes:
        time: when it was committed, with its offset.
        change: what became of it, in words.
        path: its file then, from the repository's top.
        text: its source then; None where the commit took it out.
    """

    commit: str
    time: str
    author: str
    subject: str
    path: str
    change: str
    text: str | None


class Sought(NamedTuple):
    """What distinguishes an entry from the others of its file."""

    id: str
    has_own_id: bool
    title: str


def trace(repository: Repository, path: str, sought: Sought, most: int = MOST_COMMITS) -> tuple[Version, ...]:
    """Return the versions of an entry, the newest first, through renames of its file."""
    versions: list[Version] = []
    before: str | None = None
    old_path = ""
    for commit, time, author, subject, name in reversed(repository.log(path, most)):
        data = repository.blob(commit, name) if name else None
        text = None if data is None else find_text(decode(data), name, sought)
        if text != before or (text is not None and name != old_path):
            change = describe_change(before, text, is_moved=bool(old_path) and name != old_path)
            versions.append(Version(commit, time, author, subject, name or old_path, change, text))
        before, old_path = text, name or old_path
    return tuple(reversed(versions))


def find_text(text: str, path: str, sought: Sought) -> str | None:
    """Return an entry's source from a file's text, or None if it is not there.

    Example:
        >>> find_text("---\\nid: a\\n---\\nOne.\\n\\n---\\nid: b\\n---\\nTwo.\\n", "x.md", Sought("b", True, ""))
        '---\\nid: b\\n---\\nTwo.'
    """
    entries = parse_document(text, path).entries
    for one in entries:
        body = text[one.body.start : one.body.end]
        if sought.has_own_id:
            is_it = one.id == sought.id
        else:
            is_it = len(entries) == 1 or display_title(one, body, path, is_only=False) == sought.title
        if is_it:
            return text[one.span.start : one.span.end].rstrip()
    return None


def describe_change(before: str | None, after: str | None, *, is_moved: bool = False) -> str:
    """Return in words what became of an entry.

    Example:
        >>> describe_change("---\\nid: a\\nstatus: active\\n---\\nOne.", "---\\nid: a\\nstatus: retired\\n---\\nTwo.")
        'status active -> retired; text changed'
        >>> describe_change(None, "One."), describe_change("One.", None)
        ('written', 'taken out')
    """
    if after is None:
        return "taken out"
    if before is None:
        return "written"
    old, new = (parse_document(text, "x.md").entries[0] for text in (before, after))
    names = [name for name in {**old.metadata, **new.metadata} if old.metadata.get(name) != new.metadata.get(name)]
    changes = ["moved"] if is_moved else []
    changes += [
        _say_field(name, old.metadata.get(name), new.metadata.get(name)) for name in names if name not in _COUNTED
    ]
    if any(name in _COUNTED for name in names):
        changes.append("use counted")
    if before[old.body.start :].strip() != after[new.body.start :].strip():
        changes.append("text changed")
    return "; ".join(changes) or "set out differently"


def _say_field(name: str, old: object, new: object) -> str:
    if new is None:
        return f"{name} taken out"
    if any(isinstance(value, list | dict) or len(str(value)) > _LONGEST_VALUE for value in (old, new)):
        return f"{name} changed"
    return f"{name} {new}" if old is None else f"{name} {old} -> {new}"
