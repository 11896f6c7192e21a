"""A running watcher spares searches the look at all files, and no search misses a change for it."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import Files
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.index import sync as comparing
from memory_kb.index import vault_index as keeper
from memory_kb.index.vault_index import QUESTIONS, WATCHER_LOCK, has_watcher, is_confirmed
from memory_kb.vault import hold_lock

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the order of file events is relied on")
NOTES: Files = {f"memory/learnings/{number:02}.md": f"Note {number} of the gateway.\n" for number in range(20)}


@contextmanager
def watched(folder: Path, open_kb: Open, *, poll: bool = False) -> Iterator[KnowledgeBase]:
    """Watch a vault in a thread; give a knowledge base of our own."""
    stop, kb = threading.Event(), open_kb(folder)
    thread = threading.Thread(target=lambda: open_kb(folder).watch(stop=stop, poll=poll))
    thread.start()
    try:
        eventually(lambda: has_watcher(kb.vault.machine))
        yield kb
    finally:
        stop.set()
        thread.join()


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask also in small vaults, and give the watcher time."""
    monkeypatch.setattr(keeper, "_LARGE", 1)
    monkeypatch.setattr(keeper, "_SECONDS_PER_FILE", 1.0)


def changes(notes: Path) -> Iterator[tuple[str, int]]:
    """Change the notes in one way after the other; yield a word, and how many notes say it at once."""
    for turn in range(8):
        (notes / "07.md").write_text(f"An edited okapi{turn}.\n")
        yield f"okapi{turn}", 1
    (notes / "new").mkdir()
    (notes / "new/deep").mkdir()
    (notes / "new/deep/a.md").write_text("A zebra in a new folder.\n")
    yield "zebra", 1
    (notes / "new").rename(notes / "other")
    (notes / "other/deep/b.md").write_text("A zebra in a renamed folder.\n")
    yield "zebra", 2
    os.replace(notes / "other/deep/a.md", notes / "moved.md")
    yield "zebra", 2
    shutil.rmtree(notes / "other")
    yield "zebra", 1
    for number in range(300):
        (notes / f"many-{number}.md").write_text("A quokka of many.\n")
    yield "quokka", 300
    (notes.parents[1] / "MEMORY.md").write_text("# Memory\n\nA numbat beside.\n")
    yield "numbat", 1


@pytest.mark.parametrize("poll", [False, True], ids=["events", "polling"])
def test_a_search_sees_what_was_changed_just_before(
    vault: Vault, open_kb: Open, poll: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(NOTES)
    if poll:
        monkeypatch.setattr(keeper, "_SECONDS_PER_FILE", 0.0002)
    with watched(folder, open_kb, poll=poll) as kb:
        for word, count in changes(folder / "memory/learnings"):
            assert len(kb.search(word, limit=500).hits) == count, word


def test_a_search_beside_a_watcher_looks_at_the_home_only(
    vault: Vault, open_kb: Open, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "learnings").mkdir(parents=True)
    folder, looks = vault(NOTES), list[list[str]]()
    real = comparing.has_changed_files

    def look(*given: Any, **named: Any) -> bool:
        if threading.current_thread() is threading.main_thread():
            regions = given[2] if len(given) > 2 else ()
            looks.append(list(regions))
        return real(*given, **named)

    with watched(folder, open_kb) as kb:
        monkeypatch.setattr(keeper, "has_changed_files", look)
        (folder / "memory/learnings/07.md").write_text("An edited okapi.\n")
        assert len(kb.search("okapi").hits) == 1
        assert looks == [["~global/", ""]]
        (home / "learnings/a.md").write_text("A global okapi.\n")
        assert len(kb.search("okapi").hits) == 2


def test_a_learning_that_was_saved_just_before_is_known(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    with watched(folder, open_kb) as kb:
        for place in ("barn", "river", "savanna", "forest", "desert"):
            text = f"The okapi of the {place} sleeps at noon."
            (folder / f"memory/learnings/{place}.md").write_text(f"---\nid: the-{place}\nkind: fact\n---\n{text}\n")
            assert kb.learn(text).id == f"the-{place}"


@pytest.mark.slow
def test_a_watcher_of_another_index_is_not_believed(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    with watched(folder, open_kb) as kb:
        assert len(kb.search("gateway", limit=50).hits) == len(NOTES)
        shutil.rmtree(kb.vault.machine)
        eventually(lambda: has_watcher(kb.vault.machine))
        (folder / "memory/learnings/07.md").write_text("An edited okapi.\n")
        assert len(kb.search("okapi").hits) == 1


def test_a_watcher_that_does_not_answer_is_not_believed(tmp_path: Path) -> None:
    assert not is_confirmed(tmp_path, 1.0)
    with hold_lock(tmp_path / WATCHER_LOCK, 0.0):
        (tmp_path / QUESTIONS).mkdir()
        assert not is_confirmed(tmp_path, 0.05)
    assert list((tmp_path / QUESTIONS).iterdir()) == []


def test_those_who_look_for_a_watcher_are_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / WATCHER_LOCK).touch()
    seen, stop = list[bool](), threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.append(has_watcher(tmp_path))

    looking = [threading.Thread(target=look) for _ in range(4)]
    for thread in looking:
        thread.start()
    eventually(lambda: len(seen) > 2_000)
    stop.set()
    for thread in looking:
        thread.join()
    assert not any(seen)


@pytest.mark.slow
def test_the_next_watcher_is_seen_when_one_ends(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    stop, kb = threading.Event(), open_kb(folder)
    first = threading.Thread(target=lambda: open_kb(folder).watch(stop=stop))
    first.start()
    eventually(lambda: has_watcher(kb.vault.machine))
    with watched(folder, open_kb):
        stop.set()
        first.join()
        eventually(lambda: has_watcher(kb.vault.machine))
    assert not has_watcher(kb.vault.machine)
