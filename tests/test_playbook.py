"""The playbook: which rules are in force, which of them fit a task, and how they are put to an agent."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Files, Run, write_files
from ruling import rule, rules
from support import fields_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.learning.playbook import (
    format_for_prompt,
    in_force,
    make_rule,
    measure_relevance,
    rule_text,
    select_rules,
)
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.text import count_tokens

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
TODAY = NOW.date()
CONFIG = {"memory/config.yaml": ""}


def memory(
    name: str = "r", text: str = "Buffer chunks.", kind: str = "rule", scope: str = "project", **fields: object
) -> Memory:
    tags = fields.pop("tags", ("sse",))
    status = str(fields.pop("status", "active"))
    return Memory(
        name,
        f"{name}.md",
        "",
        Location(scope),
        "Title",
        text,
        kind=kind,
        status=status,
        tags=tags,  # type: ignore[arg-type]
        metadata={"id": name, **fields},
    )


def chosen(memories: list[Memory], *labels: str, **how: Any) -> list[str]:
    selection = select_rules(memories, labels or ("sse",), None, TODAY, **how)
    return [one.id for one in (*selection.rules, *selection.anti_patterns)]


@pytest.mark.parametrize(
    ("tags", "labels", "relevance"),
    [
        (["a", "b"], ["A"], 0.5),
        (["a", "b"], ["b", "a", "c"], 1.0),
        (["API", "api"], ["api"], 1.0),
        (["a"], [], 0.0),
        ([], ["a"], 0.0),
        (["straße"], ["STRASSE"], 1.0),
    ],
)
def test_relevance_is_the_share_of_the_rules_own_tags(tags: list[str], labels: list[str], relevance: float) -> None:
    assert measure_relevance(tags, labels) == relevance


@pytest.mark.parametrize(
    ("kind", "confidence", "tags", "score"),
    [
        ("rule", 0.75, ("sse", "b"), 0.375),
        ("pitfall", 0.75, ("sse", "b"), 0.5625),
        ("rule", 0.2, ("sse", "b", "c", "d", "e"), None),
        ("rule", 0.25, ("sse", "b", "c", "d", "e"), 0.05),
        ("rule", 0.9, (), None),
    ],
)
def test_scores(kind: str, confidence: float, tags: tuple[str, ...], score: float | None) -> None:
    selection = select_rules([memory(kind=kind, confidence=confidence, tags=tags)], ["SSE"], None, TODAY)
    assert selection.total_score == (score or 0.0)
    assert [one.score for one in (*selection.rules, *selection.anti_patterns)] == ([score] if score else [])


def test_the_type_of_a_task_counts_as_a_label() -> None:
    assert [one.relevance for one in select_rules([memory(tags=("sse", "bug"))], ["sse"], "Bug", TODAY).rules] == [1.0]


def test_confidence_fades_before_it_is_scored() -> None:
    selection = select_rules(
        [memory(confidence=0.8, last_applied=(TODAY - timedelta(90)).isoformat())], ["sse"], None, TODAY
    )
    assert (selection.rules[0].confidence, selection.rules[0].stored_confidence, selection.total_score) == (
        0.4,
        0.8,
        0.4,
    )


@pytest.mark.parametrize(
    "other",
    [{"status": "retired"}, {"status": "proposed"}, {"status": "rejected"}, {"status": "archived"}, {"kind": "fact"}],
)
def test_only_live_rules_and_pitfalls_are_chosen(other: dict[str, Any]) -> None:
    assert chosen([memory("a"), memory("b", **other)]) == ["a"]
    assert chosen([memory("a"), memory("b", status="compacted")]) == ["a", "b"]


def test_ten_rules_of_both_lists_at_most() -> None:
    many = [
        memory(f"r{number}", confidence=0.5 + number / 100, kind="pitfall" if number % 2 else "rule")
        for number in range(20)
    ]
    found = chosen(many, max_tokens=10_000)
    assert sorted(found) == sorted(f"r{number}" for number in (19, 17, 15, 13, 11, 9, 7, 5, 3, 1))


def test_a_rule_that_does_not_fit_is_passed_over() -> None:
    many = [
        memory("long", "word " * 500, confidence=0.9),
        memory("half", "word " * 200, confidence=0.8),
        memory("short", confidence=0.7),
    ]
    assert chosen(many) == ["half", "short"]
    selection = select_rules(many, ["sse"], None, TODAY)
    assert selection.token_count == count_tokens(selection.text) <= 500
    assert select_rules(many, ["sse"], None, TODAY, max_tokens=0).text == ""


def test_the_prompt_is_word_for_word() -> None:
    listed = [
        make_rule(
            memory("a", "Always buffer SSE chunks until \\n\\n delimiter", confidence=0.75, maturity="established"),
            TODAY,
        ),
        make_rule(memory("b", "Use handle_continue", confidence=0.92, maturity="proven"), TODAY),
        make_rule(memory("c", "Using gen_statem", kind="pitfall", confidence=0.67), TODAY),
        make_rule(memory("d", "AVOID: sleeping", kind="pitfall", confidence=0.5), TODAY),
        make_rule(memory("e", "avoid: blocking", kind="pitfall", confidence=0.5), TODAY),
    ]
    assert format_for_prompt(listed) == (
        "## Relevant Guidelines\n\nThe following rules are based on past experience with similar tasks:\n\n"
        "1. [ESTABLISHED] Always buffer SSE chunks until \\n\\n delimiter (confidence: 0.75)\n"
        "2. [PROVEN] Use handle_continue (confidence: 0.92)\n\n"
        "## Patterns to Avoid\n\nThese patterns have caused problems in similar past work:\n\n"
        "1. Pitfall: Using gen_statem (confidence: 0.67)\n2. AVOID: sleeping (confidence: 0.50)\n3. AVOID: blocking (confidence: 0.50)"
    )
    assert format_for_prompt(listed[:1]).endswith("(confidence: 0.75)")
    assert "Guidelines" not in format_for_prompt(listed[2:])
    assert format_for_prompt([]) == ""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Buffer\nall  chunks.\n\nMore.", "Buffer all chunks."),
        ("# Buffering\n\nBuffer.\n\n## Conditions\nSSE.", "Buffer."),
        ("## Conditions\n\nSSE.", "Title"),
        ("# Only a heading", "Title"),
        ("", "Title"),
        ("Buffer.\x1b[31m\u2028## Patterns to Avoid\r\n1. x", "Buffer.[31m ## Patterns to Avoid 1. x"),
    ],
)
def test_a_rule_stays_on_its_line(body: str, text: str) -> None:
    assert rule_text(memory(text=body)) == text
    assert len(format_for_prompt([make_rule(memory(text=body), TODAY)]).splitlines()) == 5


def test_the_narrowest_scope_wins() -> None:
    wide, narrow = memory("x", "Global.", scope="global"), memory("x", "Ours.")
    assert [one.text for one in in_force([wide, narrow])] == ["Ours."]
    assert chosen([wide, memory("x", status="retired")]) == []
    assert "Global." in [one.text for one in in_force([wide, memory("x", "Maybe.", status="proposed")])]
    assert len(in_force([narrow, memory("x", "Twin.")])) == 2


def test_select_reads_project_and_home(vault: MakeVault, home: Path, open_kb: OpenKB, run: Run) -> None:
    folder = vault(
        rules(a=rule(id="both", tags="[sse, API]"), b=rule("Never block.", id="p", kind="pitfall", tags="sse"))
    )
    write_files(
        home, {"rules/a.md": rule("Global.", id="both"), "rules/c.md": rule("Use uv.", id="g", tags="[python]")}
    )
    selection = open_kb(folder).rules.select(["sse"], type="api")
    assert [one.text for one in (*selection.rules, *selection.anti_patterns)] == ["Buffer chunks.", "Never block."]
    assert selection.total_score == round(0.75 + 0.75 * 1.5, 6)
    assert [one.scope for one in open_kb(folder).rules.list()] == ["project", "global", "project"]
    done = run(
        "--vault", folder, "rules", "select", "--label", "sse", "--type", "api", env={"MEMORY_KB_NOW": NOW.isoformat()}
    )
    assert (done.returncode, done.stdout.rstrip("\n"), done.stderr) == (0, selection.text, "")
    shown = json.loads(run("--vault", folder, "rules", "select", "--label", "sse", "--json").stdout)
    assert list(shown) == ["rules", "anti_patterns", "total_score", "token_count", "text"]


def test_rules_of_other_jobs_are_hidden(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/jobs/a/rules/r.md": rule(id="a"),
            "memory/jobs/b/rules/r.md": rule(id="b"),
            "memory/proxy-tasks/p.md": rule(id="p"),
        }
    )
    kb = open_kb(folder)
    assert [one.id for one in kb.rules.select(["sse"], job="b").rules] == ["b"]
    assert [one.id for one in kb.rules.select("sse").rules] == ["a", "b"]
    with pytest.raises(UsageError):
        kb.rules.select(["sse"], task="t")


def test_the_commands(vault: MakeVault, run: Run) -> None:
    folder = vault(rules(a=rule(confidence=0.9, success_count=3, last_applied="2026-11-21")))
    now = {"MEMORY_KB_NOW": NOW.isoformat()}
    assert "0.90  r\n      Buffer chunks.\n" in run("--vault", folder, "rules", "list", env=now).stdout
    assert json.loads(run("--vault", folder, "sweep", "--json", env=now).stdout)["promoted"] == 1
    assert run("--vault", folder, "sweep", env=now).stdout == "0 promoted, 0 demoted, 0 flagged\n"
    done = run("--vault", folder, "rules", "feedback", "r", "failure", "--dry-run", env=now)
    assert "-confidence: 0.9\n+confidence: 0.7\n" in done.stdout
    assert run("--vault", folder, "rules", "feedback", "r", "failure", env=now).returncode == 0
    assert (
        "[ESTABLISHED] Buffer chunks. (confidence: 0.70)" in run("--vault", folder, "rules", "export", env=now).stdout
    )
    assert run("--vault", folder, "rules", "select", "--label", "none").stdout == ""
    assert fields_of(folder, "memory/rules/a.md")["last_applied"] == TODAY
