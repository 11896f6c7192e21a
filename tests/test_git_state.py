"""What ledgers and handoffs say of git: the commit, the branch and the changed files, where there is one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import clean_environment

from memory_kb import KnowledgeBase
from memory_kb.store.git_command import read_git_state

Open = Callable[..., KnowledgeBase]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")


def git(folder: Path, *arguments: str) -> str:
    environment = clean_environment(folder / "nobody") | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    names = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", "-C", folder, *names, *arguments], check=True, capture_output=True, text=True, env=environment
    ).stdout.strip()


@pytest.fixture
def repository(folder: Path) -> Path:
    """A vault in a repository with one commit."""
    (folder / ".gitignore").write_text("home/\n")
    git(folder, "init", "-q")
    (folder / "code.py").write_text("one\n")
    git(folder, "add", "code.py", ".gitignore")
    git(folder, "commit", "-q", "-m", "First words")
    return folder


@needs_git
def test_what_git_says(repository: Path, open_kb: Open) -> None:
    kb = open_kb(repository)
    (repository / "code.py").write_text("two\n")
    (repository / "größe new.py").write_text("new\n")
    state = kb.handoffs.create("a", "b").handoff.git_state
    assert isinstance(state, dict)
    commit = git(repository, "rev-parse", "HEAD")[:12]
    assert state == {
        "branch": "main",
        "last_commit": commit,
        "subject": "First words",
        "dirty_files": ["code.py", "größe new.py"],
    }
    assert kb.handoffs.show("1").git_state == state
    ledger = kb.ledgers.set("a", task="T").ledger.as_mapping
    assert ledger["state"] == {"files_modified": [], "uncommitted_changes": True, "last_git_commit": commit}


@needs_git
def test_the_memories_themselves_are_no_changes(repository: Path, open_kb: Open) -> None:
    kb = open_kb(repository)
    for _ in range(2):
        assert kb.ledgers.set("a", task="T").ledger.as_mapping["state"]["uncommitted_changes"] is False
    assert kb.handoffs.create("a", "b").action == "created"
    assert kb.handoffs.create("a", "b").action == "known"


@needs_git
def test_a_new_repository_a_rename_and_a_worktree(tmp_path: Path, repository: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    assert read_git_state(fresh, {}) is None
    git(fresh, "init", "-q")
    state = read_git_state(fresh, {})
    assert state
    assert (state.branch, state.commit, state.subject) == ("main", None, None)
    git(repository, "mv", "code.py", "renamed.py")
    git(repository, "worktree", "add", "-q", "--detach", str(tmp_path / "tree"))
    moved, detached = read_git_state(repository, {}, ("memory",)), read_git_state(tmp_path / "tree", {})
    assert moved
    assert detached
    assert moved.dirty_files == ("renamed.py",)
    assert (detached.branch, detached.commit, detached.dirty_count) == (None, moved.commit, 0)


def test_without_git(tmp_path: Path) -> None:
    assert read_git_state(tmp_path, {"PATH": str(tmp_path)}) is None
    assert read_git_state(tmp_path / "nowhere", {}) is None


@needs_git
def test_many_files_are_counted(repository: Path) -> None:
    for number in range(250):
        (repository / f"f{number:04d}").write_text("")
    state = read_git_state(repository, {}, ("memory",))
    assert state
    assert (len(state.dirty_files), state.dirty_count) == (100, 250)
