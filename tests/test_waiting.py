"""Nobody who writes waits for an indexer, and a first index that is interrupted goes on where it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.index import sync as indexer
from memory_kb.index import vault_index
from memory_kb.vault import hold_lock

Vault = Callable[[Files], "object"]
Open = Callable[..., KnowledgeBase]

LESSON = "Zebras need Redis in every test run."


def notes(count: int) -> Files:
    return {f"memory/learnings/{number:04}.md": f"# Note {number}\n\nThe gateway says so.\n" for number in range(count)}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let searches give up soon."""
    for name in ("SEARCH", "FIRST_INDEX"):
        monkeypatch.setattr(f"memory_kb.index.vault_index._{name}_WAIT_SECONDS", 0.2)


@contextmanager
def indexing(kb: KnowledgeBase) -> Iterator[None]:
    """Be the process that indexes, which nobody here may wait for."""
    waits = list[float]()

    def hold(path: Path, wait: float, *more: Any, **named: Any) -> AbstractContextManager[None]:
        waits.append(wait)
        return hold_lock(path, wait, *more, **named)

    with hold_lock(kb.vault.machine / "index.lock", 1), mock.patch.object(vault_index, "hold_lock", hold):
        yield
    assert all(wait < 1 for wait in waits), "a write waits for the index as a run of `index` does"


def test_learn_beside_an_indexer_writes_and_returns(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(notes(20)))
    kb.sync()
    with indexing(kb):
        learned = kb.learn(LESSON)
        assert (learned.action, learned.run and learned.run.notices) == ("created", ())
        again = kb.learn(LESSON)
        assert (again.action, again.id) == ("reinforced", learned.id)
    assert kb.search("zebras redis").hits[0].id == learned.id
    assert kb.sync().is_empty


def test_what_was_forgotten_beside_an_indexer_stays_away(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(notes(20)))
    learned = kb.learn(LESSON)
    kb.sync()
    with indexing(kb):
        kb.forget(learned.id)
        with pytest.raises(Exception, match="forgotten"):
            kb.learn(LESSON)


def test_an_entry_that_was_edited_since_is_held_against_its_file(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault(notes(20)))
    learned = kb.learn(LESSON)
    file = kb.vault.resolve(learned.path)
    with indexing(kb):
        file.write_text(file.read_text().replace("Zebras need Redis", "Zebras need Postgres"))
        assert kb.learn(LESSON).action == "created"
        file.unlink()
        assert kb.learn("Zebras need Postgres in every test run.").action == "created"
    kb.sync()
    assert len(kb.search("zebras").hits) == 2


def test_learn_before_the_first_index_reads_the_notes_themselves(vault: Vault, open_kb: Open) -> None:
    files = {**notes(20), "memory/learnings/mine.md": f"---\nid: mine\nkind: fact\n---\n{LESSON}\n"}
    kb = open_kb(vault(files))
    with indexing(kb):
        assert kb.learn(LESSON).id == "mine"


class Interrupted(Exception):
    """An indexing that is ended by a time limit, Ctrl-C or a signal."""


def test_a_first_index_that_is_interrupted_goes_on_where_it_was(
    vault: Vault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "_BATCH_SECONDS", 0.0)
    kb = open_kb(vault(notes(300)))

    def interrupt(done: int, _: int) -> None:
        if done > 200:
            raise Interrupted

    with pytest.raises(Interrupted):
        kb.sync(progress=interrupt)
    found = kb.search("gateway", limit=500, sync=False)
    assert 100 < len(found.hits) < 300
    assert found.degraded == ("the first indexing has not ended yet; some notes are not searched",)
    with hold_lock(kb.vault.machine / "index.lock", 1):
        found = kb.search("gateway", limit=500)
        assert found.freshness.pending == 300 - len(found.hits)
        assert kb.learn(LESSON).action == "created"
    report = kb.sync()
    assert (report.added + report.unchanged, report.added < 200) == (301, True)
    assert (kb.search("gateway", limit=500).freshness.pending, kb.sync(rebuild=True).added) == (0, 301)


def test_a_rebuild_is_one_commit(vault: Vault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "_BATCH_SECONDS", 0.0)
    kb = open_kb(vault(notes(300)))
    kb.sync()
    before = kb.generation
    kb.sync(rebuild=True)
    assert kb.generation == before + 1
