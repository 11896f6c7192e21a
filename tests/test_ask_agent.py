"""The stop hook asks the agent's own model what to remember: when, in which words of each agent, and when not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import test_hooks

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call
from memory_kb.injected_text import classify_own_text

if TYPE_CHECKING:
    from conftest import Run

notes = test_hooks.notes

#: What each agent sends, in the shapes that it documents: fields of all its events, a prompt, an edit, a stop.
CLAUDE = {
    "all": {"session_id": "s-claude", "transcript_path": "/x/s.jsonl", "permission_mode": "default"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "Make the upload test pass, part {}."},
    "tool": {
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_use_id": "toolu_{}",
        "tool_input": {"file_path": "/x/a.py", "old_string": "a", "new_string": "b", "replace_all": False},
        "tool_response": {"filePath": "/x/a.py", "structuredPatch": []},
    },
    "stop": {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Part {} is done."},
}
CODEX = {
    "all": {
        "session_id": "s-codex",
        "turn_id": "t1",
        "transcript_path": None,
        "model": "gpt-5.5-codex",
        "permission_mode": "default",
    },
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "Make the upload test pass, part {}."},
    "tool": {
        "hook_event_name": "PostToolUse",
        "tool_name": "apply_patch",
        "tool_use_id": "call_{}",
        "tool_input": {"command": "*** Begin Patch\n*** Update File: a.py\n*** End Patch"},
        "tool_response": "Success. Updated the following files:\nM a.py",
    },
    "stop": {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Part {} is done."},
}
GEMINI = {
    "all": {"session_id": "s-gemini", "transcript_path": "/x/s.json", "timestamp": "2026-05-01T09:00:00Z"},
    "prompt": {"hook_event_name": "BeforeAgent", "prompt": "Make the upload test pass, part {}."},
    "tool": {
        "hook_event_name": "AfterTool",
        "tool_name": "write_file",
        "tool_input": {"file_path": "/x/a.py", "content": "b{}"},
        "tool_response": {"llmContent": "Wrote a.py", "returnDisplay": ""},
    },
    "stop": {
        "hook_event_name": "AfterAgent",
        "prompt": "…",
        "prompt_response": "Part {} is done.",
        "stop_hook_active": False,
    },
}
CURSOR = {
    "all": {
        "conversation_id": "s-cursor",
        "generation_id": "g1",
        "model": "auto",
        "cursor_version": "2.4.0",
        "user_email": None,
    },
    "prompt": {
        "hook_event_name": "beforeSubmitPrompt",
        "prompt": "Make the upload test pass, part {}.",
        "attachments": [],
    },
    "tool": {
        "hook_event_name": "postToolUse",
        "tool_name": "Write",
        "tool_use_id": "call_{}",
        "tool_input": {"path": "/x/a.py", "contents": "b"},
        "tool_output": "{}",
        "duration": 12,
    },
    "stop": {"hook_event_name": "stop", "status": "completed", "loop_count": 0},
}
AGENTS: Mapping[str, Mapping[str, Any]] = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "gemini-cli": GEMINI,
    "cursor": CURSOR,
}


class Session:
    """A session of an agent as its hooks see it."""

    def __init__(self, agent: str, folder: Path, home: Path) -> None:
        self._agent, self._shapes, self._folder, self._home = find_agent(agent), AGENTS[agent], folder, home
        roots: dict[str, Any] = {"workspace_roots": [str(folder)]} if agent == "cursor" else {"cwd": str(folder)}
        self._all = dict(self._shapes["all"]) | roots
        self._count = 0
        self.environ = {"HOME": str(home.parent), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}

    def payload(self, shape: str, **fields: Any) -> str:
        self._count += 1
        told = json.loads(json.dumps(self._shapes[shape]).replace("{}", str(self._count)))
        return json.dumps(self._all | told | fields)

    def send(self, event: str, shape: str, **fields: Any) -> str:
        call = read_hook_call(self._agent, event, self.payload(shape, **fields).encode())
        with KnowledgeBase.open(self._folder, self._home, environ=self.environ) as kb:
            return kb.hook(event, call, self._agent).output

    def work(self, prompts: int = 3, *, edit: bool = True) -> None:
        for _ in range(prompts):
            self.send("prompt", "prompt")
        if edit:
            self.send("tool", "tool")

    def stop(self, **fields: Any) -> str:
        return self.send("ask" if self._agent.name == "cursor" else "stop", "stop", **fields)


@pytest.fixture
def claude(notes: Path, home: Path) -> Session:
    return Session("claude-code", notes, home)


def question_of(output: str) -> str:
    answer: Mapping[str, Any] = json.loads(output)
    if "followup_message" in answer:
        return str(answer["followup_message"])
    if "hookSpecificOutput" in answer:
        assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
        assert answer["hookSpecificOutput"]["hookEventName"] == "Stop"
        return str(answer["hookSpecificOutput"]["additionalContext"])
    assert set(answer) == {"decision", "reason"}
    return str(answer["reason"])


@pytest.mark.parametrize(
    ("agent", "decision"), [("claude-code", None), ("codex", "block"), ("gemini-cli", "deny"), ("cursor", None)]
)
def test_an_agent_is_asked_once_after_three_prompts_and_an_edit(
    notes: Path, home: Path, agent: str, decision: str | None
) -> None:
    session = Session(agent, notes, home)
    session.work(prompts=2)
    assert session.stop() == ""
    session.work(prompts=1, edit=False)
    output = session.stop()
    assert json.loads(output).get("decision") == decision
    question = question_of(output)
    assert "memory_learn" in question
    assert "Nothing to keep" in question
    # Some agents pass it on as a prompt, which must not be taken for a person's words.
    assert classify_own_text(question) == "whole"
    session.work()
    assert session.stop() == ""


def test_the_notice_of_a_background_task_is_no_prompt(claude: Session) -> None:
    claude.work(prompts=2)
    claude.send("prompt", "prompt", prompt="<task-notification>\n<task-id>a1</task-id>\n</task-notification>")
    assert claude.stop() == ""
    claude.work(prompts=1, edit=False)
    assert claude.stop() != ""


def test_nobody_is_asked_who_changed_nothing(claude: Session) -> None:
    claude.work(prompts=5, edit=False)
    assert claude.stop() == ""
    commit = {
        "tool_name": "Bash",
        "tool_input": {"command": "git -C /x commit -m 'Fix the test'"},
        "tool_response": {"stdout": ""},
    }
    claude.send("tool", "tool", **commit)
    assert claude.stop() != ""


def test_one_who_stored_something_is_not_asked(claude: Session) -> None:
    claude.work()
    claude.send(
        "tool", "tool", tool_name="mcp__memory-kb__memory_learn", tool_input={"text": "x"}, tool_response="Stored."
    )
    assert claude.stop() == ""


@pytest.mark.parametrize(
    ("command", "is_asked"),
    [
        ("memory-kb search redis && git add -A", True),
        ("git add . && memory-kb status", True),
        ("memory-kb learn 'Tests need Redis.'", False),
        ("cd api; mkb --vault . add 'Tests need Redis.'", False),
    ],
)
def test_only_a_command_of_ours_stores(claude: Session, command: str, is_asked: bool) -> None:
    claude.work()
    claude.send("tool", "tool", tool_name="Bash", tool_input={"command": command}, tool_response={"stdout": ""})
    assert (claude.stop() != "") is is_asked


@pytest.mark.parametrize(("tool", "is_asked"), [("mcp__files__write_file", True), ("write_todos", False)])
def test_a_file_is_changed_by_any_tool_that_writes_one(claude: Session, tool: str, is_asked: bool) -> None:
    claude.work(prompts=3, edit=False)
    claude.send("tool", "tool", tool_name=tool, tool_input={"path": "a.py"}, tool_response="ok")
    assert (claude.stop() != "") is is_asked


def test_an_agent_is_asked_again_after_a_compaction(claude: Session) -> None:
    claude.work()
    assert claude.stop() != ""
    claude.send(
        "tool", "tool", tool_name="mcp__memory-kb__memory_learn", tool_input={"text": "x"}, tool_response="Stored."
    )
    claude.work()
    assert claude.stop() == ""
    claude.send("session-start", "stop", hook_event_name="SessionStart", source="compact")
    assert claude.stop() != ""
    assert claude.stop() == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"stop_hook_active": True},
        {"agent_id": "a1", "agent_type": "Explore"},
        {"hook_event_name": "SubagentStop"},
        {"background_tasks": [{"id": "a1", "type": "subagent", "status": "running", "description": "look"}]},
    ],
    ids=["asked before", "subagent", "subagent's stop", "a subagent goes on"],
)
def test_a_stop_that_is_no_persons_is_left_alone(claude: Session, fields: Mapping[str, Any]) -> None:
    claude.work()
    assert claude.stop(**fields) == ""
    assert claude.stop() != ""


def test_a_stop_that_cursors_user_brought_about_is_left_alone(notes: Path, home: Path) -> None:
    session = Session("cursor", notes, home)
    session.work()
    assert session.stop(status="aborted") == ""
    assert session.stop(loop_count=1) == ""
    assert session.stop() != ""


@pytest.mark.parametrize("entry", ["sdk-cli", "sdk-py", "claude-code-github-action"])
def test_a_run_without_a_person_is_left_alone(claude: Session, entry: str) -> None:
    claude.work()
    claude.environ["CLAUDE_CODE_ENTRYPOINT"] = entry
    assert claude.stop() == ""
    claude.environ["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert claude.stop() != ""


@pytest.mark.parametrize(("source", "is_asked"), [("exec", False), ("cli", True), ("vscode", True)])
def test_a_run_of_codex_exec_is_left_alone(
    notes: Path, home: Path, tmp_path: Path, source: str, *, is_asked: bool
) -> None:
    transcript = tmp_path / "rollout.jsonl"
    meta = {"type": "session_meta", "payload": {"source": source, "base_instructions": {"text": "x" * 60_000}}}
    transcript.write_text(json.dumps(meta) + "\n" + json.dumps({"payload": {"source": "exec"}}) + "\n")
    session = Session("codex", notes, home)
    session.work()
    assert (session.stop(transcript_path=str(transcript)) != "") is is_asked


def test_it_can_be_switched_off(claude: Session, notes: Path) -> None:
    claude.work()
    (notes / "memory/config.yaml").write_text("learning:\n  ask_agent: false\n")
    assert claude.stop() == ""


def test_where_a_model_is_configured_the_agent_is_not_asked(claude: Session, home: Path) -> None:
    claude.work()
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("llm:\n  command: [ollama, run, qwen3]\n")
    assert claude.stop() == ""


def test_two_configurations_ask_once(claude: Session) -> None:
    claude.work()
    same = {"last_assistant_message": "Done."}
    assert [bool(claude.stop(**same)), bool(claude.stop(**same))] == [True, False]


def test_the_command_asks_unless_hooks_are_off(claude: Session, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_CODE_ENTRYPOINT", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    claude.work()
    off = run("hook", "stop", stdin=claude.payload("stop"), env={"MEMORY_KB_HOOKS": "off"})
    assert (off.returncode, off.stdout, off.stderr) == (0, "", "")
    assert "memory_learn" in question_of(run("hook", "stop", stdin=claude.payload("stop")).stdout)
