"""What the language server says is amiss in notes that are being written, and what it offers to do about it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import editing
import pytest
from conftest import Files, Run
from editing import POSTGRES, RULE, Edit, Reading, actions, draft
from lsp_client import apply_workspace_edit
from support import entry, notes_of

folder = editing.folder
shared = editing.shared
read = editing.read
edit = editing.edit

Vault = Callable[[Files], Path]


@pytest.mark.slow
def test_what_is_amiss_is_said_at_its_place_before_saving(read: Reading) -> None:
    editor, folder = read
    text = "---\nid: redis-cache\nkind: polcy\nimportance: 7\n---\n数据库 😀 [[nowhere]] and [[Redis cache]] ![[pic.png]].\nkey AKIAIOSFODNN7EXAMPLQ\n"
    uri = draft(editor, folder, text)
    said = {one["code"]: one for one in editor.diagnostics(uri, 3)}
    assert said.keys() == {"note", "link", "picture", "id", "secret"}
    assert said["link"]["range"] == {"start": {"line": 5, "character": 9}, "end": {"line": 5, "character": 16}}
    assert said["secret"]["range"]["start"]["line"] == 6 and said["secret"]["severity"] == 1
    assert "memory/learnings/redis.md:6" in said["id"]["message"]
    assert said["id"]["range"] == {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 15}}
    editor.type(uri, "---\nid: fine\nkind: fact\n---\n[[Redis cache]] is there.\n", 4)
    assert editor.diagnostics(uri, 4) == []
    editor.type(uri, "---\nid: fine\nkind: fact\n---\n# Own\n\n[[#Own]] [[#Gone]]\n", 5)
    assert [one["message"] for one in editor.diagnostics(uri, 5)] == ["there is no 'Gone' in this note"]


@pytest.mark.slow
def test_it_says_what_lint_says(edit: Edit, folder: Path, run: Run) -> None:
    text = "---\nid: odd\nkind: fact\nlinks: [{to: gone, relation: knows}]\ncreated_at: soon\n---\nSee [[nowhere]].\n"
    file = folder / "memory/learnings/odd.md"
    file.write_text(text, encoding="utf-8")
    linted = json.loads(run("--vault", folder, "lint", "--json").stdout)
    editor = edit()
    uri = draft(editor, folder, "x")
    uri = editor.open(file)
    said = [one["message"] for one in editor.diagnostics(uri)]
    assert sorted(said) == sorted(
        problem["message"] for problem in linted["problems"] if problem["path"].endswith("odd.md")
    )
    assert len(said) == 4


@pytest.mark.slow
def test_double_and_forgotten_texts_are_reported_and_doubles_merged(edit: Edit, folder: Path, run: Run) -> None:
    editor = edit()
    before = notes_of(folder)
    text = entry("Staging runs Postgres 15, see [[Redis cache]].", id="twice", kind="fact", importance="0.9")
    uri = draft(editor, folder, text)
    (said,) = editor.diagnostics(uri, 3)
    assert said["code"] == "twin" and "Staging database" in said["message"]
    asked = {"textDocument": {"uri": uri}, "range": said["range"], "context": {"diagnostics": [said]}}
    action = next(one for one in editor.ask("textDocument/codeAction", asked) if one["title"].startswith("Merge"))
    assert "edit" not in action
    made = apply_workspace_edit(editor.ask("codeAction/resolve", action)["edit"], {uri: text})
    assert "{to: staging-db, relation: supersedes}" in (made[uri] or "")
    assert made[(folder / "memory/learnings/staging.md").as_uri()] is None
    moved = next(text for name, text in made.items() if "/archive/2026-11/" in name)
    assert "status: archived" in (moved or "") and "{to: twice, relation: superseded_by}" in (moved or "")
    assert notes_of(folder) == before
    run("--vault", folder, "forget", "staging-db")
    editor.type(uri, text + "\n", 4)
    editor.wait(lambda one: "forgotten before" in json.dumps(one.get("params", {})))


def test_a_rule_over_the_budget_and_broken_frontmatter_are_reported(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, entry("word " * 600, id="long", kind="rule"))
    (said,) = editor.diagnostics(uri, 3)
    assert said["code"] == "budget" and "context.rule_tokens allows 500" in said["message"]
    editor.type(uri, "---\nid: [a\n---\nText.\n", 4)
    (said,) = editor.diagnostics(uri, 4)
    assert said["code"] == "note" and said["range"]["start"]["line"] in (1, 2)


@pytest.mark.slow
def test_what_others_write_is_noticed(edit: Edit, folder: Path) -> None:
    editor = edit()
    uri = draft(editor, folder, "See [[brand new]].")
    assert [one["code"] for one in editor.diagnostics(uri, 3)] == ["link"]
    (folder / "memory/learnings/new.md").write_text(entry("Text.", id="brand-new", title="Brand new"), encoding="utf-8")
    editor.wait_until_clean(uri)


def test_closing_a_note_takes_back_what_was_said(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "[[nowhere]]")
    assert editor.diagnostics(uri, 3)
    editor.tell("textDocument/didClose", {"textDocument": {"uri": uri}})
    editor.wait_until_clean(uri)


def test_an_entry_is_retired_in_the_unsaved_text(read: Reading) -> None:
    editor, folder = read
    text = (POSTGRES + "\nEdited 😀.\n").replace("\n", "\r\n")
    uri = draft(editor, folder, text, "memory/learnings/staging.md")
    offered = actions(editor, uri, "Edited")
    assert set(offered) == {"Retire this entry", "Promote this entry to the home"}
    resolved = editor.ask("codeAction/resolve", offered["Retire this entry"])
    made = apply_workspace_edit(resolved["edit"], {uri: text})
    assert made == {uri: text.replace("tags: [db, staging]\r\n", "tags: [db, staging]\r\nstatus: retired\r\n")}
    (change,) = resolved["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 3
    assert len(change["edits"]) == 1


def test_a_proposal_is_approved_and_moves(read: Reading) -> None:
    editor, folder = read
    draft(editor, folder, "x")
    uri = editor.open(folder / "memory/review/pin.md")
    offered = actions(editor, uri, "pin-image")
    assert set(offered) == {"Approve this entry"}
    made = apply_workspace_edit(editor.ask("codeAction/resolve", offered["Approve this entry"])["edit"], {uri: RULE})
    assert made[uri] is None
    assert "status: active" in (made[(folder / "memory/rules/pin.md").as_uri()] or "")


def test_an_entry_of_a_job_is_promoted_to_the_project(read: Reading) -> None:
    editor, folder = read
    text = entry("Quote the shell variables.", id="quote", kind="rule")
    uri = draft(editor, folder, text, "memory/jobs/api/rules/quote.md")
    offered = actions(editor, uri, "Quote")
    made = apply_workspace_edit(
        editor.ask("codeAction/resolve", offered["Promote this entry to the project"])["edit"], {uri: text}
    )
    ((address, promoted),) = made.items()
    assert "/memory/rules/" in address
    assert "promoted_from: session" in (promoted or "") and "Quote the shell variables." in (promoted or "")


def test_why_an_entry_is_not_promoted_is_said(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, entry("The key is AKIAIOSFODNN7EXAMPLQ.", id="key", kind="rule"))
    promote = actions(editor, uri, "The key")["Promote this entry to the home"]
    assert editor.ask("codeAction/resolve", promote).get("edit") is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "AWS access key" in said["params"]["message"]


def test_an_editor_that_cannot_delete_files_is_reported(edit: Edit, folder: Path) -> None:
    editor = edit({"workspace": {"workspaceEdit": {"documentChanges": True}}})
    draft(editor, folder, "x")
    uri = editor.open(folder / "memory/review/pin.md")
    approve = actions(editor, uri, "pin-image")["Approve this entry"]
    assert editor.ask("codeAction/resolve", approve).get("edit") is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "command line" in said["params"]["message"]


@pytest.mark.parametrize(
    ("link", "made"),
    [
        ("[[Rome trip]]", "memory/learnings/Rome trip.md"),
        ("[[trips/Rome#Days|there]]", "memory/learnings/trips/Rome.md"),
        ("[x](../trips/my%20Rome.md#days)", "memory/trips/my Rome.md"),
        ("[[../../../outside]]", None),
        ("[[../.hidden/x]]", None),
        ("[[Why: x?]]", None),
        ("[[redis#Nowhere]]", None),
    ],
)
def test_a_missing_note_is_created_where_its_link_leads(read: Reading, link: str, made: str | None) -> None:
    editor, folder = read
    uri = draft(editor, folder, f"See {link}.\n")
    (said,) = editor.diagnostics(uri, 3)
    asked = {"textDocument": {"uri": uri}, "range": said["range"], "context": {"diagnostics": [said]}}
    found = [one for one in editor.ask("textDocument/codeAction", asked) or () if "Create" in one["title"]]
    edits = [apply_workspace_edit(one["edit"], {}) for one in found]
    name = Path(made or "").stem
    assert edits == ([{(folder / made).as_uri(): f"# {name}\n"}] if made else [])
