"""What editors ask of a vault: entries by their names, names and tags that go with a word, and headings."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from memory_kb.index.link_names import (
    aliases_of,
    file_names,
    name_entries,
    named,
    read_metadata,
    resolve,
    stem_of,
)
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.markdown.headings import find_headings
from memory_kb.model import EVERYTHING, StoredEntry
from memory_kb.terms import name_key
from memory_kb.text import note_name

#: Characters that cannot be in a link.
UNFIT = frozenset("[]|#^\\\n")


@dataclass(frozen=True)
class Catalog:
    """Entries by what links may call each of them."""

    entries: Sequence[StoredEntry]

    @cached_property
    def names(self) -> Mapping[str, StoredEntry]:
        """The entries by their names in links."""
        return name_entries(self.entries)

    @property
    def files(self) -> Iterable[str]:
        """The paths of all files."""
        return dict.fromkeys(entry.path for entry in self.entries)

    def resolve(self, target: str, source: str = "") -> StoredEntry | None:
        """Return the entry that a link in a file leads to."""
        return resolve(self.names, target, source)

    def resolve_file(self, target: str, source: str = "") -> str | None:
        """Return the file that a link in a file leads to."""
        found = self.resolve(target, source)
        return found.path if found else None

    def names_of_file(self, entry: StoredEntry) -> frozenset[str]:
        """Return the names, in lower case, that an entry keeps when its id or title changes.

        These are the names of its file, which every reader of notes knows, and its aliases.
        """
        files = file_names(entry.path)
        names = (*files, *(f"{one}.md" for one in files), *map(name_key, aliases_of(entry)))
        return frozenset(name for name in names if self.names.get(name) in (None, entry))


class Suggested(NamedTuple):
    """A name or a tag to show, the text to insert for it, and the entry that has the name."""

    label: str
    text: str
    entry: StoredEntry | None = None


def suggest_names(index: SqliteIndex, word: str, most: int) -> tuple[Suggested, ...]:
    """Return entries by those of their names that go with a word, those that begin with it first; how to link to each."""
    found = _find_names(index.entries_like(word.casefold().split(), most), word, most)
    stems = Counter(stem_of(path) for path in index.file_hashes())
    wanted = {name for _, entry in found for name in _link_names(entry, stems)}
    names = named(index, [("", name) for name in wanted])

    def link_name(entry: StoredEntry) -> str:
        return next((name for name in _link_names(entry, stems) if resolve(names, name) == entry), entry.id)

    return tuple(Suggested(label, link_name(entry), entry) for label, entry in found)


def _find_names(entries: Sequence[StoredEntry], word: str, most: int) -> list[tuple[str, StoredEntry]]:
    """Return names with their entries; without a word the newest entries."""
    wanted = word.casefold().strip()
    called = [(label, names, entry) for entry in entries for label, names in _names_of(entry, is_path="/" in wanted)]
    if not wanted:
        return [(label, entry) for label, _, entry in called[:most]]

    def rank(one: tuple[str, str, StoredEntry]) -> tuple[int, int]:
        _, names, _ = one
        begins = names.startswith(wanted) or f"\n{wanted}" in names
        return 0 if begins else 1 if f" {wanted}" in names else 2, len(names)

    fitting = (one for one in called if all(part in one[1] for part in wanted.split()))
    return [(label, entry) for label, _, entry in heapq.nsmallest(most, fitting, key=rank)]


def _names_of(entry: StoredEntry, *, is_path: bool) -> Iterator[tuple[str, str]]:
    """Yield an entry's title, its aliases and its file's name, each with the texts in lower case that find it.

    A name that was made from the title and the id, as `learn` names files, means nothing to a person
    that the title does not.
    """
    stem, path = note_name(entry.path), f"\n{entry.path}" if is_path else ""
    is_made = stem.endswith(entry.id[:8])
    more = f"\n{stem}" if is_made else ""
    yield entry.title, f"{entry.title}\n{entry.id}{more}{path}".casefold()
    for label in dict.fromkeys([*([] if is_made else [stem]), *aliases_of(entry)]):
        if label and label != entry.title:
            yield label, f"{label}{path}".casefold()


def _link_names(entry: StoredEntry, stems: Mapping[str, int]) -> list[str]:
    """Return the names by which readers of notes follow links to an entry, the one that most of them know first.

    That is its file's name where no other file is called so, else its path, and its id where
    that is its own; what is below another entry of its file has only an id and a title.
    """
    path = entry.path.removesuffix(".md")
    names = (
        note_name(entry.path) if stems[stem_of(entry.path)] <= 1 else "",
        entry.id if read_metadata(entry).get("id") is not None else "",
        "" if path.startswith("~") else path,
        entry.title,
    )
    return [name for name in names if name and not UNFIT & set(name)]


def suggest_tags(index: SqliteIndex, word: str, most: int) -> tuple[Suggested, ...]:
    """Return the tags that hold a word, those that begin with it first, then by how often they are used."""
    counts = Counter(tag for _, tags in index.tag_lists(EVERYTHING) for tag in dict.fromkeys(tags.split(",")) if tag)
    wanted = word.casefold()
    fitting = [tag for tag in counts if wanted in tag.casefold()]
    chosen = heapq.nsmallest(most, fitting, key=lambda tag: (not tag.casefold().startswith(wanted), -counts[tag], tag))
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
