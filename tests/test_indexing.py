"""Sync: after any history of edits the index is what a rebuild from nothing makes of the files."""

from __future__ import annotations

import functools
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import pytest
from conftest import Files
from histories import ENTRY, Edits
from hypothesis import HealthCheck, settings
from support import RICH, check_full_text, found, query, rows

from memory_kb import KnowledgeBase
from memory_kb.index import sqlite_writer

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
Row = tuple[object, ...]

Edits.TestCase.settings = settings(
    max_examples=50, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestAnyHistoryOfEdits = pytest.mark.slow(Edits.TestCase)


def test_a_deleted_file_leaves_nothing_behind(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY, "memory/learnings/b.md": "# Other\n\nNever retry either.\n"})
    kb = open_kb(folder)
    assert sorted(found(kb, "retry payment")) == ["memory/learnings/a.md", "memory/learnings/b.md"]
    (folder / "memory/learnings/a.md").unlink()
    report = kb.sync()
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 0, 1, 1)
    assert found(kb, "retry payment") == ["memory/learnings/b.md"]
    assert query(kb, "SELECT path FROM file_meta") == [("memory/learnings/b.md",)]
    check_full_text(kb)


def test_an_emptied_file_leaves_no_chunk_behind(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY})
    kb = open_kb(folder)
    kb.sync()
    (folder / "memory/learnings/a.md").write_text("")
    assert kb.sync().changed == 1
    assert rows(kb)[0] == []
    assert found(kb, "payment") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("memory/learnings/a.md", "memory/rules/a.md"), ("memory/learnings", "memory/jobs/api/learnings")],
    ids=["a file", "its folder"],
)
def test_a_rename_moves_the_entry_and_its_scope(vault: Vault, open_kb: Open, old: str, new: str) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY})
    kb = open_kb(folder)
    kb.sync()
    (folder / new).parent.mkdir(parents=True)
    (folder / old).rename(folder / new)
    report = kb.sync()
    assert (report.added, report.removed) == (1, 1)
    (hit,) = kb.search("payment").hits
    assert hit.path == (new if new.endswith(".md") else f"{new}/a.md")
    assert hit.scope == ("job" if "jobs" in new else "project")


def test_two_files_that_swap_names_swap_places(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "one zebra\n", "memory/b.md": "two camel\n"})
    kb = open_kb(folder)
    kb.sync()
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        (folder / f"memory/{old}.md").rename(folder / f"memory/{new}.md")
    assert found(kb, "zebra") == ["memory/b.md"]


def test_a_file_that_becomes_a_folder_gives_way(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "zebra\n"})
    kb = open_kb(folder)
    kb.sync()
    (folder / "memory/a.md").unlink()
    (folder / "memory/a.md").mkdir()
    (folder / "memory/a.md/b.md").write_text("zebra\n")
    assert found(kb, "zebra") == ["memory/a.md/b.md"]


def test_an_edit_of_the_same_size_at_once_is_noticed(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "zebra\n"})
    kb = open_kb(folder)
    words = ["camel", "llama", "tapir", "otter", "zebra"]
    for word in words * 4:
        kb.sync()
        (folder / "memory/learnings/a.md").write_text(f"{word}\n")
        assert found(kb, word) == ["memory/learnings/a.md"]


def test_a_touched_file_is_unchanged_and_no_new_generation(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY})
    kb = open_kb(folder)
    before = kb.search("payment").freshness.generation
    os.utime(folder / "memory/learnings/a.md", (1, 1))
    report = kb.sync()
    assert (report.changed, report.unchanged) == (0, 1)
    assert kb.search("payment").freshness.generation == before


def test_the_checkout_time_of_a_file_does_not_change_its_rows(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "# Undated\n\nzebra\n"})
    kb = open_kb(folder)
    kb.sync()
    before = rows(kb)
    os.utime(folder / "memory/learnings/a.md", (1, 1))
    kb.sync(rebuild=True)
    assert rows(kb) == before


