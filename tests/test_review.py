"""The review queue: what waits for a person, inversions, and what a judgment does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, REPOSITORY, Files, Run, clean_environment, write_files
from planning import tree
from support import days_ago, entry, fields_of, ids, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import CannotSplice, Forgotten, UnknownEntry, UsageError
from memory_kb.learning.rules.inversion import is_negative
from memory_kb.notes.entries import parse_document

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}
FAILING = {"id": "r", "kind": "rule", "tags": "[sse]", "success_count": 1, "failure_count": 4, "sources": "[ep-1]", "created_at": days_ago(9)}
TEXT = "AVOID: Use sleep to wait. -- this pattern has caused repeated issues (4 failures vs 1 successes)."


def rule(said: str = "Use sleep to wait.", **fields: Any) -> str:
    return entry(said, **(FAILING | fields))


def proposal(said: str = "Walruses like ice.", **fields: Any) -> str:
    named: dict[str, object] = {"id": "p", "kind": "fact", "status": "proposed", "created_at": days_ago(1)}
    return entry(said, **(named | fields))


def waiting(kb: KnowledgeBase) -> list[str]:
    return [item.id for item in kb.review_list()]


@pytest.fixture
def scanned(vault: MakeVault, open_kb: OpenKB) -> tuple[Path, KnowledgeBase, str]:
    """A vault with a failing rule and its inversion: the folder, the knowledge base, the proposal."""
    folder = vault({**CONFIG, "memory/rules/r.md": rule()})
    kb = open_kb(folder)
    (proposed,) = kb.review_scan().proposed
    return folder, kb, proposed


def test_a_scan_proposes_the_exact_warning(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    shown = kb.show(proposed)
    assert shown.path.startswith("memory/review/")
    assert shown.text
    assert shown.text.split("---\n")[2].strip() == TEXT
    fields = fields_of(folder, shown.path)
    expected = {"kind": "pitfall", "status": "proposed", "confidence": 0.5, "maturity": "nascent", "success_count": 0, "failure_count": 0}
    assert {name: fields[name] for name in expected} == expected
    assert (fields["tags"], fields["sources"]) == (["sse", "inverted", "anti-pattern"], ["ep-1"])
    assert fields["links"] == [{"to": "r", "relation": "derived_from"}]
    assert fields_of(folder, "memory/rules/r.md")["id"] == "r"
    assert (folder / "memory/rules/r.md").read_text() == rule()
    assert kb.rules_select(["sse"]).anti_patterns == ()


def test_scanning_again_proposes_nothing_more(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    before = notes_of(folder)
    assert kb.review_scan().proposed == ()
    kb.rules_feedback("r", "failure")
    assert kb.review_scan().proposed == ()
    assert set(notes_of(folder)) == set(before)
    kb.review_reject(proposed)
    assert (kb.review_scan().proposed, waiting(kb)) == ((), [])
    (folder / kb.show(proposed).path).unlink()
    assert kb.review_scan().proposed == (), "a proposal that a person deleted does not come back"


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
    assert len(open_kb(folder).review_scan(dry_run=True).proposed) == count
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
    assert (kb.review_scan().proposed, waiting(kb)) == ((), ["r"])
    assert fields_of(folder, "memory/rules/r.md")["flags"] == ["deprecation_candidate"]
    assert kb.review_scan().run.run is None
    kb.review_approve("r")
    assert (waiting(kb), kb.review_scan().run.run) == ([], None)
    later = open_kb(folder, NOW.replace(day=22))
    later.rules_feedback("r", "failure")
    later.review_scan()
    later.review_reject("r", reason="never true")
    assert later.show("r").status == "rejected"


def test_approving_puts_the_warning_in_the_place_of_the_rule(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    before = tree(folder)
    preview = kb.review_approve(proposed, dry_run=True)
    assert tree(folder) == before
    run = kb.review_approve(proposed[:8])
    assert {change.path for change in preview.changes} == {change.path for change in run.changes}
    shown, original = kb.show(proposed), kb.show("r")
    assert (shown.status, shown.path.rpartition("/")[0]) == ("active", "memory/rules")
    assert not (folder / "memory/review").exists() or not list((folder / "memory/review").iterdir())
    assert (original.status, original.metadata["confidence"]) == ("retired", 0.0)
    assert original.metadata["links"] == [{"to": proposed, "relation": "superseded_by"}]
    assert {"to": "r", "relation": "supersedes"} in shown.metadata["links"]
    assert [one.id for one in kb.rules_select(["sse"]).anti_patterns] == [proposed]
    assert kb.rules_select(["sse"]).rules == ()
    once = tree(folder)
    assert kb.review_approve(proposed).run is None
    assert kb.review_scan().run.run is None
    assert tree(folder) == once
    kb.undo(run.run)
    assert tree(folder) == before


def test_an_approval_written_by_hand_is_completed(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    path = kb.show(proposed).path
    (folder / path).write_text((folder / path).read_text().replace("status: proposed", "status: active"))
    assert waiting(kb) == []
    assert [one.id for one in kb.rules_select(["sse"]).anti_patterns] == [proposed]
    kb.review_scan()
    assert (kb.show("r").status, kb.show(proposed).path) == ("retired", path)
    (folder / "memory/rules/r.md").write_text((folder / "memory/rules/r.md").read_text().replace("status: retired", "status: active"))
    assert kb.review_scan().run.run is None, "a rule that a person brought back stays"
    kb.review_approve(proposed)
    assert (kb.show("r").status, kb.show(proposed).path.rpartition("/")[0]) == ("retired", "memory/rules")


def test_a_rejection_written_by_hand_is_one(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    folder, kb, proposed = scanned
    path = folder / kb.show(proposed).path
    path.write_text(path.read_text().replace("status: proposed", "status: rejected"))
    assert (waiting(kb), kb.review_scan().proposed, kb.show("r").status) == ([], (), "active")


def test_an_open_proposal_keeps_the_sweep_away(scanned: tuple[Path, KnowledgeBase, str]) -> None:
    _, kb, proposed = scanned
    for _ in range(3):
        kb.rules_feedback("r", "failure")
    assert kb.sweep().flagged == ()
    kb.review_reject(proposed)
    assert kb.sweep().flagged == ("r",)


def test_the_rule_of_the_same_place_is_retired(vault: MakeVault, home: Path, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/jobs/a/rules/r.md": rule(), "memory/jobs/b/rules/r.md": rule()})
    write_files(home, {"rules/g.md": rule(id="g")})
    kb = open_kb(folder)
    proposed = kb.review_scan().proposed
    paths = sorted(kb.show(one).path.rpartition("/")[0] for one in proposed)
    assert paths == ["memory/jobs/a/review", "memory/jobs/b/review", "~global/review"]
    (folder / "memory/jobs/c/rules").mkdir(parents=True)
    (folder / "memory/jobs/c/rules/r.md").write_text(rule())
    assert [kb.show(one).path.startswith("memory/jobs/c/") for one in kb.review_scan().proposed] == [True]
    (first,) = [one for one in proposed if kb.show(one).path.startswith("memory/jobs/b/")]
    kb.review_approve(first)
    assert [kb.show(f"memory/jobs/{job}/rules/r.md").status for job in "ab"] == ["active", "retired"]


def test_an_id_that_stands_twice_is_proposed_once(vault: MakeVault, open_kb: OpenKB) -> None:
    loop = proposal(id="loop", kind="pitfall", tags="[inverted]", links="[{to: loop, relation: derived_from}]")
    folder = vault({**CONFIG, "memory/rules/r.md": f"{rule()}\n{rule('Another.')}", "memory/review/loop.md": loop})
    kb = open_kb(folder)
    (proposed,) = kb.review_scan().proposed
    assert {item.id: item.of for item in kb.review_list()} == {proposed: "r", "loop": None}
    before = (folder / "memory/rules/r.md").read_text()
    assert kb.review_approve(proposed).conflicts
    assert ((folder / "memory/rules/r.md").read_text(), kb.show(proposed).status) == (before, "proposed")
    kb.review_approve("loop")
    assert kb.show("loop").status == "active"


def test_the_queue(vault: MakeVault, open_kb: OpenKB, run: Run) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/review/p.md": proposal(),
            "memory/review/q.md": "---\nid: q\nkind: decision\n---\nNo status.\n",
            "memory/learnings/w.md": proposal(id="w"),
            "memory/rules/f.md": rule(id="f", flags="[removal_candidate]"),
            "memory/rules/o.md": rule(id="o", flags="null"),
            "memory/rules/g.md": rule(id="g", flags="[removal_candidate]", status="retired"),
            "memory/review/done.md": proposal(id="done", status="active"),
            "memory/review/no.md": proposal(id="no", status="rejected"),
        }
    )
    kb = open_kb(folder)
    items = {item.id: item for item in kb.review_list()}
    assert list(items) == ["w", "p", "q", "f"]
    assert {name: item.proposes for name, item in items.items()} == {"w": "entry", "p": "entry", "q": "entry", "f": "flag"}
    assert [item.id for item in kb.review_list(kind=["rule"])] == ["f"]
    shown = json.loads(run("--vault", folder, "review", "list", "--json").stdout)["items"]
    assert [item["id"] for item in shown] == list(items)
    done = run("--vault", folder, "review", "list", env={"MEMORY_KB_NOW": NOW.isoformat()})
    assert "Flagged: removal_candidate; confidence 0.47, 4 failures and 1 success. Approving keeps it" in done.stdout


def test_a_proposal_is_put_in_use(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/review/p.md": proposal(flags="[review]"),
            "memory/learnings/p.md": entry("Taken.", id="t"),
            "memory/jobs/j/review/e.md": proposal("Trace.", id="e", kind="episode", created_at="'2026-11-20'"),
            "memory/review/many.md": proposal("One.", id="m1", kind="skill") + "\n" + proposal("Two.", id="m2"),
            "memory/learnings/here.md": proposal("Here.", id="h"),
            "memory/learnings/no-id.md": "---\nkind: fact\nstatus: proposed\n---\nNo id.\n",
        }
    )
    kb = open_kb(folder)
    kb.review_approve("p", "e", "m1", "h", "memory/learnings/no-id.md")
    assert {name: kb.show(name).path for name in ("p", "e", "h", "m2")} == {
        "p": "memory/learnings/p-2.md",
        "e": "memory/jobs/j/episodes/2026-11-20/e.md",
        "h": "memory/learnings/here.md",
        "m2": "memory/review/many.md",
    }
    assert kb.show("m1").path.startswith("memory/skills/")
    assert (kb.show("p").status, kb.show("m2").status, kb.show("p").metadata["flags"]) == ("active", "proposed", [])
    assert kb.show("memory/learnings/no-id.md").status == "active"
    assert "p" in ids(kb, "walruses")
    assert waiting(kb) == ["m2"]


@pytest.mark.parametrize(
    ("before", "path"),
    [
        (None, "memory/institutional.md"),
        (b"# Ours\n\nWe ship on Mondays.", "memory/institutional.md"),
        (b"\xef\xbb\xbf---\r\nid: a # mine\r\n---\r\nWindows.\r\n", "memory/institutional.md"),
        (b"---\nid: a\n---\nBeside.\n", "institutional.md"),
    ],
)
def test_an_institutional_proposal_goes_to_the_institution(vault: MakeVault, open_kb: OpenKB, before: bytes | None, path: str) -> None:
    files: dict[str, str | bytes] = {
        **CONFIG,
        "memory/review/p.md": proposal(institutional="true"),
        "memory/review/q.md": proposal("Second.", id="q", institutional="true"),
    }
    folder = vault(files | ({path: before} if before else {}))
    kb = open_kb(folder)
    run = kb.review_approve("p", "q")
    after = (folder / path).read_bytes()
    assert after.startswith(before or b"")
    found = parse_document(after.decode(), path)
    assert [one.id for one in found.entries][-2:] == ["p", "q"]
    assert [one.status for one in found.entries] == ["active"] * len(found.entries)
    if before and b"\r\n" in before:
        assert after.count(b"\n") == after.count(b"\r\n")
    assert not (folder / "memory/review/p.md").exists()
    assert kb.review_approve("p", "q").run is None
    kb.undo(run.run)
    assert (folder / "memory/review/p.md").exists()
    assert ((folder / path).read_bytes() if before else (folder / path).exists()) == (before or False)


def test_an_institution_that_would_swallow_the_entry_is_left(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/institutional.md": "```\nnever closed\n", "memory/review/p.md": proposal(institutional="true")})
    before = notes_of(folder)
    with pytest.raises(CannotSplice):
        open_kb(folder).review_approve("p")
    assert notes_of(folder) == before


def test_a_plain_folder_has_a_queue_too(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"review/p.md": proposal(), "review/plain.md": "A review of a book.\n", "rules/r.md": rule()})
    kb = open_kb(folder)
    assert waiting(kb) == ["p"]
    (proposed,) = kb.review_scan().proposed
    kb.review_approve("p", proposed)
    assert (kb.show("p").path, kb.show(proposed).path.partition("/")[0], kb.show("r").status) == ("learnings/p.md", "rules", "retired")


def test_what_was_rejected_stays_and_does_not_come_back(vault: MakeVault, open_kb: OpenKB) -> None:
    text = proposal("Walruses like ice in the morning.")
    folder = vault({**CONFIG, "memory/review/p.md": text})
    kb = open_kb(folder)
    kb.review_reject("p", reason="only  at sea: no")
    changed = text.replace("status: proposed", "status: rejected").replace(
        "---\nWalruses", "reviewed: '2026-11-21'\nreview_reason: 'only at sea: no'\n---\nWalruses"
    )
    assert (folder / "memory/review/p.md").read_text() == changed
    assert kb.review_reject("p").run is None
    assert (waiting(kb), ids(kb, "walruses")) == ([], [])
    with pytest.raises(Forgotten):
        kb.learn("Walruses like ice in the morning.")
    kb.review_approve("p")
    assert kb.show("p").path == "memory/learnings/p.md"
    assert kb.learn("Walruses like ice in the morning.").action == "reinforced"


def test_a_flag_that_was_looked_at_comes_back_with_new_evidence(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule(confidence=0.05, failure_count=2, last_applied="'2026-11-21'")})
    kb = open_kb(folder)
    assert kb.sweep().flagged == ("r",)
    assert waiting(kb) == ["r"]
    kb.review_approve("r")
    assert (waiting(kb), kb.sweep().flagged, kb.sweep().run.run) == ([], (), None)
    tomorrow = open_kb(folder, NOW.replace(day=22))
    assert tomorrow.sweep().flagged == ()
    tomorrow.rules_feedback("r", "failure")
    assert tomorrow.sweep().flagged == ("r",)


@pytest.mark.parametrize(
    ("verb", "wanted", "error"),
    [
        ("review_approve", "gone", UsageError),
        ("review_reject", "gone", UsageError),
        ("review_reject", "live", UsageError),
        ("review_approve", "nobody", UnknownEntry),
        ("review_reject", "nobody", UnknownEntry),
        ("review_show", "nobody", UnknownEntry),
    ],
)
def test_what_cannot_be_judged(vault: MakeVault, open_kb: OpenKB, verb: str, wanted: str, error: type[Exception]) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/a.md": entry("Gone.", id="gone", status="retired"),
            "memory/b.md": entry("Live.", id="live"),
            "memory/review/p.md": proposal(),
        }
    )
    before = notes_of(folder)
    kb = open_kb(folder)
    with pytest.raises(error) as caught:
        getattr(kb, verb)(wanted) if verb == "review_show" else getattr(kb, verb)("p", wanted)
    assert caught.value.hint  # type: ignore[attr-defined]
    assert notes_of(folder) == before
    assert kb.review_approve("live").run is None


def test_an_edit_in_between_is_not_overwritten(scanned: tuple[Path, KnowledgeBase, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule and the warning go together, or both stay."""
    folder, kb, proposed = scanned
    write = kb._compose

    def edit(*args: Any, **how: Any) -> Any:
        (folder / "memory/rules/r.md").write_text(rule("Use sleep to wait, but only here."))
        return write(*args, **how)

    monkeypatch.setattr(kb, "_compose", edit)
    run = kb.review_approve(proposed)
    assert run.conflicts
    assert "but only here" in (folder / "memory/rules/r.md").read_text()
    assert (kb.show("r").status, kb.show(proposed).status) == ("active", "proposed")


