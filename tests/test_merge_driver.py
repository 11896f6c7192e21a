"""The merge driver in a repository: installed and taken out, with git, and what is left to git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from merging import ENTRY, both_ways
from repositories import found

from memory_kb.git.merge_driver import merge_file
from memory_kb.git.merge_texts import TextMerge
from memory_kb.text import encode

if TYPE_CHECKING:
    from conftest import Run


@pytest.mark.parametrize("head", ["# Plain\n\n", "---\nnot: [closed\n---\n", "Head.\n\n---\n\n"])
def test_files_without_entries_go_to_git(head: str) -> None:
    text = f"{head}One.\n\nTwo.\n\nThree.\n"
    merged = both_ways(text, text.replace("One", "1"), text.replace("Three", "3"))
    assert merged == TextMerge(text.replace("One", "1").replace("Three", "3"))
    assert both_ways(text, text.replace("Two", "2"), text.replace("Two", "II")).conflicts == 1


def test_bytes_that_are_no_text_stay_as_they_are(tmp_path: Path) -> None:
    """What is no UTF-8 survives; what is no text at all is left to a person, ours in the folder."""
    base = encode(ENTRY).replace(b"owner", b"owner").replace(b"First", b"F\xffrst")
    names = [str(tmp_path / name) for name in ("o", "a", "b")]
    for name, data in zip(
        names, (base, base.replace(b"Second", b"2nd"), base.replace(b"count: 2", b"count: 3")), strict=True
    ):
        Path(name).write_bytes(data)
    assert merge_file(names[0], names[1], names[2], "memory/a.md") == 0
    assert Path(names[1]).read_bytes() == base.replace(b"Second", b"2nd").replace(b"count: 2", b"count: 3")
    for name, data in zip(names, (b"\0one", b"\0two", b"\0three"), strict=True):
        Path(name).write_bytes(data)
    assert merge_file(names[0], names[1], names[2], "memory/a.md") == 1
    assert Path(names[1]).read_bytes() == b"\0two"


def test_the_name_of_a_file_does_not_drive_the_terminal(run: Run, tmp_path: Path) -> None:
    for name in "oab":
        (tmp_path / name).write_bytes(b"\0" + name.encode())
    done = run("git", "merge-file", *(tmp_path / name for name in "oab"), "memory/a\x1b[2J\nmemory-kb: b.md")
    assert done.returncode == 1
    assert "\x1b" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_git_ours_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(tmp_path / name) for name in ("o", "a", "b")]
    for name, line in zip(names, ("Second", "2nd", "II"), strict=True):
        Path(name).write_text(ENTRY.replace("Second", line))
    monkeypatch.setenv("PATH", "/nowhere")
    assert merge_file(names[0], names[1], names[2], "memory/a.md") == 1
    assert Path(names[1]).read_text() == ENTRY.replace("Second", "2nd")


def test_installing_is_idempotent_and_is_taken_out_to_the_byte(tmp_path: Path, home: Path) -> None:
    own = b"*.png binary\r\n*.md text"
    clone = found(tmp_path / "v", home, {"memory/config.yaml": "", ".gitattributes": own})
    config = (clone.folder / ".git" / "config").read_bytes()
    assert "set merge.memory-kb.driver" in clone.kb("git", "install", "--dry-run")
    assert (clone.folder / ".gitattributes").read_bytes() == own
    clone.kb("git", "install")
    once = (clone.folder / ".gitattributes").read_bytes(), (clone.folder / ".git" / "config").read_bytes()
    assert once[0].endswith(own)
    assert clone.kb("git", "install") == ""
    assert ((clone.folder / ".gitattributes").read_bytes(), (clone.folder / ".git" / "config").read_bytes()) == once
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "memory/rules/deep/a.md")
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "MEMORY.md")
    assert "merge: unspecified" in clone.git("check-attr", "merge", "--", "docs/a.md")
    clone.kb("git", "install", "--uninstall")
    assert (clone.folder / ".gitattributes").read_bytes() == own
    assert (clone.folder / ".git" / "config").read_bytes() == config
    assert clone.kb("git", "install", "--uninstall") == ""


def test_no_attributes_are_left_where_there_were_none(tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"a.md": "plain folder"})
    clone.kb("git", "install")
    assert "merge: memory-kb" in clone.git("check-attr", "merge", "--", "deep/in/a.md")
    clone.kb("git", "install", "--uninstall")
    assert not (clone.folder / ".gitattributes").exists()


def test_outside_of_a_repository_it_says_so(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "git", "install", env={"GIT_CEILING_DIRECTORIES": str(folder.parent)})
    assert done.returncode == 3
    assert "is in no git repository" in done.stderr


def test_init_offers_it_in_a_repository(run: Run, tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"README.md": "x"})
    assert (
        run("init", clone.folder)
        .stderr.splitlines()[-1]
        .startswith("This is a git repository: `memory-kb git install`")
    )
    assert "git install" not in run("init", tmp_path / "other").stderr


def test_branches_meet_in_a_real_merge_and_without_the_driver_git_still_merges(tmp_path: Path, home: Path) -> None:
    clone = found(tmp_path / "v", home, {"memory/config.yaml": "", "memory/rules/a.md": ENTRY})
    note = clone.folder / "memory/rules/a.md"
    clone.kb("git", "install")
    clone.save("attributes")
    clone.git("checkout", "-q", "-b", "side")
    note.write_text(ENTRY.replace("count: 2", "count: 4").replace("First", "1st"))
    clone.save("side")
    clone.git("checkout", "-q", "main")
    note.write_text(ENTRY.replace("count: 2", "count: 3").replace("Second", "2nd"))
    clone.save("main")
    clone.git("branch", "before")
    clone.git("merge", "-q", "side")
    assert note.read_text() == ENTRY.replace("count: 2", "count: 5").replace("First", "1st").replace("Second", "2nd")
    clone.git("reset", "-q", "--hard", "before")
    driver = clone.git("config", "merge.memory-kb.driver").strip()
    clone.git("config", "merge.memory-kb.driver", driver.replace("command -v ", "command -v /nowhere"))
    assert "Automatic merge failed" in clone.git("merge", "side", may_fail=True)
    assert "<<<<<<< ours" in note.read_text()
    assert "count: 4" in note.read_text()
