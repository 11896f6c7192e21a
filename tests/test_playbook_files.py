"""Playbooks as files: what is imported of those of others, and that an export reads back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import Files, Run
from ruling import rule, rules
from support import fields_of, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.playbook_file import parse_rules

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}

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
    dry = kb.rules.import_(source, dry_run=True)
    assert ([one.action for one in dry.rules], notes_of(folder)) == (["created", "created"], {})
    report = kb.rules.import_(source)
    assert [(one.id, one.action, one.line) for one in report.rules] == [
        ("rule_xyz", "created", 2),
        ("../../escape", "created", 13),
    ]
    assert all(name.startswith("vault/memory/rules/") for name in notes_of(folder))
    first, second = (fields_of(folder, one.path) for one in report.rules)
    assert (first["kind"], first["confidence"], first["maturity"], first["success_count"]) == (
        "rule",
        0.75,
        "established",
        5,
    )
    assert (first["sources"], first["tags"], first["last_applied"]) == (
        ["diary_42_12345"],
        ["streaming", "sse"],
        "2026-02-27T12:00:00Z",
    )
    assert (second["kind"], second["confidence"], second["maturity"]) == ("pitfall", 0.5, "nascent")
    before = notes_of(folder)
    again = kb.rules.import_(source)
    assert ([one.action for one in again.rules], again.run.run, notes_of(folder)) == (["known", "known"], None, before)
    assert {one.action for one in kb.rules.import_(source, scope="global").rules} == {"created"}


def test_import_of_a_cass_playbook(folder: Path, tmp_path: Path, run: Run, open_kb: OpenKB) -> None:
    source = tmp_path / "cass.yaml"
    source.write_text(CASS)
    done = run("--vault", folder, "rules", "import", source, "--json")
    shown = json.loads(done.stdout)
    assert [problem["line"] for problem in shown["problems"]] == [6, 7]
    assert [one["action"] for one in shown["rules"]] == ["created"] * 3
    listed = {one.id: one for one in open_kb(folder).rules.list()}
    assert {name: (one.kind, one.stored_confidence, one.maturity, one.tags) for name, one in listed.items()} == {
        "b-8f3a2c": ("rule", 0.45, "nascent", ("tooling",)),
        "b-000001": ("pitfall", 1.0, "proven", ("testing",)),
    }
    assert open_kb(folder).show("b-000002").status == "retired"
    assert len({one["path"] for one in shown["rules"]}) == 3


def test_the_state_of_a_rule_counts_before_its_status(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    source = tmp_path / "p.yaml"
    listed = [
        {"id": "a", "text": "Pin the compiler.", "state": "active", "status": "retired"},
        {"id": "b", "text": "Wait for the event.", "state": "retired", "status": "active"},
        {"id": "c", "text": "Close the client after use.", "status": "retired"},
    ]
    source.write_text(yaml.safe_dump(listed))
    kb = open_kb(folder)
    kb.rules.import_(source)
    assert [kb.show(name).status for name in "abc"] == ["active", "retired", "retired"]


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
    report = kb.rules.import_(source)
    assert [one.action for one in report.rules] == ["known", "forgotten", "refused", "created", "refused", "created"]
    assert all(notes_of(folder)[name] == text for name, text in before.items())
    assert [one.action for one in kb.rules.import_(source).rules] == [
        "known",
        "forgotten",
        "refused",
        "known",
        "known",
        "known",
    ]


def test_rules_whose_names_look_alike_get_files_of_their_own(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    source = tmp_path / "p.yaml"
    source.write_text(
        "- {id: rule-project-1, text: Wait for 8 seconds}\n- {id: rule-project-2, text: 'Wait, for 8 seconds!'}\n"
    )
    report = open_kb(folder).rules.import_(source)
    assert ([one.action for one in report.rules], report.run.conflicts) == (["created", "created"], ())
    assert len(notes_of(folder)) == 2


@pytest.mark.parametrize(
    "text", ["rules: [a\n", "just text", "", "rules: 7", "[" * 200_000, "\x00", "a: &a [*a]", "rules: " + "- " * 3000]
)
def test_a_file_that_is_no_playbook_is_one_sentence(tmp_path: Path, folder: Path, run: Run, text: str) -> None:
    source = tmp_path / "p.yaml"
    source.write_text(text)
    done = run("--vault", folder, "rules", "import", source)
    assert (done.returncode, done.stdout) == (4, "")
    assert "p.yaml" in done.stderr
    assert "Traceback" not in done.stderr


def test_rules_that_cannot_be_read_cost_no_others() -> None:
    found = parse_rules(
        "rules:\n- text: {a: b}\n- &x {text: One.}\n- *x\n- {text: Two., tags: null, confidence: high, success_count: -3}\n",
        "p.yaml",
    )
    assert [one.draft.text for one in found[0]] == ["One.", "One.", "Two."]
    assert [str(problem) for problem in found[1]] == ["p.yaml:2: is no rule: a rule has at least a text"]
    assert found[0][2].draft.fields == {
        "confidence": 0.5,
        "maturity": "nascent",
        "success_count": 0,
        "failure_count": 0,
    }


def test_odd_yaml_ends_well() -> None:
    bomb = "x: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
    )
    found = parse_rules(f"{bomb}rules:\n- text: One.\n  tags: *g\n- text: Two.\n", "p.yaml")
    assert ([one.draft.text for one in found[0]], [problem.line for problem in found[1]]) == (["Two."], [9])
    assert parse_rules("rules: &r [*r]\n", "p.yaml")[0] == ()
    assert parse_rules("\ufeff- {text: Bom., id: 7}\n", "p.yaml")[0][0].id == "7"


def test_export_is_read_back(vault: MakeVault, tmp_path: Path, home: Path, open_kb: OpenKB, run: Run) -> None:
    folder = vault(
        rules(
            a=rule(
                "Buffer *all* chunks:\n\n## Conditions\n\n- SSE # yes\n",
                success_count=3,
                maturity="established",
                last_applied="2026-11-20",
            ),
            b=rule("Sleeping.", id="p", kind="pitfall", title="'No: sleep'", sources="[ep-1]", pinned="true"),
            c=rule(id="gone", status="retired"),
        )
    )
    done = run("--vault", folder, "rules", "export", "--yaml")
    assert done.stdout == open_kb(folder).rules.export()
    assert [one["id"] for one in yaml.safe_load(done.stdout)["rules"]] == ["r", "p"]
    other = tmp_path / "other"
    (other / "memory/rules").mkdir(parents=True)
    source = tmp_path / "exported.yaml"
    source.write_text(done.stdout)
    kb = open_kb(other)
    kb.rules.import_(source)
    for one, copy in zip(open_kb(folder).rules.list(), kb.rules.list(), strict=True):
        kept = ("id", "kind", "text", "confidence", "maturity", "success_count", "tags", "last_applied", "is_pinned")
        assert [getattr(one, name) for name in kept] == [getattr(copy, name) for name in kept]
    assert kb.rules.export() == done.stdout


def test_errors_of_import_say_what_to_do(folder: Path, tmp_path: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    with pytest.raises(UnreadableInput, match="cannot be read"):
        kb.rules.import_(tmp_path / "none.yaml")
    with pytest.raises(UsageError):
        kb.rules.import_(tmp_path / "none.yaml", task="t")
