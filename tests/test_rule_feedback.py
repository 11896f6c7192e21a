"""Feedback on rules and the sweep: what they change in a note, when, and at once with other writers."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, REPOSITORY, Files, clean_environment
from forking import command
from ruling import rule, rules
from support import days_ago, fields_of, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry, UsageError

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}


def test_feedback_changes_three_values_and_no_other_byte(vault: MakeVault, open_kb: OpenKB) -> None:
    text = "---\nid: r # mine\nkind:   rule\nconfidence: 0.8 # sure\nlast_applied: '2026-08-23'\nextra: {a:   1}\n---\nBuffer.  \n"
    folder = vault(rules(a=text))
    run = open_kb(folder).rules.feedback("r", "success", reason="it  held")
    assert (folder / "memory/rules/a.md").read_text() == text.replace("0.8 #", "0.45 #").replace(
        "2026-08-23", "2026-11-21"
    ).replace("extra: {a:   1}\n", "extra: {a:   1}\nsuccess_count: 1\n")
    assert run.changes[0].reason == "Feedback: success, it held."


@pytest.mark.parametrize(
    ("outcome", "confidence", "counts"),
    [
        ("success", 0.8, (6, 1)),
        ("failure", 0.55, (5, 2)),
        ("mixed", 0.75, (5, 1)),
        ("helpful", 0.8, (6, 1)),
        ("harmful", 0.55, (5, 2)),
    ],
)
def test_feedback(vault: MakeVault, open_kb: OpenKB, outcome: str, confidence: float, counts: tuple[int, int]) -> None:
    folder = vault(rules(a=rule(success_count=5, failure_count=1, last_applied="2026-11-21")))
    kb = open_kb(folder)
    before = notes_of(folder)
    assert kb.rules.feedback("r", outcome, dry_run=True).run is None
    assert notes_of(folder) == before
    kb.rules.feedback("r", outcome)
    fields = fields_of(folder, "memory/rules/a.md")
    assert (fields["confidence"], (fields["success_count"], fields["failure_count"])) == (confidence, counts)
    assert "maturity" not in fields


def test_feedback_on_odd_fields_ends_well(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        rules(
            a=rule(confidence="high", success_count=-3, tags="null", maturity=7),
            b="---\nkind: rule\ntags: null\n---\nNo id.\n",
        )
    )
    kb = open_kb(folder)
    kb.rules.feedback("r", "success")
    assert {name: fields_of(folder, "memory/rules/a.md")[name] for name in ("confidence", "success_count")} == {
        "confidence": 0.55,
        "success_count": 1,
    }
    kb.rules.feedback("memory/rules/b.md", "failure")
    assert fields_of(folder, "memory/rules/b.md")["confidence"] == 0.3
    kb.sweep()
    assert [one.id for one in kb.rules.select(["sse"]).rules] == []


@pytest.mark.parametrize(
    ("fields", "wanted", "error"),
    [
        ({"kind": "skill"}, "r", UsageError),
        ({"status": "retired"}, "r", UsageError),
        ({"status": "proposed"}, "r", UsageError),
        ({}, "nobody", UnknownEntry),
    ],
)
def test_feedback_is_for_rules_in_use(
    vault: MakeVault, open_kb: OpenKB, fields: dict[str, str], wanted: str, error: type[Exception]
) -> None:
    folder = vault(rules(a=rule(**fields)))
    before = notes_of(folder)
    with pytest.raises(error):
        open_kb(folder).rules.feedback(wanted, "success")
    with pytest.raises(UsageError):
        open_kb(folder).rules.feedback("r", "splendid")
    assert notes_of(folder) == before


@pytest.mark.slow
def test_two_at_once_count_both(vault: MakeVault, home: Path) -> None:
    folder = vault(rules(a=rule(confidence=0.5, last_applied="2026-11-21")))
    feedback = command("--vault", folder, "rules", "feedback", "r", "success")
    env = clean_environment(home) | {"MEMORY_KB_NOW": NOW.isoformat()}
    processes = [
        subprocess.Popen(feedback, env=env, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0] * 4
    fields = fields_of(folder, "memory/rules/a.md")
    assert (fields["confidence"], fields["success_count"]) == (0.7, 4)


def edit_before_writing(kb: KnowledgeBase, file: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person edit a file between the plan and the writing of it, once."""
    write = kb.writer._compose

    def edit(*args: Any, **how: Any) -> Any:
        file.write_text(file.read_text().replace(old, new))
        return write(*args, **how)

    monkeypatch.setattr(kb.writer, "_compose", edit)


