"""The verbs show, list, links, stats and status."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Unpack
from urllib.parse import quote

from memory_kb.errors import AmbiguousId, UnknownEntry, UsageError
from memory_kb.index.editor_catalog import (
    FoundHeading,
    Suggested,
    find_note_headings,
    suggest_names,
    suggest_tags,
)
from memory_kb.index.link_names import (
    DAY_PREFIX,
    aliases_of,
    file_names,
    has_words,
    link_keys,
    links_of,
    name_entries,
    named,
    read_metadata,
    resolve,
)
from memory_kb.index.note_chunks import decode_note
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import compare_with_disk, find_hidden_changes
from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.document import parse_document
from memory_kb.model import EVERYTHING, SCOPES, FilterWords, StoredEntry
from memory_kb.reports import EntryView, LinkReport, Reference, Stats, Status, VectorCount
from memory_kb.store.file_edits import read_note_text
from memory_kb.terms import to_nfc
from memory_kb.text import CHARS_PER_TOKEN, note_name, printable
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.entry_texts import EntryTally
    from memory_kb.index.vault_index import VaultIndex


#: The orders in which entries are listed.
ENTRY_ORDERS = ("newest", "oldest", "title", "path")
#: Holds for chunks that may have a link to a note.
_HAS_LINK = "(instr(content, '[[') OR content LIKE '%.md%')"
_PLACE = lazy_regex(r"(.+\.md)(?::(\d+))?$", re.IGNORECASE)


class Browsed(NamedTuple):
    """A page of the entries that pass a filter; `total` counts all of them."""

    entries: tuple[EntryView, ...]
    total: int


def view(entry: StoredEntry, text: str | None = None) -> EntryView:
    """Return a stored entry as it is shown."""
    return EntryView(
        id=entry.id,
        title=entry.title,
        kind=entry.kind,
        type=entry.type,
        scope=entry.scope,
        status=entry.status,
        path=entry.path,
        line=entry.line,
        end_line=entry.end_line,
        tags=tuple(entry.tags.split(",")) if entry.tags else (),
        dated=entry.dated,
        metadata=read_metadata(entry),
        text=text,
    )


def find_entry_by_name(vault: Vault, index: SqliteIndex, wanted: str) -> StoredEntry:
    """Return the entry with an id, a unique beginning of one, a place `path.md:LINE`, a title, an alias or a file name.

    Of the same id at several scopes the most specific one is meant.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    wanted = printable(wanted)
    place = _PLACE.match(wanted)
    inside = index.entries_of([place[1]]) if place else []
    if place and inside:
        return _find_at(vault, inside, int(place[2] or 1))
    begun = index.entries_with_id(wanted) if wanted else []
    exact = [entry for entry in begun if entry.id == wanted]
    found = exact or begun or _find_named(index, wanted)
    if not found:
        raise UnknownEntry(wanted)
    if len({entry.id for entry in found}) == 1:
        best = min(SCOPES.index(entry.scope) for entry in found)
        found = [entry for entry in found if SCOPES.index(entry.scope) == best]
    if len(found) > 1:
        has_begun = begun and not exact
        raise AmbiguousId(wanted, [entry.id if has_begun else f"{entry.path}:{entry.line}" for entry in found])
    return found[0]


def _find_named(index: SqliteIndex, wanted: str) -> list[StoredEntry]:
    """Return the entries of a title, else of an alias, else the first entry of every file of a name."""
    name = wanted.strip().casefold()
    entries = [] if not name else list(index.entries(EVERYTHING))
    titled = [one for one in entries if name in (one.title.casefold(), DAY_PREFIX.sub("", one.title).casefold())]
    called = titled or [one for one in entries if name in map(str.casefold, aliases_of(one))]
    files: dict[str, StoredEntry] = {}
    for one in () if called else entries:
        if name.removesuffix(".md") in file_names(one.path):
            files.setdefault(one.path, one)
    return called or list(files.values())


