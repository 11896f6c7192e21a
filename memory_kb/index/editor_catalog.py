"""All entries and links of a vault at once, for editors: completion, backlinks, and texts that are not saved yet."""

from __future__ import annotations

import heapq
import itertools
import posixpath
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from memory_kb.index.entry_texts import make_memory
from memory_kb.index.link_names import (
    aliases_of,
    entries_named,
    file_names,
    group_stems,
    links_of,
    name_entries,
    named,
    read_metadata,
    resolve,
    stem_of,
)
from memory_kb.index.note_chunks import RawNote, read_note
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.headings import find_headings
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, FileStat, StoredEntry
from memory_kb.terms import name_key
from memory_kb.text import encode, hash_of, note_name
from memory_kb.vault import place_of_path

#: Characters that cannot be in a link.
UNFIT = frozenset("[]|#^\\\n")


class Called(NamedTuple):
    """An entry under one of its names: the name as it is shown, and the texts in lower case that find it."""

    label: str
    found_by: str
    entry: StoredEntry


class IncomingLink(NamedTuple):
    """A link of another entry to one: that entry, the relation, and the name that the link uses."""

    entry: StoredEntry
    relation: str
    target: str


@dataclass(frozen=True)
class Catalog:
    """The entries of a vault, by what links may call each of them, in one state of the index.

    `links` has the relations and targets of each entry that has any, by path and first line; `hashes` those of files.
    """

    generation: int
    entries: tuple[StoredEntry, ...]
    names: Mapping[str, StoredEntry] = field(default_factory=dict)
    links: Mapping[tuple[str, int], tuple[tuple[str, str], ...]] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)

    def resolve(self, target: str, source: str = "") -> StoredEntry | None:
        """Return the entry that a link in a file leads to."""
        return resolve(self.names, target, source)

    def resolve_file(self, target: str, source: str = "") -> str | None:
        """Return the file that a link in a file leads to."""
        found = self.resolve(target, source)
        return found.path if found else None

    def files_around(self, paths: Collection[str]) -> tuple[str, ...]:
        """Return some files, and those with links to them."""
        mine = (entry for entry in self.entries if entry.path in paths)
        linking = {one.entry.path for entry in mine for one in self.incoming(entry)}
        return tuple(dict.fromkeys([*paths, *sorted(linking)]))

    def kept_names(self, path: str, entry_id: str, way: str) -> frozenset[str]:
        """Return the names, in lower case, that an entry keeps when its `id`, `title`, `heading` or `alias` changes.

        These are the names of its file, which every reader of notes knows, and its aliases.
        """
        entry = self.entry(path, entry_id)
        aliases = [name_key(alias) for alias in aliases_of(entry)] if entry and way != "alias" else []
        files = file_names(path)
        return frozenset(
            name
            for name in (*files, *(f"{one}.md" for one in files), *aliases)
            if self.names.get(name) in (None, entry)
        )

    def entry(self, path: str, entry_id: str) -> StoredEntry | None:
        """Return the entry of a file with an id."""
        return next((entry for entry in self.ids.get(entry_id, ()) if entry.path == path), None)

    def way_of(self, entry: StoredEntry, target: str) -> str:
        """Return by which of its names a link leads to an entry: `id`, `file`, `title` or `alias`."""
        name = name_key(target.strip())
        if name == entry.id.casefold():
            return "id"
        if posixpath.basename(name).removesuffix(".md") == stem_of(entry.path):
            return "file"
        return "alias" if name in map(name_key, aliases_of(entry)) and name != name_key(entry.title) else "title"

    def incoming(self, entry: StoredEntry) -> tuple[IncomingLink, ...]:
        """Return the links of other entries to one."""
        found = self._incoming.get((entry.path, entry.line), ())
        return tuple(one for one in found if one.entry != entry)

    @cached_property
    def _incoming(self) -> Mapping[tuple[str, int], list[IncomingLink]]:
        found: dict[tuple[str, int], list[IncomingLink]] = defaultdict(list)
        for other in self.entries:
            for relation, target in self.links.get((other.path, other.line), ()):
                entry = self.resolve(target, other.path)
                if entry is not None:
                    found[entry.path, entry.line].append(IncomingLink(other, relation, target))
        return found

    @cached_property
    def tags(self) -> Mapping[str, int]:
        """How often each tag is used."""
        held = (f"{entry.tags},{entry.text_tags}" for entry in self.entries if entry.tags or entry.text_tags)
        return Counter(tag for tags in held for tag in dict.fromkeys(tags.split(",")) if tag)

    @cached_property
    def ids(self) -> Mapping[str, list[StoredEntry]]:
        """The entries of each id."""
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.id, []).append(entry)
        return found

    @cached_property
    def searchable(self) -> tuple[Called, ...]:
        """Every entry by each of its names, for completion."""
        return tuple(called for entry in self.entries for called in _names_of(entry))

    @cached_property
    def stems(self) -> Mapping[str, Sequence[str]]:
        """The paths of the files of each name."""
        return group_stems(self.entries)

    def is_alone(self, path: str) -> bool:
        """Return whether no other file is called like this one."""
        return len(self.stems.get(stem_of(path), ())) <= 1

    def link_name(self, entry: StoredEntry) -> str:
        """Return the name by which most readers of notes follow a link to an entry.

        That is its file's name where no other file is called so, else its path, and its id where
        that is its own; what is below another entry of its file has only an id and a title.
        """
        stem, path = note_name(entry.path), entry.path.removesuffix(".md")
        own = read_metadata(entry).get("id") is not None
        names = (
            stem if self.is_alone(entry.path) else "",
            entry.id if own else "",
            "" if path.startswith("~") else path,
            entry.title,
        )
        fitting = (name for name in names if name and not UNFIT & set(name) and self.resolve(name) == entry)
        return next(fitting, entry.id)


