"""Where a vault is, what shape it has, and which scope a path belongs to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.errors import MemoryKBError, VaultNotFound
from memory_kb.model import Location
from memory_kb.store.session_events import Event
from memory_kb.store.walk import walk, walk_region
from memory_kb.vault import HOME_NOTE, Vault, default_status, find_vault, is_memory_folder, place_of_path

MakeVault = Callable[[Files], Path]


def find(folder: Path | None, home: Path | None = None, *, cwd: Path | None = None, **environ: str) -> Vault:
    return find_vault(folder, home, environ={"HOME": "/nobody", **environ}, cwd=cwd or Path("/"))


@pytest.mark.parametrize(
    "marker",
    [
        "memory/config.yaml",
        "memory/.memory-kb/x",
        "memory/MEMORY.md",
        "memory/learnings/a.md",
        "memory/jobs/j/x.md",
        "memory/episodes/x",
    ],
)
def test_a_folder_with_a_marked_memory_folder_is_a_memory_vault(vault: MakeVault, marker: str) -> None:
    folder = vault({marker: ""})
    found = find(folder)
    assert (found.folder, found.memory, found.machine) == (folder, folder / "memory", folder / "memory/.memory-kb")


@pytest.mark.parametrize(
    "files",
    [{"a.md": ""}, {"memory/a.md": ""}, {"memory": ""}, {"MEMORY.md": ""}, {"learnings/a.md": ""}],
    ids=["notes", "notes-in-memory", "memory-is-a-file", "top-note", "inside"],
)
def test_any_other_folder_is_plain(vault: MakeVault, files: Files) -> None:
    folder = vault(files)
    found = find(folder)
    assert (found.folder, found.memory, found.machine) == (folder, None, folder / ".memory-kb")


def test_the_folder_named_comes_before_the_environment_and_that_before_the_place(tmp_path: Path) -> None:
    named, in_environ, around = (tmp_path / name for name in ("named", "environ", "around"))
    for folder in (named, in_environ, around / "memory/learnings"):
        folder.mkdir(parents=True)
    assert find(named, cwd=around, MEMORY_KB_VAULT=str(in_environ)).folder == named
    assert find(None, cwd=around, MEMORY_KB_VAULT=str(in_environ)).folder == in_environ
    assert find(None, cwd=around).folder == around


@pytest.mark.parametrize(
    "files",
    [{"memory/config.yaml": ""}, {}, {"memory/MEMORY.md": "", "memory/.memory-kb/.gitignore": "*"}],
    ids=["configured", "bare", "indexed-once"],
)
def test_the_nearest_vault_around_the_working_folder(vault: MakeVault, files: Files) -> None:
    """Also from inside its memory folder, and whether or not it was indexed or configured before."""
    folder = vault(
        {"memory/learnings/a.md": "", "memory/jobs/api/tasks/t1/MEMORY.md": "", "src/deep/down/x.py": "", **files}
    )
    for place in ("", "src/deep/down", "memory", "memory/learnings", "memory/jobs/api/tasks/t1"):
        found = find(None, cwd=folder / place)
        assert (found.folder, found.memory) == (folder, folder / "memory"), place


def test_a_plain_folder_is_found_again_once_it_was_indexed(vault: MakeVault) -> None:
    folder = vault({"notes/a.md": "", ".memory-kb/.gitignore": "*"})
    assert find(None, cwd=folder / "notes").folder == folder


def test_a_memory_folder_named_itself_is_its_vault(vault: MakeVault) -> None:
    folder = vault({"memory/config.yaml": "", "memory/.memory-kb/.gitignore": "*"})
    assert find(folder / "memory").folder == folder


def test_a_link_to_a_vault_is_the_vault(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"memory/config.yaml": ""})
    (tmp_path / "link").symlink_to(folder)
    assert find(tmp_path / "link").folder == folder


@pytest.mark.parametrize(("name", "message"), [("missing", "does not exist"), ("file.md", "is not a folder")])
def test_what_is_no_folder_is_no_vault(vault: MakeVault, name: str, message: str) -> None:
    folder = vault({"file.md": ""})
    with pytest.raises(VaultNotFound, match=message) as caught:
        find(folder / name)
    assert caught.value.hint
    assert ("init" if name == "missing" else f"--vault {folder}") in caught.value.hint


def test_without_any_vault_around_nothing_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(VaultNotFound, match="no vault in"):
        find(None, cwd=tmp_path)


def test_the_home(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"a.md": ""})
    default = find_vault(folder, None, environ={"HOME": str(tmp_path)}, cwd=folder)
    assert (default.home, default.home_note) == (tmp_path / ".memory", tmp_path / "MEMORY.md")
    for named in (find(folder, tmp_path / "h"), find(folder, None, MEMORY_KB_HOME=str(tmp_path / "h"))):
        assert (named.home, named.home_note) == (tmp_path / "h", None)
    assert find(folder, tmp_path / "h", MEMORY_KB_HOME=str(tmp_path / "other")).home == tmp_path / "h"
    assert not (tmp_path / ".memory").exists()


@pytest.mark.parametrize(
    ("path", "location"),
    [
        pytest.param("MEMORY.md", Location("project"), id="top"),
        pytest.param("institutional.md", Location("project", learning_type="institutional"), id="institutional"),
        pytest.param("memory/learnings/a.md", Location("project"), id="project"),
        pytest.param("memory/jobs/api/MEMORY.md", Location("job", "api"), id="job"),
        pytest.param("memory/jobs/api/learnings/a.md", Location("job", "api"), id="job-learning"),
        pytest.param(
            "memory/jobs/api/institutional.md",
            Location("job", "api", learning_type="institutional"),
            id="job-institutional",
        ),
        pytest.param("memory/jobs/api/tasks/t1/MEMORY.md", Location("task", "api", "t1"), id="task"),
        pytest.param("memory/jobs/api/tasks/t1/worktree/MEMORY.md", Location("task", "api", "t1"), id="worktree"),
        pytest.param(
            "memory/jobs/api/tasks/t1/proxy-tasks/a.md", Location("task", "api", "t1", "proxy"), id="task-proxy"
        ),
        pytest.param("memory/jobs/api/tasks/notes.md", Location("job", "api"), id="file-among-tasks"),
        pytest.param("memory/jobs/notes.md", Location("project"), id="file-among-jobs"),
        pytest.param("memory/proxy.md", Location("project", learning_type="proxy"), id="proxy"),
        pytest.param("memory/learnings/jobs/api/tasks/t/a.md", Location("project"), id="jobs-elsewhere"),
        pytest.param("~global/learnings/a.md", Location("global"), id="global"),
        pytest.param("~global/jobs/api/tasks/t1/a.md", Location("global"), id="global-jobs-are-global"),
        pytest.param(
            "~global/institutional.md", Location("global", learning_type="institutional"), id="global-institutional"
        ),
        pytest.param(HOME_NOTE, Location("global"), id="home-note"),
    ],
)
def test_the_scope_of_a_path(path: str, location: Location) -> None:
    assert place_of_path(path, is_memory=True) == location


@pytest.mark.parametrize(
    "path", ["a.md", "memory/jobs/api/tasks/t/a.md", "institutional.md", "proxy.md", "archive/x.md"]
)
def test_a_plain_folder_has_project_scope(path: str) -> None:
    assert place_of_path(path, is_memory=False) == Location("project")
    assert default_status(path, is_memory=False) == "active"


def test_the_home_beside_a_plain_folder_is_global() -> None:
    assert place_of_path("~global/proxy-tasks/a.md", is_memory=False) == Location("global", learning_type="proxy")
    assert default_status("~global/archive/2026-01/a.md", is_memory=False) == "archived"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("memory/archive/2026-01/a.md", "archived"),
        ("memory/review/a.md", "proposed"),
        ("memory/jobs/j/tasks/t/archive/a.md", "archived"),
        ("memory/learnings/archive.md", "active"),
        ("memory/learnings/a.md", "active"),
    ],
)
def test_the_status_a_folder_gives(path: str, status: str) -> None:
    assert default_status(path, is_memory=True) == status


@pytest.mark.parametrize(
    ("place", "folder"),
    [
        pytest.param(("global", None, None), "home", id="global"),
        pytest.param(("project", None, None), "vault/memory", id="project"),
        pytest.param(("job", "api", None), "vault/memory/jobs/api", id="job"),
        pytest.param(("task", "api", "t1"), "vault/memory/jobs/api/tasks/t1", id="task"),
    ],
)
def test_the_folder_of_a_scope_is_located_there_again(
    vault: MakeVault, tmp_path: Path, place: tuple[str, str | None, str | None], folder: str
) -> None:
    found = find(vault({"memory/config.yaml": ""}), tmp_path / "home")
    assert found.scope_folder(*place) == tmp_path / folder
    shown = found.show(tmp_path / folder / "learnings/a.md")
    assert place_of_path(shown, is_memory=True) == Location(*place)
    assert found.resolve(shown) == tmp_path / folder / "learnings/a.md"


@pytest.mark.parametrize("home", ["home", "vault/home", ".", "vault"], ids=["beside", "inside", "around", "the-same"])
@pytest.mark.parametrize("prefix", ["memory/", ""], ids=["memory", "plain"])
def test_a_path_in_output_leads_back_to_its_file(vault: MakeVault, tmp_path: Path, home: str, prefix: str) -> None:
    folder = vault(
        {f"{prefix}learnings/a.md": "", f"{prefix}jobs/j/é b.md": "", "home/skills/s.md": "", "MEMORY.md": ""}
    )
    (tmp_path / "home/rules").mkdir(parents=True)
    (tmp_path / "home/rules/r.md").touch()
    found = find(folder, tmp_path / home)
    files = list(walk(found, []))
    assert len({file.path for file in files}) == len(files) >= 3
    for file in files:
        assert found.resolve(file.path) == Path(file.os_path)
        assert found.show(Path(file.os_path)) == file.path


def test_the_home_note_leads_back_to_its_file(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"a.md": ""})
    (tmp_path / "MEMORY.md").write_text("Mine.\n")
    found = find_vault(folder, None, environ={"HOME": str(tmp_path)}, cwd=folder)
    assert [file.path for file in walk(found, [])] == ["a.md", HOME_NOTE]
    assert [file.path for file in walk_region(found, HOME_NOTE, [])] == [HOME_NOTE]
    assert found.resolve(HOME_NOTE) == tmp_path / "MEMORY.md"


def test_a_missing_or_unreadable_memory_folder_is_none(tmp_path: Path) -> None:
    assert not is_memory_folder(tmp_path / "memory")
    (tmp_path / "memory").symlink_to("nowhere")
    assert not is_memory_folder(tmp_path / "memory")


def test_a_vault_named_relative_to_the_working_folder(vault: MakeVault, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vault({"a.md": ""})
    monkeypatch.chdir(folder)
    assert find_vault(".", "../home", environ={}, cwd=folder).folder == folder
    assert find_vault(".", "../home", environ={}, cwd=folder).home == folder.parent / "home"
    assert find_vault(os.curdir, folder, environ={}, cwd=folder).roots[0].folder == folder


@pytest.mark.parametrize("inner", ["memory/", ""], ids=["memory", "plain"])
def test_a_vault_that_is_moved_away_while_it_is_used_is_not_made_anew(
    vault: MakeVault, open_kb: Callable[..., KnowledgeBase], inner: str
) -> None:
    folder = vault({f"{inner}a.md": "The gateway says so.\n"} | ({"memory/config.yaml": ""} if inner else {}))
    kb = open_kb(folder)
    kb.sync()
    (place := folder / inner).rename(folder.with_name("away"))
    for use in (
        lambda: kb.sessions.append([Event(content="a")], session="s"),
        lambda: kb.search("gateway"),
        lambda: kb.context("the gateway"),
        lambda: kb.learn("The gateway is new.") if inner else None,
        kb.sync,
        kb.reopen,
    ):
        with contextlib.suppress(MemoryKBError, OSError):
            use()
        assert not place.exists()
