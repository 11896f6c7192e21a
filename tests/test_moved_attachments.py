"""Links to pictures and other attachments when a note moves."""

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


def test_pictures_move_with_their_folder_in_an_editor(editor: Editor, notes: Path) -> None:
    asked = {"files": [{"oldUri": uri(notes / "trips"), "newUri": uri(notes / "past/2026")}]}
    assert editor.ask("workspace/willRenameFiles", asked) == {"documentChanges": []}
    asked = {"files": [{"oldUri": uri(notes / "trips/Rome.md"), "newUri": uri(notes / "Rome.md")}]}
    made = apply_workspace_edit(editor.ask("workspace/willRenameFiles", asked), {})
    assert (made[uri(notes / "trips/Rome.md")] or "").count("![m](trips/img/map.png 'Map')") == 1