def _names_of(entry: StoredEntry) -> Iterator[Called]:
    """Yield an entry by its title, its aliases and its file.

    A name that was made from the title and the id, as `learn` names files, means nothing to a person
    that the title does not.
    """
    stem = note_name(entry.path)
    is_made = stem.endswith(entry.id[:8])
    more = f"\n{stem}" if is_made else ""
    yield Called(entry.title, f"{entry.title}\n{entry.id}{more}".casefold(), entry)
    for label in dict.fromkeys([*([] if is_made else [stem]), *aliases_of(entry)]):
        if label and label != entry.title:
            yield Called(label, label.casefold(), entry)


def find_names(catalog: Catalog, word: str, most: int) -> list[Called]:
    """Return the entries by those of their names that go with a word, those that begin with it first."""
    wanted = word.casefold().strip()
    if not wanted:
        return heapq.nlargest(most, catalog.searchable, key=lambda called: called.entry.dated or "")
    parts = wanted.split()

    def names_of(called: Called) -> str:
        return f"{called.found_by}\n{called.entry.path.casefold()}" if "/" in wanted else called.found_by

    def rank(called: Called) -> tuple[int, int]:
        names = names_of(called)
        begins = names.startswith(wanted) or f"\n{wanted}" in names
        return 0 if begins else 1 if f" {wanted}" in names else 2, len(names)

    found = (called for called in catalog.searchable if all(part in names_of(called) for part in parts))
    return heapq.nsmallest(most, found, key=rank)


class Suggested(NamedTuple):
    """A name or a tag to show, and the text to insert for it."""

    label: str
    text: str


def suggest_names(index: SqliteIndex, word: str, most: int) -> tuple[Suggested, ...]:
    """Return entries by those of their names that go with a word, and how to link to each."""
    alike = index.entries_like(word.casefold().split(), most)
    found = find_names(Catalog(index.generation, tuple(alike)), word, most)
    stems = {stem_of(called.entry.path) for called in found}
    rivals = index.entries_of(path for path in index.file_hashes() if stem_of(path) in stems)
    entries = [called.entry for called in found]
    wanted = {
        name for one in entries for name in (one.id, one.title, one.path.removesuffix(".md"), note_name(one.path))
    }
    catalog = Catalog(index.generation, tuple(rivals), named(index, [("", name) for name in wanted]))
    return tuple(Suggested(called.label, catalog.link_name(called.entry)) for called in found)


