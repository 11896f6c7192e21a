"""Skills that come and go: catalogues, folders with a SKILL.md, and whole skills from vault to vault."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support import body_of, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput
from memory_kb.skills.skill_files import parse_catalogue, parse_skill_file, plain_name
from memory_kb.skills.skill_text import parse_skill

Open = Callable[..., KnowledgeBase]

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
    (tmp_path / "skills.yaml").write_text(CATALOGUE)
    kb = open_kb(folder)
    report = kb.skills.import_(tmp_path / "skills.yaml")
    assert [(one.name, one.id, one.action) for one in report.skills] == [
        ("Review a migration", "skill_1", "created"),
        ("Only a chance", "skill_2", "created"),
    ]
    assert [(problem.line, "name" in problem.message) for problem in report.problems] == [(18, True)]
    ranked = {one.id: one for one in kb.skills.rank("mean")}
    assert (ranked["skill_1"].alpha, ranked["skill_1"].beta, ranked["skill_1"].created_by) == (8, 2, "agent-7")
    assert (ranked["skill_2"].success_count, ranked["skill_2"].failure_count) == (3, 2)
    assert (
        parse_skill(body_of(folder, "memory/skills/review-a-migration.md")).template
        == "Review {file}:\n```sql\n{sql}\n```\n"
    )
    head = yaml.safe_load((folder / "memory/skills/review-a-migration.md").read_text().split("---\n")[1])
    assert head.keys().isdisjoint({"alpha", "beta", "template"})
    assert head["created_at"] == "2026-01-15T10:00:00Z"
    before = notes_of(folder)
    again = kb.skills.import_(tmp_path / "skills.yaml")
    assert again.run.run is None
    assert {one.action for one in again.skills} == {"known"}
    assert notes_of(folder) == before


def test_two_catalogues_that_number_alike(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    (tmp_path / "a.yaml").write_text("- {id: skill_1, name: Review, description: r, template: x, success_count: 2}\n")
    (tmp_path / "b.yaml").write_text(
        "- {id: skill_1, name: Deploy, description: d, template: y}\n- {id: skill_1, name: Test, template: z}\n"
    )
    kb = open_kb(folder)
    for name in ("a.yaml", "b.yaml", "b.yaml", "a.yaml"):
        kb.skills.import_(tmp_path / name)
    assert {one.name: (one.id, one.success_count) for one in kb.skills.rank("mean")} == {
        "Review": ("skill_1", 2),
        "Deploy": ("deploy", 0),
        "Test": ("test", 0),
    }


def test_a_second_import_loses_no_outcome_and_no_edit(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    (tmp_path / "s.yaml").write_text("- {id: a, name: A, template: old, success_count: 3, failure_count: 1}\n")
    kb = open_kb(folder)
    kb.skills.import_(tmp_path / "s.yaml")
    for _ in range(2):
        kb.skills.feedback("a", "success")
    kb.skills.create("A", template="mine")
    (tmp_path / "s.yaml").write_text("- {id: a, name: A, template: theirs, success_count: 4, failure_count: 6}\n")
    report = kb.skills.import_(tmp_path / "s.yaml")
    assert [(one.action, "--update" in one.message) for one in report.skills] == [("updated", True)]
    [one] = kb.skills.rank("mean")
    assert (one.success_count, one.failure_count, parse_skill(one.text).template) == (5, 6, "mine")
    kb.skills.import_(tmp_path / "s.yaml", update=True)
    assert parse_skill(kb.skills.rank("mean")[0].text).template == "theirs"
    assert kb.skills.import_(tmp_path / "s.yaml", update=True).run.run is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- name: a\n- name: b\n", ["a", "b"]),
        ("---\n- name: a\n", ["a"]),
        ("[{name: a}, {name: b}]", ["a", "b"]),
        ('{"skills": [{"name": "a"}]}', ["a"]),
        ("\ufeff# comment\n\nskills:\n- {id: a, description: d}\n", ["a"]),
    ],
)
def test_shapes_of_a_catalogue(text: str, names: list[str]) -> None:
    found, problems = parse_catalogue(text, "s.yaml")
    assert [one.text.name for one in found] == names
    assert problems == ()


@pytest.mark.parametrize("text", ["", "a: [", "skills: []", "just words", "- name: a\n  b: c: d\n"])
def test_what_is_no_catalogue(text: str) -> None:
    with pytest.raises(UnreadableInput, match=r"s\.yaml:\d+: "):
        parse_catalogue(text, "s.yaml")


@pytest.mark.slow
def test_a_large_catalogue() -> None:
    text = yaml.safe_dump(
        [{"name": f"Skill {number}", "template": "x" * 1000, "tags": ["a", "b"]} for number in range(1500)]
    )
    found, _ = parse_catalogue(text, "s.yaml")
    assert len(found) == 1500


SKILL_FILE = """---
name: pdf-forms
description: Fill PDF forms. Use when a form is asked for.
license: Apache-2.0
allowed-tools: Read, Bash(python:*)
metadata:
  author: somebody
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
        "loose/SKILL.md": "---\nname: loose\ndescription: 'Use when: it is loose'\nstatus: retired\n---\nJust do it.\n",
        "bare/SKILL.md": "# Bare\n\nNo frontmatter at all.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_folders_with_a_skill_file(claude: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    report = kb.skills.import_(claude)
    assert [(one.name, one.action) for one in report.skills] == [
        ("bare", "created"),
        ("loose", "created"),
        ("pdf-forms", "created"),
    ]
    assert report.problems == ()
    head = yaml.safe_load((folder / "memory/skills/pdf-forms.md").read_text().split("---\n")[1])
    assert (head["license"], head["allowed-tools"], head["metadata"]) == (
        "Apache-2.0",
        "Read, Bash(python:*)",
        {"author": "somebody"},
    )
    assert (head["kind"], head["type"]) == ("skill", "procedural")
    assert sorted(path.name for path in (folder / "memory/skills").iterdir()) == ["bare.md", "loose.md", "pdf-forms.md"]
    assert {one.name: one.description for one in kb.skills.rank()}["loose"] == "Use when: it is loose"
    assert kb.skills.import_(claude).run.run is None
    assert [one.id for one in kb.skills.search("fill a form").skills] == ["pdf-forms"]


