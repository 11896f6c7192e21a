"""An agent that opens or edits a file gets the entries that name it, each once a session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Files, Run

GLOB = "---\nid: glob-1\nkind: rule\napplies_to: ['src/api/**']\n---\nThe quokka checks every request.\n"
CITING = "---\nid: cite-1\nkind: fact\ncites: [src/api/x.py]\n---\nThe wombat retries twice.\n"
OTHER = "---\nid: other-1\nkind: rule\napplies_to: ['web/**']\n---\nThe numbat paints buttons.\n"
ANYWHERE = "---\nid: any-1\nkind: fact\n---\nThe bilby sleeps.\n"

Touch = Callable[..., str]


@pytest.fixture
def touch(vault: Callable[[Files], Path], run: Run) -> Touch:
    """A function that tells of a tool call on a file as an agent does, and returns what the agent is given."""
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/rules/a.md": GLOB,
            "memory/learnings/b.md": CITING,
            "memory/rules/c.md": OTHER,
            "memory/learnings/d.md": ANYWHERE,
            "src/api/x.py": "x = 1\n",
            "src/other.py": "y = 1\n",
        }
    )

    def call(file: str, session: str = "s1", tool: str = "Edit", agent: str = "claude-code", **more: object) -> str:
        payload = {
            "session_id": session,
            "cwd": str(folder),
            "tool_name": tool,
            "tool_use_id": f"{session}-{file}-{tool}-{len(more)}",
            "tool_input": {"file_path": str(folder / file)},
            "tool_response": "ok",
        }
        environ = {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
        done = run("hook", "tool", "--agent", agent, stdin=json.dumps(payload | more), cwd=folder, env=environ)
        assert (done.returncode, done.stderr) == (0, "")
        if agent == "cursor":
            return str(json.loads(done.stdout)["additional_context"]) if done.stdout else ""
        return str(json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]) if done.stdout else ""

    return call


def test_entries_that_name_the_file_come_once(touch: Touch) -> None:
    given = touch("src/api/x.py", tool="Read")
    assert "quokka" in given
    assert "wombat" in given
    assert "numbat" not in given
    assert "bilby" not in given
    assert touch("src/api/x.py") == ""
    assert "quokka" in touch("src/api/x.py", session="s2")
    patch = {"command": "*** Begin Patch\n*** Update File: src/api/x.py\n@@\n-x = 1\n+x = 2\n*** End Patch"}
    assert "quokka" in touch("", session="s3", tool="apply_patch", agent="codex", tool_input=patch)
    read = {"tool_input": '{"target_file": "src/api/x.py"}', "tool_output": '{"output": "x = 1", "exitCode": 0}'}
    assert "quokka" in touch("", session="s4", tool="Read", agent="cursor", **read)


def test_nothing_comes_for_other_files_and_failures(touch: Touch) -> None:
    assert touch("src/other.py") == ""
    assert touch("../../etc/passwd") == ""
    assert touch("src/api/x.py", hook_event_name="PostToolUseFailure", error="no such file") == ""
