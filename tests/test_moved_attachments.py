"""Links to pictures and other attachments when a note moves, or the file itself in an editor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Run, write_files
from lsp_client import Editor, apply_workspace_edit

FILES = {
    "trips/Rome.md": "# Rome\n\n![[map.png|300]] ![[img/map.png]] ![[trips/img/map.png]] ![m](img/map.png 'Map') `![[map.png]]`\n",
    "Home.md": "![[map.png]] [the map](trips/img/map.png) ![[a b.pdf]] [pdf](files/a%20b.pdf)\n",
    "Plain.md": "No link, but map.png is named.\n",
    "trips/img/map.png": "\x89PNG",
    "files/a b.pdf": "%PDF",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return write_files(tmp_path / "notes", FILES)


def uri(file: Path) -> str:
    return file.as_uri()


def test_a_note_that_moves_keeps_its_pictures(run: Run, notes: Path) -> None:
    assert run("--vault", notes, "rename", "trips/Rome.md", "2026/may", "--folder").returncode == 0
    assert (notes / "2026/may/Rome.md").read_text() == (
        "# Rome\n\n![[map.png|300]] ![[../../trips/img/map.png]] ![[trips/img/map.png]] "
        "![m](../../trips/img/map.png 'Map') `![[map.png]]`\n"
    )


def test_a_note_that_moves_keeps_a_file_whose_name_is_in_angle_brackets(run: Run, notes: Path) -> None:
    write_files(notes, {"files/List.md": "[pdf](<a b.pdf>) ![p](<a b.pdf> 'T') [x](<https://a b.pdf>) [y](<no.pdf>)\n"})
    assert run("--vault", notes, "rename", "files/List.md", "trips", "--folder").returncode == 0
    assert (notes / "trips/List.md").read_text() == (
        "[pdf](<../files/a b.pdf>) ![p](<../files/a b.pdf> 'T') [x](<https://a b.pdf>) [y](<no.pdf>)\n"
    )


@pytest.fixture
def editor(notes: Path, home: Path) -> Iterator[Editor]:
    one = Editor(home, "--vault", notes, cwd=notes)
    one.start()
    yield one
    one.kill()


def test_links_follow_a_picture_that_an_editor_moves(editor: Editor, notes: Path) -> None:
    asked = {"files": [{"oldUri": uri(notes / "trips/img/map.png"), "newUri": uri(notes / "Attachments/plan.png")}]}
    edit = editor.ask("workspace/willRenameFiles", asked)
    assert not [one for one in edit["documentChanges"] if "kind" in one]
    made = apply_workspace_edit(edit, {})
    assert made == {
        uri(notes / "Home.md"): "![[plan.png]] [the map](Attachments/plan.png) ![[a b.pdf]] [pdf](files/a%20b.pdf)\n",
        uri(
            notes / "trips/Rome.md"
        ): "# Rome\n\n![[plan.png|300]] ![[../Attachments/plan.png]] ![[Attachments/plan.png]] "
        "![m](../Attachments/plan.png 'Map') `![[map.png]]`\n",
    }


def test_links_follow_a_folder_of_attachments_that_an_editor_renames(editor: Editor, notes: Path) -> None:
    asked = {"files": [{"oldUri": uri(notes / "files"), "newUri": uri(notes / "papers")}]}
    made = apply_workspace_edit(editor.ask("workspace/willRenameFiles", asked), {})
    assert made == {uri(notes / "Home.md"): FILES["Home.md"].replace("](files/", "](papers/")}


def test_a_name_that_is_taken_elsewhere_becomes_a_path(editor: Editor, notes: Path) -> None:
    (notes / "other").mkdir()
    (notes / "other/plan.png").write_bytes(b"")
    asked = {"files": [{"oldUri": uri(notes / "trips/img/map.png"), "newUri": uri(notes / "Attachments/plan.png")}]}
    made = apply_workspace_edit(editor.ask("workspace/willRenameFiles", asked), {})
    assert (made[uri(notes / "Home.md")] or "").startswith("![[Attachments/plan.png]] ")
