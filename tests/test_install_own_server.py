"""A server called memory-kb that somebody wrote by hand: installing and uninstalling leave it alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import write_files

from memory_kb import KnowledgeBase
from memory_kb.agents.config_files import Server, put_in, take_out

Open = Callable[[Path], KnowledgeBase]
OWN_JSON = '{\n  "mcpServers": {"memory-kb": {"command": "/opt/kb.sh", "env": {"A": "b"}}} }\n'
OWN_TABLE = """# mine
[mcp_servers.memory-kb]
command = "memory-kb"
# all the tools
args = ["mcp", "--profile", "full"]

[mcp_servers.memory-kb.env]
A = "b"
# the end

[other]
a = 1
"""
OWN: list[tuple[str, str, str]] = [
    ("claude-code", ".mcp.json", OWN_JSON),
    (
        "claude-code",
        ".mcp.json",
        '{"mcpServers": {"memory-kb": {"command": "memory-kb", "args": ["mcp", "--vault", "/my/notes"]}}}',
    ),
    ("claude-code", ".mcp.json", '{"mcpServers": {"memory-kb": {"type": "http", "url": "http://127.0.0.1:8000"}}}'),
    ("cursor", ".cursor/mcp.json", OWN_JSON),
    (
        "vscode",
        ".vscode/mcp.json",
        '{"servers": {"memory-kb": {"type": "stdio", "command": "uvx", "args": ["memory-kb", "mcp"]}}}',
    ),
    (
        "opencode",
        "opencode.json",
        '{"mcp": {"memory-kb": {"type": "local", "command": ["memory-kb", "mcp"], "enabled": false}}}',
    ),
    ("codex", ".codex/config.toml", OWN_TABLE),
    (
        "codex",
        ".codex/config.toml",
        '[mcp_servers.memory-kb]\ncommand = "memory-kb"\nargs = ["mcp"]\nenabled = false\n\n[other]\na=1\n',
    ),
    ("codex", ".codex/config.toml", "[mcp_servers]\nmemory-kb = {command = '/opt/x'} # mine"),
    ("codex", ".codex/config.toml", 'mcp_servers.memory-kb.command = "/opt/x"\r\n'),
]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and ".memory-kb" not in file.parts
    }


def server(folder: Path, file: str = ".mcp.json") -> Any:
    return json.loads((folder / file).read_text()).get("mcpServers", {}).get("memory-kb")


@pytest.mark.parametrize(("agent", "name", "text"), OWN)
def test_it_stays_byte_for_byte(agent: str, name: str, text: str, folder: Path, open_kb: Open) -> None:
    write_files(folder, {name: text})
    before = tree(folder)
    report = open_kb(folder).install(agent)
    assert (folder / name).read_bytes() == text.encode()
    said = f"{name} has a server of its own called memory-kb, which is left as it is; "
    assert f"{said}to have ours, take it out and install again" in report.notices
    assert tree(folder).keys() > before.keys()
    open_kb(folder).uninstall(agent)
    assert tree(folder) == before


def test_without_the_record_what_no_install_writes_stays(folder: Path, open_kb: Open) -> None:
    write_files(folder, {".mcp.json": OWN_JSON, ".codex/config.toml": OWN_TABLE})
    for agent in ("claude-code", "codex"):
        open_kb(folder).uninstall(agent)
    assert ((folder / ".mcp.json").read_text(), (folder / ".codex/config.toml").read_text()) == (OWN_JSON, OWN_TABLE)


def test_ours_is_renewed_by_another_install(folder: Path, open_kb: Open) -> None:
    write_files(folder, {"CLAUDE.md": "# Us\n"})
    before = tree(folder)
    open_kb(folder).install("claude-code")
    open_kb(folder).install("claude-code", pin=True)
    assert server(folder)["args"] == ["mcp", "--vault", str(folder)]
    assert not any("left" in one for one in open_kb(folder).install("claude-code").notices)
    assert server(folder)["args"] == ["mcp"]
    open_kb(folder).uninstall("claude-code")
    assert tree(folder) == before


def test_what_was_added_to_ours_stays_until_it_is_uninstalled(folder: Path, open_kb: Open) -> None:
    open_kb(folder).install("claude-code")
    file = folder / ".mcp.json"
    file.write_text(file.read_text().replace('"memory-kb": {', '"memory-kb": {\n      "env": {"A": "b"},'))
    text = file.read_text()
    assert open_kb(folder).install("claude-code").notices == ()
    assert file.read_text() == text
    open_kb(folder).uninstall("claude-code")
    assert not file.exists()


def test_what_somebody_put_in_the_place_of_ours_is_theirs(folder: Path, open_kb: Open) -> None:
    open_kb(folder).install("codex")
    (folder / ".codex/config.toml").write_text(OWN_TABLE)
    assert open_kb(folder).install("codex").notices
    open_kb(folder).uninstall("codex")
    assert tree(folder) == {"memory/config.yaml": b"", ".codex/config.toml": OWN_TABLE.encode()}


def test_ours_as_somebody_else_committed_it_can_be_uninstalled(folder: Path, open_kb: Open) -> None:
    open_kb(folder).install("codex")
    (folder / "memory/.memory-kb/installs.json").unlink()
    open_kb(folder).install("codex")
    open_kb(folder).uninstall("codex")
    assert "memory-kb" not in tomllib.loads(
        (folder / ".codex/config.toml").read_text() if (folder / ".codex/config.toml").exists() else ""
    )
    assert not (folder / "AGENTS.md").exists() or "memory-kb" not in (folder / "AGENTS.md").read_text()


def test_a_server_that_is_no_object_is_nobodys() -> None:
    part = Server(("s", "memory-kb"), {"command": "memory-kb", "args": ["mcp"]})
    for text in (
        b'{"s": {"memory-kb": [1]}}',
        b'{"s": {"memory-kb": {"command": 1, "args": 2}}}',
        b'{"s": {"memory-kb": {"command": "memory-kb"}}}',
    ):
        data, trace = put_in("x.json", text, [part])
        assert (data, take_out("x.json", data, [part], trace), take_out("x.json", data, [part], None)) == (
            text,
            text,
            text,
        )
