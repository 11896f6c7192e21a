"""Rules that fail and proposals that wait, for the tests of review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Files
from support import days_ago, entry

from memory_kb import KnowledgeBase

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
FAILING = {
    "id": "r",
    "kind": "rule",
    "tags": "[sse]",
    "success_count": 1,
    "failure_count": 4,
    "sources": "[ep-1]",
    "created_at": days_ago(9),
}
TEXT = "AVOID: Use sleep to wait. -- this pattern has caused repeated issues (4 failures vs 1 successes)."


def rule(said: str = "Use sleep to wait.", **fields: Any) -> str:
    """Return a rule that fails as a note."""
    return entry(said, **(FAILING | fields))


def proposal(said: str = "Walruses like ice.", **fields: Any) -> str:
    """Return a proposal as a note."""
    named: dict[str, object] = {"id": "p", "kind": "fact", "status": "proposed", "created_at": days_ago(1)}
    return entry(said, **(named | fields))


def waiting(kb: KnowledgeBase) -> list[str]:
    """Return the ids of what waits for a person."""
    return [item.id for item in kb.review.list()]


@pytest.fixture
def scanned(vault: MakeVault, open_kb: OpenKB) -> tuple[Path, KnowledgeBase, str]:
    """A vault with a failing rule and its inversion: the folder, the knowledge base, the proposal."""
    folder = vault({**CONFIG, "memory/rules/r.md": rule()})
    kb = open_kb(folder)
    (proposed,) = kb.review.scan().proposed
    return folder, kb, proposed
