"""Keeping skills in a vault: new ones, known ones, and those that are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import Files, Run
from support import body_of, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import Forgotten, SecretRefused, UsageError
from memory_kb.skills.skill_text import SkillText, parse_skill, render_skill
from memory_kb.text import make_slug

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}


def test_a_new_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    made = kb.skills.create(
        "Ship it",
        "Every Monday.",
        steps=["Tag.", "Push."],
        tags=["release"],
        created_by="Ana",
        template="make {target}",
    )
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
    assert body_of(folder, made.path) == render_skill(
        SkillText("Ship it", "Every Monday.", steps=("Tag.", "Push."), template="make {target}")
    )
    assert [hit.id for hit in kb.search("monday", kind=["skill"]).hits] == ["ship-it"]


def test_an_existing_name_is_brought_up_to_date(vault: MakeVault, open_kb: Open) -> None:
    """A name counts in any case of letters, in its scope; counters and all that is not given stay."""
    text = (
        "\ufeff---\r\nid: one\r\nkind: fact\r\n---\r\nFirst.\r\n\r\n"
        "---\r\nid: ship   # short\r\nkind: skill\r\nname: Ship it\r\nsuccess_count: 7 # in May\r\nfailure_count: 1\r\nowner: Ana\r\n---\r\n"
        "# Skill: Ship it\r\n\r\n## Steps\r\n\r\n1. Old.\r\n\r\n## Notes\r\n\r\nKeep\x0c me.\r\n\r\n---\r\nid: three\r\n---\r\nThird."
    )
    folder = vault(CONFIG | {"memory/many.md": text.encode()})
    kb = open_kb(folder)
    done = kb.procedure("SHIP  IT", ["New."], "When it is due")
    assert (done.action, done.id, done.path) == ("updated", "ship", "memory/many.md")
    expected = text.replace("1. Old.", "1. New.").replace(
        "owner: Ana\r\n", "owner: Ana\r\ndescription: When it is due\r\n"
    )
    expected = expected.replace("# Skill: Ship it\r\n", "# Skill: Ship it\r\n\r\nWhen it is due\r\n")
    assert (folder / "memory/many.md").read_bytes() == expected.encode()
    assert kb.procedure("ship it", ["New."], "When it is due").action == "unchanged"
    ranked = kb.skills.rank("mean")
    assert [(one.name, one.success_count, one.mean) for one in ranked] == [("Ship it", 7, 0.8)]
    kb.undo()
    assert (folder / "memory/many.md").read_bytes() == text.encode()


def test_the_same_name_in_another_scope_is_another_skill(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["Global."], scope="global")
    kb.procedure("Ship it", ["Project."])
    made = kb.procedure("Ship it", ["Job."], job="api")
    assert (made.action, made.id, made.path) == ("created", "ship-it", "memory/jobs/api/skills/ship-it.md")
    assert [one.path for one in kb.skills.rank("mean")] == ["memory/jobs/api/skills/ship-it.md"]
    assert kb.skills.feedback("ship it", "success").path == "memory/jobs/api/skills/ship-it.md"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\con", "c-con"),
        ("con", "con-skill"),
        ("Prüfung: 検索", "prüfung-検索"),
        ("x" * 200, "x" * 60),
    ],
)
def test_file_names_are_safe(name: str, slug: str, folder: Path, open_kb: Open) -> None:
    made = open_kb(folder).procedure(name, ["One."])
    assert make_slug(name) == slug
    assert (folder / f"memory/skills/{slug}.md").is_file()
    assert made.id == slug


def test_an_id_that_a_note_has_is_not_given_to_a_skill(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/learnings/note.md": "---\nid: deploy\nkind: fact\n---\nDeploys take an hour.\n"}))
    assert kb.skills.create("Deploy", steps=["Tag it."]).id == "deploy-2"
    assert kb.show("deploy").kind == "fact"


def test_two_names_with_one_slug_are_two_skills(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    ids = [kb.procedure(name, ["One."]).id for name in ("C++", "C", "c#")]
    assert ids == ["c", "c-2", "c-3"]
    assert kb.procedure("c", ["Two."]).id == "c-2"
    assert kb.procedure("C", ["One."], scope="global").id == "c-2"
    assert kb.procedure("C--", ["One."], scope="global").id == "c-4"


@pytest.mark.parametrize(
    ("name", "steps", "error"),
    [
        ("", ["One."], UsageError),
        ("\n ", ["One."], UsageError),
        ("x", [], UsageError),
        ("x", [" "], UsageError),
    ],
)
def test_what_makes_no_sense(name: str, steps: list[str], error: type[Exception], folder: Path, open_kb: Open) -> None:
    with pytest.raises(error):
        open_kb(folder).procedure(name, steps)


@pytest.mark.parametrize("where", ["description", "template", "steps", "errors", "tags", "created_by"])
def test_credentials_are_refused(where: str, folder: Path, open_kb: Open) -> None:
    secret = "ghp_" + "a1b2" * 9
    value: object = secret if where in ("description", "template", "created_by") else [secret]
    with pytest.raises(SecretRefused):
        open_kb(folder).skills.create("Ship", **{where: value})  # type: ignore[arg-type]
    assert not (folder / "memory/skills").exists()


@pytest.mark.parametrize("erase", [False, True])
def test_what_was_forgotten_does_not_come_back_by_itself(erase: bool, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.procedure("Ship it", ["One."])
    kb.forget("ship-it", delete=erase)
    with pytest.raises(Forgotten):
        kb.procedure("ship IT", ["One."])
    assert kb.procedure("Ship it", ["One."], force=True).id == "ship-it-2"
    assert [one.id for one in kb.skills.rank()] == ["ship-it-2"]


def test_a_dry_run_writes_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    assert "+1. One." in kb.procedure("Ship", ["One."], dry_run=True).run.diff
    assert notes_of(folder) == {}
    kb.procedure("Ship", ["One."])
    before = notes_of(folder)
    assert "+1. Two." in kb.procedure("Ship", ["Two."], dry_run=True).run.diff
    assert "+success_count: 1" in kb.skills.feedback("Ship", "success", dry_run=True).run.diff
    assert notes_of(folder) == before


def test_a_plain_folder(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"note.md": "A note.\n"})
    kb = open_kb(folder)
    assert kb.procedure("Ship", ["One."]).path == "skills/ship.md"
    with pytest.raises(UsageError, match="no jobs"):
        kb.procedure("Ship", ["One."], job="api")


def test_the_commands(folder: Path, run: Run, tmp_path: Path) -> None:
    vault = ("--vault", folder)
    made = json.loads(
        run(*vault, "skills", "create", "Ship it", "--step", "Tag.", "--error", "x: y", "--tag", "a", "--json").stdout
    )
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
