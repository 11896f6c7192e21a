"""The way in for learnings that nobody typed: new, known, said again, forgotten, refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from conftest import NOW, Files

from memory_kb import KnowledgeBase
from memory_kb.learning.ingest import Learning, plan_sighting
from memory_kb.learning.memories import Memories
from memory_kb.learning.render_entry import Draft
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, Link, Location
from memory_kb.store.changes import plan_fields, with_links

MakeVault = Callable[[Files], Path]
PROJECT = Location()
RULE = "Deploys happen on Mondays only, after the backup."


@pytest.fixture
def keeping(folder: Path, home: Path) -> Iterator[Memories]:
    with KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)}, clock=lambda: NOW) as kb:
        yield kb.memories


def learning(
    text: str = RULE, key: str = "s1/rule/1", origin: str | None = "s1", place: Location = PROJECT, **draft: object
) -> Learning:
    return Learning(Draft(text, kind="rule", **draft), place, key, "It was said.", origin)  # type: ignore[arg-type]


def take(keeping: Memories, *learnings: Learning) -> list[str]:
    return [one.action for one in keeping.ingest("extract", learnings)[0].results]


def notes(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.md"))


def test_a_learning_is_kept_once(keeping: Memories, folder: Path) -> None:
    assert take(keeping, learning(), learning(key="s1/rule/2")) == ["created", "known"]
    (note,) = notes(folder)
    before = note.read_bytes()
    plan, run = keeping.ingest("extract", [learning(), learning(key="s1/rule/2")])
    assert [one.action for one in plan.results] == ["known", "known"]
    assert run.run is None
    assert notes(folder) == [note]
    assert note.read_bytes() == before


def test_another_session_reinforces_it_once(keeping: Memories, folder: Path) -> None:
    take(keeping, learning(fields={"session_id": "s1"}))
    again = learning(key="s2/rule/1", origin="s2")
    assert take(keeping, again) == ["reinforced"]
    assert take(keeping, again) == ["known"]
    assert take(keeping, learning(key="s1/other", origin="s1")) == ["known"]
    (memory,) = keeping.all()
    assert (memory.reinforcement_count, memory.words("sources")) == (1, ("s2",))


@pytest.mark.parametrize("status", ["retired", "rejected"])
def test_what_was_rejected_stays_away(keeping: Memories, folder: Path, status: str) -> None:
    take(keeping, learning())
    (note,) = notes(folder)
    note.write_text(note.read_text().replace("status: active", f"status: {status}"))
    assert take(keeping, learning(key="s2/rule/1", origin="s2")) == ["forgotten"]
    assert take(keeping, learning()) == ["known"]


def test_what_a_person_deleted_does_not_come_back(keeping: Memories, folder: Path) -> None:
    take(keeping, learning())
    notes(folder)[0].unlink()
    assert take(keeping, learning(), learning(key="s1/rule/2")) == ["forgotten", "forgotten"]
    assert notes(folder) == []


def test_a_credential_is_refused_and_the_rest_goes_on(keeping: Memories) -> None:
    assert take(keeping, learning("The key is AKIAABCDEFGHIJKLMNOP today."), learning()) == ["refused", "created"]


@pytest.mark.parametrize(
    ("place", "fields", "folder_name"),
    [
        (Location(), (), "memory/rules"),
        (Location("job", "api"), (), "memory/jobs/api/rules"),
        (Location("task", "api", "t1"), (("status", "proposed"),), "memory/jobs/api/tasks/t1/review"),
        (Location(learning_type="proxy"), (), "memory/proxy-tasks"),
    ],
)
def test_places(
    keeping: Memories, folder: Path, place: Location, fields: Sequence[tuple[str, str]], folder_name: str
) -> None:
    take(keeping, learning(place=place, fields=dict(fields)))
    (note,) = notes(folder)
    assert note.parent == folder / folder_name


def test_a_plain_folder_has_no_jobs(vault: MakeVault, home: Path) -> None:
    plain = vault({"a.md": "Text.\n"})
    with KnowledgeBase.open(plain, home, environ={"HOME": str(home.parent)}, clock=lambda: NOW) as kb:
        take(kb.memories, learning(place=Location("job", "api")))
    assert [str(note.parent.relative_to(plain)) for note in notes(plain)] == [".", "rules"]


def test_memories_hold_the_whole_text(vault: MakeVault, open_kb: Callable[..., KnowledgeBase]) -> None:
    body = "\n\n".join(
        f"## Part {number}\n\n" + "A sentence of some length that fills the part. " * 30 for number in range(8)
    )
    kb = open_kb(vault({"memory/config.yaml": "", "memory/learnings/a.md": f"---\nid: a\nkind: fact\n---\n{body}\n"}))
    (memory,) = kb.index.read(lambda index: list(index.memories(EVERYTHING)))
    assert memory.text.split() == body.split()
    assert memory.hash == kb.writer.read(memory.path).hash


def test_links_of_others_stay_as_written() -> None:
    written = [{"to": "a", "relation": "related_to", "strength": 0.5}]
    memory = Memory("x", "a.md", "", Location(), "T", "", metadata={"links": written})
    assert with_links(memory, Link("b", "superseded_by")) == [*written, {"to": "b", "relation": "superseded_by"}]
    assert written == [{"to": "a", "relation": "related_to", "strength": 0.5}]


def test_a_field_that_has_the_value_is_no_change() -> None:
    memory = Memory("x", "a.md", "", Location(), "T", "", metadata={"id": "x", "status": "retired"})
    assert plan_fields(memory, {"status": "retired"}, "Again.") is None
    sighting = plan_sighting(memory, [], NOW, "Seen.")
    assert sighting is not None
