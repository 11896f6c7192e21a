"""How the arguments of tools are read: what models guess is understood, what makes no sense is told what to do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_client
import pytest
from mcp_client import ask, inside, run, stdio
from support import entry

from memory_kb.errors import UsageError
from memory_kb.mcp.arguments import ALIASES, MAX_CHARACTERS, Argument, read_arguments
from memory_kb.mcp.full_profile import PROFILES
from memory_kb.mcp.tools import TOOLS

set_nothing = mcp_client.set_nothing
project = mcp_client.project


@pytest.mark.slow
def test_wrong_and_hostile_arguments_are_answered_with_what_to_do(project: Path, home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory" / "MEMORY.md").write_text(entry("Theirs alone.", id="theirs-1"), encoding="utf-8")
    before = {file: file.read_bytes() for file in project.rglob("*.md")}
    wrong: list[tuple[str, Mapping[str, Any], str]] = [
        ("memory_recall", {"id": "../../etc/passwd"}, "memory_recall with a query finds"),
        ("memory_recall", {"id": "/etc/passwd"}, "no entry"),
        ("memory_recall", {"id": "theirs-1"}, "no entry 'theirs-1'"),
        ("memory_recall", {"id": f"{other}/memory/MEMORY.md:1"}, "no entry"),
        ("memory_recall", {}, "give a query in words, an id, or a file"),
        ("memory_recall", {"query": "x", "limit": "many"}, "limit must be a whole number, not 'many'"),
        ("memory_recall", {"query": {"a": 1}}, "query must be a text"),
        ("memory_recall", {"query": "x", "depth": 3}, "there is no argument 'depth'; it takes query (a text)"),
        ("memory_recall", {"query": "x", "kind": "nonsense"}, "unknown kind 'nonsense'; it may be policy"),
        ("memory_learn", {"text": "x" * 5_000_000}, "at most 200,000 are read"),
        ("memory_learn", {"text": "a\0b"}, "NUL"),
        ("memory_learn", {"text": "  "}, "there is no text to learn"),
        ("memory_learn", {"text": "token ghp_" + "a1B2" * 9}, "looks like"),
        ("memory_learn", {"text": "x", "scope": "task"}, "name job and task"),
        ("memory_learn", {"text": "x", "job": "../../up", "scope": "job"}, "is not a name for a job"),
        ("memory_learn", {"title": "x"}, "text is missing; it takes text (a text, required)"),
        ("memory_outcome", {"task": "t", "outcome": "great"}, "it may be success, failure, mixed"),
        ("memory_outcome", {"agent": "a", "task": "t", "outcome": "success", "used": ["none-such"]}, ""),
        ("memory_procedure", {"name": "x", "steps": []}, "steps is missing"),
        ("memory_consolidate", {"dry_run": "perhaps"}, "dry_run must be true or false"),
    ]

    from mcp.shared.exceptions import MCPError

    async def work() -> None:
        async with stdio(project, home, "--profile", "full") as client:
            for tool, arguments, said in wrong:
                told = await ask(client, tool, **arguments)
                assert told.is_error == bool(said), (tool, arguments, told)
                assert said in told.text
                for secret in ("Traceback", 'File "', "root:"):
                    assert secret not in told.text, (tool, arguments, told.text)
                assert len(told.text) < 1_000
            away = await ask(client, "memory_recall", file="../../etc/passwd")
            assert (away.is_error, away.ids) == (False, [])
            with pytest.raises(MCPError, match="there are memory_context"):
                await ask(client, "rm_rf")
            assert (await ask(client, "memory_stats")).text.startswith("3 entries")

    run(work)
    assert {file: file.read_bytes() for file in project.rglob("*.md")} == before


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"content": "a"}, {"text": "a"}),
        ({"key": "a", "value": "b"}, {"title": "a", "text": "b"}),
        ({"text": "a", "type": "pitfall"}, {"text": "a", "kind": "pitfall"}),
        ({"text": "a", "appliesTo": "src/**"}, {"text": "a", "applies_to": ["src/**"]}),
        ({"text": "a", "tags": "x, y"}, {"text": "a", "tags": ["x", "y"]}),
        ({"text": "a", "tags": '["x", "y"]'}, {"text": "a", "tags": ["x", "y"]}),
        ({"text": "a", "tags": [" x ", ""]}, {"text": "a", "tags": ["x"]}),
        ({"text": "a", "tags": "One. Two, too."}, {"text": "a", "tags": ["One. Two, too."]}),
        ({"text": "a", "tags": None, "title": None}, {"text": "a"}),
        ({"text": 3}, {"text": "3"}),
    ],
)
def test_learn_understands_what_models_guess(given: Mapping[str, Any], meant: Mapping[str, Any]) -> None:
    assert read_arguments(_tool("memory_learn").arguments, given) == meant


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"q": "a", "topK": "3"}, {"query": "a", "limit": 3}),
        ({"query": "a", "limit": 3.0}, {"query": "a", "limit": 3}),
        ({"memory_id": "x"}, {"id": "x"}),
        ({"query": "a", "path": "src/a.py"}, {"query": "a", "file": "src/a.py"}),
        (
            {"query": "a", "kind": "rule", "type": ["procedural"]},
            {"query": "a", "kind": ["rule"], "type": ["procedural"]},
        ),
    ],
)
def test_recall_understands_what_models_guess(given: Mapping[str, Any], meant: Mapping[str, Any]) -> None:
    assert read_arguments(_tool("memory_recall").arguments, given) == meant


@pytest.mark.parametrize("value", ["many", "1e3", 1.5, float("nan"), float("inf"), [], {}, "9" * 5_000])
def test_no_number_is_made_of_what_is_none(value: object) -> None:
    with pytest.raises(UsageError, match="limit must be a whole number"):
        read_arguments([Argument("limit", kind="number")], {"limit": value})


def test_an_argument_given_twice_is_refused_unless_both_say_the_same() -> None:
    words = _tool("memory_recall").arguments
    assert read_arguments(words, {"query": "a", "q": "a"}) == {"query": "a"}
    with pytest.raises(UsageError, match="given twice"):
        read_arguments(words, {"query": "a", "q": "b"})


def test_arguments_longer_than_any_memory_are_refused() -> None:
    with pytest.raises(UsageError, match="characters"):
        read_arguments([Argument("tags", kind="list")], {"tags": ["x" * MAX_CHARACTERS, "y"]})


def test_every_alias_belongs_to_an_argument() -> None:
    assert set(ALIASES.values()) <= {argument.name for tool in PROFILES["full"] for argument in tool.arguments}


def _tool(name: str) -> Any:
    return TOOLS[name]


def test_a_scope_is_a_level_or_files(project: Path, home: Path) -> None:
    """A word from the four is a level, anything else a glob."""

    async def work() -> None:
        async with inside(project, home, "full") as client:
            path = (await ask(client, "memory_learn", text="Retry uploads twice.", scope="src/upload/**")).path
            assert "applies_to:" in (project / path).read_text(encoding="utf-8")
            home_path = (await ask(client, "memory_learn", text="Prefer short names.", scope="GLOBAL")).path
            assert home_path.startswith("~global/review/")
            assert (await ask(client, "memory_recall", scope="src/upload/retry.py")).path == path

    run(work)
