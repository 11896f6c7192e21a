"""Skills: their chances, their bodies, and what becomes of them in a vault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import yaml
from conftest import Files, Run
from hypothesis import given
from hypothesis import strategies as st
from support import entry, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import AmbiguousId, CannotSplice, Forgotten, SecretRefused, UnknownEntry, UnreadableInput, UsageError
from memory_kb.learning.memories import Memory
from memory_kb.learning.procedures.skillfiles import parse_catalogue, parse_skill_file, plain_name
from memory_kb.learning.procedures.skillplans import make_slug
from memory_kb.learning.procedures.skills import Skill, make_beta, make_skill, rank_skills
from memory_kb.learning.procedures.skilltexts import SkillText, parse_skill, render_skill, update_body
from memory_kb.model import Location

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
PARTS = ("prerequisites", "steps", "errors", "exit_criteria", "template")


def skill(name: str, wins: int = 0, losses: int = 0) -> Skill:
    metadata = {"name": name, "success_count": wins, "failure_count": losses}
    return make_skill(Memory(name, f"{name}.md", "", Location(), name, "", kind="skill", metadata=metadata))


def body_of(folder: Path, path: str) -> str:
    return (folder / path).read_text().split("\n---\n", 1)[1].strip("\n")


# -- chances -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wins", "losses", "alpha", "beta", "mean", "ucb"),
    [(7, 1, 8, 2, 0.8, 1.036), (0, 0, 1, 1, 0.5, 1.066), (0, 3, 1, 4, 0.2, 0.52), (1_000_000, 0, 1_000_001, 1, 0.999999, 1.0)],
)
def test_beta(wins: int, losses: int, alpha: int, beta: int, mean: float, ucb: float) -> None:
    chance = make_beta(wins, losses)
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


def test_equal_samples_stand_in_the_order_of_names() -> None:
    class Even(Random):
        def betavariate(self, alpha: float, beta: float) -> float:  # noqa: ARG002
            return 0.5

    assert [one.name for one in rank_skills([skill("b"), skill("C"), skill("a")], "thompson", Even())] == ["a", "b", "C"]


def test_orders_without_a_sample() -> None:
    skills = [skill("new"), skill("good", 7, 1), skill("bad", 0, 8)]
    assert [one.name for one in rank_skills(skills, "mean", Random(1))] == ["good", "new", "bad"]
    assert [one.name for one in rank_skills(skills, "ucb", Random(1))] == ["new", "good", "bad"]
    with pytest.raises(UsageError, match="fame"):
        rank_skills(skills, "fame", Random(1))


@pytest.mark.parametrize("value", ["many", -3, True, None, [1], float("nan")])
def test_odd_counts_are_none(value: object) -> None:
    memory = Memory("x", "x.md", "", Location(), "x", "", kind="skill", metadata={"success_count": value, "failure_count": value})
    assert (make_skill(memory).alpha, make_skill(memory).beta) == (1, 1)


# -- bodies --------------------------------------------------------------------------------

EXACT = """# Skill: Ship it

Every Monday.

## Prerequisites

- Green build

## Steps

1. Tag {version}.
2. Push:
   both remotes.

## Common Errors & Fixes

- tag exists: bump the version

## Exit Criteria

- The page shows {version}

## Template

