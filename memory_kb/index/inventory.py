"""What a vault holds, without ranking it.

That is entries, their links, counts, and how fresh the index is.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from memory_kb.errors import AmbiguousId, UnknownEntry
from memory_kb.filters import EVERYTHING
from memory_kb.globs import Ignore
from memory_kb.index.comparing import has_same_bytes
from memory_kb.index.indexer import survey
from memory_kb.index.reading import decode
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import Filters
from memory_kb.notes.changes import read_note_text
from memory_kb.notes.entries import parse_document
from memory_kb.notes.fields import read_words
from memory_kb.notes.vault import Vault
from memory_kb.notes.walk import walk
from memory_kb.notes.wikilinks import find_wikilinks
from memory_kb.ports import StoredEntry
from memory_kb.reports import EntryView, LinkReport, Reference, Stats, Status, VectorCount
from memory_kb.settings import Settings
from memory_kb.text import CHARS_PER_TOKEN, printable
from memory_kb.words import SCOPES

_PLACE = re.compile(r"(.+\.md)(?::(\d+))?$", re.IGNORECASE)
_DAY = re.compile(r"^\[\d{4}-\d{2}-\d{2}\]\s*")


def view(entry: StoredEntry, text: str | None = None) -> EntryView:
    """Return a stored entry as it is shown."""
    return EntryView(
        id=entry.entry_id,
        title=entry.title,
        kind=entry.kind,
        type=entry.type,
        scope=entry.scope,
        status=entry.status,
        path=entry.source,
        line=entry.line,
        end_line=entry.end_line,
        tags=tuple(entry.tags.split(",")) if entry.tags else (),
        dated=entry.dated,
        metadata=read_metadata(entry),
        text=text,
    )


def read_metadata(entry: StoredEntry) -> dict[str, Any]:
    """Return an entry's frontmatter."""
    return json.loads(entry.metadata) if entry.metadata else {}


def list_entries(index: SqliteIndex, filters: Filters) -> tuple[EntryView, ...]:
    """Return the entries that pass the filters, in path order."""
    return tuple(view(entry) for entry in index.entries(filters))


