"""A new working tree of a repository takes the vectors that another has."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import NOW, write_files
from repositories import Clone, found

from memory_kb import KnowledgeBase
from memory_kb.store.worktrees import find_siblings

if TYPE_CHECKING:
    from fake_provider import FakeProvider

COUNT = 40
FILES = {
    "memory/config.yaml": "",
    ".gitignore": ".memory-kb/\n",
    **{f"memory/learnings/n{number}.md": f"# Note {number}\n\nAll about topic{number}.\n" for number in range(COUNT)},
}
Open = Callable[..., KnowledgeBase]


@pytest.fixture
def clone(tmp_path: Path, home: Path) -> Clone:
    return found(tmp_path / "first", home, FILES)


@pytest.fixture
def open_with(fake: FakeProvider, home: Path) -> Iterator[Open]:
    opened: list[KnowledgeBase] = []

    def open_one(folder: Path, model: str = "small") -> KnowledgeBase:
        environ = {
            "HOME": str(home.parent),
            "MEMORY_KB_HOME": str(home),
            "MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url,
        }
        opened.append(
            KnowledgeBase.open(folder, environ=environ | {"MEMORY_KB_EMBEDDINGS_MODEL": model}, clock=lambda: NOW)
        )
        return opened[-1]

    yield open_one
    for kb in opened:
        kb.close()


def add(clone: Clone, name: str = "second") -> Path:
    clone.git("worktree", "add", "-q", "-b", name, f"../{name}")
    return clone.folder.parent / name


def test_a_new_working_tree_asks_for_nothing(clone: Clone, open_with: Open, fake: FakeProvider) -> None:
    assert open_with(clone.folder).sync().embedded == COUNT
    calls = len(fake.calls)
    second = add(clone)
    kb = open_with(second)
    estimate = kb.estimate()
    assert estimate is not None
    assert estimate.texts == 0
    assert kb.sync().embedded == 0
    assert len(fake.calls) == calls
    assert [hit.title for hit in kb.search("topic7", mode="vector", limit=1).hits] == ["Note 7"]
    third = add(clone, "third")
    shutil.rmtree(clone.folder / "memory/.memory-kb")
    calls = len(fake.calls)
    assert open_with(third).sync().embedded == 0
    assert len(fake.calls) == calls


def test_only_what_differs_is_made(clone: Clone, open_with: Open, fake: FakeProvider) -> None:
    open_with(clone.folder).sync()
    second = add(clone)
    write_files(second, {"memory/learnings/more.md": "# More\n\nSomething else.\n"})
    assert open_with(second).sync().embedded == 1
    assert max(fake.embedded_texts.values()) == 1
    assert open_with(second, "other").sync().embedded == COUNT + 1


@pytest.mark.slow
@pytest.mark.parametrize("spoil", ["locked", "garbage", "foreign", "spoiled vectors", "gone"])
def test_nothing_waits_for_the_other_or_fails_for_it(spoil: str, clone: Clone, open_with: Open) -> None:
    first = open_with(clone.folder)
    first.sync()
    first.close()
    second = add(clone)
    file = clone.folder / "memory/.memory-kb/.memory.db"
    with sqlite3.connect(file, isolation_level=None) as other:
        if spoil == "locked":
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
        elif spoil == "spoiled vectors":
            other.execute("UPDATE embedding_cache SET embedding = zeroblob(length(embedding))")
        elif spoil == "foreign":
            other.execute("DROP TABLE embedding_cache")
        elif spoil == "garbage":
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            file.write_bytes(b"no database" * 100)
        else:
            shutil.rmtree(clone.folder)
        report = open_with(second).sync()
        assert report.embedded in ((0, COUNT) if spoil == "locked" else (COUNT,))
    other.close()


def test_what_is_no_repository_has_no_other_trees(tmp_path: Path, clone: Clone) -> None:
    assert list(find_siblings(tmp_path)) == []
    second = add(clone)
    assert list(find_siblings(second / "memory")) == [clone.folder / "memory"]
    assert list(find_siblings(clone.folder)) == [second]
    (second / ".git").write_text("gitdir: /nowhere\n", encoding="utf-8")
    assert list(find_siblings(second)) == []
    (second / ".git").write_bytes(b"\xff\0")
    assert list(find_siblings(second)) == []