````
```sh
make release
```
````"""
SHIP = SkillText(
    "Ship it",
    "Every Monday.",
    ("Green build",),
    ("Tag {version}.", "Push:\nboth remotes."),
    ("tag exists: bump the version",),
    ("The page shows {version}",),
    "```sh\nmake release\n```",
)


def test_the_exact_form() -> None:
    assert render_skill(SHIP) == EXACT
    assert parse_skill(EXACT) == SHIP


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        ("## Steps\n\n1. One.\n1. Two.\n", ("One.", "Two.")),
        ("## STEPS:\n* One.\n+ Two.\n", ("One.", "Two.")),
        ("## Steps\r\n\r\n1) One\r\n2) Two\r\n", ("One", "Two")),
        ("## Steps\nFirst do this.\n\nThen\nthat.\n", ("First do this.", "Then that.")),
        ("## Steps\n1. One\n   - inner\n   - inner too\n2. Two\n", ("One\n- inner\n- inner too", "Two")),
        ("## Steps\n1. ```sh\n   ## no heading\n   ```\n2. Two\n", ("```sh\n## no heading\n```", "Two")),
        ("## Steps\n1. ```left open\n## Exit Criteria\n- done\n", ("```left open",)),
        ("```\n## Steps\n1. No\n```\n## Steps ##\n1. Yes\n", ("Yes",)),
        ("## Steps\n1. lazy\ncontinuation\n\nprose behind\n", ("lazy\ncontinuation",)),
        ("## Steps\n", ()),
        ("Just prose.", None),
        ("", None),
    ],
)
def test_lenient_reading(body: str, steps: tuple[str, ...] | None) -> None:
    assert parse_skill(body).steps == steps


lines = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20).map(str.strip).filter(bool)
shapes = st.sampled_from(["# Head", "## Steps", "- dash", "1. one", "```", "~~~sh", "---", "a: b", "## Exit Criteria", "    deep", "`` x", "#"])
items = st.lists(st.lists(st.one_of(lines, shapes), min_size=1, max_size=3).map("\n".join), max_size=4).map(tuple)
bodies = st.builds(
    SkillText,
    st.just("Name"),
    st.none(),
    items,
    items,
    items,
    items,
    st.one_of(st.none(), st.lists(st.one_of(lines, shapes, st.just("")), max_size=4).map("\n".join)),
)


def cleaned(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    kept = ("\n".join(line.rstrip() for line in item.strip().split("\n")) for item in value)
    return tuple(item for item in kept if item)


@given(bodies)
def test_what_is_written_reads_back(said: SkillText) -> None:
    read = parse_skill(render_skill(said))
    assert read.template == said.template
    for part in PARTS[:4]:
        assert getattr(read, part) == cleaned(getattr(said, part))


@given(bodies, bodies)
def test_an_update_changes_the_parts_it_speaks_of(old: SkillText, new: SkillText) -> None:
    spoken = replace(new, prerequisites=None, exit_criteria=None)
    body = render_skill(old) + "\n\n## Notes\n\nMine.\n"
    changed = update_body(body, spoken, None)
    assert "\n\n## Notes\n\nMine.\n" in changed
    read = parse_skill(changed)
    assert read.steps == cleaned(new.steps)
    assert read.prerequisites == cleaned(old.prerequisites)
    assert read.exit_criteria == cleaned(old.exit_criteria)
    assert read.template == (old.template if new.template is None else new.template)
    assert update_body(changed, spoken, None) == changed


def test_an_update_keeps_what_people_wrote_around_a_list() -> None:
    body = (
        "# Ship\r\n\r\nMy own words.\r\n\r\n## Steps\r\n\r\nIn this order:\r\n\r\n* Tag.\r\n* Push.\r\n\r\n"
        "Never on Fridays.\r\n\r\n## Links\r\n\r\n- x\r\n"
    )
    changed = update_body(body, SkillText("Ship", "New.", steps=("Test.", "Push."), exit_criteria=("Done.",)), "Old.", "\r\n")
    assert changed == body.replace("* Tag.\r\n* Push.", "1. Test.\r\n2. Push.") + "\r\n## Exit Criteria\r\n\r\n- Done.\r\n"


def test_a_missing_section_goes_where_it_belongs() -> None:
    changed = update_body("# Skill: x\n\n## Exit Criteria\n\n- Done.\n", SkillText("x", steps=("One.",)), None)
    assert changed == "# Skill: x\n\n## Steps\n\n1. One.\n\n## Exit Criteria\n\n- Done.\n"


def test_nothing_is_put_into_an_open_fence() -> None:
    with pytest.raises(CannotSplice, match="close the fence"):
        update_body("# Skill: x\n\n```\nmake\n", SkillText("x", steps=("One.",)), None)
    closed = update_body("# Skill: x\n\n## Template\n\n```\nleft open", SkillText("x", steps=("One.",), template="new"), None)
    assert closed == "# Skill: x\n\n## Steps\n\n1. One.\n\n## Template\n\n```\nnew\n```"


def test_the_place_of_a_part_is_never_in_a_fence() -> None:
    body = "# Skill: x\n\n```\n## Steps\n\n1. No.\n```\n"
    assert update_body(body, SkillText("x", steps=("Yes.",)), None) == body + "\n## Steps\n\n1. Yes.\n"


# -- keeping -------------------------------------------------------------------------------


def test_a_new_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    made = kb.skills_create("Ship it", "Every Monday.", steps=["Tag.", "Push."], tags=["release"], created_by="Ana", template="make {target}")
    assert (made.action, made.id, made.path) == ("created", "ship-it", "memory/skills/ship-it.md")
    head = yaml.safe_load((folder / made.path).read_text().split("---\n")[1])
    assert (head["kind"], head["name"], head["description"], head["created_by"], head["tags"]) == (
        "skill",
        "Ship it",
        "Every Monday.",
        "Ana",
        ["release"],
    )
    assert (head["success_count"], head["failure_count"], head["type"]) == (0, 0, "procedural")
    assert body_of(folder, made.path) == render_skill(SkillText("Ship it", "Every Monday.", steps=("Tag.", "Push."), template="make {target}"))
    assert [hit.id for hit in kb.search("monday", kind=["skill"]).hits] == ["ship-it"]


def test_an_existing_name_is_brought_up_to_date(vault: MakeVault, open_kb: Open) -> None:
    """S1-27: in any case of letters, in its scope; counters and all that is not told stay."""
    text = (
        "\ufeff---\r\nid: one\r\nkind: fact\r\n---\r\nFirst.\r\n\r\n"
        "---\r\nid: ship   # short\r\nkind: skill\r\nname: Ship it\r\nsuccess_count: 7 # in May\r\nfailure_count: 1\r\nowner: Ana\r\n---\r\n"
        "# Skill: Ship it\r\n\r\n## Steps\r\n\r\n1. Old.\r\n\r\n## Notes\r\n\r\nKeep\x0c me.\r\n\r\n---\r\nid: three\r\n---\r\nThird."
    )
    folder = vault(CONFIG | {"memory/many.md": text.encode()})
    kb = open_kb(folder)
    done = kb.procedure("SHIP  IT", ["New."], "When it is due")
    assert (done.action, done.id, done.path) == ("updated", "ship", "memory/many.md")
    expected = text.replace("1. Old.", "1. New.").replace("owner: Ana\r\n", "owner: Ana\r\ndescription: When it is due\r\n")
    expected = expected.replace("# Skill: Ship it\r\n", "# Skill: Ship it\r\n\r\nWhen it is due\r\n")
    assert (folder / "memory/many.md").read_bytes() == expected.encode()
    assert kb.procedure("ship it", ["New."], "When it is due").action == "unchanged"
    ranked = kb.skills_rank("mean")
    assert [(one.name, one.success_count, one.mean) for one in ranked] == [("Ship it", 7, 0.8)]
    kb.undo()
    assert (folder / "memory/many.md").read_bytes() == text.encode()


def test_the_same_name_in_another_scope_is_another_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["Global."], scope="global")
    kb.procedure("Ship it", ["Project."])
    made = kb.procedure("Ship it", ["Job."], job="api")
    assert (made.action, made.id, made.path) == ("created", "ship-it", "memory/jobs/api/skills/ship-it.md")
    assert [one.path for one in kb.skills_rank("mean")] == ["memory/jobs/api/skills/ship-it.md"]
    assert kb.skills_feedback("ship it", "success").path == "memory/jobs/api/skills/ship-it.md"


@pytest.mark.parametrize(
    ("name", "slug"),
    [("../../etc/passwd", "etc-passwd"), ("C:\\con", "c-con"), ("con", "con-skill"), ("Prüfung: 検索", "prüfung-検索"), ("x" * 200, "x" * 60)],
)
def test_file_names_are_safe(name: str, slug: str, folder: Path, open_kb: Open) -> None:
    made = open_kb(folder).procedure(name, ["One."])
    assert make_slug(name) == slug
    assert (folder / f"memory/skills/{slug}.md").is_file()
    assert made.id == slug


def test_two_names_with_one_slug_are_two_skills(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    ids = [kb.procedure(name, ["One."]).id for name in ("C++", "C", "c#")]
    assert ids == ["c", "c-2", "c-3"]
    assert kb.procedure("c", ["Two."]).id == "c-2"
    assert kb.procedure("C", ["One."], scope="global").id == "c-2"
    assert kb.procedure("C--", ["One."], scope="global").id == "c-4"


@pytest.mark.parametrize(
    ("name", "steps", "error"),
    [("", ["One."], UsageError), ("\n ", ["One."], UsageError), ("x", [], UsageError), ("x", [" "], UsageError), ("x" * 201, ["One."], UsageError)],
)
def test_what_makes_no_sense(name: str, steps: list[str], error: type[Exception], folder: Path, open_kb: Open) -> None:
    with pytest.raises(error):
        open_kb(folder).procedure(name, steps)


@pytest.mark.parametrize("where", ["description", "template", "steps", "errors", "tags", "created_by"])
def test_credentials_are_refused(where: str, folder: Path, open_kb: Open) -> None:
    secret = "ghp_" + "a1b2" * 9
    value: object = secret if where in ("description", "template", "created_by") else [secret]
    with pytest.raises(SecretRefused):
        open_kb(folder).skills_create("Ship", **{where: value})  # type: ignore[arg-type]
    assert not (folder / "memory/skills").exists()


@pytest.mark.parametrize("erase", [False, True])
def test_what_was_forgotten_does_not_come_back_by_itself(erase: bool, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["One."])
    kb.forget("ship-it", delete=erase)
    with pytest.raises(Forgotten):
        kb.procedure("ship IT", ["One."])
    assert kb.procedure("Ship it", ["One."], force=True).id == "ship-it-2"
    assert [one.id for one in kb.skills_rank()] == ["ship-it-2"]


def test_a_dry_run_writes_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    assert "+1. One." in kb.procedure("Ship", ["One."], dry_run=True).run.diff
    assert notes_of(folder) == {}
    kb.procedure("Ship", ["One."])
    before = notes_of(folder)
    assert "+1. Two." in kb.procedure("Ship", ["Two."], dry_run=True).run.diff
    assert "+success_count: 1" in kb.skills_feedback("Ship", "success", dry_run=True).run.diff
    assert notes_of(folder) == before


def test_a_plain_folder(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"note.md": "A note.\n"})
    kb = open_kb(folder)
    assert kb.procedure("Ship", ["One."]).path == "skills/ship.md"
    with pytest.raises(UsageError, match="no jobs"):
        kb.procedure("Ship", ["One."], job="api")


# -- finding and feedback ------------------------------------------------------------------

SKILLS = CONFIG | {
    "memory/skills/flaky.md": entry(
        "# Skill: flaky\n\nRerun a flaky test.", id="flaky", kind="skill", name="Flaky test", success_count=7, failure_count=1
    ),
    "memory/skills/ship.md": entry("# Skill: ship\n\nShip a release.", id="ship", kind="skill", name="Ship"),
    "memory/skills/old.md": entry("# Skill: old\n\nRerun a flaky test.", id="old", kind="skill", status="archived"),
    "memory/skills/gone.md": entry("# Skill: gone\n\nRerun a flaky test.", id="gone", kind="skill", status="retired"),
    "memory/skills/past.md": entry("Rerun a flaky test.", id="past", kind="skill", links="[{to: flaky, relation: superseded_by}]"),
    "memory/learnings/fact.md": entry("A flaky test is a bug.", id="fact", kind="fact"),
}


def test_a_search_finds_live_skills_that_fit(vault: MakeVault, open_kb: Open) -> None:
    result = open_kb(vault(SKILLS)).skills_search("rerun the flaky test", seed=1)
    assert [one.id for one in result.skills] == ["flaky"]
    assert (result.skills[0].alpha, result.skills[0].beta, result.mode) == (8, 2, "text")
    assert 0 < (result.skills[0].score or 0) < 1


def test_a_sample_orders_what_fits(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for name in ("Deploy by hand", "Deploy by robot", "Deploy by night"):
        kb.procedure(name, ["Deploy the service."])
    for _ in range(12):
        kb.skills_feedback("Deploy by robot", "success")
        kb.skills_feedback("Deploy by hand", "failure")
    orders = [[one.name for one in kb.skills_search("deploy service", seed=seed).skills] for seed in range(12)]
    assert sum(order[0] == "Deploy by robot" for order in orders) >= 8
    assert kb.skills_search("deploy service", seed=3) == kb.skills_search("deploy service", seed=3)
    assert len(kb.skills_search("deploy service", limit=2).skills) == 2


def test_without_a_query_all_compete(vault: MakeVault, open_kb: Open) -> None:
    assert {one.id for one in open_kb(vault(SKILLS)).skills_search().skills} == {"flaky", "ship"}


def test_the_whole_text_of_a_long_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    steps = [f"Step {number}: " + "word " * 30 for number in range(40)]
    kb.procedure("Long", steps)
    found = kb.skills_search("long word").skills[0]
    assert parse_skill(found.text).steps == tuple(step.strip() for step in steps)


def test_feedback(vault: MakeVault, open_kb: Open) -> None:
    """S0-57."""
    folder = vault(SKILLS)
    kb = open_kb(folder)
    before = (folder / "memory/skills/flaky.md").read_text()
    kb.skills_feedback("flaky TEST", "success")
    kb.skills_feedback("fla", "failure")
    assert (folder / "memory/skills/flaky.md").read_text() == before.replace("success_count: 7", "success_count: 8").replace(
        "failure_count: 1", "failure_count: 2"
    )
    kb.skills_feedback("ship", "success")
    assert [(one.alpha, one.beta) for one in kb.skills_rank("mean")] == [(9, 3), (2, 1)]
    with pytest.raises(UnknownEntry):
        kb.skills_feedback("gone", "success")
    with pytest.raises(UsageError, match="mixed"):
        kb.skills_feedback("ship", "mixed")


def test_a_beginning_that_fits_two_is_asked_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for name in ("Deploy a", "Deploy b"):
        kb.procedure(name, ["One."])
    with pytest.raises(AmbiguousId):
        kb.skills_feedback("deploy", "success")


# -- in and out ----------------------------------------------------------------------------

CATALOGUE = """\
# the old playbook
skills:
- id: skill_1
  name: Review a migration
  description: Before it is merged
  template: |
    Review {file}:
    ```sql
    {sql}
    ```
  tags: [sql, review]
  success_count: 7
  failure_count: 1
  alpha: 8.0
  beta: 2.0
  created_by: agent-7
  created_at: '2026-01-15T10:00:00Z'
