"""Sync: after any history of edits the index is what a rebuild from nothing makes of the files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from conftest import NOW, Files, clean_environment
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
Row = tuple[object, ...]

ENTRY = "---\nid: e1\nkind: pitfall\ntags: [network]\napplies_to: ['src/**']\ncreated_at: '2026-03-01'\n---\nNever retry a payment.\n"


def query(kb: KnowledgeBase, statement: str) -> list[Row]:
    """Ask the database file itself."""
    with closing(sqlite3.connect(kb.machine / ".memory.db")) as connection:
        return connection.execute(statement).fetchall()


def rows(kb: KnowledgeBase) -> tuple[list[Row], list[Row]]:
    """Return all that the index holds of the files: chunks in order, and files without their times."""
    return query(kb, "SELECT * FROM chunks ORDER BY source, position"), query(kb, "SELECT path, size, hash, problems FROM file_meta ORDER BY path")


def check_full_text(kb: KnowledgeBase) -> None:
    """Let SQLite hold the full-text index against the chunks."""
    with closing(sqlite3.connect(kb.machine / ".memory.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def rebuilt(kb: KnowledgeBase, folder: Path) -> KnowledgeBase:
    """Return a knowledge base over the same files whose index was made from nothing in `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    fresh = KnowledgeBase.open(
        kb.vault.folder, kb.vault.home, environ={"HOME": str(kb.vault.home.parent), "MEMORY_KB_INDEX_PATH": str(folder)}, clock=lambda: NOW
    )
    fresh.sync(rebuild=True)
    return fresh


def assert_equals_rebuild(kb: KnowledgeBase, folder: Path, queries: tuple[str, ...]) -> None:
    with rebuilt(kb, folder) as fresh:
        assert rows(kb) == rows(fresh)
        assert kb.sync().problems == fresh.sync().problems
        for text in queries:
            assert kb.search(text, limit=50).hits == fresh.search(text, limit=50).hits
    check_full_text(kb)


def found(kb: KnowledgeBase, text: str) -> list[str]:
    return [hit.path for hit in kb.search(text).hits]


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

RICH = """---
id: quokka-1
kind: pitfall
status: active
phase: planning
importance: 0.8
owner: wombat
title: Numbat budget
tags: [bilby, "deep sea"]
applies_to: ['src/possum/**']
created_at: '2026-03-01'
links: [{to: dingo, relation: related_to}]
---
# Koala chapter

Platypus text.
"""


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


# -- problems -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (b"one\ntwo \xff\n", 2, "not valid UTF-8"),
        ("zebra\n".encode("utf-16"), 1, "is UTF-16"),
        (b"one\n\nthree\x00\n", 3, "NUL bytes"),
        (b"---\nid: x\n  bad: indent\n---\ntext\n", 3, "not valid YAML"),
        (b"---\nid: x\nimportance: 7\n---\ntext\n", 3, "outside 0 to 1"),
        (b"---\nid: x\nkind: novel\n---\ntext\n", 3, "not a known word"),
        (b"---\nid: x\ntext without end\n", 1, "never closed"),
    ],
    ids=["bytes", "utf-16", "nul", "yaml", "number", "word", "unclosed"],
)
def test_a_problem_is_told_again_while_its_file_stays_as_it_is(vault: Vault, open_kb: Open, content: bytes, line: int, message: str) -> None:
    folder = vault({"memory/learnings/a.md": content, "memory/learnings/b.md": "fine\n"})
    kb = open_kb(folder)
    first, second = kb.sync(), kb.sync()
    kb.close()
    third = open_kb(folder).sync()
    assert {(problem.path, problem.line) for problem in first.problems} == {("memory/learnings/a.md", line)}
    assert any(message in problem.message for problem in first.problems)
    assert first.problems == second.problems == third.problems == open_kb(folder).status().problems
    assert (second.unchanged, third.unchanged) == (2, 2)
    (folder / "memory/learnings/a.md").write_text("mended\n")
    assert kb.sync().problems == ()


def test_nul_and_invalid_bytes_stay_searchable_text(vault: Vault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/learnings/a.md": b"zebra\x00camel \xff\xc3( llama\n"}))
    for word in ("llama", "zebra", "camel"):
        assert found(kb, word) == ["memory/learnings/a.md"], word


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the file system takes only valid names")
def test_a_file_whose_name_is_not_utf_8_is_indexed_under_a_readable_one(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/b.md": "camel\n"})
    with open(os.fsencode(folder / "memory/learnings") + b"/caf\xe9.md", "wb") as stream:
        stream.write(b"zebra\n")
    kb = open_kb(folder)
    assert found(kb, "zebra") == ["memory/learnings/caf\\xe9.md"]
    assert "name is not valid UTF-8" in kb.sync().problems[0].message
    assert kb.sync().is_empty


@pytest.mark.parametrize("content", ["é" * 1_000, "長" * 1_000, "ab\n" * 700], ids=["two bytes", "three bytes", "lines"])
@pytest.mark.parametrize("limit", [1_000, 1_001])
def test_a_large_file_is_indexed_up_to_the_limit_and_says_only_that(vault: Vault, open_kb: Open, content: str, limit: int) -> None:
    kb = open_kb(vault({"memory/learnings/a.md": content, "memory/config.yaml": f"index: {{max_file_bytes: {limit}}}\n"}))
    report = kb.sync()
    assert ["only its first" in problem.message for problem in report.problems] == [True]
    texts = "".join(str(text) for (text,) in query(kb, "SELECT content FROM chunks ORDER BY position")).replace("\n", "")
    assert content.replace("\n", "").startswith(texts)
    assert len(texts.encode()) > 600


def test_fifty_megabytes_in_one_file_stay_within_bounded_memory(vault: Vault, home: Path) -> None:
    folder = vault({"memory/learnings/small.md": "camel\n"})
    with (folder / "memory/learnings/huge.md").open("wb") as stream:
        for number in range(50):
            stream.write(f"zebra{number} of the herd\n".encode() * (1_000_000 // 20))
    script = (
        "import resource, sys\n"
        "from memory_kb import KnowledgeBase\n"
        "with KnowledgeBase.open(sys.argv[1]) as kb:\n"
        "    kb.search('camel', sync=False)\n"
        "    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    report = kb.sync()\n"
        "    hits = kb.search('zebra0').hits\n"
        "    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, len(hits), report.problems[0])\n"
    )
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)], capture_output=True, text=True, timeout=60, env=clean_environment(home), check=True
    )
    grown, hits, problem = done.stdout.split(maxsplit=2)
    megabytes = int(grown) / (1_000_000 if sys.platform == "darwin" else 1_000)
    assert megabytes < 150
    assert int(hits) > 0
    assert problem.startswith("memory/learnings/huge.md:1: is ")
    assert "MB, over index.max_file_bytes" in problem


# -- settings and outside interference ------------------------------------------------------


def test_another_file_limit_rebuilds(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "camel\n" * 100 + "zebra\n"})
    assert found(open_kb(folder), "zebra") == ["memory/learnings/a.md"]
    (folder / "memory/config.yaml").write_text("index:\n  max_file_bytes: 60\n")
    kb = open_kb(folder)
    report = kb.sync()
    assert any("settings changed" in notice for notice in report.notices)
    assert found(kb, "zebra") == []


def test_another_tokenizer_rebuilds_and_says_so(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": "The tests are flaky.\n"})
    assert found(open_kb(folder), "test") == ["memory/learnings/a.md"]
    (folder / "memory/config.yaml").write_text("index:\n  tokenizer: unicode61 remove_diacritics 2\n")
    kb = open_kb(folder)
    result = kb.search("test")
    assert result.hits == ()
    assert any("settings changed" in reason for reason in result.degraded)
    again = kb.search("tests")
    assert ([hit.path for hit in again.hits], again.degraded) == (["memory/learnings/a.md"], ())


@pytest.mark.parametrize("statement", ["VACUUM", "UPDATE chunks SET rowid = rowid + 1000"], ids=["vacuum", "new rowids"])
def test_rows_renumbered_from_outside_change_no_answer(vault: Vault, open_kb: Open, tmp_path: Path, statement: str) -> None:
    long = "\n\n".join(f"## Part {part}\n\n" + f"alpha beta{part} gamma. " * 30 for part in range(5))
    kb = open_kb(vault({f"memory/learnings/{name}.md": long for name in "abc"}))
    before = kb.search("beta3", limit=20).hits
    keys = query(kb, "SELECT rowid FROM chunks ORDER BY rowid")
    with closing(sqlite3.connect(kb.machine / ".memory.db", isolation_level=None)) as connection:
        connection.execute(statement)
    was_renumbered = query(kb, "SELECT rowid FROM chunks ORDER BY rowid") != keys
    result = kb.search("beta3", limit=20)
    assert result.hits == before
    assert any("renumbered" in reason for reason in result.degraded) == was_renumbered
    assert_equals_rebuild(kb, tmp_path / "fresh", ("alpha", "beta3"))


def put_vector(kb: KnowledgeBase) -> None:
    with closing(sqlite3.connect(kb.machine / ".memory.db")) as connection, connection:
        connection.execute("INSERT INTO embedding_cache VALUES ('h', 'p', 'm', 3, x'00', '2026-01-01')")


def test_cached_vectors_survive_every_rebuild(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY})
    kb = open_kb(folder)
    kb.sync()
    put_vector(kb)
    kb.sync(rebuild=True)
    kb.close()
    (folder / "memory/config.yaml").write_text("index:\n  tokenizer: porter ascii\n")
    kb = open_kb(folder)
    kb.sync()
    kb.close()
    with closing(sqlite3.connect(kb.machine / ".memory.db")) as connection:
        connection.execute("PRAGMA user_version = 77")
    kb = open_kb(folder)
    kb.sync()
    assert query(kb, "SELECT hash, model FROM embedding_cache") == [("h", "m")]


def test_deleting_the_index_changes_no_answer(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/learnings/a.md": ENTRY, "memory/rules/a.md": RICH})
    kb = open_kb(folder)
    before = kb.search("retry payment platypus").hits
    kb.close()
    shutil.rmtree(kb.machine)
    assert open_kb(folder).search("retry payment platypus").hits == before


def test_the_configured_index_path_keeps_the_vault_clean(vault: Vault, home: Path, tmp_path: Path) -> None:
    folder = vault({"notes/a.md": "zebra\n"})
    with KnowledgeBase.open(folder, home, environ={"HOME": str(tmp_path), "MEMORY_KB_INDEX_PATH": str(tmp_path / "indexes")}) as kb:
        assert found(kb, "zebra") == ["notes/a.md"]
    assert [file.name for file in folder.iterdir()] == ["notes"]
    assert not home.exists()


def test_a_vault_that_cannot_be_written_is_indexed_in_the_cache_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "vault").mkdir()
        (place / "vault/a.md").write_text("zebra\n")
        (place / "cache").mkdir()
        (place / "cache").chmod(0o777)
        (place / "vault").chmod(0o555)
        user = 65534 if hasattr(os, "geteuid") and os.geteuid() == 0 else None
        env = clean_environment(place / "home") | {"XDG_CACHE_HOME": str(place / "cache")}

        def run_as_user(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "memory_kb", "--vault", str(place / "vault"), *arguments]
            return subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd="/", timeout=60, user=user, group=user)

        try:
            is_reachable = run_as_user("--version").returncode == 0
        except PermissionError:
            is_reachable = False
        if not is_reachable:
            pytest.skip("nobody but the superuser can run this interpreter")
        done = run_as_user("search", "zebra")
        (place / "vault").chmod(0o755)
        assert (done.returncode, done.stderr) == (0, "")
        assert "a.md" in done.stdout
        assert [file.name for file in (place / "vault").iterdir()] == ["a.md"]
        assert list((place / "cache").glob("memory-kb/*/.memory.db"))


def test_many_changes_are_one_generation(vault: Vault, open_kb: Open) -> None:
    folder = vault({f"memory/learnings/{number}.md": f"note {number}\n" for number in range(500)})
    kb = open_kb(folder)
    generation = kb.search("note").freshness.generation
    for number in range(0, 500, 2):
        (folder / f"memory/learnings/{number}.md").write_text(f"changed note {number}\n")
    report = kb.sync()
    assert (report.changed, report.unchanged) == (250, 250)
    assert kb.search("note", sync=False).freshness.generation == generation + 1
    started = time.perf_counter()
    assert kb.sync().is_empty
    assert time.perf_counter() - started < 5
