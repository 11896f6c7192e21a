"""A look at one file finds what a walk of everything finds of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.model import Problem
from memory_kb.store.walk import walk, walk_region
from memory_kb.vault import find_vault

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
FILES = {
    "MEMORY.md": "top",
    "README.md": "beside",
    "memory/config.yaml": "",
    "memory/MEMORY.md": "x",
    "memory/CONTINUITY.md": "x",
    "memory/INTENT.md": "x",
    "memory/rules/a.md": "x",
    "memory/rules/B.MD": "x",
    "memory/rules/é.md": "x",
    "memory/rules/.hidden.md": "x",
    "memory/rules/a.txt": "x",
    "memory/.state/a.md": "x",
    "memory/drafts/a.md": "x",
    "memory/drafts/deep/a.md": "x",
    "memory/jobs/j/tasks/t/worktree/MEMORY.md": "x",
    "memory/jobs/j/tasks/t/worktree/other.md": "x",
    "memory/jobs/j/tasks/t/worktree/src/a.md": "x",
}
PLACES = [
    *(path for path in FILES if path.lower().endswith((".md", ".txt"))),
    "memory/rules",
    "memory/none.md",
    "memory/rules/link.md",
    "memory/way/a.md",
]


@pytest.mark.parametrize("is_plain", [False, True])
def test_one_file_is_taken_as_a_walk_takes_it(vault: MakeVault, home: Path, is_plain: bool) -> None:
    folder = vault({name: text for name, text in FILES.items() if not (is_plain and name == "memory/config.yaml")})
    (folder / "memory/rules/link.md").symlink_to(folder / "memory/rules/a.md")
    (folder / "memory/way").symlink_to(folder / "memory/rules")
    found = find_vault(folder if not is_plain else folder / "memory", home, environ={}, cwd=folder)
    found = found._replace(settings=found.settings._replace(ignore=("drafts",)))
    everything = list(walk(found, list[Problem]()))
    for path in PLACES:
        shown = path if not is_plain else path.removeprefix("memory/")
        one = list(walk_region(found, shown, []))
        assert one == [file for file in everything if file.path == shown]


def test_of_a_file_of_the_home_likewise(vault: MakeVault, home: Path) -> None:
    folder = vault({"memory/config.yaml": ""})
    (home / "rules").mkdir(parents=True)
    (home / "rules/a.md").write_text("x")
    found = find_vault(folder, home, environ={}, cwd=folder)
    (one,) = walk_region(found, "~global/rules/a.md", [])
    assert one in list(walk(found, list[Problem]()))


def test_what_was_written_is_indexed_and_its_neighbours_are_left_for_the_next_look(
    vault: MakeVault, open_kb: Open
) -> None:
    kb = open_kb(vault({"memory/config.yaml": "", "memory/learnings/a.md": "Wombats sleep by day.\n"}))
    kb.sync()
    (kb.vault.folder / "memory/learnings/b.md").write_text("Quokkas smile.\n")
    with kb.index.up_to_date():
        learned = kb.learn("Echidnas lay eggs.")
        (kb.vault.folder / "memory/learnings/c.md").write_text("Numbats eat termites.\n")
        kb.learn("Bilbies dig deep.")
        assert [hit.id for hit in kb.search("echidnas").hits] == [learned.id]
        assert not kb.search("numbats").hits
        kb.forget(learned.id)
        assert not kb.search("echidnas").hits
    assert len(kb.search("numbats").hits) == len(kb.search("quokkas").hits) == 1
