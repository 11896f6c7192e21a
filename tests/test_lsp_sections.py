"""Sections in an editor: where they are named, shown and renamed; and files that move with their links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import write_files
from lsp_client import Editor, apply_workspace_edit, read_uri

FILES = {
    "Tea.md": "# Tea\n\n## Brew it\n\nBoil.\n\n### Water\n\nSoft.\n\n## Milk ##\n\nSee [[#brew it]], [up](#brew-it). ^b1\n",
    "sub/Cups.md": "---\nlinks: [{to: Tea.md, relation: mentions}]\n---\n[[Tea#Brew it|how]] [[tea#Brew it#Water]] [w](../Tea.md#brew-it) `[[Tea#Brew it]]`\n",
    "sub/Pots.md": "Only [[Tea]], [[Missing one]], [[Tea#^b1]] and ![[Tea#Milk]].\n",
}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("plain") / "notes", FILES)


@pytest.fixture(scope="module")
def shared(notes: Path) -> Iterator[Editor]:
    one = Editor(notes.parent / "home", "--vault", notes, cwd=notes)
    one.start()
    yield one
    one.kill()


@pytest.fixture
def editor(shared: Editor) -> Iterator[Editor]:
    yield shared
    shared.close_notes()


def places(found: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    starts = [(one["uri"].rpartition("/")[2], one["range"]["start"]) for one in found]
    return [(name, start["line"], start["character"]) for name, start in starts]


@pytest.mark.parametrize("word", ["## Brew", "[[#brew", "(#brew"])
def test_a_section_is_found_wherever_it_is_named(editor: Editor, notes: Path, word: str) -> None:
    uri = editor.open(notes / "Tea.md")
    asked = editor.at(uri, word) | {"context": {"includeDeclaration": True}}
    found = places(editor.ask("textDocument/references", asked))
    assert found[0] == ("Tea.md", 2, 0)
    assert sorted(found[1:]) == [("Cups.md", 3, 0), ("Cups.md", 3, 42), ("Tea.md", 12, 4), ("Tea.md", 12, 18)]
    assert places([editor.ask("textDocument/definition", editor.at(uri, word))]) == [("Tea.md", 2, 0)]


def test_a_section_of_the_same_note_is_shown_on_hover(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "Tea.md")
    for word in ("[[#brew", "(#brew"):
        shown = editor.ask("textDocument/hover", editor.at(uri, word))["contents"]["value"]
        assert shown == "## Brew it\n\nBoil.\n\n### Water\n\nSoft."
    assert editor.ask("textDocument/hover", editor.at(uri, "## Brew")) is None


def test_a_block_is_found_where_it_is_named_and_is_not_renamed(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "sub/Pots.md")
    asked = editor.at(uri, "#^b") | {"context": {"includeDeclaration": False}}
    assert places(editor.ask("textDocument/references", asked)) == [("Pots.md", 0, 31)]
    assert editor.ask("textDocument/prepareRename", editor.at(uri, "#^b")) is None


@pytest.mark.parametrize(
    ("path", "word"), [("Tea.md", "## Brew"), ("sub/Cups.md", "Tea#Brew"), ("sub/Cups.md", "md#brew")]
)
def test_a_heading_is_renamed_with_the_links_that_name_it(editor: Editor, notes: Path, path: str, word: str) -> None:
    uri = editor.open(notes / path)
    assert editor.ask("textDocument/prepareRename", editor.at(uri, word))["placeholder"] == "Brew it"
    edit = editor.ask("textDocument/rename", editor.at(uri, word) | {"newName": "How: to brew"})
    made = apply_workspace_edit(edit, {uri: editor.text(uri)})
    tea, cups = (notes / "Tea.md").as_uri(), (notes / "sub/Cups.md").as_uri()
    assert made.keys() == {tea, cups}
    new = FILES["Tea.md"].replace("## Brew it", "## How: to brew")
    assert made[tea] == new.replace("[[#brew it]], [up](#brew-it)", "[[#How: to brew]], [up](#how-to-brew)")
    head, code, rest = FILES["sub/Cups.md"].partition("`")
    assert made[cups] == head.replace("Brew it", "How: to brew").replace("brew-it", "how-to-brew") + code + rest


def test_a_title_takes_the_links_to_its_heading_with_it(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "Tea.md")
    other = editor.open(notes / "sub/new.md", "[[Tea#Tea]] [[Tea#Tea#Milk]]")
    edit = editor.ask("textDocument/rename", editor.at(uri, "# Te") | {"newName": "Green tea"})
    assert apply_workspace_edit(edit, {other: editor.text(other)})[other] == "[[Tea#Green tea]] [[Tea#Green tea#Milk]]"


def test_a_heading_that_is_there_already_is_refused(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "Tea.md")
    assert editor.ask("textDocument/rename", editor.at(uri, "## Brew") | {"newName": "milk"}) is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "has a heading 'milk' already" in said["params"]["message"]


def test_links_follow_a_file_that_the_editor_moves(editor: Editor, notes: Path) -> None:
    able = editor.told["capabilities"]["workspace"]["fileOperations"]["willRename"]
    assert [one["pattern"]["glob"] for one in able["filters"]] == ["**/*.md", "**"]
    tea, cups = (notes / "Tea.md").as_uri(), (notes / "sub/Cups.md").as_uri()
    asked = {"files": [{"oldUri": tea, "newUri": (notes / "deep/down/Chai.md").as_uri()}]}
    edit = editor.ask("workspace/willRenameFiles", asked)
    assert not [one for one in edit["documentChanges"] if "kind" in one]
    made = apply_workspace_edit(edit, {})
    cup = FILES["sub/Cups.md"].replace("(../Tea.md", "(../deep/down/Chai.md").replace("to: Tea.md", "to: Chai.md")
    assert made[cups] == cup.replace("[[Tea#Brew it|", "[[Chai#Brew it|").replace("[[tea#", "[[Chai#")
    assert tea not in made


def test_links_follow_a_folder_that_the_editor_renames(editor: Editor, notes: Path) -> None:
    asked = {"files": [{"oldUri": (notes / "sub").as_uri(), "newUri": (notes / "a/b").as_uri()}]}
    made = apply_workspace_edit(editor.ask("workspace/willRenameFiles", asked), {})
    cups = (notes / "sub/Cups.md").as_uri()
    assert made == {cups: FILES["sub/Cups.md"].replace("../Tea.md", "../../Tea.md")}


def test_a_file_is_renamed_by_an_operation_of_the_editor(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "sub/Pots.md")
    edit = editor.ask("textDocument/rename", editor.at(uri, "[[Te") | {"newName": "Chai"})
    renames = [one for one in edit["documentChanges"] if one.get("kind") == "rename"]
    assert [(one["oldUri"], one["newUri"]) for one in renames] == [
        ((notes / "Tea.md").as_uri(), (notes / "Chai.md").as_uri())
    ]
    assert edit["documentChanges"][-1] == renames[0]
    texts = apply_workspace_edit({"documentChanges": edit["documentChanges"][:-1]}, {})
    assert texts[uri] == FILES["sub/Pots.md"].replace("[[Tea", "[[Chai")


def test_a_note_that_a_link_names_can_be_made_in_a_plain_folder(editor: Editor, notes: Path) -> None:
    uri = editor.open(notes / "sub/Pots.md")
    place = editor.at(uri, "[[Missing")["position"]
    asked = {"textDocument": {"uri": uri}, "range": {"start": place, "end": place}, "context": {"diagnostics": []}}
    (action,) = editor.ask("textDocument/codeAction", asked)
    assert action["title"] == "Create this note: sub/Missing one.md"
    made = apply_workspace_edit(action["edit"], {})
    assert made == {(notes / "sub/Missing one.md").as_uri(): "# Missing one\n"}
    assert read_uri(uri) == FILES["sub/Pots.md"]


def test_what_is_missing_is_said_in_a_plain_folder_too(editor: Editor, notes: Path) -> None:
    (notes / "kept").mkdir()
    (notes / "kept/there.png").write_bytes(b"")
    text = (
        "[[Tea#Nowhere]] [[Missing one]] ![[no.png]] ![](img/no.png) ![[There.png|300]] ![](../kept/there.png 'T')"
        " ![](https://x.org/a.png) ![](no%20end) `![[c.png]]` [[Tea#milk]]\n"
    )
    uri = editor.open(notes / "sub/missing.md", text)
    said = {(one["code"], one["severity"], one["range"]["start"]["character"]) for one in editor.diagnostics(uri)}
    assert said == {("link", 3, 2), ("link", 3, 18), ("picture", 3, 32), ("picture", 3, 44)}
    editor.type(uri, "---\nlinks:\n  - {to: Cu\n---\n")
    (item,) = editor.complete(uri, "to: Cu")
    assert item["textEdit"]["newText"] == "Cups"
    editor.type(uri, "---\nlinks:\n  - to: 'Cu\n---\n", 3)
    (item,) = editor.complete(uri, "to: 'Cu")
    assert "'" not in item["textEdit"]["newText"]