def test_a_removed_home_takes_its_entries_along(vault: Vault, open_kb: Open, home: Path) -> None:
    folder = vault({"memory/learnings/a.md": "zebra here\n", "../home/learnings/g.md": "zebra there\n"})
    kb = open_kb(folder)
    assert sorted(found(kb, "zebra")) == ["memory/learnings/a.md", "~global/learnings/g.md"]
    shutil.rmtree(home)
    assert found(kb, "zebra") == ["memory/learnings/a.md"]


# -- what is searched -----------------------------------------------------------------------


METADATA = [
    "active",
    "pitfall",
    "corrective",
    "planning",
    "wombat",
    "owner",
    "quokka",
    "dingo",
    "related_to",
    "importance",
    "team",
]


def test_metadata_is_not_searched(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/rules/a.md": RICH, "memory/rules/b.md": "Another text.\n"}))
    for word in METADATA:
        assert found(kb, word) == [], word


@pytest.mark.parametrize(
    "word", ["numbat", "koala", "platypus", "bilby", '"deep sea"', "possum", "2026-03-01", "March"]
)
def test_title_headings_body_tags_globs_and_date_are_searched(vault: Vault, open_kb: Open, word: str) -> None:
    kb = open_kb(vault({"memory/rules/a.md": RICH, "memory/rules/b.md": "Another text.\n"}))
    assert found(kb, word) == ["memory/rules/a.md"]


@pytest.mark.parametrize(
    "name",
    [
        "CONTINUITY.md",
        "INTENT.md",
        "memory/CONTINUITY.md",
        "memory/.premortem.md",
        "memory/.hidden/a.md",
        "memory/a.txt",
        "other/a.md",
    ],
)
def test_what_is_no_note_is_not_indexed(vault: Vault, open_kb: Open, name: str) -> None:
    kb = open_kb(vault({name: "zebra\n", "memory/MEMORY.md": "camel\n"}))
    assert (found(kb, "zebra"), found(kb, "camel")) == ([], ["memory/MEMORY.md"])


@pytest.mark.parametrize("status", ["active", "proposed"])
def test_the_link_of_a_newer_entry_alone_supersedes_the_older_one(vault: Vault, open_kb: Open, status: str) -> None:
    newer = "---\nid: new\nstatus: {}\nlinks: [{{to: old, relation: supersedes}}]\n---\nPostgres holds our sessions.\n"
    folder = vault({"memory/old.md": "---\nid: old\nkind: policy\npriority: high\n---\nRedis holds our sessions.\n"})
    kb = open_kb(folder)
    assert [hit.id for hit in kb.search("redis sessions").hits] == ["old"]
    before = kb.search("redis holds sessions").hits[0].score
    (folder / "memory/new.md").write_text(newer.format(status))
    assert [hit.id for hit in kb.search("redis holds sessions").hits][:1] == (
        ["new"] if status == "active" else ["old"]
    )
    assert ("Redis" in kb.context("sessions").text) == (status == "proposed")
    (folder / "memory/new.md").unlink()
    assert kb.search("redis holds sessions").hits[0].score == before


class SlowConnection(sqlite3.Connection):
    """A connection that takes a while to put rows in."""

    def execute(self, statement: str, values: Sequence[object] = (), /) -> sqlite3.Cursor:  # type: ignore[override]
        if statement.startswith("INSERT INTO chunks "):
            time.sleep(0.5)
        return super().execute(statement, values)


def test_nothing_of_a_large_batch_is_written_after_its_rollback(vault: Vault, open_kb: Open) -> None:
    sections = (f"## Section {number}\n\n{'A zebra crossed the river. ' * 60}\n" for number in range(1_500))
    kb = open_kb(vault({"memory/learnings/large.md": "# Large\n\n" + "\n".join(sections)}))

    def fail(_: int, __: int) -> None:
        raise ArithmeticError

    before = set(threading.enumerate())
    slow = functools.partial(sqlite3.connect, factory=SlowConnection)
    with mock.patch.object(sqlite3, "connect", slow), mock.patch.object(sqlite_writer, "_ROWS", 100):
        with pytest.raises(ArithmeticError):
            kb.sync(progress=fail)
        for thread in set(threading.enumerate()) - before:
            thread.join()
    assert query(kb, "SELECT count(*) FROM chunks") == [(0,)]
