"""What is made of a session is as old as what was said and done in it, whenever its log is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from conftest import NOW, write_files

from memory_kb import KnowledgeBase
from memory_kb.episodes.episode import make_episode
from memory_kb.episodes.trace import trace_session
from memory_kb.memory import Memory
from memory_kb.store.logs import format_time
from memory_kb.store.session_events import Event

Open = Callable[..., KnowledgeBase]
OLD = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)
SAID = "Never deploy on Tuesdays, after the train leaves."
NOTE = "---\nid: note\nkind: preference\ncreated_at: '{day}'\n---\nAlways deploy on Tuesdays, after the train leaves.\n"


def events(*said: str, start: datetime = OLD, session: str = "old") -> list[Event]:
    """Return messages of a person and their answers, half a minute apart."""
    turns = [turn for text in said for turn in (("user", text), ("assistant", "Done."))]
    return [
        Event(ts=format_time(start + timedelta(seconds=30 * number)), session=session, role=role, content=text)
        for number, (role, text) in enumerate(turns)
    ]


def end(kb: KnowledgeBase, made: Iterable[Event], session: str = "old", *, outcome: str | None = None) -> None:
    """Log a session and end it."""
    kb.sessions.append(made)
    kb.sessions.end(session, outcome=outcome)


def by_kind(kb: KnowledgeBase) -> dict[str, Memory]:
    return {memory.kind: memory for memory in kb.memories.all()}


def test_what_was_said_long_ago_does_not_take_the_place_of_what_was_written_since(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/learnings/note.md": NOTE.format(day="2026-07-01")})
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", SAID), outcome="success")
    memories = {memory.id: memory for memory in kb.memories.all()}
    (old,) = [memory for memory in memories.values() if memory.text.strip() == SAID]
    assert (memories["note"].status, old.status) == ("active", "retired")
    assert (old.created_at, old.last_reinforced) == ("2025-06-01T10:01:00Z", "2025-06-01")


def test_of_a_session_that_is_newer_the_word_counts(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/learnings/note.md": NOTE.format(day="2025-01-01")})
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", SAID))
    assert {memory.status for memory in kb.memories.all() if memory.id == "note"} == {"retired"}


def test_less_than_ninety_days_apart_a_person_judges(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/learnings/note.md": NOTE.format(day="2025-07-01")})
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", SAID))
    assert {memory.status for memory in kb.memories.all() if memory.kind == "preference"} == {"active"}
    assert "note" in [item.id for item in kb.review.list()]


def test_a_log_that_was_begun_today_mentions_old_events(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"memory/learnings/note.md": NOTE.format(day="2026-07-01")})
    kb = open_kb(folder)
    kb.sessions.start("old")
    end(kb, events("Fix the deploy script.", SAID), outcome="success")
    assert "retired" in [memory.status for memory in kb.memories.all() if memory.text.strip() == SAID]
    episode = by_kind(kb)["episode"]
    assert (episode.created_at, episode.count("duration_seconds")) == ("2025-06-01T10:01:30Z", 90)
    assert episode.path.startswith("memory/episodes/2025-06-01/")


def test_what_is_still_to_come_is_of_now(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", SAID, start=NOW + timedelta(days=40)))
    assert {str(memory.created_at)[:10] for memory in kb.memories.all()} == {"2026-11-21"}
    assert {memory.last_reinforced for memory in kb.memories.all()} == {"2026-11-21"}


def test_an_old_word_counts_and_sets_no_clock_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    learned = kb.learn(SAID, kind="policy")
    end(kb, events("Fix the deploy script.", SAID))
    (memory,) = [memory for memory in kb.memories.all() if memory.id == learned.id]
    assert (memory.reinforcement_count, memory.last_reinforced, str(memory.created_at)[:10]) == (
        1,
        "2026-11-21",
        "2026-11-21",
    )


def test_an_old_word_reinforces_as_of_its_day(folder: Path, open_kb: Open) -> None:
    entry = f"---\nid: a\nkind: policy\nlast_reinforced: '2025-01-01'\ncreated_at: '2025-01-01'\n---\n{SAID}\n"
    write_files(folder, {"memory/learnings/a.md": entry})
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", SAID))
    (memory,) = [memory for memory in kb.memories.all() if memory.id == "a"]
    assert (memory.reinforcement_count, memory.last_reinforced) == (1, "2025-06-01")


def test_imported_notes_are_as_old_as_they_say_and_meet_what_is_there(
    folder: Path, open_kb: Open, tmp_path: Path
) -> None:
    write_files(folder, {"memory/learnings/note.md": NOTE.format(day="2026-07-01")})
    write_files(tmp_path, {"notes/a.md": f"---\ncreated: 2025-06-01\n---\n{SAID}\n"})
    kb = open_kb(folder)
    kb.import_(tmp_path / "notes", format="obsidian")
    assert "2025-06-01" in {str(memory.created_at)[:10] for memory in kb.memories.all()}
    assert [one.resolution for one in kb.contradictions(since=NOW.date()).found] == ["retire"]


@pytest.mark.parametrize("again", [1, 2])
def test_a_transcript_that_grew_lasts_as_long_as_its_work(again: int) -> None:
    made: list[Event] = []
    for round_number in range(again):
        start = OLD + timedelta(minutes=20 * round_number)
        made += events("Fix it." if not round_number else "Now the other one.", start=start)
        made.append(Event(ts=format_time(NOW + timedelta(minutes=round_number)), type="event", event="end"))
    (trace,) = trace_session("old", made)
    episode = make_episode(trace, NOW)
    assert episode.draft.fields["duration_seconds"] == 1200 * (again - 1) + 30
    assert episode.ended == format_time(OLD + timedelta(minutes=20 * (again - 1), seconds=30))[:19] + "Z"
    assert episode.id.startswith("ep-2025-06-01-")


def test_the_diary_lists_old_sessions_on_their_day(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    end(kb, events("Fix the deploy script.", "Now its test, please."), outcome="success")
    (entry,) = kb.diary.list()
    assert entry.timestamp == "2025-06-01T10:01:30Z"
    assert kb.diary.list(since=NOW.date()) == ()
