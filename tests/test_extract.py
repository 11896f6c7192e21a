"""Learning from a session with a language model and without: what fails, what it costs, and what is done again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import extracting
import pytest
from extracting import SAID, answer, extracted, learning, log_session, outcome_of, variables

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from conftest import Run
    from fake_provider import FakeProvider

open_with = extracting.open_with
kb = extracting.kb

Open = Callable[..., KnowledgeBase]


@pytest.mark.parametrize(
    "bad",
    [
        "Sure! Here are some learnings: always be careful.",
        '{"learnings": [{"title": "Cut o',
        "[" * 100_000,
        json.dumps(answer(learning("observations", title="x" * 5_000_000))),
    ],
    ids=["prose", "broken", "deep", "5 MB"],
)
def test_a_bad_answer_leaves_the_other_scopes_alone(kb: KnowledgeBase, fake: FakeProvider, bad: str) -> None:
    log_session(kb)
    is_asked_once = "xxxxx" in bad[:200]
    fake.answers += [bad, *([] if is_asked_once else [bad]), answer(learning("escalation"))]
    report = kb.extract("s1", scopes=["observations", "escalation"])
    assert report.scopes[1].outcome == "done"
    if "xxxxx" in bad[:200]:
        assert [drop.reason for drop in report.scopes[0].dropped] == ["too long or too short"]
    else:
        assert (report.scopes[0].outcome, report.summary) == ("failed", "1/2 scopes succeeded")
        assert len(report.scopes[0].message) < 400
        assert "\n" not in report.scopes[0].message
    assert [memory.word("extraction_scope") for memory in extracted(kb)] == ["escalation"]


def test_a_model_that_does_not_answer_costs_its_scope_only(
    kb: KnowledgeBase, fake: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_kb.learning.extraction.TIMEOUT", 0.5)
    log_session(kb)
    fake.fail("slow", seconds=5)
    fake.answers.append(answer(learning("escalation")))
    report = kb.extract("s1", scopes=["observations", "escalation"])
    assert [one.outcome for one in report.scopes] == ["failed", "done"]
    assert report.summary == "1/2 scopes succeeded"
    assert report.scopes[0].message
    assert [memory.word("extraction_scope") for memory in extracted(kb)] == ["escalation"]


def test_the_end_of_a_session_says_that_every_scope_failed_and_does_the_rest(
    kb: KnowledgeBase, fake: FakeProvider
) -> None:
    log_session(kb)
    fake.answers += ["prose"] * 20
    steps = {step.name: step for step in kb.sessions.end("s1", outcome="success").steps}
    assert (steps["capture"].outcome, steps["capture"].exit_code) == ("failed", 5)
    assert "observations, " in steps["capture"].message and " scopes succeeded" in steps["capture"].message
    assert "nothing worth keeping" not in steps["capture"].message
    assert (steps["episode"].outcome, steps["maintain"].exit_code) == ("done", 0)


def test_a_failed_scope_is_asked_again_and_no_other(kb: KnowledgeBase, fake: FakeProvider) -> None:
    log_session(kb)
    fake.answers += ["prose", "prose", answer(learning("escalation"))]
    outcome_of(kb, "observations", "escalation")
    calls = len(fake.calls)
    fake.answers.append(answer(learning("observations")))
    assert outcome_of(kb, "observations", "escalation") == [("observations", "done"), ("escalation", "unchanged")]
    assert len(fake.calls) == calls + 1


def test_the_daily_budget_skips_what_is_left(open_with: Open, fake: FakeProvider) -> None:
    environ = variables(fake, MEMORY_KB_LLM_DAILY_SPEND="0", MEMORY_KB_LLM_MODEL="gpt-5-mini", OPENAI_API_KEY="sk-test")
    del environ["MEMORY_KB_LLM_BASE_URL"]
    kb = open_with(environ=environ)
    log_session(kb)
    report = kb.extract("s1", scopes=["observations", "escalation"])
    assert [(one.outcome, one.used.calls) for one in report.scopes] == [("failed", 0), ("failed", 0)]
    assert report.is_failure
    assert all("daily_spend" in one.message for one in report.scopes)
    assert not fake.calls


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "gemini", "anthropic"])
def test_every_provider_fills_the_form_in(open_with: Open, fake: FakeProvider, provider: str) -> None:
    keys = {"OPENAI_API_KEY": "sk-test", "GOOGLE_API_KEY": "test", "ANTHROPIC_API_KEY": "sk-ant-test"}
    kb = open_with(environ=variables(fake, MEMORY_KB_LLM_PROVIDER=provider) | keys)
    log_session(kb)
    fake.answers += [answer(learning("observations")), answer(learning("corrective"))]
    report = kb.extract("s1", scopes=["observations", "corrective"])
    assert [(one.outcome, one.count("created"), one.used.calls) for one in report.scopes] == [
        ("done", 1, 1),
        ("done", 1, 1),
    ]
    assert "root_cause" in json.dumps(fake.calls[-1].body)


def test_silence_is_an_answer(kb: KnowledgeBase, fake: FakeProvider) -> None:
    log_session(kb)
    fake.answers.append(answer())
    report = kb.extract("s1", scopes=["observations"])
    assert (report.scopes[0].outcome, report.summary) == ("quiet", "1/1 scopes succeeded")
    assert outcome_of(kb, "observations") == [("observations", "unchanged")]
    assert len(fake.calls) == 1


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, "no language model is configured"),
        ({"MEMORY_KB_LLM_PROVIDER": "offline"}, "no language model is configured"),
        ({"MEMORY_KB_LLM_PROVIDER": "gemini"}, "GOOGLE_API_KEY"),
    ],
)
def test_without_a_model_it_says_so(open_with: Open, environ: dict[str, str], words: str) -> None:
    kb = open_with(environ=environ | {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"})
    log_session(kb)
    report = kb.extract("s1", scopes=["prospective", "team"])
    assert [one.outcome for one in report.scopes] == ["skipped", "skipped"]
    assert words in report.scopes[0].message
    assert report.summary == "0/2 scopes succeeded"


def test_offline_no_verb_complains_that_no_model_answers(open_with: Open) -> None:
    kb = open_with(environ={"MEMORY_KB_LLM_PROVIDER": "offline", "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"})
    log_session(kb)
    kb.learn("Run the linter before pushing.", kind="rule")
    assert [kb.reflect("s1").notices, kb.promote().notices, kb.contradictions().notices] == [(), (), ()]


STATED = (
    Event(role="user", content="Always use UTC for timestamps in this project."),
    Event(type="tool_call", tool="Bash", args={"command": "npm install"}, call_id="c1"),
    Event(type="tool_result", tool="Bash", ok=False, error="npm error code EUNSUPPORTEDPROTOCOL", call_id="c1"),
    Event(type="tool_call", tool="Bash", args={"command": "pnpm install"}, call_id="c2"),
    Event(type="tool_result", tool="Bash", ok=True, content="Done", call_id="c2"),
)


def test_a_dry_run_asks_nothing_and_says_the_cost(open_with: Open, fake: FakeProvider) -> None:
    environ = variables(fake, MEMORY_KB_LLM_MODEL="gpt-5-mini", OPENAI_API_KEY="sk-test")
    del environ["MEMORY_KB_LLM_BASE_URL"]
    kb = open_with(environ=environ)
    log_session(kb)
    report = kb.extract("s1", scopes=["observations", "corrective", "team"], dry_run=True)
    assert [one.outcome for one in report.scopes] == ["planned", "planned", "empty"]
    assert report.summary == "2/3 scopes would be asked for"
    assert report.used.calls == 2
    assert 0.001 < report.used.usd < 0.01
    assert not extracted(kb)
    assert not (kb.vault.machine / "log" / "extractions.jsonl").exists()
    assert not (kb.vault.machine / "log" / "spend.jsonl").exists()


def test_the_meter_says_this_run_alone(kb: KnowledgeBase, fake: FakeProvider) -> None:
    log_session(kb)
    fake.answers += [answer(), answer()]
    first = kb.extract("s1", scopes=["observations"])
    second = kb.extract("s1", scopes=["escalation"])
    assert (first.used.calls, first.used.input_tokens, second.used.calls) == (1, 1000, 1)


def test_names_that_are_none(kb: KnowledgeBase) -> None:
    log_session(kb)
    with pytest.raises(UsageError, match="unknown extraction scope 'moods'"):
        kb.extract("s1", scopes=["moods"])
    with pytest.raises(UnreadableInput):
        kb.extract("nobody")


@pytest.mark.slow
def test_the_command(run: Run, fake: FakeProvider, folder: Path) -> None:
    env = variables(fake)
    say = ("--vault", folder, "session", "append", "s1", SAID, "--role", "user")
    assert run(*say).returncode == 0
    dry = run("--vault", folder, "extract", "s1", "--dry-run", env=env)
    assert dry.returncode == 0, dry.stderr
    assert "would take 2 calls" in dry.stderr
    assert not fake.calls
    fake.answers.append(answer(learning("observations", (1, SAID[:30]))))
    done = run("--vault", folder, "extract", "s1", "--scope", "observations", env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("observations  done")
    assert "memory/proxy-tasks/what-observations-shows" in done.stdout
    assert "1/1 scopes succeeded; 1 call, 1,000 tokens in and 100 out" in done.stderr
    again = json.loads(run("--vault", folder, "extract", "s1", "--scope", "observations", "--json", env=env).stdout)
    assert (again["summary"], again["scopes"][0]["outcome"], again["used"]["calls"]) == (
        "1/1 scopes succeeded",
        "unchanged",
        0,
    )
    assert run("--vault", folder, "extract", "s1", "--scope", "moods").returncode == 2
