"""The parts of the map of links that are worth drawing."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from memory_kb.index.lint_cache import LintCache

#: The most neighbours that one entry brings into a map.
_BESIDE = 12


class Node(NamedTuple):
    """An entry among others: enough to name and colour it. `key` is its place in the map of all entries."""

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

    def part(self, keys: Collection[int]) -> LinkMap:
        """Return the entries with some keys and the links among them."""
        nodes = tuple(node for node in self.nodes if node.key in keys)
        return LinkMap(nodes, tuple(edge for edge in self.edges if edge.source in keys and edge.target in keys))


def read_map(cache: LintCache) -> LinkMap:
    """Return all entries and all links whose two ends are there, as the last `lint` found them."""
    nodes, edges = cache.read("map") or ((), ())
    return LinkMap(tuple(map(Node._make, nodes)), tuple(map(Edge._make, edges)))


def find_node(links: LinkMap, entry_id: str, path: str) -> int | None:
    """Return the key of the first entry with an id, in a file if one is named."""
    return next((node.key for node in links.nodes if node.id == entry_id and path in ("", node.path)), None)


def take_around(links: LinkMap, center: int, steps: int, limit: int) -> LinkMap:
    """Return the entries that can be reached from one in some steps along links, in either direction.

    What is nearer comes first; where there is not room for all, those with more links do.
    """
    near, count = _neighbours(links.edges), _count_links(links.edges)
    kept, ring, reached = {center: None}, {center}, {center}
    for _ in range(steps):
        ring = set[int]().union(*(near[key] for key in ring)) - reached
        reached |= ring
        ordered = sorted(ring, key=lambda key: (-count[key], key))
        kept |= dict.fromkeys(ordered[: limit - len(kept)])
    return links.part(kept)._replace(left_out=len(reached) - len(kept))


def take_busiest(links: LinkMap, limit: int) -> LinkMap:
    """Return the part of the map around the entries with the most links, of at most `limit` entries.

    It grows from the entry with the most links, always by the neighbour with the most. Each entry brings in at most
    `_BESIDE` of its neighbours, so that no single hub fills the map. Entries without any link are left out.

    Example:
        >>> nodes = tuple(Node(key, str(key), "", "fact", "project", "active", "a.md", 1) for key in range(4))
        >>> links = LinkMap(nodes, (Edge(0, 1, "mentions"), Edge(1, 2, "mentions")))
        >>> [node.id for node in take_busiest(links, 2).nodes]
        ['0', '1']
    """
    count = _count_links(links.edges)
    chosen = links.part(frozenset(itertools.islice(_grow(_neighbours(links.edges), count), limit)))
    # The last ones may have come without those that they are linked to.
    found = chosen.part(_count_links(chosen.edges))
    return found._replace(left_out=len(count) - len(found.nodes))


def _count_links(edges: Iterable[Edge]) -> Counter[int]:
    return Counter(key for edge in edges for key in (edge.source, edge.target))


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
