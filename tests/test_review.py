"""The review queue: what waits for a person, and what a judgment does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import reviewing
from conftest import NOW, Files, Run, write_files
from reviewing import TEXT, proposal, rule, waiting
from support import days_ago, entry, ids, notes_of

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call
from memory_kb.errors import CannotSplice, Forgotten, UnknownEntry, UsageError
from memory_kb.markdown.document import parse_document

scanned = reviewing.scanned

MakeVault = Callable[[Files], Path]
OpenKB = Callable[..., KnowledgeBase]
CONFIG = {"memory/config.yaml": ""}


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
    items = {item.id: item for item in kb.review.list()}
    assert list(items) == ["w", "p", "q", "f"]
    assert {name: item.proposes for name, item in items.items()} == {
        "w": "entry",
        "p": "entry",
        "q": "entry",
        "f": "flag",
    }
    assert [item.id for item in kb.review.list(kind=["rule"])] == ["f"]
    shown = json.loads(run("--vault", folder, "review", "list", "--json").stdout)["items"]
    assert [item["id"] for item in shown] == list(items)
    done = run("--vault", folder, "review", "list", env={"MEMORY_KB_NOW": NOW.isoformat()})
    assert "Flagged: removal_candidate; confidence 0.47, 4 failures and 1 success. Approving keeps it" in done.stdout


def test_a_proposal_is_put_in_use(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/review/p.md": proposal(flags="[review]"),
            "memory/learnings/p.md": entry("Ingested.", id="t"),
            "memory/jobs/j/review/e.md": proposal("Trace.", id="e", kind="episode", created_at="'2026-11-20'"),
            "memory/review/many.md": proposal("One.", id="m1", kind="skill") + "\n" + proposal("Two.", id="m2"),
            "memory/learnings/here.md": proposal("Here.", id="h"),
            "memory/learnings/no-id.md": "---\nkind: fact\nstatus: proposed\n---\nNo id.\n",
        }
    )
    kb = open_kb(folder)
    kb.review.approve("p", "e", "m1", "h", "memory/learnings/no-id.md")
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
def test_an_institutional_proposal_goes_to_the_institution(
    vault: MakeVault, open_kb: OpenKB, before: bytes | None, path: str
) -> None:
    files: dict[str, str | bytes] = {
        **CONFIG,
        "memory/review/p.md": proposal(institutional="true"),
        "memory/review/q.md": proposal("Second.", id="q", institutional="true"),
    }
    folder = vault(files | ({path: before} if before else {}))
    kb = open_kb(folder)
    run = kb.review.approve("p", "q")
    after = (folder / path).read_bytes()
    assert after.startswith(before or b"")
    found = parse_document(after.decode(), path)
    assert [one.id for one in found.entries][-2:] == ["p", "q"]
    assert [one.status for one in found.entries] == ["active"] * len(found.entries)
    if before and b"\r\n" in before:
        assert after.count(b"\n") == after.count(b"\r\n")
    assert not (folder / "memory/review/p.md").exists()
    assert kb.review.approve("p", "q").run is None
    kb.undo(run.run)
    assert (folder / "memory/review/p.md").exists()
    assert ((folder / path).read_bytes() if before else (folder / path).exists()) == (before or False)


def test_an_approval_is_not_half_undone_where_the_proposal_was_made_anew(vault: MakeVault, open_kb: OpenKB) -> None:
    files = {"memory/institutional.md": "# Ours\n", "memory/review/p.md": proposal(institutional="true")}
    folder = vault({**CONFIG, **files})
    kb = open_kb(folder)
    run = kb.review.approve("p")
    write_files(folder, {"memory/review/p.md": proposal("Another.", id="q", institutional="true")})
    before = notes_of(folder)
    undone = kb.undo(run.run)
    assert {conflict.path for conflict in undone.conflicts} == {"memory/institutional.md", "memory/review/p.md"}
    assert notes_of(folder) == before


def test_an_institution_that_would_swallow_the_entry_is_left(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault(
        {
            **CONFIG,
            "memory/institutional.md": "```\nnever closed\n",
            "memory/review/p.md": proposal(institutional="true"),
        }
    )
    before = notes_of(folder)
    with pytest.raises(CannotSplice):
        open_kb(folder).review.approve("p")
    assert notes_of(folder) == before


def test_a_plain_folder_has_a_queue_too(vault: MakeVault, open_kb: OpenKB) -> None:
    folder = vault({"review/p.md": proposal(), "review/plain.md": "A review of a book.\n", "rules/r.md": rule()})
    kb = open_kb(folder)
    assert waiting(kb) == ["p"]
    (proposed,) = kb.review.scan().proposed
    kb.review.approve("p", proposed)
    assert (kb.show("p").path, kb.show(proposed).path.partition("/")[0], kb.show("r").status) == (
        "learnings/p.md",
        "rules",
        "retired",
    )


def test_what_was_rejected_stays_and_does_not_come_back(vault: MakeVault, open_kb: OpenKB) -> None:
    text = proposal("Walruses like ice in the morning.")
    folder = vault({**CONFIG, "memory/review/p.md": text})
    kb = open_kb(folder)
    kb.review.reject("p", reason="only  at sea: no")
    changed = text.replace("status: proposed", "status: rejected").replace(
        "---\nWalruses", "reviewed: '2026-11-21'\nreview_reason: 'only at sea: no'\n---\nWalruses"
    )
    assert (folder / "memory/review/p.md").read_text() == changed
    assert kb.review.reject("p").run is None
    assert (waiting(kb), ids(kb, "walruses")) == ([], [])
    with pytest.raises(Forgotten):
        kb.learn("Walruses like ice in the morning.")
    kb.review.approve("p")
    assert kb.show("p").path == "memory/learnings/p.md"
    assert kb.learn("Walruses like ice in the morning.").action == "reinforced"


@pytest.mark.parametrize(
    ("verb", "wanted", "error"),
    [
        ("approve", "gone", UsageError),
        ("reject", "gone", UsageError),
        ("reject", "live", UsageError),
        ("approve", "nobody", UnknownEntry),
        ("reject", "nobody", UnknownEntry),
        ("show", "nobody", UnknownEntry),
    ],
)
def test_what_cannot_be_judged(
    vault: MakeVault, open_kb: OpenKB, verb: str, wanted: str, error: type[Exception]
) -> None:
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
        getattr(kb.review, verb)(wanted) if verb == "show" else getattr(kb.review, verb)("p", wanted)
    assert caught.value.hint  # type: ignore[attr-defined]
    assert notes_of(folder) == before
    assert kb.review.approve("live").run is None


def test_the_commands(scanned: tuple[Path, KnowledgeBase, str], run: Run) -> None:
    folder, kb, proposed = scanned
    kb.close()
    done = run("--vault", folder, "review", "show", proposed[:8])
    assert TEXT in done.stdout
    assert "+status: retired" in done.stdout
    assert "Approving puts it in the place of r" in done.stdout
    assert json.loads(run("--vault", folder, "review", "show", proposed, "--json").stdout)["of"] == "r"
    assert run("--vault", folder, "review", "scan").stdout == "0 proposed\n"
    assert (
        run("--vault", folder, "review", "reject", proposed, "--reason", "no", "--dry-run").stdout.count(
            "+review_reason: 'no'"
        )
        == 1
    )
    assert run("--vault", folder, "review", "approve", proposed).returncode == 0
    again = run("--vault", folder, "review", "approve", proposed)
    assert (again.returncode, again.stdout) == (0, "")
    assert run("--vault", folder, "review", "list").stdout == ""
    assert run("--vault", folder, "review", "approve").returncode == 2


@pytest.fixture
def queue(vault: MakeVault) -> Path:
    """A vault with three proposals of two sessions."""
    files = {
        f"memory/review/{name}.md": proposal(
            f"{said}\n\nIn full.", id=name, session_id=session, created_at=days_ago(days)
        )
        for name, said, session, days in (
            ("old", "Walruses like ice.", "s-one", 9),
            ("new", "Otters like rivers.", "s-two", 1),
            ("mid", "Seals like rocks.", "s-one", 5),
        )
    }
    return vault({**CONFIG, **files})


def test_review_alone_shows_the_newest_first_in_full(queue: Path, run: Run) -> None:
    done = run("--vault", queue, "review", env={"MEMORY_KB_NOW": NOW.isoformat()})
    assert done.returncode == 0
    places = [
        done.stdout.index(text) for text in ("Otters like rivers.\n", "Seals like rocks.\n", "Walruses like ice.\n")
    ]
    assert places == sorted(places)
    assert done.stdout.count("In full.") == 3
    assert "Proposed from session s-two." in done.stdout
    only = json.loads(run("--vault", queue, "review", "--all-from", "s-one", "--json").stdout)["items"]
    assert [(item["id"], item["session"]) for item in only] == [("mid", "s-one"), ("old", "s-one")]


def test_a_whole_session_is_decided_at_once(queue: Path, open_kb: OpenKB, run: Run) -> None:
    assert run("--vault", queue, "review", "reject", "--all-from", "s-one").returncode == 0
    kb = open_kb(queue)
    assert waiting(kb) == ["new"]
    assert run("--vault", queue, "review", "approve", "--all-from", "s-two").returncode == 0
    assert waiting(kb) == []
    assert kb.show("new").path == "memory/learnings/new.md"
    assert run("--vault", queue, "review", "approve", "--all-from", "s-two").returncode == 2
    assert run("--vault", queue, "review", "approve").returncode == 2


def test_a_file_keeps_its_ending_when_it_is_approved(vault: MakeVault, open_kb: OpenKB) -> None:
    files = {"memory/review/NEW.MD": proposal("Otters like rivers.", id="new"), "memory/learnings/NEW.MD": "Mine.\n"}
    done = open_kb(vault(CONFIG | files)).review.approve("new")
    assert [change.to for change in done.changes if change.to] == ["memory/learnings/NEW-2.MD"]


def test_a_change_beside_the_editor_is_not_overwritten(run: Run, queue: Path, tmp_path: Path) -> None:
    """What was typed is printed, so that it is not lost."""
    file, editor = queue / "memory/review/new.md", tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\necho 'Otters like lakes.' > \"$1\"\necho 'Somebody else.' >> '{file}'\n")
    editor.chmod(0o755)
    done = run("--vault", queue, "review", "edit", "new", env={"EDITOR": str(editor), "VISUAL": ""})
    assert (done.returncode, done.stdout) == (6, "Otters like lakes.\n")
    assert file.read_text().endswith("In full.\nSomebody else.\n")


def test_a_proposal_is_edited_where_it_is_named(run: Run, queue: Path, tmp_path: Path) -> None:
    """The same id may be at two scopes: then its place says which is meant."""
    text = proposal("Otters like lakes.", id="new")
    write_files(queue, {"memory/jobs/one/review/new.md": text})
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'Otters like ponds.' > \"$1\"\n")
    editor.chmod(0o755)
    env = {"EDITOR": str(editor), "VISUAL": ""}
    done = run("--vault", queue, "review", "edit", "memory/review/new.md:1", env=env)
    assert done.returncode == 0, done.stderr
    assert "Otters like ponds." in (queue / "memory/review/new.md").read_text()
    assert (queue / "memory/jobs/one/review/new.md").read_text() == text


def test_no_editor_is_opened_where_nobody_sees_it(run: Run, queue: Path) -> None:
    done = run("--vault", queue, "review", "edit", "new", env={"EDITOR": "", "VISUAL": ""})
    assert (done.returncode, "nobody is there" in done.stderr) == (2, True)


def test_a_proposal_is_edited_and_goes_on_waiting(queue: Path, open_kb: OpenKB, run: Run) -> None:
    file = queue / "memory/review/new.md"
    before = file.read_text()
    assert run("--vault", queue, "review", "edit", "new", "Otters like quiet rivers.").returncode == 0
    assert file.read_text() == before.replace("Otters like rivers.\n\nIn full.", "Otters like quiet rivers.")
    kb = open_kb(queue)
    assert waiting(kb) == ["new", "mid", "old"]
    kb.review.approve("new")
    with pytest.raises(UsageError):
        kb.review.edit("new", "Otters like lakes.")
    with pytest.raises(UsageError):
        kb.review.edit("mid", " ")


def test_a_judgment_is_put_off(queue: Path, open_kb: OpenKB) -> None:
    kb = open_kb(queue)
    kb.review.snooze("new", "old", days=7)
    assert waiting(kb) == ["mid"]
    assert "snoozed_until: '" in (queue / "memory/review/new.md").read_text()
    later = open_kb(queue, NOW + timedelta(days=8))
    assert waiting(later) == ["new", "mid", "old"]
    with pytest.raises(UsageError):
        kb.review.snooze("new", days=0)


def test_the_start_of_a_session_says_how_many_wait(queue: Path, open_kb: OpenKB) -> None:
    agent = find_agent("claude-code")

    def start(session: str) -> str:
        call = read_hook_call(agent, "session-start", json.dumps({"session_id": session, "source": "startup"}).encode())
        return open_kb(queue).hook("session-start", call, agent).output

    assert "3 proposals wait for the person's review" in start("a")
    kb = open_kb(queue)
    kb.review.snooze("new")
    kb.review.reject("old")
    assert "1 proposal waits for the person's review" in start("b")
    kb.review.approve("mid")
    assert "wait" not in start("c")


def test_a_rejected_proposal_does_not_come_back_in_a_clone(queue: Path, open_kb: OpenKB) -> None:
    kb = open_kb(queue)
    kb.review.reject("old")
    kb.close()
    shutil.rmtree(queue / "memory/.memory-kb")
    with pytest.raises(Forgotten):
        open_kb(queue).learn("Walruses like ice.\n\nIn full.", propose=True)
