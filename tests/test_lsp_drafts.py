"""The language server and what is not there yet: a vault that is not read, and notes that are not saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import write_files
from lsp_client import Editor
from support import entry

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


def test_what_is_not_saved_adds_no_names(editor: Editor, folder: Path) -> None:
    editor.start()
    for path in ("memory/drafts/x.md", "memory/CONTINUITY.md", "memory/learnings/new.md"):
        editor.open(folder / path, entry("# Elsewhere\n\nText.", id="elsewhere", kind="fact"))
    uri = editor.open(folder / "memory/learnings/a.md", "[[Elsewhere]]")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[El")) is None


def test_a_vault_that_is_gone_for_a_while_costs_no_error(editor: Editor, folder: Path) -> None:
    editor.start()
    uri = editor.open(folder / "memory/learnings/a.md")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be"))
    (folder / "memory").rename(folder / "away")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be")) is None
    assert editor.complete(uri, "[[Be") == []
    (folder / "away").rename(folder / "memory")
    assert editor.ask("textDocument/definition", editor.at(uri, "[[Be"))
