"""Rules as notes, for the tests of the playbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import days_ago, entry

if TYPE_CHECKING:
    from conftest import Files

CONFIG = {"memory/config.yaml": ""}


def rule(text: str = "Buffer chunks.", **fields: object) -> str:
    """Return a rule in use as a note."""
    named: dict[str, object] = {
        "id": "r",
        "kind": "rule",
        "tags": "[sse]",
        "confidence": 0.75,
        "created_at": days_ago(0),
    }
    return entry(text, **(named | fields))


def rules(**texts: str) -> Files:
    """Return a vault of such rules by their names."""
    return {**CONFIG, **{f"memory/rules/{name}.md": text for name, text in texts.items()}}
