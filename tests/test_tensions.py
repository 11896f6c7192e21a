"""What a person's judgment of two entries that stand against each other brings back into order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conftest import Files

from memory_kb import KnowledgeBase

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
ALWAYS, NEVER = (
    "Always deploy on Tuesdays, after the train leaves.",
    "Never deploy on Tuesdays, after the train leaves.",
)


def note(entry_id: str, text: str) -> str:
    return f"---\nid: {entry_id}\nkind: fact\nimportance: 0.5\ncreated_at: '2026-11-01'\n---\n{text}\n"


def open_tense(vault: MakeVault, open_kb: Open, *more: tuple[str, str]) -> KnowledgeBase:
    """Return a vault with entries that stand against each other, found and flagged."""
    notes = (("always", ALWAYS), ("never", NEVER), *more)
    kb = open_kb(
        vault({"memory/config.yaml": ""} | {f"memory/learnings/{name}.md": note(name, text) for name, text in notes})
    )
    kb.contradictions(resolve=True)
    assert kb.show("always").metadata["importance"] == 0.35
    return kb


def waiting(kb: KnowledgeBase) -> set[str]:
    return {one.id for one in kb.review.list()}


def test_rejecting_one_settles_the_other(vault: MakeVault, open_kb: Open) -> None:
    kb = open_tense(vault, open_kb)
    assert waiting(kb) == {"always", "never"}
    kb.review.reject("never")
    assert waiting(kb) == set()
    assert (kb.show("always").metadata["importance"], kb.show("always").metadata["flags"]) == (0.5, [])
    assert kb.contradictions(resolve=True).run.changes == ()


def test_approving_one_gives_its_importance_back_and_leaves_the_other_to_be_judged(
    vault: MakeVault, open_kb: Open
) -> None:
    kb = open_tense(vault, open_kb)
    kb.review.approve("always")
    assert kb.show("always").metadata["importance"] == 0.5
    assert waiting(kb) == {"never"}
    kb.review.reject("never")
    assert kb.show("always").metadata["importance"] == 0.5


def test_what_contradicts_another_live_entry_too_still_waits(vault: MakeVault, open_kb: Open) -> None:
    kb = open_tense(vault, open_kb, ("not", "Do not deploy on Tuesdays, after the train leaves."))
    kb.review.reject("never")
    assert "always" in waiting(kb)
    kb.review.reject("not")
    assert (waiting(kb), kb.show("always").metadata["importance"]) == (set(), 0.5)


def test_undo_brings_both_sides_back(vault: MakeVault, open_kb: Open) -> None:
    kb = open_tense(vault, open_kb)
    before = kb.show("always").metadata
    kb.review.reject("never")
    kb.undo()
    assert kb.show("always").metadata == before
    assert waiting(kb) == {"always", "never"}