def test_two_scans_and_two_approvals_at_once(vault: MakeVault, home: Path, open_kb: OpenKB) -> None:
    folder = vault({**CONFIG, "memory/rules/r.md": rule()})

    def twice(*arguments: str) -> None:
        command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), *arguments]
        processes = [subprocess.Popen(command, env=clean_environment(home), cwd=REPOSITORY, stdout=subprocess.PIPE) for _ in range(2)]
        assert [process.communicate(timeout=60) and process.returncode for process in processes] == [0, 0]

    twice("review", "scan")
    (item,) = open_kb(folder).review_list()
    twice("review", "approve", item.id)
    assert sorted(one.status for one in open_kb(folder).list(status=["active", "retired", "proposed"])) == ["active", "retired"]


def test_the_commands(scanned: tuple[Path, KnowledgeBase, str], run: Run) -> None:
    folder, kb, proposed = scanned
    kb.close()
    done = run("--vault", folder, "review", "show", proposed[:8])
    assert TEXT in done.stdout
    assert "+status: retired" in done.stdout
    assert "Approving puts it in the place of r" in done.stdout
    assert json.loads(run("--vault", folder, "review", "show", proposed, "--json").stdout)["of"] == "r"
    assert run("--vault", folder, "review", "scan").stdout == "0 proposed\n"
    assert run("--vault", folder, "review", "reject", proposed, "--reason", "no", "--dry-run").stdout.count("+review_reason: 'no'") == 1
    assert run("--vault", folder, "review", "approve", proposed).returncode == 0
    again = run("--vault", folder, "review", "approve", proposed)
    assert (again.returncode, again.stdout) == (0, "")
    assert run("--vault", folder, "review", "list").stdout == ""
    assert run("--vault", folder, "review", "approve").returncode == 2
