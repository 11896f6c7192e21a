"""Sessions as Claude Code and Codex write them down, for the tests of transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memory_kb import KnowledgeBase
from memory_kb.store.session_events import Event

Record = dict[str, Any]


def claude(kind: str, content: Any, uuid: str, **more: Any) -> Record:
    """Return a record as Claude Code writes it."""
    common = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ana/api",
        "sessionId": "c1",
        "version": "2.1.0",
        "gitBranch": "main",
    }
    return (
        common
        | {
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": uuid,
            "timestamp": "2026-03-01T10:00:00.000Z",
        }
        | more
    )


CLAUDE: list[Record] = [
    {"type": "summary", "summary": "Mending the login", "leafUuid": "u9"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    claude("user", "Mend the login.<system-reminder>Be brief.</system-reminder>", "u1"),
    claude("user", "<command-name>/clear</command-name>", "u2"),
    claude("user", "A skill was loaded.", "u3", isMeta=True),
    claude(
        "assistant",
        [
            {"type": "thinking", "thinking": "Where is it?", "signature": "x"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}},
        ],
        "a1",
    ),
    claude(
        "user",
        [
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [{"type": "text", "text": "Exit code 1\n2 failed"}],
                "is_error": True,
            }
        ],
        "u4",
        toolUseResult="Error",
    ),
    claude(
        "assistant",
        [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "memory-kb search login"}}],
        "a2",
    ),
    claude("user", [{"type": "tool_result", "tool_use_id": "t2", "content": "1. Sessions last a day."}], "u5"),
    claude(
        "user",
        [{"type": "text", "text": "See this"}, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}],
        "u6",
    ),
    claude("user", "This session is a summary.", "u7", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    claude("assistant", [{"type": "text", "text": "API Error: 529"}], "a3", isApiErrorMessage=True),
    claude("user", "Look for callers.", "s1", isSidechain=True, agentId="explorer"),
    claude("assistant", [{"type": "text", "text": "Three callers."}], "s2", isSidechain=True, agentId="explorer"),
    {
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "And the logout."},
        "uuid": "q1",
        "sessionId": "c1",
    },
    {"type": "attachment", "attachment": {"type": "skill_listing", "content": "…"}, "uuid": "k1", "sessionId": "c1"},
    {
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "uuid": "y1",
        "sessionId": "c1",
    },
    {"type": "system", "subtype": "turn_duration", "durationMs": 3, "uuid": "y2", "sessionId": "c1"},
    {"type": "a-kind-of-tomorrow", "sessionId": "c1", "uuid": "z1"},
]


def codex(kind: str, /, **payload: Any) -> Record:
    """Return a record as Codex writes it."""
    return {"timestamp": "2026-03-02T10:00:00.000Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> Record:
    """Return a message as Codex writes it."""
    return codex(
        "response_item",
        type="message",
        role=role,
        content=[{"type": "output_text" if role == "assistant" else "input_text", "text": text}],
    )


CODEX: list[Record] = [
    codex(
        "session_meta",
        id="x1",
        cwd="/home/ana/api",
        originator="codex_cli",
        cli_version="0.90.0",
        source="cli",
        git={"branch": "main"},
    ),
    said("developer", "Permissions."),
    said("user", "<environment_context>\n<cwd>/home/ana</cwd>\n</environment_context>"),
    said("user", "Mend the login."),
    codex("event_msg", type="user_message", message="Mend the login.", kind="plain"),
    codex("turn_context", model="gpt", cwd="/"),
    codex(
        "response_item",
        type="reasoning",
        summary=[{"type": "summary_text", "text": "Where is it?"}],
        encrypted_content="x",
    ),
    codex(
        "response_item",
        type="function_call",
        name="shell",
        arguments='{"command": ["bash", "-lc", "pytest"]}',
        call_id="f1",
    ),
    codex(
        "response_item",
        type="function_call_output",
        call_id="f1",
        output='{"output": "2 failed", "metadata": {"exit_code": 1}}',
    ),
    codex(
        "response_item",
        type="function_call",
        name="exec_command",
        arguments='{"cmd": "mkb context login"}',
        call_id="f2",
    ),
    codex(
        "response_item",
        type="function_call_output",
        call_id="f2",
        output="Chunk ID: 1\nProcess exited with code 0\nOutput:\nUse tabs.",
    ),
    codex(
        "response_item",
        type="custom_tool_call",
        name="apply_patch",
        input="*** Begin Patch",
        call_id="f3",
        status="completed",
    ),
    codex("response_item", type="custom_tool_call_output", call_id="f3", output="Success."),
    codex("response_item", type="web_search_call", action={"type": "search", "query": "argon2"}),
    said("assistant", "Done."),
    codex("event_msg", type="agent_message", message="Done."),
    codex("event_msg", type="token_count", info={}),
    codex("event_msg", type="error", message="stream closed"),
    codex("compacted", message="What was done."),
    codex("session_meta", id="the-parent-of-a-fork"),
]


def write(file: Path, records: Iterable[Record]) -> Path:
    """Write a transcript."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def replay(kb: KnowledgeBase, session: str) -> list[Event]:
    """Return the events of a session."""
    return list(kb.sessions.replay(session))


def short(event: Event) -> tuple[str, str | None, str]:
    """Return what an event is, who speaks, and what it says."""
    return (event.event or event.tool or event.type), event.role, event.content or json.dumps(event.args)
