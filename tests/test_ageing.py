"""Episodes age: in full, in summary, in the archive; nothing is deleted, nobody's words are lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import NOW, Files
from episodic import CHECKOUT, DEPLOY, WEBHOOK, episode_text, events_of, put_session
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.episodes.diary_text import cut_sections, items_of
from memory_kb.episodes.episode import choose_ageing
from memory_kb.episodes.trace import trace_session

Open = Callable[..., KnowledgeBase]
MakeVault = Callable[[Files], Path]
#: The day on which the session of the checkout tests ended.
ENDED = NOW - timedelta(days=1)


def aged(open_kb: Open, folder: Path, days: int) -> KnowledgeBase:
    """Open a vault so many days after the session ended."""
    return open_kb(folder, ENDED + timedelta(days=days))


@pytest.fixture
def built(folder: Path, open_kb: Open) -> Path:
    """A vault with the episode of the checkout session; its file is the only note."""
    kb = open_kb(folder)
    put_session(kb, CHECKOUT)
    return folder / kb.reflect(CHECKOUT).episodes[0].path


def sections_of(file: Path) -> dict[str, tuple[str, ...]]:
    return {
        name: items_of(text)
        for name, text in cut_sections(file.read_text(encoding="utf-8").split("\n---\n", 1)[1]).items()
        if name
    }


@pytest.mark.parametrize(
    ("days", "is_referenced", "ageing"),
    [
        (0, False, "full"),
        (7, False, "full"),
        (8, False, "summary"),
        (30, False, "summary"),
        (30, True, "summary"),
        (31, False, "archive"),
        (31, True, "keep"),
        (400, True, "keep"),
    ],
)
def test_how_an_episode_ages(days: int, is_referenced: bool, ageing: str) -> None:
    assert choose_ageing(days, is_referenced=is_referenced) == ageing


@pytest.mark.parametrize(("days", "stage"), [(7, "full"), (8, "summary"), (30, "summary"), (31, "archive")])
def test_worked_days(built: Path, folder: Path, open_kb: Open, days: int, stage: str) -> None:
    kb = aged(open_kb, folder, days)
    kb.episodes.age_episodes()
    (entry,) = kb.list(kind=["episode"], status=["active", "archived"])
    now_is = "archive" if entry.status == "archived" else kb.show(entry.id).metadata["detail"]
    assert now_is == stage
    before = notes_of(folder)
    assert kb.episodes.age_episodes().run is None
    assert notes_of(folder) == before


def test_a_summary_keeps_all_but_the_action_log(built: Path, folder: Path, open_kb: Open) -> None:
    before = sections_of(built)
    assert trace_session(CHECKOUT, events_of(CHECKOUT))[0].actions == 18
    aged(open_kb, folder, 8).episodes.age_episodes()
    after = sections_of(built)
    assert before.pop("Action log")
    assert after.pop("Summary") == (
        "Task 'The checkout integration tests are red on my…' succeeded after 12 actions with 3 errors encountered in 223s.",
    )
    assert after == before


def test_a_summary_that_was_there_stays_in_its_place(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    put_session(kb, WEBHOOK)
    file = folder / kb.reflect(WEBHOOK).episodes[0].path
    aged(open_kb, folder, 9).episodes.age_episodes()
    assert [item[:28] for item in sections_of(file)["Summary"]] == [
        "Task 'Fix the red checkout w",
        "The refund webhook handles e",
    ]
    assert list(sections_of(file))[-1] == "Summary"


def test_an_edited_action_log_is_kept(built: Path, folder: Path, open_kb: Open) -> None:
    built.write_text(built.read_text(encoding="utf-8").replace("t=218 user:", "t=218 Ana:"), encoding="utf-8")
    before = built.read_bytes()
    assert aged(open_kb, folder, 20).episodes.age_episodes().run is None
    assert built.read_bytes() == before


def test_other_edits_do_not_keep_the_action_log_and_stay(built: Path, folder: Path, open_kb: Open) -> None:
    text = (
        built.read_text(encoding="utf-8")
        .replace("## Results\n", "## Results\n\n- Mine.  <!-- kept -->\n")
        .replace("outcome: success", "outcome: failure # really")
    )
    built.write_text(text + "\n## Notes of mine\n\n  * odd   spacing\n", encoding="utf-8")
    aged(open_kb, folder, 20).episodes.age_episodes()
    after = built.read_text(encoding="utf-8")
    assert "## Action log" not in after
    for kept in (
        "- Mine.  <!-- kept -->",
        "outcome: failure # really",
        "## Notes of mine\n\n  * odd   spacing",
        "failed after",
    ):
        assert kept in after


def test_what_a_person_wrote_is_never_summarised(vault: MakeVault, open_kb: Open) -> None:
    body = "## Action log\n\n- t=0 looked\n"
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/episodes/2026-11-05/a.md": episode_text(body, id="mine", detail="full", created_at="2026-11-05"),
        }
    )
    assert open_kb(folder).episodes.age_episodes().run is None


def test_the_archive_holds_the_same_bytes(built: Path, folder: Path, open_kb: Open) -> None:
    """D-13: what is cleaned up lands in the archive folder."""
    before = built.read_bytes()
    kb = aged(open_kb, folder, 31)
    kb.episodes.age_episodes()
    archived = folder / "memory" / "archive" / "2026-12" / built.name
    assert not built.exists()
    assert archived.read_bytes() == before.replace(b"status: active", b"status: archived")
    assert {hit.path for hit in kb.search("publish events after the commit").hits} == {
        f"memory/archive/2026-12/{built.name}"
    }
    kb.undo()
    assert built.read_bytes() == before


def reference(how: str, entry_id: str, name: str) -> str:
    """Return an entry that refers to an episode in one of the ways there are."""
    return {
        "source": f"---\nid: r\nkind: rule\nsources: [{entry_id}]\n---\nDo it.\n",
        "session": f"---\nid: r\nkind: rule\nsources: [{CHECKOUT}]\n---\nDo it.\n",
        "link": f"---\nid: r\nkind: rule\nlinks: [{{to: {entry_id}, relation: derived_from}}]\n---\nDo it.\n",
        "wikilink": f"---\nid: r\nkind: rule\n---\nDo it, see [[{entry_id}|there]].\n",
        "file": f"---\nid: r\nkind: rule\nstatus: retired\n---\nDo it, see [[{name}]].\n",
        "mention": f"---\nid: r\nkind: rule\n---\nDo it, as in {entry_id}.\n",
    }[how]


@pytest.mark.parametrize(
    ("how", "stays"),
    [("source", True), ("session", True), ("link", True), ("wikilink", True), ("file", True), ("mention", False)],
)
def test_what_is_referred_to_stays(built: Path, folder: Path, open_kb: Open, how: str, stays: bool) -> None:
    (folder / "memory/rules").mkdir()
    (folder / "memory/rules/r.md").write_text(reference(how, "ep-2026-11-20-1782ddb2", built.stem), encoding="utf-8")
    aged(open_kb, folder, 60).episodes.age_episodes()
    assert built.exists() is stays


def test_an_episode_does_not_keep_itself(built: Path, folder: Path, open_kb: Open) -> None:
    text = built.read_text(encoding="utf-8")
    built.write_text(text.replace("\ndetail:", "\nsources: [ep-2026-11-20-1782ddb2]\ndetail:"), encoding="utf-8")
    aged(open_kb, folder, 60).episodes.age_episodes()
    assert not built.exists()


def test_pinned_undated_and_reinforced_episodes_stay(vault: MakeVault, open_kb: Open) -> None:
    files = {
        "memory/config.yaml": "",
        "memory/episodes/pinned.md": episode_text(id="a", created_at="2026-01-01", pinned=True),
        "memory/episodes/undated.md": episode_text(id="b"),
        "memory/episodes/evergreen.md": episode_text(id="f", created_at="2026-01-01", evergreen=True),
        "memory/episodes/used.md": episode_text(id="c", created_at="2026-01-01", last_reinforced="2026-11-10"),
        "memory/MEMORY.md": episode_text(id="d", created_at="2026-01-01"),
        "memory/episodes/retired.md": episode_text(id="e", created_at="2026-01-01", status="retired"),
    }
    assert open_kb(vault(files)).episodes.age_episodes().run is None


def test_each_goes_to_the_archive_of_its_scope(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    put_session(kb, DEPLOY)
    kb.reflect(DEPLOY)
    kb = aged(open_kb, folder, 40)
    (move,) = (change for change in kb.episodes.age_episodes(dry_run=True).changes if change.action == "move")
    assert move.to == "memory/jobs/release-4-3/tasks/staging/archive/2026-12/deploy-4-3-to-staging-eb5266a0.md"
    assert notes_of(folder).keys() == {
        "vault/memory/jobs/release-4-3/tasks/staging/episodes/2026-11-19/deploy-4-3-to-staging-eb5266a0.md"
    }


def test_several_of_one_file_go_apart(vault: MakeVault, open_kb: Open) -> None:
    two = (
        episode_text("One.", id="old", created_at="2026-01-01")
        + "\n"
        + episode_text("Two.", id="new", created_at="2026-11-20")
    )
    folder = vault({"memory/config.yaml": "", "memory/episodes/log.md": two})
    open_kb(folder).episodes.age_episodes()
    assert {path: b"One." in data for path, data in notes_of(folder / "memory").items()} == {
        "memory/archive/2026-11/log-old.md": True,
        "memory/episodes/log.md": False,
    }


def test_an_aged_episode_is_not_built_again(built: Path, folder: Path, open_kb: Open) -> None:
    kb = aged(open_kb, folder, 10)
    kb.episodes.age_episodes()
    summary = built.read_bytes()
    with (kb.vault.machine / "sessions" / f"{CHECKOUT}.jsonl").open("a", encoding="utf-8") as file:
        file.write(
            '{"ts": "2026-11-29T12:00:00.000Z", "seq": 51, "type": "message", "role": "user", "content": "One more thing."}\n'
        )
    assert [one.action for one in kb.reflect(CHECKOUT).episodes] == ["aged"]
    assert built.read_bytes() == summary


def test_the_folder_of_a_day_goes_with_its_last_episode_and_comes_back_with_it(
    built: Path, folder: Path, open_kb: Open
) -> None:
    text, people = built.read_bytes(), folder / "memory/learnings/kept empty"
    people.mkdir(parents=True)
    kb = aged(open_kb, folder, 31)
    run = kb.episodes.age_episodes().run
    assert run and not built.exists()
    assert not built.parent.exists()
    assert people.is_dir()
    kb.undo(run)
    assert built.read_bytes() == text


def test_a_folder_in_which_somebody_keeps_a_file_stays(built: Path, folder: Path, open_kb: Open) -> None:
    photo = built.parent / "whiteboard.jpg"
    photo.write_bytes(b"\xff\xd8")
    aged(open_kb, folder, 31).episodes.age_episodes()
    assert photo.read_bytes() == b"\xff\xd8"
