"""What the verbs about sessions report about what they wrote, passed over, and would revert."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import NOW, Run, write_files

from memory_kb import KnowledgeBase
from memory_kb.errors import UnknownRun
from memory_kb.store.logs import format_time
from memory_kb.store.session_events import Event

Open = Callable[..., KnowledgeBase]
SAID = ("Mend the release script.", "Always sign the release commits.")


def ended(folder: Path, open_kb: Open, session: str = "s1") -> KnowledgeBase:
    """Return a vault in which a session was ended."""
    kb = open_kb(folder)
    kb.sessions.append([Event(ts=format_time(NOW), session=session, role="user", content=text) for text in SAID])
    kb.sessions.end(session, outcome="success")
    return kb


def test_every_session_that_got_events_is_named(run: Run, folder: Path) -> None:
    lines = '{"content": "a"}\n{"content": "b", "session": "x"}\n{"content": "c", "session": "x"}\n'
    done = run("--vault", folder, "session", "append", stdin=lines)
    first, second = done.stdout.splitlines()
    assert first.startswith("appended burst_")
    assert first.endswith("  1 event, the last is number 1")
    assert second == "appended x  2 events, the last is number 2"
    answer = json.loads(run("--vault", folder, "session", "append", "y", "--json", stdin=lines).stdout)
    assert answer["shares"] == [{"session": "y", "written": 3, "seq": 3}]


def test_lines_that_are_not_written_and_times_that_are_none_are_reported(run: Run, folder: Path) -> None:
    lines = '{"content": "a", "ts": "yesterday"}\nnot json\n\n{"content": "b", "ts": ""}\n'
    done = run("--vault", folder, "session", "append", "x", stdin=lines)
    assert (done.returncode, done.stdout) == (0, "appended x  2 events, the last is number 2\n")
    assert done.stderr.splitlines() == [
        "stdin:1: 'yesterday' is not a moment, so it counts as of now; write 2026-03-01T12:00:00Z",
        "stdin:2: not a JSON object; not written",
        'write one JSON object a line, such as {"role": "user", "content": "Use UTC."}',
    ]
    done = run("--vault", folder, "session", "append", "x", stdin="not json\n" * 30)
    assert (done.returncode, done.stdout) == (4, "")
    assert "stdin:1: not a JSON object; not written" in done.stderr
    done = run("--vault", folder, "session", "append", "x", stdin='{"content": "a"}\n' + "not json\n" * 30)
    assert "… and 20 more such lines" in done.stderr
    assert "stdin:2: not a JSON object; not written" in done.stderr


def test_a_transcript_counts_the_same_the_second_time(folder: Path, open_kb: Open, tmp_path: Path) -> None:
    rows = [
        {
            "type": "user",
            "sessionId": "t",
            "uuid": str(number),
            "cwd": "/w",
            "message": {"role": "user", "content": f"Word {number}."},
        }
        for number in range(3)
    ]
    file = write_files(tmp_path, {"t.jsonl": "".join(json.dumps(row) + "\n" for row in rows[:2])}) / "t.jsonl"
    kb = open_kb(folder)
    (first,) = kb.sessions.import_(file)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (second,) = kb.sessions.import_(file)
    assert (first.added, first.known) == (len(list(kb.sessions.replay("t"))) - 1, 0)
    assert (second.added, second.known) == (1, first.added)


def test_a_session_that_was_begun_here_does_not_count_the_transcript_s_start(
    folder: Path, open_kb: Open, tmp_path: Path
) -> None:
    row = {"type": "user", "sessionId": "t", "uuid": "1", "message": {"role": "user", "content": "Word."}}
    file = write_files(tmp_path, {"t.jsonl": json.dumps(row) + "\n"}) / "t.jsonl"
    kb = open_kb(folder)
    kb.sessions.start("t")
    assert [(one.added, one.known) for _ in range(2) for one in kb.sessions.import_(file)] == [(1, 0), (0, 1)]


def test_an_undo_of_a_session_is_previewed_as_what_it_does(folder: Path, open_kb: Open, run: Run) -> None:
    kb = ended(folder, open_kb)
    made = sorted(change.path for step in kb.writer.journal.runs() for change in step.decisions)
    done = run("--vault", folder, "undo", "--session", "s1", "--dry-run")
    assert (
        sorted(line.split()[2].rstrip(":") for line in done.stderr.splitlines() if line.startswith("would remove "))
        == made
    )
    assert "-Always sign the release commits." in done.stdout
    assert {memory.status for memory in kb.memories.all()} == {"active"}
    (report,) = kb.undo_session("s1", dry_run=True)
    assert [(change.action, change.path) for change in report.changes] == [
        ("remove", path) for path in dict.fromkeys(c.path for c in report.changes)
    ]
    kb.undo_session("s1")
    assert kb.memories.all() == ()
    assert "reverted already" in run("--vault", folder, "undo", "--session", "s1", "--dry-run").stderr


def test_a_preview_takes_runs_back_one_after_the_other(folder: Path, open_kb: Open) -> None:
    """A file that two runs of a session wrote is back at its beginning, and one that a person edited is left."""
    kb = ended(folder, open_kb)
    kb.sessions.append([Event(ts=format_time(NOW), session="s1", role="user", content="Now its changelog, please.")])
    kb.sessions.end("s1", outcome="failure")
    (learning,) = (folder / "memory/learnings").glob("*.md")
    learning.write_text(learning.read_text() + "\nMine.\n")
    (report,) = kb.undo_session("s1", dry_run=True)
    assert {change.action for change in report.changes} == {"remove"}
    assert ["was edited since" in conflict.message for conflict in report.conflicts] == [True]
    done = kb.undo_session("s1")
    assert sum(len(one.conflicts) for one in done) == 1


def test_the_runs_of_one_session_are_listed_alone(folder: Path, open_kb: Open, run: Run) -> None:
    ended(folder, open_kb, "other")
    kb = ended(folder, open_kb)
    kb.learn("The cache is flushed by hand.")
    listed = run("--vault", folder, "undo", "--list", "--session", "s1").stdout.splitlines()
    assert len(listed) == len(kb.runs("s1")) < len(kb.runs())
    kb.undo_session("s1")
    assert all(one.undone_by for one in kb.runs("s1"))
    with pytest.raises(UnknownRun):
        kb.runs("nobody")


def test_what_was_taken_back_stays_away_and_says_how_it_comes_again(folder: Path, open_kb: Open, run: Run) -> None:
    kb = ended(folder, open_kb)
    before = {memory.id for memory in kb.memories.all()}
    kb.undo_session("s1")
    at = ("--vault", folder)
    assert "--again" in run(*at, "reflect", "s1").stderr
    ends = run(*at, "session", "end", "s1").stdout
    assert "1 left out that was reverted or deleted before; `memory-kb reflect s1 --again`" in ends
    assert kb.memories.all() == ()
    assert run(*at, "reflect", "s1", "--again").stdout.startswith("created ")
    assert {memory.id for memory in kb.memories.all()} < before


def test_what_a_person_forgot_stays_away_even_when_asked_again(folder: Path, open_kb: Open) -> None:
    kb = ended(folder, open_kb)
    (learning,) = [memory.id for memory in kb.memories.all() if memory.kind == "policy"]
    kb.forget(learning)
    kb.capture(session="s1")
    assert {memory.status for memory in kb.memories.all() if memory.kind == "policy"} == {"retired"}


def test_a_message_with_a_credential_teaches_nothing_though_that_was_taken_out(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    said = (
        "Mend the plan.",
        "Always use my key for the staging plan: AWS_ACCESS_KEY_ID=AKIAX7EXAMPLEKEY4QZ2",
        "Never apply to production by hand.",
    )
    kb.sessions.append([Event(ts=format_time(NOW), session="s1", role="user", content=text) for text in said])
    kb.sessions.end("s1", outcome="success")
    texts = [kb.show(entry.id).text or "" for entry in kb.list(kind=["policy", "preference", "fact"])]
    assert any("Never apply to production" in text for text in texts)
    assert not any("AWS_ACCESS_KEY_ID" in text or "staging plan" in text for text in texts)
