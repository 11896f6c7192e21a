"""No path of a plan, a log or an undo leads out of the vault, into `.git`, or to a file that is no note."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run, write_files
from hypothesis import example, given
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput
from memory_kb.store.changes import create_file

UNSAFE = (
    "../x.md", "memory/../../x.md", "/tmp/x.md", "~global/../x.md", "~global//etc/x.md", ".", "memory",
    ".git/hooks/post-commit", ".git/x.md", "memory/.git/x.md", ".GIT/x.md", ".\u200cgit/x.md", "\u200c.git/x.md",
    "git~1/x.md", "GIT~2/hooks/x.md", ".obsidian/x.md", ".memory-kb/log/decisions.jsonl", "memory/.memory-kb/x.md",
    "\\x2e\\x2e/x.md", "memory/\\x2egit/x.md", "memory\\x2f..\\x2f..\\x2fx.md", "a\0.md", "memory/x.py", "x.sh",
    "Makefile", "memory/config.yaml", ".claude/run.sh", ".github/workflows/x.yml", ".envrc",
)  # fmt: skip


def plan(path: str) -> list[object]:
    return [create_file(path, "Words.\n", "A test.")]


def listing(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if ".memory-kb" not in file.parts}


def test_a_plan_cannot_write_elsewhere(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    kb = open_kb(folder)
    kb.writer.run("test", [create_file("memory/rules/a.md", "One.\n", "A test.")])
    kb.vault.home.mkdir()
    before = listing(folder.parent)
    for path in UNSAFE:
        for dry_run in (True, False):
            with pytest.raises(UnreadableInput, match="is not written"):
                kb.writer.run("test", plan(path), dry_run=dry_run)  # type: ignore[arg-type]
        assert listing(folder.parent) == before, path


@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "memory", "rules", ".git", "a.md", "x.py", "~global", "\\x2e", "\\x2f", "out", "in", "loop"]
        )
        | st.text(max_size=4),
        max_size=6,
    ).map("/".join)
)
@example("out/a.md")
@example("in/a.md")
def test_what_is_writable_is_in_the_vault_and_is_not_hidden(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    from memory_kb.store.safe_paths import explain_unsafe
    from memory_kb.vault import find_vault

    top = tmp_path_factory.mktemp("top")
    write_files(top / "v", {"memory/config.yaml": "", "memory/rules/a.md": "", ".git/config": ""})
    (top / "home").mkdir()
    for name, goal in {"out": top, "in": top / "v/memory/rules", "loop": top / "v/loop", "git": top / "v/.git"}.items():
        (top / "v" / name).symlink_to(goal)
    vault = find_vault(top / "v", top / "home", environ={"HOME": str(top)}, cwd=top)
    if explain_unsafe(vault, path) is None:
        real = os.path.realpath(vault.resolve(path))
        roots = [root for root in (str(top / "v"), str(top / "home")) if real.startswith(root + os.sep)]
        assert len(roots) == 1
        parts = real.removeprefix(roots[0]).split(os.sep)[1:]
        assert not any(part.startswith(".") for part in parts)


def test_a_link_out_of_the_vault_is_not_written_through(folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "elsewhere").mkdir()
    (folder / "memory/learnings").symlink_to(tmp_path / "elsewhere")
    done = run("--vault", folder, "learn", "The build needs Node 22 on every machine.")
    assert done.returncode == 4
    assert "a link leads out of" in done.stderr
    assert "Traceback" not in done.stderr
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("goal", [".git/hooks", ".memory-kb"])
def test_a_link_to_a_hidden_folder_of_the_vault_is_not_written_through(goal: str, folder: Path, run: Run) -> None:
    (folder / "memory" / goal).mkdir(parents=True)
    (folder / "memory/learnings").symlink_to(goal)
    done = run("--vault", folder, "learn", "The build needs Node 22 on every machine.")
    assert done.returncode == 4
    assert not [file for file in (folder / "memory" / goal).iterdir() if file.suffix == ".md"]


def test_a_memory_folder_that_leads_elsewhere_is_not_written(tmp_path: Path, run: Run) -> None:
    write_files(tmp_path, {"other/config.yaml": "", "v/x.txt": ""})
    (tmp_path / "v/memory").symlink_to("../other")
    done = run("--vault", tmp_path / "v", "learn", "The build needs Node 22 on every machine.")
    assert done.returncode == 4
    assert not (tmp_path / "other/learnings").exists()


def test_links_to_other_folders_of_the_same_vault_keep_working(folder: Path, run: Run) -> None:
    (folder / "memory/team").mkdir()
    (folder / "memory/learnings").symlink_to("team")
    done = run("--vault", folder, "learn", "The build needs Node 22 on every machine.")
    assert done.returncode == 0, done.stderr
    assert len(list((folder / "memory/team").glob("*.md"))) == 1


def test_an_agent_is_not_installed_through_a_link_out_of_the_project(folder: Path, tmp_path: Path, run: Run) -> None:
    target = write_files(tmp_path / "elsewhere", {"settings.json": "{}"}) / "settings.json"
    (folder / ".claude").mkdir()
    (folder / ".claude/settings.json").symlink_to(target)
    done = run("--vault", folder, "install", "claude-code", "--yes")
    assert done.returncode == 4, done.stdout + done.stderr
    assert target.read_text() == "{}"


def test_new_files_are_never_programs(vault: Callable[[Files], Path], run: Run, tmp_path: Path) -> None:
    skill = write_files(
        tmp_path / "skill",
        {"SKILL.md": "---\nname: deploy\ndescription: How to deploy.\n---\n1. Run it.\n", "run.sh": "x"},
    )
    (skill / "run.sh").chmod(0o777)
    folder = vault({"memory/config.yaml": ""})
    assert run("--vault", folder, "skills", "import", skill, "--with-files").returncode == 0
    (copied,) = folder.rglob("run.sh")
    assert copied.stat().st_mode & 0o111 == 0
