"""What the tools take beside what they declare: the words of other memory servers, by the SDK's own client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mcp_client
import pytest
from conftest import Files, Run
from mcp_client import Told, ask, inside, run
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.mcp.tools import sort_words

set_nothing = mcp_client.set_nothing

MakeVault = Callable[[Files], Path]
Asks = Callable[..., list[Told]]
FILES: Files = {
    "memory/config.yaml": "",
    "memory/learnings/policy.md": entry("Wombats are fed at noon.", id="pol-1", kind="policy"),
    "memory/learnings/fact.md": entry("Wombats live in burrows.", id="fact-1", kind="fact"),
    "memory/skills/feed.md": entry("# Skill: feed\n\nFeed the wombats with hay.", id="skill-1", kind="skill"),
    "memory/episodes/2026-11-01/ep.md": entry("The wombats broke out.", id="ep-1", kind="episode"),
}


@pytest.fixture
def folder(vault: MakeVault) -> Path:
    return vault(FILES)


@pytest.fixture
def asks(folder: Path, home: Path) -> Asks:
    """A function that calls tools one after the other and returns what they told."""

    def call(*calls: tuple[str, Mapping[str, Any]]) -> list[Told]:
        told: list[Told] = []

        async def work() -> None:
            async with inside(folder, home) as client:
                told.extend([await ask(client, tool, **arguments) for tool, arguments in calls])

        run(work)
        return told

    return call


def test_learn_takes_a_key_and_a_value(folder: Path, asks: Asks, open_kb: Callable[[Path], KnowledgeBase]) -> None:
    words = {
        "key": "cache choice",
        "value": "We keep sessions in Redis.",
        "type": "decision",
        "agent": "coder",
        "scope": "project",
    }
    first, second = asks(
        ("memory_learn", words), ("memory_learn", {"value": "Deploy on Mondays.", "type": "procedural", "scope": "all"})
    )
    kb = open_kb(folder)
    view, other = kb.show(first.ids[0]), kb.show(second.ids[0])
    assert (view.title, view.kind, other.kind, other.scope) == ("cache choice", "decision", "rule", "project")


BY_TYPE_AND_LAYER: list[tuple[Mapping[str, Any], set[str]]] = [
    ({"type": "policy"}, {"pol-1"}),
    ({"type": "workflow"}, {"skill-1"}),
    ({"type": ["Policy", "fact"]}, {"pol-1", "fact-1"}),
    ({"type": "directive"}, {"pol-1"}),
    ({"kind": "directive"}, {"pol-1"}),
    ({"type": "all", "scope": "all"}, {"pol-1", "fact-1", "skill-1", "ep-1"}),
    ({"layer": "all"}, {"pol-1", "fact-1", "skill-1", "ep-1"}),
    ({"layer": "episodic"}, {"ep-1"}),
    ({"layer": "Semantic"}, {"pol-1", "fact-1"}),
    ({"layer": "procedural", "type": "workflow"}, {"skill-1"}),
    ({"layers": ["episodic", "procedural"]}, {"skill-1", "ep-1"}),
]


def test_recall_filters_by_type_and_layer(asks: Asks) -> None:
    answers = asks(*[("memory_recall", {"query": "wombats", "limit": 20, **words}) for words, _ in BY_TYPE_AND_LAYER])
    for told, (words, found) in zip(answers, BY_TYPE_AND_LAYER, strict=True):
        assert set(told.ids) == found, words


def test_recall_without_a_query_lists_a_layer(asks: Asks) -> None:
    (told,) = asks(("memory_recall", {"layer": "episodic"}))
    assert told.ids == ["ep-1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"layer": "cortical"}, "unknown layer 'cortical'; it may be all, semantic"),
        ({"layer": "episodic", "type": "policy"}, "nothing of kind policy is in layer episodic"),
        ({"type": "nonsense"}, "unknown kind 'nonsense'; it may be policy"),
        ({"layer": "all"}, "there is nothing to look for"),
    ],
)
def test_recall_says_what_a_filter_may_be(words: Mapping[str, Any], said: str, asks: Asks) -> None:
    (told,) = asks(("memory_recall", words if words == {"layer": "all"} else {"query": "wombats", **words}))
    assert told.is_error
    assert said in told.text


def test_a_context_needs_only_files(asks: Asks) -> None:
    told, nothing = asks(("memory_context", {"files": ["src/wombat.py"]}), ("memory_context", {"labels": ["x"]}))
    assert not told.is_error and "fed at noon" in told.text
    assert nothing.is_error and nothing.text.startswith("task is missing")


@pytest.mark.parametrize(
    "context", [{"task": "feed the wombats", "task_id": "T-77"}, {"task_id": "T-77"}, {"task": "feed the wombats"}]
)
@pytest.mark.parametrize("outcome", [{"task": "feed the wombats", "task_id": "T-77"}, {"task_id": "T-77"}])
def test_an_id_names_the_task_of_an_agent_without_a_job(
    context: Mapping[str, Any], outcome: Mapping[str, Any], asks: Asks
) -> None:
    told, done = asks(
        ("memory_context", {"agent": "coder", **context}),
        ("memory_outcome", {"agent": "coder", "outcome": "success", **outcome}),
    )
    assert not told.is_error and "fed at noon" in told.text
    is_known = ("task_id" in context and "task_id" in outcome) or (
        context == {"task": "feed the wombats"} and "task" in outcome
    )
    assert ("Nothing was shown" in done.text) != is_known, done.text


def test_a_task_without_a_job_hides_nothing(folder: Path, open_kb: Callable[[Path], KnowledgeBase], run: Run) -> None:
    (folder / "memory/jobs/zoo/tasks/feed/learnings").mkdir(parents=True)
    (folder / "memory/jobs/zoo/tasks/feed/learnings/a.md").write_text(
        entry("Wombats of the zoo eat grass.", id="zoo-1", kind="rule")
    )
    told = run("--vault", folder, "context", "what do wombats eat", "--task", "feed", "--agent", "coder")
    assert (told.returncode, "eat grass" in told.stdout) == (0, True)
    assert run("--vault", folder, "outcome", "coder", "feed", "success", "--used", "zoo-1").stderr.startswith(
        "`memory-kb undo"
    )
    with pytest.raises(UsageError):
        open_kb(folder).context("x", job="../up", task_id="y")
    with pytest.raises(UsageError):
        open_kb(folder).context("x", job="zoo", task_id="../up")


def test_words_that_mean_nothing_are_left_to_the_filters() -> None:
    assert sort_words(["nonsense"], [], ["episodic"]) == {"kind": ["nonsense"]}
