"""Renaming in an editor and by the command: an id, a title or a file, with all links to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import editing
from conftest import Files, Run
from editing import POSTGRES, REDIS, RULE, Reading, draft
from lsp_client import apply_workspace_edit
from support import notes_of

folder = editing.folder
shared = editing.shared
read = editing.read

Vault = Callable[[Files], Path]


def test_an_id_is_renamed_with_its_links_saved_or_not(read: Reading) -> None:
    editor, folder = read
    before = notes_of(folder)
    uri = draft(editor, folder, "See [[staging-db|it]] and [[Staging database]] 😀 [[staging-db]].\n")
    staging = editor.open(folder / "memory/learnings/staging.md")
    assert editor.ask("textDocument/prepareRename", editor.at(staging, "id: staging"))["placeholder"] == "staging-db"
    asked = editor.at(staging, "id: staging") | {"newName": "stage-database"}
    made = apply_workspace_edit(
        editor.ask("textDocument/rename", asked), {uri: editor.text(uri), staging: editor.text(staging)}
    )
    assert made[uri] == "See [[stage-database|it]] and [[Staging database]] 😀 [[stage-database]].\n"
    assert made[staging] == POSTGRES.replace("staging-db", "stage-database")
    assert made[(folder / "memory/review/pin.md").as_uri()] == RULE.replace("staging-db", "stage-database")
    assert len(made) == 3
    assert notes_of(folder) == before


def test_a_title_is_renamed_from_a_link_to_it(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[redis cache#Keys]] and [[redis-cache]].")
    asked = editor.at(uri, "[[redis ca") | {"newName": "The  cache"}
    made = apply_workspace_edit(editor.ask("textDocument/rename", asked), {uri: editor.text(uri)})
    assert made[uri] == "See [[The cache#Keys]] and [[redis-cache]]."
    assert made[(folder / "memory/learnings/redis.md").as_uri()] == REDIS.replace("# Redis cache", "# The cache")
    assert made[(folder / "memory/learnings/staging.md").as_uri()] == POSTGRES.replace(
        "[[Redis cache]]", "[[The cache]]"
    )


def test_a_name_that_is_taken_is_refused(read: Reading) -> None:
    editor, folder = read
    uri = draft(editor, folder, "See [[Redis cache]].")
    assert editor.ask("textDocument/rename", editor.at(uri, "[[Redis") | {"newName": "Staging database"}) is None
    said = editor.wait(lambda one: one.get("method") == "window/showMessage")
    assert "is called already" in said["params"]["message"]


def test_the_command_renames_whatever_the_line_ends(run: Run, folder: Path) -> None:
    crlf = folder / "memory/learnings/crlf.md"
    crlf.write_bytes(
        b"\xef\xbb\xbf---\r\nid: other # mine\r\nlinks:\r\n  - {to: staging-db, relation: related_to}\r\n---\r\nSee [[staging-db]].\r\n"
    )
    before = notes_of(folder)
    dry = run("--vault", folder, "rename", "staging-db", "stage", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "+id: stage" in dry.stdout
    assert notes_of(folder) == before
    done = run("--vault", folder, "rename", "staging-db", "stage")
    assert done.returncode == 0, done.stderr
    after = crlf.read_bytes()
    assert after.replace(b"[{to: stage, relation: related_to}]", b"").count(b"\r\n") == after.count(b"\n")
    assert b"[[stage]].\r\n" in after and after.startswith(b"\xef\xbb\xbf---\r\nid: other # mine\r\n")
    assert run("--vault", folder, "lint").stderr == "Nothing to fix.\n"
    assert run("--vault", folder, "show", "stage").returncode == 0
    assert run("--vault", folder, "undo").returncode == 0
    assert notes_of(folder) == before
    assert run("--vault", folder, "rename", "staging-db", "redis-cache").returncode == 2
    assert run("--vault", folder, "rename", "staging-db", "a]b").returncode == 2


def test_what_is_around_a_name_stays_as_it_is(run: Run, folder: Path) -> None:
    file = folder / "memory/learnings/mine.md"
    text = (
        '---\nid: mine\nlinks:\n  # why\n  - to: "staging-db"   # first\n    relation: related_to\n  - {to: redis-cache, relation: elaborates}\n'
        "sources: [staging-db, s1] # two\ntags: [staging-db]\n---\nText, staging-db.\n"
    )
    file.write_text(text, encoding="utf-8")
    assert run("--vault", folder, "rename", "staging-db", "true").returncode == 0
    renamed = text.replace('"staging-db"', '"true"').replace("sources: [staging-db", "sources: ['true'")
    assert file.read_text(encoding="utf-8") == renamed


def test_a_note_called_by_its_file_is_renamed_with_its_file(run: Run, vault: Vault, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "sub" / "Tea.md").write_text("Green.\n", encoding="utf-8")
    (notes / "a.md").write_text("[[Tea]] ![[sub/Tea#^x]] [[tea.md|t]] [[Teapot]]\n", encoding="utf-8")
    done = run("--vault", notes, "rename", "sub/Tea.md", "Green tea", "--title")
    assert done.returncode == 0, done.stderr
    assert (notes / "sub" / "Green tea.md").read_text(encoding="utf-8") == "Green.\n"
    assert not (notes / "sub" / "Tea.md").exists()
    assert (notes / "a.md").read_text(
        encoding="utf-8"
    ) == "[[Green tea]] ![[sub/Green tea#^x]] [[Green tea.md|t]] [[Teapot]]\n"


def test_links_in_frontmatter_follow_a_note_to_another_folder(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "a").mkdir(parents=True)
    (notes / "a/Tea.md").write_text("---\nlinks: [{to: ../b.md, relation: mentions}]\n---\nGreen.\n", encoding="utf-8")
    text = "---\nlinks:\n  # why\n  - to: 'a/Tea.md' # first\n    relation: mentions\n  - {to: a/tea}\n---\n[[Tea]]\n"
    (notes / "b.md").write_text(text, encoding="utf-8")
    assert run("--vault", notes, "rename", "Tea", "c/d", "--folder").returncode == 0
    moved = text.replace("a/Tea.md", "c/d/Tea.md").replace("a/tea", "c/d/Tea")
    assert (notes / "b.md").read_text(encoding="utf-8") == moved
    assert "to: ../../b.md," in (notes / "c/d/Tea.md").read_text(encoding="utf-8")


def test_a_name_that_another_file_has_becomes_a_path_when_its_note_moves(run: Run, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / "sub/deep").mkdir(parents=True)
    for path, text in (("Tea", "Green."), ("sub/deep/Tea", "Black."), ("b", "[[Tea]]")):
        (notes / f"{path}.md").write_text(text, encoding="utf-8")
    assert run("--vault", notes, "rename", "Tea.md", "sub/x/y/z", "--folder").returncode == 0
    assert (notes / "b.md").read_text(encoding="utf-8") == "[[sub/x/y/z/Tea]]"
