"""An edit that breaks a rule in force is refused once a session, with the rule's text, and counted."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_backtest import commit, git

if TYPE_CHECKING:
    from conftest import Files, Run

FORBID = "---\nid: no-print\nkind: rule\nforbid: '\\bprint\\('\napplies_to: ['src/**']\n---\nLog, never print.\n"
REQUIRE = "---\nid: licence\nkind: rule\nrequire: '^# Licence'\napplies_to: ['lib/*.py']\n---\nName the licence.\n"
SLOW = "---\nid: slow\nkind: rule\nforbid: '(a+)+$'\napplies_to: ['slow/*']\n---\nNever slow.\n"
WRONG = "---\nid: wrong\nkind: rule\nforbid: '('\n---\nBroken.\n"
PROPOSED = FORBID.replace("no-print", "proposed").replace("print", "input").replace("kind:", "status: proposed\nkind:")

Ask = Callable[..., str]


@pytest.fixture
def project(vault: Callable[[Files], Path]) -> Path:
    rules = {"a": FORBID, "b": REQUIRE, "c": SLOW, "d": WRONG, "e": PROPOSED}
    notes = {f"memory/rules/{name}.md": text for name, text in rules.items()}
    return vault({"memory/config.yaml": "", "src/x.py": "y = 1\nprint(old)\n", "lib/x.py": "# Licence\n"} | notes)


@pytest.fixture
def ask(project: Path, run: Run) -> Ask:
    """A function that asks before a tool as an agent does, and returns the reason of the refusal, if it is one."""

    def call(tool: str, values: dict[str, Any], session: str = "s1", agent: str = "claude-code") -> str:
        if isinstance(values.get("file_path"), str):
            values = values | {"file_path": str(project / values["file_path"])}
        payload = {"session_id": session, "cwd": str(project), "tool_name": tool, "tool_input": values}
        environ = {"MEMORY_KB_EMBEDDINGS_PROVIDER": "none"}
        done = run("hook", "before-tool", "--agent", agent, stdin=json.dumps(payload), cwd=project, env=environ)
        assert (done.returncode, done.stderr) == (0, "")
        answer = json.loads(done.stdout) if done.stdout else {}
        if agent == "gemini-cli":
            assert answer.get("decision", "deny") == "deny"
            return str(answer.get("reason", ""))
        decision = answer.get("hookSpecificOutput", {})
        assert decision.get("permissionDecision", "deny") == "deny"
        return str(decision.get("permissionDecisionReason", ""))

    return call


def edit(new: str, file: str = "src/x.py", old: str = "y = 1") -> dict[str, str]:
    return {"file_path": file, "old_string": old, "new_string": new}


def test_an_edit_is_refused_once_a_session_and_counted(ask: Ask, run: Run, project: Path) -> None:
    assert ask("Edit", edit("print(y)")).startswith("src/x.py would break rule no-print: Log, never print.")
    assert ask("Edit", edit("print(y)")) == ""
    assert ask("Edit", edit("print(y)"), session="s2")
    git(project, "init", "-q", "-b", "main")
    commit(project, 1, {"src/a.py": "x = 1\n"})
    done = run("rules", "backtest", "no-print", cwd=project)
    assert done.stdout.endswith("agents: an edit was refused in 2 sessions, and made all the same in 1\n")
    made = json.loads(run("rules", "backtest", "no-print", "--json", cwd=project).stdout)
    assert (made["refused"], made["broken_after_refusal"]) == (2, 1)


@pytest.mark.parametrize(
    ("tool", "values"),
    [
        ("Edit", edit("z = 2")),
        ("Edit", edit("z = 2\nprint(old)")),
        ("Edit", edit("print(y)", "docs/x.md")),
        ("Write", {"file_path": "src/x.py", "content": "print(old)\n"}),
        ("Edit", edit("input(y)")),
        ("Write", {"file_path": "memory/rules/a.md", "content": "print(1)"}),
        ("Write", {"file_path": "../outside.py", "content": "print(1)"}),
        ("Write", {"file_path": "lib/x.py", "content": "# Licence\nx = 1\n"}),
        ("Bash", {"command": "print('x')"}),
        ("Write", {"file_path": 7}),
    ],
)
def test_an_edit_that_breaks_nothing_passes(ask: Ask, tool: str, values: dict[str, Any]) -> None:
    assert ask(tool, values) == ""


def test_a_file_must_hold_what_is_required(ask: Ask) -> None:
    assert "rule licence" in ask("Write", {"file_path": "lib/new.py", "content": "x = 1\n"})
    assert "rule licence" in ask("Edit", edit("# License", "lib/x.py", "# Licence"), session="s2")


def test_each_agents_form_of_an_edit_is_read(ask: Ask) -> None:
    patch = "*** Begin Patch\n*** Add File: src/n.py\n+x = 1\n*** Update File: src/x.py\n@@\n-y = 1\n+print(y)\n*** End Patch"
    assert "src/x.py would break rule no-print" in ask("apply_patch", {"command": patch}, agent="codex")
    whole = {"file_path": "src/n.py", "content": "print(1)\n"}
    assert "src/n.py would break" in ask("write_file", whole, session="g", agent="gemini-cli")
    many = {"file_path": "src/x.py", "edits": [{"old_string": "y = 1", "new_string": "print(2)"}]}
    assert "src/x.py would break" in ask("MultiEdit", many, session="m")
    of_copilot = (
        {"path": "src/n.py", "file_text": "print(1)\n"},
        {"path": "src/x.py", "old_str": "y = 1", "new_str": "print(2)"},
    )
    assert "src/n.py would break" in ask("Write", of_copilot[0], session="c")
    assert "src/x.py would break" in ask("Edit", of_copilot[1], session="d")


def test_without_a_session_or_with_hooks_off_nothing_is_refused(ask: Ask, project: Path) -> None:
    assert ask("Edit", edit("print(y)"), session="") == ""
    (project / "memory/config.yaml").write_text("context: {hooks: off}\n")
    assert ask("Edit", edit("print(y)")) == ""


def test_a_pattern_that_never_ends_holds_nobody_up(ask: Ask) -> None:
    begun = time.process_time()
    assert ask("Write", {"file_path": "slow/x.py", "content": "a" * 60 + "!\n"}) == ""
    assert time.process_time() - begun < 5


@pytest.mark.slow
def test_many_patterns_that_never_end_hold_nobody_up(ask: Ask, project: Path) -> None:
    rules = project / "memory/rules"
    for number in range(60):
        (rules / f"slow{number}.md").write_text(SLOW.replace("id: slow", f"id: slow{number}"))
    (rules / "z.md").write_text(FORBID.replace("no-print", "last").replace("src/", "slow/"))
    content = "a" * 60 + "!\n"
    assert ask("Write", {"file_path": "slow/x.py", "content": f"{content}print(x)\n"}) == ""
