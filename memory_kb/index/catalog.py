"""What links may lead to, and where they do: all entries of a vault with their names, kept for one state of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from memory_kb.filters import EVERYTHING
from memory_kb.index.inventory import (
    aliases_of,
    count_stems,
    file_names,
    links_of,
    name_entries,
    read_metadata,
    stem_of,
)
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.ports import StoredEntry

#: What cannot stand in a link.
UNFIT = frozenset("[]|#^\\\n")


class Called(NamedTuple):
    """An entry by one of its names: as it is shown, and all that finds it by that, in lower case."""

    label: str
    found_by: str
    entry: StoredEntry


@dataclass(frozen=True)
class Catalog:
    """The entries of a vault and the links between them.

    Attributes:
        generation: the state of the index that it tells of.
        names: what a link may call an entry, in lower case.
        links: the relations and targets of each entry that has any, by path and first line.
    """

    generation: int
    entries: tuple[StoredEntry, ...]
    names: Mapping[str, StoredEntry]
    links: Mapping[tuple[str, int], tuple[tuple[str, str], ...]]

    def resolve(self, target: str) -> StoredEntry | None:
        """Return the entry that a link leads to."""
        return self.names.get(target.strip().casefold())

    def kept_names(self, path: str, entry_id: str, way: str) -> frozenset[str]:
        """Return what leads to an entry still when its `id`, `title`, `heading`, `file` or `alias` is changed, in lower case.

        These are the names of its file, which every reader of notes knows, and its aliases.
        """
        if way == "file":
            return frozenset()
        entry = self.entry(path, entry_id)
        aliases = [alias.casefold() for alias in aliases_of(entry)] if entry and way != "alias" else []
        files = file_names(path)
        return frozenset(
            name
            for name in (*files, *(f"{one}.md" for one in files), *aliases)
            if self.names.get(name) in (None, entry)
        )

    def entry(self, path: str, entry_id: str) -> StoredEntry | None:
        """Return the entry of a file with an id."""
        return next((entry for entry in self.ids.get(entry_id, ()) if entry.source == path), None)

    def way_of(self, entry: StoredEntry, target: str) -> str:
        """Return by which of its names a link leads to an entry: `id`, `file`, `title` or `alias`."""
        name = target.strip().casefold()
        if name == entry.entry_id.casefold():
            return "id"
        if name.removesuffix(".md") in file_names(entry.source):
            return "file"
        return "alias" if name in map(str.casefold, aliases_of(entry)) and name != entry.title.casefold() else "title"

    def incoming(self, entry: StoredEntry) -> tuple[tuple[StoredEntry, str, str], ...]:
        """Return the entries that link to one, each with the relation and the name it uses."""
        return tuple(
            (other, relation, target)
            for other in self.entries
            for relation, target in self.links.get((other.source, other.line), ())
            if other != entry and self.names.get(target.casefold()) == entry
        )

    def told(self, path: str) -> tuple[tuple[StoredEntry, tuple[tuple[str, str], ...]], ...]:
        """Return the entries of a file with their links."""
        return tuple((entry, self.links.get((path, entry.line), ())) for entry in self._by_path.get(path, ()))

    @cached_property
    def _by_path(self) -> Mapping[str, list[StoredEntry]]:
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.source, []).append(entry)
        return found

    @cached_property
    def tags(self) -> Mapping[str, int]:
        """How often each tag is used."""
        held = (f"{entry.tags},{entry.text_tags}" for entry in self.entries if entry.tags or entry.text_tags)
        return Counter(tag for tags in held for tag in dict.fromkeys(tags.split(",")) if tag)

    @cached_property
    def ids(self) -> Mapping[str, tuple[StoredEntry, ...]]:
        """The entries of each id."""
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.entry_id, []).append(entry)
        return {entry_id: tuple(entries) for entry_id, entries in found.items()}

    @cached_property
    def searchable(self) -> tuple[Called, ...]:
        """Every entry by every name that a person may look for, for completion."""
        return tuple(called for entry in self.entries for called in _names_of(entry))

    @cached_property
    def _stems(self) -> Counter[str]:
        return count_stems(self.entries)

    def is_alone(self, path: str) -> bool:
        """Tell whether no other file is called like this one."""
        return self._stems[stem_of(path)] <= 1

    def link_name(self, entry: StoredEntry) -> str:
        """Return the name by which most readers of notes follow a link to an entry.

        That is its file's name where no other file is called so, else its path, and its id where
        that is its own; what stands below another entry of its file has only an id and a title.
        """
        stem, path = _stem(entry.source), entry.source.removesuffix(".md")
        own = read_metadata(entry).get("id") is not None
        names = [stem] if self.is_alone(entry.source) else []
        names += [entry.entry_id] if own else []
        names += [path] if not path.startswith("~") else []
        names += [entry.title]
        fitting = (name for name in names if name and not UNFIT & set(name) and self.resolve(name) == entry)
        return next(fitting, entry.entry_id)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _names_of(entry: StoredEntry) -> Iterator[Called]:
    """Yield an entry by its title, its aliases and its file.

    A name that was made from the title and the id, as `learn` names files, tells a person nothing
    that the title does not.
    """
    stem = _stem(entry.source)
    is_made = stem.endswith(entry.entry_id[:8])
    more = f"\n{stem}" if is_made else ""
    yield Called(entry.title, f"{entry.title}\n{entry.entry_id}{more}".casefold(), entry)
    labels = [
        *([] if is_made else [stem]),
        *(aliases_of(entry) if entry.metadata and '"alias' in entry.metadata else ()),
    ]
    for label in dict.fromkeys(labels):
        if label and label != entry.title:
            yield Called(label, label.casefold(), entry)


EMPTY = Catalog(-1, (), {}, {})


def make_catalog(index: SqliteIndex) -> Catalog:
    """Return what the index holds."""
    entries = list(index.entries(EVERYTHING))
    texts = index.linking_contents()
    links = {}
    for entry in entries:
        text = texts.get((entry.source, entry.entry_id), "")
        if (text or (entry.metadata and '"links"' in entry.metadata)) and (found := tuple(links_of(entry, text))):
            links[entry.source, entry.line] = found
    return Catalog(index.generation, tuple(entries), name_entries(entries), links)
