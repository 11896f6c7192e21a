"""What links may lead to, and where they do: all entries of a vault with their names, kept for one state of the index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from memory_kb.filters import EVERYTHING
from memory_kb.index.inventory import links_of, name_entries
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.ports import StoredEntry


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

    def incoming(self, entry: StoredEntry) -> tuple[tuple[StoredEntry, str, str], ...]:
        """Return the entries that link to one, each with the relation and the name it uses."""
        return tuple(
            (other, relation, target)
            for other in self.entries
            for relation, target in self.links.get((other.source, other.line), ())
            if other != entry and self.names.get(target.casefold()) == entry
        )

    @cached_property
    def tags(self) -> Mapping[str, int]:
        """How often each tag is used."""
        return Counter(tag for entry in self.entries if entry.tags for tag in entry.tags.split(","))

    @cached_property
    def ids(self) -> Mapping[str, tuple[StoredEntry, ...]]:
        """The entries of each id."""
        found: dict[str, list[StoredEntry]] = {}
        for entry in self.entries:
            found.setdefault(entry.entry_id, []).append(entry)
        return {entry_id: tuple(entries) for entry_id, entries in found.items()}

    @cached_property
    def searchable(self) -> tuple[tuple[str, StoredEntry], ...]:
        """Every entry with its title and id in lower case, for completion."""
        return tuple((f"{entry.title}\n{entry.entry_id}".casefold(), entry) for entry in self.entries)


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
