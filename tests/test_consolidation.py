"""What recurs in episodes becomes a rule, their errors become pitfalls; twice is the same as once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import NOW, Files
from consolidating import REDIS, make, rules, told
from episodic import (
    SESSIONS,
    bash,
    episode_text,
    put_session,
    user,
    write_session,
)
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.episodes.consolidation import (
    cluster_episodes,
    pattern_confidence,
    pitfall_confidence,
    recent_episodes,
)
from memory_kb.episodes.diary_text import EpisodeRecord
from memory_kb.learning.memories import EntryVectors
from memory_kb.memory import Memory
from memory_kb.model import Location

Open = Callable[..., KnowledgeBase]
MakeVault = Callable[[Files], Path]
COMMIT = "Publish events after the commit, never inside the transaction."


@pytest.mark.parametrize(
    ("episodes", "successes", "confidence"),
    [(2, 2, 0.8), (2, 1, 0.75), (5, 5, 0.95), (3, 0, 0.8), (4, 2, 0.95), (9, 9, 0.95)],
)
def test_pattern_confidence(episodes: int, successes: int, confidence: float) -> None:
    assert pattern_confidence(episodes, successes) == confidence


@pytest.mark.parametrize(("episodes", "confidence"), [(1, 0.5), (2, 0.6), (4, 0.8), (12, 0.8)])
def test_pitfall_confidence(episodes: int, confidence: float) -> None:
    assert pitfall_confidence(episodes) == confidence


def test_twice_changes_nothing(folder: Path, open_kb: Open) -> None:
    """D-12: a second run neither ratchets a confidence nor writes anything."""
    kb = open_kb(folder)
    for file in SESSIONS.glob("*.jsonl"):
        put_session(kb, file.stem)
        kb.reflect(file.stem)
    for number in (1, 2):
        (folder / f"memory/episodes/e{number}.md").write_text(met(number, MISSING), encoding="utf-8")
    assert kb.episodes.consolidate_semantic().run.run
    before = notes_of(folder)
    for later in (0, 1, 40, 24 * 9):
        assert open_kb(folder, NOW + timedelta(hours=later)).episodes.consolidate_semantic().run.run is None
    assert notes_of(folder) == before


def test_a_dry_run_writes_nothing(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, told(1, REDIS), told(2, REDIS))
    before = notes_of(kb.vault.folder)
    assert REDIS in kb.episodes.consolidate_semantic(dry_run=True).run.diff
    assert notes_of(kb.vault.folder) == before


@pytest.mark.parametrize(
    ("outcomes", "kept"),
    [
        (("success",), False),
        (("success", "success"), True),
        (("success", "mixed"), False),
        (("failure", "success"), False),
        (("mixed", "mixed", "success"), True),
        (("failure", "failure", "failure"), False),
    ],
)
def test_a_pattern_needs_two_episodes_and_confidence(
    vault: MakeVault, open_kb: Open, outcomes: tuple[str, ...], kept: bool
) -> None:
    kb = make(vault, open_kb, *(told(number, REDIS, outcome=outcome) for number, outcome in enumerate(outcomes)))
    kb.episodes.consolidate_semantic()
    assert len(rules(kb)) == kept


def test_where_nothing_recurs_there_is_silence(vault: MakeVault, open_kb: Open) -> None:
    kb = make(
        vault,
        open_kb,
        told(1, "The queue must be drained by hand."),
        told(2, "Cards expire at midnight in Lisbon time."),
    )
    assert kb.episodes.consolidate_semantic().run.run is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wait 8 seconds for the broker to start up.", "Wait 30 seconds for the broker to start up."),
        ("Run the migrations before the deploy starts.", "Never run the migrations before the deploy starts."),
        ("Should we run the migrations before the deploy?", "Should we run the migrations before the deploy?"),
        ("Use UTC.", "Use UTC."),
    ],
)
def test_what_only_looks_alike_is_no_pattern(vault: MakeVault, open_kb: Open, one: str, other: str) -> None:
    kb = make(vault, open_kb, told(1, one), told(2, other))
    kb.episodes.consolidate_semantic()
    assert rules(kb) == []


def test_a_recurring_event_is_a_pattern(vault: MakeVault, open_kb: Open) -> None:
    text = "The staging certificate ran out and nobody was told."
    kb = make(
        vault,
        open_kb,
        *(episode_text(text, id=f"e{n}", goal=text, created_at=f"2026-11-{day}") for n, day in enumerate((2, 20))),
    )
    kb.episodes.consolidate_semantic()
    assert [rule["text"] for rule in rules(kb)] == [text]


def test_a_decision_is_worded_as_a_rule(vault: MakeVault, open_kb: Open) -> None:
    body = "## Decisions\n\n- use a lock file, because two workers start at once\n"
    kb = make(
        vault,
        open_kb,
        *(
            episode_text(body, id=f"e{n}", goal="Fix the worker", created_at="2026-11-20", files=["a.py"])
            for n in range(2)
        ),
    )
    kb.episodes.consolidate_semantic()
    (rule,) = rules(kb)
    assert rule["text"] == "Use a lock file, because two workers start at once.\n\n## Conditions\n\n- working on a.py"


def test_a_third_episode_extends_the_rule_once(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, told(1, REDIS), told(2, REDIS))
    kb.episodes.consolidate_semantic()
    (before,) = rules(kb)
    vault({"memory/episodes/third.md": told(3, "Integration tests need a Redis on port 6380.", days=0)})
    done = kb.episodes.consolidate_semantic()
    (after,) = rules(kb)
    assert done.extended == (before["id"],)
    assert (after["confidence"], after["usage_count"], after["text"], len(after["sources"])) == (0.85, 1, REDIS, 3)  # type: ignore[arg-type]
    assert kb.episodes.consolidate_semantic().run.run is None


def test_confidence_stops_at_its_cap_and_never_falls(vault: MakeVault, open_kb: Open) -> None:
    known = f"---\nid: r\nkind: rule\ncategory: debug\nconfidence: 0.97 # high\nsources: [x]\n---\n{REDIS}\n"
    kb = make(vault, open_kb, told(1, REDIS), told(2, REDIS), r=known)
    kb.episodes.consolidate_semantic()
    (rule,) = rules(kb)
    assert (rule["confidence"], rule["sources"]) == (0.99, ["x", "ep-2026-11-21-002", "ep-2026-11-21-001"])
    assert "0.99 # high" in (kb.vault.folder / "memory/rules/r.md").read_text(encoding="utf-8")
    assert kb.episodes.consolidate_semantic().run.run is None


def test_a_weekend_without_a_run_loses_nothing(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, told(1, REDIS, days=3), told(2, REDIS, days=2))
    kb.episodes.consolidate_semantic()
    assert len(rules(kb)) == 1


def test_what_is_older_than_the_window_is_left(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, told(1, REDIS, days=31), told(2, REDIS, days=32))
    kb.episodes.consolidate_semantic()
    assert rules(kb) == []


@pytest.mark.parametrize("how", ["retired", "rejected", "deleted"])
def test_what_a_person_took_away_does_not_come_back(vault: MakeVault, open_kb: Open, how: str) -> None:
    kb = make(vault, open_kb, told(1, REDIS), told(2, REDIS))
    kb.episodes.consolidate_semantic()
    (file,) = (kb.vault.folder / "memory/rules").glob("*.md")
    if how == "deleted":
        file.unlink()
    else:
        file.write_text(file.read_text(encoding="utf-8").replace("status: active", f"status: {how}"), encoding="utf-8")
    vault({"memory/episodes/third.md": told(3, REDIS)})
    kb.episodes.consolidate_semantic()
    assert rules(kb) == []


def test_a_rule_that_a_person_wrote_is_not_written_again(vault: MakeVault, open_kb: Open) -> None:
    own = f"---\nid: r\nkind: rule\n---\n{REDIS}\n"
    kb = make(vault, open_kb, told(1, REDIS, session_id="s1"), told(2, REDIS, session_id="s2"), r=own)
    assert kb.episodes.consolidate_semantic().run.run
    assert [rule["reinforcement_count"] for rule in rules(kb)] == [1]
    assert kb.episodes.consolidate_semantic().run.run is None


def test_an_old_episode_that_was_used_lately_is_not_recent(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, *(told(number, REDIS, days=99, last_reinforced="2026-11-20") for number in (1, 2)))
    assert kb.episodes.consolidate_semantic().run.run is None


def test_people_s_own_file_is_left_alone(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, told(1, REDIS), told(2, REDIS))
    note = kb.vault.folder / "memory/MEMORY.md"
    note.write_text(f"---\nid: r\nkind: rule\ncategory: debug\n---\n{REDIS}\n", encoding="utf-8")
    before = note.read_bytes()
    kb.episodes.consolidate_semantic()
    assert note.read_bytes() == before


def test_rules_go_to_the_narrowest_scope_that_holds_their_episodes(vault: MakeVault, open_kb: Open) -> None:
    files = {"memory/config.yaml": ""} | {
        f"memory/jobs/api/tasks/t{number}/episodes/e.md": told(number, REDIS) for number in (1, 2)
    }
    kb = open_kb(vault(files))
    (one,) = kb.episodes.consolidate_semantic().taken
    assert one.path.startswith("memory/jobs/api/rules/")


MISSING = "ModuleNotFoundError: No module named 'fakeredis'"


def met(number: int, error: str) -> str:
    """Return an episode in which a person reports an error."""
    return episode_text(f"## Errors\n\n- {error}\n", id=f"e{number}", created_at="2026-11-20")


@pytest.mark.parametrize(
    ("errors", "titles"),
    [([MISSING], []), ([f"{MISSING} => sync"], [MISSING]), ([MISSING, f"{MISSING} => none"], [MISSING])],
    ids=["once", "solved", "twice"],
)
def test_which_errors_are_pitfalls(vault: MakeVault, open_kb: Open, errors: list[str], titles: list[str]) -> None:
    kb = make(vault, open_kb, *(met(number, error) for number, error in enumerate(errors)))
    kb.episodes.consolidate_semantic()
    assert [one["title"] for one in rules(kb, "pitfall")] == titles


def test_what_a_log_proves_is_proposed_and_is_no_pitfall(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for session in ("s1", "s2"):
        failed = bash("pytest -q", MISSING, ok=False)
        write_session(kb, session, user("Run the tests."), failed, bash("pytest -q -p no:cov", "5 passed in 1s"))
        kb.sessions.end(session)
    kb.episodes.consolidate_semantic()
    assert [entry.status for entry in kb.list(kind=["pitfall"], status=["active", "proposed"])] == ["proposed"]


def test_a_pitfall_grows_with_every_new_episode(vault: MakeVault, open_kb: Open) -> None:
    kb = make(vault, open_kb, met(0, MISSING))
    seen = []
    for number in range(1, 6):
        vault({f"memory/episodes/e{number}.md": met(number, MISSING)})
        kb.episodes.consolidate_semantic()
        assert kb.episodes.consolidate_semantic().run.run is None
        (one,) = rules(kb, "pitfall")
        seen.append((one["confidence"], one["reinforcement_count"], len(one["sources"])))  # type: ignore[arg-type]
    assert seen == [(0.6, 0, 2), (0.7, 1, 3), (0.8, 2, 4), (0.8, 3, 5), (0.8, 4, 6)]


def test_a_person_s_error_counts_with_its_resolution(vault: MakeVault, open_kb: Open) -> None:
    solved = "- LockTimeout: the migration waited for ever => `SET lock_timeout` in every migration"
    body = f"## Errors\n\n{solved}\n- Odd: seen nowhere => none yet\n- no type at all\n"
    kb = make(vault, open_kb, episode_text(body, id="e", created_at="2026-11-20"))
    kb.episodes.consolidate_semantic()
    (one,) = rules(kb, "pitfall")
    assert str(one["text"]).endswith("## Prevention\n\n`SET lock_timeout` in every migration.")


def an_episode(name: str, goal: str) -> EpisodeRecord:
    memory = Memory(
        name,
        f"{name}.md",
        "",
        Location(),
        goal,
        "",
        kind="episode",
        metadata={"id": name, "kind": "episode", "goal": goal},
    )
    return recent_episodes([memory], NOW)[0]


def test_vectors_decide_where_there_are_any() -> None:
    import numpy as np

    episodes = [
        an_episode(name, goal)
        for name, goal in (("a", "Fix the login"), ("b", "Repair signing in"), ("c", "Fix the login"))
    ]
    rows = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    found = cluster_episodes(episodes, EntryVectors(rows, {("a.md", 1): 0, ("b.md", 1): 1, ("c.md", 1): 2}))
    assert [[one.memory.id for one in cluster] for cluster in found] == [["a", "b"]]
    assert [[one.memory.id for one in cluster] for cluster in cluster_episodes(episodes)] == [["a", "c"]]
