"""The walk: every note once, in code point order, and a problem for what is left out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from conftest import Files, write_files
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.model import Problem
from memory_kb.store.walk import walk
from memory_kb.vault import HOME_NOTE, find_vault

MakeVault = Callable[[Files], Path]


def look(folder: Path, home: Path | None = None, ignore: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return the paths found, and the problems as `path:line: message`."""
    problems: list[Problem] = []
    vault = find_vault(folder, home or folder.parent / "no-home", environ={}, cwd=folder)
    vault = vault._replace(settings=vault.settings._replace(ignore=tuple(ignore)))
    paths = [file.path for file in walk(vault, problems)]
    return paths, [str(problem) for problem in problems]


def test_files_come_in_code_point_order_of_their_paths(vault: MakeVault) -> None:
    names = [
        "a.md",
        "B.md",
        "é.md",
        "a/b.md",
        "a-b.md",
        "a b.md",
        "a.b/c.md",
        "a/B/z.md",
        "a0.md",
        "日本.md",
        "Z/a.md",
        "a/b/c/d.md",
        "🎉.md",
        "ﬀ.md",
    ]
    paths, problems = look(vault(dict.fromkeys(names, "")))
    assert paths == sorted(names)
    assert paths == sorted(names, key=str.encode), "the order of SQLite's binary collation"
    assert problems == []


NAMES = st.text(st.sampled_from("aB.-_ é日\U0001f389ﬀ\n~!"), min_size=1, max_size=3).filter(lambda name: name[0] != ".")


@given(st.sets(st.lists(NAMES, min_size=1, max_size=4).map("/".join), max_size=12), st.sampled_from(["", "memory/"]))
def test_every_note_comes_once_in_order(names: set[str], prefix: str) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = write_files(Path(os.path.realpath(place)), {"memory/config.yaml": ""} if prefix else {})
        made = {f"{prefix}{name}.md" for name in names}
        write_files(folder, dict.fromkeys(made, ""))
        assert look(folder, folder / ".home") == (sorted(made), [])


def test_only_markdown_counts_and_hidden_things_do_not(vault: MakeVault) -> None:
    files = [
        "a.md",
        "b.MD",
        "c.markdown",
        "d.txt",
        "e.md.bak",
        ".hidden.md",
        ".obsidian/x.md",
        "f/.git/y.md",
        "f/.memory-kb-1.tmp",
        "md",
        ".md",
        "g.md/h.md",
    ]
    assert look(vault(dict.fromkeys(files, ""))) == (["a.md", "b.MD", "g.md/h.md"], [])


def test_state_files_of_a_memory_vault_are_no_notes(vault: MakeVault) -> None:
    state = [
        "INTENT.md",
        "memory/CONTINUITY.md",
        "memory/jobs/j/CONTINUITY.md",
        "memory/jobs/j/INTENT.md",
        "other.md",
        "src/readme.md",
        "memory/config.yaml",
        "memory/jobs/j/tasks/t/.premortem.md",
    ]
    notes = [
        "MEMORY.md",
        "institutional.md",
        "memory/MEMORY.md",
        "memory/jobs/j/MEMORY.md",
        "memory/learnings/a.md",
        "memory/proxy.md",
        "memory/review/a.md",
    ]
    assert look(vault(dict.fromkeys(state + notes, ""))) == (notes, [])


def test_a_plain_folder_has_no_state_files(vault: MakeVault) -> None:
    assert look(vault({"INTENT.md": "", "a/CONTINUITY.md": ""}))[0] == ["INTENT.md", "a/CONTINUITY.md"]


def test_of_a_worktree_only_its_memory_counts(vault: MakeVault) -> None:
    task = "memory/jobs/api/tasks/t1/"
    files = [
        f"{task}MEMORY.md",
        f"{task}worktree/MEMORY.md",
        f"{task}worktree/README.md",
        f"{task}worktree/memory/learnings/x.md",
        f"{task}worktree/docs/MEMORY.md",
    ]
    others = ["memory/learnings/worktree/a.md", "memory/jobs/api/worktree/b.md"]
    assert look(vault(dict.fromkeys(files + others, "")))[0] == sorted([*files[:2], *others])


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        pytest.param(["drafts"], ["a.md", "deep/b.tmp.md", "deep/down/c.md"], id="folder-anywhere"),
        pytest.param(["drafts/"], ["a.md", "deep/b.tmp.md", "deep/down/c.md"], id="folder-with-slash"),
        pytest.param(["*.tmp.md"], ["a.md", "deep/down/c.md", "deep/drafts/e.md", "drafts/d.md"], id="name"),
        pytest.param(["deep/**"], ["a.md", "drafts/d.md"], id="below"),
        pytest.param(["/drafts"], ["a.md", "deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md"], id="from-the-top"),
        pytest.param(["deep/*"], ["a.md", "drafts/d.md"], id="star-takes-folders"),
        pytest.param(["**/c.md", "a.md"], ["deep/b.tmp.md", "deep/drafts/e.md", "drafts/d.md"], id="two"),
        pytest.param(["[!a].md"], ["a.md", "deep/b.tmp.md"], id="class"),
        pytest.param(
            ["nothing"], ["a.md", "deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md", "drafts/d.md"], id="nothing"
        ),
        pytest.param(
            ["[z-a]", "a.md"],
            ["deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md", "drafts/d.md"],
            id="broken-pattern",
        ),
        pytest.param(
            ["[!]", "a.md"], ["deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md", "drafts/d.md"], id="broken-class"
        ),
        pytest.param(
            ["[a&&b]", "a.md"],
            ["deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md", "drafts/d.md"],
            id="signs-in-a-class",
        ),
    ],
)
def test_what_is_ignored(vault: MakeVault, ignore: list[str], left: list[str]) -> None:
    folder = vault(dict.fromkeys(["a.md", "drafts/d.md", "deep/b.tmp.md", "deep/down/c.md", "deep/drafts/e.md"], ""))
    assert look(folder, ignore=ignore) == (left, [])


