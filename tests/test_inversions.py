"""Rules that fail are proposed as warnings, and the warning takes the place of the rule when a person approves it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reviewing
from conftest import NOW, REPOSITORY, Files, clean_environment, write_files
from forking import command
from planning import tree
from reviewing import TEXT, proposal, rule, waiting
from support import fields_of, notes_of

from memory_kb import KnowledgeBase
from memory_kb.learning.review import is_negative

scanned = reviewing.scanned

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}


def test_a_scan_proposes_the_exact_warning(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    shown = kb.show(proposed)
    assert shown.path.startswith("memory/review/")
    assert shown.text
    assert shown.text.split("---\n")[2].strip() == TEXT
    fields = fields_of(folder, shown.path)
    expected = {
        "kind": "pitfall",
        "status": "proposed",
        "confidence": 0.5,
        "maturity": "nascent",
        "success_count": 0,
        "failure_count": 0,
    }
    assert {name: fields[name] for name in expected} == expected
    assert (fields["tags"], fields["sources"]) == (["sse", "inverted", "anti-pattern"], ["ep-1"])
    assert fields["links"] == [{"to": "r", "relation": "derived_from"}]
    assert fields_of(folder, "memory/rules/r.md")["id"] == "r"
    assert (folder / "memory/rules/r.md").read_text() == rule()
    assert kb.rules.select(["sse"]).anti_patterns == ()


def test_scanning_again_proposes_nothing_more(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    before = notes_of(folder)
    assert kb.review.scan().proposed == ()
    kb.rules.feedback("r", "failure")
    assert kb.review.scan().proposed == ()
    assert set(notes_of(folder)) == set(before)
    kb.review.reject(proposed)
    assert (kb.review.scan().proposed, waiting(kb)) == ((), [])
    (folder / kb.show(proposed).path).unlink()
    assert kb.review.scan().proposed == (), "a proposal that a person deleted does not come back"


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"failure_count": 3}, 1),
        ({"failure_count": 3, "success_count": 2}, 0),
        ({"failure_count": 4, "success_count": 2}, 0),
        ({"failure_count": 5, "success_count": 2}, 1),
        ({"failure_count": 2, "success_count": 0}, 0),
        ({"kind": "pitfall"}, 0),
        ({"status": "retired"}, 0),
        ({"pinned": "true"}, 0),
        ({"reviewed": "'2026-11-20'", "last_applied": "'2026-11-19'"}, 0),
        ({"reviewed": "'2026-11-18'", "last_applied": "'2026-11-19'"}, 1),
        ({"failure_count": "many"}, 0),
    ],
)
def test_candidates(vault: MakeVault, open_kb: OpenKB, fields: dict[str, Any], count: int) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule(**fields)})
    assert len(open_kb(folder).review.scan(dry_run=True).proposed) == count
    assert list(notes_of(folder)) == ["vault/memory/rules/r.md"]


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("Never push.", True),
        ("Don’t push.", True),
        ("**Avoid** it.", True),
        ("Do not push.", True),
        ("Notify them.", False),
        ("Nothing beats uv.", False),
    ],
)
def test_negative_rules(text: str, negative: bool) -> None:
    assert is_negative(text) is negative


def test_a_negative_rule_is_flagged_instead(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule("Never wait.")})
    kb = open_kb(folder)
    assert (kb.review.scan().proposed, waiting(kb)) == ((), ["r"])
    assert fields_of(folder, "memory/rules/r.md")["flags"] == ["deprecation_candidate"]
    assert kb.review.scan().run.run is None
    kb.review.approve("r")
    assert (waiting(kb), kb.review.scan().run.run) == ([], None)
    later = open_kb(folder, NOW.replace(day=22))
    later.rules.feedback("r", "failure")
    later.review.scan()
    later.review.reject("r", reason="never true")
    assert later.show("r").status == "rejected"


def test_approving_puts_the_warning_in_the_place_of_the_rule(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    before = tree(folder)
    preview = kb.review.approve(proposed, dry_run=True)
    assert tree(folder) == before
    run = kb.review.approve(proposed[:8])
    assert {change.path for change in preview.changes} == {change.path for change in run.changes}
    shown, original = kb.show(proposed), kb.show("r")
    assert (shown.status, shown.path.rpartition("/")[0]) == ("active", "memory/rules")
    assert not (folder / "memory/review").exists() or not list((folder / "memory/review").iterdir())
    assert (original.status, original.metadata["confidence"]) == ("retired", 0.0)
    assert original.metadata["links"] == [{"to": proposed, "relation": "superseded_by"}]
    assert {"to": "r", "relation": "supersedes"} in shown.metadata["links"]
    assert [one.id for one in kb.rules.select(["sse"]).anti_patterns] == [proposed]
    assert kb.rules.select(["sse"]).rules == ()
    once = tree(folder)
    assert kb.review.approve(proposed).run is None
    assert kb.review.scan().run.run is None
    assert tree(folder) == once
    kb.undo(run.run)
    assert tree(folder) == before


def test_an_approval_written_by_hand_is_completed(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    path = kb.show(proposed).path
    (folder / path).write_text((folder / path).read_text().replace("status: proposed", "status: active"))
    assert waiting(kb) == []
    assert [one.id for one in kb.rules.select(["sse"]).anti_patterns] == [proposed]
    kb.review.scan()
    assert (kb.show("r").status, kb.show(proposed).path) == ("retired", path)
    (folder / "memory/rules/r.md").write_text(
        (folder / "memory/rules/r.md").read_text().replace("status: retired", "status: active")
    )
    assert kb.review.scan().run.run is None, "a rule that a person brought back stays"
    kb.review.approve(proposed)
    assert (kb.show("r").status, kb.show(proposed).path.rpartition("/")[0]) == ("retired", "memory/rules")


def test_a_rejection_written_by_hand_is_one(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    path = folder / kb.show(proposed).path
    path.write_text(path.read_text().replace("status: proposed", "status: rejected"))
    assert (waiting(kb), kb.review.scan().proposed, kb.show("r").status) == ([], (), "active")


def test_the_rule_of_the_same_place_is_retired(vault: MakeVault, home: Path, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/jobs/a/rules/r.md": rule(), "memory/jobs/b/rules/r.md": rule()})
    write_files(home, {"rules/g.md": rule(id="g")})
    kb = open_kb(folder)
    proposed = kb.review.scan().proposed
    paths = sorted(kb.show(one).path.rpartition("/")[0] for one in proposed)
    assert paths == ["memory/jobs/a/review", "memory/jobs/b/review", "~global/review"]
    (folder / "memory/jobs/c/rules").mkdir(parents=True)
    (folder / "memory/jobs/c/rules/r.md").write_text(rule())
    assert [kb.show(one).path.startswith("memory/jobs/c/") for one in kb.review.scan().proposed] == [True]
    (first,) = [one for one in proposed if kb.show(one).path.startswith("memory/jobs/b/")]
    kb.review.approve(first)
    assert [kb.show(f"memory/jobs/{job}/rules/r.md").status for job in "ab"] == ["active", "retired"]


def test_an_id_that_occurs_twice_is_proposed_once(vault: MakeVault, open_kb: OpenKB) -> None:
    loop = proposal(id="loop", kind="pitfall", tags="[inverted]", links="[{to: loop, relation: derived_from}]")
    folder = vault({**CONFIG, "memory/rules/r.md": f"{rule()}\n{rule('Another.')}", "memory/review/loop.md": loop})
    kb = open_kb(folder)
    (proposed,) = kb.review.scan().proposed
    assert {item.id: item.of for item in kb.review.list()} == {proposed: "r", "loop": None}
    before = (folder / "memory/rules/r.md").read_text()
    assert kb.review.approve(proposed).conflicts
    assert ((folder / "memory/rules/r.md").read_text(), kb.show(proposed).status) == (before, "proposed")
    kb.review.approve("loop")
    assert kb.show("loop").status == "active"


def test_a_flag_that_was_looked_at_comes_back_with_new_evidence(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule(confidence=0.05, failure_count=2, last_applied="'2026-11-21'")})
    kb = open_kb(folder)
    assert kb.sweep().flagged == ("r",)
    assert waiting(kb) == ["r"]
    kb.review.approve("r")
    assert (waiting(kb), kb.sweep().flagged, kb.sweep().run.run) == ([], (), None)
    tomorrow = open_kb(folder, NOW.replace(day=22))
    assert tomorrow.sweep().flagged == ()
    tomorrow.rules.feedback("r", "failure")
    assert tomorrow.sweep().flagged == ("r",)


def test_an_edit_in_between_is_not_overwritten(
    scanned: tuple[Path, KnowledgeBase, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rule and the warning go together, or both stay."""
    folder, kb, proposed = scanned
    write = kb.writer._compose

    def edit(*args: Any, **how: Any) -> Any:
        (folder / "memory/rules/r.md").write_text(rule("Use sleep to wait, but only here."))
        return write(*args, **how)

    monkeypatch.setattr(kb.writer, "_compose", edit)
    run = kb.review.approve(proposed)
    assert run.conflicts
    assert "but only here" in (folder / "memory/rules/r.md").read_text()
    assert (kb.show("r").status, kb.show(proposed).status) == ("active", "proposed")


@pytest.mark.slow
def test_two_scans_and_two_approvals_at_once(vault: MakeVault, home: Path, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule()})

    def twice(*arguments: str) -> None:
        started = command("--vault", folder, *arguments)
        processes = [
            subprocess.Popen(started, env=clean_environment(home), cwd=REPOSITORY, stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0, 0]

    twice("review", "scan")
    (item,) = open_kb(folder).review.list()
    twice("review", "approve", item.id)
    assert sorted(one.status for one in open_kb(folder).list(status=["active", "retired", "proposed"])) == [
        "active",
        "retired",
    ]
