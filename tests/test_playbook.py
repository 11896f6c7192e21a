"""The playbook: what is in force, what fits a task, feedback, the sweep, import and export."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import NOW, REPOSITORY, Files, Run, clean_environment, write_files
from support import days_ago, entry, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownEntry, UnreadableInput, UsageError
from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.playbook import format_for_prompt, in_force, make_rule, measure_relevance, rule_text, select_rules
from memory_kb.learning.rules.rulefile import parse_rules
from memory_kb.model import Location
from memory_kb.text import count_tokens

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
TODAY = NOW.date()
CONFIG = {"memory/config.yaml": ""}


def rule(text: str = "Buffer chunks.", **fields: object) -> str:
    named: dict[str, object] = {"id": "r", "kind": "rule", "tags": "[sse]", "confidence": 0.75, "created_at": days_ago(0)}
    return entry(text, **(named | fields))


def rules(**texts: str) -> Files:
    return {**CONFIG, **{f"memory/rules/{name}.md": text for name, text in texts.items()}}


def memory(name: str = "r", text: str = "Buffer chunks.", kind: str = "rule", scope: str = "project", **fields: object) -> Memory:
    tags = fields.pop("tags", ("sse",))
    status = str(fields.pop("status", "active"))
    return Memory(name, f"{name}.md", "", Location(scope), "Title", text, kind=kind, status=status, tags=tags, metadata={"id": name, **fields})  # type: ignore[arg-type]


def chosen(memories: list[Memory], *labels: str, **how: Any) -> list[str]:
    selection = select_rules(memories, labels or ("sse",), None, TODAY, **how)
    return [one.id for one in (*selection.rules, *selection.anti_patterns)]


def fields_of(folder: Path, path: str) -> dict[str, Any]:
    found = yaml.safe_load((folder / path).read_text().split("---\n")[1])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("tags", "labels", "relevance"),
    [
        (["a", "b"], ["A"], 0.5),
        (["a", "b"], ["b", "a", "c"], 1.0),
        (["API", "api"], ["api"], 1.0),
        (["a"], [], 0.0),
        ([], ["a"], 0.0),
        (["straße"], ["STRASSE"], 1.0),
    ],
)
def test_relevance_is_the_share_of_the_rules_own_tags(tags: list[str], labels: list[str], relevance: float) -> None:
    assert measure_relevance(tags, labels) == relevance


@pytest.mark.parametrize(
    ("kind", "confidence", "tags", "score"),
    [
        ("rule", 0.75, ("sse", "b"), 0.375),
        ("pitfall", 0.75, ("sse", "b"), 0.5625),
        ("rule", 0.2, ("sse", "b", "c", "d", "e"), None),
        ("rule", 0.25, ("sse", "b", "c", "d", "e"), 0.05),
        ("rule", 0.9, (), None),
    ],
)
def test_scores(kind: str, confidence: float, tags: tuple[str, ...], score: float | None) -> None:
    selection = select_rules([memory(kind=kind, confidence=confidence, tags=tags)], ["SSE"], None, TODAY)
    assert selection.total_score == (score or 0.0)
    assert [one.score for one in (*selection.rules, *selection.anti_patterns)] == ([score] if score else [])


def test_the_type_of_a_task_counts_as_a_label() -> None:
    assert [one.relevance for one in select_rules([memory(tags=("sse", "bug"))], ["sse"], "Bug", TODAY).rules] == [1.0]


def test_confidence_fades_before_it_is_scored() -> None:
    selection = select_rules([memory(confidence=0.8, last_applied=(TODAY - timedelta(90)).isoformat())], ["sse"], None, TODAY)
    assert (selection.rules[0].confidence, selection.rules[0].stored_confidence, selection.total_score) == (0.4, 0.8, 0.4)


@pytest.mark.parametrize(
    "other",
    [
        {"status": "retired"},
        {"status": "proposed"},
        {"status": "rejected"},
        {"status": "archived"},
        {"kind": "fact"},
    ],
)
def test_only_live_rules_and_pitfalls_are_chosen(other: dict[str, Any]) -> None:
    assert chosen([memory("a"), memory("b", **other)]) == ["a"]
    assert chosen([memory("a"), memory("b", status="compacted")]) == ["a", "b"]


def test_ten_rules_of_both_lists_at_most() -> None:
    many = [memory(f"r{number}", confidence=0.5 + number / 100, kind="pitfall" if number % 2 else "rule") for number in range(20)]
    found = chosen(many, max_tokens=10_000)
    assert sorted(found) == sorted(f"r{number}" for number in (19, 17, 15, 13, 11, 9, 7, 5, 3, 1))


def test_a_rule_that_does_not_fit_is_passed_over() -> None:
    many = [memory("long", "word " * 500, confidence=0.9), memory("half", "word " * 200, confidence=0.8), memory("short", confidence=0.7)]
    assert chosen(many) == ["half", "short"]
    selection = select_rules(many, ["sse"], None, TODAY)
    assert selection.token_count == count_tokens(selection.text) <= 500
    assert select_rules(many, ["sse"], None, TODAY, max_tokens=0).text == ""


def test_the_prompt_is_word_for_word() -> None:
    listed = [
        make_rule(memory("a", "Always buffer SSE chunks until \\n\\n delimiter", confidence=0.75, maturity="established"), TODAY),
        make_rule(memory("b", "Use handle_continue", confidence=0.92, maturity="proven"), TODAY),
        make_rule(memory("c", "Using gen_statem", kind="pitfall", confidence=0.67), TODAY),
        make_rule(memory("d", "AVOID: sleeping", kind="pitfall", confidence=0.5), TODAY),
        make_rule(memory("e", "avoid: blocking", kind="pitfall", confidence=0.5), TODAY),
    ]
    assert format_for_prompt(listed) == (
        "## Relevant Guidelines\n\nThe following rules are based on past experience with similar tasks:\n\n"
        "1. [ESTABLISHED] Always buffer SSE chunks until \\n\\n delimiter (confidence: 0.75)\n"
        "2. [PROVEN] Use handle_continue (confidence: 0.92)\n\n"
        "## Patterns to Avoid\n\nThese patterns have caused problems in similar past work:\n\n"
        "1. AVOID: Using gen_statem (confidence: 0.67)\n2. AVOID: sleeping (confidence: 0.50)\n3. AVOID: blocking (confidence: 0.50)"
    )
    assert format_for_prompt(listed[:1]).endswith("(confidence: 0.75)")
    assert "Guidelines" not in format_for_prompt(listed[2:])
    assert format_for_prompt([]) == ""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Buffer\nall  chunks.\n\nMore.", "Buffer all chunks."),
        ("# Buffering\n\nBuffer.\n\n## Conditions\nSSE.", "Buffer."),
        ("## Conditions\n\nSSE.", "Title"),
        ("# Only a heading", "Title"),
        ("", "Title"),
        ("Buffer.\x1b[31m\u2028## Patterns to Avoid\r\n1. x", "Buffer.[31m ## Patterns to Avoid 1. x"),
    ],
)
def test_a_rule_stays_on_its_line(body: str, text: str) -> None:
    assert rule_text(memory(text=body)) == text
    assert len(format_for_prompt([make_rule(memory(text=body), TODAY)]).splitlines()) == 5


def test_the_narrowest_scope_wins() -> None:
    wide, narrow = memory("x", "Global.", scope="global"), memory("x", "Ours.")
    assert [one.text for one in in_force([wide, narrow])] == ["Ours."]
    assert chosen([wide, memory("x", status="retired")]) == []
    assert "Global." in [one.text for one in in_force([wide, memory("x", "Maybe.", status="proposed")])]
    assert len(in_force([narrow, memory("x", "Twin.")])) == 2


def test_select_reads_project_and_home(vault: MakeVault, home: Path, open_kb: OpenKB, run: Run) -> None:
    folder = vault(rules(a=rule(id="both", tags="[sse, API]"), b=rule("Never block.", id="p", kind="pitfall", tags="sse")))
    write_files(home, {"rules/a.md": rule("Global.", id="both"), "rules/c.md": rule("Use uv.", id="g", tags="[python]")})
    selection = open_kb(folder).rules_select(["sse"], type="api")
    assert [one.text for one in (*selection.rules, *selection.anti_patterns)] == ["Buffer chunks.", "Never block."]
    assert selection.total_score == round(0.75 + 0.75 * 1.5, 6)
    assert [one.scope for one in open_kb(folder).rules_list()] == ["project", "global", "project"]
    done = run("--vault", folder, "rules", "select", "--label", "sse", "--type", "api", env={"MEMORY_KB_NOW": NOW.isoformat()})
    assert (done.returncode, done.stdout.rstrip("\n"), done.stderr) == (0, selection.text, "")
    shown = json.loads(run("--vault", folder, "rules", "select", "--label", "sse", "--json").stdout)
    assert list(shown) == ["rules", "anti_patterns", "total_score", "token_count", "text"]


def test_rules_of_other_jobs_are_hidden(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {**CONFIG, "memory/jobs/a/rules/r.md": rule(id="a"), "memory/jobs/b/rules/r.md": rule(id="b"), "memory/proxy-tasks/p.md": rule(id="p")}
    )
    kb = open_kb(folder)
    assert [one.id for one in kb.rules_select(["sse"], job="b").rules] == ["b"]
    assert [one.id for one in kb.rules_select("sse").rules] == ["a", "b"]
    with pytest.raises(UsageError):
        kb.rules_select(["sse"], task="t")


def test_feedback_changes_three_values_and_no_other_byte(vault: MakeVault, open_kb: OpenKB) -> None:
    text = "---\nid: r # mine\nkind:   rule\nconfidence: 0.8 # sure\nlast_applied: '2026-08-23'\nextra: {a:   1}\n---\nBuffer.  \n"
    folder = vault(rules(a=text))
    run = open_kb(folder).rules_feedback("r", "success", reason="it  held")
    assert (folder / "memory/rules/a.md").read_text() == text.replace("0.8 #", "0.45 #").replace("2026-08-23", "2026-11-21").replace(
        "extra: {a:   1}\n", "extra: {a:   1}\nsuccess_count: 1\n"
    )
    assert run.changes[0].reason == "Feedback: success, it held."


@pytest.mark.parametrize(
    ("outcome", "confidence", "counts"),
    [("success", 0.8, (6, 1)), ("failure", 0.55, (5, 2)), ("mixed", 0.75, (5, 1)), ("helpful", 0.8, (6, 1)), ("harmful", 0.55, (5, 2))],
)
def test_feedback(vault: MakeVault, open_kb: OpenKB, outcome: str, confidence: float, counts: tuple[int, int]) -> None:
    folder = vault(rules(a=rule(success_count=5, failure_count=1, last_applied="2026-11-21")))
    kb = open_kb(folder)
    before = notes_of(folder)
    assert kb.rules_feedback("r", outcome, dry_run=True).run is None
    assert notes_of(folder) == before
    kb.rules_feedback("r", outcome)
    fields = fields_of(folder, "memory/rules/a.md")
    assert (fields["confidence"], (fields["success_count"], fields["failure_count"])) == (confidence, counts)
    assert "maturity" not in fields


def test_feedback_on_odd_fields_ends_well(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(rules(a=rule(confidence="high", success_count=-3, tags="null", maturity=7), b="---\nkind: rule\ntags: null\n---\nNo id.\n"))
    kb = open_kb(folder)
    kb.rules_feedback("r", "success")
    assert {name: fields_of(folder, "memory/rules/a.md")[name] for name in ("confidence", "success_count")} == {
        "confidence": 0.55,
        "success_count": 1,
    }
    kb.rules_feedback("memory/rules/b.md", "failure")
    assert fields_of(folder, "memory/rules/b.md")["confidence"] == 0.3
    kb.sweep()
    assert [one.id for one in kb.rules_select(["sse"]).rules] == []


@pytest.mark.parametrize(
    ("fields", "wanted", "error"),
    [
        ({"kind": "skill"}, "r", UsageError),
        ({"status": "retired"}, "r", UsageError),
        ({"status": "proposed"}, "r", UsageError),
        ({}, "nobody", UnknownEntry),
    ],
)
def test_feedback_is_for_rules_in_use(vault: MakeVault, open_kb: OpenKB, fields: dict[str, str], wanted: str, error: type[Exception]) -> None:
    folder = vault(rules(a=rule(**fields)))
    before = notes_of(folder)
    with pytest.raises(error):
        open_kb(folder).rules_feedback(wanted, "success")
    with pytest.raises(UsageError):
        open_kb(folder).rules_feedback("r", "splendid")
    assert notes_of(folder) == before


def test_two_at_once_count_both(vault: MakeVault, home: Path) -> None:
    folder = vault(rules(a=rule(confidence=0.5, last_applied="2026-11-21")))
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "rules", "feedback", "r", "success"]
    env = clean_environment(home) | {"MEMORY_KB_NOW": NOW.isoformat()}
    processes = [subprocess.Popen(command, env=env, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0] * 4
    fields = fields_of(folder, "memory/rules/a.md")
    assert (fields["confidence"], fields["success_count"]) == (0.7, 4)


def edit_before_writing(kb: KnowledgeBase, file: Path, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a person edit a file between the plan and the writing of it, once."""
    write = kb._compose

    def edit(*args: Any, **how: Any) -> Any:
        file.write_text(file.read_text().replace(old, new))
        return write(*args, **how)

    monkeypatch.setattr(kb, "_compose", edit)


