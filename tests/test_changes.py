"""Writing notes: complete or not at all, never over somebody else's writing, and nothing left behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from conftest import write_files
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.errors import ChangedOnDisk, UnreadableInput
from memory_kb.store.file_edits import FileEdit, NoteText, apply, read_note_text
from memory_kb.text import decode, encode
from memory_kb.vault import find_vault

posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes and links")


def files_of(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones included."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }


@posix
def test_a_new_file_has_the_mode_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        apply(FileEdit("a.md", None, b"New."), tmp_path / "a.md")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.md").stat().st_mode) == 0o640


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.md": "Theirs."})
    with pytest.raises(ChangedOnDisk, match=r"a\.md was changed by somebody else"):
        apply(FileEdit("a.md", None, b"Ours."), tmp_path / "a.md")
    assert files_of(tmp_path) == {"a.md": b"Theirs."}


@posix
def test_a_new_file_is_not_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.md").symlink_to("elsewhere.md")
    with pytest.raises(ChangedOnDisk):
        apply(FileEdit("a.md", None, b"Ours."), tmp_path / "a.md")
    assert files_of(tmp_path) == {}


@pytest.mark.parametrize("after", [b"Ours.", None], ids=["replace", "remove"])
@pytest.mark.parametrize("theirs", [b"Old!", b"", b"Old.\n"], ids=["other", "emptied", "longer"])
def test_bytes_that_moved_are_left_alone(tmp_path: Path, after: bytes | None, theirs: bytes) -> None:
    write_files(tmp_path, {"a.md": theirs})
    with pytest.raises(ChangedOnDisk):
        apply(FileEdit("a.md", b"Old.", after), tmp_path / "a.md")
    assert files_of(tmp_path) == {"a.md": theirs}


@pytest.mark.parametrize("after", [b"Ours.", None], ids=["replace", "remove"])
def test_a_file_that_is_gone_stays_gone(tmp_path: Path, after: bytes | None) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        with pytest.raises(ChangedOnDisk):
            apply(FileEdit("a.md", b"Old.", after), folder / "a.md")
    assert files_of(tmp_path) == {}


@posix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever runs this may write anywhere")
def test_a_folder_that_may_not_be_written_is_an_error_with_a_name(tmp_path: Path) -> None:
    write_files(tmp_path, {"locked/a.md": "Old."})
    (tmp_path / "locked").chmod(0o500)
    try:
        for before, name in ((b"Old.", "a.md"), (None, "new.md")):
            with pytest.raises(UnreadableInput, match="cannot be written"):
                apply(FileEdit(f"locked/{name}", before, b"New."), tmp_path / "locked" / name)
    finally:
        (tmp_path / "locked").chmod(0o700)
    assert files_of(tmp_path) == {"locked/a.md": b"Old."}


@given(
    st.binary(max_size=60)
    | st.lists(
        st.sampled_from([b"\r\n", b"\n", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", "é".encode(), b"---\n"]), max_size=9
    ).map(b"".join)
)
def test_any_bytes_survive_being_text(data: bytes) -> None:
    assert encode(NoteText("a.md", data).text) == data
    assert encode("\ufeff" + decode(data)) == b"\xef\xbb\xbf" + data


def test_a_note_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder.md").mkdir()
    vault = find_vault(tmp_path, tmp_path / "home", environ={}, cwd=tmp_path)
    for name in ("missing.md", "folder.md", "missing/a.md"):
        with pytest.raises(UnreadableInput, match=name):
            read_note_text(vault, name)
