"""What is said in one session after the other is one entry, which gets heavier."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_kb import KnowledgeBase
from memory_kb.store.events import Event

if TYPE_CHECKING:
    from conftest import Files

WISH = "By the way, I prefer small commits with one thought each."


def test_a_wish_of_three_sessions_is_one_entry(
    vault: Callable[[Files], Path], open_kb: Callable[..., KnowledgeBase]
) -> None:
    folder = vault({"memory/config.yaml": ""})
    kb = open_kb(folder)
    for session in ("s1", "s2", "s3"):
        kb.sessions.start(session)
        events = [
            Event(role="user", content=f"Fix the failing card test. {WISH}"),
            Event(type="tool_call", tool="Bash", call_id="a", args={"command": "npm test"}),
            Event(type="tool_result", call_id="a", ok=False, content="Error: Cannot find module 'jest'"),
            Event(
                type="tool_call",
                tool="Edit",
                call_id="b",
                args={"file_path": "tests/card.test.ts", "old_string": "a", "new_string": "b"},
            ),
            Event(type="tool_result", call_id="b", ok=True, content="done"),
        ]
        kb.sessions.append(events, session=session)
        kb.sessions.end(session, outcome="success")
    entries = [memory for memory in kb.list() if memory.kind != "episode"]
    assert [memory.kind for memory in entries] == ["preference"]
    assert "I prefer small commits with one thought each." in (text := (folder / entries[0].path).read_text())
    assert "reinforcement_count: 2" in text


FACT = "the office printer in hall 3 only reads utf-16 since may"