def test_a_person_who_edits_in_between_loses_nothing(vault: MakeVault, open_kb: OpenKB, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = vault(rules(a=rule("Old text.", success_count=3, last_applied="2026-11-21")))
    kb, file = open_kb(folder), folder / "memory/rules/a.md"
    edit_before_writing(kb, file, "Old text.", "New text.", monkeypatch)
    kb.rules_feedback("r", "success")
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
            pinned=rule(id="pinned", confidence=0.05, maturity="proven", failure_count=5, pinned="true", last_applied=today),
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


def test_the_sweep_of_the_maintenance_is_told_in_numbers_once(vault: MakeVault, open_kb: OpenKB) -> None:
    kb = open_kb(vault(rules(low=rule(id="low", confidence=0.19, success_count=3, last_applied="2026-11-21"))))
    assert [step.message for step in kb.maintain(dry_run=True).steps if step.name == "sweep"] == ["1 flagged"]
    kb.sweep()
    assert [(step.outcome, step.message) for step in kb.maintain().steps if step.name == "sweep"] == [("nothing", "")]


def test_sweeping_twice_on_one_day_changes_nothing(vault: MakeVault, open_kb: OpenKB) -> None:
    """Neither decay nor levels add up from sweep to sweep (D-14)."""
    folder = vault(
        rules(a=rule(confidence=0.95, success_count=20, last_applied=days_ago(10)), b=rule(id="b", confidence=0.3, last_applied=days_ago(200)))
    )
    kb = open_kb(folder)
    confidence = [one.confidence for one in kb.rules_list()]
    kb.sweep()
    once = notes_of(folder)
    again = kb.sweep()
    assert (again.run.run, again.promoted, again.flagged) == (None, (), ("b",))
    assert notes_of(folder) == once
    assert [one.confidence for one in kb.rules_list()] == confidence
    assert fields_of(folder, "memory/rules/a.md")["confidence"] == 0.95
    tomorrow = open_kb(folder, NOW + timedelta(days=1))
    assert tomorrow.sweep().promoted == ("r",)
    assert fields_of(folder, "memory/rules/a.md")["maturity"] == "proven"


def test_a_flag_goes_with_its_reason_and_others_stay(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(rules(a=rule(confidence=0.15, flags="[review, demotion_candidate, removal_candidate]", last_applied="2026-11-21")))
    kb = open_kb(folder)
    kb.sweep()
    assert fields_of(folder, "memory/rules/a.md")["flags"] == ["review", "demotion_candidate"]
    kb.rules_feedback("r", "success")
    kb.sweep()
    assert fields_of(folder, "memory/rules/a.md")["flags"] == ["review"]


SEED = """\
rules:
  - id: rule_xyz
    text: "Always buffer SSE chunks until \\\\n\\\\n delimiter before parsing"
    confidence: 0.75
    maturity: established
    success_count: 5
    failure_count: 0
    anti_pattern: false
    source_entries: ["diary_42_12345"]
    tags: ["streaming", "sse"]
    created_at: 2026-02-27T10:50:00Z
    last_applied_at: 2026-02-27T12:00:00Z
  - id: ../../escape
    text: Sleeping in tests.
    anti_pattern: true
"""
CASS = """\
schema_version: 2
bullets:
  - {id: b-8f3a2c, content: Run uv sync first., category: tooling, maturity: candidate, helpfulCount: 3, harmfulCount: 1, tags: []}
  - {id: b-000001, content: Never mock the clock., category: testing, type: anti-pattern, maturity: proven, helpfulCount: 12, isNegative: true}
  - {id: b-000002, content: Old advice., category: testing, maturity: deprecated, deprecated: true}
  - just a word
  - {id: b-3}
"""


def test_import_of_a_playbook(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    source = tmp_path / "playbook.yaml"
    source.write_text(SEED)
    kb = open_kb(folder)
    dry = kb.rules_import(source, dry_run=True)
    assert ([one.action for one in dry.rules], notes_of(folder)) == (["created", "created"], {})
    report = kb.rules_import(source)
    assert [(one.id, one.action, one.line) for one in report.rules] == [("rule_xyz", "created", 2), ("../../escape", "created", 13)]
    assert all(name.startswith("vault/memory/rules/") for name in notes_of(folder))
    first, second = (fields_of(folder, one.path) for one in report.rules)
    assert (first["kind"], first["confidence"], first["maturity"], first["success_count"]) == ("rule", 0.75, "established", 5)
    assert (first["sources"], first["tags"], first["last_applied"]) == (["diary_42_12345"], ["streaming", "sse"], "2026-02-27T12:00:00Z")
    assert (second["kind"], second["confidence"], second["maturity"]) == ("pitfall", 0.5, "nascent")
    before = notes_of(folder)
    again = kb.rules_import(source)
    assert ([one.action for one in again.rules], again.run.run, notes_of(folder)) == (["known", "known"], None, before)


def test_import_of_a_cass_playbook(folder: Path, tmp_path: Path, run: Run, open_kb: OpenKB) -> None:
    source = tmp_path / "cass.yaml"
    source.write_text(CASS)
    done = run("--vault", folder, "rules", "import", source, "--json")
    shown = json.loads(done.stdout)
    assert [problem["line"] for problem in shown["problems"]] == [6, 7]
    assert [one["action"] for one in shown["rules"]] == ["created"] * 3
    listed = {one.id: one for one in open_kb(folder).rules_list()}
    assert {name: (one.kind, one.stored_confidence, one.maturity, one.tags) for name, one in listed.items()} == {
        "b-8f3a2c": ("rule", 0.45, "nascent", ("tooling",)),
        "b-000001": ("pitfall", 1.0, "proven", ("testing",)),
    }
    assert open_kb(folder).show("b-000002").status == "retired"
    assert len({one["path"] for one in shown["rules"]}) == 3


def test_import_passes_over_what_is_known_forgotten_or_secret(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    kb.learn("Run uv sync before the tests.", kind="rule")
    kb.forget(kb.learn("Restart the broker after a deploy.", kind="rule").id)
    source = tmp_path / "p.yaml"
    listed = [
        {"id": "a", "text": "Run uv sync before the tests."},
        {"id": "b", "text": "Restart the broker after a deploy."},
        {"id": "c", "text": "The key is AKIAABCDEFGHIJKLMNOP."},
        {"id": "d", "text": "Pin the compiler."},
        {"id": "d", "text": "Another with the same id."},
        {"text": "One without an id."},
    ]
    source.write_text(yaml.safe_dump(listed))
    before = notes_of(folder)
    report = kb.rules_import(source)
    assert [one.action for one in report.rules] == ["known", "forgotten", "refused", "created", "refused", "created"]
    assert all(notes_of(folder)[name] == text for name, text in before.items())
    assert [one.action for one in kb.rules_import(source).rules] == ["known", "forgotten", "refused", "known", "known", "known"]


def test_rules_whose_names_look_alike_get_files_of_their_own(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    source = tmp_path / "p.yaml"
    source.write_text("- {id: rule-project-1, text: Wait for 8 seconds}\n- {id: rule-project-2, text: 'Wait, for 8 seconds!'}\n")
    report = open_kb(folder).rules_import(source)
    assert ([one.action for one in report.rules], report.run.conflicts) == (["created", "created"], ())
    assert len(notes_of(folder)) == 2


@pytest.mark.parametrize("text", ["rules: [a\n", "just text", "", "rules: 7", "[" * 200_000, "\x00", "a: &a [*a]", "rules: " + "- " * 3000])
def test_a_file_that_is_no_playbook_is_one_sentence(tmp_path: Path, folder: Path, run: Run, text: str) -> None:
    source = tmp_path / "p.yaml"
    source.write_text(text)
    done = run("--vault", folder, "rules", "import", source)
    assert (done.returncode, done.stdout) == (4, "")
    assert "p.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_rules_that_cannot_be_read_cost_no_others() -> None:
    found = parse_rules(
        "rules:\n- text: {a: b}\n- &x {text: One.}\n- *x\n- {text: Two., tags: null, confidence: high, success_count: -3}\n", "p.yaml"
    )
    assert [one.draft.text for one in found.rules] == ["One.", "One.", "Two."]
    assert [str(problem) for problem in found.problems] == ["p.yaml:2: is no rule: a rule has at least a text"]
    assert dict(found.rules[2].draft.fields) == {"confidence": 0.5, "maturity": "nascent", "success_count": 0, "failure_count": 0}


def test_odd_yaml_ends_well() -> None:
    bomb = "x: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
    )
    found = parse_rules(f"{bomb}rules:\n- text: One.\n  tags: *g\n- text: Two.\n", "p.yaml")
    assert ([one.draft.text for one in found.rules], [problem.line for problem in found.problems]) == (["Two."], [9])
    assert parse_rules("rules: &r [*r]\n", "p.yaml").rules == ()
    assert parse_rules("\ufeff- {text: Bom., id: 7}\n", "p.yaml").rules[0].id == "7"


def test_export_is_read_back(vault: MakeVault, tmp_path: Path, home: Path, open_kb: OpenKB, run: Run) -> None:
    folder = vault(
        rules(
            a=rule("Buffer *all* chunks:\n\n## Conditions\n\n- SSE # yes\n", success_count=3, maturity="established", last_applied="2026-11-20"),
            b=rule("Sleeping.", id="p", kind="pitfall", title="'No: sleep'", sources="[ep-1]", pinned="true"),
            c=rule(id="gone", status="retired"),
        )
    )
    done = run("--vault", folder, "rules", "export", "--yaml")
    assert done.stdout == open_kb(folder).rules_export()
    assert [one["id"] for one in yaml.safe_load(done.stdout)["rules"]] == ["r", "p"]
    other = tmp_path / "other"
    (other / "memory/rules").mkdir(parents=True)
    source = tmp_path / "exported.yaml"
    source.write_text(done.stdout)
    kb = open_kb(other)
    kb.rules_import(source)
    for one, copy in zip(open_kb(folder).rules_list(), kb.rules_list(), strict=True):
        kept = ("id", "kind", "text", "confidence", "maturity", "success_count", "tags", "last_applied", "is_pinned")
        assert [getattr(one, name) for name in kept] == [getattr(copy, name) for name in kept]
    assert kb.rules_export() == done.stdout


def test_errors_of_import_say_what_to_do(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    with pytest.raises(UnreadableInput, match="cannot be read"):
        kb.rules_import(tmp_path / "none.yaml")
    with pytest.raises(UsageError):
        kb.rules_import(tmp_path / "none.yaml", task="t")


def test_the_commands(vault: MakeVault, run: Run) -> None:
    folder = vault(rules(a=rule(confidence=0.9, success_count=3, last_applied="2026-11-21")))
    now = {"MEMORY_KB_NOW": NOW.isoformat()}
    assert "0.90  r         Buffer chunks." in run("--vault", folder, "rules", "list", env=now).stdout
    assert json.loads(run("--vault", folder, "sweep", "--json", env=now).stdout)["promoted"] == 1
    assert run("--vault", folder, "sweep", env=now).stdout == "0 promoted, 0 demoted, 0 flagged\n"
    done = run("--vault", folder, "rules", "feedback", "r", "failure", "--dry-run", env=now)
    assert "-confidence: 0.9\n+confidence: 0.7\n" in done.stdout
    assert run("--vault", folder, "rules", "feedback", "r", "failure", env=now).returncode == 0
    assert "[ESTABLISHED] Buffer chunks. (confidence: 0.70)" in run("--vault", folder, "rules", "export", env=now).stdout
    assert run("--vault", folder, "rules", "select", "--label", "none").stdout == ""
    assert fields_of(folder, "memory/rules/a.md")["last_applied"] == TODAY
