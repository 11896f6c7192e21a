"""Files whose names are no UTF-8: one of them stops nothing, and it is named as it can be printed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Files, write_files
from importing import counts

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from repositories import Clone

pytestmark = pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the file system takes only valid names")

Open = Callable[..., KnowledgeBase]
ODD = os.fsdecode(b"caf\xe9.md")
FILES = {"memory/config.yaml": "", f"memory/{ODD}": "---\nid: otters-1\nkind: fact\n---\nOtters hold hands.\n"}


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("odd", [ODD, os.fsdecode(b"caf\xe9/inner.md")], ids=["file", "folder"])
def test_an_import_leaves_such_a_file_out_and_takes_the_rest(
    open_kb: Open, folder: Path, tmp_path: Path, odd: str, dry_run: bool
) -> None:
    source = write_files(
        tmp_path / "theirs", {".obsidian/app.json": "{}", odd: "Otters.\n", "tea.md": "Green tea wants 70 degrees.\n"}
    )
    report = open_kb(folder).import_(source, dry_run=dry_run)
    assert counts(report) == {("note", "created"): 1}
    (left_out,) = report.left_out
    assert left_out.first.startswith("theirs/caf\\xe9")
    assert "not valid UTF-8" in left_out.why


def test_such_a_file_can_be_imported_by_itself(open_kb: Open, folder: Path, tmp_path: Path) -> None:
    source = write_files(tmp_path / "theirs", {ODD: "Otters hold hands.\n"})
    report = open_kb(folder).import_(source / ODD, format="obsidian")
    assert (report.source, counts(report)) == ("caf\\xe9.md", {("note", "created"): 1})


def test_lint_finds_such_a_file_by_its_name(open_kb: Open, vault: Callable[[Files], Path]) -> None:
    kb = open_kb(vault({f"memory/{ODD}": "Otters.\n", "memory/b.md": "See [[nowhere]].\n"}))
    for name in (f"memory/{ODD}", "memory/caf\\xe9.md"):
        (problem,) = kb.lint([name])
        assert problem.path == "memory/caf\\xe9.md"


def test_such_a_name_is_printed_in_the_same_way_everywhere(clone: Clone) -> None:
    assert "memory/caf\\xe9.md: " in clone.kb("show", "otters-1", "--history")
    assert (
        json.loads(clone.kb("show", "otters-1", "--history", "--json"))["versions"][0]["path"] == "memory/caf\\xe9.md"
    )
