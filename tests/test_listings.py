"""Folders that have not changed are not listed again, and every look still finds what a fresh one finds."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_kb.model import FileStat, Problem
from memory_kb.store import walk as listings_module
from memory_kb.store.walk import Listings, Reach, walk
from memory_kb.vault import find_vault

MakeVault = Callable[[Files], Path]
#: Longer than a tick of the file system's clock.
TICK = 0.012


def look(folder: Path, listings: Listings | None = None) -> tuple[list[FileStat], list[str]]:
    problems: list[Problem] = []
    vault = find_vault(folder, folder.parent / "no-home", environ={}, cwd=folder)
    files = list(walk(vault, ["left-out"], problems, Reach(listings=listings)))
    return files, [str(problem) for problem in problems]


def later() -> int:
    """Return a time by which whatever was just done has settled."""
    return time.time_ns() + 3_000_000_000


FOLDERS = st.sampled_from(["", "a/", "a/b/", "c/", "c/left-out/", "c/é/"])
NAMES = st.sampled_from(["one.md", "two.md", "three.txt", "four"])
DEEDS = st.sampled_from(["write", "append", "replace", "delete", "rename", "folder", "drop", "link"])


def do(root: Path, deed: str, place: Path, other: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if deed == "folder":
        if not place.exists() and not place.is_symlink():
            place.mkdir()
    elif deed == "drop" and place.parent != root:
        shutil.rmtree(place.parent)
    elif place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    elif deed == "write" and not place.is_symlink():
        place.write_text("new")
    elif deed == "append" and place.is_file():
        with place.open("a") as file:
            file.write("more")
    elif deed == "replace":
        beside = place.with_name(".beside")
        beside.write_text("other")
        beside.replace(place)
    elif deed == "delete":
        place.unlink(missing_ok=True)
    elif deed == "rename" and place.is_file() and other.parent.is_dir() and not other.is_dir():
        place.rename(other)
    elif deed == "link" and not place.exists() and not place.is_symlink():
        place.symlink_to(other)


@pytest.mark.slow
@given(deeds=st.lists(st.tuples(DEEDS, FOLDERS, NAMES, FOLDERS, NAMES), min_size=4, max_size=14))
@settings(max_examples=25)
def test_a_look_that_remembers_finds_what_a_fresh_one_finds(deeds: list[tuple[str, str, str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root, listings = Path(name).resolve() / "vault", Listings(later)
        root.mkdir()
        for deed, folder, file, other_folder, other in deeds:
            do(root, deed, root / folder / file, root / other_folder / other)
            assert look(root, listings) == look(root)
            time.sleep(TICK)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders that are listed."""
    names, scandir = list[str](), os.scandir

    def watch(folder: str) -> object:
        if os.path.isdir(folder):
            names.append(os.path.basename(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", watch)
    return names


def test_only_the_folder_that_changed_is_listed_again(vault: MakeVault, listed: list[str]) -> None:
    root, listings = vault({"a/one.md": "1", "b/two.md": "2"}), Listings(later)
    look(root, listings)
    assert listed == [root.name, "a", "b"]
    listed.clear()
    time.sleep(TICK)
    (root / "a/one.md").write_text("changed in its place")
    assert [file.size for file in look(root, listings)[0]] == [20, 1]
    assert listed == []
    (root / "b/three.md").write_text("3")
    assert [file.path for file in look(root, listings)[0]] == ["a/one.md", "b/three.md", "b/two.md"]
    assert listed == ["b"]


def test_a_folder_that_has_just_changed_is_listed_at_every_look(vault: MakeVault, listed: list[str]) -> None:
    root = vault({"a/one.md": "1"})
    changed = max(folder.stat().st_ctime_ns for folder in (root, root / "a"))
    listings = Listings(lambda: changed + 20_000_000)
    for _ in range(3):
        look(root, listings)
    assert listed.count("a") == 3


def test_no_listing_is_good_for_ever(vault: MakeVault, listed: list[str]) -> None:
    seconds = [0.0]
    root, listings = vault({"a/one.md": "1"}), Listings(later, lambda: seconds[0])
    for seconds[0] in (0.0, 9.9, 10.1):
        look(root, listings)
    assert listed == [root.name, "a"] * 2


def test_what_cannot_be_looked_at_is_reported_at_every_look(vault: MakeVault) -> None:
    root, listings = vault({"a/one.md": "1"}), Listings(later)
    (root / "a/away.md").symlink_to("/nowhere")
    assert look(root, listings)[1] == look(root, listings)[1] == ["a/away.md:1: is a symbolic link to nothing; skipped"]


def test_a_link_is_looked_at_every_time(vault: MakeVault) -> None:
    root, listings = vault({"a/one.md": "1", "b/two.md": "2"}), Listings(later)
    (root / "a/link.md").symlink_to(root / "b/two.md")
    assert look(root, listings)[1] == []
    (root / "b/two.md").unlink()
    assert look(root, listings)[1] == ["a/link.md:1: is a symbolic link to nothing; skipped"]


def test_folders_that_are_gone_make_room(vault: MakeVault, listed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listings_module, "_MOST", 5)
    seconds = [0.0]
    root, listings = vault({"a/one.md": "1", "b/two.md": "2"}), Listings(later, lambda: seconds[0])
    look(root, listings)
    (root / "b").rename(root / "c")
    seconds[0] = 20.0
    look(root, listings)
    listed.clear()
    look(root, listings)
    assert listed == ["c"]


def test_however_fast_files_come_and_go_none_is_missed(vault: MakeVault) -> None:
    root, listings = vault({"a/one.md": "1", "b/two.md": "2"}), Listings()
    for number in range(100):
        file = root / "ab"[number % 2] / f"{number % 7}.md"
        if file.exists():
            file.unlink()
        else:
            file.write_text("x")
        assert look(root, listings) == look(root)
