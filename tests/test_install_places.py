"""What a project's files say of where the vault is: nothing that another clone lacks, where the agent allows it."""

from __future__ import annotations

import itertools
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import AGENT_NAMES

Open = Callable[[Path], KnowledgeBase]
WITH_A_VARIABLE = [("cursor", ".cursor/mcp.json", "mcpServers"), ("vscode", ".vscode/mcp.json", "servers")]


def arguments(file: Path, group: str) -> list[str]:
    found = json.loads(file.read_text())[group]["memory-kb"]["args"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_nothing_of_this_machine_is_in_them(agent: str, folder: Path, open_kb: Open) -> None:
    open_kb(folder).install(agent)
    written = [file for file in folder.rglob("*") if file.is_file() and "memory" not in file.relative_to(folder).parts]
    assert written
    assert [
        file.name for file in written if str(folder) in file.read_text() or str(Path.home()) in file.read_text()
    ] == []


@pytest.mark.parametrize(("agent", "file", "group"), WITH_A_VARIABLE)
def test_the_agent_s_variable_leads_to_the_vault(
    agent: str, file: str, group: str, folder: Path, open_kb: Open, tmp_path: Path
) -> None:
    (folder / "apps/web").mkdir(parents=True)
    far = tmp_path / "elsewhere"
    far.mkdir()
    kb = open_kb(folder)
    named = {}
    for place in (folder, folder / "apps/web", tmp_path, far):
        kb.install(agent, folder=place)
        named[place.name] = arguments(place / file, group)[1:]
        kb.uninstall(agent, folder=place)
        assert not (place / file).exists()
    assert named == {
        "vault": ["--vault", "${workspaceFolder}"],
        "web": ["--vault", "${workspaceFolder}/../.."],
        tmp_path.name: ["--vault", "${workspaceFolder}/vault"],
        "elsewhere": ["--vault", str(folder)],
    }


@pytest.mark.parametrize(("agent", "file", "group"), WITH_A_VARIABLE)
def test_a_vault_that_is_pinned_is_named_in_full(
    agent: str, file: str, group: str, folder: Path, open_kb: Open
) -> None:
    open_kb(folder).install(agent, pin=True)
    assert arguments(folder / file, group) == ["mcp", "--vault", str(folder)]


def test_files_beside_the_vault_keep_their_permissions(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    (place / ".cursor").mkdir(parents=True)
    (place / ".cursor/mcp.json").write_text("{}\n")
    (place / ".cursor/mcp.json").chmod(0o640)
    open_kb(folder).install("cursor", folder=place)
    assert arguments(place / ".cursor/mcp.json", "mcpServers")
    assert stat.S_IMODE((place / ".cursor/mcp.json").stat().st_mode) == 0o640


def test_new_files_beside_the_vault_are_for_their_owner_alone(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir()
    open_kb(folder).install("cursor", folder=place)
    assert stat.S_IMODE((place / ".cursor/mcp.json").stat().st_mode) == 0o600


def test_a_pin_goes_with_an_install_without_it(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.install("cursor", pin=True)
    kb.install("cursor")
    assert arguments(folder / ".cursor/mcp.json", "mcpServers") == ["mcp", "--vault", "${workspaceFolder}"]


def test_hooks_for_all_projects_are_proved_where_there_is_a_vault(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    kb = open_kb(folder)
    kb.install("cursor", scope="user")
    hooks = itertools.takewhile(lambda check: "hook" in check.what, kb.prove_agent("cursor", scope="user"))
    assert {check.is_good for check in hooks} == {True}