def explain_unread(vault: Vault, index: SqliteIndex, wanted: str) -> str | None:
    """Return why an existing file was not indexed; None for one that was, or for what is no file."""
    path = wanted if index.entries_of([wanted]) else wanted.rpartition(":")[0] or wanted
    if index.entries_of([path]) or index.entries_with_id(wanted):
        return None
    file = vault.resolve(path)
    if not os.path.lexists(file) or file.is_dir():
        return None
    said = (str(problem) for problem in compare_with_disk(vault, index).problems if problem.path == path)
    read = "files whose name ends in .md are read, outside of hidden folders and of what the setting ignore names"
    return next(said, f"{path} is no note of this vault: {read}")


def _find_at(vault: Vault, inside: list[StoredEntry], line: int) -> StoredEntry:
    """Return the entry of a file that a line belongs to, which may be one of its frontmatter."""
    source = inside[0].path
    text, _ = decode_note(read_note_text(vault, source).data)
    starts = [entry.line for entry in parse_document(text, source).entries]
    return inside[max(0, min(bisect_right(starts, line), len(inside)) - 1)]


def report_links(index: SqliteIndex, entry: StoredEntry) -> LinkReport:
    """Return the links of an entry, in both directions."""
    called = name_entries([entry])
    links = [
        (other, relation, target)
        for other, text in index.entries_with_texts(find_linking_files(index, entry))
        for relation, target in links_of(other, text)
        if other == entry or not called.keys().isdisjoint(link_keys(target, other.path))
    ]
    names = named(index, [(other.path, target) for other, _, target in links])
    outgoing: list[Reference] = []
    incoming: list[Reference] = []
    for other, relation, target in links:
        found = resolve(names, target, other.path)
        if other == entry:
            outgoing.append(Reference(relation, target, view(found) if found else None))
        elif found == entry:
            incoming.append(Reference(relation, target, view(other)))
    return LinkReport(view(entry), tuple(outgoing), tuple(incoming))


def find_linking_files(index: SqliteIndex, entry: StoredEntry) -> Collection[str]:
    """Return the files that may link to an entry, its own among them: to parse all of a large vault takes a minute."""
    names = (entry.id, DAY_PREFIX.sub("", entry.title), note_name(entry.path), *aliases_of(entry))
    words = {word for name in names for word in (to_nfc(name), quote(to_nfc(name)))}
    if not all(map(has_words, words)):
        return index.file_hashes()
    # The database knows the case of ASCII letters alone.
    parts = filter(None, names) if "".join(names).isascii() else ("[[",)
    in_fields = index.files_with_metadata(['"links"', *parts])
    return {entry.path, *in_fields, *index.files_saying(words, "content", _HAS_LINK)}


def _count(tally: Iterable[EntryTally], field: str) -> dict[str, int]:
    """Return the number of entries of each word in a field."""
    counts = Counter[str]()
    for row in tally:
        counts[getattr(row, field)] += row.entries
    return dict(counts.most_common())


