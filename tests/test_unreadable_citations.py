"""Cited code that cannot be looked at here: it is told, and nothing is withheld for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import citing
import pytest
from citing import CODE, NOTE, commit, edit, git, verdicts
from conftest import Files, write_files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.learning.citations import check_citation, hash_citation
from memory_kb.learning.code_references import Citation, CodeReference, parse_reference
from memory_kb.store.project_files import MAX_BYTES, CitedFile, ProjectFiles

project = citing.project

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


def test_it_works_without_git(vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vault(
        {"memory/config.yaml": "", "memory/learnings/note.md": entry(NOTE, id="note", kind="fact"), "src/a.py": CODE}
    )
    kb = open_kb(folder)
    kb.cite("note", ["src/a.py:4-7"])
    assert "commit" not in (folder / "memory/learnings/note.md").read_text()
    edit(folder / "src/a.py", "upload(", "send(")
    assert verdicts(kb) == {"src/a.py#L4-L7": "drifted"}
    with pytest.raises(UsageError, match="no such commit"):
        kb.cite("note", ["abcdef1"])
    (folder / ".git").mkdir()
    monkeypatch.setenv("PATH", str(folder))
    (folder / "src/a.py").unlink()
    assert verdicts(kb) == {"src/a.py#L4-L7": "gone"}


def test_a_commit_of_another_clone_is_reported_and_not_withheld(project: Path, open_kb: Open, tmp_path: Path) -> None:
    kb = open_kb(project)
    git(project, "checkout", "-qb", "side")
    (project / "x.txt").write_text("x")
    head = commit(project)
    kb.cite("note", [head])
    assert verdicts(kb) == {head: "fresh"}
    commit(project)
    git(project, "checkout", "-q", "-")
    git(project, "checkout", "-q", "side", "--", "memory")
    git(project, "branch", "-qD", "side")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    assert verdicts(kb) == {head: "unreadable"}
    assert "Uploads are retried" in kb.context("uploads are retried").text


def test_nothing_outside_of_the_project_is_read(project: Path, open_kb: Open, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text(CODE)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.py").write_text(CODE)
    (project / "link.py").symlink_to(tmp_path / "secret.py")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop.py").symlink_to(project / "loop.py")
    (project / "inside.py").symlink_to(project / "src/a.py")
    kb = open_kb(project)
    for reference in ("link.py", "link.py:4-7", "out/a.py:4-7", "../secret.py", str(tmp_path / "secret.py"), "loop.py"):
        with pytest.raises(UsageError, match="cannot be cited"):
            kb.cite("note", [reference])
    kb.cite("note", ["inside.py:4-7"])
    assert verdicts(kb) == {"inside.py#L4-L7": "fresh"}
    (project / "inside.py").unlink()
    (project / "inside.py").symlink_to(tmp_path / "secret.py")
    assert verdicts(kb) == {"inside.py#L4-L7": "unreadable"}


def test_odd_files(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        {
            "bin.dat": b"\x00\x01word",
            "huge.txt": b"x\n" * MAX_BYTES,
            "latin.py": b"# caf\xe9\nx = 1\n",
            "empty.py": b"",
            "braces.c": b"}\n",
        },
    )
    os.mkfifo(project / "pipe.py")
    kb = open_kb(project)
    reasons = {
        "huge.txt": "bytes",
        "huge.txt:1-2": "bytes",
        "src": "s a directory",
        "pipe.py": "a pipe",
        "nowhere.py": "no such file",
        "src/a.py:17-99": "18 lines",
        "src/a.py::nothing": "no such file",
        "empty.py:1": "0 lines",
        "braces.c:1": "no word",
        "deadbeef": "no such commit",
    }
    for reference, reason in reasons.items():
        with pytest.raises(UsageError, match=reason):
            kb.cite("note", [reference])
    kb.cite("note", ["bin.dat", "latin.py:1-2", "empty.py"])
    assert set(verdicts(kb).values()) == {"fresh"}
    (project / "bin.dat").write_bytes(b"\x00\x02word")
    (project / "latin.py").write_bytes(b"# caf\xe8\nx = 1\n")
    assert verdicts(kb) == {"bin.dat": "drifted", "latin.py#L1-L2": "drifted", "empty.py": "fresh"}
    (project / "empty.py").unlink()
    (project / "empty.py").mkdir()
    (project / "latin.py").write_bytes(b"\x00")
    assert verdicts(kb) == {"bin.dat": "drifted", "latin.py#L1-L2": "drifted", "empty.py": "unreadable"}


def test_judging_reads_each_file_once_and_only_what_is_cited(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = ProjectFiles(project, {})
    citations = [hash_citation(parse_reference(text), files) for text in ("src/a.py:4-7", "src/a.py:17-18", "src/a.py")]
    fresh = ProjectFiles(project, {})
    opened: list[str] = []
    real = ProjectFiles._open

    def open_one(self: ProjectFiles, path: str) -> CitedFile:
        opened.append(path)
        return real(self, path)

    monkeypatch.setattr(ProjectFiles, "_open", open_one)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("git is not needed for what is there"))
    assert [check_citation(one, fresh).verdict for one in citations] == ["fresh"] * 3
    assert opened == ["src/a.py"]
    assert check_citation(Citation(CodeReference("src/a.py", 4, 7)), fresh).verdict == "unrecorded"
