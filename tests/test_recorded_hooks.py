"""What real agents told their hooks, recorded once, and what we make of it: sessions with their results, never our own text as a prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent, find_caller
from memory_kb.agents.payloads import HookAnswer, read_hook_call

Vault = Callable[[Files], Path]
RECORDS = Path(__file__).parent / "data" / "hooks"
NOTES = {
    "memory/config.yaml": "embeddings:\n  provider: none\n",
    "memory/a.md": "---\nid: up-1\n---\nThe upload queue drops messages when Redis restarts; call XAUTOCLAIM before reading.\n",
    "memory/institutional.md": "We ship on Mondays.\n",
}


def replay(agent: str, folder: Path, home: Path, record: str = "") -> Iterator[tuple[str, dict[str, Any], HookAnswer]]:
    """Call our hooks as an agent did, and yield what it said and what it got."""
    transcript = folder / "transcript.jsonl"
    transcript.write_bytes((RECORDS / "codex-transcript.jsonl").read_bytes())
    for line in (RECORDS / f"{record or agent}.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line.replace("{PROJECT}", folder.as_posix()))
        if agent == "codex":
            said["payload"]["transcript_path"] = str(transcript)
        with KnowledgeBase.open(folder, home) as kb:
            call = read_hook_call(find_agent(agent), said["hook"], json.dumps(said["payload"]).encode())
            yield said["hook"], said["payload"], kb.hook(said["hook"], call, find_agent(agent))


def replay_files(agent: str, folder: Path, home: Path) -> list[tuple[str, str]]:
    """Call our hooks as an agent did when it read and edited src/queue_worker.py, and return what it got."""
    answers = list[tuple[str, str]]()
    for line in (RECORDS / f"{agent}-files.jsonl").read_text(encoding="utf-8").splitlines():
        said = json.loads(line.replace("{PROJECT}", folder.as_posix()))
        with KnowledgeBase.open(folder, home) as kb:
            call = read_hook_call(find_agent(agent), said["hook"], json.dumps(said["payload"]).encode())
            answers.append((said["hook"], kb.hook(said["hook"], call, find_agent(agent)).output))
    return answers


def logged(folder: Path) -> list[dict[str, Any]]:
    (file,) = (folder / "memory/.memory-kb/sessions").glob("*.jsonl")
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_a_recorded_session_gets_its_context_and_is_logged(agent: str, vault: Vault, home: Path) -> None:
    folder = vault(NOTES)
    answers = list(replay(agent, folder, home))
    starts = {payload["source"]: answer.output for hook, payload, answer in answers if hook == "session-start"}
    assert "We ship on Mondays." in starts["startup"]
    assert starts["resume"] == ""
    assert all("We ship on Mondays." in starts[one] for one in starts if one == "compact")
    prompts = [answer.output for hook, _, answer in answers if hook == "prompt"]
    assert "XAUTOCLAIM" in prompts[0]
    assert prompts[1] == ""
    assert any(answer.sessions_to_end for hook, _, answer in answers if hook == "session-end")
    events = logged(folder)
    people = [one["content"] for one in events if one.get("role") == "user"]
    assert people[:2] == ["Why does the upload queue lose messages when Redis restarts?", "yes"]
    failed = next(one for one in events if one["type"] == "tool_result")
    assert failed["ok"] is False
    assert "<untrusted_context>" not in failed["content"]
    assert sum(one.get("ok") is False for one in events) == 1


def test_an_entry_that_names_a_file_comes_once_with_a_recorded_result(vault: Vault, home: Path) -> None:
    fact = "---\nid: py-1\nkind: fact\napplies_to: ['*2.py']\n---\nNew modules name the quokka.\n"
    folder = vault(NOTES | {"memory/learnings/b.md": fact, "new2.py": "x = 1\n"})
    answers = list(replay("gemini-cli", folder, home))
    given = {payload["tool_name"]: answer.output for hook, payload, answer in answers if hook == "tool"}
    assert "New modules name the quokka" in given.pop("write_file")
    assert not any("quokka" in output for output in given.values())


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli"])
def test_a_recorded_file_brings_its_entry_once_and_a_forbidden_edit_is_refused_once(
    agent: str, vault: Vault, home: Path
) -> None:
    rule = (
        "---\nid: no-print\nkind: rule\nforbid: 'print'\napplies_to: ['src/*.py']\n---\n# No print\n\nUse the logger.\n"
    )
    fact = "---\nid: idem\nkind: fact\napplies_to: [src/queue_worker.py]\n---\nThe quokka drains it twice.\n"
    files = {"memory/learnings/b.md": rule, "memory/learnings/c.md": fact, "src/queue_worker.py": "x = 1\n"}
    answers = replay_files(agent, vault(NOTES | files), home)
    refusals = [json.loads(output) for hook, output in answers if hook == "before-tool" and output]
    reasons = [one.get("reason") or one["hookSpecificOutput"]["permissionDecisionReason"] for one in refusals]
    assert [one.splitlines()[0] for one in reasons] == [
        "src/queue_worker.py would break rule no-print: Use the logger."
    ]
    assert [hook for hook, _ in answers].count("before-tool") == 2
    given = [output for hook, output in answers if hook == "tool"]
    assert "quokka" in given[0]
    assert not any("quokka" in output for output in given[1:])


def test_a_session_that_goes_on_is_not_given_its_own_episode(vault: Vault, home: Path) -> None:
    episode = "---\nid: ep-1\nkind: episode\ncreated_at: '2026-11-23T08:00:00Z'\nsession_id: {}\ntitle: The upload queue\n---\n"
    folder, agent = vault(NOTES | {"memory/episodes/a.md": episode.format("s1")}), find_agent("claude-code")
    given = list[str]()
    for session, source in (("s1", "resume"), ("s1", "startup"), ("s2", "startup")):
        payload = json.dumps({"session_id": session, "cwd": str(folder), "source": source}).encode()
        with KnowledgeBase.open(folder, home) as kb:
            given.append(kb.hook("session-start", read_hook_call(agent, "session-start", payload), agent).output)
    assert ["Last episode" in one for one in given] == [False, False, True]
    assert all("Mondays" in one for one in given)


def test_a_result_that_codex_never_wrote_down_leaves_the_call_alone(vault: Vault, home: Path) -> None:
    folder = vault(NOTES)
    (folder / "t.jsonl").write_text('{"payload": 7}\nno json _output"\n')
    payload = {"session_id": "s", "transcript_path": str(folder / "t.jsonl"), "tool_name": "Bash", "tool_use_id": "c1"}
    agent = find_agent("codex")
    with KnowledgeBase.open(folder, home) as kb:
        for hook, more in (("tool", {"tool_response": "hi\n"}), ("stop", {"last_assistant_message": "Done."})):
            kb.hook(hook, read_hook_call(agent, hook, json.dumps(payload | more).encode()), agent)
    assert [one["type"] for one in logged(folder)] == ["event", "tool_call", "message"]


def test_what_cursor_writes_as_json_into_a_text_is_read() -> None:
    agent = find_agent("cursor")
    good = {"tool_name": "Shell", "tool_input": '{"command": "ls"}', "tool_output": '{"output": "a.py", "exitCode": 0}'}
    _, result = read_hook_call(agent, "tool", json.dumps(good).encode()).events
    assert (result.args, result.content, result.ok) == ({"command": "ls"}, "a.py", True)
    bad = {"hook_event_name": "postToolUseFailure", "tool_name": "Shell", "error_message": "timed out"}
    _, result = read_hook_call(agent, "tool", json.dumps(bad).encode()).events
    assert (result.error, result.ok) == ("timed out", False)


@pytest.mark.parametrize(
    ("text", "kind", "is_good"),
    [
        ("2 errors in 2.80s\n<shellId: 0 completed with exit code 2>", "success", False),
        ("8 passed\n<shellId: 1 completed with exit code 0>", "success", True),
        ("Changed src/a.py.", "success", True),
        ("The user rejected it.", "rejected", False),
    ],
)
def test_what_copilot_sends_to_the_hooks_of_claude_code_is_read(text: str, kind: str, *, is_good: bool) -> None:
    """Copilot CLI 1.0.102 calls what is in `.claude/settings.json` itself, in a form of its own."""
    said = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "pytest"}}
    said |= {"tool_result": {"result_type": kind, "text_result_for_llm": text}}
    _, result = read_hook_call(
        find_caller("claude-code", {"COPILOT_CLI": "1"}), "tool", json.dumps(said).encode()
    ).events
    assert (result.content, result.ok) == (text, is_good)


def test_a_command_that_codex_runs_from_a_script_has_its_exit_code(vault: Vault, home: Path) -> None:
    folder = vault(NOTES)
    list(replay("codex", folder, home, "codex-script"))
    with KnowledgeBase.open(folder, home) as kb:
        payload = json.loads((RECORDS / "codex-script.jsonl").read_text(encoding="utf-8"))["payload"]
        payload |= {"transcript_path": str(folder / "transcript.jsonl"), "last_assistant_message": "Done."}
        kb.hook("stop", read_hook_call(find_agent("codex"), "stop", json.dumps(payload).encode()), find_agent("codex"))
    (result,) = (one for one in logged(folder) if one["type"] == "tool_result")
    assert (result["ok"], result["content"]) == (False, "hi\n")


def test_gemini_gets_the_start_with_the_next_prompt_after_it_was_cleared_or_compressed(
    vault: Vault, home: Path
) -> None:
    answers = list(replay("gemini-cli", vault(NOTES), home, "gemini-cli-anew"))
    given = [(hook, "Mondays" in answer.output, "XAUTOCLAIM" in answer.output) for hook, _, answer in answers]
    start, prompt = "session-start", "prompt"
    assert [one for one in given if one[0] == start] == [
        (start, True, False),
        (start, False, False),
        (start, False, False),
    ]
    assert [one for one in given if one[0] == prompt] == [
        (prompt, False, False),
        (prompt, True, True),
        (prompt, True, False),
    ]