- description: nobody knows its name
- id: skill_2
  name: Only a chance
  template: do it
  alpha: 4.0
  beta: 3.0
"""


def test_the_catalogue_of_the_seed(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    """S0-51."""
    (tmp_path / "skills.yaml").write_text(CATALOGUE)
    kb = open_kb(folder)
    report = kb.skills_import(tmp_path / "skills.yaml")
    assert [(one.name, one.id, one.action) for one in report.skills] == [
        ("Review a migration", "skill_1", "created"),
        ("Only a chance", "skill_2", "created"),
    ]
    assert [(problem.line, "name" in problem.message) for problem in report.problems] == [(18, True)]
    ranked = {one.id: one for one in kb.skills_rank("mean")}
    assert (ranked["skill_1"].alpha, ranked["skill_1"].beta, ranked["skill_1"].created_by) == (8, 2, "agent-7")
    assert (ranked["skill_2"].success_count, ranked["skill_2"].failure_count) == (3, 2)
    assert parse_skill(body_of(folder, "memory/skills/review-a-migration.md")).template == "Review {file}:\n```sql\n{sql}\n```\n"
    head = yaml.safe_load((folder / "memory/skills/review-a-migration.md").read_text().split("---\n")[1])
    assert head.keys().isdisjoint({"alpha", "beta", "template"})
    assert head["created_at"] == "2026-01-15T10:00:00Z"
    before = notes_of(folder)
    again = kb.skills_import(tmp_path / "skills.yaml")
    assert again.run.run is None
    assert {one.action for one in again.skills} == {"known"}
    assert notes_of(folder) == before


def test_two_catalogues_that_number_alike(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    (tmp_path / "a.yaml").write_text("- {id: skill_1, name: Review, description: r, template: x, success_count: 2}\n")
    (tmp_path / "b.yaml").write_text("- {id: skill_1, name: Deploy, description: d, template: y}\n- {id: skill_1, name: Test, template: z}\n")
    kb = open_kb(folder)
    for name in ("a.yaml", "b.yaml", "b.yaml", "a.yaml"):
        kb.skills_import(tmp_path / name)
    assert {one.name: (one.id, one.success_count) for one in kb.skills_rank("mean")} == {
        "Review": ("skill_1", 2),
        "Deploy": ("deploy", 0),
        "Test": ("test", 0),
    }
    file = folder / "memory/skills/review.md"
    file.write_text(file.read_text().replace("name: Review", "name: Look again"))
    assert kb.skills_import(tmp_path / "a.yaml").skills[0].action == "known"


def test_a_second_import_loses_no_outcome_and_no_edit(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    (tmp_path / "s.yaml").write_text("- {id: a, name: A, template: old, success_count: 3, failure_count: 1}\n")
    kb = open_kb(folder)
    kb.skills_import(tmp_path / "s.yaml")
    for _ in range(2):
        kb.skills_feedback("a", "success")
    kb.skills_create("A", template="mine")
    (tmp_path / "s.yaml").write_text("- {id: a, name: A, template: theirs, success_count: 4, failure_count: 6}\n")
    report = kb.skills_import(tmp_path / "s.yaml")
    assert [(one.action, "--update" in one.message) for one in report.skills] == [("updated", True)]
    [one] = kb.skills_rank("mean")
    assert (one.success_count, one.failure_count, parse_skill(one.text).template) == (5, 6, "mine")
    kb.skills_import(tmp_path / "s.yaml", update=True)
    assert parse_skill(kb.skills_rank("mean")[0].text).template == "theirs"
    assert kb.skills_import(tmp_path / "s.yaml", update=True).run.run is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- name: a\n- name: b\n", ["a", "b"]),
        ("---\n- name: a\n", ["a"]),
        ("[{name: a}, {name: b}]", ["a", "b"]),
        ('{"skills": [{"name": "a"}]}', ["a"]),
        ("a:\n  template: x\nb:\n  name: B\n", ["a", "B"]),
        ("\ufeff# comment\n\nskills:\n  a: {description: d}\n", ["a"]),
    ],
)
def test_shapes_of_a_catalogue(text: str, names: list[str]) -> None:
    found, problems = parse_catalogue(text, "s.yaml")
    assert [one.draft.text.name for one in found] == names
    assert problems == ()


@pytest.mark.parametrize("text", ["", "a: [", "skills: []", "just words", "- name: a\n  b: c: d\n"])
def test_what_is_no_catalogue(text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"s\.yaml:\d+: "):
        parse_catalogue(text, "s.yaml")


def test_a_large_catalogue() -> None:
    text = yaml.safe_dump([{"name": f"Skill {number}", "template": "x" * 1000, "tags": ["a", "b"]} for number in range(1500)])
    found, _ = parse_catalogue(text, "s.yaml")
    assert len(found) == 1500


SKILL_FILE = """---
name: pdf-forms
description: Fill PDF forms. Use when a form is asked for.
license: Apache-2.0
allowed-tools: Read, Bash(python:*)
metadata:
  author: somebody
