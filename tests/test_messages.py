"""What is kept of the messages of people: the labelled ones, one sentence at a time, and nothing that is not theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY, Run
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_kb.learning.speech.capture import Capture, read_message
from memory_kb.learning.speech.ownwords import MAX_RAW, read_own_text, sentences
from memory_kb.notes.injected import wrap

LABELLED = [
    json.loads(line)
    for line in (REPOSITORY / "tests" / "data" / "capture_messages.jsonl").read_text(encoding="utf-8").splitlines()
]
TEXTS = [labelled["text"] for labelled in LABELLED]


def capture_of(message: str) -> Capture:
    found = read_message(message).capture
    assert found, read_message(message).reason
    return found


def test_the_labelled_messages_are_many_and_sound() -> None:
    wanted = [labelled for labelled in LABELLED if labelled["kind"]]
    assert len(wanted) >= 90
    assert len(LABELLED) - len(wanted) >= 170
    assert len(set(TEXTS)) == len(TEXTS)
    assert all(labelled["body"] in labelled["text"] for labelled in wanted)


@pytest.mark.parametrize(
    ("first", "precision", "recall"), [(0, 0.99, 0.95), (1, 0.96, 0.88)], ids=["odd lines", "even lines"]
)
def test_what_is_kept_is_right_and_little_is_missed(first: int, precision: float, recall: float) -> None:
    """The even lines were not looked at while the expressions were written; both halves must stay as good as they are."""
    half = LABELLED[first::2]
    found = [(labelled, read_message(labelled["text"]).capture) for labelled in half]
    kept = [(labelled, capture) for labelled, capture in found if capture]
    right = [
        labelled
        for labelled, capture in kept
        if (capture.kind, capture.text) == (labelled["kind"], labelled.get("body"))
    ]
    wrong = [labelled["text"] for labelled, _ in kept if labelled not in right]
    assert len(right) / len(kept) >= precision, wrong
    assert len(right) / sum(labelled["kind"] is not None for labelled in half) >= recall


@pytest.mark.parametrize(
    ("message", "kind", "pattern", "span"),
    [
        ("I prefer early returns over nested ifs.", "preference", "preference", "early returns over nested ifs"),
        ("Always use `pathlib` for file paths.", "preference", "preference", "use `pathlib` for file paths"),
        ("Never mock the database, please.", "preference", "preference", "mock the database"),
        ("Don't ever mock the database.", "policy", "constraint", "mock the database"),
        ("All commits must be signed.", "policy", "constraint", "be signed"),
        ("Type hints are required on all public functions.", "policy", "constraint", "on all public functions"),
        (
            "Actually, staging runs on Postgres 15, not on 14.",
            "fact",
            "correction",
            "staging runs on Postgres 15, not on 14",
        ),
        ("No, the worker runs on Celery, not on RQ.", "fact", "correction", "the worker runs on Celery, not on RQ"),
        ("Not npm but pnpm is what this repo uses.", "fact", "correction", "Not npm but pnpm is what this repo uses"),
        ("Always sign what must not be forged.", "preference", "preference", "sign what must not be forged"),
        ("Remember that our CI runs on arm64.", "fact", "request", "our CI runs on arm64."),
        ("Please remember: never rebase shared branches", "preference", "request", "never rebase shared branches"),
        (
            "remember that all releases must be tagged by the bot",
            "policy",
            "request",
            "all releases must be tagged by the bot",
        ),
    ],
)
def test_the_word_decides_the_kind(message: str, kind: str, pattern: str, span: str) -> None:
    found = capture_of(message)
    assert (found.kind, found.pattern, found.span) == (kind, pattern, span)


@pytest.mark.parametrize(
    ("kept", "passed"),
    [
        ("Remember that the search index is rebuilt at night.", "Remember that you still have to rebuild the index."),
        (
            "Fix the docs. Public functions must have a docstring.",
            "Write a client. Public functions must have a docstring.",
        ),
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
        (
            "ok. And the robot has Humble, so please never use features of Jazzy.",
            "And the robot has Humble, so please never use features of Jazzy.",
        ),
        (
            "Our style: sentence case in headings, and British spelling.",
            "Our style: sentence case in headings, and British spelling.",
        ),
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
    titles = [
        capture_of(text).title
        for text in ("and please always use UTC for timestamps.", "`uv.lock` is committed. Never edit it by hand.")
    ]
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
    constraint, correction, preference = (
        "All commits must be signed.",
        "No, the worker runs on Celery, not on RQ.",
        "Always use tabs in Go files.",
    )
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
MARKS = (
    "\n",
    "\n\n",
    "- ",
    "`",
    "```\n",
    '"',
    "'",
    "> ",
    "<a>",
    "</a>",
    "# ",
    "<!-- memory-kb:begin -->",
    "<!-- memory-kb:end -->",
    "\x00",
)
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
