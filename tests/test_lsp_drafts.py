"""The language server and what is not there yet: notes that are not saved, and a vault that is not read yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_files
from lsp_client import Editor
from support import entry

from memory_kb.vault import hold_lock

FILES = {
    "memory/config.yaml": "ignore: [drafts]\n",
    "memory/learnings/a.md": entry("# Alpha\n\nSee [[Beta]].", id="alpha", kind="fact"),
    "memory/learnings/b.md": entry("# Beta\n\nText.", id="beta", kind="fact"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "vault", FILES)


@pytest.fixture
def editor(folder: Path, home: Path) -> Iterator[Editor]:
    one = Editor(home, "--vault", folder, cwd=folder)
    yield one
    one.kill()


def names(places: list[dict[str, Any]]) -> list[str]:
    return [place["uri"].rpartition("/")[2] for place in places]


def test_the_very_first_question_is_answered(editor: Editor, folder: Path) -> None:
    editor.start()
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be"))["uri"].endswith("b.md")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hover", "references", "completion", "prepareRename"])
def test_every_first_question_waits_for_the_vault(editor: Editor, folder: Path, method: str) -> None:
    editor.start()
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.ask(
        f"textDocument/{method}", editor.at(uri, "[[Be") | {"context": {"includeDeclaration": True, "triggerKind": 1}}
    )


def test_symbols_wait_too(editor: Editor, folder: Path) -> None:
    editor.start()
    assert [one["name"] for one in editor.ask("workspace/symbol", {"query": "beta"})] == ["Beta"]
    assert folder.is_dir()


@pytest.mark.slow
def test_a_long_first_look_is_reported(editor: Editor, folder: Path) -> None:
    machine = folder / "memory/.memory-kb"
    machine.mkdir()
    with hold_lock(machine / "index.lock", 0.0):
        editor.start()
        said = editor.wait(lambda one: one.get("method") == "window/showMessage")
        assert "reads the notes" in said["params"]["message"]
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be"))


@pytest.mark.slow
def test_an_unsaved_entry_is_linked_shown_and_completed(editor: Editor, folder: Path) -> None:
    editor.start()
    new = editor.open(
        folder / "memory/learnings/new.md", "---\nid: fresh\nkind: fact\naliases: [Newest]\n---\n# Brand new\n\nBody.\n"
    )
    uri = editor.open(
        folder / "memory/learnings/a.md",
        entry("# Alpha\n\nSee [[fresh]], [[Brand new]] and [[newest]].", id="alpha", kind="fact"),
    )
    for word in ("[[fre", "[[Brand", "[[newe"):
        place = editor.ask("textDocument/definition", editor.at(uri, word))
        assert (place["uri"], place["range"]["start"]["line"]) == (new, 5)
    assert "Body." in editor.ask("textDocument/hover", editor.at(uri, "[[fre"))["contents"]["value"]
    asked = editor.at(new, "id: fr") | {"context": {"includeDeclaration": False}}
    assert names(editor.ask("textDocument/references", asked)) == ["a.md"] * 3
    assert [item["label"] for item in editor.complete(uri, "[[Brand")] == ["Brand new"]
    assert editor.diagnostics(uri) == []


@pytest.mark.slow
def test_names_that_are_gone_from_an_open_note_lead_nowhere(editor: Editor, folder: Path) -> None:
    editor.start()
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.diagnostics(uri) == []
    other = editor.open(folder / "memory/learnings/b.md", entry("# Gamma", id="gamma", kind="fact"))
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be")) is None
    assert [one["message"] for one in editor.diagnostics(uri)] == ["the wikilink to 'Beta' leads to no entry"]
    editor.tell("textDocument/didClose", {"textDocument": {"uri": other}})
    assert editor.diagnostics(uri) == []
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be"))


@pytest.mark.slow
def test_a_note_that_is_closed_unsaved_leaves_no_hint_behind(editor: Editor, folder: Path) -> None:
    editor.start()
    other = editor.open(folder / "memory/learnings/b.md", FILES["memory/learnings/b.md"] + "\n## Why\n\nSo.\n")
    uri = editor.open(folder / "memory/learnings/a.md", FILES["memory/learnings/a.md"].replace("Beta", "Beta#Why"))
    assert editor.diagnostics(uri) == []
    editor.tell("textDocument/didClose", {"textDocument": {"uri": other}})
    (said,) = editor.diagnostics(uri)
    assert "Why" in said["message"]


def test_an_open_file_that_is_no_note_adds_nothing(editor: Editor, folder: Path) -> None:
    editor.start()
    for path in ("memory/drafts/x.md", "memory/CONTINUITY.md"):
        editor.open(folder / path, entry("# Elsewhere\n\nText.", id="elsewhere", kind="fact"))
    uri = editor.open(folder / "memory/learnings/a.md", "[[Elsewhere]]")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[El")) is None


def test_an_unsaved_entry_makes_a_name_taken(editor: Editor, folder: Path) -> None:
    editor.start()
    editor.open(folder / "memory/learnings/new.md", entry("# Brand new", id="fresh", kind="fact"))
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.ask("textDocument/rename", editor.at(uri, "# Alp") | {"newName": "Brand new"}) is None
    assert (
        "is called already" in editor.wait(lambda one: one.get("method") == "window/showMessage")["params"]["message"]
    )
