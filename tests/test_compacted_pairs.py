"""Which entries compaction takes for the same, by their words or by their meaning, and which stay apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compacting import NIGHTLY, compact, statuses
from planning import tree
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.index.vector_search import VectorSearch
from memory_kb.providers.protocols import Limits, Purpose, VectorSpace

Open = Callable[..., KnowledgeBase]
Make = Callable[..., Path]


def count(vault: Make, open_kb: Open, texts: tuple[str, ...], **how: Any) -> int:
    files = {
        f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact") for number, text in enumerate(texts)
    }
    return compact(open_kb(vault(files)), **how)[1]


OPPOSED = """
negation     Use tabs for all indentation in this whole project and in its {examples.|examples, not spaces.}
don't        {Use|Don't use} tabs for all indentation in this whole project and in its examples.
cannot       You {can|cannot} push to the main branch of this repository on any day of the week.
number       The database of the staging system listens on port {5432|5433} of its own host.
opposite     {Enable|Disable} the query cache of the gateway in production, and tell the team on duty.
before       Run all of the migrations {before|after} the deploy of the services to the staging cluster.
avoid        {Prefer|Avoid} small functions with few arguments over large classes in the domain layer.
order        On staging {migrate the schema of the database and then deploy|deploy the schema of the database and then migrate} the services.
name         The cache of the gateway is kept in {Redis|Memcached} and is cleared by the nightly job.
code         Call `{retry_once|retry_twice}` from the worker when the answer of the server is empty again.
sign         Call the worker again when the state of the answer {==|!=} the state of the question.
option       Call the worker again with {-f|f} when the state of the answer is bad or empty.
"""
WORDS_ONLY = ("order", "name", "code", "sign", "option")


def versions(line: str) -> tuple[str, str, str]:
    """Return the name of a row and both its texts."""
    name, _, text = line.partition(" ")
    choice = re.search(r"{(.*)\|(.*)}", text)
    assert choice
    one, other = (text[: choice.start()].lstrip() + choice[number] + text[choice.end() :] for number in (1, 2))
    return name, one, other


@pytest.mark.parametrize(("name", "one", "other"), list(map(versions, OPPOSED.strip().splitlines())))
def test_what_turns_a_sentence_round_is_never_merged_away(
    name: str, one: str, other: str, vault: Make, open_kb: Open
) -> None:
    assert count(vault, open_kb, (one, other)) == 2
    if name not in WORDS_ONLY:  # whoever asks for paraphrases says that order and names do not matter
        assert count(vault, open_kb, (one, other), threshold=0.4) == 2


def test_exactly_four_fifths_are_not_enough(vault: Make, open_kb: Open) -> None:
    assert count(vault, open_kb, ("alpha beta gamma delta", "alpha beta gamma delta epsilon")) == 2
    assert count(vault, open_kb, ("alpha beta gamma delta epsilon", "alpha beta gamma delta epsilon zeta")) == 1


def test_merges_accumulate_around_the_first(vault: Make, open_kb: Open) -> None:
    first = "one two three four five six seven eight nine ten".replace("one", "ein")  # no word is a number
    assert count(vault, open_kb, (first, f"{first} red blue", f"{first} warm cold")) == 1


def test_a_chain_is_followed_until_nothing_is_left(vault: Make, open_kb: Open) -> None:
    """The longest text stays, so what is like that would be merged by the next run; it is by this one."""
    texts = ["a b c d e f g h i j", "a b c d e f g h i j k l", "a b c d e f g h i j k l m n"]
    assert count(vault, open_kb, tuple(texts)) == 1


def test_letters_of_other_scripts_count(vault: Make, open_kb: Open) -> None:
    same = "Ночная сборка собирает все службы и запускает весь набор тестов на сервере в подвале"
    assert count(vault, open_kb, (same, f"{same} снова", "Совсем другой текст о другом")) == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "decision"},
        {"domain": "task"},
        {"applies_to": "['*.go']"},
        {"status": "proposed"},
        {"status": "rejected"},
        {"status": "archived"},
        {"pinned": "true"},
        {"kind": "episode"},
        {"kind": "handoff"},
        {"links": "[{to: e0, relation: contradicts}]"},
        {"links": "[{to: e9, relation: superseded_by}]"},
        {"kind": "null", "type": "docs"},
        {"kind": "null"},
    ],
    ids=str,
)
def test_what_stays_apart(fields: dict[str, object], vault: Make, open_kb: Open) -> None:
    shared = {key: value for key, value in fields.items() if key == "kind" and value in ("episode", "handoff")}
    files = {
        "memory/learnings/0.md": entry(NIGHTLY, **({"id": "e0", "kind": "fact"} | shared)),
        "memory/learnings/1.md": entry(NIGHTLY, **({"id": "e1", "kind": "fact"} | fields)),
    }
    kb = open_kb(vault(files))
    before = tree(kb.vault.folder)
    assert kb.compact().run.run is None
    assert tree(kb.vault.folder) == before


def test_scopes_jobs_and_learning_types_stay_apart(vault: Make, open_kb: Open, home: Path) -> None:
    places = (
        *(
            "learnings/p.md",
            "jobs/a/learnings/j.md",
            "jobs/b/learnings/j.md",
            "jobs/a/tasks/t/learnings/t.md",
            "jobs/a/tasks/u/learnings/t.md",
        ),
        *("institutional.md", "proxy-tasks/x.md", "proxy.md"),
    )
    folder = vault(
        {f"memory/{place}": entry(NIGHTLY, id=f"e{number}", kind="rule") for number, place in enumerate(places)}
    )
    (home / "rules").mkdir(parents=True)
    (home / "rules/g.md").write_text(entry(NIGHTLY, id="g", kind="rule"))
    kb = open_kb(folder)
    before = tree(folder, home)
    wanted: list[dict[str, Any]] = [{}, {"scope": "task"}, {"scope": "global"}, {"job": "a"}, {"job": "a", "task": "t"}]
    for how in wanted:
        assert kb.compact(**how).run.run is None
    assert tree(folder, home) == before


def test_notes_of_people_are_left_alone(vault: Make, open_kb: Open) -> None:
    files = {
        "memory/MEMORY.md": entry(NIGHTLY, id="a", kind="fact") + "\n" + entry(NIGHTLY, id="b", kind="fact"),
        "memory/learnings/plain.md": f"# Build\n\n{NIGHTLY}\n",
        "memory/learnings/page.md": entry(NIGHTLY, title="Page"),
        "memory/proxy.md": entry(NIGHTLY, id="c", kind="fact")
        + "\n"
        + entry(NIGHTLY, id="d", kind="fact", status="retired"),
    }
    kb = open_kb(vault(files))
    before = tree(kb.vault.folder)
    assert kb.compact().run.run is None
    assert tree(kb.vault.folder) == before


def test_the_scope_that_is_asked_for(vault: Make, open_kb: Open, home: Path) -> None:
    def twice(place: str) -> str:
        return "\n".join(entry(NIGHTLY, id=f"{place}{name}", kind="rule") for name in "ab")

    places = ("", "jobs/a/", "jobs/b/", "jobs/a/tasks/t/")
    folder = vault({f"memory/{place}rules/r.md": twice(place) for place in places})
    (home / "rules").mkdir(parents=True)
    (home / "rules/r.md").write_text(twice("home/"))
    kb = open_kb(folder)
    assert compact(kb, job="a") == (2, 1)
    assert compact(kb, scope="global") == (2, 1)
    assert compact(kb, job="a", task="t") == (2, 1)
    assert (home / "archive/2026-11").is_dir()
    assert (folder / "memory/jobs/a/tasks/t/archive/2026-11").is_dir()
    assert compact(kb) == (6, 4)  # the project, both jobs and the home
    with pytest.raises(UsageError, match="unknown scope"):
        kb.compact("nowhere")
    with pytest.raises(UsageError, match="threshold"):
        kb.compact(threshold=0.0)
    with pytest.raises(UsageError, match="job"):
        kb.compact(task="t")


class Meaning:
    """An embedder for which texts with the same first letter mean the same."""

    space, limits = VectorSpace("test", "first-letter", 32), Limits(100, 100_000)

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Any:  # noqa: ARG002 - the port's
        return np.eye(32, dtype=np.float32)[[ord(text.strip()[0].lower()) % 32 for text in texts]]

    def close(self) -> None:
        pass


def test_vectors_find_what_words_do_not(vault: Make, open_kb: Open) -> None:
    texts = (
        "Start the linter ahead of every push.",
        "Start the linter, always, ahead of every push, please.",
        "Start the linter ahead of every 3rd push.",
        "Start your day with coffee and cake.",
        "Ahead of every push, the linter: start it, always!",
    )
    files = {
        f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact") for number, text in enumerate(texts)
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    kb.index.__dict__["vector_search"] = VectorSearch(Meaning, kb.vault.machine)
    kb.sync()
    assert kb.stats().chunks == 5
    assert compact(kb) == (5, 4)
    assert {name for name, status in statuses(kb).items() if status != "active"} == {"e0", "e1"}


def test_paraphrases_are_merged_on_request(vault: Make, open_kb: Open) -> None:
    texts = (
        "Cache the responses of the catalog in the gateway.",
        "The gateway should be caching catalog responses for a while.",
        "Servers are named after rivers of the country.",
        "Ship it",
        "Ship",
    )
    files = {
        f"memory/learnings/{number}.md": entry(text, id=f"e{number}", kind="fact", reinforcement_count=number)
        for number, text in enumerate(texts)
    }
    kb = open_kb(vault(files))
    assert kb.compact().run.run is None
    assert compact(kb, threshold=0.4) == (5, 4)
    merged = next(memory for memory in kb.memories.all() if memory.status == "compacted")
    assert (merged.id, merged.text, merged.importance, merged.reinforcement_count) == ("e0", texts[1], 0.45, 2)
