"""Sync: after any history of edits the index is what a rebuild from nothing makes of the files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import NOW, Files
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from support import RICH, assert_equals_rebuild, check_full_text, found, query, rows

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
Row = tuple[object, ...]

ENTRY = "---\nid: e1\nkind: pitfall\ntags: [network]\napplies_to: ['src/**']\ncreated_at: '2026-03-01'\n---\nNever retry a payment.\n"


# -- any history of edits -------------------------------------------------------------------

NAMES = st.sampled_from(
    ["MEMORY.md", "memory/a.md", "memory/learnings/b.md", "memory/learnings/deep/c.md", "memory/rules/d.md", "memory/jobs/j/tasks/t/x.md"]
)
NAMES |= st.sampled_from(
    ["memory/archive/2026-01/e.md", "memory/Größe 日本.md", "memory/episodes/2026-02-03/f.md", "~home~/learnings/g.md", "~home~/institutional.md"]
)
FOLDERS = st.sampled_from(["memory/learnings", "memory/learnings/deep", "memory/rules", "memory/jobs/j", "memory/moved", "memory/archive"])
CONTENTS = st.sampled_from(
    [
        b"",
        b"\n \n",
        b"# Title\n\nalpha beta\n",
        ENTRY.encode(),
        ENTRY.replace("\n", "\r\n").encode() + b"\r\n---\r\nid: e2\r\nkind: fact\r\n---\r\nalpha again\r\n",
        "\ufeff# Größe\n\nDie Größe ändern. 検索機能を使う。 C++ und C#.\n".encode(),
        b"---\nid: e1\nstatus: retired\nimportance: 7\n---\nbeta gone\n",
        b"---\nbroken: [yaml\n---\nalpha\n",
        b"alpha \xff\xfe beta \x00 gamma\n",
        b"\n\n".join(b"## Part %d\n\n" % part + b"alpha gamma delta epsilon. " * 30 for part in range(5)),
    ]
)


class Edits(RuleBasedStateMachine):
    """People, editors and git at work on a vault; after any of their steps a sync may happen."""

    @initialize()
    def make(self) -> None:
        self.place = Path(tempfile.mkdtemp())
        self.home = self.place / "home"
        self.folder = self.place / "vault"
        (self.folder / "memory" / ".memory-kb").mkdir(parents=True)
        self.kb = KnowledgeBase.open(self.folder, self.home, environ={"HOME": str(self.place)}, clock=lambda: NOW)

    def file(self, name: str) -> Path:
        return self.home / name.removeprefix("~home~/") if name.startswith("~home~/") else self.folder / name

    @rule(name=NAMES, content=CONTENTS)
    def write(self, name: str, content: bytes) -> None:
        file = self.file(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    @rule(name=NAMES, content=CONTENTS)
    def append(self, name: str, content: bytes) -> None:
        if self.file(name).exists():
            with self.file(name).open("ab") as stream:
                stream.write(content)

    @rule(name=NAMES)
    def change_within_one_tick(self, name: str) -> None:
        """Sync, then save other words of the same size at once, as scripts do."""
        file = self.file(name)
        if file.exists():
            file.write_bytes(file.read_bytes().replace(b"alpha", b"gamma"))
            self.kb.sync()
            file.write_bytes(file.read_bytes().replace(b"gamma", b"alpha"))

    @rule(name=NAMES, content=CONTENTS)
    def save_like_an_editor(self, name: str, content: bytes) -> None:
        """Write beside and rename over, which changes the inode."""
        file = self.file(name)
        if file.exists():
            beside = file.with_name(".~tmp")
            beside.write_bytes(content)
            os.replace(beside, file)

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        self.file(name).unlink(missing_ok=True)

    @rule(name=NAMES, other=NAMES)
    def rename(self, name: str, other: str) -> None:
        if self.file(name).exists():
            self.file(other).parent.mkdir(parents=True, exist_ok=True)
            os.replace(self.file(name), self.file(other))

    @rule(folder=FOLDERS, other=FOLDERS)
    def move_folder(self, folder: str, other: str) -> None:
        source, target = self.folder / folder, self.folder / other
        if source.is_dir() and not target.exists() and not target.is_relative_to(source):
            shutil.move(source, target)

    @rule(name=NAMES, days=st.integers(-400, 400))
    def touch(self, name: str, days: int) -> None:
        if self.file(name).exists():
            os.utime(self.file(name), (NOW.timestamp(), NOW.timestamp() + days * 86_400))

    @rule()
    def sync(self) -> None:
        self.kb.sync()
        assert self.kb.sync().is_empty

    @rule()
    def rebuild(self) -> None:
        self.kb.sync(rebuild=True)

    @rule()
    def reopen(self) -> None:
        self.kb.close()

    @invariant()
    def has_nothing_pending_after_a_search(self) -> None:
        assert self.kb.search("alpha").freshness.pending == 0

    def teardown(self) -> None:
        if hasattr(self, "kb"):
            self.kb.sync()
            assert_equals_rebuild(self.kb, self.place / "fresh", ("alpha", "gamma delta", "größe", "検索", "payment C++", "2026-03-01"))
            self.kb.close()
            shutil.rmtree(self.place)


Edits.TestCase.settings = settings(max_examples=50, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TestAnyHistoryOfEdits = Edits.TestCase


# -- one kind of edit at a time -------------------------------------------------------------


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
    ("old", "new"), [("memory/learnings/a.md", "memory/rules/a.md"), ("memory/learnings", "memory/jobs/api/learnings")], ids=["a file", "its folder"]
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
    for word in words * 20:
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


@pytest.mark.parametrize(
    "word", ["active", "pitfall", "corrective", "planning", "wombat", "owner", "quokka", "dingo", "related_to", "importance", "team"]
)
def test_metadata_is_not_searched(vault: Vault, open_kb: Open, word: str) -> None:
    kb = open_kb(vault({"memory/rules/a.md": RICH, "memory/rules/b.md": "Another text.\n"}))
    assert found(kb, word) == []


@pytest.mark.parametrize("word", ["numbat", "koala", "platypus", "bilby", '"deep sea"', "possum", "2026-03-01", "March"])
def test_title_headings_body_tags_globs_and_date_are_searched(vault: Vault, open_kb: Open, word: str) -> None:
    kb = open_kb(vault({"memory/rules/a.md": RICH, "memory/rules/b.md": "Another text.\n"}))
    assert found(kb, word) == ["memory/rules/a.md"]


@pytest.mark.parametrize(
    "name", ["CONTINUITY.md", "INTENT.md", "memory/CONTINUITY.md", "memory/.premortem.md", "memory/.hidden/a.md", "memory/a.txt", "other/a.md"]
)
def test_what_is_no_note_is_not_indexed(vault: Vault, open_kb: Open, name: str) -> None:
    kb = open_kb(vault({name: "zebra\n", "memory/MEMORY.md": "camel\n"}))
    assert (found(kb, "zebra"), found(kb, "camel")) == ([], ["memory/MEMORY.md"])
