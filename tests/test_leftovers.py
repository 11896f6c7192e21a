"""What a killed write leaves is nothing that git would take, and what a note was besides its bytes stays."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run, write_files
from killing import kill_at

from memory_kb import KnowledgeBase
from memory_kb.store.changes import create_file, set_fields

NOTE = "---\nid: n1\ntitle: Node\n---\nThe build needs Node 22.\n"


def untracked(folder: Path) -> set[str]:
    told = subprocess.run(
        ["git", "-C", str(folder), "status", "--porcelain", "--untracked-files=all"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {line[3:] for line in told.stdout.splitlines()}


def change(kb: KnowledgeBase) -> None:
    note = kb.writer.read("memory/rules/a.md")
    kb.writer.run(
        "test", [set_fields(note, "n1", {"importance": 0.9}, "x"), create_file("memory/rules/b.md", "B.\n", "x")]
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a process of its own")
def test_a_killed_write_leaves_nothing_for_git(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    folder = vault({"memory/config.yaml": "", "memory/rules/a.md": NOTE})
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    kb = open_kb(folder)
    kb.sync()
    kb.close()
    saved = shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}-saved")
    wanted, step = {"memory/config.yaml", "memory/rules/a.md", "memory/rules/b.md"}, 0
    while True:
        step += 1
        if not kill_at(
            step, lambda: change(KnowledgeBase.open(folder, tmp_path / "home", environ={"HOME": str(tmp_path)}))
        ):
            break
        assert untracked(folder) <= wanted
        with KnowledgeBase.open(folder, tmp_path / "home", environ={"HOME": str(tmp_path)}) as again:
            again.writer.run("next", [create_file("memory/rules/next.md", "N.\n", "x")])
        assert not list(folder.rglob("*.tmp"))
        shutil.rmtree(tmp_path)
        shutil.copytree(saved, tmp_path)
    assert step > 5


def test_attributes_stay_and_another_name_keeps_the_old_text(
    folder: Path, open_kb: Callable[..., KnowledgeBase], tmp_path: Path
) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE})
    file = folder / "memory/rules/a.md"
    os.link(file, tmp_path / "other-name.md")
    try:
        os.setxattr(file, "user.colour", b"red")
    except (AttributeError, OSError):
        pytest.skip("no extended attributes here")
    change(open_kb(folder))
    assert "importance: 0.9" in file.read_text()
    assert (tmp_path / "other-name.md").read_text() == NOTE
    (tmp_path / "other-name.md").unlink()
    kb = open_kb(folder)
    kb.writer.run("test", [set_fields(kb.writer.read("memory/rules/a.md"), "n1", {"importance": 0.8}, "x")])
    assert os.getxattr(file, "user.colour") == b"red"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_owner_and_group_stay(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE})
    os.chown(folder / "memory/rules/a.md", 12345, 23456)
    change(open_kb(folder))
    state = (folder / "memory/rules/a.md").stat()
    assert (state.st_uid, state.st_gid) == (12345, 23456)


def test_an_import_follows_no_link_out_of_its_source(folder: Path, run: Run, tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "secret.md": "The launch is on Monday, tell nobody.\n",
            "secret.json": "[]",
            "notes/a.md": "# Deploys\n\nDeploys happen on Tuesdays.\n",
        },
    )
    write_files(
        tmp_path,
        {
            "skill/SKILL.md": "---\nname: stolen\ndescription: x\n---\n1. Do.\n",
            "skills/good/SKILL.md": "---\nname: good\ndescription: Good.\n---\n1. Do.\n",
        },
    )
    (tmp_path / "notes/b.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "skills/bad").mkdir()
    (tmp_path / "skills/bad/SKILL.md").symlink_to(tmp_path / "skill/SKILL.md")
    run("--vault", folder, "import", tmp_path / "notes", "--format", "obsidian")
    run("--vault", folder, "skills", "import", tmp_path / "skills")
    (tmp_path / "export").mkdir()
    (tmp_path / "export/conversations.json").symlink_to(tmp_path / "secret.json")
    refused = run("--vault", folder, "import", tmp_path / "export", "--format", "chatgpt-export")
    assert refused.returncode == 4
    assert "is a link out of its folder" in refused.stderr
    texts = "".join(file.read_text() for file in folder.rglob("*.md"))
    assert "Tuesdays" in texts and "good" in texts
    assert "launch" not in texts and "stolen" not in texts
