"""`forget --purge`: no byte of the text remains below the vault and the home."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from conftest import Run, clean_environment, write_files

from memory_kb import KnowledgeBase
from memory_kb.errors import InvalidSettings

if TYPE_CHECKING:
    from fake_provider import FakeProvider

OpenKB = Callable[..., KnowledgeBase]

#: The word of it is nowhere else.
TEXT = "The staging database accepts the walrus7781 passphrase of Ännchen, so never print it."
WORD = b"walrus7781"


def find_bytes(*folders: Path) -> list[str]:
    """Return the files below some folders that contain the word, those of git left out."""
    return sorted(
        str(file.relative_to(folder))
        for folder in folders
        for file in folder.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(folder).parts and WORD in file.read_bytes().lower()
    )


def fill(folder: Path, run: Run, **learned: str) -> str:
    """Say, learn, change, quote and search for the text; return the id of its entry."""
    write_files(
        folder,
        {
            "memory/handoffs/one.md": f"---\nid: h\nkind: handoff\n---\nMind this:\n\n> {TEXT[:40]}\n> {TEXT[41:]}\n\nBye.\n",
            "memory/learnings/other.md": "---\nid: other\n---\nThe staging database is slow.\n",
        },
    )
    options = [word for name, value in learned.items() for word in (f"--{name}", value)]
    told = json.loads(run("learn", TEXT, "--json", *options, "--vault", folder).stdout)
    said = {"type": "message", "role": "user", "content": f"Remember:\n{TEXT.lower()} Thanks!"}
    called = {
        "type": "tool_call",
        "tool": "Bash",
        "args": {"command": f"memory-kb learn '{TEXT}'", "n": 1},
        "content": json.dumps({"nested": f"a\n{TEXT}"}),
    }
    run("session", "start", "s", "--vault", folder)
    lines = "\n".join(map(json.dumps, (said, called, {"role": "user", "content": "Nothing of it."})))
    assert run("session", "append", "s", "--vault", folder, stdin=lines).returncode == 0
    for query in (TEXT, "staging", "walrus7781"):
        assert run("search", query, "--vault", folder).returncode == 0
        assert run("session", "search", query, "--vault", folder).returncode == 0
    assert run("learn", TEXT, *options, "--vault", folder).returncode == 0
    write_files(folder, {"memory/.memory-kb/.memory.db.broken": TEXT, "memory/.memory-kb/log/hooks.log": f"x {TEXT}\n"})
    write_files(
        folder, {"memory/.memory-kb/revisions/a/notes/b.md": TEXT, "memory/.memory-kb.foreign/log/x.jsonl": TEXT}
    )
    return str(told["id"])


def test_a_full_disk_is_named_and_purging_again_completes_it(folder: Path, home: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    told = kb.learn(TEXT).id
    is_full = sqlite3.OperationalError("database or disk is full")
    with (
        mock.patch("memory_kb.index.sqlite.scrub", side_effect=is_full),
        pytest.raises(InvalidSettings, match=r"deleted text may still be in .*the disk is full"),
    ):
        kb.forget(told, purge=True)
    kb.forget(told, purge=True)
    kb.close()
    assert find_bytes(folder, home) == []


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["project", "global"])
def test_nothing_that_contains_the_text_remains(folder: Path, home: Path, run: Run, scope: str) -> None:
    id_ = fill(folder, run, scope=scope)
    assert len(find_bytes(folder, home)) > 8
    previewed = run("forget", id_, "--purge", "--dry-run", "--json", "--vault", folder)
    before = find_bytes(folder, home)
    done = run("forget", id_, "--purge", "--json", "--vault", folder)
    assert (done.returncode, find_bytes(folder, home)) == (0, [])
    report = json.loads(done.stdout)
    assert json.loads(previewed.stdout)["files"] == report["files"]
    assert json.loads(previewed.stdout)["runs"] == report["runs"] > 1
    assert len(before) > 8
    # What else was there is there still.
    assert run("show", "h", "--vault", folder).stdout.count("Bye.") == 1
    assert "is slow" in run("search", "staging", "--vault", folder).stdout
    replayed = run("session", "replay", "s", "--vault", folder).stdout
    assert "Nothing of it." in replayed
    assert "(purged)" in replayed
    assert run("status", "--check", "--vault", folder).returncode == 0
    assert run("learn", TEXT, "--scope", scope, "--vault", folder).returncode != 0


def test_a_short_text_is_purged_from_its_entry_alone(folder: Path, run: Run) -> None:
    write_files(folder, {"memory/rules/b.md": "---\nid: b\n---\nUse tabs everywhere.\n"})
    id_ = json.loads(run("learn", "Use tabs.", "--json", "--vault", folder).stdout)["id"]
    done = run("forget", id_, "--purge", "--vault", folder)
    assert "too short" in done.stderr
    assert "Use tabs everywhere." in (folder / "memory/rules/b.md").read_text()


def test_what_git_holds_is_named(folder: Path, run: Run) -> None:
    def git(*words: str) -> str:
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        return subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True, text=True).stdout

    learned = json.loads(run("learn", TEXT, "--json", "--vault", folder).stdout)
    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    done = run("forget", learned["id"], "--purge", "--vault", folder)
    assert git("log", "--format=%h").strip() in done.stderr
    assert "git filter-repo" in done.stderr
    assert find_bytes(folder) == []


@pytest.mark.slow
def test_the_vector_of_the_text_is_gone(folder: Path, home: Path, run: Run, fake: FakeProvider) -> None:
    env = {"MEMORY_KB_EMBEDDINGS_BASE_URL": fake.base_url, "MEMORY_KB_EMBEDDINGS_MODEL": "small"}
    write_files(folder, {"memory/a.md": "---\nid: a\n---\nThe event loop sleeps.\n"})
    id_ = json.loads(run("learn", TEXT, "--json", "--vault", folder, env=env).stdout)["id"]
    run("index", "--vault", folder, env=env)

    def cached() -> int:
        with closing(sqlite3.connect(folder / "memory/.memory-kb/.memory.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM embedding_cache").fetchone()[0])

    assert cached() == 2
    run("forget", id_, "--purge", "--vault", folder, env=env)
    assert cached() == 1
    asked = fake.count("sleeps")
    hits = json.loads(run("search", "event loop", "--mode", "vector", "--json", "--vault", folder, env=env).stdout)
    assert [hit["id"] for hit in hits["hits"]] == ["a"]
    assert fake.count("sleeps") == asked


@pytest.mark.slow
def test_a_purge_that_was_killed_is_completed_by_the_next(folder: Path, home: Path, run: Run) -> None:
    id_ = fill(folder, run)
    command = [sys.executable, "-m", "memory_kb", "forget", id_, "--purge", "--vault", str(folder)]
    started = time.monotonic()
    assert run("forget", id_, "--purge", "--dry-run", "--vault", folder).returncode == 0
    least = time.monotonic() - started
    for share in (0.5, 0.8, 1.0, 1.2, 1.5, 2.0):
        process = subprocess.Popen(command, env=clean_environment(home), stdout=-3, stderr=-3)
        try:
            process.wait(least * share)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert run("forget", id_, "--purge", "--vault", folder).returncode == 0
    assert find_bytes(folder, home) == []
    (tombstone,) = (folder / "memory/learnings").glob(f"*{id_[:8]}.md")
    assert re.search(r"(?m)^tombstone: ", tombstone.read_text())
