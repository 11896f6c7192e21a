"""Vaults that say things twice, and their compaction, for the tests of compaction."""

from __future__ import annotations

from typing import Any

from planning import tree

from memory_kb import KnowledgeBase
from memory_kb.memory import Memory

NIGHTLY = "The nightly build compiles every service and runs the whole test suite on the runner in the basement."
LONGER = NIGHTLY.replace("on the runner", "on the old runner")
ARCHIVE = "memory/archive/2026-11"


def memory_of(kb: KnowledgeBase, entry_id: str) -> Memory:
    (found_one,) = [memory for memory in kb.memories.all() if memory.id == entry_id]
    return found_one


def statuses(kb: KnowledgeBase) -> dict[str, str]:
    return {memory.id: memory.status for memory in kb.memories.all()}


def compact(kb: KnowledgeBase, **how: Any) -> tuple[int, int]:
    """Compact twice; the second time may change nothing."""
    report = kb.compact(**how)
    before = tree(kb.vault.folder)
    again = kb.compact(**how)
    assert (again.run.run, again.before, tree(kb.vault.folder)) == (None, report.after, before)
    assert report.run.conflicts == ()
    return report.before, report.after
