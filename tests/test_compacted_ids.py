"""Compaction of entries that are retired or share an id: who stays, and where the others go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from compacting import ARCHIVE, LONGER, NIGHTLY, compact, memory_of, statuses
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import Forgotten

Open = Callable[..., KnowledgeBase]
Make = Callable[..., Path]


def test_retired_ones_leave_and_go_on_keeping_their_text_away(vault: Make, open_kb: Open) -> None:
    text = "Deploys go out on Fridays in the afternoon."
    files = {
        "memory/learnings/gone.md": entry(text, id="gone", kind="fact"),
        "memory/learnings/erased.md": entry("The wiki is the place for all runbooks.", id="erased", kind="fact"),
        "memory/learnings/pinned.md": entry("Pinned.", id="pinned", kind="fact", status="retired", pinned="true"),
        "memory/learnings/page.md": entry("A page.", id="overview", status="retired"),
    }
    kb = open_kb(vault(files))
    kb.forget("gone")
    kb.forget("erased", delete=True)
    assert compact(kb) == (2, 0)
    assert [statuses(kb)[name] for name in ("gone", "erased")] == ["retired", "retired"]
    assert {memory_of(kb, name).path for name in ("gone", "erased")} == {f"{ARCHIVE}/gone.md", f"{ARCHIVE}/erased.md"}
    assert memory_of(kb, "pinned").path == "memory/learnings/pinned.md"
    assert memory_of(kb, "overview").path == "memory/learnings/page.md"
    for forgotten in (text, "The wiki is the place for all runbooks."):
        with pytest.raises(Forgotten):
            kb.learn(forgotten)
    with pytest.raises(Forgotten):
        kb.learn(text, job="api")


def test_two_files_of_one_name_get_two_names_in_the_archive(vault: Make, open_kb: Open) -> None:
    files = {
        f"memory/learnings/{folder}/same.md": entry(f"Text {folder}.", id=folder, kind="fact", status="retired")
        for folder in ("x", "y")
    }
    files |= {
        f"{ARCHIVE}/other.md": entry("There.", id="there", kind="fact"),
        "memory/rules/other.md": entry("Z.", id="z", kind="rule", status="retired"),
    }
    kb = open_kb(vault(files))
    assert compact(kb) == (3, 0)
    assert len({memory.path for memory in kb.memories.all()}) == 4


def test_a_copy_of_a_file_is_deleted_and_a_version_stays(vault: Make, open_kb: Open) -> None:
    text = entry(NIGHTLY, id="same", kind="rule")
    many = entry("One of two.", id="one", kind="rule") + "\n" + entry("Two of two.", id="two", kind="rule")
    files = {
        "memory/rules/a.md": text,
        "memory/rules/b.md": text,
        "memory/archive/2026-01/a.md": text,
        "memory/jobs/api/rules/a.md": text,
        "memory/rules/version.md": entry(f"{NIGHTLY} v2", id="same", kind="rule"),
        "memory/rules/many.md": many,
        "memory/rules/many-copy.md": many,
    }
    kb = open_kb(vault(files))
    report = kb.compact()
    assert (report.before - report.after, report.repeated) == (1, 1)
    assert not (kb.vault.folder / "memory/rules/b.md").exists()
    assert all((kb.vault.folder / path).read_text() == files[path] for path in files if path != "memory/rules/b.md")
    kb.undo()
    assert (kb.vault.folder / "memory/rules/b.md").read_text() == text


def test_pages_that_share_an_id_by_mistake_are_kept(vault: Make, open_kb: Open) -> None:
    files = {
        "memory/rules/one.md": entry("Rebase before you push.", id="same", kind="rule"),
        "memory/rules/two.md": entry("Servers are named after rivers.", id="same", kind="rule"),
        "memory/learnings/a.md": entry("Overview of a page about a page.", id="overview"),
        "memory/learnings/b.md": entry("Overview of a page about a page.", id="overview"),
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    assert len([memory for memory in kb.memories.all() if memory.is_live]) == 4


def test_a_retired_entry_and_a_repeated_id_in_one_file(vault: Make, open_kb: Open) -> None:
    text = "\n".join(
        [
            entry("Gone.", id="gone", kind="rule", status="retired"),
            entry(NIGHTLY, id="same", kind="rule"),
            entry(LONGER, id="same", kind="rule", importance=0.9),
            entry("Run the linter and the formatter before every single push to the server.", id="x", kind="rule"),
            entry("Run the linter and the formatter before every single push to the servers.", id="y", kind="rule"),
        ]
    )
    kb = open_kb(vault({"memory/rules/many.md": text}))
    assert compact(kb) == (5, 3)
    assert [(memory.id, memory.status) for memory in kb.memories.all() if memory.path == "memory/rules/many.md"] == [
        ("same", "active"),
        ("same", "active"),
        ("x", "compacted"),
    ]
