"""The parts of the map of links that are worth drawing."""

from __future__ import annotations

import heapq
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.lint_cache import Edge, LintCache, Node

#: The most neighbours that one entry brings into a map.
_BESIDE = 12
#: A map is made from this many entries, those with the most links.
_BUSY = 600


class LinkMap(NamedTuple):
    """Entries, the links between them, and how many more there are than these."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    left_out: int = 0


def read_links(store: LintCache, keys: Iterable[int] | None = None) -> LinkMap:
    """Return all entries and all links whose two ends are there, or only those among some entries."""
    chosen = json.dumps(list(keys)) if keys is not None else None
    among = "IN (SELECT value FROM json_each(?1))" if keys is not None else "IS NOT ?1"
    nodes = store.rows(
        f"SELECT key, id, title, kind, scope, status, path, line FROM nodes WHERE key {among} ORDER BY key", (chosen,)
    )
    edges = store.rows(f"SELECT source, target, relation FROM edges WHERE source {among} AND target {among}", (chosen,))
    return LinkMap(tuple(Node(*one) for one in nodes), tuple(Edge(*one) for one in edges))


def find_node(store: LintCache, entry_id: str, path: str) -> int | None:
    """Return the key of the first entry with an id, in a file if one is named."""
    rows = store.rows("SELECT min(key) FROM nodes WHERE id = ? AND ? IN ('', path)", (entry_id, path))
    return next((key for (key,) in rows), None)


def read_around(store: LintCache, center: int, steps: int, limit: int) -> LinkMap:
    """Return the entries that can be reached from one in some steps along links, in either direction.

    What is nearer comes first; where there is not room for all, those with more links do.
    """
    kept, ring, reached = {center: None}, {center}, {center}
    beside = (
        "SELECT target FROM edges WHERE source IN (SELECT value FROM json_each(?1)) UNION "
        "SELECT source FROM edges WHERE target IN (SELECT value FROM json_each(?1))"
    )
    for _ in range(steps):
        rows = store.rows(
            f"SELECT key FROM nodes WHERE key IN ({beside}) ORDER BY degree DESC, key", (json.dumps([*ring]),)
        )
        ordered = [key for (key,) in rows if key not in reached]
        ring = set(ordered)
        reached |= ring
        kept |= dict.fromkeys(ordered[: limit - len(kept)])
    return read_links(store, kept)._replace(left_out=len(reached) - len(kept))


def read_busiest(store: LintCache, limit: int, kinds: Sequence[str], scopes: Sequence[str], folder: str) -> LinkMap:
    """Return the entries with the most links, of all or of some kinds, scopes and a folder, and their links."""
    condition = (
        "degree > 0 AND (?1 = '[]' OR kind IN (SELECT value FROM json_each(?1))) "
        "AND (?2 = '[]' OR scope IN (SELECT value FROM json_each(?2))) AND substr(path, 1, length(?3)) = ?3"
    )
    values = (json.dumps(list(kinds)), json.dumps(list(scopes)), folder)
    rows = store.rows(f"SELECT key FROM nodes WHERE {condition} ORDER BY degree DESC, key LIMIT {_BUSY}", values)
    found = take_busiest(read_links(store, (key for (key,) in rows)), limit)
    if len(rows) < _BUSY:
        return found
    (count,) = next(iter(store.rows(f"SELECT count(*) FROM nodes WHERE {condition}", values)), (0,))
    return found._replace(left_out=count - len(found.nodes))


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
    edges = links.edges
    count = Counter(key for edge in edges for key in (edge.source, edge.target))
    kept = frozenset(itertools.islice(_grow(_neighbours(edges), count), limit))
    # The last ones may have come without those that they are linked to.
    among = tuple(edge for edge in edges if edge.source in kept and edge.target in kept)
    linked = {key for edge in among for key in (edge.source, edge.target)}
    nodes = tuple(node for node in links.nodes if node.key in linked)
    return LinkMap(nodes, among, len(count) - len(nodes))


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
