"""Episodes built again: the same as before, renewed where the session went on, and never over a person's edit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Files
from episodic import CHECKOUT, DEPLOY, SESSIONS, TASKS, agent, bash, edit, events_of, put_session, user, write_session
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput

Open = Callable[..., KnowledgeBase]
MakeVault = Callable[[Files], Path]


@pytest.fixture
def kb(folder: Path, open_kb: Open) -> KnowledgeBase:
    return open_kb(folder)


def test_built_again_nothing_changes(kb: KnowledgeBase, folder: Path) -> None:
    for session in (CHECKOUT, DEPLOY, TASKS):
        put_session(kb, session)
        assert kb.reflect(session).run.run
    before = notes_of(folder)
    for session in (CHECKOUT, DEPLOY, TASKS):
        again = kb.reflect(session)
        assert (again.run.run, {one.action for one in again.episodes}) == (None, {"unchanged"})
    assert notes_of(folder) == before


def test_a_fresh_vault_gives_the_same_ids_and_files(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    paths = []
    for name in ("one", "two"):
        place = tmp_path / name / "memory"
        place.mkdir(parents=True)
        (place / "config.yaml").touch()
        kb = open_kb(place.parent)
        put_session(kb, CHECKOUT)
        kb.reflect(CHECKOUT)
        paths.append({path.partition("/")[2]: data for path, data in notes_of(place).items()})
    assert paths[0] == paths[1] != {}
    assert next(iter(paths[0])).endswith(
        "episodes/2026-11-20/the-checkout-integration-tests-are-red-on-my-machine-1782ddb2.md"
    )


def test_a_session_that_went_on_renews_its_episode(kb: KnowledgeBase) -> None:
    put_session(kb, CHECKOUT, lines=14)
    (early,) = kb.reflect(CHECKOUT).episodes
    file = kb.vault.folder / early.path
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("title: ", "title: Mine, "), encoding="utf-8")
    put_session(kb, CHECKOUT)
    (late,) = kb.reflect(CHECKOUT).episodes
    assert (early.action, late.action, late.path) == ("created", "updated", early.path)
    assert "Mine, " in file.read_text(encoding="utf-8")
    assert "4d1e9c7" in file.read_text(encoding="utf-8")
    assert kb.show(late.id).metadata["outcome"] == "success"
    assert kb.reflect(CHECKOUT).run.run is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("## Action log", "A remark of mine.\n\n## Action log"),
        ("outcome: failure", "outcome: mixed"),
        ("-> fail: Con", "-> fail: con"),
    ],
)
def test_an_edited_episode_is_left(kb: KnowledgeBase, old: str, new: str) -> None:
    put_session(kb, CHECKOUT, lines=14)
    (early,) = kb.reflect(CHECKOUT).episodes
    file = kb.vault.folder / early.path
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    edited = file.read_bytes()
    put_session(kb, CHECKOUT)
    late = kb.reflect(CHECKOUT)
    assert [one.action for one in late.episodes] == ["edited"]
    assert file.read_bytes() == edited


def test_what_a_person_deleted_or_retired_does_not_come_back(kb: KnowledgeBase) -> None:
    put_session(kb, CHECKOUT, lines=20)
    (one,) = kb.reflect(CHECKOUT).episodes
    kb.forget(one.id)
    put_session(kb, CHECKOUT)
    assert [again.action for again in kb.reflect(CHECKOUT).episodes] == ["forgotten"]
    (kb.vault.folder / one.path).unlink()
    assert [again.action for again in kb.reflect(CHECKOUT).episodes] == ["forgotten"]
    assert not (kb.vault.folder / one.path).exists()
    assert [again.action for again in kb.reflect(CHECKOUT, again=True).episodes] == ["created"]


def test_an_undone_reflection_leaves_nothing(kb: KnowledgeBase, folder: Path) -> None:
    put_session(kb, CHECKOUT)
    before = notes_of(folder)
    kb.reflect(CHECKOUT)
    kb.undo()
    assert notes_of(folder) == before


def test_a_dry_run_writes_nothing(kb: KnowledgeBase, folder: Path) -> None:
    put_session(kb, CHECKOUT)
    done = kb.reflect(CHECKOUT, dry_run=True)
    assert "## Action log" in done.run.diff
    assert notes_of(folder) == {}


def test_a_plain_folder_keeps_episodes_too(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault({"a.md": "A note."}))
    put_session(kb, DEPLOY)
    (one,) = kb.reflect(DEPLOY).episodes
    assert one.path == "episodes/2026-11-19/deploy-4-3-to-staging-eb5266a0.md"


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"type": "event", "event": "start"}, {"type": "event", "event": "end"}],
        [user("What does this do?"), agent("It sorts the list.")],
        [{"type": "tool_call", "tool": "mcp__memory-kb__memory_recall", "ok": True, "content": "Lesson: never."}],
    ],
)
def test_a_session_in_which_nothing_was_done_gives_none(
    kb: KnowledgeBase, folder: Path, events: list[dict[str, Any]]
) -> None:
    write_session(kb, "s1", *events)
    assert [one.action for one in kb.reflect("s1").episodes] == ["empty"]
    assert notes_of(folder) == {}


def test_odd_signs_are_no_trouble(kb: KnowledgeBase) -> None:
    write_session(
        kb,
        "s1",
        user("Fix \ud800 the \u2028 [[odd]] `--- name` now."),
        bash("ls \ud800 '[[ -f x ]]'", "---\nid: x\n---\n\x00"),
        edit("a\ud800.py"),
    )
    (one,) = kb.reflect("s1").episodes
    (entry,) = kb.list(kind=["episode"])
    assert (one.action, entry.id) == ("created", one.id)
    assert not kb.sync().problems
    assert kb.reflect("s1").run.run is None


def test_an_unknown_session_is_an_error(kb: KnowledgeBase) -> None:
    with pytest.raises(UnreadableInput, match="no session 'nothing'"):
        kb.reflect("nothing")


def test_the_sessions_hold_no_torn_line() -> None:
    for file in sorted(SESSIONS.glob("*.jsonl")):
        assert [event.seq for event in events_of(file.stem)] == list(range(1, len(events_of(file.stem)) + 1))
