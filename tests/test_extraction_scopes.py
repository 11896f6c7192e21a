"""Ten scopes of learning from a session: where each keeps what it learned, and what rollups make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import extracting
import pytest
from extracting import (
    ALL,
    SAID,
    answer,
    entry_of,
    extracted,
    learning,
    log_session,
    outcome_of,
    prompts,
    record_of,
    step_of,
)

from memory_kb import KnowledgeBase
from memory_kb.learning.extraction import DropCount
from memory_kb.learning.extraction_scopes import EXTRACTION_SCOPES

if TYPE_CHECKING:
    from fake_provider import FakeProvider

open_with = extracting.open_with
kb = extracting.kb

Open = Callable[..., KnowledgeBase]
TASK = "memory/jobs/api/tasks/login"


def rollup_sources(scope: str) -> dict[str, str]:
    place = {
        "team": f"{TASK}/learnings",
        "session": f"{TASK}/learnings",
        "project": "memory/jobs/api/learnings",
        "global": "memory/rules",
    }
    return {path: text for number in (1, 2) for path, text in entry_of(scope, number, place[scope]).items()}


@pytest.mark.parametrize(
    ("scope", "kind", "type_", "domain", "importance", "folder"),
    [
        ("observations", "preference", "directive", "task", 0.95, "memory/proxy-tasks"),
        ("escalation", "preference", "directive", "task", 0.95, "memory/proxy-tasks"),
        ("intent-alignment", "fact", "declarative", "task", 0.5, f"{TASK}/learnings"),
        ("prospective", "fact", "declarative", "task", 0.5, f"{TASK}/learnings"),
        ("in-flight", "fact", "declarative", "task", 0.5, f"{TASK}/learnings"),
        ("corrective", "pitfall", "corrective", "task", 0.8, f"{TASK}/rules"),
    ],
)
def test_a_scope_of_the_session(
    kb: KnowledgeBase,
    fake: FakeProvider,
    scope: str,
    kind: str,
    type_: str,
    domain: str,
    importance: float,
    folder: str,
) -> None:
    """D-8: the type is the scope's and the phase is the current stage."""
    kb.stage.set("implementation")
    kb.premortem("Redis may be down.", job="api", task="login")
    kb.assume("planned", complexity="small", job="api", task="login")
    log_session(kb)
    fake.answers.append(answer(learning(scope)))
    report = kb.extract("s1", scopes=[scope])
    assert (report.scopes[0].outcome, report.summary) == ("done", "1/1 scopes succeeded")
    (memory,) = extracted(kb)
    assert (memory.kind, memory.type, memory.domain, memory.importance) == (kind, type_, domain, importance)
    assert (memory.phase, memory.status, memory.tags) == ("implementation", "active", ("redis",))
    assert memory.path.rpartition("/")[0] == folder
    assert memory.word("source") == "extracted"
    assert (memory.word("session_id"), memory.word("extraction_scope")) == ("s1", scope)
    assert memory.word("session_task") == SAID
    assert memory.words("source_events") == (str(fake_number(scope)),)
    lines = memory.text.splitlines()
    assert lines[0] == f"## [2026-11-21] What {scope} shows"
    assert [line.partition(":**")[0].strip("*") for line in lines[2:]] == [
        label.name for label in step_of(scope).labels
    ]


def fake_number(scope: str) -> int:
    return {"observations": 2, "escalation": 2, "corrective": 4}.get(scope, 5)


@pytest.mark.parametrize(
    ("scope", "domain", "folder"),
    [
        ("team", "team", TASK),
        ("session", "team", "memory/jobs/api"),
        ("project", "task", "memory"),
        ("global", "team", "~global"),
    ],
)
def test_a_rollup_proposes_norms_and_keeps_patterns(
    open_with: Open, fake: FakeProvider, scope: str, domain: str, folder: str
) -> None:
    kb = open_with(rollup_sources(scope))
    log_session(kb)
    both = ((1, "Redis must run before the suite"), (2, "Redis must run before the suite"))
    fake.answers += [answer(learning(scope, *both)), answer(learning(scope, *both, step=1, title="Start redis first"))]
    report = kb.extract("s1", scopes=[scope])
    assert [(one.outcome, one.used.calls, one.count("created"), one.dropped) for one in report.scopes] == [
        ("done", 2, 2, ())
    ]
    norm, pattern = sorted(extracted(kb), key=lambda memory: memory.status == "active")
    assert (norm.status, norm.type, norm.metadata["institutional"], norm.path.rpartition("/")[0]) == (
        "proposed",
        "directive",
        True,
        f"{folder}/review",
    )
    assert (pattern.type, pattern.kind, pattern.domain, pattern.importance) == ("procedural", "rule", domain, 0.5)
    assert pattern.path.rpartition("/")[0] == f"{folder}/rules"
    assert set(pattern.words("sources")) == {f"source-{scope}-1", f"source-{scope}-2"}
    assert "pytest tests/api" not in "".join(prompts(fake))
    found = [hit.id for hit in kb.search("redis", limit=50).hits]
    assert pattern.id in found
    assert norm.id not in found


