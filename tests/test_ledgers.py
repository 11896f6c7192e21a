"""Ledgers say where an agent stands: a checkpoint tells what is new, and keeps what is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from support import entry, fields_of

from memory_kb import KnowledgeBase
from memory_kb.errors import SecretRefused, UnknownEntry
from memory_kb.markdown.splice import set_values
from memory_kb.model import Span
from memory_kb.yaml_loader import load_mapping

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
SECRET = "ghp_" + "a1b2" * 9


def test_a_first_checkpoint(folder: Path, open_kb: Open) -> None:
    done = open_kb(folder).ledgers.set(
        "eng-001-backend",
        task="T-42",
        goal="CRUD for users",
        files=["src/users.py"],
        tech=["fastapi"],
        patterns=["sem-001"],
        uncommitted=True,
        commit="abc123",
    )
    assert (done.action, done.ledger.path) == ("created", "memory/ledgers/eng-001-backend.md")
    assert done.ledger.as_mapping == {
        "agent_id": "eng-001-backend",
        "last_checkpoint": "2026-11-21T12:00:00Z",
        "tasks_completed": 0,
        "current_task": "T-42",
        "state": {"files_modified": ["src/users.py"], "uncommitted_changes": True, "last_git_commit": "abc123"},
        "context": {"tech_stack": ["fastapi"], "patterns_learned": ["sem-001"], "current_goal": "CRUD for users"},
    }
    head = fields_of(folder, done.ledger.path)
    assert (head["kind"], head["agent_id"], head["state"]) == (
        "ledger",
        "eng-001-backend",
        done.ledger.as_mapping["state"],
    )


def test_a_checkpoint_says_what_is_new_and_keeps_the_rest(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledgers.set("a", task="T-1", goal="Ship", files=["x"], git=False)
    kb.ledgers.set("a", task="T-2", completed=["T-1"], git=False)
    kb.ledgers.set("a", completed=["T-1", "T-0"], files=["y"], git=False)
    ledger = kb.ledgers.show("a").as_mapping
    assert (ledger["tasks_completed"], ledger["current_task"]) == (2, "T-2")
    assert (ledger["state"]["files_modified"], ledger["context"]["current_goal"]) == (["y"], "Ship")
    assert kb.ledgers.set("a", completed=["T-1"], git=False).run.run is None
    kb.ledgers.set("a", tasks_completed=12, task="", git=False)
    assert (kb.ledgers.show("a").tasks_completed, kb.ledgers.show("a").current_task) == (12, None)
    assert len(list((folder / "memory/ledgers").iterdir())) == 1


def test_a_checkpoint_splices(vault: MakeVault, open_kb: Open) -> None:
    text = (
        "---\nid: mine   # of the night shift\nkind: ledger\nagent_id: eng-002\nlast_checkpoint: '2026-01-01T00:00:00Z'\ntasks_completed: 3\n"
        "mood: good\nstate:\n  port: 80 # theirs\n  files_modified: [a.py] # so far\n# between\ncontext: {current_goal: Old}\n---\n\n"
        "My own notes.\n\n---\n\nMore.\n"
    )
    folder = vault(CONFIG | {"memory/notes/ledger.md": text})
    kb = open_kb(folder)
    kb.ledgers.set("eng-002", files=["b.py"], goal="New", completed=["T-9"], git=False)
    after = text.replace("2026-01-01T00:00:00Z", "2026-11-21T12:00:00Z").replace(
        "tasks_completed: 3", "tasks_completed: 4"
    )
    after = after.replace("[a.py]", "[b.py]").replace(
        "{current_goal: Old}\n", "{current_goal: New}\ncompleted_tasks: [T-9]\n"
    )
    assert (folder / "memory/notes/ledger.md").read_text() == after
    kb.undo()
    assert (folder / "memory/notes/ledger.md").read_text() == text


def test_a_ledger_that_is_retired_in_the_same_moment_stays_as_it_is(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(CONFIG)
    kb, file = open_kb(folder), folder / "memory/ledgers/a.md"
    kb.ledgers.set("a", task="Old", git=False)
    retired = file.read_text().replace("status: active", "status: retired")

    find_file = kb.writer.writable

    def retire(path: str) -> Path:  # called when the vault is locked, before the file is read
        file.write_text(retired)
        return find_file(path)

    monkeypatch.setattr(kb.writer, "writable", retire)
    assert kb.ledgers.set("a", task="New", git=False).action == "unchanged"
    assert file.read_text() == retired


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("id: a\n", "id: a\nstate:\n  x: 1\n  y: [b, 'c: d']\n"),
        ("state:\n  x: 0 # why\n  # old\nid: a\n", "state:\n  x: 1 # why\n  y: [b, 'c: d']\n  # old\nid: a\n"),
        (
            "state:\n    y:\n      - b\n      - 'c: d'\n    x: 0\nid: a\n",
            "state:\n    y:\n      - b\n      - 'c: d'\n    x: 1\nid: a\n",
        ),
        ("state:\n  gone: 1\n  x: 0\nid: a\n", "state:\n  x: 1\n  y: [b, 'c: d']\nid: a\n"),
        ("state: {x: 0} # why\nid: a\n", "state: {x: 1, y: [b, 'c: d']} # why\nid: a\n"),
        ("state: none\nid: a\n", "state: {x: 1, y: [b, 'c: d']}\nid: a\n"),
        ("", "state:\n  x: 1\n  y: [b, 'c: d']\n"),
    ],
)
def test_a_mapping_is_on_lines_of_its_own(before: str, after: str, newline: str) -> None:
    value = {"x": 1, "y": ["b", "c: d"]}
    before, after = before.replace("\n", newline), after.replace("\n", newline)
    if not before and newline == "\r\n":
        return
    assert set_values(before, Span(0, len(before)), {"state": value}) == after
    assert load_mapping(after)["state"] == value


def test_an_object_in_the_shape_of_the_seed(folder: Path, open_kb: Open) -> None:
    told = {
        "agent_id": "eng-001",
        "tasks_completed": 12,
        "current_task": "task-042",
        "state": {
            "files_modified": ["src/api/users.ts"],
            "uncommitted_changes": True,
            "last_git_commit": "abc123",
            "branch": "x",
        },
        "context": {
            "tech_stack": ["express"],
            "patterns_learned": ["sem-001"],
            "current_goal": "CRUD",
            "notes": {"deep": [1]},
        },
        "mood": "good",
    }
    kb = open_kb(folder)
    done = kb.ledgers.set(values=told)
    assert done.notices == ("mood is no field of a ledger",)
    shown = kb.ledgers.show("eng-001").as_mapping
    assert {name: shown[name] for name in ("tasks_completed", "current_task", "state", "context")} == {
        name: told[name] for name in ("tasks_completed", "current_task", "state", "context")
    }
    assert kb.ledgers.set(values=shown).run.run is None


@pytest.mark.parametrize(
    "told",
    [
        {"tasks_completed": "many"},
        {"tasks_completed": -1},
        {"tasks_completed": True},
        {"state": []},
        {"context": "x"},
    ],
)
def test_odd_objects_are_complained_of(told: dict[str, object], folder: Path, open_kb: Open) -> None:
    done = open_kb(folder).ledgers.set("a", values=told, git=False)
    assert done.notices
    assert done.ledger.tasks_completed == 0
    assert done.ledger.as_mapping["state"]["uncommitted_changes"] is None


def test_odd_ledgers_are_shown_as_far_as_they_go(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(
        vault(
            CONFIG
            | {
                "memory/ledgers/a.md": entry(
                    "", kind="ledger", id="odd", tasks_completed=2, state="words", context="[1]"
                ),
                "memory/ledgers/b.md": entry("", kind="ledger", agent_id="b", status="retired"),
            }
        )
    )
    [ledger] = kb.ledgers.list()
    assert (ledger.agent_id, ledger.tasks_completed, ledger.as_mapping["state"]["files_modified"]) == ("odd", 2, [])
    with pytest.raises(UnknownEntry, match=r"^no ledger of 'b'"):
        kb.ledgers.show("b")


def test_each_scope_has_its_own_ledger_of_an_agent(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledgers.set("a", task="P", git=False)
    kb.ledgers.set("a", task="J", job="api", git=False)
    assert (kb.ledgers.show("a").current_task, kb.ledgers.show("a", "api").current_task) == ("P", "J")
    assert kb.ledgers.show("a", "api").path == "memory/jobs/api/ledgers/a.md"
    assert len(kb.ledgers.list()) == 2


def test_two_agents_of_one_slug(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for agent in ("a/b", "a b", "../a b"):
        kb.ledgers.set(agent, task=agent, git=False)
    assert sorted(one.name for one in (folder / "memory/ledgers").iterdir()) == ["a-b-2.md", "a-b-3.md", "a-b.md"]
    assert kb.ledgers.show("a b").current_task == "a b"


def test_ledgers_are_not_found_unasked(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.ledgers.set("wombat", task="T", git=False)
    kb.handoffs.create("wombat", "bilby", done=["Wombat things."], git=False)
    assert kb.search("wombat").hits == ()
    assert {hit.kind for hit in kb.search("wombat", kind=["ledger", "handoff"]).hits} == {"ledger", "handoff"}


@pytest.mark.parametrize(
    "told",
    [
        {"task": SECRET},
        {"goal": SECRET},
        {"files": [SECRET]},
        {"completed": [SECRET]},
        {"values": {"agent_id": "a", "state": {"env": {"api_key": "hunter2hunter2"}}}},
    ],
)
def test_a_ledger_keeps_no_credentials(told: dict[str, object], folder: Path, open_kb: Open) -> None:
    with pytest.raises(SecretRefused):
        open_kb(folder).ledgers.set("a", git=False, **told)  # type: ignore[arg-type]
    assert not (folder / "memory/ledgers").exists()