def test_ignore_patterns_are_held_against_the_path_in_output(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"memory/drafts/a.md": "", "memory/config.yaml": ""})
    write_files(tmp_path / "home", {"drafts/b.md": "", "c.md": ""})
    assert look(folder, tmp_path / "home", ["memory/drafts"])[0] == ["~global/c.md", "~global/drafts/b.md"]
    assert look(folder, tmp_path / "home", ["~global/drafts/**"])[0] == ["memory/drafts/a.md", "~global/c.md"]
    assert look(folder, tmp_path / "home", ["drafts"])[0] == ["~global/c.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_reported_and_not_opened(vault: MakeVault) -> None:
    folder = vault({"a.md": "", "pipes/x": ""})
    os.mkfifo(folder / "pipe.md")
    os.mkfifo(folder / "other-pipe")
    assert look(folder) == (["a.md"], ["pipe.md:1: is not a regular file; skipped"])


LINKS = [
    pytest.param({"loop": "."}, [], id="folder-to-itself"),
    pytest.param({"deep/up": ".."}, [], id="folder-to-above"),
    pytest.param(
        {"x.md": "y.md", "y.md": "x.md"},
        [f"{n}.md:1: is a symbolic link to nothing; skipped" for n in "xy"],
        id="files-in-a-circle",
    ),
    pytest.param({"self.md": "self.md"}, ["self.md:1: is a symbolic link to nothing; skipped"], id="file-to-itself"),
    pytest.param({"gone.md": "nowhere.md"}, ["gone.md:1: is a symbolic link to nothing; skipped"], id="dangling"),
    pytest.param({"again.md": "a.md", "deep/again.md": "../a.md"}, [], id="file-found-anyway"),
    pytest.param({"again": "deep"}, [], id="folder-found-anyway"),
    pytest.param(
        {"out.md": "../outside/b.md"},
        ["out.md:1: is a symbolic link out of the vault; skipped (copy the note here, or make its folder a vault)"],
        id="file-outside",
    ),
    pytest.param(
        {"out": "../outside"},
        ["out:1: is a symbolic link out of the vault; skipped (copy the note here, or make its folder a vault)"],
        id="folder-outside",
    ),
    pytest.param(
        {"up": "../.."},
        ["up:1: is a symbolic link out of the vault; skipped (copy the note here, or make its folder a vault)"],
        id="above-the-vault",
    ),
    pytest.param({"link.txt": "../outside/b.md", ".x.md": "nowhere"}, [], id="not-a-note"),
]


@pytest.mark.parametrize(("links", "problems"), LINKS)
@pytest.mark.parametrize("prefix", ["", "memory/"], ids=["plain", "memory"])
def test_links_are_not_followed_but_explained(
    vault: MakeVault, tmp_path: Path, links: dict[str, str], problems: list[str], prefix: str
) -> None:
    """A link that leads out of the notes, or nowhere, is reported; one to a note that is found anyway is not."""
    folder = vault({f"{prefix}a.md": "", f"{prefix}deep/c.md": "", **({"memory/config.yaml": ""} if prefix else {})})
    write_files(tmp_path / "outside", {"b.md": ""})
    for name, target in links.items():
        if prefix and target.startswith("../o"):
            target = f"../{target}"  # noqa: PLW2901 - one folder deeper
        (folder / prefix / name).symlink_to(target)
    paths, found = look(folder)
    assert paths == [f"{prefix}a.md", f"{prefix}deep/c.md"]
    assert sorted(found) == sorted(prefix + problem for problem in problems)


def test_the_notes_beside_a_memory_folder_may_be_links(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"memory/shared.md": "", "memory/config.yaml": ""})
    write_files(tmp_path, {"secret.md": "x"})
    (folder / "MEMORY.md").symlink_to("memory/shared.md")
    (folder / "institutional.md").symlink_to("../secret.md")
    paths, problems = look(folder)
    assert paths == ["memory/shared.md"]
    assert [problem.split(" ")[0] for problem in problems] == ["institutional.md:1:"]


