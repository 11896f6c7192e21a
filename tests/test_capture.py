"""What is kept of what people say, and what is not; and what becomes of it in the vault."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import frontmatter
import pytest
from conftest import NOW, REPOSITORY, Files, Run
from hypothesis import given, settings
from hypothesis import strategies as st
from support import notes_of

from memory_kb import KnowledgeBase
from memory_kb.errors import UnreadableInput, UsageError
from memory_kb.learning.speech.capture import Capture, hear, offer_captures, read_message
from memory_kb.learning.speech.ownwords import MAX_RAW, read_own_text, sentences
from memory_kb.notes.events import Event
from memory_kb.notes.injected import wrap

Open = Callable[..., KnowledgeBase]

LABELLED = [json.loads(line) for line in (REPOSITORY / "tests" / "data" / "capture_messages.jsonl").read_text(encoding="utf-8").splitlines()]
TEXTS = [labelled["text"] for labelled in LABELLED]


def capture_of(message: str) -> Capture:
    found = read_message(message).capture
    assert found, read_message(message).reason
    return found


# -- the labelled messages ---------------------------------------------------------------------


def test_the_labelled_messages_are_many_and_sound() -> None:
    wanted = [labelled for labelled in LABELLED if labelled["kind"]]
    assert len(wanted) >= 90
    assert len(LABELLED) - len(wanted) >= 170
    assert len(set(TEXTS)) == len(TEXTS)
    assert all(labelled["body"] in labelled["text"] for labelled in wanted)


@pytest.mark.parametrize(("first", "precision", "recall"), [(0, 0.99, 0.95), (1, 0.96, 0.88)], ids=["odd lines", "even lines"])
def test_what_is_kept_is_right_and_little_is_missed(first: int, precision: float, recall: float) -> None:
    """The even lines were not looked at while the expressions were written; both halves must stay as good as they are."""
    half = LABELLED[first::2]
    found = [(labelled, read_message(labelled["text"]).capture) for labelled in half]
    kept = [(labelled, capture) for labelled, capture in found if capture]
    right = [labelled for labelled, capture in kept if (capture.kind, capture.text) == (labelled["kind"], labelled.get("body"))]
    wrong = [labelled["text"] for labelled, _ in kept if labelled not in right]
    assert len(right) / len(kept) >= precision, wrong
    assert len(right) / sum(labelled["kind"] is not None for labelled in half) >= recall


# -- one message -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "kind", "pattern", "span"),
    [
        ("I prefer early returns over nested ifs.", "preference", "preference", "early returns over nested ifs"),
        ("Always use `pathlib` for file paths.", "preference", "preference", "use `pathlib` for file paths"),
        ("Never mock the database, please.", "preference", "preference", "mock the database"),
        ("Don't ever mock the database.", "policy", "constraint", "mock the database"),
        ("All commits must be signed.", "policy", "constraint", "be signed"),
        ("Type hints are required on all public functions.", "policy", "constraint", "on all public functions"),
        ("Actually, staging runs on Postgres 15, not on 14.", "fact", "correction", "staging runs on Postgres 15, not on 14"),
        ("No, the worker runs on Celery, not on RQ.", "fact", "correction", "the worker runs on Celery, not on RQ"),
        ("Not npm but pnpm is what this repo uses.", "fact", "correction", "Not npm but pnpm is what this repo uses"),
        ("Always sign what must not be forged.", "preference", "preference", "sign what must not be forged"),
        ("Remember that our CI runs on arm64.", "fact", "request", "our CI runs on arm64."),
        ("Please remember: never rebase shared branches", "preference", "request", "never rebase shared branches"),
        ("remember that all releases must be tagged by the bot", "policy", "request", "all releases must be tagged by the bot"),
    ],
)
def test_the_word_decides_the_kind(message: str, kind: str, pattern: str, span: str) -> None:
    found = capture_of(message)
    assert (found.kind, found.pattern, found.span) == (kind, pattern, span)


@pytest.mark.parametrize(
    ("kept", "passed"),
    [
        ("Remember that the search index is rebuilt at night.", "Remember that you still have to rebuild the index."),
        ("Fix the docs. Public functions must have a docstring.", "Write a client. Public functions must have a docstring."),
        ("Never return None from a repository method.", "Never return None from the method, at least for now."),
        ("All endpoints must be paginated from now on.", "All endpoints must be down, I guess."),
        ("No, the worker runs on Celery, not on RQ.", "No, the worker runs on the wrong queue again."),
        ("Always run the linter before you commit.", "Always run it before you commit, please."),
        ("We prefer composition over inheritance.", "We prefer composition, but not here."),
        ("Never push to a protected branch.", "Never push to a protected branch?"),
    ],
)
def test_a_doubt_is_enough(kept: str, passed: str) -> None:
    assert read_message(kept).capture
    assert read_message(passed).capture is None


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "Return an error type, no unwrap in the library, we use thiserror everywhere",
            "Return an error type, no unwrap in the library, we use thiserror everywhere",
        ),
        ("ok. And the robot has Humble, so please never use features of Jazzy.", "And the robot has Humble, so please never use features of Jazzy."),
        ("Our style: sentence case in headings, and British spelling.", "Our style: sentence case in headings, and British spelling."),
        ("Exactly. Splits have to be by patient_id, never by row.", "Splits have to be by patient_id, never by row."),
        (
            "before you touch prod: reindex only between 22 and 6, never during the day",
            "before you touch prod: reindex only between 22 and 6, never during the day",
        ),
        ("yes, remember refunds are counted in the month of the refund, ok?", None),
        ("Remember refunds are counted in the month of the refund.", "refunds are counted in the month of the refund."),
        ("Account 1002 sends its amounts in cents. Please remember this!", "Account 1002 sends its amounts in cents."),
        ("Is it in cents? Please remember this!", None),
        ("pnpm!! this is a pnpm workspace. never npm here", "this is a pnpm workspace. never npm here"),
        ("The users table has 40M rows. For that table always add indexes concurrently.", None),
        (
            "users has 40M rows. For that table always add indexes concurrently.",
            "users has 40M rows. For that table always add indexes concurrently.",
        ),
        (
            "DATABASE_URL points at a shared database. Never migrate that one from a branch.",
            "DATABASE_URL points at a shared database. Never migrate that one from a branch.",
        ),
        ("Never migrate that one from a branch.", None),
        ("add a retry with backoff, never retry on 4xx, and write tests for it", None),
        ("The linter says: fix it, never ignore the warning.", None),
        ("the page loads slowly, never shows the spinner", None),
    ],
)
def test_what_stands_behind_or_before_a_rule(message: str, kept: str | None) -> None:
    found = read_message(message).capture
    assert (found.text if found else None) == kept


def test_a_title_leaves_out_what_only_leads_to_it() -> None:
    titles = [capture_of(text).title for text in ("and please always use UTC for timestamps.", "`uv.lock` is committed. Never edit it by hand.")]
    assert titles == ["Always use UTC for timestamps", "`uv.lock` is committed. Never edit it by hand"]


def test_source_and_priority_follow_the_pattern() -> None:
    said = ("No, the worker runs on Celery, not on RQ.", "Never mock the database.", "Remember that Anna owns billing.")
    correction, preference, request = (capture_of(text).draft for text in said)
    assert [(draft.source, draft.priority) for draft in (correction, preference, request)] == [
        ("observed", "high"),
        ("observed", None),
        ("user_explicit", None),
    ]


def test_one_message_gives_one_capture_in_page_order() -> None:
    constraint, correction, preference = "All commits must be signed.", "No, the worker runs on Celery, not on RQ.", "Always use tabs in Go files."
    assert capture_of(f"{constraint} {correction} {preference}").text == preference
    assert capture_of(f"{constraint} {correction}").text == correction
    assert capture_of(f"{preference} Never use spaces in Go files.").text == preference
    assert capture_of(f"{preference} Remember that Anna owns billing.").text == "Anna owns billing."


@pytest.mark.parametrize(
    ("message", "is_kept"),
    [
        ("Never use tabs here", False),  # 19 characters
        ("Never use tabs here.", True),
        ("Never use tabs. " + "x" * (2000 - 16), True),
        ("Never use tabs. " + "x" * (2001 - 16), False),
        ("Never use tabs.\n```\n" + "x" * 5000 + "\n```\nThanks a lot!", True),
        ("Never use tabs.\n" + "> quoted line\n" * 500 + "Thanks a lot!", True),
        ("Never use " + "x" * 76, True),  # a span of 80
        ("Never use " + "x" * 77, False),
        ("No, the worker runs on " + "x" * 81 + ".", True),  # a span of 100
        ("No, the worker runs on " + "x" * 82 + ".", False),
        ("x" * (MAX_RAW + 1), False),
        ("", False),
    ],
)
def test_lengths(message: str, is_kept: bool) -> None:
    assert (read_message(message).capture is not None) == is_kept


@pytest.mark.parametrize(
    "message",
    [
        "What does this do?\n```\nNever use tabs in this vault.\n```",
        "What does this do?\n~~~\nNever use tabs in this vault.",
        "What does `Never use tabs in this vault.` do in the linter?",
        "> Never use tabs in this vault.\nI do not know who said that.",
        'He says "Always ask first. Never use tabs in this vault." and leaves.',
        "Sie sagt „Genug. Never use tabs in this vault.“ und geht einfach.",
        "diff --git a/x b/x\n+Never use tabs in this vault.\n\nlooks fine to me",
        "2026-01-01 10:00:00 WARN odd. Never use tabs in this vault.\nwhat is it",
        'Traceback (most recent call last):\n  File "x.py", line 1\nNever use tabs in this vault.',
        f"Fix the build.\n{wrap('Never use tabs in this vault.')}",
        "Fix the build.\n<system-reminder>Never use tabs in this vault.</system-reminder>",
        "<notes>\nNever use tabs in this vault.\n</notes>\nWho wrote these notes",
        "# Rules\n\nNever use tabs in this vault.",
        "You are an expert developer. Never use tabs in this vault.",
        "Never use tabs in this vault, and use AKIAABCDEFGHIJKLMNOP for the upload.",
        "My key is AKIAABCDEFGHIJKLMNOP, keep it.\nNever use tabs in this vault.",
        "They never use tabs in this vault. We noticed that they always do.",
    ],
)
def test_only_the_persons_own_words_count(message: str) -> None:
    assert read_message(message).capture is None
    assert read_message("Never use tabs in this vault.").capture


def test_the_reason_is_told() -> None:
    assert "AWS access key" in read_message("Always use AKIAABCDEFGHIJKLMNOP for uploads.").reason
    assert "prompt" in read_message("You are an expert reviewer. Never approve.").reason
    assert "0 characters" in read_message("> Never use tabs in this vault.").reason
    assert "preference" in read_message("Never use tabs in this vault.").reason


def test_a_wrapped_sentence_is_kept_whole() -> None:
    sentence = "Always write the migration and the code that needs it in two\nseparate releases, so that either can be rolled back."
    assert capture_of(f"Thanks!\n{sentence}\nNow go on.").text == sentence


def test_sentences_of_a_message() -> None:
    text = "Hi! Use e.g. tabs.\n1. Never\n- **Always** this\nVersion 3.11 is out. And `a. b` too"
    masked = read_own_text(text).masked
    assert [text[start:end] for start, end in sentences(masked)] == [
        "Hi!",
        "Use e.g. tabs.",
        "Never",
        "Always** this",
        "Version 3.11 is out.",
        "And `a. b` too",
    ]


WORDS = (
    "always ",
    "never ",
    "must ",
    "no, ",
    "actually ",
    "not ",
    " but ",
    "don't ever ",
    "all ",
    "remember that ",
    "use ",
    "the ",
    "it ",
    "?",
    ". ",
)
MARKS = ("\n", "\n\n", "- ", "`", "```\n", '"', "'", "> ", "<a>", "</a>", "# ", "<!-- memory-kb:begin -->", "<!-- memory-kb:end -->", "\x00")
AFTERWARDS = ("\n\nThanks!", "\r\n\r\nThanks!", "\n\n```\ncode\n```")
MADE_UP = st.lists(st.sampled_from((*WORDS, *MARKS, "x" * 30)), max_size=40).map("".join)
LABELLED_ONES = st.lists(st.sampled_from(TEXTS), max_size=4).map("\n".join)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=300), MADE_UP, LABELLED_ONES))
def test_nothing_crashes_and_what_is_kept_stands_in_the_message(message: str) -> None:
    found, reason = read_message(message)
    assert reason
    if found:
        assert found.text in message
        assert found.span in found.text
        assert len(found.span) >= 5
        assert found.text == found.text.strip()
        before = message[: message.index(found.text)].rstrip(" \t")
        assert found.pattern == "request" or not before or not before[-1].isalnum()


@given(st.sampled_from([labelled for labelled in LABELLED if labelled["kind"]]), st.sampled_from(AFTERWARDS))
def test_what_stands_after_it_changes_nothing(labelled: dict[str, Any], rest: str) -> None:
    alone, together = read_message(labelled["text"]).capture, read_message(labelled["text"] + rest).capture
    assert alone == together


# -- the messages of a session -----------------------------------------------------------------


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
    assert [heard.event.seq for heard in hear(events)] == [8]


def test_offers_are_the_same_for_the_same_event() -> None:
    events = [Event(role="user", content="Never push to main, please.", session="s", seq=3), Event(role="user", content="Go on with the next one.")]
    one, other = (offer_captures(hear(events), moment) for moment in (NOW, NOW + timedelta(days=1)))
    assert len(one) == 1
    assert one == other
    assert dict(one[0].draft.fields) == {"session_id": "s", "session_seq": 3}
    assert one[0].reason == "Said as a preference in session s, event 3."


# -- the verb ----------------------------------------------------------------------------------

SAID = "Looks good. Always use UTC for timestamps."


def test_a_capture_is_an_entry_of_its_own(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.session_append([Event(role="assistant", content="Done."), Event(role="user", content=SAID)], session="s")
    report = kb.capture(session="s")
    (kept,) = report.kept
    assert (kept.action, kept.kind, kept.text, kept.span, kept.session, kept.seq) == (
        "created",
        "preference",
        "Always use UTC for timestamps.",
        "use UTC for timestamps",
        "s",
        2,
    )
    post = frontmatter.load(str(folder / (kept.path or "")))
    assert post.content.strip() == "Always use UTC for timestamps."
    expected = {"kind": "preference", "type": "directive", "importance": 0.5, "status": "active", "source": "observed"}
    expected |= {"session_id": "s", "session_seq": 2}
    assert {name: post[name] for name in expected} == expected
    assert report.run.run
    kb.undo()
    assert not (folder / (kept.path or "")).exists()


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("No, the worker runs on Celery, not on RQ.", {"kind": "fact", "priority": "high", "importance": 0.8, "source": "observed"}),
        ("Don't ever mock the database.", {"kind": "policy", "importance": 0.95, "source": "observed"}),
        ("Please remember that I prefer tabs over spaces.", {"kind": "preference", "importance": 0.95, "source": "user_explicit"}),
        ("Remember that Anna owns the billing module.", {"kind": "fact", "importance": 0.4, "source": "user_explicit"}),
    ],
)
def test_importance_comes_from_kind_and_priority(said: str, fields: dict[str, object], folder: Path, open_kb: Open) -> None:
    (kept,) = open_kb(folder).capture(said).kept
    post = frontmatter.load(str(folder / (kept.path or "")))
    assert {name: post[name] for name in fields} == fields


def test_hearing_a_session_again_changes_nothing(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    kb.session_append([Event(role="user", content=SAID), Event(role="user", content="Remember that Anna owns billing.")], session="s")
    assert [one.action for one in kb.capture(session="s").kept] == ["created", "created"]
    before = notes_of(folder)
    again = kb.capture(session="s")
    assert ([one.action for one in again.kept], again.run.run, notes_of(folder)) == (["known", "known"], None, before)
    kb.session_append([Event(role="user", content="always use UTC for timestamps")], session="s")
    assert [one.action for one in kb.capture(session="s").kept] == ["known", "known", "known"]
    assert notes_of(folder) == before


def test_a_twin_is_reinforced_once_for_each_session(folder: Path, open_kb: Open) -> None:
    learned = open_kb(folder).learn("Always use UTC for timestamps.", kind="preference")
    kb = open_kb(folder, NOW + timedelta(days=3))
    assert [kb.capture(SAID, session=session).kept[0].action for session in ("a", "a", "b")] == ["reinforced", "known", "reinforced"]
    post = frontmatter.load(str(folder / learned.path))
    assert (post["reinforcement_count"], post["last_reinforced"]) == (2, "2026-11-24")
    assert len(list(folder.rglob("learnings/*.md"))) == 1


def test_asked_to_remember_it_again_resets_its_clock(folder: Path, open_kb: Open) -> None:
    (first,) = open_kb(folder).capture("Remember that Anna owns billing.").kept
    (again,) = open_kb(folder, NOW + timedelta(days=5)).capture("Remember that Anna owns billing.").kept
    post = frontmatter.load(str(folder / (first.path or "")))
    assert (again.action, again.id, post["reinforcement_count"], post["last_reinforced"]) == ("reinforced", first.id, 1, "2026-11-26")


@pytest.mark.parametrize("delete", [False, True])
def test_what_was_forgotten_stays_away(delete: bool, folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (kept,) = kb.capture(SAID, session="a").kept
    kb.forget(kept.id or "", delete=delete)
    before = notes_of(folder)
    assert [kb.capture(SAID, session=session).kept[0].action for session in ("a", "b")] in (["known", "forgotten"], ["forgotten", "forgotten"])
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
    assert (kb.capture(SAID, job="api", task="login").kept[0].path or "").startswith("memory/jobs/api/tasks/login/learnings/")
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


# -- the command -------------------------------------------------------------------------------


def test_the_command_takes_text_and_stdin(folder: Path, run: Run) -> None:
    done = run("--vault", folder, "capture", "Looks", "good.", "Always use UTC for timestamps.")
    assert (done.returncode, done.stdout.split()[0], done.stderr) == (0, "created", "")
    assert done.stdout.rstrip().endswith("Always use UTC for timestamps.")
    done = run("--vault", folder, "capture", "--json", stdin="Thanks!\n\nAll commits must be signed.\n")
    told = json.loads(done.stdout)
    assert [(one["action"], one["kind"], one["text"]) for one in told["messages"]] == [("created", "policy", "All commits must be signed.")]
    done = run("--vault", folder, "capture", "actually, never mind that one")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Nothing to keep: no sentence" in done.stderr
    assert run("--vault", folder, "capture", "").stderr == "There is no message of a person to look at.\n"
    assert run("--vault", folder, "capture", stdin="").returncode == 2


def test_the_command_takes_events(folder: Path, run: Run) -> None:
    events = [
        {"role": "user", "content": SAID, "seq": 4, "session": "s"},
        {"role": "assistant", "content": "All commits must be signed."},
        {"role": "user", "content": "No, the worker runs on Celery, not on RQ.", "seq": 6, "session": "s"},
    ]
    lines = "\n".join(map(json.dumps, events)) + "\nnonsense\n"
    preview = run("--vault", folder, "capture", "--dry-run", stdin=lines)
    assert preview.stdout.count("+source: observed") == 2
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


def test_the_measurement_prints_both_halves(run: Run, tmp_path: Path) -> None:
    import subprocess
    import sys

    from conftest import clean_environment

    done = subprocess.run(
        [sys.executable, REPOSITORY / "scripts" / "eval", "capture", "--json"],
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
        env=clean_environment(tmp_path / "home"),
    )
    halves = json.loads(done.stdout)["halves"]
    assert sum(halves[half]["all"]["messages"] for half in ("odd lines", "even lines")) == len(LABELLED)
    row = halves["all"]["policy"]
    assert row["precision"] == round(row["right"] / row["kept"], 4)
