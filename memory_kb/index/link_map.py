"""Entries and the links between them as a map, and the parts of it that are worth drawing."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from memory_kb.index.link_names import KeptTargets, entries_with_texts, links_of, name_entries, resolve
from memory_kb.index.sqlite import SqliteIndex

#: So many of an entry's neighbours are taken into a map for its sake.
_BESIDE = 12


class Node(NamedTuple):
    """An entry among others: enough to name and colour it. `key` is its place in the map."""

    key: int
    id: str
    title: str
    kind: str
    scope: str
    status: str
    path: str
    line: int


class Edge(NamedTuple):
    """A link from one entry to another, by their keys."""

    source: int
    target: int
    relation: str


class LinkMap(NamedTuple):
    """Entries, the links between them, and how many more there are than these."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0


def map_links(index: SqliteIndex, kept: KeptTargets) -> LinkMap:
    """Return all entries and all links whose two ends are there."""
    entries, links = [], []
    for entry, text in entries_with_texts(index):
        entries.append(entry)
        has_links = text or (entry.metadata and '"links"' in entry.metadata)
        links.append(tuple(links_of(entry, text, kept.find)) if has_links else ())
    keys = {(entry.source, entry.line): key for key, entry in enumerate(entries)}
    names = name_entries(entries)
    edges: dict[Edge, None] = {}
    for key, entry in enumerate(entries):
        for relation, target in links[key]:
            found = resolve(names, target, entry.source)
            other = keys[found.source, found.line] if found else key
            if other != key:
                edges[Edge(key, other, relation)] = None
    nodes = (
        Node(key, one.entry_id, one.title, one.kind, one.scope, one.status, one.source, one.line)
        for key, one in enumerate(entries)
    )
    return LinkMap(tuple(nodes), tuple(edges))


def take_around(links: LinkMap, center: int, steps: int, limit: int) -> LinkMap:
    """Return what can be reached from an entry in some steps along links, whichever way they point.

    What is nearer comes first; where there is not room for all, those with more links do.

    Example:
        >>> nodes = tuple(Node(key, str(key), "", "fact", "project", "active", "a.md", 1) for key in range(4))
        >>> links = LinkMap(nodes, (Edge(0, 1, "mentions"), Edge(1, 2, "mentions"), Edge(2, 3, "mentions")))
        >>> [node.id for node in take_around(links, 0, 2, 10).nodes], take_around(links, 0, 3, 2).left_out
        (['0', '1', '2'], 2)
    """
    near: Mapping[int, set[int]] = _neighbours(links.edges)
    kept, ring = {center: None}, {center}
    reached = {center}
    for _ in range(steps):
        ring = {other for key in ring for other in near.get(key, ())} - reached
        reached |= ring
        for key in sorted(ring, key=lambda one: (-len(near.get(one, ())), one)):
            if len(kept) < limit:
                kept[key] = None
    return _keep(links, kept, len(reached) - len(kept))


def take_busiest(links: LinkMap, limit: int, wanted: Collection[int] | None = None) -> LinkMap:
    """Return a part of the map that hangs together, where most links meet; of all entries or of those wanted.

    It grows from the entry with the most links, always by the one with the most links beside it, and
    of each entry's neighbours only so many come in on its account, so that no single hub fills it.
    Entries without any link are left out.

    Example:
        >>> nodes = tuple(Node(key, str(key), "", "fact", "project", "active", "a.md", 1) for key in range(4))
        >>> links = LinkMap(nodes, (Edge(0, 1, "mentions"), Edge(1, 2, "mentions")))
        >>> [node.id for node in take_busiest(links, 2).nodes]
        ['0', '1']
    """
    edges = (
        links.edges
        if wanted is None
        else tuple(edge for edge in links.edges if edge.source in wanted and edge.target in wanted)
    )
    count = Counter(key for edge in edges for key in (edge.source, edge.target))
    kept = frozenset(itertools.islice(_grow(_neighbours(edges), count), limit))
    # The last ones may have come without those that they are linked to.
    linked = [
        key for edge in edges if edge.source in kept and edge.target in kept for key in (edge.source, edge.target)
    ]
    found = _keep(links, linked, 0)
    return found._replace(left_out=len(count) - len(found.nodes))


def _grow(near: Mapping[int, set[int]], count: Mapping[int, int]) -> Iterator[int]:
    """Yield entries in the order in which a map of them grows; when one part is done, the next begins."""
    by_links = sorted(count, key=lambda key: (-count[key], key))
    taken: set[int] = set()
    for first in by_links:
        edge = [(-count[first], first)]
        while edge:
            _, key = heapq.heappop(edge)
            if key in taken:
                continue
            taken.add(key)
            yield key
            beside = heapq.nsmallest(_BESIDE, near[key] - taken, key=lambda other: (-count[other], other))
            for other in beside:
                heapq.heappush(edge, (-count[other], other))


def _neighbours(edges: Iterable[Edge]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for edge in edges:
        found[edge.source].add(edge.target)
        found[edge.target].add(edge.source)
    return found


def _keep(links: LinkMap, keys: Iterable[int], left_out: int) -> LinkMap:
    kept = dict.fromkeys(keys)
    edges = tuple(edge for edge in links.edges if edge.source in kept and edge.target in kept)
    return LinkMap(tuple(links.nodes[key] for key in sorted(kept)), edges, max(0, left_out))
