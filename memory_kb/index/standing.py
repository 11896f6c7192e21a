"""The standing queries held against the entries that there are."""

from __future__ import annotations

from collections.abc import Iterator

from memory_kb.filters import EVERYTHING
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import Problem
from memory_kb.notes.changes import read_if_there
from memory_kb.notes.queries import Queries, names, parse_queries
from memory_kb.notes.revisions import QUERIES
from memory_kb.notes.vault import Vault


def queries_path(vault: Vault) -> str:
    """Return the path of a vault's standing queries."""
    return f"memory/{QUERIES}" if vault.memory else QUERIES


def read_queries(vault: Vault) -> Queries:
    """Return a vault's standing queries, and what is wrong with their file."""
    path = queries_path(vault)
    data = read_if_there(path, vault.resolve(path))
    return parse_queries((data or b"").decode("utf-8", "replace"), path)


def check_queries(vault: Vault, index: SqliteIndex) -> Iterator[Problem]:
    """Yield what is wrong with the standing queries, and what they expect that is nowhere."""
    read = read_queries(vault)
    yield from read.problems
    if not read.queries:
        return
    entries = [(entry.entry_id, entry.source) for entry in index.entries(EVERYTHING)]
    whole = {name for entry in entries for name in entry}
    for query in read.queries:
        for wanted in query.expect:
            if wanted not in whole and not any(names(wanted, *entry) for entry in entries):
                yield Problem(
                    queries_path(vault),
                    query.line,
                    f"{query.question!r} expects {wanted!r}, and no entry is called that",
                )