def suggest_tags(index: SqliteIndex, word: str, most: int) -> tuple[Suggested, ...]:
    """Return the tags that hold a word, those that begin with it first, then by how often they are used."""
    counts = Counter(tag for _, tags in index.tag_lists(EVERYTHING) for tag in dict.fromkeys(tags.split(",")) if tag)
    wanted = word.casefold()
    fitting = [tag for tag in counts if wanted in tag.casefold()]
    chosen = heapq.nsmallest(most, fitting, key=lambda tag: (not tag.casefold().startswith(wanted), -counts[tag]))
    return tuple(Suggested(tag, tag) for tag in chosen)


#: The most headings with the words that are looked at.
_MOST_HEADINGS = 2_000


class FoundHeading(NamedTuple):
    """A heading of a note, and where it is."""

    words: str
    path: str
    line: int


def find_note_headings(index: SqliteIndex, words: str, limit: int) -> tuple[FoundHeading, ...]:
    """Return headings that hold all of some words, the shortest first; those that only repeat a title are left out."""
    wanted = words.casefold().split()
    if not wanted:
        return ()
    found = (
        FoundHeading(heading.words, source, line + content.count("\n", 0, heading.span.start))
        for source, title, line, content in index.sections_with(wanted)
        for heading in find_headings(content)
        if heading.words != title and all(word in heading.words.casefold() for word in wanted)
    )
    return tuple(heapq.nsmallest(limit, itertools.islice(found, _MOST_HEADINGS), key=lambda one: len(one.words)))


EMPTY = Catalog(-1, ())


def make_catalog(index: SqliteIndex, before: Catalog) -> Catalog:
    """Return a catalog of all entries of the index; the texts of files that an earlier one knows are not read again."""
    entries, hashes = tuple(index.entries(EVERYTHING)), index.file_hashes()
    is_known = {path: before.hashes.get(path) == digest for path, digest in hashes.items()}
    links = {place: found for place, found in before.links.items() if is_known.get(place[0])}
    for entry, text in index.entries_with_texts(path for path, is_same in is_known.items() if not is_same):
        if found := tuple(links_of(entry, text)):
            links[entry.path, entry.line] = found
    return Catalog(index.generation, entries, name_entries(entries), links, hashes)


def make_part(index: SqliteIndex, wanted: Collection[tuple[str, str]], ids: Collection[str]) -> Catalog:
    """Return a catalog of what some links, given as the file and what is written there, or some ids may mean."""
    entries = entries_named(index, wanted, ids)
    return Catalog(index.generation, tuple(entries), name_entries(entries))


#: The columns of the index that an entry is made of.
_COLUMNS = tuple({"id": "entry_id", "path": "source"}.get(name, name) for name in StoredEntry._fields)


def read_unsaved(path: str, text: str, *, is_memory: bool) -> list[Memory]:
    """Return the entries of a text with all they say, planned against the text as its bytes are.

    Example:
        >>> [(one.id, one.text) for one in read_unsaved("a.md", "---\\nid: x\\n---\\nOne.\\n", is_memory=False)]
        [('x', 'One.')]
    """
    data, place = encode(text), place_of_path(path, is_memory=is_memory)
    raw = RawNote(FileStat(path, path, len(data), 0, 0), data, is_cut=False)
    firsts = [chunk for chunk in read_note(raw, is_memory=is_memory).chunks if chunk.part == 0]
    return [
        make_memory(
            StoredEntry._make(getattr(chunk, name) for name in _COLUMNS),
            hash_of(data),
            place,
            text[entry.body.start : entry.body.end].strip(),
        )
        for chunk, entry in zip(firsts, parse_document(text, path).entries, strict=False)
    ]
