"""Contradictions: found where two entries say the opposite, and settled without deleting."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planning import tree
from support import days_ago, entry

from memory_kb import KnowledgeBase
from memory_kb.errors import ProviderFailed
from memory_kb.learning.contradictions import (
    Cause,
    ContradictionsReport,
    ask_cause,
    find_contradictions,
    plan_resolutions,
)
from memory_kb.learning.text_comparison import find_opposition, turning_words
from memory_kb.memory import Memory
from memory_kb.model import Location

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]
Make = Callable[..., Path]

OPPOSED = """
Use tabs for indentation. | Do not use tabs for indentation.
Use tabs for indentation. | Don't use tabs for indentation!
Always squash commits before merging. | Never squash commits before merging.
Avoid global state in modules. | Use global state in modules.
Enable the query cache in production. | Disable the query cache in production.
Run migrations before deploying. | Run migrations after deploying.
Pushing to main is allowed. | Pushing to main is forbidden.
We no longer use Jenkins. | We use Jenkins.
Merge without review. | Never merge without review.
Tests must hit the network. | Tests must not hit the network.
Build the image with the cache. | Build the image without the cache.
Retries are optional for the payment client. | Retries are required for the payment client.
Nobody may push to main. | Everybody may push to main.
Service names must include the region. | Service names must exclude the region.
Telemetry is on by default. | Telemetry is off by default.
Feature branches are deleted after the merge. | Feature branches are kept after the merge.
Docker images are built on the CI server. | Docker images are never built on the CI server.
"""
COMPATIBLE = """
Use tabs in Makefiles. | Do not use tabs in Python files.
Cache responses in the gateway. | Do not cache payment responses in the gateway.
Service orders listens on 5432. | Service billing listens on 5433.
Sprint 12 is closed with 3 bugs. | Sprint 13 is closed with 3 bugs.
The API uses Redis. | The API uses Postgres.
The build is slow. | The build is flaky.
Never merge without review. | Always merge with a review.
Do not disable the linter. | Enable the linter.
Avoid tabs. | Do not use tabs.
If tests fail, do not merge. | If tests pass, merge.
Wait 8 seconds before the first retry. | Wait 30 seconds before the second retry.
Run the linter before pushing. | Please always run the linter before you push.
Use structured logging in the gateway. | Use structured logging in the workers.
Tests must not hit the network. | Tests must hit the fake network server.
Do not commit secrets. | Commit the secrets scanner configuration.
The timeout is 60 seconds. | The timeout is 1 minute.
Deploy the API on Mondays. | Deploy the docs on Mondays.
Issue 12 is fixed in release 3. | Issue 13 is fixed in release 3.
The retry limit of the client is 5. | The retry limit of the server is 3.
Prefer composition over inheritance. | Prefer composition to deep class hierarchies.
Only admins may delete users. | Admins may not delete the last user.
The deploy takes 5 minutes on staging. | The deploy takes 20 minutes in production.
Never force-push to main. | Force-push to your own branch after a rebase.
The frontend port is 3000. | The backend port is 8000.
Do not use `any` in TypeScript. | Use `unknown` in TypeScript instead of `any`.
Reviewers are Alice and Bob. | Reviewers are Alice, Bob and Carol.
Log at debug level in development. | Do not log at debug level in production.
Tests run in parallel on CI. | Tests don't run in parallel on laptops.
On 2026-01-02 the deploy failed. | On 2026-02-03 the deploy did not fail.
The staging database is reset every night. | The production database is never reset.
Logs are kept for 30 days. | Backups are kept for 90 days.
Enable WAL mode on SQLite. | Disable WAL mode on network drives with SQLite.
Each worker uses 2 connections. | Each worker uses 512 MB.
Step 1: build the image. | Step 2: build the image.
Duration: 12 minutes | Duration: 15 minutes
Author: Alice | Author: Bob
Should we use tabs? | Do not use tabs.
The worker pool has 8 threads and a queue of 100. | The worker pool has 8 threads.
Version 1.2 drops Python 3.8. | Version 1.3 drops Python 3.9.
"""


def pairs(table: str) -> list[tuple[str, str]]:
    return [(one, other) for line in table.strip().splitlines() for one, _, other in [line.partition(" | ")]]


@pytest.mark.parametrize(("one", "other"), pairs(OPPOSED))
def test_opposites_are_seen_from_both_sides(one: str, other: str) -> None:
    assert find_opposition(one, other)
    assert find_opposition(other, one)


@pytest.mark.parametrize(("one", "other"), pairs(COMPATIBLE))
def test_what_is_compatible_though_similar_is_not_called_a_conflict(one: str, other: str) -> None:
    assert find_opposition(one, other) is None
    assert find_opposition(other, one) is None


def test_nothing_contradicts_itself() -> None:
    for text in {text for pair in pairs(OPPOSED + COMPATIBLE) for text in pair}:
        assert find_opposition(text, text) is None
        assert find_opposition(text, f"{text}\n\n{text.upper()}") is None


def test_what_both_say_is_no_difference() -> None:
    both = "Use tabs for indentation.\n\nThe old guide said: do not use tabs for indentation.\n\nDo not use tabs for indentation."
    assert find_opposition(both, f"{both}\n\nSee the wiki.") is None


def test_one_sentence_of_many_is_enough_when_it_says_enough() -> None:
    many = "We learned this in March.\n\nThe gateway is fast.\n\nIt was tested.\n\n{}\n\nSee the wiki."
    opposite = ("Never log session tokens in the gateway.", "Log session tokens in the gateway.")
    assert find_opposition(*(many.format(text) for text in opposite))
    assert find_opposition(many.format("It is on."), many.format("It is off.")) is None


def test_code_is_not_read_as_prose() -> None:
    assert find_opposition("```\nuse tabs\n```\nSee above.", "```\ndo not use tabs\n```\nSee above.") is None


def rule(correct: str, incorrect: str) -> str:
    return f"Queries.\n\n## Correct approach\n{correct}\n\n## Incorrect approach\n{incorrect}\n"


def test_approaches_that_clash() -> None:
    bound, joined = "Bind the values as parameters of the query.", "Join the values into the text of the query."
    assert (
        find_opposition(rule(bound, joined), rule(joined, bound)) == "what is correct in one is incorrect in the other"
    )
    assert find_opposition(rule(bound, joined), rule(bound, joined)) is None
    assert (
        find_opposition(
            rule(bound, joined), rule("Bind all values as parameters.", "Join values into the query's text.")
        )
        is None
    )
    assert find_opposition(rule(bound, "Shout."), rule("Whisper.", bound.replace("values", "value"))) is not None


def test_huge_and_odd_texts_end_soon() -> None:
    for text in (
        " " * 50_000,
        "not " * 20_000,
        "is " * 20_000,
        "`" * 20_000,
        "A" * 50_000,
        "a: " * 20_000,
        "\n".join(["The port is 1."] * 5_000),
    ):
        assert find_opposition(text, "Use tabs.") is None
        turning_words(text)


# -- what becomes of them --------------------------------------------------------------------------


def store(vault: Make, *texts: str, **fields: object) -> Path:
    """Make a vault of facts, the first 120 days old, the others one day; lists give each its own value."""
    files = {}
    for number, text in enumerate(texts):
        own = {name: value[number] if isinstance(value, list) else value for name, value in fields.items()}
        shared = {"id": f"e{number}", "kind": "fact", "created_at": days_ago(1 if number else 120)}
        files[f"memory/learnings/{number}.md"] = entry(
            text, **{name: value for name, value in (shared | own).items() if value is not None}
        )
    return vault({"memory/config.yaml": ""} | files)


def memories(kb: KnowledgeBase) -> dict[str, Memory]:
    return {memory.id: memory for memory in kb.memories.all()}


def links(memory: Memory) -> set[tuple[str, str]]:
    return {(link.relation, link.to) for link in memory.links}


def resolve(kb: KnowledgeBase) -> ContradictionsReport:
    """Resolve twice; the second time may change nothing."""
    report = kb.contradictions(resolve=True)
    before = tree(kb.vault.folder)
    assert kb.contradictions(resolve=True).run.run is None
    assert tree(kb.vault.folder) == before
    return report


def test_similar_entries_far_apart_survive(vault: Make, open_kb: Open) -> None:
    """D-10: being similar and 90 days apart is no contradiction."""
    kb = open_kb(
        store(
            vault,
            "Run the linter before you push to the server.",
            "Run the linter and the tests before you push to the server.",
        )
    )
    before = tree(kb.vault.folder)
    assert resolve(kb).found == ()
    assert tree(kb.vault.folder) == before


def test_the_newer_of_two_takes_the_place_of_the_older(vault: Make, open_kb: Open) -> None:
    kb = open_kb(store(vault, "The database listens on port 5432.", "The database never listens on port 5432."))
    listed = kb.contradictions()
    assert [(one.older.id, one.newer.id, one.cause, one.resolution) for one in listed.found] == [
        ("e0", "e1", "temporal_obsolescence", "retire")
    ]
    assert listed.run.run is None
    before = tree(kb.vault.folder)
    assert "+status: retired" in kb.contradictions(resolve=True, dry_run=True).run.diff
    assert tree(kb.vault.folder) == before
    resolve(kb)
    known = memories(kb)
    assert (known["e0"].status, links(known["e0"])) == ("retired", {("superseded_by", "e1")})
    assert (known["e1"].status, links(known["e1"])) == ("active", {("supersedes", "e0")})
    assert kb.undo().conflicts == ()
    assert tree(kb.vault.folder) == before


def test_of_two_of_one_day_the_hour_decides(vault: Make, open_kb: Open) -> None:
    hours = ["'2026-11-20T12:00:00Z'", "'2026-11-20T09:00:00Z'"]
    kb = open_kb(store(vault, "Never deploy on Friday.", "Always deploy on Friday.", created_at=hours))
    assert [(one.older.id, one.newer.id) for one in kb.contradictions().found] == [("e1", "e0")]


def test_of_two_that_contradict_the_same_the_newest_takes_its_place(vault: Make, open_kb: Open) -> None:
    texts = ("Deploy on Friday.", "Never deploy on Friday.", "Do not deploy on Friday.")
    kb = open_kb(store(vault, *texts, created_at=[days_ago(300), days_ago(200), days_ago(1)]))
    resolve(kb)
    assert [(memory.id, memory.status, links(memory)) for memory in kb.memories.all()] == [
        ("e0", "retired", {("superseded_by", "e2")}),
        ("e1", "active", set()),
        ("e2", "active", {("supersedes", "e0")}),
    ]


@pytest.mark.parametrize(
    ("importance", "expected"),
    [(0.5, 0.35), (0.9, 0.63), (0.12, 0.1), (0.1, 0.1), (0.05, 0.05)],
    ids=["half", "much", "floor", "at", "below"],
)
def test_a_tension_weakens_both_once(importance: float, expected: float, vault: Make, open_kb: Open) -> None:
    kb = open_kb(
        store(
            vault,
            "Use tabs for indentation.",
            "Do not use tabs for indentation.",
            created_at=days_ago(3),
            importance=importance,
        )
    )
    assert [one.resolution for one in resolve(kb).found] == ["weaken"]
    for memory, other in ((memories(kb)["e0"], "e1"), (memories(kb)["e1"], "e0")):
        assert (memory.importance, memory.status, memory.words("flags"), links(memory)) == (
            expected,
            "active",
            ("review",),
            {("contradicts", other)},
        )


def test_against_several_an_entry_is_weakened_once_too(vault: Make, open_kb: Open) -> None:
    kb = open_kb(
        store(
            vault,
            "Use tabs for indentation.",
            "Never use tabs for indentation.",
            created_at=days_ago(3),
            importance=0.5,
        )
    )
    resolve(kb)
    (kb.vault.folder / "memory/learnings/2.md").write_text(
        entry("Avoid tabs for indentation.", id="e2", kind="fact", importance=0.5)
    )
    resolve(kb)
    known = memories(kb)
    assert [known[name].importance for name in ("e0", "e1", "e2")] == [0.35, 0.35, 0.35]
    assert links(known["e0"]) == {("contradicts", "e1"), ("contradicts", "e2")}
    assert kb.compact().run.run is None  # nor are the two that agree merged without being told


@pytest.mark.parametrize(
    ("fields", "cause", "resolution"),
    [
        ({"created_at": [days_ago(90), days_ago(0)]}, "temporal_obsolescence", "retire"),
        ({"created_at": [days_ago(89), days_ago(0)]}, "genuine_tension", "weaken"),
        ({"created_at": None, "reinforcement_count": 3}, "genuine_tension", "weaken"),
        ({"applies_to": ["['*.go']", "['*.py']"]}, "scope_dependent", "keep"),
        ({"pinned": ["true", "false"]}, "temporal_obsolescence", "keep"),
        ({"pinned": ["false", "true"]}, "temporal_obsolescence", "keep"),
    ],
    ids=["90 days", "89 days", "no dates", "other files", "older pinned", "newer pinned"],
)
def test_causes(fields: dict[str, object], cause: str, resolution: str, vault: Make, open_kb: Open) -> None:
    kb = open_kb(store(vault, "Use tabs for indentation.", "Do not use tabs for indentation.", **fields))
    before = tree(kb.vault.folder)
    report = resolve(kb)
    assert [(one.cause, one.resolution) for one in report.found] == [(cause, resolution)]
    assert (tree(kb.vault.folder) == before) == (resolution == "keep")


@pytest.mark.parametrize(
    "other",
    [
        {"memory/jobs/api/learnings/1.md": {}},
        {"memory/proxy-tasks/1.md": {}},
        {"memory/MEMORY.md": {}},
        {"memory/learnings/1.md": {"status": "proposed"}},
        {"memory/learnings/1.md": {"status": "retired"}},
        {"memory/learnings/1.md": {"kind": "episode"}},
        {"memory/learnings/1.md": {"kind": "page", "type": "docs"}},
        {"memory/learnings/1.md": {"links": "[{to: e0, relation: superseded_by}]"}},
    ],
    ids=str,
)
def test_who_does_not_meet(other: dict[str, dict[str, object]], vault: Make, open_kb: Open) -> None:
    files = {
        "memory/config.yaml": "",
        "memory/learnings/0.md": entry("Use tabs for indentation.", id="e0", kind="fact", created_at=days_ago(200)),
    }
    files |= {
        path: entry("Do not use tabs for indentation.", **({"id": "e1", "kind": "fact"} | fields))
        for path, fields in other.items()
    }
    assert open_kb(vault(files)).contradictions().found == ()


def test_what_is_in_one_file_is_edited_in_place(vault: Make, open_kb: Open) -> None:
    text = (
        "# Ours\n\n"
        + entry("Use tabs.", id="a", type="directive")
        + "\n"
        + entry("Do not use tabs.", id="b # own", type="directive")
    )
    kb = open_kb(vault({"memory/institutional.md": text}))
    resolve(kb)
    data = (kb.vault.folder / "memory/institutional.md").read_text()
    assert data.startswith("# Ours\n\n---\nid: a\ntype: directive\n")
    assert "id: b # own\n" in data
    assert data.count("flags: [review]") == 2


# -- a language model's word -----------------------------------------------------------------------


def make(name: str, text: str, created_at: str = "2026-11-01") -> Memory:
    return Memory(
        name, f"{name}.md", "", Location(), "T", text, created_at=created_at, metadata={"id": name, "kind": "fact"}
    )


class Answers:
    """A language model that gives one answer, or fails."""

    def __init__(self, answer: Mapping[str, object] | None) -> None:
        self._answer = answer
        self.prompts: list[str] = []

    def complete(self, prompt: str, schema: Mapping[str, object], *, timeout: float) -> Mapping[str, object]:
        self.prompts.append(prompt)
        assert timeout > 0
        assert schema["additionalProperties"] is False
        if self._answer is None:
            raise ProviderFailed("no answer")
        return self._answer


OPPOSITES = [make("a", "Use tabs for indentation."), make("b", "Do not use tabs for indentation.")]
SIMILAR = [make("c", "Ship the release on Monday at noon."), make("d", "Ship the release on Tuesday at noon.")]


@pytest.mark.parametrize(
    ("answer", "causes"),
    [
        ({"cause": "temporal_obsolescence"}, {"ab": "temporal_obsolescence", "cd": "temporal_obsolescence"}),
        ({"cause": "scope_dependent"}, {"ab": "scope_dependent", "cd": "scope_dependent"}),
        ({"cause": "retrieval_noise"}, {}),
        (None, {"ab": "genuine_tension"}),
    ],
)
def test_a_model_has_the_last_word_and_its_failure_changes_nothing(
    answer: Mapping[str, object] | None, causes: dict[str, str], vault: Make, open_kb: Open
) -> None:
    llm, failures, models = Answers(answer), list[str](), open_kb(vault({})).models
    models.__dict__["llm"] = llm
    found = find_contradictions([*OPPOSITES, *SIMILAR], functools.partial(ask_cause, models, failures))
    assert {one.older.id + one.newer.id: one.cause for one in found} == causes
    assert failures == (["no answer; the rule decided"] if answer is None else [])
    assert len(llm.prompts) == (1 if answer is None else 2)
    assert "Use tabs for indentation." in llm.prompts[0]


def test_any_function_can_classify() -> None:
    def classify(one: str, other: str) -> Cause | None:
        return "temporal_obsolescence" if "Tuesday" in other else None

    (found,) = find_contradictions(SIMILAR, classify)
    assert [change.values for change in plan_resolutions([found])] == [
        {"status": "retired", "links": [{"to": "d", "relation": "superseded_by"}]},
        {"links": [{"to": "c", "relation": "supersedes"}]},
    ]


# -- the command -----------------------------------------------------------------------------------


def test_the_command(run: Run, vault: Make) -> None:
    folder = store(
        vault, "Use tabs for indentation.", "Do not use tabs for indentation.", "Servers are named after rivers."
    )
    vaulted = ("--vault", folder, "contradictions")
    listed = run(*vaulted)
    assert (listed.returncode, listed.stdout.splitlines()[0]) == (
        0,
        "temporal_obsolescence: one says what the other denies; would retire the older",
    )
    assert "older  Use tabs for indentation.  memory/learnings/0.md:6  e0" in listed.stdout
    (told,) = json.loads(run(*vaulted, "--json").stdout)["contradictions"]
    assert (told["cause"], told["resolution"], told["older"]["id"], told["newer"]["path"]) == (
        "temporal_obsolescence",
        "retire",
        "e0",
        "memory/learnings/1.md",
    )
    before = tree(folder)
    assert "+status: retired" in run(*vaulted, "--resolve", "--dry-run").stdout
    assert tree(folder) == before
    done = run(*vaulted, "--resolve")
    assert "the older is retired" in done.stdout
    assert "reverts this" in done.stderr
    assert run(*vaulted).stderr == "No entry contradicts another, beyond what was settled or waits for review.\n"


def test_a_model_without_its_key_is_reported(run: Run, vault: Make) -> None:
    folder = store(vault, "Use tabs for indentation.", "Do not use tabs for indentation.")
    done = run("--vault", folder, "contradictions", env={"MEMORY_KB_LLM_PROVIDER": "openai", "OPENAI_API_KEY": ""})
    assert done.returncode == 0
    assert "the rule decided" in done.stderr
    assert "would retire the older" in done.stdout
