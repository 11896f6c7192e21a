"""The best few are the same ones whatever filters, and whatever the history of the index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.index.filters import is_narrow, where
from memory_kb.index.sqlite import SQLITE
from memory_kb.model import Filters
from memory_kb.search.query import parse_query

MakeVault = Callable[[Files], Path]
KINDS = ("policy", "preference", "architecture", "skill", "rule", "fact")
WEIGHTS = (5.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0)
NARROW = [
    Filters(kinds=("skill",)),
    Filters(kinds=("policy", "architecture", "preference"), learning_types=("task",)),
    Filters(learning_types=("proxy",)),
    Filters(learning_types=("institutional", "proxy"), scopes=("project",)),
]


@pytest.fixture
def kb(vault: MakeVault, open_kb: Callable[[Path], KnowledgeBase]) -> KnowledgeBase:
    always = "We feed wombats on Mondays.\n\n## Quokka\n\nAnd quokkas too.\n"
    files: dict[str, str | bytes] = {"memory/config.yaml": "", "memory/institutional.md": always}
    for number in range(60):
        kind = KINDS[number % len(KINDS)]
        text = f"The wombat eats {'quokka grass ' * (number % 7)}in room {number}."
        files[f"memory/{'proxy-tasks' if number % 5 == 0 else 'learnings'}/{number}.md"] = entry(
            text, id=f"e-{number}", kind=kind
        )
    opened = open_kb(vault(files))
    opened.sync()
    return opened


@pytest.mark.parametrize("limit", [1, 3, 200])
def test_the_best_are_those_of_a_match_of_everything(kb: KnowledgeBase, limit: int) -> None:
    index, expression = kb.index.index, parse_query("quokka wombat grass").expression
    everything = index.match(expression, WEIGHTS, Filters(), 1_000)
    for filters in NARROW:
        assert is_narrow(filters)
        passing = {one.key for one in index.candidates([one.key for one in everything], filters)}
        expected = [one for one in everything if one.key in passing][:limit]
        assert expected
        assert index.match(expression, WEIGHTS, filters, limit) == expected


@pytest.mark.parametrize("filters", [*NARROW, Filters(statuses=("retired", "rejected"))])
def test_they_are_found_by_an_index(kb: KnowledgeBase, filters: Filters) -> None:
    condition, values = where(filters, SQLITE)
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db")) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT rowid FROM chunks c WHERE {condition}", values).fetchall()
    assert any("chunks_few" in str(step) for step in plan), plan


@pytest.mark.parametrize("filters", [Filters(), Filters(kinds=("fact",)), Filters(kinds=("skill",))])
def test_of_equal_ones_the_first_places_are_cut_out_whatever_was_indexed_last(
    vault: MakeVault, open_kb: Callable[[Path], KnowledgeBase], filters: Filters
) -> None:
    kind = filters.kinds[0] if filters.kinds else "fact"
    folder = vault(
        {f"memory/learnings/{number:03}.md": entry("A zebra.", id=f"z-{number:03}", kind=kind) for number in range(150)}
    )
    kb = open_kb(folder)
    kb.sync()
    for number in (3, 1, 140):
        file = folder / f"memory/learnings/{number:03}.md"
        file.write_bytes(file.read_bytes() + b"\n")
        kb.sync()
    found = kb.index.index.match('"zebra"', WEIGHTS, filters, 60)
    assert [one.source for one in found] == [f"memory/learnings/{number:03}.md" for number in range(60)]