def test_a_rollup_needs_two_sources(open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(entry_of("team", 1))
    log_session(kb)
    assert outcome_of(kb, "team") == [("team", "empty")]
    assert not fake.calls
    kb = open_with(entry_of("team", 2))
    one = (1, "Redis must run before the suite")
    fake.answers += [answer(learning("team", one)), answer(learning("team", one, one, step=1))]
    report = kb.extract("s1", scopes=["team"])
    assert report.scopes[0].outcome == "quiet"
    assert [drop.reason for drop in report.scopes[0].dropped] == ["rests on fewer than two sources"]


def test_rollups_leave_proxies_retired_and_their_own_out(open_with: Open, fake: FakeProvider) -> None:
    files = entry_of("team", 1) | entry_of("team", 2) | entry_of("x", 3, f"{TASK}/proxy-tasks") | entry_of("y", 4)
    files = {
        path: text.replace("status: active", "status: retired") if "source-y" in path else text
        for path, text in files.items()
    }
    kb = open_with(files)
    log_session(kb)
    fake.answers += [answer(), answer()]
    kb.extract("s1", scopes=["team"])
    assert "session 1" in record_of(fake)
    assert "session 3" not in record_of(fake)
    assert "session 4" not in record_of(fake)


def test_all_ten_in_one_go(open_with: Open, fake: FakeProvider) -> None:
    kb = open_with()
    log_session(kb)
    report = kb.extract("s1")
    assert sorted(one.scope for one in report.scopes) == sorted(ALL)
    assert report.used.calls == len(fake.calls)
    assert report.summary == "10/10 scopes succeeded"
    assert not extracted(kb)  # the fake's made-up answers rest on nothing


def test_a_rollup_reads_what_the_scopes_before_it_wrote(kb: KnowledgeBase, fake: FakeProvider) -> None:
    log_session(kb)
    both = ((1, "redis refused the connection"), (2, "redis"))
    fake.answers += [
        answer(learning("intent-alignment")),
        answer(learning("corrective")),
        answer(),
        answer(
            learning(
                "team", (1, "suite fails when redis refused"), (2, "of redis, docker compose and the suite"), step=1
            )
        ),
    ]
    assert dict(outcome_of(kb, "intent-alignment", "corrective", "team"))["team"] == "done", both
    assert [memory.word("extraction_scope") for memory in extracted(kb)].count("team") == 1


def test_a_norm_that_was_turned_down_is_not_proposed_again(open_with: Open, fake: FakeProvider) -> None:
    kb = open_with(rollup_sources("session") | {"memory/jobs/api/institutional.md": "# Norms\n\nBe kind to wombats.\n"})
    log_session(kb)
    both = ((1, "Redis must run before the suite"), (2, "Redis must run before the suite"))
    fake.answers += [answer(learning("session", *both)), answer()]
    kb.extract("s1", scopes=["session"])
    (norm,) = extracted(kb)
    file = kb.vault.resolve(norm.path)
    file.write_text(file.read_text().replace("status: proposed", "status: rejected"))
    reworded = learning("session", *both, title="So session shows what")
    fake.answers += [
        answer(
            reworded,
            learning("session", *both, title="Wombats", pattern="Redis must run before any suite that uses wombats."),
        ),
        answer(),
    ]
    report = kb.extract("s1", scopes=["session"], again=True)
    assert "- What session shows" in prompts(fake)[-2]
    assert "wombats" in prompts(fake)[-2]
    assert report.scopes[0].dropped == (DropCount("known already", 1),)
    assert all(kept.action != "created" for kept in report.scopes[0].kept)
    assert [one.status for one in extracted(kb)] == ["rejected"]


def test_no_label_takes_the_place_of_another_field() -> None:
    for scope in EXTRACTION_SCOPES:
        for step in scope.passes:
            keys = [label.key for label in step.labels]
            assert len({*keys, "title", "tags", "quotes"}) == len(keys) + 3, scope.name