class Listing:
    """The verbs show, list, links, stats and status."""

    def __init__(self, vault: Vault, index: VaultIndex) -> None:
        self._vault = vault
        self._index = index

    def show(self, wanted: str) -> EntryView:
        """Return an entry with its text as it is in its file, frontmatter included.

        It is named by its id, a unique beginning of one, `path.md:LINE`, its title, an alias or its file's name.
        """
        entry = self._index.read(lambda index: find_entry_by_name(self._vault, index, wanted))
        text, _ = decode_note(read_note_text(self._vault, entry.path).data)
        for parsed in parse_document(text, entry.path).entries:
            # The index has only the beginning of a long file, and made the id of an entry without one from that.
            if parsed.id == entry.id or not parsed.has_own_id:
                source = text[parsed.span.start : parsed.span.end]
                last = parsed.line + source.rstrip().count("\n")
                if parsed.line <= entry.line <= last + 1:
                    return view(entry._replace(line=parsed.line, end_line=last), source)
        raise UnknownEntry(wanted)

    def list(self, **filters: Unpack[FilterWords]) -> tuple[EntryView, ...]:
        """Return the entries that pass the filters of `search`, in path order."""
        chosen = self._index.filters(**filters)
        return self._index.read(lambda index: tuple(map(view, index.entries(chosen))))

    def browse(
        self,
        *,
        order: str = "newest",
        offset: int = 0,
        limit: int = 50,
        folder: str = "",
        **filters: Unpack[FilterWords],
    ) -> Browsed:
        """Return a page of the entries of a folder, and of those below it, that pass the filters of `search`."""
        if order not in ENTRY_ORDERS:
            raise UsageError(f"unknown order {order!r}", f"it may be {', '.join(ENTRY_ORDERS)}")
        chosen = self._index.filters(**filters)
        inside = f"{folder.strip('/')}/" if folder.strip("/") else ""
        found = self._index.read(lambda index: [one for one in index.entries(chosen) if one.path.startswith(inside)])
        if order == "title":
            found.sort(key=lambda one: one.title.casefold())
        elif order == "oldest":
            found.sort(key=lambda one: (one.dated is None, one.dated or ""))
        elif order == "newest":
            found.sort(key=lambda one: one.dated or "", reverse=True)
        start = max(0, offset)
        return Browsed(tuple(map(view, found[start : start + max(0, limit)])), len(found))

    def links(self, wanted: str) -> LinkReport:
        """Return what an entry links to and what links to it: typed relations, `[[wikilinks]]` and relative links."""
        return self._index.read(lambda index: report_links(index, find_entry_by_name(self._vault, index, wanted)))

    def follow(self, source: str, targets: Collection[str]) -> dict[str, EntryView]:
        """Return the entries that links such as `notes/tea` in a file lead to; those that lead nowhere are left out."""
        names = self._index.read(lambda index: named(index, [(source, target) for target in targets]))
        found = ((target, resolve(names, target, source)) for target in targets)
        return {target: view(entry) for target, entry in found if entry is not None}

    def suggest(self, word: str, most: int, *, of_tags: bool = False) -> tuple[Suggested, ...]:
        """Return names of entries that go with a word, with what links to each; or tags."""
        suggest = suggest_tags if of_tags else suggest_names
        return self._index.read(lambda index: suggest(index, word, most))

    def find_headings(self, words: str, limit: int) -> tuple[FoundHeading, ...]:
        """Return headings that hold all of some words, the shortest first, without those that are titles of entries."""
        return self._index.read(lambda index: find_note_headings(index, words, limit))

    def stats(self) -> Stats:
        """Return how much the vault holds, by kind, type, status and scope."""

        def count(index: SqliteIndex) -> Stats:
            tally = index.tally()
            chunks, characters = index.measure()
            kinds, types, statuses, scopes = (_count(tally, field) for field in ("kind", "type", "status", "scope"))
            tokens = -(-characters // CHARS_PER_TOKEN)
            entries = sum(row.entries for row in tally)
            return Stats(index.count_files(), entries, chunks, tokens, kinds, types, statuses, scopes)

        return self._index.read(count)

    def status(self, *, check: bool = False) -> Status:
        """Compare disk and index as they are, without changing either; with `check` every file is read."""
        return self._index.use(lambda index: self._compare(index, check=check))

    def _compare(self, index: SqliteIndex, *, check: bool) -> Status:
        changes = compare_with_disk(self._vault, index)
        hidden = find_hidden_changes(self._vault, index, {*changes.added, *changes.changed}) if check else ()
        indexed_at, held = index.read_meta("indexed_at"), index.vectors.space
        missing = len(index.vectors.missing(held)) if held else 0
        return Status(
            vault=str(self._vault.folder),
            home=str(self._vault.home),
            index=str(index.path),
            generation=index.generation,
            indexed_at=datetime.fromisoformat(indexed_at) if indexed_at else None,
            files=index.count_files() + len(changes.added) - len(changes.removed),
            added=changes.added,
            changed=tuple(sorted((*changes.changed, *hidden))),
            removed=changes.removed,
            problems=changes.problems,
            vectors=(VectorCount(*held, index.count_chunks() - missing, missing),) if held else (),
            team=self._index.team.describe() if self._vault.settings.index.url else None,
        )
