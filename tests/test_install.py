"""Installing into agents: their files as they document them, other people's bytes, and the way back."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Files, Run, write_files
from installing import CLAUDE_SETTINGS, CODEX_CONFIG

from memory_kb import KnowledgeBase
from memory_kb.agents import config_files
from memory_kb.agents.agent import AGENT_NAMES
from memory_kb.errors import CannotSplice

HAND_MADE: dict[str, str | bytes] = {
    ".mcp.json": '{"mcpServers":{"other":{"command":"x","args":[]}}}',
    ".claude/settings.json": CLAUDE_SETTINGS,
    "CLAUDE.md": "# House rules\r\n\r\nNo tabs.",
    ".codex/config.toml": CODEX_CONFIG,
    ".codex/hooks.json": '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{\n\t\t\t\t"hooks": []\n\t\t\t}\n\t\t]\n\t}\n}\n',
    "AGENTS.md": "\ufeff# Us\n",
    ".cursor/mcp.json": "",
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "./audit.sh"}]}}\n',
    ".gemini/settings.json": '{\r\n  "theme": "GitHub",\r\n  "mcpServers": {}\r\n}\r\n',
    "GEMINI.md": "",
    ".vscode/mcp.json": '{\n  "inputs": []\n}\n',
    "opencode.jsonc": '{\n  "$schema": "https://opencode.ai/config.json",\n  "mcp": {\n  }\n}\n',
}

Open = Callable[[Path], KnowledgeBase]


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file of a project but the vault's."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.relative_to(folder).parts[0] != "memory")
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def load(folder: Path, name: str) -> Any:
    return config_files.parse_json(name, (folder / name).read_bytes().decode())


def make(folder: Path, files: Files) -> dict[str, bytes]:
    write_files(folder, files)
    return tree(folder)


@pytest.mark.parametrize("agent", AGENT_NAMES)
def test_install_then_uninstall_leaves_no_byte(agent: str, folder: Path, open_kb: Open) -> None:
    open_kb(folder).install(agent)
    installed = tree(folder)
    assert installed
    assert open_kb(folder).install(agent).changes == ()
    assert tree(folder) == installed
    open_kb(folder).uninstall(agent)
    assert [entry.name for entry in folder.iterdir()] == ["memory"]
    assert open_kb(folder).uninstall(agent).changes == ()


def test_files_of_others_come_back_byte_for_byte(folder: Path, open_kb: Open) -> None:
    before = make(folder, HAND_MADE)
    for agent in AGENT_NAMES:
        open_kb(folder).install(agent)
    held = load(folder, ".claude/settings.json")
    assert held["permissions"] == {"allow": ["Bash(git *)"], "deny": []}
    assert held["model"] == "opus"
    assert [group["hooks"][0]["command"] for group in held["hooks"]["PostToolUse"]] == [
        "./format.sh",
        "memory-kb hook tool --agent claude-code",
    ]
    toml = tomllib.loads((folder / ".codex/config.toml").read_text())
    assert toml["mcp_servers"]["memory-kb"] == {"command": "memory-kb", "args": ["mcp"]}
    assert toml["mcp_servers"]["docs"]["args"] == ["[not a table]", "x"]
    for agent in AGENT_NAMES:
        open_kb(folder).uninstall(agent)
    assert tree(folder) == before


def test_what_is_written_is_what_the_agents_document(folder: Path, open_kb: Open) -> None:
    for agent in AGENT_NAMES:
        open_kb(folder).install(agent)
    server = {"command": "memory-kb", "args": ["mcp"]}
    assert load(folder, ".mcp.json") == {"mcpServers": {"memory-kb": server}}
    hooks = load(folder, ".claude/settings.json")["hooks"]
    assert list(hooks) == [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "Stop",
        "SessionEnd",
    ]
    call = {"type": "command", "command": "memory-kb hook prompt --agent claude-code", "timeout": 10}
    assert hooks["UserPromptSubmit"] == [{"hooks": [call]}]
    assert hooks["PreToolUse"][0]["matcher"] == "Edit|MultiEdit|Write|NotebookEdit"
    assert (
        load(folder, ".codex/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["command"]
        == "memory-kb hook stop --agent codex"
    )
    # Codex warns at every start of a longer one.
    assert load(folder, ".codex/hooks.json")["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
    assert load(folder, ".cursor/mcp.json")["mcpServers"]["memory-kb"]["args"] == [
        "mcp",
        "--vault",
        "${workspaceFolder}",
    ]
    cursor = load(folder, ".cursor/hooks.json")
    assert (cursor["version"], cursor["hooks"]["beforeSubmitPrompt"]) == (
        1,
        [{"command": "memory-kb hook prompt --agent cursor"}],
    )
    gemini = load(folder, ".gemini/settings.json")
    assert gemini["mcpServers"]["memory-kb"] == server
    assert gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] == 10_000
    vscode = {"type": "stdio", "command": "memory-kb", "args": ["mcp", "--vault", "${workspaceFolder}"]}
    assert load(folder, ".vscode/mcp.json") == {"servers": {"memory-kb": vscode}}
    assert load(folder, "opencode.json") == {
        "mcp": {"memory-kb": {"type": "local", "command": ["memory-kb", "mcp"], "enabled": True}}
    }


def test_a_file_that_was_edited_since_loses_only_our_parts(folder: Path, open_kb: Open) -> None:
    open_kb(folder).install("claude-code")
    open_kb(folder).install("codex")
    settings_file = folder / ".claude/settings.json"
    held = json.loads(settings_file.read_text())
    held["hooks"]["Stop"][0]["hooks"].append({"type": "command", "command": "./mine.sh"})
    held["model"] = "opus"
    settings_file.write_text(json.dumps(held))
    with (folder / "CLAUDE.md").open("a") as file:
        file.write("\nMine.\n")
    with (folder / ".codex/config.toml").open("a") as file:
        file.write(
            '\n[mcp_servers.memory-kb.tools.memory_recall]\napproval_mode = "approve"\n\n[projects."/x"]\ntrust_level = "trusted"\n'
        )
    open_kb(folder).uninstall("claude-code")
    open_kb(folder).uninstall("codex")
    assert json.loads(settings_file.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./mine.sh"}]}]},
        "model": "opus",
    }
    assert (folder / "CLAUDE.md").read_text() == "\nMine.\n"
    assert (folder / ".codex/config.toml").read_text().lstrip() == '[projects."/x"]\ntrust_level = "trusted"\n'


def test_agents_that_share_a_file_leave_it_to_the_last(folder: Path, open_kb: Open) -> None:
    open_kb(folder).install("codex")
    open_kb(folder).install("opencode")
    text = (folder / "AGENTS.md").read_text()
    open_kb(folder).uninstall("codex")
    assert (folder / "AGENTS.md").read_text() == text
    open_kb(folder).uninstall("opencode")
    assert not (folder / "AGENTS.md").exists()


def test_without_the_record_our_parts_still_go(folder: Path, open_kb: Open) -> None:
    make(folder, {".mcp.json": '{\n  "mcpServers": {\n    "other": {}\n  }\n}\n', "CLAUDE.md": "# Us\n"})
    open_kb(folder).install("claude-code")
    (folder / "memory/.memory-kb/installs.json").write_text("broken")
    open_kb(folder).uninstall("claude-code")
    assert (folder / ".mcp.json").read_text() == '{\n  "mcpServers": {\n    "other": {}\n  }\n}\n'
    assert (folder / "CLAUDE.md").read_text() == "# Us\n"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        (".mcp.json", "[]", ".mcp.json:1"),
        (".mcp.json", '{\n\n"mcpServers": 7}', ".mcp.json:3"),
        (".claude/settings.json", '{"hooks": []}', ".claude/settings.json:1"),
        (".claude/settings.json", b'{"a": "\xff"}', ".claude/settings.json:1"),
        ("CLAUDE.md", "<!-- memory-kb:begin install -->\nours\n", "CLAUDE.md:1"),
    ],
)
def test_a_damaged_file_is_one_sentence_and_nothing_is_written(
    name: str, text: str | bytes, line: str, folder: Path, open_kb: Open
) -> None:
    before = make(folder, {name: text})
    with pytest.raises(CannotSplice) as error:
        open_kb(folder).install("claude-code")
    assert str(error.value).startswith(f"not changed: {line}")
    assert len(str(error.value).splitlines()) == 1
    assert tree(folder) == before


@pytest.mark.parametrize(
    "text",
    [
        '{\n  // ours\n  "mcpServers": {}\n}\n',
        '{"mcpServers": {"a": {},}}',
        '{\n  "mcpServers": {\n',
        "[" * 100_000,
    ],
    ids=["comment", "comma", "open", "deep"],
)
def test_json_that_an_edit_could_damage_is_left_and_what_to_paste_is_printed(
    text: str, folder: Path, open_kb: Open, run: Run
) -> None:
    make(folder, {".mcp.json": text})
    for _ in range(2):
        (said,) = [one for one in open_kb(folder).install("claude-code").notices if ".mcp.json" in one]
        pasted = json.loads(said.partition("It needs: ")[2])
        assert pasted == {"mcpServers": {"memory-kb": {"command": "memory-kb", "args": ["mcp"]}}}
    assert (folder / ".mcp.json").read_text() == text
    assert "memory-kb hook prompt" in (folder / ".claude/settings.json").read_text()
    assert open_kb(folder).uninstall("claude-code").notices == ()
    assert tree(folder) == {".mcp.json": text.encode()}
    (folder / ".mcp.json").write_text(f"{text}// memory-kb\n")
    done = run("--vault", folder, "uninstall", "claude-code", "--yes")
    assert ".mcp.json" in done.stderr and "remove what names memory-kb there" in done.stderr
    assert tree(folder) == {".mcp.json": f"{text}// memory-kb\n".encode()}


@pytest.mark.parametrize("text", ["mcp_servers = {docs = {}}\n", "mcp_servers = 1\n", 'x = "open\n'])
def test_toml_that_no_table_can_be_added_to_is_left(text: str, folder: Path, open_kb: Open) -> None:
    before = make(folder, {".codex/config.toml": text})
    with pytest.raises(CannotSplice, match=r"\.codex/config\.toml"):
        open_kb(folder).install("codex")
    assert tree(folder) == before


def test_dry_run_shows_the_diff_and_writes_nothing(folder: Path, run: Run) -> None:
    before = make(folder, {"CLAUDE.md": "# Us\n"})
    shown = run("--vault", folder, "install", "claude-code", "--dry-run").stdout
    assert "+++ CLAUDE.md" in shown
    assert '+    "memory-kb": {' in shown
    assert tree(folder) == before
    assert not (folder / "memory/.memory-kb/installs.json").exists()


def test_undo_takes_an_install_back(folder: Path, open_kb: Open) -> None:
    before = make(folder, {"CLAUDE.md": "# Us\n"})
    open_kb(folder).install("claude-code")
    open_kb(folder).undo()
    assert tree(folder) == before
    open_kb(folder).install("claude-code")
    open_kb(folder).uninstall("claude-code")
    assert tree(folder) == before


@pytest.mark.slow
def test_for_all_that_a_person_does(folder: Path, run: Run, tmp_path: Path, home: Path) -> None:
    state = '{"numStartups": 3, "projects": {"/x": {"mcpServers": {}}}, "mcpServers": {"a": {"command": "a"}}}'
    person = write_files(tmp_path / "person", {".claude.json": state})
    os.chmod(person / ".claude.json", 0o600)
    codex = tmp_path / "codex-home"
    env = {"HOME": str(person), "CODEX_HOME": str(codex)}
    for agent in ("claude-code", "codex"):
        done = run("--vault", folder, "install", agent, "--user", "--pin-vault", env=env)
        assert done.returncode == 0, done.stderr
    held = json.loads((person / ".claude.json").read_text())
    assert held["mcpServers"]["memory-kb"]["args"][-3:] == ["mcp", "--vault", str(folder)]
    assert held["projects"] == {"/x": {"mcpServers": {}}}
    assert (person / ".claude.json").stat().st_mode & 0o777 == 0o600
    assert f"--vault {folder}" in (person / ".claude/settings.json").read_text()
    assert tomllib.loads((codex / "config.toml").read_text())["mcp_servers"]["memory-kb"]["args"][-1] == str(folder)
    assert tree(folder) == {}
    assert (home / ".memory-kb/installs.json").exists()
    for agent in ("claude-code", "codex"):
        assert run("--vault", folder, "uninstall", agent, "--user", env=env).returncode == 0
    assert {
        file.name: file.read_text() for file in person.rglob("*") if file.is_file() and ".local" not in file.parts
    } == {".claude.json": state}
    assert not codex.exists()


def test_vs_code_has_no_place_for_a_person_and_strangers_are_named(folder: Path, run: Run) -> None:
    done = run("--vault", folder, "install", "vscode", "--user")
    assert (done.returncode, "VS Code" in done.stderr) == (2, True)
    done = run("--vault", folder, "install", "emacs")
    assert (done.returncode, "claude-code" in done.stderr) == (2, True)


def test_a_project_elsewhere_gets_the_vault(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    project = tmp_path / "my code"
    project.mkdir()
    open_kb(folder).install("claude-code", folder=project)
    assert json.loads((project / ".mcp.json").read_text())["mcpServers"]["memory-kb"]["args"] == [
        "mcp",
        "--vault",
        str(folder),
    ]
    open_kb(folder).uninstall("claude-code", folder=project)
    assert list(project.iterdir()) == []


def test_a_link_is_followed(folder: Path, open_kb: Open) -> None:
    make(folder, {"AGENTS.md": "# Us\n"})
    (folder / "CLAUDE.md").symlink_to("AGENTS.md")
    open_kb(folder).install("claude-code")
    open_kb(folder).install("codex")
    assert (folder / "CLAUDE.md").is_symlink()
    assert (folder / "AGENTS.md").read_text().count("memory-kb:begin install") == 1
    open_kb(folder).uninstall("claude-code")
    open_kb(folder).uninstall("codex")
    assert (folder / "AGENTS.md").read_text() == "# Us\n"


RULES = {
    "memory/config.yaml": "",
    "memory/rules/a.md": "---\nid: rule-a\nkind: rule\nconfidence: 0.9\nmaturity: proven\n---\nBuffer chunks.\n",
    "memory/rules/b.md": "---\nid: pit-b\nkind: pitfall\nconfidence: 0.7\n---\nNever use <!-- memory-kb:end --> naked sleeps.\n",
    "memory/learnings/p.md": "---\nid: pol-p\nkind: policy\npriority: critical\n---\nAll times are UTC.\n",
    "memory/learnings/f.md": "---\nid: fact-f\nkind: fact\n---\nThe sky is blue.\n",
}


def test_a_policy_for_agents_md_says_its_title(vault: Any, run: Run) -> None:
    head = "---\nid: pol-n\nkind: policy\npriority: critical\ntitle: Names are deleted after 30 days\n---\n"
    note = f"{head}It was the first question, so here is the answer.\n"
    folder = vault({"memory/learnings/n.md": note})
    wanted = "- [policy] Names are deleted after 30 days: It was the first question, so here is the answer. (pol-n)"
    assert wanted in run("--vault", folder, "export", "agents-md").stdout


def test_a_file_that_was_written_is_not_said_to_be_as_it_was(vault: Any, run: Run, tmp_path: Path) -> None:
    folder, file = vault(RULES), tmp_path / "elsewhere" / "AGENTS.md"
    assert "says so already" not in run("--vault", folder, "export", "agents-md", "--file", file).stderr
    assert "says so already" in run("--vault", folder, "export", "agents-md", "--file", file).stderr


def test_rules_and_policies_for_agents_md(vault: Any, run: Run) -> None:
    folder = vault({**RULES, "AGENTS.md": "# Us\r\n"})
    shown = run("--vault", folder, "export", "agents-md").stdout
    assert [line for line in shown.splitlines() if line.startswith("- ")] == [
        "- [policy] All times are UTC. (pol-p)",
        "- Buffer chunks. (rule-a)",
        "- Never use &lt;!-- memory-kb:end --&gt; naked sleeps. (pit-b)",
    ]
    file = folder / "AGENTS.md"
    for _ in range(2):
        assert run("--vault", folder, "export", "agents-md", "--file", file).returncode == 0
        text = file.read_bytes()
        assert text.startswith(b"# Us\r\n\r\n<!-- memory-kb:begin rules -->\r\n")
        assert text.count(b"\n") == text.count(b"\r\n")
        assert text.count(b"memory-kb:end -->") == 1
    run("--vault", folder, "install", "codex")
    run("--vault", folder, "uninstall", "codex")
    assert file.read_bytes() == text
    for name in ("rules/a.md", "rules/b.md", "learnings/p.md"):
        (folder / "memory" / name).unlink()
    run("--vault", folder, "export", "agents-md", "--file", file)
    assert file.read_bytes() == b"# Us\r\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with `memory-kb` and an agent called `codex`."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, line in (("memory-kb", f'exec "{sys.executable}" -m memory_kb "$@"'), ("codex", "exit 0")):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    return f"{programs}:/usr/bin:/bin"


@pytest.mark.skipif(os.name == "nt", reason="the programs are shell scripts")
@pytest.mark.slow
def test_install_proves_itself_and_doctor_does_so_again(folder: Path, run: Run, path: str, tmp_path: Path) -> None:
    env = {"PATH": path, "HOME": str(tmp_path), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
    listed = run("--vault", folder, "install", env=env, cwd=folder)
    assert (listed.returncode, listed.stdout.split()[0]) == (0, "codex")
    missing = run("--vault", folder, "doctor", "--agent", "codex", env=env, cwd=folder)
    assert missing.returncode == 7
    assert "FAILED: .codex/hooks.json" in missing.stderr
    done = run("--vault", folder, "install", "codex", env=env, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "type /hooks" in done.stderr
    again = run("--vault", folder, "doctor", "--agent", "codex", env=env, cwd=folder)
    assert again.returncode == 0
    assert again.stderr.count("ok: ") == 7
    assert not list((folder / "memory/.memory-kb").glob("sessions/*.jsonl"))
    (Path(path.partition(":")[0]) / "memory-kb").write_text("#!/bin/sh\nexit 3\n")
    broken = run("--vault", folder, "doctor", "--agent", "codex", env=env, cwd=folder)
    assert broken.returncode == 7
    assert "FAILED: hook SessionStart: `memory-kb hook session-start --agent codex` fails: exit code 3" in broken.stderr
    (Path(path.partition(":")[0]) / "memory-kb").unlink()
    absent = run("--vault", folder, "doctor", "--agent", "codex", env=env, cwd=folder)
    assert absent.returncode == 7
    assert absent.stderr.count("not found on the PATH") == 1


@pytest.mark.skipif(os.name == "nt", reason="the programs are shell scripts")
@pytest.mark.slow
def test_a_hook_that_fails_inside_is_no_proof(folder: Path, run: Run, path: str, tmp_path: Path) -> None:
    env = {"PATH": path, "HOME": str(tmp_path), "MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
    assert run("--vault", folder, "install", "codex", env=env, cwd=folder).returncode == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    failing = {"MEMORY_KB_VAULT": str(elsewhere / "gone")}
    broken = run("--vault", folder, "doctor", "--agent", "codex", env=env | failing, cwd=folder)
    assert broken.returncode == 7
    assert "FAILED: hook SessionStart: " in broken.stderr
    quiet = run("hook", "session-start", "--agent", "codex", stdin="{}", env=env | failing, cwd=elsewhere)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
