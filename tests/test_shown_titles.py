"""What a note without a title of its own is called: its heading if that is no section, else its file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

SECTIONS = "### Meta\n2024-09-28\n\n### Section\n\n##### Put\n\n### Summary\n"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        pytest.param(SECTIONS, "lesson", id="sections"),
        pytest.param("## Part\n\nText.\n\n# Whole\n", "lesson", id="a-heading-above-it"),
        pytest.param("## Put\n\n### Before\n\n### Behind\n", "Put", id="sections-below-it"),
        pytest.param("# Put\n\n# Yank\n", "Put", id="first-level"),
        pytest.param("## Put\n\n```md\n## Yank\n```\n", "Put", id="code"),
        pytest.param(f"---\nid: put\n---\n{SECTIONS}", "Meta", id="an-id"),
        pytest.param('+++\ndate = 2024-02-19\ntitle = "How to put"\n+++\n\n# Put\n', "How to put", id="toml"),
        pytest.param("+++\r\ntitle = 'How to put'\r\n+++\r\nText.\r\n", "How to put", id="toml-with-windows-lines"),
        pytest.param('+++\ndraft = true\n+++\ntitle = "No"\n', "lesson", id="toml-without-a-title"),
        pytest.param('+++\ndraft = true\n[extra]\ntitle = "No"\n+++\nText.\n', "lesson", id="toml-title-of-a-table"),
        pytest.param('+++\ntitle = "' + "a" * 50_000 + "\n", "lesson", id="toml-that-never-closes"),
    ],
)
def test_what_a_note_is_called(vault: Vault, open_kb: Open, text: str, title: str) -> None:
    with open_kb(vault({"lesson.md": text})) as kb:
        assert [entry.title for entry in kb.list()] == [title]


def test_of_a_note_of_sections_the_file_is_renamed(vault: Vault, open_kb: Open) -> None:
    folder = vault({"lesson.md": SECTIONS, "all.md": "See [[lesson]].\n"})
    with open_kb(folder) as kb:
        kb.rename("lesson.md", "Third lesson", title=True)
        assert (folder / "Third lesson.md").read_text() == SECTIONS
        assert (folder / "all.md").read_text() == "See [[Third lesson]].\n"


def test_a_title_in_toml_is_not_renamed(vault: Vault, open_kb: Open) -> None:
    text = '+++\ntitle = "How to put"\n+++\nText.\n'
    folder = vault({"lesson.md": text})
    with open_kb(folder) as kb:
        with pytest.raises(CannotSplice, match="TOML"):
            kb.rename("lesson.md", "Third lesson", title=True)
        assert (folder / "lesson.md").read_text() == text


def test_entries_of_one_file_are_called_by_their_headings(vault: Vault, open_kb: Open) -> None:
    folder = vault({"notes.md": f"{SECTIONS}\n---\nkind: fact\n---\n## Second\n\n## Third\n"})
    with open_kb(folder) as kb:
        assert [entry.title for entry in kb.list()] == ["Meta", "Second"]
