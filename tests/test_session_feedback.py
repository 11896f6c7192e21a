"""What comes of what hooks showed: outcomes told of a session's tasks, and marks that count when it is over."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import NOW, Files, Run
from mcp_client import ask, inside
from mcp_client import run as run_async
from support import entry, notes_of
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_caller
from memory_kb.agents.payloads import read_hook_call

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
Say = Callable[..., str]
STATE = {"confidence": 0.5, "success_count": 1, "failure_count": 1, "last_applied": f"'{NOW.date()}'"}
FILES: Files = {
    "memory/config.yaml": "reinforcement: {counts: shown}\n",
    "memory/rules/retry.md": entry("Retry the wombat upload test twice.", id="rule-retry", kind="rule", **STATE),
    "memory/rules/sleep.md": entry("The wombat upload test sleeps too long.", id="pit-sleep", kind="pitfall", **STATE),
    "memory/rules/invoice.md": entry(
        "Invoices of the quokka service have numbers.", id="rule-invoice", kind="rule", **STATE
    ),
    "memory/rules/other.md": entry("Numbats eat termites.", id="rule-other", kind="rule", **STATE),
}
TASK = "Fix the wombat upload test"
SUCCESS, FAILURE, UNTOUCHED = (2, 1), (1, 2), (1, 1)


@pytest.fixture
def folder(vault: MakeVault) -> Path:
    return vault(FILES)


@pytest.fixture
def kb(folder: Path, open_kb: OpenKB) -> KnowledgeBase:
    return open_kb(folder)


@pytest.fixture
def say(kb: KnowledgeBase) -> Say:
    """A function that calls a hook as an agent does, in this process."""

    def call(
        event: str, session: str = "s1", *, agent: str = "claude-code", environ: Mapping[str, str] = {}, **words: Any
    ) -> str:
        values = {"session_id": session, "cwd": str(kb.vault.folder), **words}
        chosen = find_caller(agent, environ)
        done = kb.hook(event, read_hook_call(chosen, event, json.dumps(values).encode()), chosen)
        kb.hook_finish(done.sessions_to_end)
        return done.output

    return call


def counts(folder: Path, name: str) -> tuple[int, int]:
    fields = yaml.safe_load((folder / f"memory/rules/{name}.md").read_text().split("---\n")[1])
    return fields["success_count"], fields["failure_count"]


def test_an_outcome_credits_what_hooks_showed_in_the_session(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    assert "Retry the wombat" in say("prompt", prompt=TASK)
    report = kb.outcome("claude-code", TASK, "success")
    assert {one.id for one in report.credits} == {"rule-retry", "pit-sleep"}
    assert report.notice == "Nothing was shown for this task by name; this is what hooks showed in session s1."
    assert (counts(folder, "retry"), counts(folder, "other")) == (SUCCESS, UNTOUCHED)
    assert kb.outcome("claude-code", TASK, "success").notice == "All of it was credited before."
    assert kb.outcome("claude-code", "the upload test is mended", "failure").credits == ()
    assert counts(folder, "retry") == SUCCESS


def test_what_the_session_is_shown_later_is_for_the_next_task(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    kb.outcome("claude-code", TASK, "success")
    say("prompt", prompt="Now number the invoices of the quokka service")
    report = kb.outcome("claude-code", "number the invoices", "failure")
    assert [one.id for one in report.credits] == ["rule-invoice"]
    assert (counts(folder, "retry"), counts(folder, "invoice")) == (SUCCESS, FAILURE)


def test_each_session_counts_by_itself(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    for number in range(3):
        say("prompt", f"s{number}", prompt=TASK)
        kb.outcome("claude-code", f"{TASK}, part {number}", "success")
        say("session-end", f"s{number}")
    assert counts(folder, "retry") == (4, 1)


@pytest.mark.parametrize("agent", ["claude-code", "Claude Code", "claude"])
def test_agents_are_known_by_what_they_call_themselves(folder: Path, kb: KnowledgeBase, say: Say, agent: str) -> None:
    say("prompt", prompt=TASK)
    assert kb.outcome(agent, "the task in other words", "success").credits
    assert counts(folder, "retry") == SUCCESS


@pytest.mark.parametrize(
    ("agent", "session"), [("codex", None), ("claude-reviewer", None), ("nobody", None), ("claude-code", "elsewhere")]
)
def test_a_stranger_changes_nothing(folder: Path, kb: KnowledgeBase, say: Say, agent: str, session: str | None) -> None:
    say("prompt", prompt=TASK)
    before = notes_of(folder)
    report = kb.outcome(agent, TASK, "failure", session=session)
    assert (report.run.run, report.credits) == (None, ())
    assert report.notice.startswith(f"Nothing was shown to {agent} for {TASK}")
    assert notes_of(folder) == before


def test_whoever_names_the_session_need_not_be_its_agent(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    assert kb.outcome("orchestrator", "job 7", "success", session="s1").credits
    assert counts(folder, "retry") == SUCCESS


def test_what_was_shown_by_name_goes_before(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    kb.context("number the invoices of the quokka service", agent="claude-code", session="other")
    report = kb.outcome("claude-code", "number the invoices of the quokka service", "success")
    assert (counts(folder, "retry"), counts(folder, "invoice"), report.notice) == (UNTOUCHED, SUCCESS, "")


def test_the_session_that_runs_is_meant(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", "a", prompt=TASK)
    say("session-end", "a")
    say("prompt", "b", prompt="Number the invoices of the quokka service")
    kb.outcome("claude-code", "whatever it was", "failure")
    assert (counts(folder, "retry"), counts(folder, "invoice")) == (UNTOUCHED, FAILURE)


def test_a_session_that_is_over_counts_for_a_day(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    say("session-end")
    log = kb.vault.machine / "log/retrievals.jsonl"
    text = log.read_text()
    log.write_text(text.replace(NOW.date().isoformat(), "2026-10-01"))
    assert kb.outcome("claude-code", "something else", "success").credits == ()
    log.write_text(text)
    assert kb.outcome("claude-code", "something else", "success").credits
    assert counts(folder, "retry") == SUCCESS


def test_marks_count_when_a_session_ends_without_an_outcome(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    say("stop", last_assistant_message="Done. [memory-kb: helpful rule-ret] [memory-kb: harmful pit-sleep, rule-other]")
    say("session-end")
    found = {name: counts(folder, name) for name in ("retry", "sleep", "other", "invoice")}
    assert found == {"retry": SUCCESS, "sleep": FAILURE, "other": UNTOUCHED, "invoice": UNTOUCHED}
    say("prompt", prompt="Once more")
    say("session-end")
    assert kb.outcome("claude-code", TASK, "success").credits == ()
    assert {name: counts(folder, name) for name in found} == found
    showing = kb.exposure("rule-retry").showings[0]
    assert (showing.outcome, showing.credit) == (None, "success")


def edit(folder: Path) -> dict[str, Any]:
    """What an agent says that has edited a file."""
    (folder / "app.py").write_text("new")
    names = {"file_path": str(folder / "app.py"), "old_string": "old", "new_string": "new"}
    return {"tool_name": "Edit", "tool_input": names, "tool_response": {"success": True}, "tool_use_id": "t1"}


@pytest.mark.parametrize("is_edited", [True, False])
def test_marks_and_outcomes_count_at_the_end_of_a_session_that_edited(
    folder: Path, kb: KnowledgeBase, say: Say, open_kb: OpenKB, is_edited: bool
) -> None:
    (folder / "memory/config.yaml").write_text("{}\n")
    kb.vault = open_kb(folder).vault
    before = notes_of(folder)
    say("prompt", prompt=TASK)
    report = kb.outcome("claude-code", TASK, "failure", used=["pit-sleep"])
    assert report.notice == "Noted: it counts when session s1 ends, if that changed a file or committed."
    if is_edited:
        say("tool", **edit(folder))
    say("stop", last_assistant_message="Done. [memory-kb: helpful rule-ret]")
    assert notes_of(folder) == before
    for _ in range(2):
        kb.sessions.end("s1")
        found = counts(folder, "retry"), counts(folder, "sleep"), counts(folder, "other")
        assert found == ((SUCCESS, FAILURE, UNTOUCHED) if is_edited else (UNTOUCHED,) * 3)
    if not is_edited:
        assert {name: text for name, text in notes_of(folder).items() if name in before} == before


def test_a_mark_after_the_outcome_counts_where_it_says_something_else(
    folder: Path, kb: KnowledgeBase, say: Say
) -> None:
    say("prompt", prompt=TASK)
    kb.outcome("claude-code", TASK, "failure")
    assert (counts(folder, "retry"), counts(folder, "sleep")) == (FAILURE, FAILURE)
    say("stop", last_assistant_message="[memory-kb: harmful rule-retry] [memory-kb: helpful pit-sleep]")
    say("session-end")
    assert (counts(folder, "retry"), counts(folder, "sleep")) == (FAILURE, (2, 2))


def test_an_outcome_at_the_end_of_a_session_is_for_what_hooks_showed(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    kb.sessions.end("s1", outcome="failure")
    kb.sessions.end("s1")
    assert (counts(folder, "retry"), counts(folder, "sleep"), counts(folder, "other")) == (FAILURE, FAILURE, UNTOUCHED)
    assert kb.exposure("rule-retry").totals.outcomes == {"failure": 1}


def test_marks_of_what_was_shown_by_name_count_at_the_end_too(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    kb.context("the wombat upload", agent="coder", session="s1")
    say("stop", last_assistant_message="[memory-kb: helpful rule-retry]")
    say("session-end")
    assert counts(folder, "retry") == SUCCESS
    kb.outcome("coder", "the wombat upload", "failure")
    assert counts(folder, "retry") == SUCCESS


def test_a_mark_that_was_taken_back_does_not_come_again(folder: Path, kb: KnowledgeBase, say: Say) -> None:
    say("prompt", prompt=TASK)
    say("stop", last_assistant_message="[memory-kb: helpful rule-retry]")
    kb.sessions.end("s1")
    assert counts(folder, "retry") == SUCCESS
    kb.undo_session("s1")
    assert counts(folder, "retry") == UNTOUCHED
    kb.sessions.end("s1")
    assert counts(folder, "retry") == UNTOUCHED


@pytest.mark.parametrize(("name", "environ"), [("claude-code", {}), ("copilot-cli", {"COPILOT_CLI": "1"})])
def test_a_client_reports_the_outcome_of_a_hooked_session(
    folder: Path,
    home: Path,
    kb: KnowledgeBase,
    say: Say,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    environ: Mapping[str, str],
) -> None:
    """The server does not know which session its client is in."""
    monkeypatch.setenv("MEMORY_KB_NOW", NOW.isoformat())
    say("prompt", prompt=TASK, environ=environ)

    async def talk() -> None:
        async with inside(folder, home) as client:
            told = await ask(client, "memory_outcome", agent=name, task="The upload test is mended", outcome="success")
            assert told.text.startswith("2 credited. Nothing was shown for this task by name")
            again = await ask(client, "memory_outcome", agent="other", task="x", outcome="success", session="s1")
            assert again.text == "0 credited. All of it was credited before."

    run_async(talk)
    assert counts(folder, "retry") == SUCCESS


def test_the_commands_as_an_agent_calls_them(folder: Path, run: Run) -> None:
    base = {"session_id": "s1", "cwd": str(folder)}
    env = {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
    told = [
        ("prompt", {"prompt": TASK}),
        ("stop", {"last_assistant_message": "[memory-kb: helpful rule-retry]"}),
        ("session-end", {"reason": "exit"}),
    ]
    for event, words in told:
        assert run("hook", event, stdin=json.dumps(base | words), env=env).returncode == 0
    eventually(lambda: counts(folder, "retry") != UNTOUCHED)
    assert counts(folder, "retry") == SUCCESS