def find(vault: Vault, index: SqliteIndex, wanted: str) -> StoredEntry:
    """Return the entry that an id, its unique beginning or `path.md:LINE` names.

    Of the same id at several scopes the most specific one is meant.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    wanted = printable(wanted)
    place = _PLACE.match(wanted)
    inside = index.entries_in(place[1]) if place else []
    if place and inside:
        return _find_at(vault, inside, int(place[2] or 1))
    found = index.entries_with_id(wanted) if wanted else []
    exact = [entry for entry in found if entry.entry_id == wanted]
    found = exact or found
    if not found:
        raise UnknownEntry(wanted)
    best = min(SCOPES.index(entry.scope) for entry in found)
    found = (
        [entry for entry in found if SCOPES.index(entry.scope) == best]
        if len({entry.entry_id for entry in found}) == 1
        else found
    )
    if len(found) > 1:
        raise AmbiguousId(wanted, [f"{entry.source}:{entry.line}" if exact else entry.entry_id for entry in found])
    return found[0]


def explain_unread(vault: Vault, settings: Settings, index: SqliteIndex, wanted: str) -> str | None:
    """Return why a file that is there was not indexed; None for anything that was, or is no file."""
    path = wanted if index.entries_in(wanted) else wanted.rpartition(":")[0] or wanted
    if index.entries_in(path) or index.entries_with_id(wanted):
        return None
    file = vault.resolve(path)
    if not os.path.lexists(file) or file.is_dir():
        return None
    said = [str(problem) for problem in survey(vault, index, settings).problems if problem.path == path]
    if said:
        return said[0]
    if file.suffix.lower() != ".md":
        return f"{path} is no Markdown file; only names that end in .md are read"
    if any(part.startswith(".") for part in path.split("/")):
        return f"{path} is hidden; files and folders whose name starts with a dot are not read"
    if Ignore(settings.ignore).covers(path) or any(
        Ignore(settings.ignore).covers(str(parent)) for parent in PurePosixPath(path).parents
    ):
        return f"{path} is left out by the setting ignore: {', '.join(settings.ignore)}"
    return f"{path} is no note of this vault; `memory-kb status` shows where it looks"


def _find_at(vault: Vault, inside: list[StoredEntry], line: int) -> StoredEntry:
    """Return the entry of a file that a line belongs to.

    Frontmatter lines belong to their entry.
    """
    source = inside[0].source
    text, _ = decode(read_note_text(source, vault.resolve(source)).data)
    starts = [entry.line for entry in parse_document(text, source).entries]
    return inside[max(0, min(bisect_right(starts, line), len(inside)) - 1)]


def show(vault: Vault, index: SqliteIndex, wanted: str) -> EntryView:
    """Return an entry with its text as it stands in its file.

    The frontmatter is included.
    """
    entry = find(vault, index, wanted)
    note = read_note_text(entry.source, vault.resolve(entry.source))
    text, _ = decode(note.data)
    for parsed in parse_document(text, entry.source).entries:
        if parsed.id == entry.entry_id:
            source = text[parsed.span.start : parsed.span.end]
            last = parsed.line + source.rstrip().count("\n")
            if parsed.line <= entry.line <= last + 1:
                return view(entry._replace(line=parsed.line, end_line=last), source)
    raise UnknownEntry(wanted)


def links(vault: Vault, index: SqliteIndex, wanted: str) -> LinkReport:
    """Return the links of an entry in both directions."""
    entry = find(vault, index, wanted)
    entries = list(index.entries(EVERYTHING))
    names = name_entries(entries)
    linking = index.linking_contents()
    outgoing = tuple(
        Reference(relation, target, view(names[target.casefold()]) if target.casefold() in names else None)
        for relation, target in links_of(entry, linking.get((entry.source, entry.entry_id), ""))
    )
    incoming = tuple(
        Reference(relation, target, view(other))
        for other in entries
        if other != entry
        for relation, target in links_of(other, linking.get((other.source, other.entry_id), ""))
        if names.get(target.casefold()) == entry
    )
    return LinkReport(view(entry), outgoing, incoming)


def links_of(entry: StoredEntry, text: str) -> Iterator[tuple[str, str]]:
    """Yield the `(relation, target)` pairs of an entry.

    Its typed links come first, then the wikilinks of its text.
    """
    listed = read_metadata(entry).get("links")
    for link in listed if isinstance(listed, list) else ():
        if isinstance(link, dict) and link.get("to") is not None:
            yield str(link.get("relation") or "related_to"), str(link["to"])
    for target in dict.fromkeys(link.target for link in find_wikilinks(text) if not link.is_attachment):
        yield "mentions", target


def name_entries(entries: list[StoredEntry]) -> dict[str, StoredEntry]:
    """Return what a link may call each entry.

    That is its id, its file's path or the end of it, its title, or an alias; where two entries are called
    the same, this is the order in which they win. Files come before titles, as other readers of notes have it.
    """
    names: dict[str, StoredEntry] = {}
    paths = [(entry, file_names(entry.source)) for entry in entries]
    for is_whole in (True, False):
        for entry, (whole, *ends) in paths:
            for name in (whole,) if is_whole else ends:
                names.setdefault(name, entry)
                names.setdefault(f"{name}.md", entry)
    for entry in entries:
        for name in (entry.title, _DAY.sub("", entry.title)):
            names.setdefault(name.casefold(), entry)
    for entry in entries:
        if entry.metadata and '"alias' in entry.metadata:
            for alias in aliases_of(entry):
                names.setdefault(alias.casefold(), entry)
    by_scope = sorted(entries, key=lambda entry: -SCOPES.index(entry.scope))
    return names | {entry.entry_id.casefold(): entry for entry in by_scope}


def file_names(path: str) -> tuple[str, ...]:
    """Return what a link may call a file, in lower case: its path, and every end of it down to the name alone.

    Example:
        >>> file_names("Notes/sub/Tea.md")
        ('notes/sub/tea', 'sub/tea', 'tea')
    """
    bare = path.casefold().removesuffix(".md")
    return (bare, *(bare[place + 1 :] for place, sign in enumerate(bare) if sign == "/"))


def stem_of(path: str) -> str:
    """Return the name of a file alone, in lower case."""
    return file_names(path)[-1]


def count_stems(entries: Iterable[StoredEntry]) -> Counter[str]:
    """Return how many files are called by each name."""
    return Counter(stem_of(path) for path in {entry.source for entry in entries})


def aliases_of(entry: StoredEntry) -> tuple[str, ...]:
    """Return the further names of an entry, as Obsidian has them."""
    metadata = read_metadata(entry)
    return read_words(metadata.get("aliases", metadata.get("alias")))


def stats(index: SqliteIndex) -> Stats:
    """Count what the vault holds."""
    entries = list(index.entries(EVERYTHING))
    chunks, characters = index.measure()
    return Stats(
        files=index.count_files(),
        entries=len(entries),
        chunks=chunks,
        tokens=-(-characters // CHARS_PER_TOKEN),
        kinds=_tally(entry.kind for entry in entries),
        types=_tally(entry.type for entry in entries),
        statuses=_tally(entry.status for entry in entries),
        scopes=_tally(entry.scope for entry in entries),
    )


def _tally(words: Iterator[str]) -> dict[str, int]:
    return dict(Counter(words).most_common())


def status(vault: Vault, index: SqliteIndex, settings: Settings, *, check: bool = False) -> Status:
    """Hold the index against the disk, file by file; with `check` by their bytes, else by size and time."""
    changes = survey(vault, index, settings)
    hidden = _hidden_changes(vault, index, settings, {*changes.added, *changes.changed}) if check else ()
    indexed_at = index.read_meta("indexed_at")
    return Status(
        vault=str(vault.folder),
        home=str(vault.home),
        index=str(index.path),
        generation=index.generation,
        indexed_at=datetime.fromisoformat(indexed_at) if indexed_at else None,
        files=changes.files,
        added=changes.added,
        changed=tuple(sorted((*changes.changed, *hidden))),
        removed=changes.removed,
        problems=changes.problems,
        vectors=tuple(_count_vectors(index)),
    )


def _hidden_changes(vault: Vault, index: SqliteIndex, settings: Settings, seen: set[str]) -> Iterator[str]:
    """Yield the files whose bytes changed though size and time are as they were."""
    known = {one.path: one for is_global in (False, True) for one in index.known_files(is_global=is_global)}
    for file in walk(vault, settings.ignore, []):
        if file.path not in seen and not has_same_bytes(file, known.get(file.path), settings):
            yield file.path


def _count_vectors(index: SqliteIndex) -> Iterator[VectorCount]:
    for shelf in index.vectors.shelves():
        missing = index.vectors.count_missing(shelf)
        yield VectorCount(*shelf.space, index.measure()[0] - missing, missing)