def test_a_person_who_edits_in_between_loses_nothing(
    vault: MakeVault, open_kb: OpenKB, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(rules(a=rule("Old text.", success_count=3, last_applied="2026-11-21")))
    kb, file = open_kb(folder), folder / "memory/rules/a.md"
    edit_before_writing(kb, file, "Old text.", "New text.", monkeypatch)
    kb.rules.feedback("r", "success")
    assert "New text." in file.read_text()
    assert fields_of(folder, "memory/rules/a.md")["success_count"] == 4
    edit_before_writing(kb, file, "success_count: 4", "success_count: 0", monkeypatch)
    report = kb.sweep()
    assert report.run.run is None
    assert "maturity" not in file.read_text(), "with no application left it does not rise"


def test_sweep_moves_and_flags(vault: MakeVault, open_kb: OpenKB) -> None:
    today = "2026-11-21"
    folder = vault(
        rules(
            up=rule(id="up", confidence=0.9, success_count=12, last_applied=today),
            down=rule(id="down", confidence=0.92, maturity="proven", success_count=12, last_applied=days_ago(80)),
            low=rule(id="low", confidence=0.19, success_count=3, last_applied=today),
            gone=rule(id="gone", confidence=0.05, failure_count=2, success_count=1, last_applied=today, kind="pitfall"),
            pinned=rule(
                id="pinned", confidence=0.05, maturity="proven", failure_count=5, pinned="true", last_applied=today
            ),
            retired=rule(id="retired", confidence=0.05, status="retired", failure_count=5),
            fine=rule(id="fine"),
        )
    )
    kb = open_kb(folder)
    before = notes_of(folder)
    preview = kb.sweep(dry_run=True)
    assert notes_of(folder) == before
    report = kb.sweep()
    assert (report.promoted, report.demoted, set(report.flagged)) == (("up",), ("down",), {"low", "gone"})
    assert (preview.promoted, preview.demoted, preview.flagged) == (report.promoted, report.demoted, report.flagged)
    states = {name: fields_of(folder, f"memory/rules/{name}.md") for name in ("up", "down", "low", "gone")}
    assert (states["up"]["maturity"], states["up"]["maturity_since"]) == ("established", today)
    assert (states["down"]["maturity"], states["down"]["confidence"]) == ("established", 0.92)
    assert (states["low"]["flags"], states["gone"]["flags"]) == (["demotion_candidate"], ["removal_candidate"])
    for name in ("pinned", "retired", "fine"):
        assert (folder / f"memory/rules/{name}.md").read_bytes() == before[f"vault/memory/rules/{name}.md"]


def test_the_sweep_of_the_maintenance_is_reported_in_numbers_once(vault: MakeVault, open_kb: OpenKB) -> None:
    kb = open_kb(vault(rules(low=rule(id="low", confidence=0.19, success_count=3, last_applied="2026-11-21"))))
    assert [step.message for step in kb.maintain(dry_run=True).steps if step.name == "sweep"] == ["1 flagged"]
    kb.sweep()
    assert [(step.outcome, step.message) for step in kb.maintain().steps if step.name == "sweep"] == [("nothing", "")]


def test_sweeping_twice_on_one_day_changes_nothing(vault: MakeVault, open_kb: OpenKB) -> None:
    """Neither decay nor levels add up from sweep to sweep (D-14)."""
    folder = vault(
        rules(
            a=rule(confidence=0.95, success_count=20, last_applied=days_ago(10)),
            b=rule(id="b", confidence=0.3, last_applied=days_ago(200)),
        )
    )
    kb = open_kb(folder)
    confidence = [one.confidence for one in kb.rules.list()]
    kb.sweep()
    once = notes_of(folder)
    again = kb.sweep()
    assert (again.run.run, again.promoted, again.flagged) == (None, (), ("b",))
    assert notes_of(folder) == once
    assert [one.confidence for one in kb.rules.list()] == confidence
    assert fields_of(folder, "memory/rules/a.md")["confidence"] == 0.95
    tomorrow = open_kb(folder, NOW + timedelta(days=1))
    assert tomorrow.sweep().promoted == ("r",)
    assert fields_of(folder, "memory/rules/a.md")["maturity"] == "proven"


def test_a_flag_goes_with_its_reason_and_others_stay(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        rules(
            a=rule(confidence=0.15, flags="[review, demotion_candidate, removal_candidate]", last_applied="2026-11-21")
        )
    )
    kb = open_kb(folder)
    kb.sweep()
    assert fields_of(folder, "memory/rules/a.md")["flags"] == ["review", "demotion_candidate"]
    kb.rules.feedback("r", "success")
    kb.sweep()
    assert fields_of(folder, "memory/rules/a.md")["flags"] == ["review"]
