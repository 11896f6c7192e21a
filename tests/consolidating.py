"""Episodes that say the same, and the rules that come of them, for the tests of consolidation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

from conftest import NOW, Files
from episodic import episode_text

from memory_kb import KnowledgeBase

Open = Callable[..., KnowledgeBase]
MakeVault = Callable[[Files], Path]
REDIS = "The integration tests need Redis on port 6380."


def told(
    number: int,
    learning: str,
    *,
    goal: str = "Fix the checkout tests",
    outcome: str = "success",
    days: int = 0,
    **fields: object,
) -> str:
    """Return an episode that tells a learning."""
    moment = (NOW - timedelta(days=days, hours=number)).strftime("%Y-%m-%dT%H:%M:%SZ")
    body = f"## Key learnings\n\n- {learning}\n"
    return episode_text(
        body,
        **({"id": f"ep-{moment[:10]}-{number:03}", "goal": goal, "outcome": outcome, "created_at": moment} | fields),
    )


def make(vault: MakeVault, open_kb: Open, *episodes: str, **more: str) -> KnowledgeBase:
    """Open a vault of episodes, and of rules by their names."""
    files = {f"memory/episodes/e{number}.md": text for number, text in enumerate(episodes)}
    return open_kb(
        vault({"memory/config.yaml": ""} | files | {f"memory/rules/{name}.md": text for name, text in more.items()})
    )


def rules(kb: KnowledgeBase, kind: str = "rule") -> list[Mapping[str, object]]:
    """Return the rules of a vault with their texts."""
    entries = kb.list(kind=[kind])
    return [
        dict(kb.show(entry.id).metadata) | {"text": (kb.show(entry.id).text or "").split("\n---\n", 1)[1].strip()}
        for entry in entries
    ]