def test_a_memory_folder_that_is_a_link_is_walked(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"src/x.py": ""})
    write_files(tmp_path / "notes", {"learnings/a.md": "", "config.yaml": ""})
    (folder / "memory").symlink_to(tmp_path / "notes")
    assert look(folder) == (["memory/learnings/a.md"], [])
    (tmp_path / "notes/again.md").symlink_to("learnings/a.md")
    assert look(folder) == (["memory/learnings/a.md"], []), "what the link leads to is found anyway"


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever runs this may read anything")
def test_a_folder_that_may_not_be_listed_is_reported(vault: MakeVault) -> None:
    folder = vault({"a.md": "", "locked/b.md": "", "z.md": ""})
    (folder / "locked").chmod(0)
    try:
        paths, problems = look(folder)
    finally:
        (folder / "locked").chmod(0o755)
    assert paths == ["a.md", "z.md"]
    assert problems == ["locked/:1: cannot be listed: Permission denied; what is in it is skipped"]


def test_a_name_that_is_no_utf_8_is_spelled_out(vault: MakeVault) -> None:
    folder = vault({"a.md": "", "z.md": ""})
    try:
        (folder / os.fsdecode(b"caf\xe9.md")).touch()
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (folder / os.fsdecode(b"d\xff")).mkdir()
    (folder / os.fsdecode(b"d\xff/b.md")).touch()
    paths, problems = look(folder)
    assert paths == ["a.md", "caf\\xe9.md", "d\\xff/b.md", "z.md"]
    assert problems == ["caf\\xe9.md:1: the file's name is not valid UTF-8; indexed under this spelling"]


def test_a_home_beside_the_vault_follows_it(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"z.md": ""})
    write_files(tmp_path / "home", {"learnings/a.md": "", "MEMORY.md": "", "CONTINUITY.md": "", ".memory-kb/x.md": ""})
    assert look(folder, tmp_path / "home") == (["z.md", "~global/MEMORY.md", "~global/learnings/a.md"], [])


def test_a_missing_home_is_empty_and_stays_missing(vault: MakeVault, tmp_path: Path) -> None:
    assert look(vault({"a.md": ""}), tmp_path / "none") == (["a.md"], [])
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("home", "prefix", "paths"),
    [
        pytest.param("home", "", ["a.md", "~global/g.md"], id="home-inside-a-plain-vault"),
        pytest.param("memory/home", "memory/", ["memory/a.md", "~global/g.md"], id="home-inside-the-memory-folder"),
        pytest.param("", "", ["a.md", "home/g.md"], id="home-is-a-plain-vault"),
        pytest.param("memory", "memory/", ["memory/a.md", "memory/home/g.md"], id="home-is-the-memory-folder"),
        pytest.param("", "memory/", ["memory/a.md", "memory/home/g.md"], id="home-is-a-memory-vault"),
    ],
)
def test_a_home_within_the_vault_is_walked_once(vault: MakeVault, home: str, prefix: str, paths: list[str]) -> None:
    folder = vault({f"{prefix}a.md": "", f"{prefix}home/g.md": "", **({"memory/config.yaml": ""} if prefix else {})})
    assert look(folder, folder / home) == (paths, [])


def test_a_vault_within_the_home_is_walked_once(tmp_path: Path) -> None:
    write_files(tmp_path, {"home/g.md": "", "home/project/a.md": "", "home/project/deep/b.md": ""})
    assert look(tmp_path / "home/project", tmp_path / "home") == (["a.md", "deep/b.md", "~global/g.md"], [])


def test_the_note_beside_the_home_counts_for_the_default_home_only(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"a.md": ""})
    write_files(tmp_path, {"MEMORY.md": "Mine.", ".memory/g.md": ""})
    default = find_vault(folder, None, environ={"HOME": str(tmp_path)}, cwd=folder)
    assert [file.path for file in walk(default, [])] == ["a.md", "~global/g.md", HOME_NOTE]
    assert look(folder, tmp_path / ".memory")[0] == ["a.md", "~global/g.md"]


def test_a_folder_named_like_the_home_in_output_is_left_out(vault: MakeVault, tmp_path: Path) -> None:
    """Nothing in the project can pass for the home."""
    folder = vault({"~global/fake.md": "", "a.md": ""})
    write_files(tmp_path / "home", {"real.md": ""})
    assert look(folder, tmp_path / "home")[0] == ["a.md", "~global/real.md"]


def test_what_is_found_is_as_the_disk_has_it(vault: MakeVault) -> None:
    folder = vault({"a.md": "12345"})
    (file,) = walk(find_vault(folder, folder / "none", environ={}, cwd=folder), [])
    known = (folder / "a.md").stat()
    assert file == ("a.md", str(folder / "a.md"), 5, known.st_mtime_ns, known.st_ino)


def test_a_deep_folder_is_walked(vault: MakeVault) -> None:
    name = "d/" * 300 + "a.md"
    assert look(vault({name: ""})) == ([name], [])
