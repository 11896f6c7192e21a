"""A file may be named in any way that leads to it; what holds for it is found all the same."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run
from support import entry, ids

from memory_kb import KnowledgeBase
from memory_kb.store.project_files import path_in_project

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
FILES = {
    "memory/config.yaml": "",
    "memory/edge.md": entry("The loop never blocks.", id="edge", kind="fact", applies_to="['edge/agent/**']"),
    "memory/web.md": entry("Pages are translated.", id="web", kind="fact", applies_to="['web/**']"),
    "memory/any.md": entry("Loops have names.", id="any", kind="fact"),
    "memory/all.md": entry("All is typed.", id="all", kind="fact", applies_to="['**']"),
    "edge/agent/loop.py": "",
    "web/a.ts": "",
}


@pytest.fixture
def project(vault: MakeVault) -> Path:
    return vault(FILES)


WAYS = {
    "from the project": ("edge/agent/loop.py", "."),
    "with a dot": ("./edge/agent/loop.py", "."),
    "with backslashes": ("edge\\agent\\loop.py", "."),
    "from its folder": ("loop.py", "edge/agent"),
    "with a dot from its folder": ("./loop.py", "edge/agent"),
    "from a folder above it": ("agent/loop.py", "edge"),
    "from a folder beside it": ("../edge/agent/loop.py", "web"),
    "from the project, elsewhere in it": ("edge/agent/loop.py", "edge/agent"),
    "from the project, far away": ("edge/agent/loop.py", "/"),
    "round about": ("web/../edge/./agent//loop.py", "."),
    "a new file from its folder": ("new.py", "edge/agent"),
    "a new file from the project": ("edge/agent/new.py", "web"),
    "a new file from both": ("edge/agent/new.py", "edge/agent"),
    "a new file in a new folder": ("edge/agent/deep/down/new.py", "web"),
    "absolute": ("{project}/edge/agent/loop.py", "/"),
    "absolute and new": ("{project}/edge/agent/new.py", "/"),
    "absolute and round about": ("{project}/web/../edge/agent/loop.py", "/"),
    "through a link": ("{link}/edge/agent/loop.py", "/"),
    "as an address": ("file://{project}/edge/agent/loop.py", "/"),
}


def test_every_way_to_a_file(project: Path, tmp_path: Path, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "link"
    link.symlink_to(project)
    kb = open_kb(project)
    for way, (file, here) in WAYS.items():
        monkeypatch.chdir(project / here)
        named = file.format(project=project, link=link)
        assert sorted(ids(kb, file=named)) == ["all", "edge"], way
        assert [one.id for one in kb.list(file=named)] == ["all", "edge"], way
        assert {"edge", "any", "all"} <= set(kb.context("name the loops", files=[named]).ids), way
        assert "web" not in kb.context("translate the pages", files=[named]).ids, way


OUTSIDE = {
    "above": "../other.py",
    "absolute": "/etc/hosts",
    "a name that begins alike": "{project}2/edge/agent/loop.py",
    "far up": "../../../../../../../../x",
}


@pytest.mark.parametrize("file", OUTSIDE.values(), ids=OUTSIDE)
def test_a_file_outside_matches_nothing_and_suppresses_nothing(
    project: Path, open_kb: Open, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.chdir(project)
    kb = open_kb(project)
    named = file.format(project=project)
    result = kb.search("", file=named)
    assert result.hits == ()
    assert any("outside the project" in reason for reason in result.degraded)
    assert kb.context("the loop blocks", files=[named]).ids == kb.context("the loop blocks").ids


def test_from_outside_a_path_is_the_projects(project: Path, tmp_path: Path) -> None:
    assert path_in_project("edge/agent/loop.py", project, tmp_path) == "edge/agent/loop.py"
    assert path_in_project("./web/new.ts", project, tmp_path) == "web/new.ts"
    assert path_in_project("../other.py", project, tmp_path) is None
    assert path_in_project(str(project), project, tmp_path) == "."


def test_a_link_inside_keeps_its_name(project: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (project / "lib").symlink_to(tmp_path / "shared")
    assert path_in_project("lib/a.py", project, project) == "lib/a.py"
    assert path_in_project(f"{project}/lib/a.py", project, project) == "lib/a.py"
    assert path_in_project("lib/../secret.py", project, project) is None


def test_another_case_is_another_file_where_it_is(project: Path) -> None:
    if not os.path.exists(project / "EDGE"):
        assert path_in_project("EDGE/agent/loop.py", project, project) == "EDGE/agent/loop.py"


@pytest.mark.parametrize("file", ["a\0b.py", "x" * 5_000, "file://", "\udcff.py", "."])
def test_no_path_is_an_error(project: Path, open_kb: Open, file: str) -> None:
    assert {"any"} <= set(open_kb(project).context("name the loops", files=[file]).ids)
    open_kb(project).search("loops", file=file)


def test_the_command_from_a_folder_below(project: Path, run: Run) -> None:
    done = run("search", "--file", "loop.py", "--json", cwd=project / "edge/agent")
    assert "edge" in [hit["id"] for hit in json.loads(done.stdout)["hits"]]
    told = run("context", "name the loops", "--file", project / "edge/agent/loop.py", cwd=project)
    assert "The loop never blocks." in told.stdout
    assert run("context", "--file", "/etc/hosts", cwd=project).returncode == 2
