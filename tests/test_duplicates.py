"""A sentence that is said again is found again, however it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, write_files

from memory_kb import KnowledgeBase
from memory_kb.errors import Forgotten
from memory_kb.model import Location

MakeVault = Callable[[Files], Path]
SAID = "Use the retry queue for e-mails of user_name, never port 8081."


OTHER_WAYS = [
    SAID.upper(),
    SAID.replace(" ", "\n"),
    SAID.replace(",", " –"),
    f"**{SAID}**",
    f"- {SAID}",
    SAID.replace("retry", "`retry`"),
]


def test_another_way_of_writing_is_the_same(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    kb = open_kb(folder)
    assert {kb.learn(text).id for text in (SAID, *OTHER_WAYS)} == {kb.learn(SAID).id}


@pytest.mark.parametrize("first", [SAID.upper(), f"**{SAID}**", f"- {SAID}"])
def test_what_was_written_another_way_is_the_same(
    folder: Path, open_kb: Callable[..., KnowledgeBase], first: str
) -> None:
    kb = open_kb(folder)
    assert kb.learn(first).id == kb.learn(SAID).id


@pytest.mark.parametrize(
    "again",
    [SAID.replace("never", "always"), SAID.replace("8081", "8082"), SAID.replace("retry ", ""), SAID + " Always."],
)
def test_another_sentence_is_not(folder: Path, open_kb: Callable[..., KnowledgeBase], again: str) -> None:
    kb = open_kb(folder)
    assert kb.learn(SAID).id != kb.learn(again).id


TWIN = "---\nid: twin-1\nkind: fact\n---\nThe numbat eats termites at dawn.\n"
NUMBAT = "The numbat eats termites at dawn."


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("vault/memory/learnings/a.md", Location()),
        ("vault/memory/deep/down/a.md", Location()),
        ("vault/memory/jobs/a.md", Location()),
        ("vault/memory/jobs/api/a.md", Location("job", "api")),
        ("vault/memory/jobs/api/learnings/a.md", Location("job", "api")),
        ("vault/memory/jobs/api/tasks/t1/learnings/a.md", Location("task", "api", "t1")),
        ("home/learnings/a.md", Location("global")),
    ],
)
def test_what_was_written_in_an_editor_a_moment_ago_is_found(
    folder: Path, home: Path, open_kb: Callable[..., KnowledgeBase], path: str, place: Location
) -> None:
    kb = open_kb(folder)
    kb.learn("Something else.", scope=place.scope, job=place.job, task=place.task)
    file = folder.parent / path
    write_files(file.parent, {file.name: TWIN})
    learned = kb.learn(NUMBAT, scope=place.scope, job=place.job, task=place.task)
    assert (learned.id, learned.action) == ("twin-1", "reinforced")
    file.unlink()
    again = kb.learn(NUMBAT, scope=place.scope, job=place.job, task=place.task)
    assert again.action == "created"


@pytest.mark.parametrize("gone", ["vault/memory/learnings/a.md", "vault/memory/jobs/api/a.md", "home/a.md"])
def test_what_was_retired_in_an_editor_a_moment_ago_stays_away(
    folder: Path, open_kb: Callable[..., KnowledgeBase], gone: str
) -> None:
    kb = open_kb(folder)
    kb.learn("Something else.", job="api")
    file = folder.parent / gone
    write_files(file.parent, {file.name: TWIN.replace("kind: fact", "kind: fact\nstatus: retired")})
    with pytest.raises(Forgotten):
        kb.learn(NUMBAT, job="api")


def test_what_changed_at_another_job_is_found_by_the_next_search(
    folder: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    kb = open_kb(folder)
    kb.learn("Something else.", job="api")
    kb.learn("Another thing.", job="web")
    write_files(folder / "memory/jobs/web", {"a.md": TWIN, "b.md": "Wombats dig at dusk.\n"})
    assert kb.learn(NUMBAT, job="api").action == "created"
    assert [hit.path for hit in kb.search("wombats").hits] == ["memory/jobs/web/b.md"]
