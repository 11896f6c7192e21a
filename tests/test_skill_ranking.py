"""Skills by their chances: who is drawn, who is found for a task, and what feedback does to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from conftest import Files
from support import entry

from memory_kb import KnowledgeBase
from memory_kb.errors import AmbiguousId, UsageError
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.skills.skill import Skill, make_skill, rank_skills
from memory_kb.skills.skill_text import parse_skill

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}


def skill(name: str, wins: int = 0, losses: int = 0) -> Skill:
    metadata = {"name": name, "success_count": wins, "failure_count": losses}
    return make_skill(Memory(name, f"{name}.md", "", Location(), name, "", kind="skill", metadata=metadata))


@pytest.mark.parametrize(
    ("wins", "losses", "alpha", "beta", "mean", "ucb"),
    [
        (7, 1, 8, 2, 0.8, 1.036),
        (0, 0, 1, 1, 0.5, 1.066),
        (0, 3, 1, 4, 0.2, 0.52),
        (1_000_000, 0, 1_000_001, 1, 0.999999, 1.0),
    ],
)
def test_beta(wins: int, losses: int, alpha: int, beta: int, mean: float, ucb: float) -> None:
    chance = skill("s", wins, losses)
    assert (chance.alpha, chance.beta) == (alpha, beta)
    assert (round(chance.mean, 6), round(chance.ucb, 3)) == (mean, ucb)


def test_one_seed_is_one_order_whatever_order_they_come_in() -> None:
    skills = [skill(f"s{number}", number, 9 - number) for number in range(10)]
    first = [one.name for one in rank_skills(skills, "thompson", Random(7))]
    assert [one.name for one in rank_skills(skills[::-1], "thompson", Random(7))] == first
    assert any([one.name for one in rank_skills(skills, "thompson", Random(seed))] != first for seed in range(8))


def test_sampling_prefers_what_worked_and_still_tries_what_is_new() -> None:
    skills = [skill("good", 30, 3), skill("new"), skill("bad", 1, 30)]
    firsts = [rank_skills(skills, "thompson", Random(seed))[0].name for seed in range(300)]
    assert firsts.count("good") > 200
    assert 10 < firsts.count("new") < 100
    assert firsts.count("bad") == 0


def test_equal_samples_are_in_the_order_of_names() -> None:
    class Even(Random):
        def betavariate(self, alpha: float, beta: float) -> float:  # noqa: ARG002
            return 0.5

    assert [one.name for one in rank_skills([skill("b"), skill("C"), skill("a")], "thompson", Even())] == [
        "a",
        "b",
        "C",
    ]


def test_orders_without_a_sample() -> None:
    skills = [skill("new"), skill("good", 7, 1), skill("bad", 0, 8)]
    assert [one.name for one in rank_skills(skills, "mean", Random(1))] == ["good", "new", "bad"]
    assert [one.name for one in rank_skills(skills, "ucb", Random(1))] == ["new", "good", "bad"]
    with pytest.raises(UsageError, match="fame"):
        rank_skills(skills, "fame", Random(1))


@pytest.mark.parametrize("value", ["many", -3, True, None, [1], float("nan")])
def test_odd_counts_are_none(value: object) -> None:
    memory = Memory(
        "x", "x.md", "", Location(), "x", "", kind="skill", metadata={"success_count": value, "failure_count": value}
    )
    assert (make_skill(memory).alpha, make_skill(memory).beta) == (1, 1)


SKILLS = CONFIG | {
    "memory/skills/flaky.md": entry(
        "# Skill: flaky\n\nRerun a flaky test.",
        id="flaky",
        kind="skill",
        name="Flaky test",
        success_count=7,
        failure_count=1,
    ),
    "memory/skills/ship.md": entry("# Skill: ship\n\nShip a release.", id="ship", kind="skill", name="Ship"),
    "memory/skills/old.md": entry("# Skill: old\n\nRerun a flaky test.", id="old", kind="skill", status="archived"),
    "memory/skills/gone.md": entry("# Skill: gone\n\nRerun a flaky test.", id="gone", kind="skill", status="retired"),
    "memory/skills/past.md": entry(
        "Rerun a flaky test.", id="past", kind="skill", links="[{to: flaky, relation: superseded_by}]"
    ),
    "memory/learnings/fact.md": entry("A flaky test is a bug.", id="fact", kind="fact"),
}


def test_a_search_finds_live_skills_that_fit(vault: MakeVault, open_kb: Open) -> None:
    result = open_kb(vault(SKILLS)).skills.search("rerun the flaky test", seed=1)
    assert [one.id for one in result.skills] == ["flaky"]
    assert (result.skills[0].alpha, result.skills[0].beta, result.mode) == (8, 2, "text")
    assert 0 < (result.skills[0].score or 0) < 1


def test_a_sample_orders_what_fits(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for name in ("Deploy by hand", "Deploy by robot", "Deploy by night"):
        kb.procedure(name, ["Deploy the service."])
    for _ in range(12):
        kb.skills.feedback("Deploy by robot", "success")
        kb.skills.feedback("Deploy by hand", "failure")
    orders = [[one.name for one in kb.skills.search("deploy service", seed=seed).skills] for seed in range(12)]
    assert sum(order[0] == "Deploy by robot" for order in orders) >= 8
    assert kb.skills.search("deploy service", seed=3) == kb.skills.search("deploy service", seed=3)
    assert len(kb.skills.search("deploy service", limit=2).skills) == 2


def test_without_a_query_all_compete(vault: MakeVault, open_kb: Open) -> None:
    assert {one.id for one in open_kb(vault(SKILLS)).skills.search().skills} == {"flaky", "ship"}


def test_the_whole_text_of_a_long_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    steps = [f"Step {number}: " + "word " * 30 for number in range(40)]
    kb.procedure("Long", steps)
    found = kb.skills.search("long word").skills[0]
    assert parse_skill(found.text).steps == tuple(step.strip() for step in steps)


def test_feedback_counts_successes_and_failures(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(SKILLS)
    kb = open_kb(folder)
    before = (folder / "memory/skills/flaky.md").read_text()
    kb.skills.feedback("flaky TEST", "success")
    kb.skills.feedback("fla", "failure")
    assert (folder / "memory/skills/flaky.md").read_text() == before.replace(
        "success_count: 7", "success_count: 8"
    ).replace("failure_count: 1", "failure_count: 2")
    kb.skills.feedback("ship", "success")
    assert [(one.alpha, one.beta) for one in kb.skills.rank("mean")] == [(9, 3), (2, 1)]
    with pytest.raises(UsageError, match="no skill in use"):
        kb.skills.feedback("gone", "success")
    with pytest.raises(UsageError, match="mixed"):
        kb.skills.feedback("ship", "mixed")


def test_a_beginning_that_fits_two_is_asked_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for name in ("Deploy a", "Deploy b"):
        kb.procedure(name, ["One."])
    with pytest.raises(AmbiguousId):
        kb.skills.feedback("deploy", "success")
