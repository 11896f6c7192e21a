"""Claims about code: the verdict on what they cite, and what is written down of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import citing
import pytest
from citing import CODE, NOTE, commit, edit, git, verdicts
from conftest import Files, Run, write_files
from support import days_ago, entry, notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.learning.code_references import hash_lines, split_lines
from memory_kb.markdown.splice import emit

project = citing.project

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


def test_what_is_cited_is_fresh(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    head = git(project, "rev-parse", "HEAD")
    report = kb.cite("note", ["src/a.py", "src/a.py:4-7", "src/a.py:13-14", head[:9]])
    assert report.recorded == ("src/a.py", "src/a.py#L4-L7", "src/a.py#L13-L14", head[:9])
    assert set(verdicts(kb).values()) == {"fresh"}
    written = (project / "memory/learnings/note.md").read_text()
    assert f"hash: {head}" in written
    assert f"commit: {emit(head[:12])}" in written  # quoted where it is a number
    assert kb.cite("note", ["src/a.py:4-7", "src/a.py:13-14"]).run.run is None


def test_lines_above_move_it(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    edit(project / "src/a.py", "import os\n", "import os\nimport sys\n\n")
    (claim,) = kb.verify().claims
    assert [(one.verdict, one.now) for one in claim.findings] == [("moved", "src/a.py#L6-L9")]
    assert claim.verdict == "moved"


def test_an_edit_inside_is_drift_and_is_shown(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py:17-18"])
    edit(project / "src/a.py", "import os\n", "import os\nimport sys\n")
    edit(project / "src/a.py", "upload(number)", "upload_later(number)")
    (claim,) = kb.verify().claims
    lines, other = claim.findings
    assert (lines.verdict, lines.now, lines.hint) == (
        "drifted",
        "src/a.py#L5-L8",
        ("-         upload(number)", "+         upload_later(number)"),
    )
    assert other.verdict == "moved"
    assert claim.verdict == "drifted"


@pytest.mark.parametrize("how", ["crlf", "blanks", "bom"])
def test_line_ends_and_trailing_blanks_are_no_change(how: str, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py", "src/a.py:4-7"])
    file = project / "src/a.py"
    text = {"crlf": CODE.replace("\n", "\r\n"), "blanks": CODE.replace("\n", " \t\n") + "\n\n", "bom": "\ufeff" + CODE}[
        how
    ]
    file.write_bytes(text.encode())
    assert set(verdicts(kb).values()) == {"fresh"}


def test_a_renamed_file_is_gone_until_it_is_cited_again(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    git(project, "mv", "src/a.py", "src/new.py")
    assert verdicts(kb) == {"src/a.py#L4-L7": "gone"}
    kb.cite("note", ["src/new.py:4-7"])
    assert verdicts(kb)["src/new.py#L4-L7"] == "fresh"


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_deleted_file_is_gone(is_committed: bool, project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7", "src/a.py"])
    (project / "src/a.py").unlink()
    if is_committed:
        commit(project)
    assert set(verdicts(kb).values()) == {"gone"}


def test_people_write_citations_by_hand(vault: MakeVault, open_kb: Open) -> None:
    good = hash_lines(split_lines(CODE)[3:7])
    cites = f"\n  - {{ref: 'src/a.py#L4-L7', hash: '{good}'}}  # mine\n  - src/a.py#L10\n  - {{ref: 'src/b.py', why: by hand}}\n  - ../x.py\n  - [1]\n  - {{hash: zz}}"
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/learnings/note.md": entry(NOTE, id="note", kind="fact", cites=cites),
            "src/a.py": CODE,
        }
    )
    kb = open_kb(folder)
    (claim,) = kb.verify().claims
    assert [one.verdict for one in claim.findings] == [
        "fresh",
        "unrecorded",
        "unreadable",
        "unreadable",
        "unreadable",
        "unreadable",
    ]
    lines = (folder / "memory/learnings/note.md").read_text().splitlines()
    told = {problem.message.partition(", ")[0]: lines[problem.line - 1].strip() for problem in kb.lint()}
    assert told == {
        "cites ../x.py": "- ../x.py",
        "cites [1]": "- [1]",
        "cites src/b.py": "- {ref: 'src/b.py', why: by hand}",
        "cites None": "cites:",
    }
    (folder / "src/b.py").write_text("x = 1\n")
    before = (folder / "memory/learnings/note.md").read_text()
    assert kb.verify("note", update=True).notices == (
        "memory/learnings/note.md:12: note stays as it is: ../x.py cannot be recorded: it names no file in the project",
    )
    assert (folder / "memory/learnings/note.md").read_text() == before
    (folder / "memory/learnings/note.md").write_text(before.replace("\n  - ../x.py\n  - [1]\n  - {hash: zz}", ""))
    assert kb.verify("note", update=True).notices == ()
    written = (folder / "memory/learnings/note.md").read_text()
    assert good in written
    assert "why: by hand" in written
    assert "last_verified" in written
    assert set(verdicts(kb).values()) == {"fresh"}


def test_an_update_is_a_persons_word_and_is_separate_from_use(project: Path, open_kb: Open) -> None:
    kb = open_kb(project)
    kb.cite("note", ["src/a.py:4-7"])
    file = project / "memory/learnings/note.md"
    edit(project / "src/a.py", "upload(number)", "upload_later(number)")
    kb.verify(flag=True)
    assert "flags: [stale_claim]" in file.read_text()
    with pytest.raises(UsageError, match="looked at"):
        kb.verify(update=True)
    before = file.read_text()
    preview = kb.verify("note", update=True, dry_run=True)
    assert preview.run.diff
    assert file.read_text() == before
    assert kb.verify("note", update=True).is_sound
    after = file.read_text()
    assert "last_verified: '2026-11-21'" in after
    assert "flags: []" in after
    assert f"last_reinforced: {days_ago(1)}" in after
    assert kb.verify(all=True, update=True).run.run is None
    kb.undo()
    assert file.read_text() == before


def test_flags_come_and_go_and_nothing_else_changes(project: Path, open_kb: Open) -> None:
    write_files(
        project,
        {
            "memory/learnings/sound.md": entry("Sound.", id="sound", kind="fact"),
            "memory/learnings/old.md": entry("Old.", id="old", kind="fact", flags="[removal_candidate]"),
            "memory/MEMORY.md": entry("People's own.", id="own", kind="fact"),
        },
    )
    kb = open_kb(project)
    for name, reference in (
        ("note", "src/a.py:4-7"),
        ("sound", "src/b.py"),
        ("old", "src/a.py:17-18"),
        ("own", "src/a.py:4-7"),
    ):
        kb.cite(name, [reference])
    before = notes_of(project / "memory")
    assert kb.citations.verify_claims().run is None
    (project / "src/a.py").rename(project.parent / "a.py")
    assert {change.id for change in kb.citations.verify_claims(dry_run=True).changes} == {"note", "old"}
    assert notes_of(project / "memory") == before
    assert kb.citations.verify_claims().run
    assert [item.id for item in kb.review.list()] == ["note", "old"]
    assert kb.review.list()[1].flags == ("removal_candidate", "stale_claim")
    assert kb.citations.verify_claims().run is None
    (project.parent / "a.py").rename(project / "src/a.py")
    assert kb.citations.verify_claims().run
    assert "flags: [removal_candidate]" in (project / "memory/learnings/old.md").read_text()
    changed = {name for name, data in notes_of(project / "memory").items() if data != before[name]}
    assert changed == {"memory/learnings/note.md"}
    assert (
        notes_of(project / "memory")["memory/learnings/note.md"].replace(b"flags: []\n", b"")
        == before["memory/learnings/note.md"]
    )


def test_the_flag_of_a_page_among_plain_notes_waits_for_review(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"page.md": "---\nid: p1\ntitle: Pay\n---\nSee `src/a.py:4-7`.\n", "src/a.py": CODE})
    kb = open_kb(folder)
    kb.cite("p1", ["src/a.py:4-7"])
    (folder / "src/a.py").unlink()
    assert kb.citations.verify_claims().run
    assert [item.id for item in kb.review.list()] == ["p1"]
    assert kb.review.approve("p1").run
    assert kb.review.list() == ()


def test_global_entries_cite_nothing(project: Path, open_kb: Open, home: Path) -> None:
    write_files(
        home,
        {"learnings/far.md": entry("Far.", id="far", kind="fact", cites=f"[{{ref: src/none.py, hash: '{'0' * 20}'}}]")},
    )
    kb = open_kb(project)
    with pytest.raises(UsageError, match="is global"):
        kb.cite("far", ["src/a.py"])
    assert "Far." in kb.context("far").text


@pytest.mark.slow
def test_the_commands(project: Path, run: Run) -> None:
    suggested = run("--vault", project, "cite", "note")
    assert suggested.stdout == "src/a.py#L4-L7\n"
    assert "--from-text" in suggested.stderr
    assert run("--vault", project, "cite", "note", "--from-text", "--dry-run").stdout.count("\n+cites:") == 1
    assert run("--vault", project, "cite", "note", "--from-text").stdout == "src/a.py#L4-L7\n"
    assert "recorded already" in run("--vault", project, "cite", "note", "src/a.py:4-7").stderr
    done = run("--vault", project, "verify")
    assert (done.returncode, done.stdout.split()[0]) == (0, "fresh")
    edit(project / "src/a.py", "upload(number)", "\x1b[31mlater(number)")
    done = run("--vault", project, "verify")
    assert done.returncode == 7
    assert "src/a.py#L4-L7 changed" in done.stdout
    assert "+         \\x1b[31mlater(number)" in done.stdout
    assert run("--vault", project, "verify", "--flag").returncode == 0
    told = json.loads(run("--vault", project, "verify", "--json").stdout)
    assert [(claim["id"], claim["verdict"], claim["findings"][0]["verdict"]) for claim in told["claims"]] == [
        ("note", "drifted", "drifted")
    ]
    linted = run("--vault", project, "lint", "memory/learnings")
    assert linted.returncode == 7
    assert linted.stdout.splitlines()[0].startswith("memory/learnings/note.md:")
    assert run("--vault", project, "lint", "src").returncode != 7
    assert run("--vault", project, "verify", "note", "--update").returncode == 0
    assert run("--vault", project, "verify", "--update").returncode == 2
    assert run("--vault", project, "cite", "note", "../x").returncode == 2
    assert run("--vault", project, "verify", "nobody").returncode == 4
