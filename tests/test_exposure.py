"""Who was shown an entry, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import NOW, Files, Run
from support import days_ago, entry

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry
from memory_kb.store.logs import Mark, Outcome, OutcomeLog, Retrieval, RetrievalLog

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def folder(vault: Callable[[Files], Path]) -> Path:
    fields = {"kind": "rule", "tags": "[testing]", "confidence": 0.8, "last_applied": days_ago(0)}
    return vault(
        {
            "memory/config.yaml": "",
            "memory/rules/wait.md": entry(
                "Wait for the event, never sleep.", id="wait-rule", sources="[ep-1]", **fields
            ),
            "memory/learnings/from.md": entry(
                "Sleeping makes tests flaky.", id="from", kind="fact", sources="[wait-rule]"
            ),
            "memory/learnings/link.md": entry(
                "Events come late.", id="link", kind="fact", links="[{to: wait-rule, relation: elaborates}]"
            ),
            "memory/learnings/else.md": entry("Pasta needs ten minutes.", id="else", kind="fact"),
        }
    )


def test_an_entry_that_was_shown(folder: Path, open_kb: Open) -> None:
    first = open_kb(folder)
    first.sessions.start("s1", agent="coder")
    first.context("fix the sleep in the event test", labels=["testing"], agent="coder", session="s1", task_id=None)
    first.outcome("coder", "fix the sleep in the event test", "failure", used=["wait-rule"])
    first.sessions.end("s1", outcome="failure", only_close=True)
    second = open_kb(folder, NOW + timedelta(hours=1))
    second.sessions.start("s2", agent="tester")
    second.context("another event test", labels=["testing"], agent="tester", session="s2")
    second.search("wait for the event")
    found = second.exposure("wait-r")
    assert (found.id, found.kind, found.path, found.since) == (
        "wait-rule",
        "rule",
        "memory/rules/wait.md",
        "2026-11-21T12:00:00.000Z",
    )
    told = [(one.verb, one.session, one.agent, one.outcome, one.credit, one.session_outcome) for one in found.showings]
    assert told == [
        ("context", "s1", "coder", "failure", "failure", "failure"),
        ("context", "s2", "tester", None, None, None),
        ("search", None, None, None, None, None),
    ]
    total = found.totals
    assert (total.shown, total.injected, total.sessions, total.agents, total.tasks) == (3, 2, 2, 2, 2)
    assert (total.outcomes, total.sessions_ended) == ({"failure": 1}, {"failure": 1})
    assert (total.tokens_each, total.tokens_injected) == (8, 16)
    assert [(one.id, one.relation) for one in found.derived] == [("from", "source"), ("link", "elaborates")]
    assert found.sources == ("ep-1",)
    assert found.showings[0].task == "fix the sleep in the event test"


def test_credit_that_was_taken_back_is_none(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.context("event test", labels=["testing"], agent="coder")
    run = kb.outcome("coder", "event test", "success", used=["wait-rule"]).run.run
    assert kb.exposure("wait-rule").showings[0].credit == "success"
    kb.undo(run)
    showing = kb.exposure("wait-rule").showings[0]
    assert (showing.outcome, showing.credit) == ("success", None)


def test_one_that_nobody_saw_and_one_that_is_gone(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    assert kb.exposure("else").showings == ()
    assert kb.exposure("else").since is None
    kb.context("event test", labels=["testing"], agent="coder")
    (folder / "memory/rules/wait.md").unlink()
    found = kb.exposure("wait-rule")
    assert (found.path, found.totals.shown, found.totals.tokens_each) == (None, 1, 0)
    assert [one.id for one in found.derived] == ["from", "link"]
    with pytest.raises(UnknownEntry):
        kb.exposure("nobody")


def test_an_outcome_counts_for_what_was_shown_before_it(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    logs = kb.vault.machine / "log"
    for day in (1, 3, 5):
        RetrievalLog(logs).append(
            Retrieval(f"2026-01-0{day}", "context", ("x",), agent="a", task="t", session=f"s{day}", injected=True)
        )
    marks = {"x": Mark("success", 1)}
    for told in (
        Outcome("2026-01-02", "a", "t", "success", marks, run="r1", is_done=True),
        Outcome("2026-01-04", "a", "t", "failure", {}, session="s3", is_done=True),
        Outcome("2026-01-06", "a", "t", "mixed", {}, session="s1", is_done=True),
        Outcome("2026-01-06", "a", "t", "success", marks, is_done=False),
        Outcome("2026-01-06", "b", "t", "success", marks, is_done=True),
    ):
        OutcomeLog(logs).append(told)
    found = kb.exposure("x")
    assert [(one.outcome, one.credit) for one in found.showings] == [
        ("success", "success"),
        ("failure", None),
        (None, None),
    ]
    assert found.totals.tasks == 1


def test_broken_logs_are_passed_over(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.context("event test", labels=["testing"], agent="coder", session="s9")
    for name in ("retrievals", "outcomes"):
        with (kb.vault.machine / f"log/{name}.jsonl").open("ab") as log:
            log.write(b'{"half": \n[1]\n{"agent": 3, "task": "t", "entries": {}}\n{"ids": 7, "verb": "x"}\n\xff\n')
    (kb.vault.machine / "sessions").mkdir(exist_ok=True)
    (kb.vault.machine / "sessions/s9.jsonl").write_bytes(
        b"\xff\n" + b'{"type": "event", "event": "end", "args": {"outcome": ["x"]}}\n{"torn'
    )
    assert kb.exposure("wait-rule").totals.shown == 1


def test_the_end_of_a_long_session_is_found(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.context("event test", labels=["testing"], agent="coder", session="s9")
    (kb.vault.machine / "sessions").mkdir(exist_ok=True)
    line = json.dumps({"type": "message", "content": "x" * 1000}) + "\n"
    end = json.dumps({"type": "event", "event": "end", "args": {"outcome": "mixed"}}) + "\n"
    (kb.vault.machine / "sessions/s9.jsonl").write_text(line * 1000 + end + line)
    assert kb.exposure("wait-rule").totals.sessions_ended == {"mixed": 1}


def test_the_command(folder: Path, run: Run) -> None:
    at = {"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"}
    run("--vault", folder, "context", "event test", "--label", "testing", "--agent", "coder", "--session", "s1", env=at)
    run("--vault", folder, "outcome", "coder", "event test", "success", "--used", "wait-rule", env=at)
    done = run("--vault", folder, "exposure", "wait-rule")
    assert done.returncode == 0
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1:3] == ["shown 1 time, 1 of them injected", "to 1 session, 1 agent, 1 task"]
    assert "2026-11-21T12:00 context agent=coder task=event test session=s1 -> credited success" in lines
    assert any(line.startswith("source: from ") for line in lines)
    told = json.loads(run("--vault", folder, "exposure", "wait-rule", "--json").stdout)
    assert told["totals"]["outcomes"] == {"success": 1}
    assert told["showings"][0]["credit"] == "success"
    assert run("--vault", folder, "exposure", "nobody").returncode == 4
