"""Compaction of entries that are retired or share an id: who stays, and where the others go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from compacting import ARCHIVE, LONGER, NIGHTLY, compact, memory_of, statuses
from support import days_ago, entry

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
    assert len({memory.path for memory in kb.store.all()}) == 4


def test_of_one_id_the_most_important_stays(vault: Make, open_kb: Open) -> None:
    versions = [
        entry(f"{NIGHTLY} {word}.", id="same", type="procedural", importance=weight)
        for word, weight in (("Old", 0.4), ("New", 0.9), ("Mid", 0.5))
    ]
    text = "# Ours\n\n" + "\n".join(versions) + "\n" + entry("Something else.", id="other", type="procedural")
    kb = open_kb(
        vault(
            {
                "memory/config.yaml": "",
                "memory/institutional.md": text,
                "memory/learnings/copy.md": entry(NIGHTLY, id="same", type="procedural"),
            }
        )
    )
    assert compact(kb) == (5, 3)  # the copy has another learning type
    data = (kb.vault.folder / "memory/institutional.md").read_text()
    assert data == "# Ours\n\n" + versions[1] + "\n" + entry("Something else.", id="other", type="procedural")
    archived = [memory for memory in kb.store.all() if memory.status == "archived"]
    assert sorted(memory.text.rpartition(" ")[2] for memory in archived) == ["Mid.", "Old."]
    assert len({memory.id for memory in archived} | {"same"}) == 3
    assert all(("same", "superseded_by") in [(link.to, link.relation) for link in memory.links] for memory in archived)


def test_of_one_id_in_several_files_the_newest_of_the_important_stays(vault: Make, open_kb: Open) -> None:
    files = {
        f"memory/rules/{age}.md": entry(f"{NIGHTLY} v{age}", id="same", kind="rule", created_at=days_ago(age))
        for age in (30, 10, 20)
    }
    kb = open_kb(vault(files))
    assert compact(kb) == (3, 1)
    assert memory_of(kb, "same").path == "memory/rules/10.md"


def test_pages_that_share_an_id_by_mistake_are_kept(vault: Make, open_kb: Open) -> None:
    files = {
        "memory/rules/one.md": entry("Rebase before you push.", id="same", kind="rule"),
        "memory/rules/two.md": entry("Servers are named after rivers.", id="same", kind="rule"),
        "memory/learnings/a.md": entry("Overview of a page about a page.", id="overview"),
        "memory/learnings/b.md": entry("Overview of a page about a page.", id="overview"),
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    assert len([memory for memory in kb.store.all() if memory.is_live]) == 4


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
    assert compact(kb) == (5, 2)
    assert [(memory.id, memory.status) for memory in kb.store.all() if memory.path == "memory/rules/many.md"] == [
        ("same", "active"),
        ("x", "compacted"),
    ]


def test_a_repeated_id_beside_a_retired_entry_of_the_same(vault: Make, open_kb: Open) -> None:
    mixed = (
        entry("Alpha.", id="same", kind="rule") + "\n" + entry("Alpha beta.", id="same", kind="rule", status="retired")
    )
    kb = open_kb(
        vault(
            {"memory/rules/a.md": mixed, "memory/rules/b.md": entry("Alpha.", id="same", kind="rule", importance=0.9)}
        )
    )
    assert compact(kb) == (3, 1)
