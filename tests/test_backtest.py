"""A rule that forbids or requires something is held against the history of the project."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Files, Run

FORBID = "---\nid: no-print\nkind: rule\nforbid: '\\bprint\\('\napplies_to: ['src/**']\n---\nLog, never print.\n"
REQUIRE = "---\nid: licence\nkind: rule\nrequire: '^# Licence'\napplies_to: ['src/*.py']\n---\nName the licence.\n"
PLAIN = "---\nid: plain\nkind: rule\n---\nBe kind.\n"
WRONG = "---\nid: wrong\nkind: rule\nforbid: '('\n---\nBroken.\n"


@pytest.fixture
def project(vault: Callable[[Files], Path]) -> Path:
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/rules/a.md": FORBID,
            "memory/rules/b.md": REQUIRE,
            "memory/rules/c.md": PLAIN,
            "memory/rules/d.md": WRONG,
        }
    )
    git(folder, "init", "-q", "-b", "main")
    commit(folder, 1, {"src/a.py": "# Licence\nx = 1\n", "docs/a.md": "print(it)\n"})
    commit(folder, 2, {"src/a.py": "# Licence\nx = 1\nprint(x)\n"})
    commit(folder, 4, {"src/a.py": "# Licence\nx = 1\n"})
    commit(folder, 5, {"src/b.py": "print(1)\n"})
    commit(folder, 20, {"src/b.py": "y = 2\n"})
    return folder


def git(folder: Path, *arguments: str, day: int = 1) -> None:
    stamp = f"2026-01-{day:02}T12:00:00Z"
    people = {
        f"GIT_{role}_{what}": "nobody@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, env=dict(os.environ) | people | alone
    )


def commit(folder: Path, day: int, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", f"day {day}", day=day)


def backtest(run: Run, folder: Path, rule: str) -> dict[str, Any]:
    done = run("rules", "backtest", rule, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_what_is_forbidden_counts_where_it_came_in(run: Run, project: Path) -> None:
    made = backtest(run, project, "no-print")
    assert (made["commits"], made["broken"], made["mended"]) == (5, 2, 1)
    newest, oldest = made["breaches"]
    assert (newest["path"], newest["line"], newest["text"], newest["mended_by"]) == ("src/b.py", 1, "print(1)", None)
    assert (oldest["path"], oldest["line"], oldest["day"]) == ("src/a.py", 3, "2026-01-02")
    assert oldest["mended_by"]


def test_what_is_required_counts_where_a_file_lacks_it(run: Run, project: Path) -> None:
    made = backtest(run, project, "licence")
    assert [(one["path"], one["day"]) for one in made["breaches"]] == [
        ("src/b.py", "2026-01-20"),
        ("src/b.py", "2026-01-05"),
    ]
    assert made["mended"] == 0


def test_a_rule_without_a_good_pattern_is_refused(run: Run, project: Path) -> None:
    plain, wrong = (run("rules", "backtest", name, cwd=project) for name in ("plain", "wrong"))
    assert plain.returncode != 0
    assert "neither forbid: nor require:" in plain.stderr
    assert wrong.returncode != 0
    assert "memory/rules/d.md: forbid is no regular expression" in wrong.stderr


def test_the_review_of_a_proposal_shows_what_it_would_have_stopped(run: Run, project: Path) -> None:
    rule = project / "memory/rules/a.md"
    rule.write_text(FORBID.replace("kind: rule", "kind: rule\nstatus: proposed"))
    told = "Of 5 commits it would have stopped 2; 1 of these were fixed within a week"
    assert told in " ".join(run("review", "show", "no-print", cwd=project).stdout.split())
    assert told in json.loads(run("review", "show", "no-print", "--json", cwd=project).stdout)["backtest"]
    rule.write_text(rule.read_text().replace("'\\bprint\\('", "'('"))
    assert "forbid is no regular expression" in run("review", "show", "no-print", cwd=project).stdout


def test_ci_names_what_a_change_breaks(run: Run, project: Path) -> None:
    (project / "memory/rules/d.md").unlink()
    commit(project, 21, {"src/ä.py": "# Licence\nx = 1\nprint(x)\n", "docs/b.md": "print(it)\n"})
    done = run("ci", "HEAD~1..HEAD", "--json", cwd=project)
    findings = json.loads(done.stdout)["findings"]
    assert [(one["path"], one["line"]) for one in findings] == [("src/ä.py", 3)]
    assert findings[0]["message"] == "breaks rule no-print: Log, never print."
    assert done.returncode != 0
    commit(project, 22, {"src/ä.py": "# Licence\nx = 1\n"})
    assert run("ci", "HEAD~1..HEAD", cwd=project).returncode == 0


CHECK = "---\nid: sound\nkind: rule\ncheck: sh sound.sh\napplies_to: ['src/**']\n---\nThe sources stay sound.\n"


@pytest.fixture
def checked(project: Path) -> Path:
    for name in "abcd":
        (project / f"memory/rules/{name}.md").unlink()
    (project / "memory/rules/e.md").write_text(CHECK)
    script = "echo ran >> $PROOF\necho looked\n! grep -q wrong src/a.py || { echo a is wrong; exit 4; }\n"
    commit(project, 21, {"sound.sh": script, "src/a.py": "fine\n"})
    commit(project, 22, {"src/a.py": "wrong\n"})
    return project


def test_a_command_runs_only_where_its_very_text_was_allowed(run: Run, checked: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    env = {"PROOF": str(proof)}
    done = run("ci", "HEAD~1..HEAD", "--json", cwd=checked, env=env)
    assert "the check of rule sound was not run" in done.stdout
    assert "nobody is there to ask" in run("rules", "allow", "sound", cwd=checked, env=env).stderr
    (checked / "memory/config.yaml").write_text("checks: [sh sound.sh]\n")
    assert "checks is ignored here" in run("ci", "HEAD~1..HEAD", cwd=checked, env=env).stderr
    assert "is not allowed" in " ".join(run("review", "show", "sound", cwd=checked, env=env).stdout.split())
    assert not proof.exists()
    run("rules", "allow", "sound", "--yes", cwd=checked, env=env)
    done = run("ci", "HEAD~1..HEAD", "--json", cwd=checked, env=env)
    assert [(one["path"], one["message"]) for one in json.loads(done.stdout)["findings"]] == [
        ("src/a.py", "breaks rule sound: The sources stay sound. (exit code 4: a is wrong)")
    ]
    assert proof.exists()
    proof.unlink()
    (checked / "memory/rules/e.md").write_text(CHECK.replace("sound.sh", "./sound.sh"))
    assert "the check of rule sound was not run" in run("ci", "HEAD~1..HEAD", cwd=checked, env=env).stdout
    assert not proof.exists()


def test_a_command_that_the_own_configuration_names_is_allowed(run: Run, checked: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text("checks: [sh sound.sh]\n")
    env = {"PROOF": str(tmp_path / "proof"), "MEMORY_KB_HOME": str(home)}
    findings = json.loads(run("ci", "HEAD~1..HEAD", "--json", cwd=checked, env=env).stdout)["findings"]
    assert [(one["path"], one["message"]) for one in findings] == [
        ("src/a.py", "breaks rule sound: The sources stay sound. (exit code 4: a is wrong)")
    ]
    assert "is not run on past commits" in run("rules", "backtest", "sound", cwd=checked, env=env).stderr


@pytest.mark.slow
def test_a_pattern_that_never_ends_is_a_finding(run: Run, project: Path) -> None:
    slow = "---\nid: slow\nkind: rule\nforbid: '(a+)+$'\n---\nNever.\n"
    for name in "bcd":
        (project / f"memory/rules/{name}.md").unlink()
    (project / "memory/rules/a.md").write_text(slow)
    commit(project, 21, {"src/a.py": "a" * 60 + "!\n"})
    said = "a pattern of rule slow takes over 2 s for one file"
    assert said in run("ci", "HEAD~1..HEAD", cwd=project).stdout
    assert said in run("rules", "backtest", "slow", cwd=project).stderr
