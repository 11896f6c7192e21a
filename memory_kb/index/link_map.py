"""The parts of the map of links that are worth drawing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from memory_kb.index.lint_cache import Edge, LintCache, Node


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


def find_node(store: LintCache, entry_id: str, path: str = "") -> int | None:
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


def read_busiest(
    store: LintCache, limit: int, kinds: Sequence[str] = (), scopes: Sequence[str] = (), folder: str = ""
) -> LinkMap:
    """Return the entries with the most links, of all or of some kinds, scopes and a folder, and the links between them.

    One that is linked to none of the others is left out.
    """
    condition = (
        "degree > 0 AND (?1 = '[]' OR kind IN (SELECT value FROM json_each(?1))) "
        "AND (?2 = '[]' OR scope IN (SELECT value FROM json_each(?2))) AND substr(path, 1, length(?3)) = ?3"
    )
    values = (json.dumps(list(kinds)), json.dumps(list(scopes)), folder)
    rows = store.rows(f"SELECT key FROM nodes WHERE {condition} ORDER BY degree DESC, key LIMIT {limit}", values)
    found = read_links(store, (key for (key,) in rows))
    linked = {key for edge in found.edges for key in (edge.source, edge.target)}
    nodes = tuple(node for node in found.nodes if node.key in linked)
    (count,) = next(iter(store.rows(f"SELECT count(*) FROM nodes WHERE {condition}", values)), (0,))
    return LinkMap(nodes, found.edges, count - len(nodes))
