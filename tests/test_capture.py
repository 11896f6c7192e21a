"""What a person said becomes an entry of the vault: once, in its place, and not what was forgotten or is secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import frontmatter
import pytest
from conftest import NOW, Files, Run
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.capture import read_statements, read_user_messages
from memory_kb.store.session_events import Event

Open = Callable[..., KnowledgeBase]


def test_only_people_are_heard() -> None:
    said = "Never push to main, please."
    events = [
        Event(role="assistant", content=said),
        Event(role="system", content=said),
        Event(role="agent", content=said),
        Event(type="tool_result", role="user", content=said),
        Event(type="event", event="notice", role="user", content=said),
        Event(role="user", content=said, injected="whole"),
        Event(role="user", content=None),
        Event(role="user", content=said, seq=8),
    ]
    assert [message.event.seq for message in read_user_messages(events)] == [8]


def test_offers_are_the_same_for_the_same_event() -> None:
    events = [
        Event(role="user", content="Never push to main, please.", session="s", seq=3),
        Event(role="user", content="Go on with the next one."),
    ]
    one, other = (read_statements(read_user_messages(events), moment) for moment in (NOW, NOW + timedelta(days=1)))
    assert len(one) == 1
    assert one == other
    assert one[0].draft.fields == {"session_id": "s", "session_seq": 3}
    assert one[0].reason == "Stated with “never” in session s, event 3."


SAID = "Looks good. Always use UTC for timestamps."


def test_a_capture_is_an_entry_of_its_own(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.sessions.append([Event(role="assistant", content="Done."), Event(role="user", content=SAID)], session="s")
    report = kb.capture(session="s")
    (kept,) = report.kept
    assert (kept.action, kept.kind, kept.text, kept.marker, kept.session, kept.seq) == (
        "created",
        "policy",
        "Always use UTC for timestamps.",
        "always",
        "s",
        2,
    )
    post = frontmatter.load(str(folder / (kept.path or "")))
    assert post.content.strip() == "Always use UTC for timestamps."
    expected = {"kind": "policy", "priority": "high", "importance": 0.8, "status": "active", "source": "user_explicit"}
    expected |= {"session_id": "s", "session_seq": 2}
    assert {name: post[name] for name in expected} == expected
    assert report.run.run
    kb.undo()
    assert not (folder / (kept.path or "")).exists()


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        (
            "No, we run the worker on Celery, not on RQ.",
            {"kind": "preference", "priority": "high", "importance": 0.8, "source": "user_explicit"},
        ),
        ("Don't ever mock the database.", {"kind": "policy", "importance": 0.8, "source": "user_explicit"}),
        (
            "Please remember that I prefer tabs over spaces.",
            {"kind": "preference", "importance": 0.8, "source": "user_explicit"},
        ),
        ("Remember that Anna owns the billing module.", {"kind": "fact", "importance": 0.8, "source": "user_explicit"}),
    ],
)
def test_importance_comes_from_kind_and_priority(
    said: str, fields: dict[str, object], folder: Path, open_kb: Open
) -> None:
    (kept,) = open_kb(folder).capture(said).kept
    post = frontmatter.load(str(folder / (kept.path or "")))
    assert {name: post[name] for name in fields} == fields


def test_hearing_a_session_again_changes_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.sessions.append(
        [Event(role="user", content=SAID), Event(role="user", content="Remember that Anna owns billing.")], session="s"
    )
    assert [one.action for one in kb.capture(session="s").kept] == ["created", "created"]
    before = notes_of(folder)
    again = kb.capture(session="s")
    assert ([one.action for one in again.kept], again.run.run, notes_of(folder)) == (["known", "known"], None, before)
    kb.sessions.append([Event(role="user", content="always use UTC for timestamps")], session="s")
    assert [one.action for one in kb.capture(session="s").kept] == ["known", "known", "known"]
    assert notes_of(folder) == before


def test_a_twin_is_reinforced_once_for_each_session(folder: Path, open_kb: Open) -> None:
    learned = open_kb(folder).learn("Always use UTC for timestamps.", kind="policy")
    kb = open_kb(folder, NOW + timedelta(days=3))
    assert [kb.capture(SAID, session=session).kept[0].action for session in ("a", "a", "b")] == [
        "reinforced",
        "known",
        "reinforced",
    ]
    post = frontmatter.load(str(folder / learned.path))
    assert (post["reinforcement_count"], post["last_reinforced"]) == (2, "2026-11-24")
    assert len(list(folder.rglob("learnings/*.md"))) == 1


def test_asked_to_remember_it_again_resets_its_clock(folder: Path, open_kb: Open) -> None:
    (first,) = open_kb(folder).capture("Remember that Anna owns billing.").kept
    (again,) = open_kb(folder, NOW + timedelta(days=5)).capture("Remember that Anna owns billing.").kept
    post = frontmatter.load(str(folder / (first.path or "")))
    assert (again.action, again.id, post["reinforcement_count"], post["last_reinforced"]) == (
        "reinforced",
        first.id,
        1,
        "2026-11-26",
    )


@pytest.mark.parametrize("delete", [False, True])
def test_what_was_forgotten_stays_away(delete: bool, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (kept,) = kb.capture(SAID, session="a").kept
    kb.forget(kept.id or "", delete=delete)
    before = notes_of(folder)
    assert [kb.capture(SAID, session=session).kept[0].action for session in ("a", "b")] in (
        ["known", "forgotten"],
        ["forgotten", "forgotten"],
    )
    assert notes_of(folder) == before


def test_a_deleted_file_does_not_come_back_from_its_session(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (kept,) = kb.capture(SAID, session="a").kept
    (folder / (kept.path or "")).unlink()
    assert kb.capture(SAID, session="a").kept[0].action == "forgotten"


def test_a_dry_run_writes_nothing(folder: Path, open_kb: Open) -> None:
    report = open_kb(folder).capture(SAID, dry_run=True)
    assert report.run.run is None
    assert "+Always use UTC for timestamps." in report.run.diff
    assert not list(folder.rglob("learnings/*.md"))


def test_secrets_are_passed_over_whole(folder: Path, open_kb: Open) -> None:
    report = open_kb(folder).capture("remember this: AKIAABCDEFGHIJKLMNOP opens the bucket. Never share it.")
    assert ([one.action for one in report.messages], report.kept) == (["passed"], ())
    assert not list(folder.rglob("learnings/*.md"))


def test_places(folder: Path, open_kb: Open, vault: Callable[[Files], Path], tmp_path: Path) -> None:
    kb = open_kb(folder)
    assert (kb.capture(SAID, job="api", task="login").kept[0].path or "").startswith(
        "memory/jobs/api/tasks/login/learnings/"
    )
    with pytest.raises(UsageError):
        kb.capture(SAID, task="login")
    with pytest.raises(UsageError):
        kb.capture()
    with pytest.raises(UsageError):
        kb.capture(SAID, session="../x")
    with pytest.raises(UnreadableInput):
        kb.capture(session="nobody")
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(UsageError):
        open_kb(plain).capture(SAID, job="api")
    assert (open_kb(plain).capture(SAID).kept[0].path or "").startswith("learnings/")


def test_the_command_takes_text_and_stdin(folder: Path, run: Run) -> None:
    done = run("--vault", folder, "capture", "Looks", "good.", "Always use UTC for timestamps.")
    assert (done.returncode, done.stdout.split()[0]) == (0, "created")
    assert done.stderr.startswith("`memory-kb undo ")
    assert done.stdout.rstrip().endswith("Always use UTC for timestamps.")
    done = run("--vault", folder, "capture", "--json", stdin="Thanks!\n\nFrom now on sign all commits.\n")
    told = json.loads(done.stdout)
    assert [(one["action"], one["kind"], one["text"]) for one in told["messages"]] == [
        ("created", "policy", "Sign all commits.")
    ]
    done = run("--vault", folder, "capture", "actually, never mind that one")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "Nothing to keep in 1 message.\n"
    assert run("--vault", folder, "capture", "").stderr == "Nothing to keep in 0 messages.\n"
    done = run("--vault", folder, "capture", "remember that: AKIAABCDEFGHIJKLMNOP opens the bucket")
    assert done.stderr == "not read: it holds what looks like an AWS access key\nNothing to keep in 1 message.\n"
    assert run("--vault", folder, "capture", stdin="").returncode == 2


def test_the_command_takes_events(folder: Path, run: Run) -> None:
    events = [
        {"role": "user", "content": SAID, "seq": 4, "session": "s"},
        {"role": "assistant", "content": "All commits must be signed."},
        {"role": "user", "content": "No, we run the worker on Celery, not on RQ.", "seq": 6, "session": "s"},
    ]
    lines = "\n".join(map(json.dumps, events)) + "\nnonsense\n"
    preview = run("--vault", folder, "capture", "--dry-run", stdin=lines)
    assert preview.stdout.count("+source: user_explicit") == 2
    assert not list(folder.rglob("learnings/*.md"))
    done = run("--vault", folder, "capture", "--json", stdin=lines)
    told = json.loads(done.stdout)
    assert [(one["action"], one["seq"]) for one in told["messages"]] == [("created", 4), ("created", 6)]
    assert [problem["line"] for problem in told["problems"]] == [4]
    assert [change["action"] for change in told["changes"]] == ["create", "create"]
    again = json.loads(run("--vault", folder, "capture", "--json", stdin=lines).stdout)
    assert (again["run"], [one["action"] for one in again["messages"]]) == (None, ["known", "known"])


def test_the_command_hears_a_logged_session(folder: Path, run: Run) -> None:
    assert run("--vault", folder, "session", "append", "s1", SAID, "--role", "user").returncode == 0
    done = run("--vault", folder, "capture", "--session", "s1", stdin="")
    assert done.stdout.startswith("created memory/learnings/always-use-utc-for-timestamps-")
    assert run("--vault", folder, "capture", "--session", "s1", stdin="").stdout.startswith("known ")
