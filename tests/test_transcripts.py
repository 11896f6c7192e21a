"""Transcripts as Claude Code, Codex and people write them: what each of their records becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcribing import CLAUDE, CODEX, claude, replay, said, short, write

from memory_kb import KnowledgeBase
from memory_kb.sessions.markdown_chats import turns_of

Open = Callable[..., KnowledgeBase]
Record = dict[str, Any]

CHAT = """---
user: ana
---
# Talk about the login

## User

Where do sessions live?

```
## Assistant
User: not a turn
```

---

## 🤖 Assistant (2026-03-03 10:00)

User: is a table.

## User
Thanks.
"""


def test_a_transcript_of_claude_code(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.sessions.import_(write(tmp_path / "any-name.jsonl", CLAUDE), job="api")
    assert (report.format, report.session, report.added, report.ignored, report.injected) == (
        "claude-code",
        "c1",
        19,
        4,
        1,
    )
    events = replay(kb, "c1")
    assert [short(event) for event in events][1:] == [
        ("summary", "system", "Mending the login"),
        ("notice", "system", "<system-reminder>Be brief.</system-reminder>"),
        ("message", "user", "Mend the login."),
        ("notice", "system", "<command-name>/clear</command-name>"),
        ("notice", "system", "A skill was loaded."),
        ("thinking", "assistant", "Where is it?"),
        ("message", "assistant", "I look."),
        ("Bash", "assistant", '{"command": "pytest -q"}'),
        ("Bash", "tool", "Exit code 1\n2 failed"),
        ("Bash", "assistant", '{"command": "memory-kb search login"}'),
        ("Bash", "tool", "1. Sessions last a day."),
        ("message", "user", "See this\n[image]"),
        ("summary", "system", "This session is a summary."),
        ("error", "system", "API Error: 529"),
        ("message", "agent", "Look for callers."),
        ("message", "assistant", "Three callers."),
        ("message", "user", "And the logout."),
        ("compact_boundary", "system", "Conversation compacted"),
    ]
    assert (events[0].event, events[0].args) == (
        "start",
        {"cwd": "/home/ana/api", "branch": "main", "version": "2.1.0"},
    )
    assert {event.job for event in events} == {"api"}
    assert {event.agent for event in events} == {"claude-code", "explorer"}
    assert [event.content for event in events if event.ok is False and event.type == "tool_result"] == [
        "Exit code 1\n2 failed"
    ]
    assert [event.content for event in events if event.injected] == ["1. Sessions last a day."]
    assert events[3].ts == "2026-03-01T10:00:00.000Z"


def test_the_reason_of_a_refusal_is_what_the_person_said(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    refused = (
        "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written "
        "to the file). To tell you how to proceed, the user said:\nNever push from here."
    )

    def result(name: str, tool: str, text: str, *, is_error: bool = True) -> list[Record]:
        use = {"type": "tool_use", "id": name, "name": tool, "input": {"command": "git push"}}
        block = {"type": "tool_result", "tool_use_id": name, "content": text, "is_error": is_error}
        return [claude("assistant", [use], f"a-{name}"), claude("user", [block], f"u-{name}")]

    records = [
        *result("t1", "Bash", refused),
        *result("t2", "mcp__x__y", refused),
        *result("t3", "Bash", refused, is_error=False),
    ]
    records += result("t4", "Bash", f"Exit code 1\n{refused}")
    kb = open_kb(folder)
    kb.sessions.import_(write(tmp_path / "c.jsonl", records))
    assert [(event.seq, event.content) for event in replay(kb, "c1") if event.type == "message"] == [
        (4, "Never push from here.")
    ]
    (again,) = kb.sessions.import_(tmp_path / "c.jsonl")
    assert again.added == 0


def test_a_rollout_of_codex(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.sessions.import_(write(tmp_path / "rollout-2026-03-02-x1.jsonl", CODEX))
    assert (report.format, report.session, report.added, report.ignored) == ("codex", "x1", 15, 5)
    events = replay(kb, "x1")
    assert [short(event) for event in events] == [
        ("start", None, '{"cwd": "/home/ana/api", "branch": "main", "version": "0.90.0"}'),
        ("notice", "system", "Permissions."),
        ("notice", "system", "<environment_context>\n<cwd>/home/ana</cwd>\n</environment_context>"),
        ("message", "user", "Mend the login."),
        ("thinking", "assistant", "Where is it?"),
        ("shell", "assistant", '{"command": ["bash", "-lc", "pytest"]}'),
        ("shell", "tool", "2 failed"),
        ("exec_command", "assistant", '{"cmd": "mkb context login"}'),
        ("exec_command", "tool", "Chunk ID: 1\nProcess exited with code 0\nOutput:\nUse tabs."),
        ("apply_patch", "assistant", '{"value": "*** Begin Patch"}'),
        ("apply_patch", "tool", "Success."),
        ("web_search", "assistant", '{"type": "search", "query": "argon2"}'),
        ("message", "assistant", "Done."),
        ("error", "system", "stream closed"),
        ("summary", "system", "What was done."),
    ]
    assert [(event.ok, event.injected) for event in events if event.type == "tool_result"] == [
        (False, None),
        (True, "whole"),
        (None, None),
    ]


def test_blanks_before_the_json_of_a_call_in_a_rollout_change_nothing(
    open_kb: Open, folder: Path, tmp_path: Path
) -> None:
    kb = open_kb(folder)
    call = {"type": "function_call", "name": "shell", "arguments": ' {"command": ["make"]}', "call_id": "b1"}
    result = {
        "type": "function_call_output",
        "call_id": "b1",
        "output": '\n{"output": "boom", "metadata": {"exit_code": 2}}',
    }
    records: list[Record] = [CODEX[0], *({"type": "response_item", "payload": one} for one in (call, result))]
    kb.sessions.import_(write(tmp_path / "rollout-2026-03-02-x1.jsonl", records))
    made, answered = replay(kb, "x1")[1:]
    assert made.args == {"command": ["make"]}
    assert (answered.content, answered.ok) == ("boom", False)


def test_a_rollout_without_envelopes(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    old: list[Record] = [
        {"id": "x0", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        said("user", "Hello.")["payload"],
    ]
    (report,) = kb.sessions.import_(write(tmp_path / "old.jsonl", old))
    assert (report.session, report.added) == ("x0", 2)
    assert replay(kb, "x0")[1].ts == "2025-06-01T10:00:00.000Z"


@pytest.mark.parametrize("kind", [["message"], {"a": 1}, 5, None], ids=str)
def test_a_record_of_no_kind_does_not_stop_a_rollout(kind: object, open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    odd: list[Record] = [
        {"type": kind, "payload": {"type": kind}},
        {"type": "response_item", "payload": {"type": kind}},
    ]
    (report,) = kb.sessions.import_(write(tmp_path / "rollout-2026-03-02-x1.jsonl", [*CODEX[:3], *odd, *CODEX[3:]]))
    assert (report.session, report.added) == ("x1", 15)


def test_a_conversation_in_markdown(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    chat = tmp_path / "chat.md"
    chat.write_text(CHAT, encoding="utf-8")
    (report,) = kb.sessions.import_(chat)
    assert report.session.startswith("chat-where-do-sessions-live-")
    assert [(event.role, event.content) for event in replay(kb, report.session)[1:]] == [
        ("user", "Where do sessions live?\n\n```\n## Assistant\nUser: not a turn\n```"),
        ("assistant", "User: is a table."),
        ("user", "Thanks."),
    ]
    assert replay(kb, report.session)[2].ts == "2026-03-03T10:00:00.000Z"
    (other,) = kb.sessions.import_(chat, session="talk")
    assert (other.session, other.added) == ("talk", 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**User:** hi\n\n**Assistant:** hello\nthere\n", [("user", "hi"), ("assistant", "hello\nthere")]),
        ("**Human**: hi\n__Claude__: hello", [("user", "hi"), ("assistant", "hello")]),
        ("### You said:\nhi\n### ChatGPT said:\nhello", [("user", "hi"), ("assistant", "hello")]),
        (
            "# User 1\nhi\n# Assistant 1\n## User guide\nread it",
            [("user", "hi"), ("assistant", "## User guide\nread it")],
        ),
        ("USER: hi\r\nAI: hello\r\n", [("user", "hi"), ("assistant", "hello")]),
        ("\ufeffUser: hi", [("user", "hi")]),
        (
            "Some words.\n\nHuman: hi\nSystem: be kind\nTool: 42",
            [("preamble", "Some words."), ("user", "hi"), ("system", "be kind"), ("tool", "42")],
        ),
        ("The user: wrote this", [("preamble", "The user: wrote this")]),
        ("", []),
    ],
)
def test_how_turns_are_marked(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(turn.role, turn.text) for turn in turns_of(text.encode().split(b"\n"))] == expected