type: workflow
tags:
- pdf
---

# PDF forms

Run `scripts/fill.py`.

---

## Steps

1. Look.
2. Fill.
"""


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    """A folder of skills as Claude keeps them."""
    folder = tmp_path / "claude"
    for name, text in {
        "pdf-forms/SKILL.md": SKILL_FILE,
        "pdf-forms/scripts/fill.py": "print('filled')\n",
        "pdf-forms/references/fields.md": "# Fields\n",
        "pdf-forms/.git/config": "x",
        "loose/SKILL.md": "---\nname: loose\ndescription: Use when: it is loose\n---\nJust do it.\n",
        "bare/SKILL.md": "# Bare\n\nNo frontmatter at all.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_folders_with_a_skill_file(claude: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    report = kb.skills_import(claude)
    assert [(one.name, one.action) for one in report.skills] == [("bare", "created"), ("loose", "created"), ("pdf-forms", "created")]
    assert report.problems == ()
    head = yaml.safe_load((folder / "memory/skills/pdf-forms.md").read_text().split("---\n")[1])
    assert (head["license"], head["allowed-tools"], head["metadata"]) == ("Apache-2.0", "Read, Bash(python:*)", {"author": "somebody"})
    assert (head["kind"], head["type"], head["tags"], head["imported"]) == ("skill", "procedural", ["pdf"], {"type": "workflow", "tags": ["pdf"]})
    assert head["bundled_files"] == ["references/fields.md", "scripts/fill.py"]
    assert sorted(path.name for path in (folder / "memory/skills").iterdir()) == ["bare.md", "loose.md", "pdf-forms.md"]
    assert {one.name: one.description for one in kb.skills_rank()}["loose"] == "Use when: it is loose"
    assert kb.skills_import(claude).run.run is None
    assert [one.id for one in kb.skills_search("fill a form").skills] == ["pdf-forms"]


def test_a_skill_file_goes_round(claude: Path, tmp_path: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.skills_import(claude, with_files=True)
    report = kb.skills_export(tmp_path / "out", with_files=True)
    assert {one.action for one in report.files} == {"written"}
    for name in ("references/fields.md", "scripts/fill.py"):
        assert (tmp_path / "out/pdf-forms" / name).read_bytes() == (claude / "pdf-forms" / name).read_bytes()
    out, source = ((path / "pdf-forms/SKILL.md").read_text() for path in (tmp_path / "out", claude))
    assert yaml.safe_load(out.split("---\n")[1]) == yaml.safe_load(source.split("---\n")[1])
    assert out.split("---\n", 2)[2] == source.split("---\n", 2)[2]
    assert {one.action for one in kb.skills_export(tmp_path / "out", with_files=True).files} == {"unchanged"}
    again = kb.skills_import(tmp_path / "out", with_files=True, update=True)
    assert again.run.run is None


def test_an_export_leaves_what_others_wrote(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["One."])
    target = tmp_path / "out/ship-it/SKILL.md"
    target.parent.mkdir(parents=True)
    target.write_text("mine")
    assert [one.action for one in kb.skills_export(tmp_path / "out").files] == ["left"]
    assert target.read_text() == "mine"
    assert [one.action for one in kb.skills_export(tmp_path / "out", force=True, dry_run=True).files] == ["written"]
    assert target.read_text() == "mine"
    kb.skills_export(tmp_path / "out", ["ship IT"], force=True)
    assert target.read_text().startswith("---\nname: ship-it\n")


@pytest.mark.parametrize("target", ["out", "s.yaml"])
def test_skills_move_whole_to_another_vault(target: str, tmp_path: Path, folder: Path, open_kb: Open, claude: Path) -> None:
    kb = open_kb(folder)
    kb.skills_create("Größe: prüfen!", "Wie groß?", steps=["Messen.", "Run:\n```sh\nls\n```"], tags=["maß"], created_by="Ana")
    kb.skills_create("Prompt", template="Say {this}\n\nand --- that")
    kb.skills_import(claude)
    for outcome in ("success", "success", "failure"):
        kb.skills_feedback("Prompt", outcome)
    kb.skills_export(tmp_path / target)
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory/config.yaml").write_text("")
    there = open_kb(other)
    there.skills_import(tmp_path / target)
    mine, theirs = ({one.name: one for one in one_kb.skills_rank("mean")} for one_kb in (kb, there))
    assert mine.keys() == theirs.keys()
    for name, one in mine.items():
        assert (theirs[name].text, theirs[name].tags, theirs[name].alpha, theirs[name].beta) == (one.text, one.tags, one.alpha, one.beta)
        assert (theirs[name].description, theirs[name].created_by) == (
            one.description or parse_skill(one.text).description or theirs[name].description,
            one.created_by,
        )


def test_files_that_hold_a_secret_or_are_changed_are_not_copied(claude: Path, folder: Path, open_kb: Open) -> None:
    (claude / "pdf-forms/scripts/key.py").write_text("KEY = 'ghp_" + "a1b2" * 9 + "'\n")
    kb = open_kb(folder)
    report = kb.skills_import(claude, with_files=True)
    assert ["GitHub token" in problem.message for problem in report.problems] == [True]
    assert not (folder / "memory/skills/pdf-forms/scripts/key.py").exists()
    (folder / "memory/skills/pdf-forms/scripts/fill.py").write_text("mine\n")
    report = kb.skills_import(claude, with_files=True)
    assert sum("--update" in problem.message for problem in report.problems) == 1
    assert (folder / "memory/skills/pdf-forms/scripts/fill.py").read_text() == "mine\n"


def test_an_import_takes_what_it_can(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    source = tmp_path / "in"
    (source / "a").mkdir(parents=True)
    (source / "skills.yaml").write_text("a: [")
    (source / "a/SKILL.md").write_text("---\nname: A\n---\nToken ghp_" + "a1b2" * 9 + "\n")
    (source / "b").mkdir()
    (source / "b/SKILL.md").write_text("---\nname: B\n---\nFine.\n")
    kb = open_kb(folder)
    kb.procedure("C", ["One."])
    kb.forget("c")
    (source / "c").mkdir()
    (source / "c/SKILL.md").write_text("---\nname: C\n---\nOne.\n")
    report = kb.skills_import(source)
    assert [(one.name, one.action) for one in report.skills] == [("A", "refused"), ("B", "created"), ("C", "forgotten")]
    assert ["skills.yaml:" in problem.message for problem in report.problems] == [True]
    with pytest.raises(UnreadableInput):
        kb.skills_import(tmp_path / "nowhere.yaml")
    with pytest.raises(UnreadableInput, match="no skills"):
        kb.skills_import(claude_less(tmp_path))


def claude_less(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


@pytest.mark.parametrize("body", ["", "---\n", "---\nname: [\n---\nx", "\udcff", "---\n- a\n---\nx", "---\nname: x\n---"])
def test_any_skill_file_reads(body: str) -> None:
    assert parse_skill_file(body, "x/SKILL.md", "x").draft.text.name


@pytest.mark.parametrize(("name", "plain"), [("検索", "skill-"), ("x" * 80, "x" * 60), ("A & B", "a-b")])
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name).startswith(plain)
    assert re.fullmatch(r"[a-z0-9-]{1,64}", plain_name(name))


# -- the command ---------------------------------------------------------------------------


def test_the_commands(folder: Path, run: Run, tmp_path: Path) -> None:
    vault = ("--vault", folder)
    made = json.loads(run(*vault, "skills", "create", "Ship it", "--step", "Tag.", "--error", "x: y", "--tag", "a", "--json").stdout)
    assert (made["id"], made["action"], made["verb"]) == ("ship-it", "created", "skills create")
    done = run(*vault, "procedure", "ship it", "-", "--context", "Mondays", stdin="Tag.\nPush.\n")
    assert (done.returncode, done.stdout.split()[0]) == (0, "updated")
    assert parse_skill(body_of(folder, "memory/skills/ship-it.md")).steps == ("Tag.", "Push.")
    assert "a" in (folder / "memory/skills/ship-it.md").read_text()
    assert run(*vault, "skills", "feedback", "Ship it", "success").returncode == 0
    found = json.loads(run(*vault, "skills", "search", "push", "--seed", "1", "--json").stdout)
    assert [(one["id"], one["alpha"], one["beta"]) for one in found["skills"]] == [("ship-it", 2.0, 1.0)]
    ranked = run(*vault, "skills", "rank", "--by", "ucb")
    assert "Ship it" in ranked.stdout
    assert run(*vault, "skills", "export", tmp_path / "s.yaml").returncode == 0
    assert yaml.safe_load((tmp_path / "s.yaml").read_text())["skills"][0]["alpha"] == 2.0
    (tmp_path / "s.yaml").write_text("other")
    assert run(*vault, "skills", "export", tmp_path / "s.yaml").returncode == 6
    assert run(*vault, "skills", "import", tmp_path / "s.yaml").returncode == 4
    assert run(*vault, "skills", "feedback", "nothing", "success").returncode == 4
    assert run(*vault, "procedure", "x").returncode == 2
    assert "would" in run(*vault, "procedure", "Other", "One.", "--dry-run").stderr
    piped = run(*vault, "skills", "create", "Prompt", "--template", "-", stdin="Say {x}\n")
    assert piped.returncode == 0
    assert parse_skill(body_of(folder, "memory/skills/prompt.md")).template == "Say {x}"
