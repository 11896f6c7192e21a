"""What is written down before and during the work."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import NOW, Files, Run

from memory_kb import KnowledgeBase
from memory_kb.errors import SecretRefused, UsageError
from memory_kb.learning.task_files import parse_milestones, show_milestones

MakeVault = Callable[[Files], Path]
PLAN = "Move the importer to one transaction per file.\n\nIt may be too slow for 10,000 files."


@pytest.fixture
def kb(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> KnowledgeBase:
    return open_kb(folder)


# The pre-mortem.


def test_a_plan_is_framed_with_title_and_date(kb: KnowledgeBase, folder: Path) -> None:
    report = kb.premortem(PLAN, job="api", task="import")
    file = folder / "memory/jobs/api/tasks/import/.premortem.md"
    assert [change.path for change in report.changes] == ["memory/jobs/api/tasks/import/.premortem.md"]
    text = file.read_text()
    assert text.startswith(
        "# Pre-mortem: Move the importer to one transaction per file.\n\nDate: 2026-11-21\nTask: job api task import\n"
    )
    assert text.endswith(f"\n---\n\n{PLAN}\n")


def test_the_same_plan_is_written_once_whatever_the_day(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    open_kb(folder).premortem(PLAN, title="Import")
    later = open_kb(folder, NOW + timedelta(days=3))
    assert later.premortem(PLAN, title="Import").run is None
    assert later.premortem(f"{PLAN}\nOr lose data.", title="Import").changes[0].action == "write"
    assert "Date: 2026-11-24" in (folder / "memory/.premortem.md").read_text()


def test_a_plan_is_not_indexed_and_can_be_taken_back(kb: KnowledgeBase, folder: Path) -> None:
    report = kb.premortem("Wombats may be slow.")
    kb.assume("planned", complexity="wombats")
    assert kb.sync().problems == ()
    assert not kb.search("wombats").hits
    assert kb.stats().files == 0
    kb.undo(report.run)
    assert not (folder / "memory/.premortem.md").exists()


def test_a_dry_run_writes_nothing(kb: KnowledgeBase, folder: Path) -> None:
    assert "+# Pre-mortem: Import" in kb.premortem(PLAN, title="Import", dry_run=True).diff
    assert '"milestone": "planned"' in kb.assume("planned", complexity="small", dry_run=True).diff
    assert [path.name for path in (folder / "memory").iterdir() if path.name.startswith((".pre", ".ass"))] == []


def test_what_may_not_be_written(
    kb: KnowledgeBase, vault: MakeVault, tmp_path: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    with pytest.raises(UsageError, match="there is no plan"):
        kb.premortem(" \n")
    with pytest.raises(SecretRefused):
        kb.premortem("Use AKIAABCDEFGHIJKLMNOP.")
    with pytest.raises(UsageError, match="task is named without its job"):
        kb.premortem(PLAN, task="import")
    with pytest.raises(UsageError, match="nothing is assumed"):
        kb.assume("planned")
    with pytest.raises(UsageError, match="unknown recommendation"):
        kb.assume("planned", complexity="small", recommendation="panic")
    with pytest.raises(SecretRefused):
        kb.assume("planned", approach="password=hunter2hunter")
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError, match="plain folder"):
        open_kb(plain).premortem(PLAN, job="api")


# The checkpoints.


def test_a_checkpoint_has_its_shape(kb: KnowledgeBase, folder: Path) -> None:
    kb.assume(
        "planned",
        complexity="small",
        approach="viable",
        preferences="fast",
        scope_note="no migration",
        recommendation="notify",
        job="api",
    )
    (line,) = (folder / "memory/jobs/api/.assumptions.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "milestone": "planned",
        "timestamp": "2026-11-21T12:00:00Z",
        "assumptions": {
            "complexity": "small",
            "approach_viability": "viable",
            "preference_model": "fast",
            "scope": "no migration",
        },
        "recommendation": "notify",
    }


def test_checkpoints_are_appended_and_the_same_is_not_repeated(
    folder: Path, open_kb: Callable[..., KnowledgeBase]
) -> None:
    kb = open_kb(folder)
    kb.assume("planned", complexity="small")
    assert open_kb(folder, NOW + timedelta(hours=1)).assume("planned", complexity="small").run is None
    kb.assume("built", complexity="large", recommendation="escalate")
    found = kb.assumptions()
    assert [(one.milestone, one.recommendation) for one in found.checkpoints] == [
        ("planned", "continue"),
        ("built", "escalate"),
    ]
    assert found.torn == ()


def test_a_torn_line_stays_and_is_passed_over(kb: KnowledgeBase, folder: Path) -> None:
    file = folder / "memory/.assumptions.jsonl"
    torn = b'{"milestone": "lost", "assu'
    file.write_bytes(b'[1]\n{"milestone": "old", "assumptions": 7, "more": 1}\n\xff\xfe\n' + torn)
    kb.assume("planned", complexity="small")
    assert file.read_bytes().startswith(
        b'[1]\n{"milestone": "old", "assumptions": 7, "more": 1}\n\xff\xfe\n' + torn + b'\n{"milestone": "planned"'
    )
    found = kb.assumptions()
    assert [one.milestone for one in found.checkpoints] == ["old", "planned"]
    assert found.torn == (1, 3, 4)


def test_checkpoints_are_shown_one_a_line() -> None:
    found = parse_milestones(
        '{"milestone": "m", "timestamp": "t", "assumptions": {"scope": "small", "complexity": 3}, "recommendation": "boo"}'
    )
    assert show_milestones(found) == "t m: complexity: 3; scope: small (continue)"


def test_the_commands(run: Run, folder: Path) -> None:
    wrote = run("--vault", folder, "premortem", "-", "--title", "Import", stdin=PLAN)
    assert (wrote.returncode, wrote.stdout) == (0, "create memory/.premortem.md: The plan before the work begins.\n"), (
        wrote.stderr
    )
    assert "Nothing is new" in run("--vault", folder, "premortem", "-", "--title", "Import", stdin=PLAN).stderr
    assumed = run("--vault", folder, "assume", "planned", "--approach", "viable", "--json")
    assert json.loads(assumed.stdout)["changes"][0]["path"] == "memory/.assumptions.jsonl"
    assert "planned  continue  approach viability: viable" in run("--vault", folder, "assume", "--list").stdout
    listed = json.loads(run("--vault", folder, "assume", "--list", "--json").stdout)
    assert listed["checkpoints"][0]["assumptions"]["approach_viability"] == "viable"
    assert run("--vault", folder, "assume").returncode == 2
    assert run("--vault", folder, "assume", "planned").returncode == 2
