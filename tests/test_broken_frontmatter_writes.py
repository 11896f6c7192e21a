"""No verb writes into a note whose frontmatter has a typo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

OVEN = "---\nid: oven\nkind: fact\ntags: [a, b\n---\nThe oven is hot.\n"


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda kb: kb.forget("oven"), id="forget"),
        pytest.param(lambda kb: kb.forget("memory/oven.md"), id="forget-by-path"),
        pytest.param(lambda kb: kb.forget("oven", delete=True), id="delete"),
        pytest.param(lambda kb: kb.rename("oven", "stove"), id="rename"),
        pytest.param(lambda kb: kb.learn("The oven is hot."), id="learn-again"),
    ],
)
def test_no_verb_writes_into_a_note_that_it_cannot_read(
    vault: Vault, open_kb: Open, write: Callable[[KnowledgeBase], object]
) -> None:
    folder = vault({"memory/oven.md": OVEN})
    kb = open_kb(folder)
    with pytest.raises(CannotSplice, match=r"memory/oven\.md:4 cannot be read"):
        write(kb)
    assert (folder / "memory/oven.md").read_text() == OVEN


def test_the_line_is_that_of_the_file_in_a_later_entry_too(vault: Vault, open_kb: Open) -> None:
    text = "---\nid: a\n---\nOne.\n\n" + OVEN
    folder = vault({"memory/a.md": text})
    kb = open_kb(folder)
    with pytest.raises(CannotSplice, match=r"memory/a\.md:9 cannot be read"):
        kb.forget("oven")
    kb.forget("a")
    assert (folder / "memory/a.md").read_text() == text.replace("id: a\n", "id: a\nstatus: retired\n")


def test_an_edit_may_mend_it(vault: Vault, open_kb: Open) -> None:
    folder = vault({"memory/oven.md": OVEN})
    kb = open_kb(folder)
    kb.edit("oven", OVEN.replace("b\n", "b]\n"), kb.source("oven").hash)
    assert kb.lint() == ()
    assert kb.forget("oven").id == "oven"
