"""What other systems lack or do differently, as far as it can be imitated here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run, clean_environment

from memory_kb import KnowledgeBase
from memory_kb.errors import MemoryKBError

#: What Windows or a file system such as exFAT does not have.
_MISSING = (
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "symlink",
    "statvfs",
    "chown",
    "listxattr",
    "sched_getaffinity",
    "fork",
    "mkfifo",
)
_PROGRAM = f"""
import os, sys
for name in {_MISSING!r}:
    if hasattr(os, name):
        delattr(os, name)

def refuse(*_, **__):
    raise PermissionError(1, "Operation not permitted")

os.link = refuse
from memory_kb.cli import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_system_without_links_attributes_and_fork_is_enough(folder: Path, home: Path) -> None:
    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, "--vault", str(folder), *words],
            env=clean_environment(home),
            cwd=folder,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    call("learn", "The oven is hot.")
    assert "The oven is hot." in call("search", "oven")
    call("forget", "The oven is hot.")
    assert "No results" in call("search", "oven")
    call("undo")
    assert "The oven is hot." in call("search", "oven")
    call("doctor")


@pytest.mark.skipif(os.name == "nt", reason="a backslash separates folders there")
def test_a_backslash_in_a_name_is_a_character(vault: Callable[[Files], Path], run: Run) -> None:
    folder = vault({"memory/config.yaml": "", "memory/learnings/a\\b.md": "The kiwi is ripe.\n"})
    note = "memory/learnings/a\\b.md"
    assert note in run("--vault", folder, "search", "kiwi").stdout
    assert run("--vault", folder, "forget", note).returncode == 0
    assert "status: retired" in (folder / note).read_text(encoding="utf-8")
    assert run("--vault", folder, "undo").returncode == 0
    assert (folder / note).read_text(encoding="utf-8") == "The kiwi is ripe.\n"


@pytest.mark.skipif(os.path.exists(__file__.upper()), reason="the file system ignores case")
def test_names_that_differ_by_case_are_two_notes(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault({"Fruit.md": "A mango with a stone.\n", "fruit.md": "A mango without one. [[Fruit]]\n"})
    kb = open_kb(folder)
    assert {hit.path for hit in kb.search("mango").hits} == {"Fruit.md", "fruit.md"}
    kb.forget("Fruit.md")
    assert (folder / "fruit.md").read_text(encoding="utf-8") == "A mango without one. [[Fruit]]\n"


def test_a_file_that_another_program_locks_stays_as_it_is(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "---\nid: tea\n---\nThe tea is green.\n"
    folder = vault({"memory/config.yaml": "", "memory/learnings/tea.md": text})
    replace = os.replace

    def refuse(source: str | Path, target: str | Path) -> None:
        if str(target).endswith("tea.md"):
            raise PermissionError(13, "The process cannot access the file because it is being used by another process")
        replace(source, target)

    kb = open_kb(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(MemoryKBError, match=r"tea\.md"):
            kb.forget("tea")
    assert (folder / "memory/learnings/tea.md").read_text(encoding="utf-8") == text
    kb.forget("tea")
    assert "status: retired" in (folder / "memory/learnings/tea.md").read_text(encoding="utf-8")
