"""The language server over real JSON-RPC: how it begins and ends, what it leaves alone, and how places are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import editing
import pytest
from conftest import Files
from editing import POSTGRES, Edit, Reading, actions, draft
from lsp_client import CAPABILITIES, Editor
from support import notes_of
from watching import eventually

folder = editing.folder
shared = editing.shared
read = editing.read
edit = editing.edit

Vault = Callable[[Files], Path]


def test_it_begins_says_what_it_can_and_ends(folder: Path, home: Path) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    told = editor.start()
    able = told["capabilities"]
    assert told["serverInfo"]["name"] == "memory-kb"
    assert {
        "completionProvider",
        "hoverProvider",
        "definitionProvider",
        "referencesProvider",
        "renameProvider",
        "codeActionProvider",
    } <= able.keys()
    assert able["renameProvider"] == {"prepareProvider": True}
    assert editor.close() == 0


def test_it_ends_when_the_editor_is_gone(folder: Path, home: Path) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    editor.start()
    assert editor.process.stdin
    editor.process.stdin.close()
    assert editor.end() == 0


@pytest.mark.parametrize("value", ["[" * 100_000 + "]" * 100_000, "9" * 100_000, "["], ids=["deep", "digits", "broken"])
def test_a_message_that_cannot_be_read_is_reported_in_a_sentence(folder: Path, home: Path, value: str) -> None:
    editor = Editor(home, "--vault", folder, cwd=folder)
    editor.start()
    message = b'{"jsonrpc":"2.0","id":9,"method":"workspace/symbol","params":{"query":%s}}' % value.encode()
    assert editor.process.stdin
    editor.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(message), message))
    editor.process.stdin.flush()
    editor.wait(lambda one: "cannot be read" in str(one))
    assert editor.close() == 0
    said = "".join(editor.stderr.queue)
    assert "cannot be read" in said
    assert "Traceback" not in said


def test_without_a_name_it_serves_the_vault_around_the_open_folder(folder: Path, home: Path, tmp_path: Path) -> None:
    editor = Editor(home, cwd=tmp_path)
    editor.start(root=folder / "memory" / "learnings")
    uri = editor.open(folder / "memory/learnings/new.md", "[[Stag")
    editor.wait_until_known(uri, "[[Stag", "Staging database")
    editor.kill()


def test_where_there_is_no_vault_it_makes_none_and_says_so(home: Path, tmp_path: Path) -> None:
    project = tmp_path / "elsewhere"
    project.mkdir()
    editor = Editor(home, cwd=project)
    editor.start(root=project)
    uri = editor.open(project / "notes.md", "[[")
    assert "no vault" in editor.stderr.get(timeout=60)
    assert editor.complete(uri, "[[") == []
    editor.kill()
    assert list(project.iterdir()) == []


def test_it_writes_no_note_whatever_is_asked(edit: Edit, folder: Path) -> None:
    before = notes_of(folder)
    editor = edit()
    uri = draft(editor, folder, POSTGRES, "memory/learnings/staging.md")
    for action in actions(editor, uri, "Staging runs").values():
        editor.ask("codeAction/resolve", action)
    editor.diagnostics(uri)
    assert editor.close() == 0
    assert notes_of(folder) == before


def test_notes_outside_of_the_vault_are_left_alone(read: Reading) -> None:
    editor, folder = read
    draft(editor, folder, "x")
    uri = editor.open(folder / "README.md")
    assert editor.complete(uri, "[[") == []
    assert editor.ask("textDocument/hover", editor.at(uri, "note")) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "\ufeff---\r\nid: x\r\n---\r\n",
        "\u2028\u2028[[",
        "\x00\x0c#",
        "---\n---\n---\n---",
        "---\n[[\n",
        "[[" * 200,
        "{" * 300,
        "---\nid: " + "[" * 200,
    ],
)
def test_odd_texts_break_nothing(read: Reading, text: str) -> None:
    editor, folder = read
    uri = draft(editor, folder, text)
    end = {"textDocument": {"uri": uri}, "position": {"line": 99, "character": 99}}
    editor.ask("textDocument/completion", end)
    editor.ask("textDocument/hover", end)
    editor.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    editor.diagnostics(uri, 3)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_every_place_is_found_again(encoding: str) -> None:
    from memory_kb.lsp.open_notes import Ruler

    text = "a\r\n数据 😀👩‍👩‍👧 b\n\nc\u2028d\re"
    ruler = Ruler(text, encoding)
    for offset in range(len(text) + 1):
        if text[offset - 1 : offset + 1] != "\r\n":
            assert ruler.offset(ruler.position(offset)) == offset


def test_an_agreed_encoding_is_used(edit: Edit, folder: Path) -> None:
    editor = edit(CAPABILITIES | {"general": {"positionEncodings": ["utf-8"]}})
    uri = editor.open(folder / "memory/learnings/draft.md", "数 [[")
    place = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 6}}
    eventually(lambda: (editor.ask("textDocument/completion", place) or {}).get("items"))
    items = editor.ask("textDocument/completion", place)["items"]
    assert items[0]["textEdit"]["range"]["start"] == {"line": 0, "character": 6}


def test_edits_are_small() -> None:
    from memory_kb.lsp.actions import text_edits

    before = "".join(f"line {number} 😀\r\n" for number in range(50))
    after = before.replace("line 7 ", "line seven ").replace("line 40 😀\r\n", "")
    assert len(text_edits(before, after)) == 2


def test_a_spot_in_frontmatter_knows_its_field() -> None:
    from memory_kb.lsp.completion import find_spot

    text = "---\nlinks:\n  - to: ab\n    relation: cd\nsources: [x, yz]\n---\n"
    for word, field in (("ab", "links.to"), ("cd", "links.relation"), ("yz", "sources")):
        spot = find_spot(text, text.index(word) + 2)
        assert (spot.kind, spot.field, spot.word) == ("value", field, word)
