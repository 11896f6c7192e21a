"""List the versions of an entry in commits and runs."""

from __future__ import annotations

from dataclasses import dataclass

from memory_kb.git.repository import Repository
from memory_kb.markdown.document import parse_document
from memory_kb.text import decode, readable_name

#: Commits that are looked at.
MOST_COMMITS = 500


@dataclass(frozen=True, slots=True)
class Version:
    """An entry as a commit left it."""

    commit: str
    time: str
    author: str
    subject: str
    path: str
    change: str
    text: str | None


def find_versions(repository: Repository, path: str, entry_id: str | None, most: int) -> tuple[Version, ...]:
    """Return the versions of an entry in the commits of its file, whatever that was called, the newest first.

    An entry without an id is all that its file holds.
    """
    versions: list[Version] = []
    before: str | None = None
    old_path = ""
    for commit in reversed(repository.log(path, most)):
        data = repository.blob(commit.hash, commit.path) if commit.path else None
        text = None if data is None else _find_text(decode(data), commit.path, entry_id)
        path_then = commit.path or old_path
        if text != before or (text is not None and path_then != old_path):
            change = _describe_change(before, text, is_moved=bool(old_path) and path_then != old_path)
            name = readable_name(path_then)
            versions.append(Version(commit.hash, commit.time, commit.author, commit.subject, name, change, text))
        before, old_path = text, path_then
    return tuple(reversed(versions))


def _find_text(text: str, path: str, entry_id: str | None) -> str | None:
    """Return an entry's source from a file's text, or None if it is not there."""
    entries = parse_document(text, path).entries
    found = next((one for one in entries if one.id == entry_id or (entry_id is None and len(entries) == 1)), None)
    return text[found.span.start : found.span.end].rstrip() if found else None


def _describe_change(before: str | None, after: str | None, *, is_moved: bool) -> str:
    """Return in words how an entry changed."""
    if after is None:
        return "taken out"
    if before is None:
        return "written"
    old, new = (parse_document(text, "x.md").entries[:1] for text in (before, after))
    changes = ["moved"] if is_moved else []
    if not old or not new:
        return "; ".join([*changes, "text changed"])
    was, now = old[0].metadata, new[0].metadata
    names = [name for name in dict.fromkeys((*was, *now)) if was.get(name) != now.get(name)]
    changes += [_say_field(name, was.get(name), now.get(name)) for name in names]
    if before[old[0].body.start :].strip() != after[new[0].body.start :].strip():
        changes.append("text changed")
    return "; ".join(changes) or "set out differently"


def _say_field(name: str, old: object, new: object) -> str:
    if any(isinstance(value, (list, dict)) or len(str(value)) > 40 for value in (old, new)):
        return f"{name} changed"
    if new is None:
        return f"{name} taken out"
    return f"{name} {new}" if old is None else f"{name} {old} -> {new}"
