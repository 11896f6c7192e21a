"""The diary: what is written into it, how it is scored, found and exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Files, Run
from episodic import CHECKOUT, DEPLOY, REFACTOR, episode_text, put_session, reflect

from memory_kb import KnowledgeBase
from memory_kb.episodes.diary_text import quality_score
from memory_kb.errors import SecretRefused, UsageError

Open = Callable[..., KnowledgeBase]
MakeVault = Callable[[Files], Path]


@pytest.fixture
def kb(folder: Path, open_kb: Open) -> KnowledgeBase:
    return open_kb(folder)


def test_the_index_has_the_same_diary_as_the_file(kb: KnowledgeBase) -> None:
    for session in (CHECKOUT, DEPLOY, REFACTOR):
        file, sections, _ = reflect(kb, session)
        (entry,) = (one for one in kb.diary.list() if one.session_id == session)
        assert file.name in entry.path
        told = (entry.accomplishments, entry.decisions, entry.challenges, entry.key_learnings)
        assert told == tuple(
            sections.get(name, ()) for name in ("Accomplishments", "Decisions", "Challenges", "Key learnings")
        )
        assert len(entry.errors) == len(sections["Errors"])


@pytest.mark.parametrize(
    ("outcome", "lists", "unresolved", "score"),
    [
        ("success", 3, 0, 0.95),
        ("success", 0, 0, 0.8),
        ("mixed", 1, 1, 0.5),
        ("partial", 0, 0, 0.5),
        ("failure", 0, 0, 0.2),
        ("failure", 0, 4, 0.0),
        ("failure", 3, 9, 0.15),
        ("success", 3, 9, 0.75),
    ],
)
def test_quality_score(outcome: str, lists: int, unresolved: int, score: float) -> None:
    assert quality_score(outcome, [["x"]] * lists + [[]] * (3 - lists), unresolved) == score


def test_an_event_becomes_an_episode_once(kb: KnowledgeBase, folder: Path) -> None:
    told = kb.episode("Rolled 4.2 back: the migration held a lock.", outcome="failure", tags=["release"], job="api")
    again = kb.episode("Rolled 4.2 back:  the migration held a lock.", outcome="failure", job="api")
    assert (told.action, again.action, again.id) == ("created", "known", told.id)
    assert told.path.startswith("memory/jobs/api/episodes/2026-11-21/rolled-4-2-back")
    (entry,) = kb.diary.list()
    assert (entry.status, entry.quality_score, entry.tags, entry.lead) == (
        "failure",
        0.2,
        ("release",),
        "Rolled 4.2 back: the migration held a lock.",
    )


def test_an_event_is_checked(kb: KnowledgeBase) -> None:
    with pytest.raises(SecretRefused):
        kb.episode("Used AKIAABCDEFGHIJKLMNOP to upload.")
    with pytest.raises(UsageError, match="unknown outcome"):
        kb.episode("It happened.", outcome="good")
    with pytest.raises(UsageError, match="no text"):
        kb.episode("  ")


DIARY = {
    "memory/config.yaml": "",
    "memory/episodes/2026-10-01/a.md": episode_text(
        "## Decisions\n- Re-run twice.\n\n## Errors\n- Timeout: slow => none yet\n",
        id="ep-2026-10-01-001",
        tags=["CI"],
        agent="ana",
        outcome="partial",
    ),
    "memory/episodes/2026-10-09/b.md": episode_text(
        "## Key learnings\n- Use\n  UTC.\n",
        id="ep-2026-10-09-002",
        quality_score=0.9,
        created_at="2026-10-09T17:30:00Z",
        burst_id="burst_1",
        task_id="qua-9",
    ),
    "memory/episodes/2026-10-10/c.md": episode_text(
        id="mine", outcome="failure", created_at="2026-10-10", agent_template="coder"
    ),
    "memory/episodes/2026-10-11/d.md": episode_text(id="gone", status="retired"),
}


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({}, ["mine", "ep-2026-10-09-002", "ep-2026-10-01-001"]),
        ({"tag": ["ci", "other"]}, ["ep-2026-10-01-001"]),
        ({"status": ["mixed"]}, ["ep-2026-10-01-001"]),
        ({"status": "success", "min_quality": 0.9}, ["ep-2026-10-09-002"]),
        ({"min_quality": 0.95}, []),
        ({"agent": "coder"}, ["mine"]),
    ],
)
def test_the_diary_can_be_filtered(vault: MakeVault, open_kb: Open, wanted: dict[str, Any], ids: list[str]) -> None:
    assert [entry.id for entry in open_kb(vault(DIARY)).diary.list(**wanted)] == ids


def test_the_diary_is_exported_in_its_own_shape(vault: MakeVault, run: Run) -> None:
    done = run("--vault", vault(DIARY), "diary", "export", "--jsonl", "--since", "2026-10-02")
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "id": "diary_20261009_002",
            "burst_id": "burst_1",
            "bead_id": "qua-9",
            "agent_template": None,
            "accomplishments": [],
            "decisions": [],
            "challenges": [],
            "key_learnings": ["Use UTC."],
            "tags": [],
            "status": "success",
            "quality_score": 0.9,
            "timestamp": "2026-10-09T17:30:00Z",
        },
        {
            "id": "diary_20261010_1070794050",
            "burst_id": None,
            "bead_id": None,
            "agent_template": "coder",
            "accomplishments": [],
            "decisions": [],
            "challenges": [],
            "key_learnings": [],
            "tags": [],
            "status": "failure",
            "quality_score": 0.2,
            "timestamp": "2026-10-10T00:00:00Z",
        },
    ]


@pytest.mark.slow
def test_the_commands(folder: Path, run: Run, open_kb: Open) -> None:
    put_session(open_kb(folder), DEPLOY)
    assert "would create" in run("--vault", folder, "reflect", DEPLOY, "--dry-run").stderr
    first = run("--vault", folder, "reflect", DEPLOY)
    assert (
        first.stdout
        == "created memory/jobs/release-4-3/tasks/staging/episodes/2026-11-19/deploy-4-3-to-staging-eb5266a0.md  failure 0.05\n"
    )
    again = run("--vault", folder, "reflect", DEPLOY)
    assert (again.returncode, again.stdout) == (0, "")
    assert "is as it was" in again.stderr
    told = json.loads(run("--vault", folder, "reflect", DEPLOY, "--json").stdout)
    assert [one["action"] for one in told["episodes"]] == ["unchanged"]
    assert (
        "2026-11-19  failure  0.05  Deploy 4.3 to staging"
        in run("--vault", folder, "diary", "list", "--status", "failure").stdout
    )
    assert run("--vault", folder, "episode", "Key rotated.", "--outcome", "success").stdout.startswith(
        "created memory/episodes/"
    )
    assert run("--vault", folder, "reflect", "nothing").returncode == 4


def test_the_diary_takes_partial_for_mixed(kb: KnowledgeBase) -> None:
    kb.episode("Half of the import went through.", outcome="partial")
    assert [entry.status for entry in kb.diary.list(status="partial")] == ["mixed"]
    assert kb.diary.list(status=["success"]) == ()