def test_a_skill_file_goes_round(claude: Path, tmp_path: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.skills.import_(claude, with_files=True)
    report = kb.skills.export(tmp_path / "out", with_files=True)
    assert {one.action for one in report.files} == {"written"}
    for name in ("references/fields.md", "scripts/fill.py"):
        assert (tmp_path / "out/pdf-forms" / name).read_bytes() == (claude / "pdf-forms" / name).read_bytes()
    out, source = ((path / "pdf-forms/SKILL.md").read_text() for path in (tmp_path / "out", claude))
    assert yaml.safe_load(out.split("---\n")[1]) == yaml.safe_load(source.split("---\n")[1])
    assert out.split("---\n", 2)[2] == source.split("---\n", 2)[2]
    assert {one.action for one in kb.skills.export(tmp_path / "out", with_files=True).files} == {"unchanged"}
    again = kb.skills.import_(tmp_path / "out", with_files=True, update=True)
    assert again.run.run is None


def test_a_skill_without_a_description_goes_round(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    made = kb.skills.create("Release train", steps=["Tag the build."])
    kb.skills.export(tmp_path / "out")
    head = yaml.safe_load((tmp_path / "out/release-train/SKILL.md").read_text(encoding="utf-8").split("---\n")[1])
    assert head["description"] == "Release train"
    (again,) = kb.skills.import_(tmp_path / "out").skills
    assert (again.id, again.action, again.message) == (made.id, "known", "")


def test_an_export_leaves_what_others_wrote(tmp_path: Path, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["One."])
    target = tmp_path / "out/ship-it/SKILL.md"
    target.parent.mkdir(parents=True)
    target.write_text("mine")
    assert [one.action for one in kb.skills.export(tmp_path / "out").files] == ["left"]
    assert target.read_text() == "mine"
    assert [one.action for one in kb.skills.export(tmp_path / "out", force=True, dry_run=True).files] == ["written"]
    assert target.read_text() == "mine"
    kb.skills.export(tmp_path / "out", ["ship IT"], force=True)
    assert target.read_text().startswith("---\nname: ship-it\n")


@pytest.mark.parametrize("target", ["out", "s.yaml"])
def test_skills_move_whole_to_another_vault(
    target: str, tmp_path: Path, folder: Path, open_kb: Open, claude: Path
) -> None:
    kb = open_kb(folder)
    kb.skills.create(
        "Größe: prüfen!", "Wie groß?", steps=["Messen.", "Run:\n```sh\nls\n```"], tags=["maß"], created_by="Ana"
    )
    kb.skills.create("Prompt", template="Say {this}\n\nand --- that")
    kb.skills.import_(claude)
    for outcome in ("success", "success", "failure"):
        kb.skills.feedback("Prompt", outcome)
    kb.skills.export(tmp_path / target)
    other = tmp_path / "other"
    (other / "memory").mkdir(parents=True)
    (other / "memory/config.yaml").write_text("")
    there = open_kb(other)
    there.skills.import_(tmp_path / target)
    mine, theirs = ({one.name: one for one in one_kb.skills.rank("mean")} for one_kb in (kb, there))
    assert mine.keys() == theirs.keys()
    for name, one in mine.items():
        assert (theirs[name].text, theirs[name].tags, theirs[name].alpha, theirs[name].beta) == (
            one.text,
            one.tags,
            one.alpha,
            one.beta,
        )
        assert (theirs[name].description, theirs[name].created_by) == (
            one.description or parse_skill(one.text).description or theirs[name].description,
            one.created_by,
        )


def test_files_that_hold_a_secret_or_are_changed_are_not_copied(claude: Path, folder: Path, open_kb: Open) -> None:
    (claude / "pdf-forms/scripts/key.py").write_text("KEY = 'ghp_" + "a1b2" * 9 + "'\n")
    kb = open_kb(folder)
    report = kb.skills.import_(claude, with_files=True)
    assert ["GitHub token" in problem.message for problem in report.problems] == [True]
    assert not (folder / "memory/skills/pdf-forms/scripts/key.py").exists()
    (folder / "memory/skills/pdf-forms/scripts/fill.py").write_text("mine\n")
    report = kb.skills.import_(claude, with_files=True)
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
    report = kb.skills.import_(source)
    assert [(one.name, one.action) for one in report.skills] == [("A", "refused"), ("B", "created"), ("C", "forgotten")]
    assert ["skills.yaml:" in problem.message for problem in report.problems] == [True]
    with pytest.raises(UnreadableInput):
        kb.skills.import_(tmp_path / "nowhere.yaml")
    with pytest.raises(UnreadableInput, match="no skills"):
        kb.skills.import_(claude_less(tmp_path))


def claude_less(tmp_path: Path) -> Path:
    (tmp_path / "empty").mkdir()
    return tmp_path / "empty"


@pytest.mark.parametrize("body", ["", "---\n", "\udcff", "---\nname: x\n---"])
def test_any_skill_file_reads(body: str) -> None:
    assert parse_skill_file(body, "x/SKILL.md", "x").text.name


@pytest.mark.parametrize("head", ["name: [", "- a", "description: Use when: a deploy fails"])
def test_a_head_that_is_no_yaml_is_refused_with_its_line(head: str) -> None:
    with pytest.raises(UnreadableInput, match=r"roll-back/SKILL\.md:[23]: the frontmatter is not"):
        parse_skill_file(f"---\n{head}\n---\nRun it.\n", "roll-back/SKILL.md", "roll-back")


@pytest.mark.parametrize(("name", "plain"), [("検索", "skill-"), ("x" * 80, "x" * 60), ("A & B", "a-b")])
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name).startswith(plain)
    assert re.fullmatch(r"[a-z0-9-]{1,64}", plain_name(name))
