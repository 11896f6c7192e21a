"""Handoffs from one agent to the next: numbered, found again, and refused where they make no sense."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import NOW, REPOSITORY, Files, Run, clean_environment
from support import entry, fields_of

from memory_kb import KnowledgeBase
from memory_kb.errors import AmbiguousId, SecretRefused, UnknownEntry, UsageError

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
SECRET = "ghp_" + "a1b2" * 9


def test_a_handoff(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    learned = kb.learn("Check the type first.", kind="rule").id
    made = kb.handoffs.create(
        "planner",
        "coder",
        done=["Wrote the plan.", "Asked Ana:\nshe agrees."],
        artifacts=["docs/plan.md", "#12"],
        needs_testing=["The import."],
        known_issues=["tag: exists"],
        patterns=[learned[:8]],
        git_state="main, clean",
    )
    assert (made.action, made.handoff.id, made.handoff.path) == (
        "created",
        "handoff-001",
        "memory/handoffs/handoff-001.md",
    )
    shape = {
        "id": "handoff-001",
        "from_agent": "planner",
        "to_agent": "coder",
        "timestamp": "2026-11-21T12:00:00Z",
        "context": {
            "what_was_done": "Wrote the plan.\nAsked Ana:\nshe agrees.",
            "artifacts": ["docs/plan.md", "#12"],
            "git_state": "main, clean",
            "needs_testing": ["The import."],
            "known_issues": ["tag: exists"],
            "relevant_patterns": [learned],
        },
    }
    assert (
        made.handoff.as_mapping
        == kb.handoffs.show("handoff-001").as_mapping
        == kb.handoffs.show("1").as_mapping
        == shape
    )
    text = (folder / made.handoff.path).read_text()
    assert (
        "\n## Done\n\n- Wrote the plan.\n- Asked Ana:\n  she agrees.\n\n## Needs testing\n\n- The import.\n\n## Known issues\n"
        in text
    )
    head = fields_of(folder, made.handoff.path)
    assert (head["from_agent"], head["relevant_patterns"], head["kind"]) == ("planner", [learned], "handoff")


def test_numbers_go_on(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        CONFIG
        | {
            "memory/handoffs/handoff-007.md": entry("Gone.", id="handoff-007", kind="handoff", status="retired"),
            "memory/handoffs/handoff-009.md": "",
            "memory/jobs/api/handoffs/handoff-020.md": entry("Other.", id="handoff-020", kind="handoff"),
        }
    )
    kb = open_kb(folder)
    ids = [kb.handoffs.create("a", "b", done=[str(number)], git=False).handoff.id for number in range(2)]
    assert ids == ["handoff-010", "handoff-011"]
    assert kb.handoffs.create("a", "b", git=False, job="api").handoff.id == "handoff-021"


def test_the_same_again_is_the_same_handoff(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    told = {"done": ["One. " + "word " * 500, "Two."], "artifacts": ["a"], "git": False}
    kb.handoffs.create("a", "b", **told)  # type: ignore[arg-type]
    again = kb.handoffs.create("a", "b", **told)  # type: ignore[arg-type]
    assert (again.action, again.handoff.id, again.run.run) == ("known", "handoff-001", None)
    assert kb.handoffs.create("a", "c", **told).handoff.id == "handoff-002"  # type: ignore[arg-type]


def test_the_latest(folder: Path, open_kb: Open) -> None:
    for number, (to, job) in enumerate([("coder", None), ("tester", None), ("coder", "api")]):
        open_kb(folder, NOW + timedelta(hours=number)).handoffs.create("planner", to, done=[to], git=False, job=job)
    kb = open_kb(folder)
    assert [one.path for one in kb.handoffs.list()] == [
        "memory/jobs/api/handoffs/handoff-001.md",
        "memory/handoffs/handoff-002.md",
        "memory/handoffs/handoff-001.md",
    ]
    latest = kb.handoffs.latest("tester")
    assert latest
    assert latest.id == "handoff-002"
    assert kb.handoffs.latest("nobody") is None
    assert kb.handoffs.show("1").path == "memory/handoffs/handoff-001.md"
    assert kb.handoffs.show("1", "api").path == "memory/jobs/api/handoffs/handoff-001.md"
    with pytest.raises(UnknownEntry, match=r"^no handoff 'handoff-9'"):
        kb.handoffs.show("handoff-9")


def test_nothing_appended_claims_no_last_event(folder: Path, run: Run) -> None:
    run("--vault", folder, "session", "start", "s1")
    assert run("--vault", folder, "session", "append", "s1", stdin="").stdout == "unchanged s1  0 events\n"
    assert run("--vault", folder, "diary", "list").stderr == "The diary has no such entry.\n"


def test_whose_handoff_there_is_not_is_reported(folder: Path, run: Run) -> None:
    for command in ("latest", "list"):
        assert run("--vault", folder, "handoff", command).stderr == "There is no such handoff.\n"
        assert run("--vault", folder, "handoff", command, "--to", "tester").stderr == "There is no such handoff.\n"


def test_a_number_of_two_jobs_is_asked_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for job in ("api", "web"):
        kb.handoffs.create("a", "b", git=False, job=job)
    with pytest.raises(AmbiguousId):
        kb.handoffs.show("handoff-001")


def test_an_unknown_pattern_is_named_all_the_same(folder: Path, open_kb: Open) -> None:
    made = open_kb(folder).handoffs.create("a", "b", patterns=["sem-404"], git=False)
    assert made.handoff.relevant_patterns == ("sem-404",)
    assert "sem-404" in made.notices[0]


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"from_agent": " "}, UsageError),
        ({"to_agent": ""}, UsageError),
        ({"done": [SECRET]}, SecretRefused),
        ({"artifacts": [SECRET]}, SecretRefused),
        ({"git_state": SECRET}, SecretRefused),
    ],
)
def test_what_is_refused(told: dict[str, object], error: type[Exception], folder: Path, open_kb: Open) -> None:
    with pytest.raises(error):
        open_kb(folder).handoffs.create(**({"from_agent": "a", "to_agent": "b", "git": False} | told))  # type: ignore[arg-type]
    assert not (folder / "memory/handoffs").exists()


def test_dry_runs_write_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    assert "+from_agent: a" in kb.handoffs.create("a", "b", git=False, dry_run=True).run.diff
    assert "+current_task: T" in kb.ledgers.set("a", task="T", git=False, dry_run=True).run.diff
    assert sorted(one.name for one in (folder / "memory").iterdir() if not one.name.startswith(".")) == ["config.yaml"]


def test_a_handoff_of_any_text_reads_back(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    done = ["# head", "- dash", "```\n---\nid: x\n---", "## Known issues", "1. one\n\n   two"]
    made = kb.handoffs.create("a", "b", done=done, known_issues=["last"], git=False)
    shown = kb.handoffs.show(made.handoff.id)
    assert (shown.done, shown.known_issues) == (tuple(done), ("last",))


@pytest.mark.slow
def test_two_processes_take_two_numbers(folder: Path, home: Path) -> None:
    code = (
        "import sys; from memory_kb import KnowledgeBase\n"
        "with KnowledgeBase.open(sys.argv[1], sys.argv[2]) as kb:\n"
        "    for number in range(4): kb.handoffs.create(sys.argv[3], 'b', done=[str(number)], git=False)\n"
    )
    environment = clean_environment(home) | {"PYTHONPATH": str(REPOSITORY)}
    made = [subprocess.Popen([sys.executable, "-c", code, folder, home, name], env=environment) for name in ("x", "y")]
    assert [one.wait(60) for one in made] == [0, 0]
    assert sorted(one.stem for one in (folder / "memory/handoffs").iterdir()) == [
        f"handoff-{number:03d}" for number in range(1, 9)
    ]


@pytest.mark.slow
def test_the_commands(folder: Path, run: Run, tmp_path: Path) -> None:
    vault = ("--vault", folder)
    assert run(*vault, "ledger", "list").stderr.strip() == "No agent has a ledger yet."
    assert run(*vault, "handoff", "latest", "--json").stdout.strip() == "{}"
    set_ = json.loads(
        run(
            *vault, "ledger", "set", "eng", "--task", "T", "--completed", "S", "--file", "a", "--uncommitted", "--json"
        ).stdout
    )
    assert (set_["agent_id"], set_["tasks_completed"], set_["state"]["uncommitted_changes"], set_["action"]) == (
        "eng",
        1,
        True,
        "created",
    )
    shown = run(*vault, "ledger", "show", "eng", "--json").stdout
    (tmp_path / "told.json").write_text(shown.replace('"T"', '"U"'))
    assert run(*vault, "ledger", "set", "--json-file", tmp_path / "told.json").returncode == 0
    assert "U" in run(*vault, "ledger", "show", "eng").stdout
    (tmp_path / "told.json").write_text("[1]")
    assert run(*vault, "ledger", "set", "eng", "--json-file", tmp_path / "told.json").returncode == 4
    missing = run(*vault, "ledger", "set", "eng", "--json-file", tmp_path / "none.json", "--json")
    assert (missing.returncode, json.loads(missing.stdout)["code"]) == (4, "unreadable")
    assert run(*vault, "ledger", "set").returncode == 2
    assert run(*vault, "ledger", "show", "nobody").returncode == 4
    made = json.loads(
        run(
            *vault,
            "handoff",
            "create",
            "--from",
            "a",
            "--to",
            "b",
            "--done",
            "X.",
            "--known-issue",
            "Y.",
            "--no-git",
            "--json",
        ).stdout
    )
    assert (made["id"], made["context"]["what_was_done"], made["context"]["git_state"]) == ("handoff-001", "X.", None)
    assert "X." in run(*vault, "handoff", "show", "1").stdout
    assert json.loads(run(*vault, "handoff", "list", "--json").stdout)["handoffs"][0]["to_agent"] == "b"
    assert "would create" in run(*vault, "handoff", "create", "--from", "a", "--to", "c", "--dry-run").stderr
    assert run(*vault, "handoff", "create", "--from", "a").returncode == 2
