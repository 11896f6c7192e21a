"""Transcripts of other tools come in once, whole, and whatever else stands in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.logs.chats import turns_of
from memory_kb.learning.logs.transcripts import FORMATS, reader_of
from memory_kb.notes.events import Event
from memory_kb.notes.injected import wrap

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]
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
    return common | {"type": kind, "message": {"role": kind, "content": content}, "uuid": uuid, "timestamp": "2026-03-01T10:00:00.000Z"} | more


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
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "Exit code 1\n2 failed"}], "is_error": True}],
        "u4",
        toolUseResult="Error",
    ),
    claude("assistant", [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "memory-kb search login"}}], "a2"),
    claude("user", [{"type": "tool_result", "tool_use_id": "t2", "content": "1. Sessions last a day."}], "u5"),
    claude("user", [{"type": "text", "text": "See this"}, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}], "u6"),
    claude("user", "This session is a summary.", "u7", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    claude("assistant", [{"type": "text", "text": "API Error: 529"}], "a3", isApiErrorMessage=True),
    claude("user", "Look for callers.", "s1", isSidechain=True, agentId="explorer"),
    claude("assistant", [{"type": "text", "text": "Three callers."}], "s2", isSidechain=True, agentId="explorer"),
    {"type": "attachment", "attachment": {"type": "hook_additional_context", "content": [wrap("Use tabs.")]}, "uuid": "h1", "sessionId": "c1"},
    {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "And the logout."}, "uuid": "q1", "sessionId": "c1"},
    {"type": "attachment", "attachment": {"type": "skill_listing", "content": "…"}, "uuid": "k1", "sessionId": "c1"},
    {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted", "uuid": "y1", "sessionId": "c1"},
    {"type": "system", "subtype": "turn_duration", "durationMs": 3, "uuid": "y2", "sessionId": "c1"},
    {"type": "a-kind-of-tomorrow", "sessionId": "c1", "uuid": "z1"},
]


def codex(kind: str, /, **payload: Any) -> Record:
    """Return a record as Codex writes it."""
    return {"timestamp": "2026-03-02T10:00:00.000Z", "type": kind, "payload": payload}


def said(role: str, text: str) -> Record:
    return codex("response_item", type="message", role=role, content=[{"type": "output_text" if role == "assistant" else "input_text", "text": text}])


CODEX: list[Record] = [
    codex("session_meta", id="x1", cwd="/home/ana/api", originator="codex_cli", cli_version="0.90.0", source="cli", git={"branch": "main"}),
    said("developer", "Permissions."),
    said("user", "<environment_context>\n<cwd>/home/ana</cwd>\n</environment_context>"),
    said("user", "Mend the login."),
    codex("event_msg", type="user_message", message="Mend the login.", kind="plain"),
    codex("turn_context", model="gpt", cwd="/"),
    codex("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "Where is it?"}], encrypted_content="x"),
    codex("response_item", type="function_call", name="shell", arguments='{"command": ["bash", "-lc", "pytest"]}', call_id="f1"),
    codex("response_item", type="function_call_output", call_id="f1", output='{"output": "2 failed", "metadata": {"exit_code": 1}}'),
    codex("response_item", type="function_call", name="exec_command", arguments='{"cmd": "mkb context login"}', call_id="f2"),
    codex("response_item", type="function_call_output", call_id="f2", output="Chunk ID: 1\nProcess exited with code 0\nOutput:\nUse tabs."),
    codex("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="f3", status="completed"),
    codex("response_item", type="custom_tool_call_output", call_id="f3", output="Success."),
    codex("response_item", type="web_search_call", action={"type": "search", "query": "argon2"}),
    said("assistant", "Done."),
    codex("event_msg", type="agent_message", message="Done."),
    codex("event_msg", type="token_count", info={}),
    codex("event_msg", type="error", message="stream closed"),
    codex("compacted", message="What was done."),
    codex("session_meta", id="the-parent-of-a-fork"),
]

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


def write(file: Path, records: Iterable[Record]) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def replay(kb: KnowledgeBase, session: str) -> list[Event]:
    return list(kb.session_replay(session))


def short(event: Event) -> tuple[str, str | None, str]:
    """Return what an event is, who speaks, and what it says."""
    return (event.event or event.tool or event.type), event.role, event.content or json.dumps(event.args)


def test_a_transcript_of_claude_code(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.session_import(write(tmp_path / "any-name.jsonl", CLAUDE), job="api")
    assert (report.format, report.session, report.added, report.ignored, report.injected) == ("claude-code", "c1", 20, 4, 2)
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
        ("hook", "system", wrap("Use tabs.")),
        ("message", "user", "And the logout."),
        ("compact_boundary", "system", "Conversation compacted"),
    ]
    assert (events[0].event, events[0].args) == ("start", {"cwd": "/home/ana/api", "branch": "main", "version": "2.1.0"})
    assert {event.job for event in events} == {"api"}
    assert {event.agent for event in events} == {"claude-code", "explorer"}
    assert [event.content for event in events if event.ok is False and event.type == "tool_result"] == ["Exit code 1\n2 failed"]
    assert [event.content for event in events if event.injected] == ["1. Sessions last a day.", wrap("Use tabs.")]
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

    records = [*result("t1", "Bash", refused), *result("t2", "mcp__x__y", refused), *result("t3", "Bash", refused, is_error=False)]
    records += result("t4", "Bash", f"Exit code 1\n{refused}")
    kb = open_kb(folder)
    kb.session_import(write(tmp_path / "c.jsonl", records))
    assert [(event.seq, event.content) for event in replay(kb, "c1") if event.type == "message"] == [(4, "Never push from here.")]
    (again,) = kb.session_import(tmp_path / "c.jsonl")
    assert again.added == 0


def test_a_rollout_of_codex(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.session_import(write(tmp_path / "rollout-2026-03-02-x1.jsonl", CODEX))
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
    assert [(event.ok, event.injected) for event in events if event.type == "tool_result"] == [(False, None), (True, "whole"), (None, None)]


def test_a_rollout_without_envelopes(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    old: list[Record] = [
        {"id": "x0", "timestamp": "2025-06-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        said("user", "Hello.")["payload"],
    ]
    (report,) = kb.session_import(write(tmp_path / "old.jsonl", old))
    assert (report.session, report.added) == ("x0", 2)
    assert replay(kb, "x0")[1].ts == "2025-06-01T10:00:00.000Z"


def test_a_transcript_of_tool_records_at_the_top(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    records: list[Record] = [
        {"type": "user", "timestamp": "2026-01-29T10:00:00Z", "content": "Read it."},
        {"type": "tool_use", "timestamp": "2026-01-29T10:00:01Z", "tool_name": "Read", "tool_input": {"file_path": "a.py"}},
        {
            "type": "tool_result",
            "timestamp": "2026-01-29T10:00:02Z",
            "tool_name": "Read",
            "tool_input": {"file_path": "a.py"},
            "tool_output": {"output": "x = 1"},
        },
    ]
    (report,) = kb.session_import(write(tmp_path / "ses_1.jsonl", records))
    assert (report.session, report.format, report.added) == ("ses_1", "claude-code", 4)
    assert [(event.tool, event.content) for event in replay(kb, "ses_1")[2:]] == [("Read", None), ("Read", "x = 1")]


@pytest.mark.parametrize(("name", "records"), [("claude", CLAUDE), ("codex", CODEX)])
def test_importing_twice_adds_nothing(name: str, records: list[Record], open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    file = write(tmp_path / f"{name}.jsonl", records[:6])
    kb.session_import(file)
    for _ in range(2):
        write(file, records)
        last = kb.session_import(file)
    assert sum(report.added for report in last) == 0
    (tmp_path / "once").mkdir()
    once = open_kb(tmp_path / "once")
    for report in once.session_import(file):
        assert sorted(map(short, replay(kb, report.session)), key=str) == sorted(map(short, replay(once, report.session)), key=str)


def test_a_resumed_session_brings_its_copies_once(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    kb.session_import(write(tmp_path / "first.jsonl", CLAUDE[2:6]))
    (report,) = kb.session_import(write(tmp_path / "second.jsonl", [*CLAUDE[3:6], claude("user", "Go on.", "u99")]))
    assert (report.added, report.known) == (1, 6)


def test_the_same_words_twice_are_two_events(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    chat = tmp_path / "chat.md"
    chat.write_text("User: go on\nAssistant: yes\nUser: go on\n", encoding="utf-8")
    for added in (4, 0):
        (report,) = kb.session_import(chat)
        assert report.added == added
    chat.write_text(chat.read_text(encoding="utf-8") + "Assistant: yes\n", encoding="utf-8")
    (report,) = kb.session_import(chat.rename(tmp_path / "moved.md"))
    assert (report.added, report.known) == (1, 4)


def test_a_conversation_in_markdown(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    chat = tmp_path / "chat.md"
    chat.write_text(CHAT, encoding="utf-8")
    (report,) = kb.session_import(chat)
    assert report.session.startswith("chat-where-do-sessions-live-")
    assert [(event.role, event.content) for event in replay(kb, report.session)[1:]] == [
        ("user", "Where do sessions live?\n\n```\n## Assistant\nUser: not a turn\n```"),
        ("assistant", "User: is a table."),
        ("user", "Thanks."),
    ]
    assert replay(kb, report.session)[2].ts == "2026-03-03T10:00:00.000Z"
    (other,) = kb.session_import(chat, session="talk")
    assert (other.session, other.added) == ("talk", 4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**User:** hi\n\n**Assistant:** hello\nthere\n", [("user", "hi"), ("assistant", "hello\nthere")]),
        ("**Human**: hi\n__Claude__: hello", [("user", "hi"), ("assistant", "hello")]),
        ("### You said:\nhi\n### ChatGPT said:\nhello", [("user", "hi"), ("assistant", "hello")]),
        ("# User 1\nhi\n# Assistant 1\n## User guide\nread it", [("user", "hi"), ("assistant", "## User guide\nread it")]),
        ("USER: hi\r\nAI: hello\r\n", [("user", "hi"), ("assistant", "hello")]),
        ("\ufeffUser: hi", [("user", "hi")]),
        ("Some words.\n\nHuman: hi\nSystem: be kind\nTool: 42", [("preamble", "Some words."), ("user", "hi"), ("system", "be kind"), ("tool", "42")]),
        ("The user: wrote this", [("preamble", "The user: wrote this")]),
        ("", []),
    ],
)
def test_how_turns_are_marked(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(turn.role, turn.text) for turn in turns_of(text.encode().split(b"\n"))] == expected


def test_credentials_stay_outside(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    token = "ghp_" + "aB3dE6gH9j" * 4
    (report,) = kb.session_import(write(tmp_path / "c.jsonl", [claude("user", f"Use {token}.", "u1")]))
    assert report.redacted == ("a GitHub token",)
    assert token not in (kb.machine / "sessions" / "c1.jsonl").read_text(encoding="utf-8")


def test_what_cannot_be_read_is_told_and_passed_over(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    file = tmp_path / "c.jsonl"
    whole = [json.dumps(claude("user", f"Turn {n}.", f"u{n}")).encode() for n in range(2)]
    file.write_bytes(whole[0] + b"\n{torn\n\xff\xfe\n\n[1]\n" + whole[1])
    (report,) = kb.session_import(file)
    assert report.added == 3
    assert [problem.line for problem in report.problems] == [2, 3, 5]


@pytest.mark.parametrize("name", ["../../evil", "a/b", "nul", "..", "x" * 300, "日本"])
def test_a_transcript_cannot_name_a_file_elsewhere(name: str, open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    (report,) = kb.session_import(write(tmp_path / "c.jsonl", [claude("user", "Hi.", "u1", sessionId=name)]))
    assert (kb.machine / "sessions" / f"{report.session}.jsonl").is_file()
    assert "/" not in report.session


def test_what_is_no_transcript_is_refused(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    kb = open_kb(folder)
    with pytest.raises(UnreadableInput, match="no transcript"):
        kb.session_import(write(tmp_path / "other.jsonl", [{"a": 1}]))
    with pytest.raises(UnreadableInput, match="cannot be read"):
        kb.session_import(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="unknown format"):
        kb.session_import(write(tmp_path / "c.jsonl", CLAUDE), format="word")


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["user", "tool_use", "text", "message", "message", "c1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "content",
                    "role",
                    "payload",
                    "uuid",
                    "id",
                    "name",
                    "input",
                    "text",
                    "output",
                    "sessionId",
                    "timestamp",
                    "attachment",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(FORMATS),
    st.lists(st.one_of(st.builds(lambda value: json.dumps(value).encode(), ODD), st.binary(max_size=30), st.none()), max_size=4),
)
def test_no_transcript_makes_a_reader_fail(kind: str, lines: list[bytes | None]) -> None:
    for found in reader_of(kind)(lines):
        assert found.event is None or found.event.origin


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([CLAUDE, CODEX]), st.data())
def test_odd_fields_cost_no_other_record(records: list[Record], data: st.DataObject) -> None:
    """One record changed beyond recognition leaves the messages of the others."""
    place = data.draw(st.integers(0, len(records) - 1))
    odd = dict(records[place])
    odd[data.draw(st.sampled_from(sorted(odd)))] = data.draw(ODD)
    changed = [*records[:place], odd, *records[place + 1 :]]
    read = reader_of("codex" if records is CODEX else "claude-code")

    def messages(some: list[Record]) -> list[str]:
        lines = (json.dumps(record).encode() for record in some)
        return [found.event.content or "" for found in read(lines) if found.event and found.event.type == "message"]

    others = messages(records[:place] + records[place + 1 :])
    assert not Counter(others) - Counter(messages(changed))


def test_import_on_the_command_line(run: Run, folder: Path, tmp_path: Path) -> None:
    project = tmp_path / "projects/-home-ana-api"
    project.mkdir(parents=True)
    write(project / "c1.jsonl", CLAUDE[2:])
    write(project / "other.jsonl", [{"a": 1}])
    done = run("--vault", folder, "session", "import", tmp_path / "projects")
    assert done.returncode == 0
    assert done.stdout == "c1  19 added, 0 known, 3 passed over, 2 with text from memory-kb\n"
    assert "no transcript that is known" in done.stderr
    again = json.loads(run("--vault", folder, "session", "import", project / "c1.jsonl", "--json").stdout)
    assert [(one["session"], one["added"], one["known"]) for one in again["sessions"]] == [("c1", 0, 19)]
